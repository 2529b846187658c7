"""The separation at which a bound is largest: any separation is valid, so none is missed."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from accountant.numerics import Array

_DEPTH = 170  # e^-170: below it the products of n, e^eps and 1 / p overflow
_GOLDEN = (math.sqrt(5) - 1) / 2


def maximise(value: Callable[[float], float], high: float) -> tuple[float, float]:
    """The largest value seen over ``(0, high]`` and where, of a function with one peak.

    What is returned was evaluated, so a second peak could make a bound weaker but never wrong.
    """
    steps = [high * math.exp(-step) for step in range(0, _DEPTH, 3)]
    seen = [(value(at), at) for at in steps]
    top = max(range(len(seen)), key=lambda i: seen[i][0])
    low, up = math.log(steps[min(top + 1, len(steps) - 1)]), math.log(steps[max(top - 1, 0)])
    found = seen[top]
    left, right = up - _GOLDEN * (up - low), low + _GOLDEN * (up - low)
    at_left, at_right = (value(min(math.exp(x), high)) for x in (left, right))
    for _ in range(40):
        found = max(found, (at_left, math.exp(left)), (at_right, min(math.exp(right), high)))
        if at_left >= at_right:
            up, right, at_right = right, left, at_left
            left = up - _GOLDEN * (up - low)
            at_left = value(min(math.exp(left), high))
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (up - low)
            at_right = value(min(math.exp(right), high))
    return found


def round_down(x: float) -> float:
    """A bound rounded down, past the rounding of its formula."""
    return max(0.0, x * (1 - 1e-11))


def integers_near(place: float, most: int) -> Array:
    """Whole numbers from 1 to ``most`` next to a place: what has one peak there is best at one."""
    middle = math.floor(min(place, float(most)))
    around: Array = np.clip(np.arange(middle - 1.0, middle + 3.0), 1.0, float(most))
    return around
