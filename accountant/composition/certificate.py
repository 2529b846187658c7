"""A number with its proof: an interval that holds the true epsilon, and how it was found."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from accountant.numerics.rounding import ULP


@final
@dataclass(frozen=True, slots=True)
class Certificate:
    """The true epsilon lies in ``[lower, upper]``; ``engine`` says who answered.

    ``nodes`` is the number of terms of its sum; 0 for closed forms.
    """

    lower: float
    upper: float
    engine: str
    nodes: int = 0

    def __str__(self) -> str:
        terms = f", {self.nodes:,} terms" if self.nodes else ""
        return (
            f"the true epsilon is in [{self.lower:.12g}, {self.upper:.12g}], {self.engine}{terms}"
        )

    @property
    def width(self) -> float:
        """``upper - lower``; 0 where both are infinite."""
        return 0.0 if self.lower == self.upper else self.upper - self.lower


def bracket_epsilon(
    bounds: Callable[[float], tuple[float, float]],
    log_delta: tuple[float, float],
    start: float,
    tilt: float,
    max_epsilon: float,
) -> tuple[float, float]:
    """Return (lower, upper) around where delta falls to its target; each was seen to hold.

    ``bounds`` gives the logarithms of a lower and an upper bound on delta, decreasing with a slope
    of about ``-tilt``; ``log_delta`` the target's own two ends; ``max_epsilon`` an epsilon never
    exceeded.
    """
    upper, slope = falling_root(lambda e: bounds(e)[1] - log_delta[0], start, tilt, max_epsilon)
    if upper == 0.0 or math.isinf(upper):
        return 0.0, upper
    low, high = bounds(upper)
    gap = (high - low) + (log_delta[1] - log_delta[0]) + 1e-15
    back = 1.02 * gap / slope
    if not 0 < back < upper:
        back = 1e-15 * upper
    while back < upper:
        lower = upper - back
        if bounds(lower)[0] >= log_delta[1]:
            return lower, upper
        back *= 1.7
    return 0.0, upper


def falling_root(
    excess: Callable[[float], float], start: float, tilt: float, max_epsilon: float
) -> tuple[float, float]:
    """Smallest epsilon seen with ``excess <= 0``, by guarded secants; and the slope there."""
    if excess(0.0) <= 0:
        return 0.0, tilt
    low, high, e, slope = 0.0, math.inf, min(max(start, 0.0), max_epsilon), max(tilt, 1e-300)
    last: tuple[float, float] | None = None
    for _ in range(200):
        value = excess(e)
        if value <= 0:
            high = min(high, e)
        else:
            low = max(low, e)
        if high - low <= 2 * ULP * min(high, 1e300) or (low >= max_epsilon and math.isinf(high)):
            break
        if -1e-12 <= value <= 0:
            break
        if last is not None and math.isfinite(value) and abs(e - last[0]) > 1e-11 * e:
            found = (last[1] - value) / (e - last[0])
            if math.isfinite(found) and found > 0:
                slope = found
        last = e, value
        guess = e + (value + 3e-13) / slope if math.isfinite(value) else math.inf
        if math.isinf(high):
            guess = min(guess, max(2 * e, e + 50 / slope), max_epsilon)
            e = guess if guess > low else min(max_epsilon, 2 * low + 1 / slope)
        else:
            e = guess if low < guess < high else (low + high) / 2
            if last is not None and abs(e - last[0]) < 4 * ULP * e:
                e = (low + high) / 2
    return (high, slope) if math.isfinite(high) else (max_epsilon, slope)
