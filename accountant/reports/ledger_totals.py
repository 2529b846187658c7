"""What each run, author and month of a ledger spent, as shares of the epsilon at its delta."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import final

from accountant.book.chain.entries import TERMS
from accountant.book.history import Line
from accountant.book.status import Status
from accountant.errors import ParameterError
from accountant.plans.parallel import Parallel
from accountant.serialisation.plan_json import from_dict

GROUPINGS = ("run", "author", "month")
NO_RUN, UNNAMED_RUN = "outside of runs", "runs without a name"
# outcome of a line that sets runs aside
SET_ASIDE, ASIDE = "set aside for runs of the plan", "set aside"
MAX_LEAVES = 1_000_000  # leaves of a plan that are counted at most


@final
@dataclass(slots=True)
class GroupTotal:
    """What one run, author or month spent: ``amount`` in the unit of the ledger's sums."""

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
        if line.outcome == ASIDE:  # each of its runs has a line of its own
            return
        planned = _planned_releases(line)
        self.is_counted &= planned is not None
        self.planned += planned or 0

    @property
    def to_come(self) -> int:
        """Return how many releases are paid for and were not made; 0 if that is not known."""
        return max(self.planned - self.releases, 0) if self.is_counted else 0


@final
@dataclass(frozen=True, slots=True)
class GroupShare:
    """A group's part of the epsilon spent; the parts of one grouping add up to it.

    Epsilons of releases that are composed do not add up.  So the epsilon of all is divided in
    proportion to what does add up: the epsilons, rho, mu squared or divergences of the ledger.
    """

    group: GroupTotal
    epsilon: float


class LedgerTotals:
    """Totals of a history that is read once, by run, by author and by month."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, GroupTotal]] = {name: {} for name in GROUPINGS}
        self._last_line: Line | None = None  # latest line that changed the total

    def note(self, line: Line) -> None:
        """Take the next line of the history."""
        added = 0.0
        # steps of a plan do not change the total
        if self._last_line is None or line.spent != self._last_line.spent:
            added = max(line.total - self._total_before(line), 0.0)
            self._last_line = line
        if line.kind == TERMS:
            return
        unnamed = SET_ASIDE if line.outcome == ASIDE else UNNAMED_RUN
        run = line.run or (unnamed if line.kind in ("plan", "step") else NO_RUN)
        for grouping, name in zip(GROUPINGS, (run, line.author, line.time[:7]), strict=True):
            self._groups[grouping].setdefault(name, GroupTotal(name)).note(line, added)

    def _total_before(self, line: Line) -> float:
        """Return the total before a line in its unit; the groups are converted to a new unit."""
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
        """Return the groups of each grouping in order of first use; each adds up to epsilon."""
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
        """Return the runs of plans with releases that are paid for and were not made."""
        return [run for run in self._groups["run"].values() if run.to_come]


def _planned_releases(line: Line) -> int | None:
    """Return the number of releases of a plan; None if it is unknown, or users have own parts."""
    try:
        leaves = list(islice(from_dict(line.facts).leaves(), MAX_LEAVES))
    except ParameterError:  # its class is of a package that is not installed here
        return None
    is_parallel = any(isinstance(leaf, Parallel) for leaf in leaves)
    return None if is_parallel or len(leaves) == MAX_LEAVES else len(leaves)
