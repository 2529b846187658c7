"""Private means: every channel enumerated, the caps that attain the bound, and our algorithms."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import binom

from accountant import ParameterError
from algorithms import LocalMean
from algorithms.base.non_private import NotPrivateWarning
from audits.minimax.bounds.mean import by_information, by_signs, private_mean
from audits.minimax.families.sign_means import (
    SignCopies,
    SignMeans,
    user_information,
)
from audits.minimax.information.sign_information import (
    posterior_divergence,
    sign_error,
    sign_information,
)

EPSILONS = [0.1, 1.0, 3.0, 8.0]


def cube(p):
    return np.array(list(itertools.product([-1.0, 1.0], repeat=p)))


def patterns(p):
    """Every report's ratios that an extreme channel can have: 1, or e^epsilon on some inputs."""
    return np.array(list(itertools.product([False, True], repeat=2**p))[1:-1])


def laws(p, means):
    """Probability of each vector of signs, for every row of means."""
    return np.prod((1 + cube(p)[None] * np.asarray(means)[:, None]) / 2, axis=2)


def xlogx(x):
    return np.where(x > 0, x * np.log(np.where(x > 0, x, 1.0)), 0.0)


@pytest.mark.parametrize("epsilon", [1e-5, 1e-3, 0.2, 1.0, 5.0, 50.0, 600.0])
def test_the_divergence_of_a_posterior_is_its_maximum(epsilon):
    # two values e^epsilon apart, the greater of prior probability t
    def minus(log_t):
        log_mean = np.logaddexp(np.log1p(-np.exp(log_t)), log_t + epsilon)
        return log_mean - epsilon * math.exp(log_t + epsilon - log_mean)

    best = -minimize_scalar(minus, bounds=(-epsilon - 8, -1e-9), method="bounded").fun
    bound = posterior_divergence(epsilon)
    assert bound == pytest.approx(best, rel=1e-5, abs=1e-14)
    assert bound >= best * (1 - 1e-9) - 1e-15
    assert bound <= epsilon**2 / 8 * (1 + 1e-8)


# The information that a report has of V is a convex function of its ratios, so extreme channels
# have the most: these are all epsilon-LDP channels on so few inputs.
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("shift", [0.2, 0.7, 1.0])
@pytest.mark.parametrize("p", [1, 2, 3])
def test_no_channel_tells_more_than_the_bound(p, shift, epsilon):
    ratio = np.where(patterns(p), math.exp(epsilon), 1.0)
    ratio /= ratio.mean(axis=1, keepdims=True)
    posterior = ratio @ laws(p, shift * cube(p)).T / 2**p  # over the points, each times 2^-p
    information = xlogx(posterior * 2**p).mean(axis=1)
    bound = user_information(p, shift, epsilon)
    assert information.max() <= bound * (1 + 1e-12)
    if p == 3 and epsilon <= 1:  # not vacuous
        assert information.max() > 0.5 * bound


@pytest.mark.parametrize(("p", "shift", "epsilon"), [(3, 1.0, 1.0), (3, 1.0, 3.0), (2, 1.0, 0.5)])
def test_some_channel_comes_near(p, shift, epsilon):
    ratio = np.where(patterns(p), math.exp(epsilon), 1.0)
    ratio /= ratio.mean(axis=1, keepdims=True)
    assert xlogx(ratio).mean(axis=1).max() > 0.96 * user_information(p, shift, epsilon)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("p", [1, 2, 3])
def test_no_channel_has_more_fisher_information(p, epsilon):
    rng, width = np.random.default_rng(p), 0.4
    raw = np.where(patterns(p), math.exp(epsilon), 1.0)
    left = 1 - width**2
    bound = 2 * posterior_divergence(epsilon) / left**2
    seen = []
    for theta in [np.zeros(p), np.full(p, width), *rng.uniform(-width, width, (20, p))]:
        law = laws(p, [theta])[0]
        ratio = raw / (raw @ law)[:, None]
        score = (cube(p) - theta) / (1 - theta**2)
        seen.append((((ratio * law) @ score) ** 2).sum(axis=1).max())
        channel = random_channel(p, epsilon, rng)
        all_reports = ((law * channel.T) @ score) ** 2 / (law @ channel)[:, None]
        assert all_reports.sum() <= min(bound, p / left)  # nor more than the data themselves
    assert max(seen) <= bound * (1 + 1e-12)
    if epsilon <= 1:  # not vacuous
        assert max(seen) > 0.7 * bound


def several_users(p, n, shift, channel):
    """Joint law of point and reports (points, reports^n), each point equally likely."""
    one = laws(p, shift * cube(p)) @ channel
    joint = one
    for _ in range(n - 1):
        joint = (joint[:, :, None] * one[:, None]).reshape(len(one), -1)
    return joint / len(one)


