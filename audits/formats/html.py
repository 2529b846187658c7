"""The report as one self-contained HTML page, without scripts or requests.

The bounds of all rows are bars on one axis of epsilon, with a shape for every verdict.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, final

from accountant.formatting import format_short
from accountant.reports.html_document import render
from accountant.reports.svg_axes import Tick
from audits.claims.findings import Outcome
from audits.report.figure import profile_figure
from audits.report.power import power_of
from audits.report.summary import (
    baseline_sentence,
    confidence_sentence,
    not_tested_sentence,
    power_sentence,
    verdict_sentence,
)
from audits.report.words import (
    CLOSING,
    PROFILE_HEAD,
    bound_percent,
    error_sentence,
    format_bound,
    format_number,
    format_percent,
    profile_rows,
    title_of,
)
from audits.results.result_file import Result
from audits.results.rows import ReportRow
from audits.results.short_names import short_name

MIN_TICK_GAP = 24  # in units of the viewBox: labels such as 0.5 and 1 do not touch
# The shapes of the page, each with its colour, and their names in the legend.
VERDICTS = {
    "falsified": "falsified: a filled bar from a diamond",
    "survived": "survived: a line from a bracket",
    "undecided": "inconclusive: a dashed line from a triangle",
}
HEAD = ("subject", "claimed epsilon", "delta", "exact", "at least", "interval", "verdict")


@final
@dataclass(frozen=True, slots=True)
class EpsilonAxis:
    """Epsilons from 0 to ``high``, spaced as ln(1 + epsilon); positions in units of a viewBox."""

    high: float  # the largest epsilon of the axis
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
    claim: float | None  # None where there is none, or it is infinite
    exact: float | None
    words: str  # the bar in words, for readers who do not see it


def epsilon_axis(rows: Iterable[ReportRow]) -> EpsilonAxis:
    """The axis of a page, which has room for every finite value of its bars."""
    values = [
        value
        for row in rows
        if row.verdict_lower is not None
        for value in (row.verdict_lower, row.claim[0], row.exact_epsilon)
    ]
    finite_values = [value for value in values if value is not None and math.isfinite(value)]
    # 12 % more than the largest value, so that its mark lies within the axis.
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


def to_html(result: Result) -> str:
    """The result as a page; every word that came from outside is escaped."""
    rows, kinds = result.rows, dict.fromkeys(row.kind for row in result.rows)
    wrong = [row for row in rows if not row.as_expected]
    known_before = all(row.kept for row in wrong)
    title = "Violations" if all(row.own for row in wrong) else "Not as expected"
    tables = [(title, "bad", wrong)] if wrong else []
    # The tables below have the rows that are not in the first one.
    tables += [
        (title_of(kind), "", rows_of_kind)
        for kind in kinds
        if (rows_of_kind := [row for row in rows if row.kind == kind and row.as_expected])
    ]
    shown, power = set(map(verdict_shape, rows)), power_of(result)
    return render(
        "findings.html", "audits.formats", "audits.report", result=result, tables=tables, head=HEAD,
        closing=CLOSING,
        wrong=wrong, known=[row for row in rows if not row.own], sure=error_sentence(rows),
        verdict=verdict_sentence(rows), seen=power_sentence(result, power),
        untested=not_tested_sentence(rows), beside=baseline_sentence(rows),
        known_before=known_before,
        joint=confidence_sentence(rows), joint_percent=bound_percent(rows), name=short_name,
        power=power, axis=epsilon_axis(rows), interval=interval_bar, shape=verdict_shape,
        shapes={name: sentence for name, sentence in VERDICTS.items() if name in shown},
        profile_figure=profile_figure, profile_head=PROFILE_HEAD, profile_rows=profile_rows,
        number=format_number, bound=format_bound, percent=format_percent,
    )  # fmt: skip
