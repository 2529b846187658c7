"""Law: no sample of a pair diverges more than its Rényi curve allows.

The part is a pair of few outcomes, of which the bounds are given the Rényi curve alone; the truth
is a sum over the outcomes.
"""

import itertools
from dataclasses import dataclass

import mpmath
import numpy as np
import pytest

from accountant import ApproxLoss, GaussianLoss, PoissonSampled, ZCDPLoss
from accountant.amplification import sampled_renyi
from tests.laws.test_repeated import pairs

ORDERS = np.array([1.05, 1.5, 2.0, 2.4, 3.0, 5.5, 9.0, 30.0])
RATES = (0.001, 0.05, 0.4, 0.97)
CACHES = (
    sampled_renyi._log_moments,
    sampled_renyi._log_excess_of_sample,
    sampled_renyi._log_excess_of_subset,
)


@dataclass(frozen=True)
class Curve:
    """A part that says nothing but the Rényi curves of its pair."""

    p: tuple[float, ...]
    q: tuple[float, ...]

    def renyi(self, order):
        """Return the divergences of the pair."""
        return divergences(np.array(self.p), np.array(self.q), np.asarray(order, dtype=float))

    @property
    def reversed(self):
        """The pair the other way round."""
        return Curve(self.q, self.p)


def divergences(p, q, order):
    # E r^a - 1 = E [r^a - 1 - a (r - 1)], in which nothing cancels
    a, ratio = order[..., None], np.log(p / q)
    with np.errstate(over="ignore"):
        excess = (q * (np.expm1(a * ratio) - a * np.expm1(ratio))).sum(axis=-1)
    return np.log1p(excess) / (order - 1)


def cycles(seed, number):
    """Laws on three outcomes, of which most have one that is rare."""
    rng = np.random.default_rng(seed)
    for _ in range(number):
        p = np.maximum(rng.dirichlet(np.full(3, 10 ** rng.uniform(-1, 1))), 1e-6)
        yield p / p.sum()


def diverges_as_a_subset(p, q, rate, rests):
    """Whether a subset with either record diverges more than the bound, for one of the rests."""
    bound = sampled_renyi.subset_divergence(Curve(tuple(p), tuple(q)), rate, ORDERS)
    for rest in rests:
        both = [(1 - rate) * rest + rate * one for one in (p, q)]
        for one, other in (both, both[::-1]):
            if np.any(divergences(one, other, ORDERS) > bound * (1 + 1e-9)):
                return True
    return False


def violation(seed: int = 1, number: int = 12) -> str:
    """A sample that diverges more than the bound says."""
    for cached in CACHES:
        cached.cache_clear()
    try:
        for (p, q), rate in itertools.product(pairs(seed, number), RATES):
            part, mixed = Curve(tuple(p), tuple(q)), (1 - rate) * q + rate * p
            for added, one, other in ((False, mixed, q), (True, q, mixed)):
                bound = sampled_renyi.sampled_divergence(part, rate, ORDERS, added=added)
                if np.any(divergences(one, other, ORDERS) > bound * (1 + 1e-9)):
                    return f"Poisson at {rate} of {p} against {q}, added {added}"
            # the subset without either record is like one of those with it, or between them
            if diverges_as_a_subset(p, q, rate, (p, q, (p + q) / 2)):
                return f"a share of {rate} of {p} against {q}"
        for p, rate in itertools.product(cycles(seed, number), RATES):
            # or like a third law, which is as far from each of them
            if diverges_as_a_subset(p, np.roll(p, 1), rate, (np.roll(p, 2),)):
                return f"a share of {rate} of {p}, turned"
    finally:
        for cached in CACHES:
            cached.cache_clear()
    return ""


def test_no_sample_diverges_more_than_the_bound():
    assert violation() == ""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 5))
def test_no_sample_of_many_pairs_diverges_more_than_the_bound(seed):
    assert violation(seed, 150) == ""


def test_whole_orders_of_the_record_present_are_exact():
    (p, q), *_ = pairs(3, 1)
    whole = np.array([2.0, 3.0, 7.0])
    bound = sampled_renyi.sampled_divergence(Curve(tuple(p), tuple(q)), 0.3, whole, added=False)
    # the curve of both directions is above that of one: a symmetric pair has one curve
    assert np.all(bound >= divergences(0.7 * q + 0.3 * p, q, whole) * (1 - 1e-12))
    p, q = np.array([0.7, 0.3]), np.array([0.3, 0.7])
    bound = sampled_renyi.sampled_divergence(Curve((0.7, 0.3), (0.3, 0.7)), 0.3, whole, added=False)
    assert bound == pytest.approx(divergences(0.7 * q + 0.3 * p, q, whole), rel=1e-11)


@pytest.mark.parametrize("rate", [0.01, 0.5])
def test_outcomes_that_one_side_never_has_are_not_left_out(rate):
    # the pair (Q, sample) has them at a finite loss: a curve of the rest says nothing of them
    clear, orders = ApproxLoss(0.1, 0.2), np.array([2.0, 3.0, 50.0])
    both = PoissonSampled(ZCDPLoss(1e-6) + clear, rate).reversed
    assert np.all(both.renyi(orders) >= PoissonSampled(clear, rate).reversed.renyi(orders))
    assert not sampled_renyi.is_known_by_its_curve(ZCDPLoss(1e-6) + clear)
    assert sampled_renyi.is_known_by_its_curve(ZCDPLoss(1e-6) + GaussianLoss(0.1))


@pytest.mark.parametrize(
    ("mu", "rate", "order"), [(1e-140, 0.5, 2), (1e-140, 0.1, 3), (1.0, 0.1, 3)]
)
def test_a_tiny_divergence_is_rounded_up_for_its_large_logarithm(mu, rate, order):
    bound = sampled_renyi.sampled_divergence(
        GaussianLoss(mu), rate, np.array([float(order)]), added=False
    )
    with mpmath.workdps(40):
        q, half_square = mpmath.mpf(rate), mpmath.mpf(mu) ** 2 / 2
        excess = sum(
            mpmath.binomial(order, k) * (1 - q) ** (order - k) * q**k
            * mpmath.expm1(k * (k - 1) * half_square)
            for k in range(2, order + 1)
        )  # fmt: skip
        truth = mpmath.log1p(excess) / (order - 1)
        assert truth <= bound[0] <= truth * (1 + 1e-11)