def random_channel(p, epsilon, rng, reports=3):
    """An epsilon-LDP channel (inputs, reports): a mixture of answers and their complements."""
    high = rng.random((reports, 2**p)) < rng.uniform(0.2, 0.8)
    weight = rng.dirichlet(np.ones(reports))
    odds = np.where(high, math.exp(epsilon), 1.0) / (1 + math.exp(epsilon))
    return np.concatenate([weight[:, None] * odds, weight[:, None] * (1 - odds)]).T


@pytest.mark.parametrize("epsilon", [0.5, 1.5, 4.0])
@pytest.mark.parametrize(("p", "n"), [(1, 4), (2, 3), (3, 2)])
def test_best_decoders_of_many_users_stay_below(p, n, epsilon):
    rng = np.random.default_rng(int(10 * epsilon) + p)
    for shift in (0.5, 1.0):
        family = SignMeans(p, shift)
        error = p * float(sign_error(n * user_information(p, shift, epsilon) / p))
        for _ in range(15):
            joint = several_users(p, n, shift, random_channel(p, epsilon, rng))
            assert joint.sum() == pytest.approx(1)
            assert joint.max(axis=0).sum() <= family.most_right(n, epsilon)
            # the best estimate of the signs is their mean given the reports
            mass = joint.sum(axis=0)
            guess = np.einsum("vz,vj->jz", joint, cube(p)) / mass
            assert p - (mass * guess**2).sum() >= error


@pytest.mark.parametrize("known", [1e-9, 1e-3, 0.2, 0.6, 0.693])
def test_the_error_on_a_sign_inverts_its_information(known):
    error = float(sign_error(known))
    assert sign_information(math.sqrt(1 - error)) == pytest.approx(known, rel=1e-6)
    assert sign_information(math.sqrt(1 - error)) >= known * (1 - 1e-6)
    assert sign_error(0.7) == 0


