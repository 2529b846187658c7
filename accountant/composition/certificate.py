"""Certified answers: an interval that holds the true epsilon of a plan at a given delta.

A `Certificate` also names the engine that computed it.  `bracket_epsilon` makes such an interval
from lower and upper bounds on the function delta(epsilon).
"""

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

DIGITS = 12  # significant digits of the ends in the text of a certificate
# Of the search for a lower end below an upper end, in `bracket_epsilon`:
POSITIVE_GAP = 1e-15  # nats of delta: makes the gap between two bounds positive
# The first distance that is tried, in units of the expected one: slightly more, to succeed at once.
FIRST_GAPS = 1.02
GROWTH = 1.7  # from one distance to the next; a larger one would make the interval wider
FIRST_SHARE = 1e-15  # the first distance where none is expected, relative to the upper end


@final
@dataclass(frozen=True, slots=True)
class Certificate(TableDisplay):
    """The true epsilon lies in ``[lower, upper]``.

    Parameters
    ----------
    lower : float
        Lower end, rounded down.
    upper : float
        Upper end, rounded up.
    engine : str
        The method that answered, such as "closed form" or "contour".
    nodes : int
        Number of terms of the sum that was evaluated, shown as "terms"; 0 for closed forms.
    check : callable, optional
        Writes a proof of the interval and checks it; `Tight.certify` provides it.

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
        """Prove the interval again, in ball arithmetic, by code that is independent of the engines.

        Returns
        -------
        Verdict
            ``word`` is "PROVED", "PROVED UPPER" where only the upper end was proved, or
            "NOT PROVED", with a ``reason``.  ``lower`` and ``upper`` are the ends that were to be
            proved: those of this certificate, or ends a little further out where the proof
            discretises the losses on a lattice.

        Raises
        ------
        ParameterError
            Without python-flint (``pip install python-flint``), or where the certificate was
            not made by `Tight.certify` and so has no ``check``.

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
    """Return the intersection of two intervals that hold the same epsilon.

    The engine and the number of terms are those of the interval with the smaller upper end.
    """
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
    """Return (lower, upper) around the epsilon at which delta(epsilon) falls to its target.

    ``bounds(epsilon)`` returns (ln of a lower bound, ln of an upper bound) on delta(epsilon); both
    decrease, with a slope of about ``-tilt`` near ``start``, where the search for the upper end
    begins.  ``log_delta`` are the two ends of an interval that holds the logarithm of the target.
    ``max_epsilon`` is known to be at least the epsilon sought.

    The upper end is the smallest epsilon that was evaluated with upper bound <= lower end of the
    target.  The lower end is ``upper - d`` for the first d with lower bound >= upper end of the
    target.  With the slope ``-s`` at the upper end it is expected at

        d = gap / s,   gap = (width of the bounds at the upper end) + (width of the target),

    so FIRST_GAPS gap / s, and from there every GROWTH-fold, is tried; where d reaches ``upper``,
    the lower end is 0.
    """
    log_bounds: dict[float, tuple[float, float]] = {}

    def excess(epsilon: float) -> float:
        log_bounds[epsilon] = bounds(epsilon)
        return log_bounds[epsilon][1] - log_delta[0]

    upper, slope = falling_root(excess, start=start, tilt=tilt, max_epsilon=max_epsilon)
    if upper == 0.0 or math.isinf(upper):
        return 0.0, upper
    # The root is a point that was evaluated, unless it is ``max_epsilon``.
    log_lower, log_upper = log_bounds[upper] if upper in log_bounds else bounds(upper)
    gap = (log_upper - log_lower) + (log_delta[1] - log_delta[0]) + POSITIVE_GAP
    distance = FIRST_GAPS * gap / slope
    # The slope at the upper end does not help, or the lower end may be anywhere above 0: the search
    # then goes through all sizes of a distance, from about the round-off of the upper end on.
    if not 0 < distance < upper:
        distance = FIRST_SHARE * upper
    _, distance = grow_until(
        lambda far: bounds(upper - far)[0] >= log_delta[1],
        start=distance,
        end=upper,
        factor=GROWTH,
    )
    return max(upper - distance, 0.0), upper
