"""The aliasing error of a trapezoid sum along a contour, and the node distance that bounds it.

Delta at epsilon e is an integral of e^{K(z) - z e} / (z (z + 1)) along the contour z = a + iu; here
K(z) = ln E e^{zL} is the cumulant of the summed loss L.  A trapezoid sum with nodes 2 pi / T apart
adds to it weighted copies of delta at epsilons shifted by multiples of T, the aliases.  Chernoff's
bound on delta bounds them, and tells how long the period T must be.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import NDArray

from accountant.composition.cgf import PlanCGF, log_chernoff
from accountant.numerics import Array

RELATIVE_ERROR = 1e-14  # relative to delta: what aliases and truncation may each add, roughly
# Chernoff's bounds are taken at real parts that are this many octaves (factors of 2) below and
# above the contour's; they are dense near the contour, as a cumulant may become infinite soon above
# it.
OCTAVES_AWAY = np.array([0.05, 0.12, 0.25, 0.4, 0.6, 0.85, 1.15, 1.5, 2.0, 2.7, 3.6, 5.0, 7.0])
LADDER = 2.0 ** np.concatenate([-OCTAVES_AWAY, OCTAVES_AWAY])
LEFT, RIGHT = slice(0, OCTAVES_AWAY.size), slice(OCTAVES_AWAY.size, LADDER.size)


class AliasingBound:
    """A bound on the aliases of a sum with nodes ``2 pi / period`` apart and real part ``a``.

    ``chernoff`` are the ln(e^{K(b)} c_b) of Chernoff's bounds at the orders ``b``, on both sides of
    a.  Those that are not finite are left out; without any on one side the bound is infinite.
    """

    # A trapezoid sum adds e^{aTj} delta(e + Tj) for every j != 0, T the period. By Chernoff,
    # delta(x) <= e^{K(b) - bx} c_b with c_b = b^b / (1+b)^{1+b}: for j > 0 take b > a, for
    # j < 0 take b < a, and sum the geometric series.

    def __init__(self, a: float, b: Array, chernoff: Array, period: float) -> None:
        is_finite = np.isfinite(chernoff)
        self._a, self._b, self._chernoff = a, b[is_finite], chernoff[is_finite]
        self.period = period

    def log_bound(self, epsilon: float) -> float:
        """Return the logarithm of a bound on all aliases at ``epsilon``."""
        below, above = (
            np.min(log_series - b * epsilon, initial=np.inf) for b, log_series in self._sides
        )
        return float(np.logaddexp(below, above))

    @functools.cached_property
    def _sides(self) -> list[tuple[Array, Array]]:
        """The orders below and above ``a``, and the logarithms of their series at an epsilon of 0.

        The series is ``e^{K(b)} c_b sum_{j >= 1} e^{-j |b - a| T}``.
        """
        decay = np.abs(self._b - self._a) * self.period
        log_series = self._chernoff - decay - np.log(-np.expm1(-decay))
        return [
            (self._b[side], log_series[side]) for side in (self._b < self._a, self._b > self._a)
        ]


def aliasing_bound(cgf: PlanCGF, a: float, epsilon: float) -> tuple[AliasingBound, float, float]:
    """Return the bound, with a period chosen for ``epsilon``, ``K(a)`` and its round-off.

    The period is infinite where no order on one side has a finite bound.
    """
    # K(a) is computed alone, because with other orders its quadrature rule might be longer.
    cumulant, error = cgf.value_at(np.array([a]))
    height, height_error, b = float(cumulant[0]), float(error[0]), a * LADDER
    if cgf.has_short_sums:
        # A rough cumulant shows at which few orders the exact one must be evaluated.
        rough_chernoff = log_chernoff(cgf.rough_at(b), b)
        periods = _periods(a, b, rough_chernoff, height, epsilon)
        orders = b[np.concatenate([_three_around(periods, LEFT), _three_around(periods, RIGHT)])]
        chernoff = cgf.log_chernoff(orders)
        period = _longer(a, orders, _periods(a, orders, chernoff, height, epsilon))
        if math.isfinite(period):
            return AliasingBound(a, orders, chernoff, period), height, height_error
    chernoff = cgf.log_chernoff(b)
    period = _longer(a, b, _periods(a, b, chernoff, height, epsilon))
    return AliasingBound(a, b, chernoff, period), height, height_error


def _periods(a: float, b: Array, chernoff: Array, height: float, epsilon: float) -> Array:
    """Return the period at which the bound at each order ``b`` is small enough; ``height`` is K(a).

    Any period is valid: only `AliasingBound.log_bound` is added to the sum as its error.
    """
    # The target is ln of RELATIVE_ERROR times delta.  Delta is taken to be at least
    # e^{K(a) - a e} / (20 a (a + 1)); the saddle point method has 1 / sqrt(2 pi K''(a)) in place of
    # 1/20.  The series at b is e^{K(b) - b e} c_b / (e^{|b - a| T} - 1), and is solved for T.
    target = height - a * epsilon - math.log(20 * a * (a + 1)) + math.log(RELATIVE_ERROR)
    period = np.logaddexp(0.0, chernoff - b * epsilon - target) / np.abs(b - a)
    return np.where(np.isfinite(period), period, np.inf)


def _longer(a: float, b: Array, periods: Array) -> float:
    """Return the period that suffices on both sides: the longer of their shortest ones."""
    return max(float(np.min(periods[side], initial=np.inf)) for side in (b < a, b > a))


def _three_around(periods: Array, side: slice) -> NDArray[np.intp]:
    """Return the index of the shortest period of one side, and its two neighbours."""
    side_periods = periods[side]
    middle = min(max(int(np.argmin(side_periods)), 1), side_periods.size - 2)
    indices: NDArray[np.intp] = np.arange(middle - 1, middle + 2) + side.start
    return indices
