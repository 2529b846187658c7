"""Truncated Laplace noise against 60 digits."""

import math

import numpy as np
import pytest

from accountant import ApproxLoss, Tight
from mechanisms import TruncatedLaplace
from mechanisms.truncated_laplace import TruncatedLaplaceLoss


def truncated(shift, reach, epsilon):
    """delta in 60 digits, over every candidate cut."""
    import mpmath as mp

    with mp.workdps(60):
        shift, reach, epsilon = map(mp.mpf, (shift, reach, epsilon))
        d = 2 * (1 - mp.exp(-reach))

        def below(x):
            if abs(x) >= reach:
                return mp.mpf(int(x > 0))
            tail = mp.exp(-abs(x)) * (1 - mp.exp(abs(x) - reach)) / d
            return tail if x < 0 else 1 - tail

        middle = min(max((shift - epsilon) / 2, shift - reach), reach)
        cuts = [middle, shift - reach, reach]
        return float(max(below(x) - mp.exp(epsilon) * below(x - shift) for x in cuts))


def test_truncated_noise_is_never_claimed_to_cost_less():
    rng = np.random.default_rng(1)
    for _ in range(400):
        shift, reach = 10 ** rng.uniform(-6, 2), 10 ** rng.uniform(-1, 2.3)
        epsilon = shift * rng.uniform(0, 1.1)
        claimed, true = (
            float(TruncatedLaplaceLoss(shift, reach).profile(epsilon)),
            truncated(shift, reach, epsilon),
        )
        assert true <= claimed <= true * (1 + 1e-9) + 3e-14
    made = TruncatedLaplace(1.0, 40.0, 30.0)
    for delta in (1e-3, 1e-4):
        assert truncated(30.0, 40.0, Tight().epsilon(made, delta)) <= delta * (1 + 1e-12)


def test_outcomes_that_cannot_be_are_never_called_pure():
    made = TruncatedLaplace(1.0, 746.0, 1.0)
    assert made.loss.pure == math.inf
    assert made.loss.infinity > 0
    assert TruncatedLaplaceLoss(1000.0, 600.0).profile(800.0) == 1.0
    assert TruncatedLaplaceLoss(800.0, 1000.0).infinity == pytest.approx(math.exp(-200) / 2)
    # that of Laplace noise, less what the mass of the finite losses lacks to 1
    assert 0.366 < TruncatedLaplace(1.0, 11.0).loss.rho < math.exp(-1)


def test_truncated_laplace_meets_its_formula():
    # Geng, Ding, Guo & Kumar (2020), Definition 1: bound (D / eps) ln(1 + (e^eps - 1) / (2 delta))
    epsilon, delta = 0.8, 1e-4
    made = TruncatedLaplace(1 / epsilon, math.log1p(math.expm1(epsilon) / (2 * delta)))
    assert made.loss.infinity == pytest.approx(delta, rel=1e-9)
    assert made.loss.delta_at(epsilon) == pytest.approx(delta, rel=1e-9)
    assert made.loss.epsilon_at(delta * (1 + 1e-9)) == pytest.approx(epsilon, rel=1e-6)
    assert made.loss.epsilon_at(delta / 2) == math.inf
    assert np.abs(made.release(0.0, 1, 100_000)).max() < made.reach * made.scale


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.8, 0.2), (0.3, 0.3, 0.4)])
def test_truncated_vectors_cost_no_more_than_is_claimed(shares):
    made = TruncatedLaplace(1.0, 3.0, 1.0, len(shares))
    claim = made.loss
    rng = np.random.default_rng(1)
    value = np.array(shares)
    draws = made.release(value, rng, 400_000)
    with np.errstate(invalid="ignore"):
        ratio = made.log_density(draws, value) - made.log_density(draws, 0 * value)
    assert (ratio[np.isfinite(ratio)] <= claim.pure + 1e-12).all() or math.isinf(claim.pure)
    assert (ratio[np.isfinite(ratio)] <= 1.0 + 1e-12).all()
    lost = np.isposinf(ratio).mean()
    assert lost < claim.infinity + math.sqrt(math.log(1e9) / (2 * 400_000))
    # what is proved: the sum over coordinates of what each loses
    parts = sum(TruncatedLaplace(1.0, 3.0, s).loss.infinity for s in shares)
    assert parts <= claim.infinity


def test_a_loss_of_a_large_shift_or_reach_is_rounded_up():
    # Its exponents are rounded by more than the 4 and 16 units that were once allowed for.
    import mpmath as mp

    rng = np.random.default_rng(0)
    for _ in range(300):
        shift = float(10 ** rng.uniform(1, 3))
        reach = float(shift + 10 ** rng.uniform(1.7, 2.4))
        epsilon = shift * (1 - float(10 ** rng.uniform(-4, 0)))
        loss = TruncatedLaplaceLoss(shift, reach)
        true = truncated(shift, reach, epsilon)
        assert true <= loss.profile(epsilon) <= true + 1e-12
        with mp.workdps(60):
            edge = mp.exp(-mp.mpf(reach))
            mass = float((mp.exp(mp.mpf(shift)) * edge - edge) / (2 - 2 * edge))
        assert mass <= loss.infinity <= mass * (1 + 1e-12)


def test_a_shift_far_beyond_the_reach_has_a_delta():
    # The exponent of a part of probability 0 overflowed there, and the delta was not a number.
    assert TruncatedLaplaceLoss(2000.0, 1200.0).profile(1990.0) == 1.0


@pytest.mark.parametrize("dimension", [1, 2, 3, 10])
def test_the_loss_of_vectors_alone_is_an_upper_bound(dimension):
    made = TruncatedLaplace(1.0, 11.0, dimension=dimension)
    is_vector = dimension > 1
    assert made.loss_is_upper_bound == is_vector
    assert made.value_axes == is_vector
    assert isinstance(made.loss, ApproxLoss if is_vector else TruncatedLaplaceLoss)
    alone = TruncatedLaplace(1.0, 11.0).loss
    for epsilon in (0.0, 0.5, 1.0, 2.0):
        assert made.loss.profile(epsilon) >= alone.profile(epsilon) * (1 - 1e-12)
