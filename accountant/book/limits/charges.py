"""What one charge adds to the totals of a data set, and what the charges of each author add up to.

A book may limit what one author spends of a data set: by a quota, next to the budget that protects
people and that all authors share.  An author's charges are added up as those of the data set are:
to a total for each user where users have budgets of their own, else to a total for each part of
time (`accountant.book.limits.windows`).

Some sums stand in no single entry of the log, such as what each user has spent: `RunningSums` makes
them from all entries once, and then brings them up to date with the new ones.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar

from accountant.book.chain.entries import START, TERMS, LogEntry
from accountant.book.limits.user_totals import Spend, UserTotals
from accountant.book.limits.windows import WHOLE, Parts, Window, encoded
from accountant.book.log import Log
from accountant.ledger.private_data import Users
from accountant.ledger.totals import CompositionNotion, Total, largest_total

Account = TypeVar("Account")  # what reads the charges: `accountant.book.account.Account`
Sums = TypeVar("Sums")  # what charges add up to


class Charge(NamedTuple):
    """One charge: ``spend`` returns the total after it of each user in ``who`` (None: all users).

    ``notion`` adds up the totals, and ``time`` is the one by which windows count the charge.
    """

    notion: CompositionNotion[Any]
    spend: Spend
    who: Users | None
    time: str

    def parts_after(self, window: Window | None, parts: Parts) -> Parts:
        """Return the parts of time after the charge, without those that no longer count."""
        label = WHOLE
        if window is not None:
            parts, label = window.live(parts, self.time), window.label(self.time)
        return {**parts, label: self.spend(parts.get(label, self.notion.zero))}


def unchanged(total: Total[Any]) -> Total[Any]:
    """Return the total itself: the ``spend`` of what another entry has paid for."""
    return total


class AuthorTotals:
    """What each author of one data set has charged, and the ``quotas`` of those who have one.

    ``users`` is the number of users who have budgets of their own, None where they have none.
    """

    def __init__(self, users: int | None, window: Window | None) -> None:
        self._users, self._window = users, window
        self._user_totals: dict[str, UserTotals] = {}
        # what each author charged in the parts that count, and in all parts since the opening
        self._parts: dict[str, Parts] = {}
        self._all_parts: dict[str, Parts] = {}
        self.quotas: dict[str, float] = {}

    @property
    def authors(self) -> list[str]:
        """Return the authors of at least one charge, in the order of their first ones."""
        return [*self._user_totals, *self._parts]

    def add(self, author: str, charge: Charge) -> None:
        """Add a charge to those of its author."""
        if self._users is None:
            self._parts[author] = charge.parts_after(self._window, self._parts.get(author, {}))
            if self._window is not None:
                self._all_parts.setdefault(author, {}).update(self._parts[author])
            return
        if author not in self._user_totals:
            self._user_totals[author] = UserTotals(self._users, charge.notion.zero)
        self._user_totals[author].add(charge.who, charge.spend)

    def correct(self, notion: CompositionNotion[Any], now: str) -> list[str]:
        """Let every author's charges count by a corrected clock: later ones count now.

        Return the authors who have charged something else in the parts that count than before.
        """
        changed: list[str] = []
        if self._window is not None:
            for author, parts in self._all_parts.items():
                before = self._window.live(self._parts[author], now)
                self._window.correct(notion, parts, now)
                self._parts[author] = self._window.live(parts, now)
                if self._parts[author] != before:
                    changed.append(author)
        return changed

    def parts(self, author: str) -> Parts:
        """Return what an author charged in each part of time: none where there is no charge.

        With users it is one part, with the largest total of any user.
        """
        if author in self._user_totals:
            return {WHOLE: self._user_totals[author].worst_total()}
        return self._parts.get(author, {})

    def largest_of_payers(self, author: str, charge: Charge) -> tuple[Total[Any], Total[Any]]:
        """Return the largest total of the users who pay a charge of an author, before and after it.

        Only what the author has charged counts; both are zero where no user pays.
        """
        zero, totals = charge.notion.zero, self._user_totals.get(author)
        if totals is None:
            totals = UserTotals(self._users or 0, zero)
        before = totals.totals_after(charge.who, unchanged).values()
        after = totals.totals_after(charge.who, charge.spend).values()
        return largest_total(before or [zero]), largest_total(after or [zero])

    def encoded(self, notion: CompositionNotion[Any]) -> dict[str, Any]:
        """Return what each author charged, as an entry of terms states it."""
        return {author: encoded(notion, self.parts(author)) for author in self.authors}


class RunningSums(Generic[Account, Sums]):
    """What the charges of one data set add up to, from the first entry of the log on.

    It is brought up to date with the log when it is asked for.  ``unspent`` returns the sums before
    any charge, and ``add`` adds a charge or a change of the terms to them, as its account reads it.
    The account comes with each question: sums that kept it would keep each other alive, and an open
    file.
    """

    def __init__(
        self,
        log: Log,
        dataset: str,
        unspent: Callable[[], Sums],
        add: Callable[[Account, Sums, LogEntry], None],
    ) -> None:
        self._log, self._dataset = log, dataset
        self._unspent, self._add = unspent, add
        self._sums, self._head = unspent(), START

    def up_to_date(self, account: Account, max_entries: int | None = None) -> Sums:
        """Add the next entries, all of them for None, and return the sums; inside a transaction."""
        try:
            for entry in islice(self._log.entries_after(self._head), max_entries):
                is_counted = entry.states_charges or entry.kind == TERMS
                if is_counted and entry.facts["dataset"] == self._dataset:
                    self._add(account, self._sums, entry)
                self._head = entry.chain_head
        except BaseException:
            # The last entry may be added without being noted, so the sums begin anew.
            self._sums, self._head = self._unspent(), START
            raise
        return self._sums

    @property
    def entries_behind(self) -> int:
        """Return how many entries the sums are behind the log; inside a transaction."""
        return self._log.head.seq - self._head.seq
