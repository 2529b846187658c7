"""Laws of lower bounds: information by enumeration, and closed forms that are pinned."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom

from accountant import Statistic
from audits.minimax.bounds import accuracy, mean
from audits.minimax.information import contraction
from audits.minimax.information.group_decoding import group_delta

LEANS = (0.01, 0.3, 0.9)


def two_signs(lean):
    """A sign that is the point with probability (1 + lean) / 2: C_2 and C_infinity are lean^2."""
    return SimpleNamespace(lean=lean, c_infinity=lean**2, c_two=lean**2)


def reports(lean, epsilon):
    """P(report | point) where the sign is released by randomised response; a row a point."""
    t = lean * math.tanh(epsilon / 2)
    return np.array([[1 + t, 1 - t], [1 - t, 1 + t]]) / 2


def information(law, n):
    """I(V; Z_1 .. Z_n) of n reports and a uniform point, and the mean KL(M_0 || M_v)."""
    nats = divergence = 0.0
    for outcome in itertools.product(range(law.shape[1]), repeat=n):
        each = law[:, outcome].prod(axis=1)
        nats += (each * np.log(each / each.mean())).mean()
        null = law.mean(axis=0)[list(outcome)].prod()
        divergence += null * np.log(null / each).mean()
    return nats, divergence


@pytest.mark.parametrize("lean", LEANS)
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2.0, 40.0])
def test_information_is_bounded_and_nearly_attained(lean, epsilon):
    family = two_signs(lean)
    for n in (1, 3):
        nats, divergence = information(reports(lean, epsilon), n)
        fano, le_cam = (
            one(family, n, epsilon)
            for one in (contraction.fano_information, contraction.le_cam_divergence)
        )
        for found in (fano.sharp, fano.published):
            assert nats <= found * (1 + 1e-9)
        for found in (le_cam.sharp, le_cam.published):
            assert divergence <= found * (1 + 1e-9)
        near = n == 1 and epsilon in (0.01, 40.0)  # one report: the bounds are of single reports
        if near:
            assert nats == pytest.approx(fano.sharp, rel=1e-3)
        if epsilon in (0.01, 40.0):
            assert divergence == pytest.approx(le_cam.sharp, rel=1e-3)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 6.0])
@pytest.mark.parametrize("points", [2, 5])
def test_distances_bound_what_randomised_response_says(points, epsilon):
    odds = math.exp(epsilon)
    law = (np.ones((points, points)) + (odds - 1) * np.eye(points)) / (odds + points - 1)
    found = contraction.distance_information(1, epsilon, 1 - 1 / points)
    assert information(law, 1)[0] <= found.sharp <= found.published
    # the forms of the proof: (e^eps - 1)^2 T / 2, and Bhatia and Davis's sinh^2(eps / 2)
    forms = [math.expm1(epsilon) ** 2 * (1 - 1 / points) / 2, math.sinh(epsilon / 2) ** 2]
    assert found.sharp == pytest.approx(min(forms), rel=1e-12)
    assert found.published == pytest.approx(4 * math.expm1(epsilon) ** 2 * (1 - 1 / points))
    few = contraction.distance_information(7, epsilon, 1e-3)
    assert few.sharp == pytest.approx(
        7 * min(math.expm1(epsilon) ** 2 / 2000, math.sinh(epsilon / 2) ** 2), rel=1e-12
    )


@pytest.mark.parametrize("lean", LEANS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_chi_squared_bounds_hold_and_are_those_of_the_proof(lean, epsilon):
    top = 1 / (1 + math.exp(-epsilon))
    chi2 = top**2 / (1 - top) + (1 - top) ** 2 / top - 1
    found = contraction.chi_squared_divergence(two_signs(lean), 1, chi2)
    divergence = information(reports(lean, epsilon), 1)[1]
    assert divergence <= found.sharp <= found.published
    factor = -math.log1p(-lean * lean)
    assert found.sharp == pytest.approx(min(factor / 2 * chi2, factor / 2), rel=1e-6)
    assert found.published == pytest.approx(chi2 * lean**2 / (1 - lean), rel=1e-12)


@pytest.mark.parametrize("delta", [0.0, 1e-3])
@pytest.mark.parametrize(("copies", "epsilon"), [(1, 0.01), (2, 0.3), (3, 0.9), (4, 2.0)])
def test_correlations_of_an_estimate_hold_and_are_those_of_the_proof(copies, epsilon, delta):
    reach, grown = copies * epsilon, group_delta(copies, epsilon, delta)
    for dimension in (1, 2, 10, 1000):
        found = mean.max_correlation(copies, dimension, epsilon, delta)
        near = math.sinh(reach) ** 2 / dimension + 2 * grown * (1 + math.exp(-reach))
        far = mean.cap_square(dimension, reach) + 2 * grown
        assert found == pytest.approx(min(near, far) if reach <= 3 else far, rel=1e-12)
        # randomised response of a direction's sign, revealed with probability delta_g: the squares
        # of the posterior's means, of a coordinate whose mean square is 1 / p
        share = grown + (1 - grown) * math.tanh(reach / 2) ** 2
        assert share / dimension <= found


@pytest.mark.parametrize("delta", [0.0, 1e-3])
@pytest.mark.parametrize(("copies", "epsilon"), [(1, 0.01), (2, 0.3), (3, 0.9)])
def test_the_overlap_of_a_pair_is_that_of_randomised_response(copies, epsilon, delta):
    reach, grown = copies * epsilon, group_delta(copies, epsilon, delta)
    keep = 1 / (1 + math.exp(-reach))
    first = np.array([grown, 0.0, (1 - grown) * keep, (1 - grown) * (1 - keep)])
    second = first[[1, 0, 3, 2]]
    overlap = np.minimum(first, second).sum()
    assert mean.pair_risk(10, copies, epsilon, delta) == pytest.approx(
        (copies / 10) ** 2 * overlap, rel=1e-12
    )


def iterated(chance, people, epsilon, delta):
    """The trade-off of one person, once for each of them."""
    for _ in range(people):
        grown = math.exp(epsilon) * chance + delta
        chance = min(grown, 1 - math.exp(-epsilon) * (1 - delta - chance), 1.0)
    return chance


@pytest.mark.parametrize("seed", range(3))
def test_the_chance_of_a_group_is_the_iterated_one_of_its_people(seed):
    rng = np.random.default_rng(seed)
    for _ in range(100):
        epsilon, delta = 10 ** rng.uniform(-3, 1), 10 ** rng.uniform(-9, -1)
        chance, people = 10 ** rng.uniform(-12, 0), int(rng.integers(1, 40))
        expected = iterated(chance, people, epsilon, delta)
        bound = accuracy.group_chance(np.log([chance]), np.array([float(people)]), epsilon, delta)[
            0
        ]
        assert bound == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("error", "probability"), [(0, 0.9), (1, 0.99), (3, 0.95), (10, 0.5)])
def test_one_count_has_the_epsilon_of_the_discrete_laplace_distribution(error, probability):
    """P(|k| > error) = 2 q^(error + 1) / (1 + q), of which no other mechanism has less."""

    def excess(epsilon):
        q = math.exp(-epsilon)
        return 2 * q ** (error + 1) / (1 + q) - (1 - probability)

    bound = accuracy.least_epsilon_bound([Statistic("count", error + 0.4, probability)], 0.0)
    truth = brentq(excess, 1e-6, 50.0)
    assert bound == pytest.approx(truth, rel=1e-7)
    assert bound <= truth


@pytest.mark.parametrize("people", [1.0, 4.0, 30.0])
def test_a_trace_is_that_of_noise_at_the_ends_of_its_errors(people):
    """The noise is at the error, in either direction, and where it fails far beyond all cuts."""
    statistics = [Statistic("sum", 3.0, 0.8, 50, 0.5), Statistic("count", 7.0, 0.9, 20, 2)]
    (trace,) = accuracy.traces_of(statistics, np.array([people]))
    moments = np.zeros(2)  # the mean with the people, the variance without them
    largest = 0.0
    for statistic in statistics:
        cut = statistic.error + people * statistic.sensitivity
        weight = statistic.sensitivity / cut**2
        law = [(statistic.error, statistic.probability / 2), (1e9, (1 - statistic.probability) / 2)]
        for noise, chance in [(sign * y, p) for y, p in law for sign in (1, -1)]:
            for sign in (1, -1):
                moved = noise + sign * people * statistic.sensitivity
                with_people = weight * sign * min(max(moved, -cut), cut)
                moments[0] += statistic.count * chance / 2 * with_people
        moments[1] += statistic.count * (weight * cut) ** 2  # where all noise is cut
        largest += statistic.count * weight * cut
    assert trace.mean == pytest.approx(moments[0] / math.sqrt(moments[1]), rel=1e-6)
    assert trace.largest == pytest.approx(largest / math.sqrt(moments[1]), rel=1e-6)


@pytest.mark.parametrize(
    "statistic",
    [Statistic("count", 2.0), Statistic("count", 3.9, sensitivity=2), Statistic("sum", 2.5),
     Statistic("sum", 0.3, sensitivity=0.7)],
    ids=lambda s: f"{s.kind} {s.error} {s.sensitivity}",
)  # fmt: skip
def test_values_that_exact_answers_tell_apart_are_counted(statistic):
    """As many as a walk of least gaps finds between the ends that the people reach."""
    for people in range(1, 40):
        reach = people * statistic.sensitivity
        if statistic.kind == "count":
            gap = math.floor(2 * statistic.error) + 1
        else:
            gap = 2 * statistic.error * (1 + 1e-7)  # the ends of two intervals may not meet
        walk = np.arange(-reach, reach + 1e-12, gap)
        assert accuracy.distinct_values(statistic, people) == len(walk)


@pytest.mark.parametrize("wrong", [0, 1, 3, 8])
def test_the_chance_of_matches_is_above_the_exact_one(wrong):
    counts, values = np.array([6.0, 9.0]), np.array([2.0, 5.0])
    matches = counts.sum() - wrong
    exact = sum(binom.pmf(k, 6, 1 / 2) * binom.sf(matches - k - 1, 9, 1 / 5) for k in range(7))
    bound = math.exp(accuracy.log_chance_of_matches(counts, values, np.array([matches]))[0])
    assert exact <= bound * (1 + 1e-12)
    assert bound <= exact * (1 + 8 * (wrong > 0)) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("statistic", "people"),
    [(Statistic("count", 3.0), 7), (Statistic("count", 3.4), 7), (Statistic("count", 3.5), 8),
     (Statistic("count", 3.9, sensitivity=2), 4),
     (Statistic("sum", 3.0), 7), (Statistic("sum", 3.2), 7), (Statistic("sum", 2.9), 6)],
    ids=lambda case: str(case) if isinstance(case, int) else f"{case.kind} {case.error}",
)  # fmt: skip
def test_so_many_people_move_an_answer_from_below_its_error_to_above_it(statistic, people):
    """The least number by which 2 error is exceeded; half a count more makes it one person more."""
    assert accuracy.shift_test(statistic)[0] == people


def test_so_many_wrong_answers_are_seldom_exceeded():
    """More than t of 8 answers are wrong with at most .8 / (t + 1), which all may be at once."""
    tests = accuracy.packing_tests((Statistic("count", 2.0, 0.9, count=8),))
    rights = {round(right, 9) for _, _, right in tests}
    assert rights == {round(1 - 0.8 / (wrong + 1), 9) for wrong in range(8)}


@pytest.mark.parametrize(("epsilon", "delta", "people"), [(1.0, 1e-6, 1.0), (0.3, 0.0, 4.0)])
def test_a_trace_is_refuted_where_its_mean_is_above_the_integral(epsilon, delta, people):
    x = np.linspace(0, 30, 300_001)
    heights = accuracy.group_chance(-x * x / 2, np.full_like(x, people), epsilon, delta)
    integral = float(np.trapezoid(heights, x))
    for factor, is_refuted in ((0.9999, False), (1.02, True)):
        trace = accuracy.Trace(people, factor * integral, 30.0)
        assert trace.is_refuted(epsilon, delta) == is_refuted
