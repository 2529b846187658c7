"""Thresholds and peaks: every answer was evaluated, or is the end that the caller vouches for."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from accountant.numerics import Array
from accountant.numerics.rounding import ULP


def smallest_root(decreasing: Callable[[Array], Array], target: float, high: float) -> float:
    """Smallest ``x`` in ``[0, high]`` that was seen to satisfy ``decreasing(x) <= target``.

    The returned point is always one at which the inequality was evaluated and held, so the
    answer errs upwards, by one float at most.  Returns infinity when ``high`` does not satisfy it.
    ``high = inf`` is searched by doubling up to 1e300.
    """
    if float(decreasing(np.zeros(1))[0]) <= target:
        return 0.0
    low = 0.0
    if math.isinf(high):
        ladder = 2.0 ** np.arange(-40, 996)
        for block in np.split(ladder, range(80, ladder.size, 80)):
            holds = decreasing(block) <= target
            if holds.any():
                first = int(np.argmax(holds))
                low = float(block[first - 1]) if first else low
                high = float(block[first])
                break
            low = float(block[-1])
        else:
            return math.inf
    elif not float(decreasing(np.array([high]))[0]) <= target:
        return math.inf
    # Each sweep looks at 62 points between the ends, so nine sweeps exhaust a double.
    while True:
        inner = np.linspace(low, high, 64)[1:-1]
        inner = inner[(inner > low) & (inner < high)]
        if inner.size == 0:
            return high
        holds = decreasing(inner) <= target
        first = int(np.argmax(holds)) if holds.any() else inner.size
        low = float(inner[first - 1]) if first else low
        high = float(inner[first]) if first < inner.size else high
        if high - low <= ULP * high:
            return high


def minimum_of_one_valley(f: Callable[[Array], Array]) -> float:
    """Least value seen of a function of ``a > 0`` with one valley, by zooming in on it."""
    low, high, best = math.log(1e-6), math.log(1e9), math.inf
    for points in (121, 41, 41, 41, 41):
        grid = np.linspace(low, high, points)
        with np.errstate(invalid="ignore", over="ignore"):
            value = f(np.exp(grid))
        value = np.where(np.isnan(value), np.inf, value)
        at = int(np.argmin(value))
        best = min(best, float(value[at]))
        step = (high - low) / (points - 1)
        low, high = grid[at] - step, grid[at] + step
    return best
