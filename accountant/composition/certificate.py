"""Certified answers: an interval that holds the true epsilon, and the engine that found it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

from accountant.errors import ParameterError
from accountant.formatting import format_lower, format_upper
from accountant.numerics.search import falling_root, grow_until
from accountant.table_display import Table, TableDisplay

if TYPE_CHECKING:
    from accountant.verifier import Verdict

DIGITS = 12


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
    check : callable, optional
        Writes the proof of the interval and checks it; `Tight.certify` knows how.

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
    check: Callable[[], Verdict] | None = field(default=None, repr=False, compare=False)

    def verify(self) -> Verdict:
        """Prove the interval again, in ball arithmetic and by code that shares none with it.

        Returns
        -------
        Verdict
            ``word`` is "PROVED", "PROVED UPPER" where no more than the upper end was proved, or
            "NOT PROVED", with a ``reason``.  Its ``lower`` and ``upper`` are the ends it is about:
            those here, or a little further out where pairs on a lattice prove them.

        Raises
        ------
        ParameterError
            Without python-flint (``pip install "dp-attest[verify]"``), or where the interval is of
            no whole plan.

        Examples
        --------
        >>> from accountant import PureLoss, Tight
        >>> Tight().certify(10 * PureLoss(0.1), delta=1e-6).verify().word
        'PROVED'
        """
        if self.check is None:
            allowed = "made by Tight().certify(plan, delta), which knows plan and delta"
            raise ParameterError("the certificate", self, allowed)
        return self.check()

    def __str__(self) -> str:
        terms = f", {self.nodes:,} terms" if self.nodes else ""
        ends = f"[{format_lower(self.lower, DIGITS)}, {format_upper(self.upper, DIGITS)}]"
        return f"the true epsilon is in {ends}, {self.engine}{terms}"

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
    tighter = min(one, other, key=lambda certificate: certificate.upper)
    lower = min(max(one.lower, other.lower), tighter.upper)
    return Certificate(lower, tighter.upper, tighter.engine, tighter.nodes)


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
    log_bounds: dict[float, tuple[float, float]] = {}

    def excess(epsilon: float) -> float:
        log_bounds[epsilon] = bounds(epsilon)
        return log_bounds[epsilon][1] - log_delta[0]

    upper, slope = falling_root(excess, start, tilt, max_epsilon)
    if upper == 0.0 or math.isinf(upper):
        return 0.0, upper
    low, high = log_bounds[upper] if upper in log_bounds else bounds(upper)
    gap = (high - low) + (log_delta[1] - log_delta[0]) + 1e-15
    distance = 1.02 * gap / slope
    if not 0 < distance < upper:
        distance = 1e-15 * upper
    _, distance = grow_until(
        lambda far: bounds(upper - far)[0] >= log_delta[1], distance, upper, 1.7
    )
    return max(upper - distance, 0.0), upper
