"""Means by a curator: the caps that attain the bound, fingerprints by enumeration, and ours."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from accountant import ParameterError
from algorithms import PrivateMean
from audits.minimax.bounds.mean import (
    best_guess_correlation,
    cap_square,
    fingerprint_risk,
    max_correlation,
    pair_risk,
    private_mean,
    pure_mean,
)
from audits.minimax.families.sign_means import SignCopies
from audits.minimax.information.group_decoding import group_delta, most_right_at_distance


def cube(p):
    return np.array(list(itertools.product([-1.0, 1.0], repeat=p)))


@pytest.mark.parametrize("reach", [0.3, 2.0, 20.0])
def test_the_best_guess_of_a_direction_on_a_circle(reach):
    # a coordinate of a uniform direction of the plane is cos(angle): caps are arcs of half width a
    def minus(a):
        more = math.expm1(reach)
        return -more * math.sin(a) / math.pi / (1 + more * a / math.pi)

    best = -minimize_scalar(minus, bounds=(0, math.pi), method="bounded").fun
    assert best_guess_correlation(2, reach) == pytest.approx(best, rel=1e-7)
    assert best_guess_correlation(2, reach) >= best
    assert best_guess_correlation(1, reach) == pytest.approx(math.tanh(reach / 2))


@pytest.mark.parametrize(("p", "reach"), [(3, 1.0), (10, 3.0), (50, 20.0), (1500, 640.0)])
def test_the_cap_attains_the_bound(p, reach):
    # Dinkelbach's root is the greatest of all heights; far out the cap's own mass is left out
    from mechanisms.families.mean_oracle import gamma_ratio
    from mechanisms.priv_unit import cap_mass

    a = (p - 1) / 2

    def guess(height):
        moment = math.exp(a * math.log1p(-height * height)) * gamma_ratio(a)
        moment /= 2 * a * math.sqrt(math.pi)
        small = math.exp(-reach)
        return (1 - small) * moment / (small + (1 - small) * cap_mass(p, height))

    best = max(guess(h) for h in np.linspace(0, 1, 4001)[:-1])
    assert best <= best_guess_correlation(p, reach) <= best * (1.0001 if reach < 600 else 1.01)


@pytest.mark.parametrize("p", [3, 10])
def test_directions_are_told_no_better_by_anybody(p):
    rng, reach = np.random.default_rng(p), 2.0
    directions = rng.standard_normal((20_000, p))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    # any set may be likelier, not only a cap: slabs, halves, random ones
    for chosen in (directions[:, 0] > 0.2, np.abs(directions[:, 0]) > 0.5,
                   directions.max(axis=1) > 0.6, rng.random(20_000) < 0.3):  # fmt: skip
        ratio = np.where(chosen, math.exp(reach), 1.0)
        correlation = np.linalg.norm((ratio[:, None] * directions).mean(axis=0) / ratio.mean())
        # 5 standard errors of a mean of 20,000: false alarms of 1e-6
        assert correlation <= best_guess_correlation(p, reach) + 5 * math.exp(reach) / math.sqrt(
            20_000
        )


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
@pytest.mark.parametrize("points", [2, 5, 64])
def test_randomised_response_attains_the_decoding_bound(points, epsilon):
    reach = 3 * epsilon
    right = math.exp(reach) / (math.exp(reach) + points - 1)
    assert most_right_at_distance(math.log(points), 3, epsilon) == pytest.approx(right, rel=1e-12)
    assert most_right_at_distance(math.log(points), 3, epsilon) >= right
    # two points and a delta: the truth is revealed with probability delta_3
    grown = group_delta(3, epsilon, 0.01)
    assert grown == pytest.approx(0.01 * sum(math.exp(i * epsilon) for i in range(3)))
    right_share = grown + (1 - grown) * right
    assert right_share <= most_right_at_distance(math.log(points), 3, epsilon, 0.01)


@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.02])
@pytest.mark.parametrize(("p", "copies"), [(1, 1), (2, 3), (5, 2)])
def test_copies_are_decoded_by_those_who_may_tell_that_many_records_apart(p, copies, delta):
    epsilon, family = 0.4, SignCopies(p, 10, copies)
    odds = math.exp(copies * epsilon)
    revealed = delta * sum(math.exp(i * epsilon) for i in range(copies))
    right = odds / (odds + 2**p - 1) + revealed
    assert right <= family.most_right(10, epsilon, delta) <= right * (1 + 1e-9)
    for n in (9, 11):
        with pytest.raises(ParameterError, match="n must be 10"):
            family.most_right(n, epsilon, delta)
        with pytest.raises(ParameterError, match="n must be 10"):
            family.sample(0, n, np.random.default_rng(0))


def noisy_outputs(values, grid, epsilon, delta, sensitivity):
    """The exponential mechanism on a grid, and outright the truth with probability delta."""
    weight = np.exp(-epsilon * np.abs(values[:, None] - grid) / (2 * sensitivity))
    weight /= weight.sum(axis=1, keepdims=True)
    hidden = np.hstack([(1 - delta) * weight, np.zeros((len(values), len(values)))])
    hidden[:, len(grid) :] += delta * np.eye(len(values))
    return hidden


@pytest.mark.parametrize("delta", [0.0, 0.01])
@pytest.mark.parametrize(("k", "copies", "epsilon"), [(3, 1, 0.3), (6, 1, 0.1), (2, 2, 0.1)])
def test_fingerprints_by_enumeration(k, copies, epsilon, delta):
    # one coordinate: k signs, each `copies` times, all data sets equally likely; the best estimate
    rows = cube(k)
    n, means = k * copies, rows.mean(axis=1)
    law = noisy_outputs(means, np.linspace(-1, 1, 21), epsilon, delta, 2 / n) / len(rows)
    # the exponential mechanism is epsilon-DP for a record: all pairs that differ in one group
    for i, j in itertools.combinations(range(len(rows)), 2):
        if (rows[i] != rows[j]).sum() == 1 and delta == 0:
            seen = law[i] > 0
            assert np.abs(np.log(law[i][seen] / law[j][seen])).max() <= copies * epsilon + 1e-9
    mass = law.sum(axis=0)
    guess = (law * means[:, None]).sum(axis=0) / np.where(mass > 0, mass, 1.0)
    risk = (law * (guess - means[:, None]) ** 2).sum()
    b = max_correlation(copies, 1, epsilon, delta)
    assert risk >= (copies / n) ** 2 * k * (1 - k * b)
    best, chosen = fingerprint_risk(n, copies, 1, epsilon, delta)
    assert best >= (copies / n) ** 2 * chosen * (1 - chosen * b) - 1e-15
    assert 0 < pair_risk(n, copies, epsilon, delta) < (copies / n) ** 2


@pytest.mark.parametrize(("p", "reach"), [(2, 0.1), (2, 3.0), (3, 1.0), (40, 6.0), (900, 500.0)])
def test_the_mean_square_in_a_cap(p, reach):
    # of density e^K at most, all of it where the coordinate is the greatest, and nowhere below 0
    grid = (np.arange(400_000) + 0.5) / 400_000
    log_density = (p - 3) / 2 * np.log1p(-(grid**2))
    mass = np.exp(log_density - log_density.max())
    log_scale = -math.log(mass.sum() * 2)
    with np.errstate(divide="ignore"):  # far out no mass is left
        beyond = np.log(np.cumsum(mass[::-1])[::-1]) + log_scale
    # layer cake: int min(1, e^K P(U > h)) 2 h dh
    expected = (np.exp(np.minimum(beyond + reach, 0.0)) * 2 * grid).mean()
    bound = cap_square(p, reach)
    assert expected <= bound * (1 + 1e-3)
    assert bound == pytest.approx(expected, rel=2e-2 if p == 2 else 1e-4)


@pytest.mark.parametrize("radius", [1.0, 3.0])
@pytest.mark.parametrize(("n", "p", "epsilon"), [(20, 1, 0.3), (60, 1, 0.05), (50, 7, 0.1)])
def test_a_central_bound_is_its_formula_at_the_best_count_lowered_for_round_off(
    n, p, epsilon, radius
):
    counts = range(1, n + 1)
    pure = [(j / n * radius) ** 2 * (1 - best_guess_correlation(p, j * epsilon) ** 2)
            for j in counts]  # fmt: skip
    found = private_mean(n, p, epsilon, "central", 0.0, radius)
    assert 1 - 2e-9 < found.value / max(pure) < 1 - 5e-10
    best_count = counts[int(np.argmax(pure))]
    assert found.construction == SignCopies(p, n, best_count, radius)
    assert f"the sphere: {best_count:,}" in found.optimised_over

    delta = 1e-5
    risks = {}
    for g in counts:
        of_group = group_delta(g, epsilon, delta)
        risks[f"opposite, {g:,} times"] = (
            (g / n) ** 2 * (1 - of_group) * 2 / (math.exp(g * epsilon) + 1)
        )
        b = max_correlation(g, p, epsilon, delta)
        for k in range(1, n // g + 1):
            risks[f"{k:,} independent directions, {g:,} times"] = (g / n) ** 2 * k * (1 - k * b)
    found = private_mean(n, p, epsilon, "central", delta, radius)
    best_choice = max(risks, key=risks.__getitem__)
    assert 1 - 2e-9 < found.value / (radius**2 * risks[best_choice]) < 1 - 5e-10
    assert best_choice in found.optimised_over


def risk_of(algorithm, family, n, runs, seed):
    """Mean squared error over uniform points, and its standard error."""
    errors = []
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        which = int.from_bytes(rng.bytes(64), "big") % family.points
        found = algorithm.set_params(random_state=rng).fit(family.sample(which, n, rng)).mean_
        errors.append(((found - family.parameter(which)) ** 2).sum())
    return np.mean(errors), np.std(errors) / math.sqrt(runs)


@pytest.mark.parametrize(("delta", "most"), [(0.0, 70), (1e-6, 150)])
def test_the_central_mean_is_near_the_bound_and_never_below(delta, most):
    n, p, epsilon = 300, 10, 0.5
    bound = private_mean(n, p, epsilon, "central", delta)
    family = pure_mean(n, p, epsilon, 0.0, 1.0).construction
    made = PrivateMean(epsilon=epsilon, delta=delta)
    risk, error = risk_of(made, family, n, 200, 2)
    assert bound.value - 6 * error <= risk <= most * bound.value
