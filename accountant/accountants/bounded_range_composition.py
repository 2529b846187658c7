"""Optimal composition of exponential mechanisms: releases of bounded range.

A release of range e0 is a pair with log-ratios t and t - e0 for some t in [0, e0], of masses
p_t = (1 - e^{t - e0}) / (1 - e^{-e0}) and 1 - p_t.  If all t must be chosen in advance the worst
choice is one t for all; if each may follow the answers so far, the worst strategy gains more.

References: Dong, Durfee & Rogers (2020), Theorem 2 (non-adaptive) and section 5 (adaptive).
"""

from __future__ import annotations

import functools
import math

import numpy as np

from accountant.numerics import Array
from accountant.numerics.logspace import log1mexp
from accountant.numerics.rounding import ULP, round_up
from accountant.numerics.search import falling_root

MAX_ADAPTIVE_RELEASES = 300
CELLS_PER_RANGE = 16  # of a range in the recursion: its answer is two thousandths too large


def nonadaptive_epsilon(e0: float, count: int, delta: float) -> float:
    """Return the least epsilon of ``count`` releases of range ``e0``, all chosen in advance."""
    top = round_up(count * e0)

    def excess(epsilon: float) -> float:
        found = _nonadaptive_delta(e0, count, epsilon)
        return math.log(found) - math.log(delta) if found > 0 else -math.inf

    return min(top, falling_root(excess, top / 4, 1.0, top)[0])


def _nonadaptive_delta(e0: float, count: int, epsilon: float) -> float:
    from scipy.special import gammaln

    # the greatest is attained at some t = (epsilon + (i + 1) e0) / (count + 1), or at an end
    low = np.arange(count + 1.0)
    t = np.unique(np.clip((epsilon + (low + 1) * e0) / (count + 1), 0.0, e0))
    with np.errstate(divide="ignore", invalid="ignore"):
        log_p = log1mexp(np.minimum(t - e0, 0.0)) - math.log(-math.expm1(-e0))
        log_rest = t + log1mexp(-t) - e0 - math.log(-math.expm1(-e0))
        ways = gammaln(count + 1.0) - gammaln(low + 1) - gammaln(count - low + 1)
        high = np.where(low < count, (count - low) * log_p[:, None], 0.0)
        size = ways + high + np.where(low > 0, low * log_rest[:, None], 0.0)
        loss = count * t[:, None] - low * e0
        sticks = np.exp(size) * -np.expm1(np.minimum(epsilon - loss, 0.0))
    error = 1 + 16 * ULP * (count * (1 + e0) + float(gammaln(count + 1.0)))
    return float(np.max(np.sum(sticks, axis=1))) * error


def adaptive_epsilon(e0: float, count: int, delta: float) -> float:
    """Return the least epsilon of ``count`` releases of range ``e0``, chosen adaptively."""
    epsilon, value = _adaptive_profile(e0, count)
    first = int(np.argmax((value <= delta) & (epsilon >= 0)))
    if not value[first] <= delta:
        return round_up(count * e0)
    if epsilon[first] <= 0:
        return 0.0
    # on the line between two points, linear in e^epsilon
    share = (value[first - 1] - delta) / (value[first - 1] - value[first])
    inside = float(epsilon[first - 1]) + math.log1p(share * math.expm1(e0 / CELLS_PER_RANGE))
    return min(round_up(inside, 64), round_up(count * e0))


def adaptive_delta(e0: float, count: int, epsilon: float) -> float:
    """Return the least delta of ``count`` releases of range ``e0``, chosen adaptively."""
    if epsilon >= count * e0:
        return 0.0
    points, value = _adaptive_profile(e0, count)
    # a chord in e^epsilon is above the profile
    return round_up(float(np.interp(math.exp(epsilon), np.exp(points), value)), 64)


@functools.lru_cache(maxsize=256)
def _adaptive_profile(e0: float, count: int) -> tuple[Array, Array]:
    """Return epsilons on a grid, and upper bounds on delta there.

    The profile is convex in x = e^epsilon, so that straight lines between points are above it.
    """
    step, reach = e0 / CELLS_PER_RANGE, count * CELLS_PER_RANGE
    # beyond 14 deviations (at most e0 / 2 each) the mass is negligible
    half = min(reach, math.ceil(7 * CELLS_PER_RANGE * math.sqrt(count)) + 2 * CELLS_PER_RANGE)
    epsilon: Array = step * np.arange(-half, half + 1, dtype=float)
    value: Array = np.maximum(-np.expm1(epsilon), 0.0)
    for _ in range(count):
        value = _bellman_step(value, e0)
    return epsilon, value


def _bellman_step(value: Array, e0: float) -> Array:
    """Return ``sup_t p_t V(e - t) + (1 - p_t) V(e - t + e0)`` on the same grid, rounded up."""
    c, size = math.exp(-e0), value.size
    # V is at most 1 below the grid and at most its last value above
    wide = np.concatenate(
        [np.ones(CELLS_PER_RANGE + 1), value, np.full(CELLS_PER_RANGE, value[-1])]
    )
    worst = np.zeros(size)
    for i in range(CELLS_PER_RANGE):
        # s = e^{-t} between e^{-(i+1) h} and e^{-ih}: both V(e - t) and V(e - t + e0) are lines
        low, high = math.exp(-(i + 1) * e0 / CELLS_PER_RANGE), math.exp(-i * e0 / CELLS_PER_RANGE)
        start = CELLS_PER_RANGE - i
        near = wide[start : start + size + 1]
        beyond = wide[start + CELLS_PER_RANGE : start + CELLS_PER_RANGE + size + 1]
        slope = (near[1:] - near[:-1]) / (high - low)
        slope_up = (beyond[1:] - beyond[:-1]) / (high - low)
        level, level_up = near[1:] - slope * high, beyond[1:] - slope_up * high
        # (1 - c) times the value: a + b s + d / s, concave
        a = level - c * level_up + c * (slope_up - slope)
        b, d = slope - c * slope_up, c * (level_up - level)
        with np.errstate(divide="ignore", invalid="ignore"):
            best = np.sqrt(np.where((b < 0) & (d < 0), d / b, 1.0))
        for s in (np.clip(best, low, high), low, high):
            np.maximum(worst, a + b * s + d / s, out=worst)
    return np.minimum(worst / (1 - c) * (1 + 1e-13), 1.0)
