"""Mixtures of Gaussians: quadrature, published values, composition, refusals."""

import math

import numpy as np
import pytest

from accountant import (
    GDP,
    PLD,
    RDP,
    GaussianLoss,
    MixtureOfGaussians,
    ParameterError,
    PoissonSampled,
    Tight,
    from_json,
    to_json,
)
from accountant.losses import mixture_pair
from accountant.losses.mixture_of_gaussians import MixturePairLoss
from accountant.losses.mixture_pair import MixturePair
from accountant.losses.normal_mixture import ORIGIN, Side, side
from tests.laws.error_bounds.quadratures import mixture_violation

THREE = MixtureOfGaussians(1.0, (0.0, 1.0, 2.0), (0.2, 0.6, 0.2))
PAIRS = {
    "removed": MixturePair(side((0.0, 0.5, 2.0), (0.7, 0.2, 0.1)), ORIGIN),
    "added": MixturePair(ORIGIN, side((0.0, 0.5, 2.0), (0.7, 0.2, 0.1))),
    "exchanged": MixturePair(side((0.0, 1.5), (0.6, 0.4)), side((0.0, 1.0), (0.5, 0.5))),
    "wide": MixturePair(side((0.0, 1.0), (0.5, 0.5)), side((0.0, 9.0), (0.9, 0.1))),
    "far": MixturePair(side((0.0, 9.0), (0.9, 0.1)), side((0.5, 1.0), (0.5, 0.5))),
}


def moment(pair, z):
    """``E_P e^{zL}`` by a sum over a fine grid of the densities, in long floats."""
    x = np.arange(-60, 80, 1 / 64, dtype=np.longdouble)

    def log_density(sign, one):
        terms = zip(one.shifts, one.weights, strict=True)
        each = [np.log(np.longdouble(w)) - (x - sign * np.longdouble(m)) ** 2 / 2 for m, w in terms]
        return np.logaddexp.reduce(each)

    p, q = log_density(1, pair.right), log_density(-1, pair.left)
    terms = np.exp((1 + z.real) * p - z.real * q) * np.exp(1j * np.longdouble(z.imag) * (p - q))
    return complex(terms.sum() / 64 / np.sqrt(2 * np.longdouble(math.pi)))


def test_published_value():
    # dp-accounting, privacy_loss_mechanism_test: sd 1, sensitivities 0, 1, 2, delta at epsilon 1
    assert float(THREE.profile(1.0)) == pytest.approx(0.15768284088654105, rel=1e-12)


@pytest.mark.parametrize("added", [False, True])
def test_two_shifts_are_a_sampled_gaussian(added):
    mixture, sampled = (
        MixtureOfGaussians(2.0, (0.0, 3.0), (0.9, 0.1)),
        PoissonSampled(GaussianLoss(1.5), 0.1),
    )
    if added:
        mixture, sampled = mixture.reversed, sampled.reversed
    e = np.array([0.0, 1e-9, 0.01, 0.1, 0.105, 1.0, 5.0, 40.0])
    assert np.allclose(mixture.profile(e), sampled.profile(e), rtol=1e-9, atol=0.0)
    assert mixture.max_loss == pytest.approx(sampled.max_loss)
    orders = np.array([1.01, 1.5, 2.0, 8.0, 64.0])
    assert np.allclose(mixture.renyi(orders), sampled.renyi(orders), rtol=1e-9)
    for plan in (mixture, 40 * mixture):
        other = sampled if plan is mixture else 40 * sampled
        found = Tight(width=1e-8).certify_one_way(plan, 1e-6)
        assert found.width <= 1e-8 * found.upper
        other_end = Tight(width=1e-8).certify_one_way(other, 1e-6).upper
        assert found.upper == pytest.approx(other_end, rel=2e-8)


@pytest.mark.parametrize("name", PAIRS)
def test_cumulants_are_within_their_bounds(name):
    pair = PAIRS[name]
    for z in (0.5 + 0j, 2.0 + 0j, 0.5 + 3j, 1.0 + 20j):
        value, error = pair.cgf(np.array([z]))
        # relative to the moment at the real order
        truth, height = moment(pair, z), abs(moment(pair, z.real))
        found = np.exp(value[0])
        assert abs(found - truth) <= error[0] * abs(found) + 1e-14 * height


def test_coarse_rules_err_by_no_more_than_they_say():
    # a few seeds of the law of error bounds
    assert mixture_violation(range(8)) == ""


