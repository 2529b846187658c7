"""Upper bounds on the epsilon of one composition at many deltas, by few engines.

An engine is a method that bounds delta at epsilons near one that it was made for.  `certify` proves
each epsilon from both sides with engines of its own.  Half of that work is the lower end, which a
grid of thousands of epsilons does not need; here one engine serves many neighbouring deltas.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from accountant.composition.closed_form import closed_form
from accountant.composition.composition import (
    Composition,
    Neighbourhood,
    ignore_overflow,
    neighbourhood_at,
)
from accountant.composition.engine import DeltaBounds, delta_bounds_near
from accountant.composition.engines import ENGINES_NEAR_EPSILON
from accountant.numerics.rounding import ULP
from accountant.numerics.search import falling_root


@ignore_overflow
def upper_epsilons(
    composition: Composition, deltas: Sequence[float], width: float
) -> list[float | None]:
    """Return upper bounds at each of ``deltas``, positive and descending.

    They are about ``width`` loose, relative to epsilon.  Bounds on delta are made near the middle
    delta, and again wherever those are too wide.  Where the new ones are too wide as well the
    answer is None.
    """
    if (loss := composition.single_loss) is not None:
        return [closed_form(loss, delta).upper for delta in deltas]
    if composition.max_loss == 0 or not composition.items:
        return [0.0 if delta > composition.infinity else math.inf for delta in deltas]
    # What remains of each delta for finite losses, also descending.  The mass at infinity is
    # rounded up first; deltas below it come last, and have an infinite epsilon.
    finite_deltas = [delta - composition.infinity * (1 + 8 * ULP) for delta in deltas]
    logs = [math.log(finite_delta) for finite_delta in finite_deltas if finite_delta > 0]
    bounds = BoundsNearDelta(composition, logs[len(logs) // 2], width) if logs else None
    uppers: list[float | None] = []
    for log in logs:
        upper = None if bounds is None else bounds.epsilon(log)
        if upper is None:
            bounds = BoundsNearDelta(composition, log, width)
            upper = bounds.epsilon(log)
        uppers.append(upper)
    return uppers + [math.inf] * (len(deltas) - len(logs))


class BoundsNearDelta:
    """Bounds on delta that were made for one delta, and epsilons at other deltas by them."""

    def __init__(self, composition: Composition, log_delta: float, width: float) -> None:
        self._max_loss, self._target_log_delta = composition.max_loss, log_delta
        self._width = width
        estimate = composition.rough_epsilon(log_delta)
        neighbourhood = neighbourhood_at(composition, log_delta, width, estimate)
        self._tilt, self._start = neighbourhood.tilt, max(neighbourhood.epsilon, 0.0)
        neighbourhood = Neighbourhood(composition, neighbourhood.tilt, self._start, width)
        # the first bounds that are narrow enough, else those with the least upper bound
        self._bounds: DeltaBounds | None = None
        least_high = math.inf
        for bounds in delta_bounds_near(neighbourhood, ENGINES_NEAR_EPSILON):
            low, high = bounds.bounds(self._start)  # ln of delta
            if self._bounds is None or high < least_high:
                self._bounds, least_high = bounds, high
            # ln delta has the slope -tilt: this is about the relative width of epsilon
            if high - low <= width * self._tilt * self._start:
                break

    def epsilon(self, log_delta: float) -> float | None:
        """Return an upper bound on epsilon at this delta; None where the bounds are too wide."""
        bounds = self._bounds
        if bounds is None:
            return self._max_loss
        upper, _ = falling_root(
            lambda epsilon: bounds.bounds(epsilon)[1] - log_delta,
            start=self._start + (self._target_log_delta - log_delta) / self._tilt,
            tilt=self._tilt,
            max_epsilon=self._max_loss,
        )
        low, high = bounds.bounds(upper)
        is_narrow = high - low <= 2 * self._width * self._tilt * upper
        if is_narrow or upper in {0.0, self._max_loss}:
            return min(upper, self._max_loss)
        return None
