"""Pure losses against Kairouz, Oh & Viswanath in 50 digits; mass at infinity."""

import math

import mpmath
import pytest

from accountant import PLD, RDP, ZCDP, Advanced, ApproxLoss, Basic, GaussianLoss, PureLoss, Tight


def exact_delta(count, e0, epsilon):
    """Kairouz-Oh-Viswanath in 50 digits."""
    with mpmath.workdps(50):
        e0, eps, total = mpmath.mpf(e0), mpmath.mpf(epsilon), mpmath.mpf(0)
        for heads in range(count + 1):
            gap = mpmath.e ** ((2 * heads - count) * e0) - mpmath.e**eps
            if gap > 0:
                tails = mpmath.e ** ((count - heads) * e0) / (1 + mpmath.e**e0) ** count
                total += mpmath.binomial(count, heads) * tails * gap
        return total


@pytest.mark.parametrize(
    ("count", "e0", "delta"),
    [(1, 1e-8, 5e-16), (2, 1e-12, 5e-17), (1000, 1e-12, 1e-12), (3, 1e-5, 1e-7), (50, 1e-3, 1e-9)],
)
def test_small_losses_are_not_cancelled_away(count, e0, delta):
    for accountant in (Basic(), Advanced(), ZCDP(), RDP(), PLD(), Tight()):
        epsilon = accountant.epsilon(count * PureLoss(e0), delta)
        if math.isfinite(epsilon):
            assert exact_delta(count, e0, epsilon) <= delta * (1 + 1e-12)
        asked = count * e0 / 3
        truth = exact_delta(count, e0, asked)
        assert accountant.delta(count * PureLoss(e0), asked) >= truth * (1 - 1e-12)


@pytest.mark.parametrize(
    ("count", "e0", "delta"),
    [(27, 16.66667479393745, 1.170849653571051e-15), (10, 6.006456319552699, 1e-13)],
)
def test_the_binomial_is_not_an_ulp_too_small(count, e0, delta):
    epsilon = Advanced().epsilon(count * PureLoss(e0), delta)
    assert exact_delta(count, e0, epsilon) <= delta * (1 + mpmath.mpf(10) ** -12)


def test_mass_at_infinity_is_taken_off_with_its_round_off():
    # 100 x (.1, 1e-8) at a delta a hair above its mass: 6.954603823679
    assert Advanced().epsilon(100 * ApproxLoss(0.1, 1e-8), 1.0000001e-6) >= 6.954603823679


def test_advanced_is_never_above_basic():
    for plan in (PureLoss(0.1) + PureLoss(0.2), 3 * PureLoss(2.0), 2 * GaussianLoss(1.0)):
        assert Advanced().epsilon(plan, 1e-6) <= Basic().epsilon(plan, 1e-6)
    mixed = 100 * PureLoss(0.01) + 100 * PureLoss(0.011)
    assert Advanced().epsilon(mixed, 1e-6) < Basic().epsilon(mixed, 1e-6) / 2
    # The sum over the binomial would leave 1e-18 at the sum of all epsilons.
    for count, e0, total in ((10, 0.1, 1.0), (3, 0.1, 0.3)):
        assert Basic().delta(count * PureLoss(e0), total) == 0
        assert Advanced().delta(count * PureLoss(e0), total) == 0


def test_advanced_handles_a_million_releases():
    assert 0.7 < Advanced().epsilon(10**6 * PureLoss(1e-3), 1e-6) < 6.0