@pytest.mark.parametrize(
    ("name", "a"), [*((name, 1.5) for name in PAIRS), ("added", 300.0), ("exchanged", 300.0)]
)
def test_characteristic_functions_fall_as_fast_as_the_bound_says(name, a):
    pair = PAIRS[name]
    u = np.array([0.1, 1.0, 3.0, 10.0, 40.0])
    bound = pair.log_cf_bound(a, u)
    z = a + 1j * np.concatenate([u, 1.7 * u])
    ratio = pair.cgf(z)[0].real - float(pair.cgf(np.array([a]))[0][0])
    least = np.maximum(bound, -25.0) + 1e-9  # less is lost among the terms of the sum
    assert np.all(ratio[:5] <= least)
    assert np.all(ratio[5:] <= least)  # and beyond it
    assert np.all(np.diff(bound) <= 1e-12)
    # At a large order no line may be of use: then the bound is 0.
    assert bound[-1] < -1.0 if a < 10 else np.all(bound <= 0)


def log_ratio_on_lines(one, x, d):
    """The log size and the turn of the ratio of a side at ``x + id``, for growing d from 0."""
    m = np.array(one.shifts)
    size = np.multiply.outer(x, m) - m * m / 2 + np.log(one.weights)
    top = size.max(axis=1)
    total = np.exp(1j * np.multiply.outer(d, m)) @ np.exp(size - top[:, None]).T
    return top + np.log(np.abs(total)), np.unwrap(np.angle(total), axis=0)


@pytest.mark.parametrize("a", [0.3, 8.0])
@pytest.mark.parametrize("name", PAIRS)
def test_the_bound_on_a_characteristic_function_is_the_least_of_many_lines(name, a):
    pair = PAIRS[name]
    x, widest = np.arange(-20.0, 100.0, 1 / 4), 0.95 * math.pi / 2
    widest /= max(pair.right.spread, pair.left.spread, math.pi / 8)
    d = np.append(0.0, np.geomspace(1e-3, 0.64, 80) * widest)
    log_p, turn_p = log_ratio_on_lines(pair.right, x, d)
    log_q, turn_q = log_ratio_on_lines(pair.left, -x, d)
    log_f = (1 + a) * log_p - a * log_q - x * x / 2 + d[:, None] ** 2 / 2
    log_f -= np.logaddexp.reduce(log_f[0])
    u = np.array([0.1, 1.0, 3.0, 10.0, 40.0])
    least = np.array([np.logaddexp.reduce(log_f - v * (turn_p + turn_q), axis=1).min() for v in u])
    bound = pair.log_cf_bound(a, np.repeat(u, 2))[::2]
    # The best lines lie between those here, and between those that the bound tries, which are few
    # and lose little.  It adds e^-39 for its own errors.
    assert np.all(bound >= 1.001 * least - 1e-12)
    assert np.all(bound <= 0.9 * np.maximum(least, -40.0))


@pytest.mark.parametrize("name", PAIRS)
def test_a_rule_ends_where_hardly_anything_of_the_tilted_density_is_left(name):
    pair = PAIRS[name]
    x = np.arange(-450.0, 450.0, 1 / 16)
    ahead, behind = pair.right.log_ratio(x), pair.left.log_ratio(-x)
    for a in (-30.0, -3.0, -1.0, -0.4, 0.0, 0.4, 3.0, 30.0):
        log_density = (1 + a) * ahead - a * behind - x * x / 2
        log_density -= np.logaddexp.reduce(log_density)
        low, high = pair.quadrature_range(a, a)
        for outside in (x < low, x > high):
            beyond = np.logaddexp.reduce(log_density[outside])
            assert beyond <= math.log(mixture_pair.TAIL_ERROR)


def test_a_large_order_makes_the_ratios_as_inexact_as_they_say():
    # of one normal law ln E e^{zL} is mu^2 z (1 + z) / 2
    a, u = 1e4, 1e-3 * np.arange(6.0).reshape(2, 3)
    for count in (1, 50):
        ratio, error = MixturePair(side((1.0,), (1.0,)), ORIGIN).cf_ratio(a + 1j * u, count)
        exact = np.exp(count * (1j * u * (a + 0.5) - u * u / 2))
        assert np.all(np.abs(ratio - exact) <= error)


def test_a_certificate_holds_the_grid_s_interval():
    for plan in (7 * THREE, 7 * THREE.reversed):
        found = Tight(width=1e-8).certify(plan, 1e-6)
        low, high = PLD(interval=5e-3).bracket(plan, 1e-6)
        assert low <= found.upper
        assert found.lower <= high
        assert high - found.upper <= 1e-3 * high
        assert found.width <= 1e-8 * found.upper
        assert found.upper <= RDP().epsilon(plan, 1e-6)
        assert found.upper <= GDP().epsilon(plan, 1e-6)


