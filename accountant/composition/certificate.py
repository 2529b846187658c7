"""Certified answers: an interval that holds the true epsilon, and the engine that found it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from accountant.numerics.search import falling_root, grow_until
from accountant.table_display import Table, TableDisplay


@final
@dataclass(frozen=True, slots=True)
class Certificate(TableDisplay):
    """The true epsilon lies in ``[lower, upper]``.

    Parameters
    ----------
    lower : float
        Rounded down.
    upper : float
        Rounded up.
    engine : str
        The method that answered, such as "closed form" or "contour".
    nodes : int
        Number of terms of its sum; 0 for closed forms.

    Examples
    --------
    >>> from accountant import PureLoss, Tight
    >>> found = Tight().certify(10 * PureLoss(0.1), delta=1e-6)
    >>> found.lower <= found.upper, found.width < 1e-8
    (True, True)
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

    def _table(self) -> Table:
        columns = ("lower", "upper", "width", "engine", "terms")
        row = (self.lower, self.upper, self.width, self.engine, self.nodes)
        return Table(columns, [row], upper=("upper", "width"), lower=("lower",))

    @property
    def width(self) -> float:
        """``upper - lower``; 0 where both are infinite."""
        return 0.0 if self.lower == self.upper else self.upper - self.lower


def intersection(one: Certificate, other: Certificate) -> Certificate:
    """Return what two intervals around the same epsilon have in common."""
    least = min(one, other, key=lambda each: each.upper)
    lower = min(max(one.lower, other.lower), least.upper)
    return Certificate(lower, least.upper, least.engine, least.nodes)


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
    seen: dict[float, tuple[float, float]] = {}

    def excess(epsilon: float) -> float:
        seen[epsilon] = bounds(epsilon)
        return seen[epsilon][1] - log_delta[0]

    upper, slope = falling_root(excess, start, tilt, max_epsilon)
    if upper == 0.0 or math.isinf(upper):
        return 0.0, upper
    low, high = seen[upper] if upper in seen else bounds(upper)
    gap = (high - low) + (log_delta[1] - log_delta[0]) + 1e-15
    back = 1.02 * gap / slope
    if not 0 < back < upper:
        back = 1e-15 * upper
    _, back = grow_until(lambda far: bounds(upper - far)[0] >= log_delta[1], back, upper, 1.7)
    return max(upper - back, 0.0), upper
