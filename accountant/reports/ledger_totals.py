"""What each run, author and month of a ledger spent, as shares of the ledger's epsilon.

The history of a data set is read line by line (`LedgerTotals.note`).  What a line added to the
total, in the unit of the ledger's sums (epsilon, rho, mu squared, ...), counts for its run, for its
author and for its month.  At the end `LedgerTotals.shares` divides the epsilon that the whole
ledger has at its delta in proportion to these amounts.
"""

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
# Names of the groups of lines without a named run: single releases, and plans with their steps.
NO_RUN, UNNAMED_RUN = "outside of runs", "runs without a name"
# The name of the group of a line that pays for future runs of a plan, and such a line's outcome.
SET_ASIDE, ASIDE = "set aside for runs of the plan", "set aside"
# The releases of a plan are counted up to this many; counting more of them would take long.
MAX_LEAVES = 1_000_000


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
        if line.kind == TERMS:
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
