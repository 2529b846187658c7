"""Verification of quotas: what each author charged is added up anew, and compared with the limit.

A spend finds an author's quota and charges under the author's key (`accountant.book.quotas`).  The
verification uses no key: it keeps a dictionary of all quotas, and adds up the charges of every
author from the first entry of the log on.

Earlier versions listed all quotas in each entry of terms.  Today's code changes such a data set
over: it writes one entry for each quota of the list, under the key of its author.  A correction of
the log's clock moves charges to other windows; then the quotas of the authors who made them are
stated anew, too.  No charge may come before the last of these entries: it could miss a quota.
"""

from __future__ import annotations

from typing import Any

from accountant.book.account import Account
from accountant.book.chain.entries import CHARGING_KINDS, START, LogEntry
from accountant.book.limits.terms import Terms
from accountant.book.limits.windows import Parts, decoded, encoded
from accountant.book.quotas import is_over
from accountant.errors import LedgerCorrupt
from accountant.ledger.totals import CompositionNotion


class QuotaCheck:
    """Checks in turn what entries of one data set state of quotas and of the authors' charges."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._authors = account.uncharged_authors()
        self._quotas: dict[str, float] = {}  # by author, of entries under authors' keys
        self._unstated: dict[str, float] = {}  # the quotas that the next entries must state

    def check_change(
        self, entry: LogEntry, notion: CompositionNotion[Any], old_terms: Terms, terms: Terms
    ) -> None:
        """Check an entry that sets, or states anew, the quota of one author."""
        facts, whose, account = entry.facts, entry.facts["whose"], self._account
        is_first_quota = not old_terms.has_quotas
        # With users the authors' charges were not added up before the first quota.
        if is_first_quota and account.users is not None:
            for earlier in account.log.entries_after(START):
                if earlier.seq >= entry.seq:
                    break
                if earlier.kind in CHARGING_KINDS and earlier.facts["dataset"] == account.name:
                    account.charge_author(self._authors, earlier)
        if "quota" not in facts:
            listed = {**old_terms.listed_quotas, whose: facts["quotas"][whose]}
            if listed != terms.listed_quotas or terms.limited_authors:
                self._refuse("changes other terms than it says", entry)
            charged = self._authors.encoded(notion) if is_first_quota else {}
            self._check_used(entry, notion, charged)
            return
        if old_terms.listed_quotas:
            self._unstated = dict(old_terms.listed_quotas)
        if self._unstated and self._unstated.pop(whose, None) != facts["quota"]:
            self._refuse("comes before other quotas have an entry under a key", entry)
        self._quotas[whose] = facts["quota"]
        if terms.listed_quotas or terms.limited_authors != len(self._quotas):
            self._refuse("changes other terms than it says", entry)
        self._check_used(entry, notion, {})
        if decoded(notion, facts["own"]) != self._authors.parts(whose):
            self._refuse("does not say what its author spent before", entry)

    def check_correction(
        self, entry: LogEntry, notion: CompositionNotion[Any], terms: Terms
    ) -> None:
        """Check an entry that counts windows anew: what authors charged moves with the windows."""
        self.refuse_unstated(entry)
        changed = self._authors.correct(self._account.notion, entry.window_time)
        self._unstated = {
            author: self._quotas[author] for author in changed if author in self._quotas
        }
        charged = self._authors.encoded(notion) if terms.listed_quotas else {}
        self._check_used(entry, notion, charged)

    def check_charge(self, entry: LogEntry) -> None:
        """Check what a charge says of its author's charges so far, and that they fit the quota."""
        account, author, facts = self._account, entry.facts["author"], entry.facts
        terms, notion = account.terms, account.notion_in(facts)
        before_parts = self._authors.parts(author)
        is_limited = bool(terms.listed_quotas) or author in self._quotas
        if is_limited and account.users is not None:
            before, after = self._authors.largest_of_payers(author, account.charge_of(entry))
        # With users these sums take long, so they are only made while the data set has quotas.  The
        # first quota makes up for the charges before it (`_charge_earlier`).
        if account.users is None or terms.has_quotas:
            account.charge_author(self._authors, entry)
        if is_limited != (facts.get("own") is not None):
            self._refuse("does not say what its author spent", entry)
        if facts.get("quota") != self._quotas.get(author):
            self._refuse("does not say the quota of its author", entry)
        if not is_limited:
            return
        parts = self._authors.parts(author)
        if facts["own"] != encoded(notion, parts) and decoded(notion, facts["own"]) != parts:
            self._refuse("what its author spent is not the sum of it", entry)
        if account.users is None:
            before = account.total_of(notion, before_parts, entry.window_time)
            after = account.total_of(notion, parts, entry.window_time)
        quota = self._quotas.get(author, terms.listed_quotas.get(author))
        # A quota may be set below what was spent; then only what costs nothing is still charged.
        if quota is not None and after != before and is_over(quota, notion, after):
            self._refuse("spends more than the quota of its author", entry)

    def refuse_unstated(self, entry: LogEntry) -> None:
        """Raise `LedgerCorrupt` where an entry comes before all quotas are found under keys."""
        if self._unstated:
            self._refuse("comes before other quotas have an entry under a key", entry)

    def _check_used(
        self, entry: LogEntry, notion: CompositionNotion[Any], charged: dict[str, Any]
    ) -> None:
        """Check that an entry of terms says what each author spent, where earlier versions did."""
        stated = entry.facts.get("used", {})
        if _decoded_by_author(notion, stated) != _decoded_by_author(notion, charged):
            self._refuse("does not say what each author spent before", entry)

    def _refuse(self, why: str, entry: LogEntry) -> None:
        raise LedgerCorrupt(self._account.log.name, why, entry.seq)


def _decoded_by_author(
    notion: CompositionNotion[Any], encoded_by_author: dict[str, Any]
) -> dict[str, Parts]:
    """Return the parts of each author, decoded."""
    return {author: decoded(notion, parts) for author, parts in encoded_by_author.items()}