@pytest.mark.parametrize("p", [1, 3, 64, 200])
def test_the_families_are_what_they_say(p):
    rng = np.random.default_rng(0)
    last = (1 << p) - 1
    for family in (SignMeans(p, 0.3, 2.0), SignCopies(p, 50, 20, 2.0)):
        assert family.points == 1 << p
        some = {0, 1, last, last - 1, last // 3}
        for one in some:
            assert family.decode(family.parameter(one)) == one
            drawn = family.sample(one, 50, rng)
            assert drawn.shape == (50, p)
            assert np.linalg.norm(drawn, axis=1).max() <= 2 + 1e-12
        gaps = [np.linalg.norm(family.parameter(a) - family.parameter(b))
                for a, b in itertools.combinations(some, 2)]  # fmt: skip
        assert min(gaps) >= family.separation * (1 - 1e-12)
        assert np.linalg.norm(family.parameter(0) - family.parameter(1)) == pytest.approx(
            family.separation
        )
    many = SignMeans(p, 0.3).sample(last, 20_000, rng).mean(axis=0)
    # Hoeffding at 1e-9 for each of 200 coordinates
    assert np.abs(many * math.sqrt(p) - 0.3).max() < math.sqrt(2 * math.log(2e9) / 20_000)
    exact = SignCopies(p, 50, 20).sample(last, 50, rng).mean(axis=0)
    assert exact == pytest.approx(SignCopies(p, 50, 20).parameter(last))


def risk_of(algorithm, family, n, runs, seed):
    """Mean squared error over uniform points, and its standard error."""
    errors, right = [], 0
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        which = int.from_bytes(rng.bytes(64), "big") % family.points
        algorithm.set_params(random_state=rng)
        found = algorithm.fit(family.sample(which, n, rng)).mean_
        errors.append(((found - family.parameter(which)) ** 2).sum())
        right += family.decode(found) == which
    return np.mean(errors), np.std(errors) / math.sqrt(runs), right


@pytest.mark.parametrize(("n", "p", "epsilon"), [(400, 8, 0.5), (400, 20, 2.0), (1000, 3, 1.0)])
def test_the_local_mean_is_near_the_bound_and_never_below(n, p, epsilon):
    bound = private_mean(n, p, epsilon)
    risk, error, _ = risk_of(LocalMean(epsilon=epsilon), bound.construction, n, 60, 1)
    signs, _ = by_signs(n, p, epsilon)
    # 6 standard errors: false alarms of 1e-9
    assert signs - 6 * error <= risk <= 12 * bound.value
    assert bound.value >= signs * (1 - 1e-9)


@pytest.mark.parametrize(("n", "p", "epsilon"), [(400, 8, 0.5), (7, 1, 3.0), (10**6, 50, 0.1)])
def test_the_local_bounds_are_their_formulas_at_the_best_choice_lowered_for_round_off(
    n, p, epsilon
):
    def by_sign(d):
        return d * d * float(sign_error(n * user_information(p, d, epsilon) / p))

    def by_width(w):
        left = 1 - w * w
        fisher = min(2 * posterior_divergence(epsilon) / left**2, p / left)
        return p / (n * fisher + p * math.pi**2 / w**2)

    for (bound, choice), formula in (
        (by_signs(n, p, epsilon), by_sign),
        (by_information(n, p, epsilon), by_width),
    ):
        value = formula(choice)
        assert (1 - 2e-12) * value < bound < (1 - 5e-13) * value
        nearby = [choice * factor for factor in np.geomspace(0.7, 1.4, 15).tolist()]
        far_away = np.geomspace(1e-6, 1 - 1e-9, 15).tolist()
        assert bound >= 0.999 * max(formula(d) for d in [*nearby, *far_away] if d < 1)


def test_the_constant_for_many_users():
    from mechanisms import PrivUnit

    n, p, epsilon = 10**8, 50, 0.5
    upper = (PrivUnit.optimised(p, epsilon).length ** 2) / n
    # PrivUnit keeps pi / 2 of what reports could tell
    assert 1.0 < upper / private_mean(n, p, epsilon).value < 1.1 * math.pi / 2


def test_too_accurate_means_are_told_and_honest_ones_are_not():
    n, p, epsilon, runs = 60, 64, 1.0, 20
    family = SignMeans(p)
    most = family.most_right(n, epsilon)
    assert 0 < most < 0.2
    right = {"honest": risk_of(LocalMean(epsilon=epsilon), family, n, runs, 3)[2]}
    right["little noise"] = risk_of(LocalMean(epsilon=100.0), family, n, runs, 3)[2]
    bare = LocalMean(epsilon=math.inf, non_private=True)
    with pytest.warns(NotPrivateWarning):
        right["none"] = risk_of(bare, family, n, runs, 3)[2]
    chances = {name: binom.sf(count - 1, runs, most) for name, count in right.items()}
    assert chances["honest"] > 0.01
    assert chances["little noise"] < 1e-6
    assert chances["none"] < 1e-6


def test_the_bound_falls_with_n_and_epsilon_and_scales():
    for model, delta in (("local", 0.0), ("central", 0.0), ("central", 1e-9)):
        made = [private_mean(n, 5, 0.5, model, delta).value for n in (10, 100, 1000, 10_000)]
        assert made == sorted(made, reverse=True)
        # beyond about 15 in reach the fingerprints of this dimension say nothing
        made = [private_mean(1000, 5, e, model, delta).value for e in (0.01, 0.1, 1.0, 10.0)]
        assert made == sorted(made, reverse=True)
        assert private_mean(100, 5, 0.5, model, delta, 3.0).value == pytest.approx(
            9 * private_mean(100, 5, 0.5, model, delta).value
        )
    assert by_information(10**9, 5, 50.0)[0] == pytest.approx(1e-9, rel=0.01)  # without privacy


@pytest.mark.parametrize(
    ("arguments", "said"),
    [((0, 5, 1.0), "n must"), ((5, 0, 1.0), "dimension"), ((5, 5, 0.0), "epsilon"),
     ((5, 5, math.nan), "epsilon"), ((5, 5, math.inf), "epsilon"), ((5, 5, 1.0, "both"), "model"),
     ((5, 5, 1.0, "central", 1.0), "delta"), ((5, 5, 1.0, "local", 1e-6), "delta"),
     ((5, 5, 1.0, "local", 0.0, -1.0), "radius"), ((True, 5, 1.0), "n must")],
    ids=str,
)  # fmt: skip
def test_bad_input_is_refused(arguments, said):
    with pytest.raises(ParameterError, match=said):
        private_mean(*arguments)


def test_bad_points_are_refused():
    family = SignMeans(5)
    for which in (-1, 32, True, 1.0):
        with pytest.raises(ParameterError, match="which"):
            family.parameter(which)
    with pytest.raises(ParameterError, match="estimate"):
        family.decode(np.zeros(4))
    with pytest.raises(ParameterError, match="size of these"):
        SignCopies(5, 10, 3).sample(0, 11, np.random.default_rng(0))
    with pytest.raises(ParameterError, match="copies"):
        SignCopies(5, 10, 11)


CENTRAL = [{}, {"model": "central"}, {"model": "central", "delta": 1e-6}]


@pytest.mark.parametrize("more", CENTRAL)
def test_a_radius_whose_square_is_no_float_is_refused(more):
    for radius in (1e160, 1e-160):
        with pytest.raises(ParameterError, match="radius"):
            private_mean(10, 3, 1.0, radius=radius, **more)
    ratio = private_mean(10, 3, 1.0, radius=1e149, **more).value / 1e298
    assert ratio == pytest.approx(private_mean(10, 3, 1.0, **more).value, rel=1e-9)


def test_a_delta_near_the_least_float_has_a_bound():
    # The number of directions was the floor of an infinity there, an OverflowError.
    assert private_mean(10, 3, 1e-200, "central", 5e-324).value > 0
