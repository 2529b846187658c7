"""Rényi curves of sampled Gaussians against binomial sums and sums of 40 digits."""

import math
import random

import mpmath
import numpy as np
import pytest

from accountant import GaussianLoss, PoissonSampled
from accountant.amplification.sampled_gaussian.sampled_gaussian_renyi import SampledGaussianRenyi

# noise, rate, order, whether the record was added, divergence: trapezoid sums of 40 digits
TRUTHS = [
    (0.05, 0.001, 1.5, False, 279.27673416305356),
    (0.05, 0.3, 1.000001, True, 0.35667494393873234),
    (0.07, 1e-06, 20.25, True, 1.0000004998618852e-06),
    (0.2, 0.01, 1.000001, False, 0.07162201438389962),
    (0.25, 0.5, 3.7, True, 0.6701246695744908),
    (1, 0.01, 1.001, False, 8.38980249926792e-05),
    (1, 0.01, 32.5, True, 0.0017103537460508992),
    (1, 0.99, 7.3, True, 2.5374426231539995),
    (4, 0.1, 250.75, False, 5.524134349930278),
    (50, 0.0001, 1.3, True, 2.6005198300314224e-12),
    (50, 0.7, 5000.5, False, 0.7031268193160426),
    (3, 1e-05, 12.345, False, 7.253956160941133e-11),
]


def divergence(noise, rate, order, added=False):
    plan = PoissonSampled(GaussianLoss(1 / noise), rate)
    return float((plan.reversed if added else plan).renyi(order))


def binomial_divergence(noise, rate, order):
    with mpmath.workdps(40):
        mu, q, a = mpmath.mpf(1 / noise), mpmath.mpf(rate), order
        total = mpmath.fsum(
            mpmath.binomial(a, k)
            * (1 - q) ** (a - k)
            * q**k
            * mpmath.exp((k * k - k) * mu * mu / 2)
            for k in range(a + 1)
        )
        return mpmath.log(total) / (a - 1)


@pytest.mark.parametrize("truth", TRUTHS, ids=str)
def test_fractional_orders_are_the_integral_rounded_up(truth):
    *setting, expected = truth
    assert expected * (1 - 4e-16) <= divergence(*setting) <= expected * (1 + 1e-10)


@pytest.mark.parametrize(("noise", "rate", "order"), [(10.0, 0.3, 2001), (20.0, 0.01, 6e4)])
def test_of_a_record_that_is_added_large_orders_are_the_integral_too(noise, rate, order):
    # E_Q r^{1 - order}, with r = 1 - q + q e^{mu x - mu^2 / 2} of a standard normal x
    with mpmath.workdps(30):
        mu, q, z = mpmath.mpf(1 / noise), mpmath.mpf(rate), mpmath.mpf(order) - 1

        def integrand(x):
            r = 1 - q + q * mpmath.exp(mu * x - mu * mu / 2)
            return mpmath.exp(-z * mpmath.log(r) - x * x / 2) / mpmath.sqrt(2 * mpmath.pi)

        moment = mpmath.fsum(integrand(mpmath.mpf(k) / 4) for k in range(-480, 160)) / 4
        truth = mpmath.log(moment) / z
    assert truth <= divergence(noise, rate, order, added=True) <= truth * (1 + 1e-10)


@pytest.mark.parametrize("noise", [0.05, 0.1, 0.25, 1.0, 10.0, 100.0])
def test_whole_orders_are_binomial_sums_rounded_up(noise):
    rng = random.Random(3)
    for order in (2, 3, 7, 40, 300):
        rate = 10 ** rng.uniform(-6, 0)
        truth = binomial_divergence(noise, rate, order)
        assert truth <= divergence(noise, rate, order) <= truth * (1 + 1e-10)


@pytest.mark.slow
def test_whole_orders_over_many_settings():
    rng = random.Random(4)
    for _ in range(400):
        noise, rate = 10 ** rng.uniform(math.log10(0.05), 2), 10 ** rng.uniform(-8, 0)
        order = round(10 ** rng.uniform(math.log10(2), 3))
        truth = binomial_divergence(noise, rate, order)
        assert truth <= divergence(noise, rate, order) <= truth * (1 + 1e-9)


@pytest.mark.parametrize("added", [False, True], ids=["remove", "add"])
def test_extreme_noise_has_a_curve_without_warnings(added):
    orders = np.array([1 + 1e-15, 1 + 1e-6, 1.5, 2, 10, 1e4, 1e8, 1e12])
    for noise in 10.0 ** np.array([-300, -155, -153.5, -100, -3, -1.4, -1.39, 0, 4, 100, 300]):
        for rate in (1e-100, 1e-6, 0.5, 1 - 2.0**-53, 1.0):
            plan = PoissonSampled(GaussianLoss(1 / noise), rate)
            curve = (plan.reversed if added else plan).renyi(orders)
            assert np.all(curve > 0)
            assert np.all(curve[1:] >= curve[:-1] * (1 - 1e-10) - 2e-285)
            if noise > 1e-140 or (added and rate < 1):
                assert np.all(np.isfinite(curve))
            if added and rate < 1:
                assert np.all(curve <= -math.log1p(-rate) * (1 + 1e-14))


def test_of_a_large_shift_it_is_the_gaussian_of_the_rate():
    # beyond the quadrature: D is about a mu^2 / 2 + a ln(q) / (a - 1)
    for mu in (25.0, 25.1, 30.0, 1e3, 1e100, 1e153):
        for order in (2.0, 3.5, 100.0):
            truth = order * (mu * (mu / 2)) + order * math.log(0.01) / (order - 1)
            found = float(SampledGaussianRenyi(mu, 0.01, False).divergence(np.array(order)))
            assert truth * (1 - 1e-15) <= found <= truth * (1 + 1e-12)


def test_a_large_shift_that_hardly_any_sample_has_still_costs():
    # 8.2558e-11 by a quadrature of 60 digits; q e^{(a - 1) mu^2 / 2} is below 1 - q here
    assert float(SampledGaussianRenyi(26.0, 1e-290, False).divergence(np.array(2.953))) > 8.25e-11


@pytest.mark.parametrize("share", [0.1, 1.0, 3.0, 30.0, 1e3])
def test_of_order_two_it_is_a_square_at_any_rate(share):
    mu, rate = 25.5, share * math.exp(-(25.5**2))
    found = float(SampledGaussianRenyi(mu, rate, False).divergence(np.array(2.0)))
    with mpmath.workdps(40):
        truth = mpmath.log1p(mpmath.mpf(rate) ** 2 * mpmath.expm1(mpmath.mpf(mu) ** 2))
    assert truth <= found <= 3 * truth + 9 * rate


def test_near_order_one_it_is_the_relative_entropy_on_both_sides_of_the_limit():
    # beyond mu = 25 the curve is a bound of its own: both must agree where they meet
    below, above = (
        float(SampledGaussianRenyi(mu, 1e-3, False).divergence(np.array(1 + 1e-6)))
        for mu in (25.0, np.nextafter(25.0, 26.0))
    )
    assert above == pytest.approx(below, rel=1e-10)


def test_what_is_too_small_for_a_float_is_not_zero():
    assert divergence(1e200, 1e-3, 2.0) == 1e-300
    assert divergence(1.0, 0.0, 2.0) == 0.0
