"""The saddle point through which a contour runs, and the aliasing error of its sum."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from accountant.composition.cgf import PlanCGF, log_chernoff
from accountant.numerics import Array
from accountant.numerics.search import minimum_of_one_valley

RELATIVE_ERROR = 1e-14  # what the aliases and the truncation may each add to delta, relatively


# from the contour to the real parts of its Chernoff bounds: dense where a cumulant may end
OCTAVES_AWAY = np.array([0.05, 0.12, 0.25, 0.4, 0.6, 0.85, 1.15, 1.5, 2.0, 2.7, 3.6, 5.0, 7.0])
LADDER = 2.0 ** np.concatenate([-OCTAVES_AWAY, OCTAVES_AWAY])
LEFT, RIGHT = slice(0, OCTAVES_AWAY.size), slice(OCTAVES_AWAY.size, LADDER.size)
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

    if near and log_delta is not None:
        found = _vertex(chernoff, math.log(0.02 / near), math.log(1e3 / near))
        if found is not None:
            return found
    return minimum_of_one_valley(height, 1e-7, 1e12, (20, 13, 9, 9))[0]


def _vertex(height: Callable[[Array], Array], low: float, high: float) -> float | None:
    """Return about where ``height`` is least: the vertex of a parabola; None where at an end.

    Where it is infinite from some point on, the least may be beside it: the ends then move down.
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


class AliasingBound:
    """The aliasing error of a sum with nodes ``2 pi / period`` apart and real part ``a``."""

    # A trapezoid sum adds e^{aTj} delta(e + Tj) for every j != 0, T the period. By Chernoff,
    # delta(x) <= e^{K(b) - bx} c_b with c_b = b^b / (1+b)^{1+b}: for j > 0 take b > a, for
    # j < 0 take b < a, and sum the geometric series.

    def __init__(
        self,
        a: float,
        b: Array,
        chernoff: Array,
        height: float,
        epsilon: float,
        accuracy: float = RELATIVE_ERROR,
    ) -> None:
        good = np.isfinite(chernoff)
        self._b, self._chernoff, self._a = b[good], chernoff[good], a
        period = _periods(a, self._b, self._chernoff, height, epsilon, accuracy)
        sides = period[self._b < a], period[self._b > a]
        self.period = max(float(np.min(side, initial=np.inf)) for side in sides)

    @classmethod
    def at(
        cls, cgf: PlanCGF, a: float, epsilon: float, accuracy: float = RELATIVE_ERROR
    ) -> tuple[AliasingBound, float, float]:
        """Return the bound, and ``K(a)`` with its round-off."""
        # apart from those of other orders, whose rule may be too long for it
        value, error = cgf.value_at(np.array([a]))
        height, b = float(value[0]), a * LADDER
        if cgf.has_short_sums:
            # a rough cumulant tells where the exact one is worth its price
            period = cls._rough(cgf, a, epsilon, accuracy)[1]
            b = b[np.concatenate([_three_around(period, LEFT), _three_around(period, RIGHT)])]
        found = cls(a, b, cgf.log_chernoff(b), height, epsilon, accuracy)
        if not math.isfinite(found.period) and cgf.has_short_sums:
            b = a * LADDER
            found = cls(a, b, cgf.log_chernoff(b), height, epsilon, accuracy)
        return found, height, float(error[0])

    @classmethod
    def estimated(
        cls, cgf: PlanCGF, a: float, epsilon: float, accuracy: float
    ) -> tuple[AliasingBound, float, float]:
        """Return the same with an estimated period and no bound, where that is quicker."""
        if not cgf.has_short_sums:
            return cls.at(cgf, a, epsilon, accuracy)
        found, _ = cls._rough(cgf, a, epsilon, accuracy)
        found._b = found._chernoff = found._b[:0]
        value, error = cgf.value_at(np.array([a]))
        return found, float(value[0]), float(error[0])

    @classmethod
    def _rough(
        cls, cgf: PlanCGF, a: float, epsilon: float, accuracy: float
    ) -> tuple[AliasingBound, Array]:
        """Return an estimate, and the periods that each order of the ladder calls for."""
        rough, b = cgf.rough_at(np.append(a * LADDER, a)), a * LADDER
        chernoff, height = log_chernoff(rough[:-1], b), float(rough[-1])
        period = _periods(a, b, chernoff, height, epsilon, accuracy)
        return cls(a, b, chernoff, height, epsilon, accuracy), period

    def log_bound(self, epsilon: float) -> float:
        """Return the logarithm of a bound on all aliases at ``epsilon``."""
        return float(np.logaddexp(*(np.min(c - b * epsilon, initial=np.inf) for b, c in self._ends)))

    @functools.cached_property
    def _ends(self) -> list[tuple[Array, Array]]:
        """The orders of each side, and the logarithms of their series at an epsilon of 0."""
        away = np.abs(self._b - self._a) * self.period
        size = self._chernoff - away - np.log(-np.expm1(-away))
        return [(self._b[some], size[some]) for some in (self._b < self._a, self._b > self._a)]


def _periods(
    a: float, b: Array, chernoff: Array, height: float, epsilon: float, accuracy: float
) -> Array:
    """Return the periods at which the bound at each order ``b`` is small enough."""
    target = height - a * epsilon - math.log(20 * a * (a + 1)) + math.log(accuracy)
    period: Array = np.logaddexp(0.0, chernoff - b * epsilon - target) / np.abs(b - a)
    return period


def _three_around(period: Array, side: slice) -> NDArray[np.intp]:
    """Return the place of the least period of one side, and those beside it."""
    some = np.where(np.isfinite(period[side]), period[side], np.inf)
    at = min(max(int(np.argmin(some)), 1), some.size - 2)
    return np.arange(at - 1, at + 2) + side.start


def log_interval(low: float, high: float, scale: float) -> tuple[float, float]:
    """Return ``ln low + scale`` and ``ln high + scale``; (-inf, inf) where one is not a number."""
    if not (math.isfinite(scale) and math.isfinite(high)) or high < 0:
        return -math.inf, math.inf
    return log_or_minus_infinity(low) + scale, log_or_minus_infinity(high) + scale


def log_or_minus_infinity(x: float) -> float:
    """Return ``ln x``; minus infinity where a bound is not positive."""
    return math.log(x) if x > 0 else -math.inf
