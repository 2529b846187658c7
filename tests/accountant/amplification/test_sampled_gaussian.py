"""Sampled Gaussians: moments against 30 digits, answers against nested quadrature."""

import mpmath
import numpy as np
import pytest

from accountant import PLD, GaussianLoss, PoissonSampled, Tight, UnsupportedPlan
from accountant.amplification.sampled_gaussian import sampled_gaussian_cgf
from accountant.amplification.sampled_gaussian.rules_to_cut import (
    STRIP,
    cut_curve,
    max_points,
    places_to_cut,
)
from accountant.amplification.sampled_gaussian.sampled_gaussian_cgf import SampledGaussian
from accountant.amplification.sampled_gaussian.sampled_gaussian_lines import (
    real_line,
    tilted_range,
)
from accountant.amplification.sampled_gaussian.sampled_gaussian_moments import (
    log_moment_ratio,
    log_moments,
)
from accountant.amplification.sampled_gaussian.sampled_gaussian_tail import (
    TruncatedSampledGaussian,
    TruncatedSampledGaussians,
    least_return,
    output_of,
)
from accountant.numerics.logspace import log_mixture, log_mixture_at

GREATEST_OUTPUT, POINTS = 32, 1600


def moment(mu, rate, s, cut=None):
    """Return E_Q r^s by a trapezoid rule in 30 digits, or Gauss-Legendre up to a cut."""
    with mpmath.workdps(30):
        mu, rate = mpmath.mpf(mu), mpmath.mpf(rate)

        def f(x):
            return mpmath.npdf(x) * (1 - rate + rate * mpmath.exp(mu * x - mu * mu / 2)) ** s

        if cut is not None:
            # far out n r^s is below 10^-30 of the whole at the powers asked for
            last = mpmath.mpf(min(cut, 25))
            panels = max(40, int(2 * (last + 14)))
            edges = [last - k * mpmath.mpf(1) / 2 for k in range(panels, -1, -1)]
            return mpmath.quad(f, edges, maxdegree=3)
        step = mpmath.mpf(2 * GREATEST_OUTPUT) / POINTS
        return step * mpmath.fsum(f(step * k - GREATEST_OUTPUT) for k in range(POINTS + 1))


@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize(("mu", "rate"), [(1.0, 0.01), (5.0, 0.2), (10.0, 0.3), (0.02, 1e-6)])
def test_cumulants_are_within_their_error(mu, rate, added):
    for z in (1e-3 + 0j, 0.7 + 0j, 0.7 + 0.5j):
        value, error = SampledGaussian(mu, rate, added).cgf(np.array([z]))
        with mpmath.workdps(30):
            truth = moment(mu, rate, -mpmath.mpmathify(z) if added else 1 + mpmath.mpmathify(z))
            # the logarithm is determined up to full turns
            missed = abs(mpmath.exp(mpmath.mpmathify(complex(value[0])) - mpmath.log(truth)) - 1)
        assert missed <= error[0] < 1e-6


def test_a_small_cumulant_has_its_own_digits():
    value, error = SampledGaussian(0.02, 1e-6, False).cgf(np.array([0.7]))
    assert error[0] < 1e-4 * value[0] < 1e-19


@pytest.mark.parametrize("added", [False, True])
def test_decay_is_bounded_for_all_higher_frequencies(added):
    sampled, a = SampledGaussian(1.25, 0.02, added), 1.5
    u = np.geomspace(1.0, 300.0, 12)
    true = sampled.cgf(a + 1j * u)[0].real - sampled.cgf(np.array([a]))[0]
    bound = sampled.log_cf_bound(a, u)
    assert np.all(np.diff(bound) <= 0)
    assert np.all(true <= bound + 1e-12)
    assert np.all(bound < 0.3 * true)


@pytest.mark.parametrize(
    ("mu", "rate", "cut"), [(1.25, 0.004, 3.0), (0.2, 1e-4, 6.0), (0.2, 1e-4, 60.0)]
)
def test_truncated_moments_are_within_their_error(mu, rate, cut):
    part = TruncatedSampledGaussian(mu, rate, cut, 10)
    # at real powers there is a rule of its own
    for z in (2.0, 2.0 + 0j, 40.0, 40.0 + 0j, 40.0 + 25j):
        value, error = part.cgf(np.array([z]))
        with mpmath.workdps(30):
            truth = moment(mu, rate, 1 + mpmath.mpmathify(z), cut)
            missed = abs(mpmath.exp(mpmath.mpmathify(complex(value[0])) - mpmath.log(truth)) - 1)
        assert missed <= error[0] < 1e-11


