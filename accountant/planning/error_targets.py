"""The largest noise scale with which an error target is met."""

from __future__ import annotations

from collections.abc import Callable

from accountant.domains import Interval
from accountant.numerics.search import greatest_float_that

RELATIVE_TOLERANCE = 1e-12


def largest_scale(
    error: Callable[[float], float], target: float, start: float, domain: Interval
) -> float | None:
    """Return the greatest scale seen with ``error(scale) <= target``; None where none meets it."""
    low = high = min(max(start, domain.low), domain.high)
    while error(low) > target:
        if low == domain.low:
            return None
        low, high = max(low / 8, domain.low), low
    # most errors are proportional to the scale, or nearly
    guess = low * (target / error(low)) * (1 - RELATIVE_TOLERANCE / 2) if error(low) > 0 else low
    if low < guess <= domain.high and error(guess) <= target:
        low = guess
        high = min(guess * (1 + RELATIVE_TOLERANCE), domain.high)
    while error(high) <= target:
        if high == domain.high:
            return high
        low, high = high, min(8 * high, domain.high)
    return greatest_float_that(
        lambda scale: error(scale) <= target,
        low,
        high,
        relative=RELATIVE_TOLERANCE,
        mean=lambda good, bad: good + (bad - good) / 2,
    )
