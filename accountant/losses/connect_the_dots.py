"""Finite pairs above and below a profile that is known at finitely many points.

A profile is delta as a function of epsilon, of the privacy loss ln(P/Q) of a pair of distributions.
It is convex in x = e^epsilon, and 1 - x at least.  Straight lines between its points give a profile
above it (Doroshenko, Ghazi, Kamath, Kumar & Manurangsi 2022, Algorithm 1).  The same lines, lowered
by the greatest gap of a neighbouring cell between line and profile, give a profile below it.
Either is the profile of a pair whose loss takes the points as values.  A pair whose profile is
above that of another stays above it in a composition.  The pairs are plain arrays here; `finite.py`
makes losses of them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from accountant.losses.loss_numerics import LossNumerics
from accountant.losses.mgf import Profiled
from accountant.numerics import Array
from accountant.numerics.rounding import ACCURACY

# `lower_hull` begins with at most 30 passes, each over all points at once in numpy; only then it
# goes from point to point, which is slower.
HULL_PASSES = 30
Profile = Callable[[Array], Array]


class FinitePair(NamedTuple):
    """A pair of distributions by its loss: values, their masses under P, the mass at infinity."""

    loss: Array
    mass: Array
    infinity: float


class Discretisable(Profiled, Protocol):
    """The part of a loss that a discretisation reads."""

    @property
    def numerics(self) -> LossNumerics:
        """The number of points of a discretisation, among others."""
        ...

    @property
    def reversed(self) -> Discretisable:
        """The loss of (Q, P)."""
        ...

    def profile_any_epsilon(self, epsilon: Array) -> Array:
        """Return the privacy profile at any real epsilon."""
        ...


def pair_above(profile: Profile, points: Array, last_value: float | None = None) -> FinitePair:
    """Return a pair whose profile is above ``profile``; ``points`` are increasing epsilons.

    ``last_value`` is the profile's value at the last of them, where that is known exactly.  It is
    not raised: the difference would be missing in the moments of the finite losses.
    """
    values = np.clip(profile(points), 0.0, 1.0) * (1 + ACCURACY)
    values[-1] = values[-1] if last_value is None else last_value
    values = np.minimum.accumulate(values)
    x_less_1, is_apart = _x_less_1(points)
    points, values = points[is_apart], np.append(1.0, np.minimum(values[is_apart], 1.0))
    corners = lower_hull(x_less_1, values)
    return _pair_on_hull(points, x_less_1, values, corners, float(values[-1]))


def pair_below(profile: Profile, infinity: float, points: Array) -> FinitePair:
    """Return a pair whose profile is below ``profile``, which tends to ``infinity``."""
    # At x = 0 every profile is 1 and falls with a slope of -1 at most, so that is a point, too.
    x_less_1, is_apart = _x_less_1(points)
    points = points[is_apart]
    values = np.append(1.0, np.clip(profile(points), 0.0, 1.0))
    widths = np.diff(x_less_1)
    slope = np.concatenate([[-1.0], np.diff(values) / widths, [0.0]])
    # In a cell the convex curve lies above the chords of its two neighbours, prolonged: the gap
    # to its own chord is greatest where those meet.  With the width w of the cell, and the changes
    # l and r of the slope at its two ends, this gap is w l r / (l + r).
    changes = np.maximum(np.diff(slope), 0.0)
    left_change, right_change = changes[:-1], changes[1:]
    gap = widths * left_change * right_change / np.maximum(left_change + right_change, 1e-300)
    # Each point is lowered by the greater gap of its two cells.
    lowered = values - np.maximum(np.append(0.0, gap), np.append(gap, 0.0))
    # Each value has a relative error of `ACCURACY`, and so has each of the three in a gap.
    lowered[1:] -= 4 * ACCURACY * values[1:]
    # Beyond the points the curve is only known to be at least `infinity`.  A cell that has a gap
    # and ends there is lowered to `infinity` as a whole.
    reached = lowered <= infinity
    reached[-1] = True
    first_reached = max(int(np.argmax(reached)), 1)
    lowered[first_reached - int(gap[first_reached - 1] > 0) :] = infinity
    return _pair_on_hull(points, x_less_1, lowered, lower_hull(x_less_1, lowered), infinity)


def discretise(loss: Discretisable, tail: float, *, upper: bool) -> FinitePair:
    """Return a finite pair above or below a loss; at most ``tail`` of its mass is moved."""
    # Half of the points lie where the loss mostly is (its total variation is about 0.4 deviations),
    # and half everywhere: the tail of a composition may depend on the large losses.
    # So ``size`` is about the standard deviation of the loss.
    size = max(2.5 * float(loss.profile(0.0)), 1e-12)
    high, low = _truncation_point(loss, tail, size), _truncation_point(loss.reversed, tail, size)
    # Of size sinh(t) at even t: evenly spaced up to about ``size``, then by growing steps.
    ends = np.arcsinh(np.array([-low, high]) / size)
    half = loss.numerics.discretisation_points // 2
    central_points = size * np.sinh(np.linspace(ends[0], ends[1], half))
    # An end that stood twice, an ulp apart, would leave a cell whose slope is round-off.
    points = np.concatenate([central_points[1:-1], np.linspace(-low, high, half), [0.0]])
    points = np.unique(points)
    if upper:
        # At the largest loss the profile is exactly `infinity`; round-off is ignored.
        infinity = loss.infinity if high >= loss.max_loss else None
        return pair_above(loss.profile_any_epsilon, points, infinity)
    return pair_below(loss.profile_any_epsilon, loss.infinity, points)


@functools.lru_cache(maxsize=64)
def pair_above_all(loss: Discretisable) -> FinitePair:
    """Return a finite pair above a bounded loss, with points up to its largest value."""
    return discretise(loss, 0.0, upper=True)


def _truncation_point(loss: Discretisable, tail: float, size: float) -> float:
    """Return an epsilon at which the profile is within ``tail`` of its limit, or the largest loss.

    It is sought on three rows of ten epsilons, each row between two neighbours on the one before.
    ``size`` is about the standard deviation of the loss.
    """
    if loss.max_loss < 1e-9 * size:
        return max(loss.max_loss, 1e-9 * size)
    low, high = min(1e-3 * size, loss.max_loss / 2), min(loss.max_loss, 700.0)
    for _ in range(3):
        row = np.geomspace(low, high, 10)
        far = int(np.argmax(loss.profile(row) - loss.infinity <= tail))
        if far == 0:  # at once, or never
            break
        low, high = float(row[far - 1]), float(row[far])
    return high


def lower_hull(x: Array, y: Array) -> NDArray[np.intp]:
    """Return the indices of the points on the lower convex hull, for increasing x.

    The method is Andrew's monotone chain: it adds points from the left, and drops the last corner
    as long as that lies above the line from the corner before it to the new point.
    """
    candidates = np.arange(x.size)
    # A point above the line between its neighbours is no corner.
    for _ in range(HULL_PASSES):
        with np.errstate(over="ignore", invalid="ignore"):  # infinite slopes have no bend: NaN
            bend = np.diff(np.diff(y[candidates]) / np.diff(x[candidates]))
        if np.all(bend >= 0):
            return candidates
        candidates = candidates[np.concatenate([[True], ~(bend < 0), [True]])]
    xs, ys, hull = x[candidates].tolist(), y[candidates].tolist(), [0]
    for i in range(1, len(xs)):
        while len(hull) > 1:
            a, b = hull[-2], hull[-1]
            if (ys[b] - ys[a]) * (xs[i] - xs[b]) < (ys[i] - ys[b]) * (xs[b] - xs[a]):
                break
            hull.pop()
        hull.append(i)
    return candidates[hull]


def _x_less_1(points: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Return ``x - 1 = e^epsilon - 1`` at x = 0 and at the points where it differs, and which.

    Near epsilon 0 points are dense, and this has the digits of their differences, which x loses.
    Where x is below 1e-16, all points count as x = 0, whose profile is 1 to that accuracy.
    """
    x_less_1 = np.append(-1.0, np.expm1(points))
    is_apart = np.diff(x_less_1) > 0
    return x_less_1[np.append(True, is_apart)], is_apart


def _pair_on_hull(
    points: Array, x_less_1: Array, values: Array, corners: NDArray[np.intp], infinity: float
) -> FinitePair:
    """Return the pair whose profile is linear in x between these corners."""
    # beyond the last corner the profile is flat
    slopes = np.diff(values[corners]) / np.diff(x_less_1[corners])
    # The mass of Q at a corner is the change of slope there; that of P is x times it.
    mass = np.exp(points[corners[1:] - 1]) * np.diff(np.append(slopes, 0.0))
    has_mass = mass > 0
    return FinitePair(points[corners[1:] - 1][has_mass], mass[has_mass], infinity)
