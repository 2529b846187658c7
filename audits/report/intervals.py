"""The bounds of all rows as bars on one axis of epsilon, with a shape for every verdict."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

from accountant.formatting import format_short
from accountant.reports.svg_axes import Tick
from audits.claims.findings import Outcome
from audits.report.words import format_bound, format_number
from audits.results.rows import ReportRow

MIN_TICK_GAP = 24  # in units of the viewBox: labels such as 0.5 and 1 do not touch
# The shapes of the page, each with its colour, and their names in the legend.
VERDICTS = {
    "falsified": "falsified: a filled bar from a diamond",
    "survived": "survived: a line from a bracket",
    "undecided": "inconclusive: a dashed line from a triangle",
}


@final
@dataclass(frozen=True, slots=True)
class EpsilonAxis:
    """Epsilons from 0 to ``high``, spaced as ln(1 + epsilon); positions in units of a viewBox."""

    high: float
    width: ClassVar[int] = 220
    height: ClassVar[int] = 24
    left: ClassVar[int] = 8
    right: ClassVar[int] = 14

    @property
    def end(self) -> int:
        """Where the axis ends, and every bar, as no bound from above is known."""
        return self.width - self.right

    def across(self, epsilon: float) -> float:
        """The position of an epsilon."""
        return self.left + (self.end - self.left) * math.log1p(epsilon) / math.log1p(self.high)

    def ticks(self) -> list[Tick]:
        """0 and 1, 2 and 5 times powers of ten, from the largest down, where labels have room."""
        values = [0.0]
        first_position = self.left + MIN_TICK_GAP
        for value in reversed(_round_numbers(self.high)):
            above = self.across(values[-1]) if values[-1] else math.inf
            if first_position <= self.across(value) <= above - MIN_TICK_GAP:
                values.append(value)
        length = self.end - self.left
        return [
            Tick((self.across(value) - self.left) / length, format_short(value))
            for value in sorted(values)
        ]


@final
@dataclass(frozen=True, slots=True)
class IntervalBar:
    """Positions of a row's bar from the least epsilon upwards, its claim and its exact value."""

    start: float
    claim: float | None
    exact: float | None
    words: str


def epsilon_axis(rows: Iterable[ReportRow]) -> EpsilonAxis:
    """The axis of a page, which has room for every finite value of its bars."""
    finite_values = [value for row in rows for value in _values(row)]
    return EpsilonAxis(1.12 * (max(finite_values, default=0.0) or 1.0))


def interval_bar(row: ReportRow, axis: EpsilonAxis) -> IntervalBar | None:
    """The bar of a row; None where the row has no bound."""
    lower, claim, exact = row.verdict_lower, row.claim[0], row.exact_epsilon
    if lower is None or not math.isfinite(lower):
        return None
    return IntervalBar(
        axis.across(lower),
        axis.across(claim) if math.isfinite(claim) else None,
        axis.across(exact) if exact is not None and math.isfinite(exact) else None,
        f"{verdict_shape(row)}: at least {format_bound(lower)}, claimed {format_number(claim)}, "
        f"exact {format_number(exact)}",
    )


def verdict_shape(row: ReportRow) -> str:
    """The name of the shape of a row's verdict, one of `VERDICTS`."""
    if not row.decisive:
        return "undecided"
    return "falsified" if row.outcome is Outcome.FALSIFIED else "survived"


def _values(row: ReportRow) -> Sequence[float]:
    if row.verdict_lower is None:
        return ()
    values = (row.verdict_lower, row.claim[0], row.exact_epsilon)
    return [value for value in values if value is not None and math.isfinite(value)]


def _round_numbers(high: float) -> list[float]:
    """1, 2 and 5 times powers of ten, up to ``high``, over three decades."""
    power_high = math.floor(math.log10(high))
    # Floats are read from decimal text, so that 5e-6 is not 4.999e-6.
    every = [
        float(f"{step}e{power}")
        for power in range(power_high - 2, power_high + 1)
        for step in (1, 2, 5)
    ]
    return [value for value in every if value <= high]
