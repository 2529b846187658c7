"""The recursion of adaptive exponential mechanisms: near the answer as on the whole grid."""

import itertools
import math
import random

import mpmath
import numpy as np
import pytest

from accountant import Advanced, BoundedRangeLoss
from accountant.accountants import bounded_range_composition as recursion
from accountant.accountants.bounded_range_composition import (
    CELLS_PER_RANGE,
    _BellmanStep,
    adaptive_delta,
    adaptive_epsilon,
)


def slow_profile(e0, count):
    """The same recursion point by point, cell by cell, on one wide grid."""
    cells, step, c = CELLS_PER_RANGE, e0 / CELLS_PER_RANGE, math.exp(-e0)
    half = count * cells
    epsilon = step * np.arange(-half, half + 1)
    value = np.maximum(-np.expm1(epsilon), 0.0)
    for _ in range(count):
        below = 1 - np.exp(epsilon[0] - step * np.arange(cells + 1, 0, -1))
        wide = np.concatenate([below, value, np.zeros(cells)])
        best = np.zeros(value.size)
        for t in np.linspace(0, e0, 8 * cells + 1):
            p = (1 - math.exp(t - e0)) / (1 - c)
            at = (cells + 1 + np.arange(value.size)) - t / step
            places = np.exp(step * np.arange(wide.size))
            now = np.interp(np.exp(step * at), places, wide)
            later = np.interp(np.exp(step * (at + cells)), places, wide)
            best = np.maximum(best, p * now + (1 - p) * later)
        value = best
    return epsilon, value


@pytest.mark.parametrize(("e0", "count"), [(0.5, 3), (0.1, 6)])
def test_the_recursion_is_the_supremum_over_t(e0, count):
    epsilon, value = slow_profile(e0, count)
    points, found = recursion._adaptive_profile(e0, count)
    same = np.interp(points, epsilon, value)
    inside = (points >= 0) & (same > 1e-4)
    assert (found[inside] >= same[inside] * (1 - 1e-9)).all()
    assert found[inside] == pytest.approx(same[inside], rel=1e-3)


@pytest.mark.parametrize(("e0", "count"), [(0.3, 24), (0.05, 40), (0.002, 30)])
@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-12])
def test_fewer_cells_give_the_same(e0, count, delta):
    near = recursion._profile_near(e0, count, delta)
    found = adaptive_epsilon(e0, count, delta)
    points, value = recursion._adaptive_profile(e0, count)
    if found > 0:
        assert adaptive_delta(e0, count, found) == pytest.approx(delta, rel=1e-7)
    if near is not None:
        common = np.isin(np.round(points / e0 * CELLS_PER_RANGE),
                         np.round(near[0] / e0 * CELLS_PER_RANGE))  # fmt: skip
        assert near[0].size < points.size
        assert (near[1] >= value[common] * (1 - 1e-9)).all()  # never below: a bound


def test_the_windows_are_used_where_releases_are_many():
    assert recursion._profile_near(0.1, 60, 1e-6) is not None
    assert recursion._profile_near(0.1, 3, 1e-6) is None  # the answer may lie at an end


def test_values_stay_as_they_were():
    # by the recursion on the whole grid, at 96e0463
    known = {(0.1195, 70): 2.252538570847, (0.0733, 186): 2.255754398979}
    for (e0, count), epsilon in known.items():
        found = Advanced().epsilon(count * BoundedRangeLoss(e0), 1e-6)
        assert found == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize(("e0", "seed"), [(3e-4, 1), (0.05, 2), (1.0, 3), (6.0, 4)])
def test_a_step_of_the_recursion_is_never_below_the_supremum(e0, seed):
    """Against all t on a fine grid, with the same chords of V, in 50 digits."""
    rng = random.Random(seed)
    with mpmath.workdps(50):
        h, c = mpmath.mpf(e0) / CELLS_PER_RANGE, mpmath.exp(-mpmath.mpf(e0))
        grid = [h * k for k in range(-2 * CELLS_PER_RANGE, 4 * CELLS_PER_RANGE)]
        # sums of hockey sticks, which are convex in e^epsilon
        sticks = [(e0 * rng.uniform(-2, 6), 10 ** rng.uniform(-12, 0)) for _ in range(6)]
        exact = [sum(w * max(0, 1 - mpmath.exp(e - t)) for t, w in sticks) for e in grid]
        wide = np.array([float(value / exact[0]) for value in exact])
        found = _BellmanStep(e0)(wide)
        values = [mpmath.mpf(value) for value in wide.tolist()]

        def chord(cell, y):
            share = mpmath.expm1(-y) / mpmath.expm1(-h)
            return values[cell] + share * (values[cell - 1] - values[cell])

        for place in rng.sample(range(len(found)), 12):
            greatest = mpmath.mpf(0)
            for i, q in itertools.product(range(CELLS_PER_RANGE), range(9)):
                y = h * q / 8
                over, cell = mpmath.exp(i * h + y) * c, place + CELLS_PER_RANGE + 1 - i
                value = (1 - over) * chord(cell, y)
                value += (over - c) * chord(cell + CELLS_PER_RANGE, y)
                greatest = max(greatest, value / (1 - c))
            assert min(greatest, 1) <= mpmath.mpf(float(found[place])) <= greatest * 1.001


def exact_delta_in_advance(e0, count, epsilon):
    """Dong, Durfee & Rogers (2020), Theorem 2, in 60 digits."""
    with mpmath.workdps(60):
        e0, epsilon, greatest = mpmath.mpf(e0), mpmath.mpf(epsilon), mpmath.mpf(0)
        for i in range(count + 1):
            t = min((epsilon + (i + 1) * e0) / (count + 1), e0)
            p, delta = mpmath.expm1(t - e0) / mpmath.expm1(-e0), mpmath.mpf(0)
            for low in range(count + 1):
                loss = count * t - low * e0
                if loss > epsilon:
                    mass = mpmath.binomial(count, low) * p ** (count - low) * (1 - p) ** low
                    delta -= mass * mpmath.expm1(epsilon - loss)
            greatest = max(greatest, delta)
        return greatest


@pytest.mark.parametrize(
    ("e0", "count", "delta"),
    [
        (0.004799672178501929, 10, 1.1847368497858174e-250),
        (3.805867400147084, 5, 7.342174296496141e-115),
        (0.5, 3, 1e-6),
    ],
)
def test_epsilon_in_advance_is_rounded_up_near_the_largest_loss(e0, count, delta):
    epsilon = recursion.nonadaptive_epsilon(e0, count, delta)
    assert exact_delta_in_advance(e0, count, epsilon) <= delta
