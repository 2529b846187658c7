"""The saddle point through which a contour runs."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from accountant.composition.cgf import PlanCGF
from accountant.numerics import Array
from accountant.numerics.search import minimum_of_one_valley

LOWER_ENDS = 6.0  # by which the logarithm of the least order moves down


def saddlepoint(
    cgf: PlanCGF,
    *,
    log_delta: float | None = None,
    epsilon: float = 0.0,
    near: float | None = None,
    flattest: bool = False,
) -> float:
    """Return the contour's real part, flattest for a wanted delta or epsilon: the saddle point.

    ``near`` is about the epsilon where delta has its value, and makes the search shorter.  The
    answer is then about Chernoff's order, or the ``flattest`` one, which is less where epsilon is
    small: with less round-off, or with fewer nodes where few releases have a transform that
    decays slowly.
    """

    def height(a: Array) -> Array:
        # ln of the integrand at u = 0, or the epsilon at which it equals delta
        log_value = cgf.upper_at(a) - np.log(a) - np.log1p(a)
        value = (log_value - log_delta) / a if log_delta is not None else log_value - a * epsilon
        return np.where(np.isfinite(value), value, np.inf)

    def chernoff(a: Array) -> Array:
        # about Chernoff's bound on epsilon: the integrand is some 1 / a wide
        width = np.log(a) if flattest else 1.0
        value = (cgf.rough_at(a) - np.log1p(a) - width - (log_delta or 0.0)) / a
        return np.where(np.isfinite(value), value, np.inf)

    if near and math.isfinite(near) and log_delta is not None:
        order = _vertex(chernoff, math.log(0.02 / near), math.log(1e3 / near))
        if order is not None:
            return order
    return minimum_of_one_valley(height, 1e-7, 1e12, (20, 13, 9, 9))[0]


def _vertex(height: Callable[[Array], Array], low: float, high: float) -> float | None:
    """Return about where ``height`` is least: the vertex of a parabola; None where at an end.

    Where it is infinite from some point on, the least value may be next to that point: the ends
    then move down.
    """
    for points in (20, 7):
        grid = np.linspace(low, high, points)
        value = height(np.exp(grid))
        at = int(np.argmin(value))
        if at == 0 and not math.isfinite(value[1]):
            low, high = low - LOWER_ENDS, low + grid[1] - grid[0]
            grid = np.linspace(low, high, points)
            value = height(np.exp(grid))
            at = int(np.argmin(value))
        if not (0 < at < points - 1 and math.isfinite(value[at])):
            return None
        low, high = grid[at - 1], grid[at + 1]
    left, middle, right = value[at - 1 : at + 2]
    bend = left - 2 * middle + right
    away = (left - right) / (2 * bend) if 0 < bend < math.inf else 0.0
    return math.exp(grid[at] + away * (grid[1] - grid[0]))


def log_interval(low: float, high: float, scale: float) -> tuple[float, float]:
    """Return ``ln low + scale`` and ``ln high + scale``; (-inf, inf) where one is not a number."""
    if not (math.isfinite(scale) and math.isfinite(high)) or high < 0:
        return -math.inf, math.inf
    return log_or_minus_infinity(low) + scale, log_or_minus_infinity(high) + scale


def log_or_minus_infinity(x: float) -> float:
    """Return ``ln x``; minus infinity where a bound is not positive."""
    return math.log(x) if x > 0 else -math.inf
