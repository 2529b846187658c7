"""Verification of terms: each change was allowed, and each spend kept the terms in force."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from accountant.book.account import Account
from accountant.book.account_state import Standing
from accountant.book.chain.hash_chain import LogEntry
from accountant.book.limits.terms import CHANGES, Terms, exceeds_every_way
from accountant.book.limits.user_totals import UserTotals
from accountant.book.log_reader import CHARGING_KINDS
from accountant.errors import DatasetClosed, LedgerCorrupt
from accountant.ledger.totals import Total


class TermsCheck:
    """Reads along a log whose hashes are right, and folds the terms of each data set in order."""

    def __init__(self, book: str) -> None:
        self._book, self._latest = book, ""
        self._own: defaultdict[str, dict[str, Total[Any]]] = defaultdict(dict)  # of each author
        self._timed = False  # whether some terms depend on the time

    def check_time(self, entry: LogEntry) -> None:
        """Check that the time which decides on what has expired does not run back.

        Entries that were written before any data set could expire did not note the latest time.
        """
        if self._timed and entry.latest < self._latest:
            self._refuse("its time is before that of the entry before", entry)
        self._latest = max(entry.latest, entry.facts["time"])
        self._timed |= entry.facts.get("expires") is not None

    def check_change(
        self, account: Account, entry: LogEntry, before: Standing, users: UserTotals | None
    ) -> Standing:
        """Check an entry that changes the terms, adopt them, and return the standing under them."""
        held, terms = account.terms, Terms.of(entry.facts)
        if held.closed:
            self._refuse("changes the terms of a data set that was closed", entry)
        change = entry.facts["change"]
        kept = [held.facts() | dict.fromkeys(CHANGES.get(change, ())) for held in (held, terms)]
        if change not in CHANGES or kept[0] != kept[1]:
            self._refuse("changes other terms than it says", entry)
        if change == "quota":
            self._check_quota(account, entry, before, users)
        if not terms.reason:
            self._refuse("changes the terms without a reason", entry)
        if terms.budget.delta < held.budget.delta:
            self._refuse("lowers a delta that spends relied on", entry)
        beside_plan = before.notion is not account.notion
        account.adopt(terms)
        after = Standing(account.notions_of(terms.budget)[beside_plan], before.total)
        if exceeds_every_way(*after, None if users is None else users.totals):
            self._refuse("lowers the budget below what was spent", entry)
        return after

    def check_spend(self, account: Account, entry: LogEntry) -> None:
        """Check that a spend, or a step of a plan, came before the end of its data set."""
        try:
            account.terms.refuse_if_over(account.name, entry.latest)
        except DatasetClosed:
            self._refuse("was made after its data set was closed or had expired", entry)
        if entry.kind in CHARGING_KINDS and account.users is None:
            self._check_own(account, entry)

    def _check_own(self, account: Account, entry: LogEntry) -> None:
        """Check what a charge says of its author's own total, while there are quotas."""
        author, facts, own = entry.facts["author"], entry.facts, self._own[account.name]
        own[author] = after = account.own_after(own.get(author), facts)
        notion = account.notion_in(facts)
        if not account.terms.quotas:
            return
        if facts["own"] != notion.encode(after) and notion.decode(facts["own"]) != after:
            self._refuse("what its author spent is not the sum of it", entry)
        if account.terms.is_over_quota(author, notion, after):
            self._refuse("spends more than the quota of its author", entry)

    def _check_quota(
        self, account: Account, entry: LogEntry, before: Standing, users: UserTotals | None
    ) -> None:
        """Check that a quota changes that of one author, and where all authors stand at first."""
        held, facts, notion = account.terms.quotas, entry.facts, before.notion
        whose = {facts["whose"]: facts["quotas"][facts["whose"]]}
        if users is not None or {**held, **whose} != facts["quotas"]:
            self._refuse("changes other terms than it says", entry)
        used = {one: notion.decode(words) for one, words in facts.get("used", {}).items()}
        if used != ({} if held else self._own[account.name]):
            self._refuse("does not say what each author spent before", entry)

    def _refuse(self, why: str, entry: LogEntry) -> None:
        raise LedgerCorrupt(self._book, why, entry.seq)
