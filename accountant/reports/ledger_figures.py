"""Figures of a ledger: epsilon over time as a step curve, and totals by kind of release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import final

from accountant.book.history import Line, Status
from accountant.errors import BudgetExceeded, ParameterError, UnsupportedPlan
from accountant.formats.plan_json import from_dict
from accountant.ledger.composition_notions import notion_of
from accountant.reports.svg_axes import Axes, LinearScale, TimeScale

MAX_DRAWN_STEPS = 400  # more are finer than the picture
ROUND_OFF_MARGIN = 1e-9


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
    notion = notion_of(status.notion, status.budget, status.order)
    try:
        one = notion.spend(notion.zero, from_dict(line.facts)).spent
    except BudgetExceeded:
        return 0
    except (ParameterError, UnsupportedPlan):  # of a package that is not installed here
        return None
    left = Decimal(repr(status.limit)) - Decimal(repr(status.total))
    if not one or left <= 0:
        return None if not one else 0
    if notion.adds_exactly:  # decimals
        return int(left / one)
    # the others are rounded up at every step
    return int(left / (Decimal(repr(one)) * Decimal(1 + ROUND_OFF_MARGIN)))


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
