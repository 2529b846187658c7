"""The page of a ledger: what was spent of a data set's budget, when, by whom, and what is left.

The history may be long, so it is read once as a stream: `HistoryFigures` keeps the last lines, a
sample of lines for the figure, and `LedgerTotals`.  What a line added to the total, in the unit of
the ledger's sums (epsilon, rho, mu squared, ...), counts for its run, for its author and for its
month.  At the end the epsilon that the whole ledger has at its delta is divided in proportion to
these amounts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, final

from accountant.accountants.budget import TOLERANCE
from accountant.book.history import Line
from accountant.book.limits.windows import window_kind
from accountant.book.status import Status, format_spent
from accountant.errors import ParameterError, UnsupportedPlan
from accountant.formatting import format_remaining
from accountant.ledger.composition_notions import notion_of, pure_after_plan
from accountant.ledger.totals import CompositionNotion, Spending
from accountant.planning.interpretation import explanation
from accountant.plans.parallel import Parallel
from accountant.reports.html_document import csv_address, render
from accountant.reports.svg_axes import Axes, LinearScale, TimeScale
from accountant.serialisation.plan_json import from_dict

GROUPINGS = ("run", "author", "month")
# Names of the groups of lines without a named run: single releases, and plans with their steps.
NO_RUN, UNNAMED_RUN = "outside of runs", "runs without a name"
# The name of the group of a line that pays for future runs of a plan, and such a line's outcome.
SET_ASIDE, ASIDE = "set aside for runs of the plan", "set aside"
# The releases of a plan are counted up to this many; counting more of them would take long.
MAX_LEAVES = 1_000_000
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
    if spending.amount <= spending.limit * (1 + TOLERANCE):  # round-off is no overspending
        spending = spending._replace(amount=min(spending.amount, spending.limit))
    return render(
        "history.html",
        status=status,
        history=history,
        # A single group would only repeat the total.
        shares={name: groups for name, groups in shares.items() if len(groups) > 1},
        saved_shares=bool(shares),
        book=book,
        used=spending,
        left=format_remaining(spending.limit, spending.amount),
        capacity=lambda kind: _capacity(status, kind.last_line),
        percent=lambda part, total: format_spent(100 * part / total, 100.0, 3) + " %",
        format_spent=format_spent,
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
    """One kind of release, with the last line of it: how many were answered, and how many not."""

    last_line: Line
    answered: int = 0
    failed: int = 0

    @property
    def what(self) -> str:
        """Return the question that they answer, or the family of the mechanism and its parts."""
        facts: Any = self.last_line.facts
        kinds: list[str] = []
        while isinstance(facts, dict) and isinstance(facts.get("kind"), str):
            kinds.append(facts["kind"])
            facts = facts.get("part", facts.get("inner"))
        return self.last_line.question or " of ".join(kinds) or self.last_line.what

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
        self._kinds: dict[str, ReleaseKind] = {}
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
            if line.kind == "plan" and line.question:
                self._kinds.setdefault(line.question, ReleaseKind(line)).last_line = line
            elif line.is_spend and line.kind != "plan":
                self.released += 1
                kind = ReleaseKind(line)
                kind = self._kinds.setdefault(kind.what, kind)
                if line.kind != "step" or not line.question:  # the plan of a question has its price
                    kind.last_line = line  # it may have more or less noise than those before
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


@final
@dataclass(slots=True)
class GroupTotal:
    """What one run, author or month spent: ``amount`` in the unit of the ledger's sums.

    ``releases`` were made, single ones and steps of plans; ``planned`` is how many releases its
    plans pay for, if ``is_counted`` says that this is known.  ``first`` and ``last`` are the times
    of its first and last line.
    """

    name: str
    releases: int = 0
    planned: int = 0
    is_counted: bool = True
    first: str = ""
    last: str = ""
    amount: float = 0.0

    def note(self, line: Line, amount: float) -> None:
        """Add a line and what it added to the ledger's total."""
        self.first, self.last = self.first or line.time, line.time
        self.amount += amount
        if line.kind != "plan":
            self.releases += 1
            return
        if line.outcome == ASIDE:  # each of its runs has a line, and counts its releases there
            return
        planned = _planned_releases(line)
        self.is_counted &= planned is not None
        self.planned += planned or 0

    @property
    def to_come(self) -> int:
        """Return how many releases are paid for but not made yet; 0 if that is not known."""
        return max(self.planned - self.releases, 0) if self.is_counted else 0


@final
@dataclass(frozen=True, slots=True)
class GroupShare:
    """A group's part of the epsilon spent; the parts of one grouping add up to it.

    The epsilons of composed releases do not add up to the epsilon of all.  So this one is divided
    in proportion to what does add up: the epsilons, rho, mu squared or divergences of the ledger.
    """

    group: GroupTotal
    epsilon: float


class LedgerTotals:
    """Totals of a history that is read once, by run, by author and by month."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, GroupTotal]] = {name: {} for name in GROUPINGS}
        self._last_line: Line | None = None  # the last line that changed the total

    def note(self, line: Line) -> None:
        """Take the next line of the history."""
        added = 0.0
        # The total grows with a line that pays; steps of a plan, which is paid for, do not change
        # it.
        if self._last_line is None or line.spent != self._last_line.spent:
            added = max(line.total - self._total_before(line), 0.0)
            self._last_line = line
        if not line.is_spend:
            return
        unnamed = SET_ASIDE if line.outcome == ASIDE else UNNAMED_RUN
        run = line.run or (unnamed if line.kind in ("plan", "step") else NO_RUN)
        for grouping, name in zip(GROUPINGS, (run, line.author, line.time[:7]), strict=True):
            self._groups[grouping].setdefault(name, GroupTotal(name)).note(line, added)

    def _total_before(self, line: Line) -> float:
        """Return the total before a line, in the line's unit.

        Where the unit changes at this line, the old total counts as the share of the new one that
        the old epsilon is of the new one, at most all of it; the amounts of all groups are scaled
        so that they add up to it.
        """
        if self._last_line is None:
            return 0.0
        if line.counts == self._last_line.counts:
            return self._last_line.total
        before = (
            line.total * min(self._last_line.epsilon / line.epsilon, 1.0) if line.epsilon else 0.0
        )
        for groups in self._groups.values():
            for group in groups.values():
                group.amount *= before / self._last_line.total if self._last_line.total else 0.0
        return before

    def shares(self, status: Status) -> dict[str, list[GroupShare]]:
        """Return the shares of each grouping's groups, in order of first use.

        Those of one grouping add up to the epsilon of the status, or are 0 if nothing was spent.
        """
        shares = {}
        for grouping, groups in self._groups.items():
            total_amount = sum(group.amount for group in groups.values())
            shares[grouping] = [
                GroupShare(
                    group, status.epsilon * (group.amount / total_amount) if total_amount else 0.0
                )
                for group in groups.values()
            ]
        return shares

    @property
    def unfinished_runs(self) -> list[GroupTotal]:
        """Return the runs with releases that are paid for but not made yet."""
        return [run for run in self._groups["run"].values() if run.to_come]


def _planned_releases(line: Line) -> int | None:
    """Return the number of releases of a line's plan; None if it is unknown.

    It is not known how many releases a plan makes whose parts are on disjoint users (`Parallel`).
    """
    try:
        leaves = list(islice(from_dict(line.facts).leaves(), MAX_LEAVES))
    except ParameterError:  # its class is of a package that is not installed here
        return None
    is_parallel = any(isinstance(leaf, Parallel) for leaf in leaves)
    return None if is_parallel or len(leaves) == MAX_LEAVES else len(leaves)


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
