"""Figures of a ledger: epsilon over time as a step curve, and totals by kind of release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, final

from accountant.book.history import Line, Status
from accountant.errors import ParameterError, UnsupportedPlan
from accountant.formats.plan_json import from_dict
from accountant.ledger.certified_plan import pure_after_plan
from accountant.ledger.composition_notions import notion_of
from accountant.ledger.totals import CompositionNotion
from accountant.reports.svg_axes import Axes, LinearScale
from accountant.reports.time_scale import TimeScale

MAX_DRAWN_STEPS = 400  # more are finer than the picture


@final
@dataclass(frozen=True, slots=True)
class ReleaseKind:
    """One kind of release; ``capacity``: how many more the rest would pay for, None if unknown."""

    what: str
    requested: int
    answered: int
    failed: int
    capacity: int | None


@final
@dataclass(frozen=True, slots=True)
class SpendingFigure:
    """Epsilon over time as a step curve."""

    axes: Axes[datetime]
    path: str


def releases_by_kind(status: Status, lines: Sequence[Line]) -> list[ReleaseKind]:
    """Return the kinds in order of first use; plans are left out, as their steps are listed."""
    by: dict[str, list[Line]] = {}
    for line in lines:
        if line.kind != "plan":
            by.setdefault(line.what, []).append(line)
    return [
        ReleaseKind(
            what, len(some), sum(line.outcome == "answered" for line in some),
            sum(line.outcome != "answered" for line in some), _remaining_capacity(status, some[0]),
        )
        for what, some in by.items()
    ]  # fmt: skip


def _remaining_capacity(status: Status, line: Line) -> int | None:
    """Return how many more fit into the rest, as the ledger's notion adds them up."""
    notion: CompositionNotion[Any] = notion_of(status.notion, status.budget, status.order)
    if status.after_plan:
        notion = pure_after_plan(status.budget)
    try:
        one = notion.cost(from_dict(line.facts))
    except (ParameterError, UnsupportedPlan):  # of a package that is not installed here
        return None
    return notion.how_often(one, notion.decode(list(status.sums)))


def spending_figure(status: Status, lines: Sequence[Line]) -> SpendingFigure:
    """Return epsilon over time as a step curve, on axes that include the budget."""
    times = [datetime.fromisoformat(line.time) for line in lines]
    top = 1.08 * max(status.budget.epsilon, lines[-1].epsilon)
    when = TimeScale(datetime.fromisoformat(status.opened), times[-1])
    axes = Axes(when, LinearScale(0.0, top), "", "epsilon", height=300)
    kept = range(0, len(lines), max(1, len(lines) // MAX_DRAWN_STEPS))
    steps = (
        f"H{axes.across(times[k]):.1f}V{axes.down(lines[k].epsilon):.1f}"
        for k in [*kept, len(lines) - 1]
    )
    start = f"M{axes.left} {axes.down(0.0):.1f}"
    return SpendingFigure(axes, f"{start}{''.join(steps)}H{axes.left + axes.inner_width}")
