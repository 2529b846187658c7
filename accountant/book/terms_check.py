"""Verification of terms: each change was allowed, and each spend kept the terms in force."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from accountant.book.account import START, Account, Owns, Standing
from accountant.book.chain.entries import CHARGING_KINDS, LogEntry
from accountant.book.limits.terms import CHANGES, Terms, exceeds_every_way
from accountant.book.limits.user_totals import UserTotals
from accountant.book.limits.windows import WHOLE, Parts, decoded, encoded
from accountant.errors import DatasetClosed, LedgerCorrupt
from accountant.ledger.totals import CompositionNotion, Total


class TermsCheck:
    """Reads along a log whose hashes are right, and folds the terms of each data set in order."""

    def __init__(self, book: str) -> None:
        self._book, self._latest = book, ""
        # what each author charged, by data set
        self._charged_by_author: defaultdict[str, Owns] = defaultdict(dict)
        self._timed = False  # whether some terms depend on the time

    def check_time(self, entry: LogEntry) -> None:
        """Check that the time which decides on what has expired does not run back.

        Entries that were written before any data set could expire did not note the latest time.
        """
        if self._timed and entry.latest < self._latest:
            self._refuse("its time is before that of the entry before", entry)
        self._latest = max(entry.latest, entry.facts["time"])
        self._timed |= entry.facts.get("expires") is not None or "window" in entry.facts

    def check_change(
        self,
        account: Account,
        entry: LogEntry,
        before: Standing,
        class_totals: list[Total[Any]] | None,
        last_charge: LogEntry | None,
    ) -> Standing:
        """Check an entry that changes the terms, adopt them, and return the standing under them."""
        old_terms, terms = account.terms, Terms.of(entry.facts)
        if old_terms.closed:
            self._refuse("changes the terms of a data set that was closed", entry)
        change = entry.facts["change"]
        unchanged_facts = [
            version.facts() | dict.fromkeys(CHANGES.get(change, ()))
            for version in (old_terms, terms)
        ]
        if change not in CHANGES or unchanged_facts[0] != unchanged_facts[1]:
            self._refuse("changes other terms than it says", entry)
        if change == "quota":
            self._check_quota(account, entry, before)
        if not terms.reason:
            self._refuse("changes the terms without a reason", entry)
        if terms.budget.delta < old_terms.budget.delta:
            self._refuse("lowers a delta that spends relied on", entry)
        if account.window is not None and terms.largest != max(
            old_terms.largest, terms.budget.epsilon
        ):
            self._refuse("does not say the largest budget that a window had", entry)
        after_plan = account.counts_after_plan(before.notion)
        if account.window is not None:
            before = account.standing_after(last_charge, entry.latest)
        account.adopt(terms)
        notions = account.notions_of(terms.budget)
        notion = account.limit_under(notions, after_plan, last_charge, entry.latest)
        after = Standing(notion, before.total)
        if exceeds_every_way(*after, class_totals):
            self._refuse("lowers the budget below what was spent", entry)
        return after

    def check_spend(self, account: Account, entry: LogEntry) -> None:
        """Check that a spend, or a step of a plan, came before the end of its data set."""
        try:
            account.terms.refuse_if_over(account.name, entry.latest)
        except DatasetClosed:
            self._refuse("was made after its data set was closed or had expired", entry)
        if entry.kind in CHARGING_KINDS:
            self._check_own(account, entry)
        elif account.window is not None:
            paid = account.log.entry(entry.facts["run"]).latest
            if account.window.label(paid) != account.window.label(entry.latest):
                self._refuse("was made in another window than the one that paid for it", entry)

    def _check_own(self, account: Account, entry: LogEntry) -> None:
        """Check what a charge says of its author's own total, while there are quotas."""
        author, facts = entry.facts["author"], entry.facts
        charged_by_author = self._charged_by_author[account.name]
        if account.users is None or account.terms.quotas:  # with users the sums take long
            account.add_own(charged_by_author, entry)
        if not account.terms.quotas:
            return
        notion, charged = account.notion_in(facts), charged_by_author[author]
        after = {WHOLE: charged.worst_total()} if isinstance(charged, UserTotals) else charged
        if facts["own"] != encoded(notion, after) and decoded(notion, facts["own"]) != after:
            self._refuse("what its author spent is not the sum of it", entry)
        spent = account.own_total(notion, charged, entry.latest)
        if account.terms.is_over_quota(author, notion, spent):
            self._refuse("spends more than the quota of its author", entry)

    def _check_quota(self, account: Account, entry: LogEntry, before: Standing) -> None:
        """Check that one author's quota changes; the first quota also states what all spent."""
        quotas, facts, notion = account.terms.quotas, entry.facts, before.notion
        whose = {facts["whose"]: facts["quotas"][facts["whose"]]}
        if {**quotas, **whose} != facts["quotas"]:
            self._refuse("changes other terms than it says", entry)
        charged_by_author = self._charged_by_author[account.name]
        if account.users is not None and not quotas:
            for earlier in account.log.entries_after(START):
                if earlier.seq >= entry.seq:
                    break
                if earlier.kind in CHARGING_KINDS and earlier.facts["dataset"] == account.name:
                    account.add_own(charged_by_author, earlier)
        stated = facts.get("used", {})
        spent = {} if quotas else account.stated_owns(notion, charged_by_author)
        if _decoded_by_author(notion, stated) != _decoded_by_author(notion, spent):
            self._refuse("does not say what each author spent before", entry)

    def _refuse(self, why: str, entry: LogEntry) -> None:
        raise LedgerCorrupt(self._book, why, entry.seq)


def _decoded_by_author(
    notion: CompositionNotion[Any], encoded_by_author: dict[str, Any]
) -> dict[str, Parts]:
    """Return the parts of each author, decoded."""
    return {author: decoded(notion, parts) for author, parts in encoded_by_author.items()}
