"""Figures of a ledger: epsilon over time as a step curve, and totals by kind of release."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, final

from accountant.book.history import Line
from accountant.book.status import Status
from accountant.errors import ParameterError, UnsupportedPlan
from accountant.ledger.composition_notions import notion_of, pure_after_plan
from accountant.ledger.totals import CompositionNotion
from accountant.reports.ledger_totals import LedgerTotals
from accountant.reports.svg_axes import Axes, LinearScale
from accountant.reports.time_scale import TimeScale
from accountant.serialisation.plan_json import from_dict

MAX_SHOWN_LINES = 1000  # the last lines of a page, as many as a browser can scroll
MAX_DRAWN_STEPS = 800  # finer steps cannot be seen in the figure


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


class HistoryFigures:
    """The part of a history that a page shows: it is read once, and few lines are stored."""

    def __init__(self, status: Status, lines: Iterable[Line]) -> None:
        self._status = status
        self.count = self.released = 0
        self.seeded = self.undeclared = self.by_trusted = False
        self.latest: deque[Line] = deque(maxlen=MAX_SHOWN_LINES)
        self.totals = LedgerTotals()
        self._kinds: dict[str, list[Any]] = {}  # the first line, answered, failed
        self._drawn: list[Line] = []
        stride = 1
        for line in lines:
            if not self.count % stride:
                self._drawn.append(line)
                if len(self._drawn) > MAX_DRAWN_STEPS:
                    self._drawn, stride = self._drawn[::2], 2 * stride
            self._note(line)

    def _note(self, line: Line) -> None:
        self.count += 1
        self.latest.append(line)
        self.totals.note(line)
        self.seeded |= line.seeded
        self.undeclared |= bool(line.undeclared)
        self.by_trusted |= bool(line.executor)
        if line.kind not in ("plan", "terms"):
            self.released += 1
            self._kinds.setdefault(line.what, [line, 0, 0])[1 + (line.outcome != "answered")] += 1

    @property
    def kinds(self) -> list[ReleaseKind]:
        """Return the kinds in order of first use; plans are left out, as their steps are listed."""
        return [
            ReleaseKind(
                what,
                answered + failed,
                answered,
                failed,
                _remaining_capacity(self._status, first_line),
            )
            for what, (first_line, answered, failed) in self._kinds.items()
        ]

    @property
    def spending(self) -> SpendingFigure | None:
        """Return epsilon over time as a step curve, on axes that include the budget."""
        if not self.count:
            return None
        last_line = self.latest[-1]
        drawn = [*self._drawn, last_line]
        # an earlier window, or an earlier budget, may have been larger
        top = 1.08 * max(self._status.budget.epsilon, *(line.epsilon for line in drawn))
        when = TimeScale(*map(datetime.fromisoformat, (self._status.opened, last_line.time)))
        axes = Axes(when, LinearScale(0.0, top), "", "epsilon", height=300)
        steps = (
            f"H{axes.across(datetime.fromisoformat(line.time)):.1f}V{axes.down(line.epsilon):.1f}"
            for line in drawn
        )
        start = f"M{axes.left} {axes.down(0.0):.1f}"
        return SpendingFigure(axes, f"{start}{''.join(steps)}H{axes.left + axes.inner_width}")


def _remaining_capacity(status: Status, line: Line) -> int | None:
    """Return how many more fit into what remains, as the ledger's notion adds them up.

    None where that is not known: of another package, or where a window took over some.
    """
    if status.closed:
        return 0
    notion: CompositionNotion[Any] = notion_of(status.notion, status.budget, status.order)
    if status.after_plan:
        notion = pure_after_plan(status.budget)
    try:
        cost = notion.cost(from_dict(line.facts))
    # its class is of a package that is not installed here
    except (ParameterError, UnsupportedPlan):
        return None
    total = notion.decode(list(status.sums))
    if status.window is not None and notion.shown(total).limit != status.limit:
        return None
    return notion.how_often(cost, total)