@pytest.mark.parametrize("rate", [1e-4, 0.1, 0.5, 0.9, 0.999, 1.0])
@pytest.mark.parametrize("mu", [0.05, 0.5, 1.0, 3.0])
def test_all_but_a_negligible_part_of_a_moment_is_between_the_ends(mu, rate):
    for power in (-100.0, -20.0, -5.0, -1.0, -0.3, 0.0, 0.5, 1.0, 5.0, 30.0):
        low, high = tilted_range(mu, rate, power)
        # the mode lies between 0 and mu times the power, and falls off as a normal density does
        x = np.linspace(min(power * mu, 0.0) - 15, max(power * mu, 0.0) + 15, 20_001)
        log_mass = power * log_mixture(mu * x - mu * mu / 2, rate) - x * x / 2
        mass = np.exp(log_mass - np.max(log_mass))
        assert np.sum(mass[(x < low) | (x > high)]) <= 1e-20 * np.sum(mass)
        if power <= 0:  # 9.5 deviations on both sides of the mode, and a part of its bracket
            assert high - low <= 19 + abs(power) * mu / 128 + 1e-9


def test_a_rule_ends_where_what_is_left_is_negligible():
    # the loss at this cut is 0.06: no power asked for makes up for e^-1800
    far = cut_curve(0.2, 1e-4, 60.0, 1.25, 41.0)
    assert 14 < float(np.max(far.x.real)) < 20
    near = cut_curve(1.25, 0.004, 3.0, 1.25, 41.0)
    assert 3.0 - 1e-12 < float(np.max(near.x.real)) <= 3.0


@pytest.mark.parametrize("mu", [1e-3, 0.2, 0.6])
@pytest.mark.parametrize("rate", [1e-6, 0.049])
@pytest.mark.parametrize("count", [2, 100, 10**6])
def test_what_others_give_back_is_close_to_chernoffs_bound(mu, rate, count):
    t = np.geomspace(1e-3, 1e4, 401) / (rate * mu * np.sqrt(count))
    value, _ = SampledGaussian(mu, rate, True).cgf(t)
    exact = np.nanmin(((count - 1) * value - np.log(1e-13)) / t)
    exact = min(exact, -(count - 1) * np.log1p(-rate))
    assert exact * (1 - 1e-3) <= least_return(((mu, rate, count),)) <= 1.5 * exact


def test_the_mixture_of_one_number_is_that_of_many():
    x = np.array([-800.0, -30.0, -1e-9, 0.0, 1e-9, 0.7, 40.0, 699.0, 701.0, 1e5])
    for weight in (1e-300, 1e-6, 0.3, 0.999, 1 - 1e-16, 1.0):
        alone = [log_mixture_at(float(one), weight) for one in x]
        np.testing.assert_allclose(alone, log_mixture(x, weight), rtol=1e-15)


def test_certain_violations_cost_more_than_epsilon_and_add_up():
    mu, rate, count, epsilon = 1.0, 0.01, 3, 1.2
    returned = least_return(((mu, rate, count),))
    cut = output_of(mu, rate, epsilon + returned)
    alone = SampledGaussian(mu, rate, False)
    loss = np.log1p(alone.rate * np.expm1(mu * cut - mu * mu / 2))
    assert loss >= epsilon + returned
    member = TruncatedSampledGaussian(mu, rate, cut, count)
    low, high = TruncatedSampledGaussians([member]).sure_delta(epsilon)
    with mpmath.workdps(30):
        one = moment(mu, rate, 1) - moment(mu, rate, 1, cut)
        none = 1 - moment(mu, rate, 0, cut)
        truth = 1 - (1 - one) ** count - mpmath.exp(epsilon) * (1 - (1 - none) ** count)
    assert low <= truth <= high
    assert high - low < 1e-11 * high


@pytest.mark.parametrize(
    ("plan", "delta", "truth"),
    [
        # two steps: 20 digits by nested quadrature over one release
        (2 * PoissonSampled(GaussianLoss(1 / 1.1), 0.004), 1e-6, 0.10446319285490143474),
        (2 * PoissonSampled(GaussianLoss(1.0), 0.01), 1e-5, 0.24546597607812107927),
        (2 * PoissonSampled(GaussianLoss(0.4), 9e-6), 1e-9, 0.000029610298567132583985),
        (2 * PoissonSampled(GaussianLoss(0.2), 0.1), 1e-8, 0.18207116784886051049),
    ],
    ids=range(4),
)
def test_two_steps_agree_with_nested_quadrature(plan, delta, truth):
    found = Tight(width=1e-9).certify(plan, delta)
    assert found.lower <= truth <= found.upper
    assert found.width < 1e-9 * truth


def test_three_rare_steps():
    # 13 digits by two nested Gauss-Legendre rules over two releases
    found = Tight(width=1e-9).certify(3 * PoissonSampled(GaussianLoss(1 / 0.8), 1e-4), 1e-8)
    assert found.lower <= 0.0201374768929 <= found.upper
    assert found.width < 1e-9 * found.upper


