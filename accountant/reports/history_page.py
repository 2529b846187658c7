"""The page of a ledger: what was spent of a data set's budget, when, by whom, and what is left.

The history may be long, so it is read once as a stream: `HistoryFigures` keeps the last lines, a
sample of lines for the figure, and totals.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, final

from accountant.book.history import Line
from accountant.book.limits.windows import window_kind
from accountant.book.status import Status
from accountant.errors import ParameterError, UnsupportedPlan
from accountant.formatting import format_remaining, format_upper
from accountant.ledger.composition_notions import notion_of, pure_after_plan
from accountant.ledger.totals import CompositionNotion, Spending
from accountant.planning.interpretation import explanation
from accountant.reports.html_document import csv_address, render
from accountant.reports.ledger_totals import LedgerTotals
from accountant.reports.svg_axes import Axes, LinearScale, TimeScale
from accountant.serialisation.plan_json import from_dict

MAX_SHOWN_LINES = 1000  # the last lines of a page, as many as a browser can scroll
MAX_DRAWN_STEPS = 800  # finer steps cannot be seen in the figure


def history_page(status: Status, lines: Iterable[Line], book: str) -> str:
    """Return the page as HTML.

    The lines are read once and few are kept, so they may be a stream.  ``book`` is the name of the
    ledger.
    """
    history = HistoryFigures(status, lines)
    # With windows or buckets there is no one total, of which spends would be shares.
    is_divisible = status.window is None and status.buckets is None
    shares = history.totals.shares(status) if is_divisible else {}
    share_rows: list[list[object]] = [["by", "name", "releases", "first", "last", "epsilon"]]
    for grouping, group_shares in shares.items():
        for share in group_shares:
            group = share.group
            share_rows.append(
                [grouping, group.name, group.releases, group.first, group.last, share.epsilon]
            )
    spending = Spending("epsilon", status.epsilon, status.budget.epsilon)
    # A window may also spend what earlier windows left; then its own limit is shown.
    if status.most > status.budget.epsilon:
        spending = Spending(status.counts, status.total, status.limit)
    return render(
        "history.html",
        status=status,
        history=history,
        shares=shares,
        book=book,
        used=spending,
        left=format_remaining(spending.limit, spending.amount),
        capacity=lambda kind: _capacity(status, kind.first_line),
        percent=lambda part, total: format_upper(100 * part / total, 3) + " %",
        to_come=_to_come(status, history),
        saved=csv_address(share_rows),
        meaning=explanation(status.most, status.budget.delta, status.relation),
    )


def _to_come(status: Status, history: HistoryFigures) -> list[tuple[str, str]]:
    """Return events to come, in words, each after its time; the time is empty if it is unknown."""
    runs = [
        ("", f"{run.to_come:,} of {run.planned:,} releases of {run.name}: paid for, not made yet")
        for run in history.totals.unfinished_runs
    ]
    if status.closed:
        return []
    if status.runs is not None and status.runs[0] < status.runs[1]:
        runs_made, paid = status.runs
        runs.append(("", f"{paid - runs_made:,} of {paid:,} runs of the plan that was set aside"))
    dated = []
    if status.window is not None and (kind := window_kind(status.windows)) is not None:
        dated.append((f"{kind.next_day(status.window)}T00:00:00", kind.later))
    dated.append((status.expires or "", "the budget expires: nothing is spent from then on"))
    return [*runs, *sorted(event for event in dated if event[0])]


@final
@dataclass(slots=True)
class ReleaseKind:
    """One kind of release, with the first line of it: how many were answered, and how many not."""

    first_line: Line
    answered: int = 0
    failed: int = 0

    @property
    def what(self) -> str:
        """Return the question that they answer, or the mechanism in words."""
        return self.first_line.title

    @property
    def requested(self) -> int:
        """Return how many there were."""
        return self.answered + self.failed


@final
@dataclass(frozen=True, slots=True)
class SpendingFigure:
    """Epsilon over time as a step curve."""

    axes: Axes[datetime]
    path: str  # the curve in SVG's path syntax


class HistoryFigures:
    """What a page shows of a history: the lines are read once, and only the last are stored."""

    def __init__(self, status: Status, lines: Iterable[Line]) -> None:
        self._status = status
        self.count = self.released = 0
        self.seeded = self.undeclared = self.by_trusted = False
        self.latest: deque[Line] = deque(maxlen=MAX_SHOWN_LINES)
        self.totals = LedgerTotals()
        self._kinds: dict[str, ReleaseKind] = {}  # by the title of their lines
        self._drawn: list[Line] = []
        stride = 1  # every stride-th line is drawn; it doubles where these become too many
        for line in lines:
            if not self.count % stride:
                self._drawn.append(line)
                if len(self._drawn) > MAX_DRAWN_STEPS:
                    self._drawn, stride = self._drawn[::2], 2 * stride
            self.count += 1
            self.latest.append(line)
            self.totals.note(line)
            self.seeded |= line.seeded
            self.undeclared |= bool(line.undeclared)
            self.by_trusted |= bool(line.executor)
            if line.kind not in ("plan", "terms"):
                self.released += 1
                kind = self._kinds.setdefault(line.title, ReleaseKind(line))
                is_answered = line.outcome == "answered"
                kind.answered += is_answered
                kind.failed += not is_answered

    @property
    def kinds(self) -> list[ReleaseKind]:
        """Return the kinds in order of first use; plans are left out, as their steps are listed."""
        return list(self._kinds.values())

    @property
    def spending(self) -> SpendingFigure | None:
        """Return epsilon over time as a step curve, on axes that include the budget."""
        if not self.count:
            return None
        last_line = self.latest[-1]
        drawn = [*self._drawn, last_line]
        # An earlier window, or an earlier budget, may have been larger than the present one.  The
        # axis ends 8 % above the largest value, so that no line lies on the frame.
        top = 1.08 * max(self._status.budget.epsilon, *(line.epsilon for line in drawn))
        when = TimeScale(*map(datetime.fromisoformat, (self._status.opened, last_line.time)))
        axes = Axes(when, LinearScale(0.0, top), "", "epsilon", height=300)
        steps = (
            f"H{axes.across(datetime.fromisoformat(line.time)):.1f}V{axes.down(line.epsilon):.1f}"
            for line in drawn
        )
        start = f"M{axes.left} {axes.down(0.0):.1f}"
        return SpendingFigure(axes, f"{start}{''.join(steps)}H{axes.left + axes.inner_width}")


def _capacity(status: Status, line: Line) -> int | None:
    """Return how many more such releases fit into what remains, by the ledger's notion.

    None if that is not known: the class may be of a package that is not installed, or the window
    may have taken over what earlier ones left.
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
