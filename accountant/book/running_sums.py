"""Sums over the charges of one data set that follow the log, from its first entry on.

A book is a log of entries that only grows.  Some sums stand in no single entry, such as what each
user has spent: they are made from all entries once, and then brought up to date with the new ones.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Generic, TypeVar

from accountant.book.chain.entries import FIRST_PREDECESSOR, TERMS, ChainHead, LogEntry
from accountant.book.log import Log

START = ChainHead(0, FIRST_PREDECESSOR)  # the head of a log without entries
Account = TypeVar("Account")  # what reads the charges: `accountant.book.account.Account`
Sums = TypeVar("Sums")  # what charges add up to


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