@pytest.mark.parametrize(
    ("rate", "scale", "steps", "delta"),
    [
        # a heavy tail: a great loss decides, and the saddle point alone is far too high
        (1.74e-6, 0.457, 92, 1.5e-7),
        (6.04e-5, 0.828, 4795, 4.2e-7),
        (3.69e-6, 4.98, 600_337, 4.6e-11),
        (0.000642, 4.65, 2024, 1.6e-11),
        # a great mu: the step of the quadrature follows it
        (0.23, 0.1, 73_483, 3.2e-11),
        (0.443, 0.206, 12_968, 3.5e-11),
    ],
)
def test_certificates_are_narrow(rate, scale, steps, delta):
    plan = steps * PoissonSampled(GaussianLoss(1 / scale), rate)
    found = Tight(width=1e-8).certify(plan, delta)
    assert 0 < found.width < 1e-8 * found.upper


@pytest.mark.slow
def test_no_upper_end_is_above_that_of_the_grid():
    rng, seen = np.random.default_rng(5), 0
    for _ in range(60):
        rate, scale = 10 ** rng.uniform(-4, 0), 10 ** rng.uniform(-0.5, 1)
        plan = int(10 ** rng.uniform(0.3, 5)) * PoissonSampled(GaussianLoss(1 / scale), rate)
        delta = 10 ** rng.uniform(-12, -3)
        try:
            low, high = PLD().bracket(plan, delta)
        except UnsupportedPlan:
            continue
        found, seen = Tight().certify(plan, delta), seen + 1
        assert low <= found.upper <= high * (1 + 1e-9)
        assert found.lower <= high
    assert seen > 30


def test_zero_where_total_variation_is_small():
    found = Tight().certify(3 * PoissonSampled(GaussianLoss(1 / 3.06), 5.9e-5), 1.5e-4)
    assert (found.lower, found.upper) == (0.0, 0.0)


@pytest.mark.parametrize("count", [10**9, 10**12])
def test_astronomical_counts_keep_their_digits(count):
    found = Tight().certify(count * PoissonSampled(GaussianLoss(0.01), 1e-4), 1e-6)
    assert found.width < (1e-8 if count < 10**10 else 1e-6) * found.upper


@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize(("mu", "rate"), [(0.1, 0.01), (1.0, 1e-4), (3.0, 0.2), (8.0, 0.5)])
def test_powers_that_share_a_rule_have_the_values_of_their_own(mu, rate, added):
    sampled = SampledGaussian(mu, rate, added)
    a = np.geomspace(1e-3, 300, 40)
    together, error = sampled.cgf(a)
    for i, one in enumerate(a):
        alone, own = sampled.cgf(np.array([one]))
        assert together[i] == alone[0] or abs(together[i] - alone[0]) <= error[i] + own[0]


def test_powers_of_a_short_rule_are_summed_at_once(monkeypatch):
    sums = []

    def counted(line, s):
        sums.append(s.size)
        return log_moments(line, s)

    monkeypatch.setattr(sampled_gaussian_cgf, "log_moments", counted)
    SampledGaussian(0.5, 0.01, False).cgf(np.geomspace(0.1, 200, 30))
    assert sums == [30]


def test_many_steps_at_a_rate_of_a_hundred_thousandth():
    # a sum of 545 terms counted as if each were added to all before it
    plan = 39_930 * PoissonSampled(GaussianLoss(1.2071840545542916), 1.2121317445962677e-05)
    found = Tight().certify(plan, 3.239e-10)
    assert found.width <= 1e-7 * found.upper


@pytest.mark.parametrize("mu", [1e-4, 0.3, 4.0])
def test_an_output_for_a_loss_has_at_least_that_loss(mu):
    with mpmath.workdps(50):
        for rate in (1e-6, 0.3, 1.0):
            for loss in (1e-9, 0.1, 3.0, 800.0):
                x = mpmath.mpf(output_of(mu, rate, loss))
                ratio = mpmath.exp(mu * x - mpmath.mpf(mu) ** 2 / 2)
                assert mpmath.log1p(rate * (ratio - 1)) >= loss


@pytest.mark.parametrize(("cut", "height"), [(2.0, 1.0), (3.3, 0.77)])
def test_a_rule_has_no_more_points_than_are_counted_with(cut, height):
    # No mass is negligible at this power, so that the rule goes on to the last parameter.
    t, _, _ = places_to_cut(1.0, 0.5, cut, height, STRIP, power=1e6)
    assert len(t) == max_points(cut, height)


@pytest.mark.parametrize("missed", [0.2, 1.5])
def test_the_error_of_a_ratio_counts_that_of_its_divisor(missed):
    line = real_line(1.0, 0.1, 3.0)
    _, error = log_moment_ratio(line._replace(missed=missed), 3 + 1j * np.array([[0.0, 1e-4]]))
    # The moment at s may be larger, and that at Re s smaller; a divisor may not be 0.
    greatest = (1 + missed) / (1 - missed) - 1 if missed < 1 else np.inf
    assert greatest <= error[0, 1] <= 1.001 * greatest
