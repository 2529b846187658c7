"""What one charge adds to the totals of a data set, and what the charges of each author add up to.

A book may limit what one author spends of a data set: by a quota, next to the budget that protects
people and that all authors share.  An author's charges are added up as those of the data set are:
to a total for each user where users have budgets of their own, else to a total for each part of
time (`accountant.book.limits.windows`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from accountant.book.limits.user_totals import Spend, UserTotals
from accountant.book.limits.windows import WHOLE, Parts, Window, encoded
from accountant.ledger.private_data import Users
from accountant.ledger.totals import CompositionNotion, Total, largest_total


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
