"""The saddle point through which a contour runs, and the aliasing error of its sum."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from accountant.composition.cgf import PlanCGF
from accountant.numerics import Array
from accountant.numerics.search import minimum_of_one_valley

RELATIVE_ERROR = 1e-14  # what the aliases and the truncation may each add to delta, relatively


# from the contour to the real parts of its Chernoff bounds: dense where a cumulant may end
OCTAVES_AWAY = np.array([0.05, 0.12, 0.25, 0.4, 0.6, 0.85, 1.15, 1.5, 2.0, 2.7, 3.6, 5.0, 7.0])


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
        found = _vertex(chernoff, math.log(0.02 / near), math.log(1e3 / near))
        if found is not None:
            return found
    return minimum_of_one_valley(height, 1e-7, 1e12, (20, 13, 9, 9))[0]


def _vertex(height: Callable[[Array], Array], low: float, high: float) -> float | None:
    """Return about where ``height`` is least: the vertex of a parabola; None where at an end."""
    for points in (10, 7, 7):
        grid = np.linspace(low, high, points)
        value = height(np.exp(grid))
        at = int(np.argmin(value))
        if not 0 < at < points - 1 or not np.isfinite(value[at - 1 : at + 2]).all():
            return None
        low, high = grid[at - 1], grid[at + 1]
    left, middle, right = value[at - 1 : at + 2]
    bend = left - 2 * middle + right
    away = (left - right) / (2 * bend) if bend > 0 else 0.0
    return math.exp(grid[at] + away * (grid[1] - grid[0]))


class AliasingBound:
    """The aliasing error of a sum with nodes ``2 pi / period`` apart and real part ``a``."""

    # A trapezoid sum adds e^{aTj} delta(e + Tj) for every j != 0, T the period. By Chernoff,
    # delta(x) <= e^{K(b) - bx} c_b with c_b = b^b / (1+b)^{1+b}: for j > 0 take b > a, for
    # j < 0 take b < a, and sum the geometric series.

    def __init__(
        self,
        cgf: PlanCGF,
        a: float,
        height: float,
        epsilon: float,
        accuracy: float = RELATIVE_ERROR,
    ) -> None:
        ladder = 2.0 ** np.concatenate([-OCTAVES_AWAY, OCTAVES_AWAY])
        b = a * ladder
        self._chernoff = cgf.log_chernoff(b)
        good = np.isfinite(self._chernoff)
        self._b, self._chernoff, self._a = b[good], self._chernoff[good], a
        target = height - a * epsilon - math.log(20 * a * (a + 1)) + math.log(accuracy)
        away = np.abs(self._b - a)
        period = np.logaddexp(0.0, self._chernoff - self._b * epsilon - target) / away
        sides = period[self._b < a], period[self._b > a]
        self.period = max(float(np.min(side, initial=np.inf)) for side in sides)

    def log_bound(self, epsilon: float) -> float:
        """Return the logarithm of a bound on all aliases at ``epsilon``."""
        away = np.abs(self._b - self._a) * self.period
        size = self._chernoff - self._b * epsilon - away - np.log(-np.expm1(-away))
        left, right = size[self._b < self._a], size[self._b > self._a]
        return float(np.logaddexp(np.min(left, initial=np.inf), np.min(right, initial=np.inf)))


def log_interval(low: float, high: float, scale: float) -> tuple[float, float]:
    """Return ``ln low + scale`` and ``ln high + scale``; (-inf, inf) where one is not a number."""
    if not (math.isfinite(scale) and math.isfinite(high)) or high < 0:
        return -math.inf, math.inf
    return log_or_minus_infinity(low) + scale, log_or_minus_infinity(high) + scale


def log_or_minus_infinity(x: float) -> float:
    """Return ``ln x``; minus infinity where a bound is not positive."""
    return math.log(x) if x > 0 else -math.inf
