"""The cumulant ``K(z) = ln E e^{zS}`` of the summed loss S of a plan, and its saddle points.

K is a sum over the releases; losses of one family (one class of losses) are computed together.
Contour integrals for delta run along ``Re z = a``, where a is a saddle point of the integrand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from accountant.losses.loss import Loss, exact_cgf
from accountant.numerics import Array, Complex
from accountant.numerics.exponential_sums import cf_ratios_from_cgf
from accountant.numerics.rounding import ULP
from accountant.numerics.search import minimum_of_one_valley

# Above this count, a power of a factor is less exact than e to a sum of logarithms.
MAX_POWER_COUNT = 10**5
# A search for a saddle point with an estimate of epsilon: the values of order * epsilon that it
# begins with, from the least to the largest.  Where the saddle point is lower still, LOWER_ENDS is
# subtracted from the logarithm of the least one.  VERTEX_GRIDS are points of successive grids.
FIRST_ORDERS, LOWER_ENDS, VERTEX_GRIDS = (0.02, 1e3), 6.0, (20, 7)
# A search without an estimate: the least and the largest order, and points of successive grids.
ALL_ORDERS, GRIDS = (1e-7, 1e12), (20, 13, 9, 9)
# Losses with more terms than these use powers at any count, because logarithms would be slow.
CHEAP_TERMS = 16


class PlanCGF:
    """``K(z) = sum count ln E e^{zL}`` of losses with exact cumulants, all in one direction.

    ``smoothing`` is the square of the mu of a fictitious Gaussian release with them: its factor
    falls along a contour, which then has finitely many nodes whatever the losses are.
    """

    def __init__(self, items: Iterable[tuple[Loss, int]], smoothing: float = 0.0) -> None:
        families: dict[tuple[type[Loss], int], tuple[list[Loss], list[float]]] = {}
        for loss, count in items:
            # A class may have several kinds of cumulants, as sampled losses do.
            family = type(loss), id(loss.numerics.cgf)
            losses, counts = families.setdefault(family, ([], []))
            losses.append(loss)
            counts.append(count)
        self._families = [
            (cgf := exact_cgf(losses[0]), cgf.prepared(losses), np.array(counts))
            for losses, counts in families.values()
        ]
        self.smoothing = smoothing
        # whether `rough_at` is much quicker than `value_at`
        self.has_short_sums = all(
            cgf.has_short_sum(prepared_losses) for cgf, prepared_losses, _ in self._families
        )

    def with_smoothing(self, smoothing: float) -> PlanCGF:
        """Return the same cumulant with another smoothing."""
        smoothed = PlanCGF([], smoothing)
        smoothed._families = self._families
        smoothed.has_short_sums = self.has_short_sums
        return smoothed

    def upper_at(self, a: Array) -> Array:
        """Return ``K(a)`` at real ``a > 0``, rounded up; infinite or NaN where it overflows."""
        with np.errstate(over="ignore", invalid="ignore"):
            value, error = self.value_at(a)
            total: Array = value + error
            return total

    def rough_at(self, a: Array) -> Array:
        """Return about ``K(a)`` at real ``a > 0``: no bound follows from it."""
        total: Array = self.smoothing * (a * a + a) / 2
        for cgf, losses, counts in self._families:
            total = total + cgf.rough_cgf(losses, counts, a)
        return total

    def log_chernoff(self, a: Array) -> Array:
        """Return ``ln c`` at real ``a`` such that delta is at most ``c e^{-a epsilon}``."""
        return log_chernoff(self.upper_at(a), a)

    def value_at(self, z: Any) -> tuple[Any, Array]:
        """Return ``K(z)``, at real or complex ``z``, and a bound on its round-off."""
        total = self.smoothing * (z * z + z) / 2
        size = 4 * ULP * np.abs(total)
        for cgf, losses, counts in self._families:
            value, error = cgf.sum_cgf(losses, counts, z)
            total, size = total + value, size + error
        return total, size

    def cf_ratio(self, z: Complex) -> tuple[Complex, Array]:
        """Return ``e^{K(z) - K(a)}`` at a matrix of nodes, and its round-off.

        With C columns and the step h it is ``z[r, c] = a + ih (rC + c)``.
        """
        # The fictitious Gaussian's factor is e^{S (z^2 + z - a^2 - a) / 2}.  As the product of the
        # differences z - a and z - (-1 - a) it keeps its digits where a is large.
        exponent = self.smoothing * (z - z[0, 0]) * (z + (z[0, 0] + 1)) / 2
        product = np.exp(exponent)
        missed = 4 * ULP * np.abs(exponent) * np.abs(product)
        for cgf, losses, counts in self._families:
            if (
                np.max(counts) > MAX_POWER_COUNT
                and cgf.quadrature_terms(losses[0], 0.0) <= CHEAP_TERMS
            ):
                factor, error = cf_ratios_from_cgf(cgf.sum_cgf, losses, counts, z)
            else:
                factor, error = cgf.cf_ratios(losses, counts, z)
            # the error of a product; no factor is above 1
            missed = missed * np.minimum(np.abs(factor) + error, 1.0) + error * np.abs(product)
            product *= factor
        return product, missed

    def quadrature_terms(self, frequency: float) -> tuple[float, float]:
        """Return the exponentials of one node, up to ``frequency``: in all, and of one loss."""
        total = largest = 0.0
        for cgf, losses, _ in self._families:
            family_total, family_largest = cgf.sum_of_terms(losses, frequency)
            total, largest = total + family_total, max(largest, family_largest)
        return total, largest

    def log_cf_bound(self, a: float, u: Array) -> Array:
        """Return a bound on ``Re K(a + iv) - K(a)`` that holds for every ``v >= u``."""
        total = -self.smoothing * u * u / 2
        for cgf, losses, counts in self._families:
            total = total + cgf.log_cf_bounds(losses, counts, a, u)
        return np.minimum(total, 0.0)


def log_chernoff(cumulant: Array, a: Array) -> Array:
    """Return ``ln c`` such that delta is at most ``c e^{-a epsilon}``, from ``K(a)`` or more."""
    # The greatest (1 - e^{-y}) e^{-ay} is a^a / (1+a)^{1+a} (Canonne, Kamath & Steinke 2020).
    log_bound: Array = cumulant + a * np.log(a) - (1 + a) * np.log1p(a)
    return log_bound


def saddlepoint(
    cgf: PlanCGF,
    *,
    log_delta: float | None = None,
    epsilon: float = 0.0,
    near: float | None = None,
) -> float:
    """Return a saddle point: the real part a of the contour on which the integrand is flattest.

    It is that of a wanted delta, given by ``log_delta``, or else that of ``epsilon``.  ``near``
    estimates the epsilon of the wanted delta and makes the search shorter; without ``log_delta`` it
    is ignored.  With it the answer is roughly the order of the least Chernoff bound: larger than
    the saddle point where epsilon is small, and with less round-off.
    """

    def height(a: Array) -> Array:
        # The integrand at u = 0 is e^{K(a) - a epsilon} / (a (a + 1)).  The height is its
        # logarithm, or the epsilon at which it equals the wanted delta.
        log_value = cgf.upper_at(a) - np.log(a) - np.log1p(a)
        value = (log_value - log_delta) / a if log_delta is not None else log_value - a * epsilon
        return np.where(np.isfinite(value), value, np.inf)

    def chernoff(a: Array) -> Array:
        # Roughly Chernoff's bound on epsilon: of ln c_a = a ln a - (1 + a) ln(1 + a) remains -1 -
        # ln(1 + a), which is right for large a.
        value = (cgf.rough_at(a) - np.log1p(a) - 1 - (log_delta or 0.0)) / a
        return np.where(np.isfinite(value), value, np.inf)

    if near and math.isfinite(near) and log_delta is not None:
        low, high = (math.log(product / near) for product in FIRST_ORDERS)
        order = _vertex(chernoff, low, high)
        if order is not None:
            return order
    least_order, greatest_order = ALL_ORDERS
    order, _ = minimum_of_one_valley(height, low=least_order, high=greatest_order, points=GRIDS)
    return order


def _vertex(height: Callable[[Array], Array], low: float, high: float) -> float | None:
    """Return roughly where ``height`` is least, by the vertex of a parabola in ln of its argument.

    ``low`` and ``high`` are logarithms of the ends; None where the least value is at an end.  Where
    all but the lowest orders have infinite height, the search moves to lower orders once.
    """
    for points in VERTEX_GRIDS:
        grid = np.linspace(low, high, points)
        value = height(np.exp(grid))
        at = int(np.argmin(value))
        if at == 0 and not math.isfinite(value[1]):
            # the new range: from below the old least order up to the point beside it
            low, high = low - LOWER_ENDS, low + grid[1] - grid[0]
            grid = np.linspace(low, high, points)
            value = height(np.exp(grid))
            at = int(np.argmin(value))
        if not (0 < at < points - 1 and math.isfinite(value[at])):
            return None
        low, high = grid[at - 1], grid[at + 1]
    # The parabola through three points a step apart has its vertex so many steps from the middle.
    before, middle, after = value[at - 1 : at + 2]
    bend = before - 2 * middle + after
    away = (before - after) / (2 * bend) if 0 < bend < math.inf else 0.0
    return math.exp(grid[at] + away * (grid[1] - grid[0]))
