"""Samples with nearly no noise: the interval beyond floats, beside other roads to it."""

import itertools
import math

import mpmath
import numpy as np
import pytest

from accountant import GaussianLoss, MixtureOfGaussians, PoissonSampled, Tight
from accountant.amplification.known_samples import interval_of


@pytest.mark.parametrize(
    ("count", "noise", "rate", "delta", "width"),
    [
        (3, 0.01, 0.1, 1e-6, 1e-10),
        (2, 0.01, 0.1, 1e-6, 1e-10),
        (5, 0.02, 0.5, 1e-6, 1e-10),
        (3, 0.01, 0.9, 1e-12, 1e-10),
        (19, 0.01, 0.1, 0.3, 5e-2),
        (3, 0.03, 1e-4, 1e-6, 3e-3),
        (1000, 0.01, 0.01, 1e-6, 1e-2),
    ],
)
def test_samples_of_nearly_no_noise_are_narrow(count, noise, rate, delta, width):
    plan = count * PoissonSampled(GaussianLoss(1 / noise), rate)
    found = Tight().certify(plan, delta)
    assert found.engine == "known samples"
    assert 0 < found.width <= width * found.upper
    # the other road: the pair that is told how many samples hold the record
    j = np.arange(count + 1.0)
    if count < 20:
        weights = [
            math.comb(count, k) * rate**k * (1 - rate) ** (count - k) for k in range(count + 1)
        ]
        told = Tight().bracket(
            MixtureOfGaussians(1.0, tuple(np.sqrt(j) / noise), tuple(weights)), delta
        )
        assert found.lower <= told[1]
        assert found.upper == pytest.approx(told[1], rel=1e-8)


def test_it_holds_what_contours_prove():
    rng = np.random.default_rng(3)
    for _ in range(12):
        count, rate = int(rng.integers(2, 30)), float(10 ** rng.uniform(-4, -0.05))
        noise, delta = float(rng.uniform(0.15, 1.0)), float(10 ** rng.uniform(-9, -1))
        lower, upper = Tight(1e-4).bracket(
            count * PoissonSampled(GaussianLoss(1 / noise), rate), delta
        )
        known = interval_of(1 / noise, rate, count, delta)
        assert known.lower <= upper
        assert known.upper >= lower


@pytest.mark.parametrize(("mu", "rate", "delta"), [(60.0, 0.2, 1e-3), (45.0, 0.02, 0.01)])
def test_two_samples_by_a_double_integral(mu, rate, delta):
    """P(A) - e^epsilon Q(A) of the best event on a grid of outcomes, in 40 digits."""
    found = interval_of(mu, rate, 2, delta)
    with mpmath.workdps(40):
        m, q = mpmath.mpf(mu), mpmath.mpf(rate)
        # masses of cells of the line under N(0, 1) and N(mu, 1); the sum over pairs of cells
        edges = [mpmath.mpf(x) for x in np.linspace(-9, mu + 9, 80)]
        off = [mpmath.ncdf(b) - mpmath.ncdf(a) if a < 0 else mpmath.ncdf(-a) - mpmath.ncdf(-b)
               for a, b in itertools.pairwise(edges)]  # fmt: skip
        on = [mpmath.ncdf(b - m) - mpmath.ncdf(a - m) for a, b in itertools.pairwise(edges)]
        mixed = [(1 - q) * a + q * b for a, b in zip(off, on, strict=True)]
        # a coarser view of the outcome shows less: its epsilon is a lower bound of the truth
        pairs = itertools.product(range(len(off)), repeat=2)
        cells = [(mixed[a] * mixed[b], off[a] * off[b]) for a, b in pairs]
        cells.sort(key=lambda cell: cell[0] / cell[1], reverse=True)
        best, p, null = mpmath.mpf(0), mpmath.mpf(0), mpmath.mpf(0)
        for mass, other in cells:
            p, null = p + mass, null + other
            if p > delta:
                best = max(best, mpmath.log((p - delta) / null))
        coarse = float(best)
    assert coarse <= found.upper
    assert found.lower >= coarse * (1 - 0.02)


@pytest.mark.parametrize("mu", [1e7, 1e9])
def test_nothing_is_said_where_round_off_decides(mu):
    found = interval_of(mu, 0.1, 1000, 1e-6)
    assert found.lower == 0.0
    assert found.upper == math.inf