def test_far_tails_do_not_cancel():
    # beyond all shifts the largest one decides
    for epsilon in (60.0, 300.0):
        last = GaussianLoss(2.0).log_profile(epsilon - math.log(0.2))
        assert THREE.log_profile(epsilon) == pytest.approx(float(last) + math.log(0.2), rel=1e-3)
    near = THREE.reversed.max_loss
    assert THREE.reversed.profile(near + 1e-9) == 0.0
    assert THREE.reversed.profile(near - 1e-4) > 0.0
    tiny = MixtureOfGaussians(1.0, (0.0, 1e-200), (0.5, 0.5))
    assert 0 <= tiny.delta_at(0.0) <= 1e-100
    wide = MixtureOfGaussians(1e-90, (0.0, 1.0), (0.5, 0.5))
    assert wide.delta_at(1.0) == pytest.approx(0.5, rel=1e-9)
    assert wide.epsilon_at(0.6) >= 0.0


def test_a_pair_sampled_from_its_laws_attains_the_profile():
    # 400,000 draws of each law: by Hoeffding a share is off by .007 with chance below 1e-16
    rng, runs = np.random.default_rng(11), 400_000
    shifts = rng.choice([0.0, 1.0, 2.0], p=[0.2, 0.6, 0.2], size=runs)
    p, q = shifts + rng.normal(size=runs), rng.normal(size=runs)
    losses = [THREE.pair.loss(x) for x in (p, q)]
    for loss, first, sign in ((THREE, 0, 1), (THREE.reversed, 1, -1)):
        for epsilon in (0.0, 0.5, 1.0):
            share = [np.mean(sign * losses[i] > epsilon) for i in (first, 1 - first)]
            found = share[0] - math.exp(epsilon) * share[1]
            assert abs(found - float(loss.profile(epsilon))) <= 0.007 * (1 + math.exp(epsilon))


def test_files_and_equality():
    for plan in (THREE, THREE.reversed, 3 * THREE):
        assert from_json(to_json(plan)) == plan
    assert MixtureOfGaussians(1, [0, 1, 2], np.array([0.2, 0.6, 0.2])) == THREE
    assert THREE.reversed.reversed == THREE
    assert hash(THREE) == hash(THREE.reversed.reversed)
    merged = side((1.0, 0.0, 1.0), (0.25, 0.5, 0.25))
    assert merged == Side((0.0, 1.0), (0.5, 0.5))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0.0, (1.0,), (1.0,)), "scale must be"),
        ((math.nan, (1.0,), (1.0,)), "scale must be"),
        ((True, (1.0,), (1.0,)), "scale must be"),
        ((1.0, (-1.0,), (1.0,)), r"shifts\[0\] must be"),
        ((1.0, (0.0, math.inf), (0.5, 0.5)), r"shifts\[1\] must be"),
        ((1.0, (), ()), "shifts must be"),
        ((1.0, "12", (0.5, 0.5)), "shifts must be"),
        ((1.0, 3.0, (1.0,)), "shifts must be"),
        ((1.0, np.array(3.0), (1.0,)), "shifts must be a list"),
        ((1.0, np.ones((2, 1)), (0.5, 0.5)), "shifts must be a list"),
        ((1.0, [1.0, [2.0]], (0.5, 0.5)), r"shifts\[1\] must be"),
        ((1.0, (0.0, 1.0), (1.0,)), "weights must be 2 numbers"),
        ((1.0, (0.0, 1.0), (0.5, 0.6)), "weights must be probabilities"),
        ((1.0, (0.0, 1.0), (1.5, -0.5)), r"weights\[1\] must be"),
        ((1e-300, (0.0, 1.0), (0.5, 0.5)), "shifts must be at most"),
    ],
)
def test_wrong_arguments_are_refused(arguments, words):
    with pytest.raises(ParameterError, match=words):
        MixtureOfGaussians(*arguments)


@pytest.mark.parametrize("mu", [20.0, 80.0, 1000.0])
def test_hardly_any_noise_tells_all_shifts_apart(mu):
    # The profile is that of the shifts themselves: 0, mu and -mu with these chances.
    pair = MixturePair(side([0.0, mu], [0.9, 0.1]), side([0.0, mu], [0.8, 0.2]))
    e = np.array([0.0, 0.05, 0.1, 0.2, 1.0])
    exact = 0.1 + np.maximum(0.9 - np.exp(e) * 0.8, 0.0)
    assert np.allclose(MixturePairLoss(pair).profile(e), exact, rtol=1e-6, atol=0.0)


def test_a_gaussian_profile_far_below_epsilon_0_is_1():
    for mu in (0.5, 1.0, 3.0, 100.0):
        assert np.array_equal(GaussianLoss(mu).profile(np.array([-1e300, -1e6, -1e4])), np.ones(3))
