"""What each author charged of a data set, and what the people of each bucket spent."""

from __future__ import annotations

from typing import Any

from accountant.book.account_state import PAID, START, AccountState
from accountant.book.chain.hash_chain import LogEntry
from accountant.book.limits.user_totals import UserTotals
from accountant.book.limits.windows import Parts, decoded, encoded
from accountant.book.log import Log
from accountant.book.log_reader import CHARGING_KINDS, TERMS, author_key, bucket_key
from accountant.errors import LedgerCorrupt
from accountant.ledger.totals import CompositionNotion, Total
from accountant.serialisation.plan_json import from_dict

Owns = dict[str, Parts | UserTotals]  # what each author charged, to each user where there are users


class AccountShares(AccountState):
    """The totals of authors, which quotas limit, and of buckets of people, which have a budget."""

    def __init__(self, log: Log, opened: LogEntry) -> None:
        super().__init__(log, opened)
        self._authors_head = self._buckets_head = START
        self._authors: Owns = {}
        self._buckets: dict[str, Total[Any]] = {}

    def read_ahead(self) -> None:
        """Bring totals nearly up to date, in transactions that hold no one up."""
        super().read_ahead()
        if self.users is not None:
            with self.log.reading():
                if self.follow_terms().quotas:
                    self.owns()

    def own_parts(self, notion: CompositionNotion[Any], author: str) -> Parts:
        """Return what an author charged, as the author's last entry states it, under quotas."""
        last_entry = self.log.entry_with_key(author_key(self.name, author))
        if last_entry is None:
            return {}
        if last_entry.facts["dataset"] != self.name or (
            last_entry.kind != TERMS and "own" not in last_entry.facts
        ):
            raise LedgerCorrupt(self.log.name, "does not say what an author spent", last_entry.seq)
        encoded_parts = (
            last_entry.facts["used"][author]
            if last_entry.kind == TERMS
            else last_entry.facts["own"]
        )
        return decoded(notion, encoded_parts)

    def add_own(self, owns: Owns, entry: LogEntry) -> None:
        """Add a charge to its author's charges; a plan that was set aside counts for no author."""
        facts, author = entry.facts, entry.facts["author"]
        notion = self.notion_in(facts)
        if self.users is not None:
            totals = owns.setdefault(author, UserTotals(self.users, notion.zero))
            if "runs" not in facts and isinstance(totals, UserTotals):
                self.apply(totals, entry)
            return
        own_parts = owns.get(author, {})

        def spend(total: Total[Any]) -> Total[Any]:
            if PAID in facts or "runs" in facts:
                return total
            if facts["kind"] == "plan":
                return self.total_after_plan(notion, total, from_dict(facts["plan"]), facts)
            return notion.add(total, notion.decode(facts["cost"]))

        if not isinstance(own_parts, UserTotals):
            owns[author] = self.parts_after(notion, own_parts, entry.latest, spend)

    def own_total(
        self, notion: CompositionNotion[Any], charged: Parts | UserTotals, now: str | None = None
    ) -> Total[Any]:
        """Return the total that counts for an author: with users, the largest total of a user."""
        if isinstance(charged, UserTotals):
            return charged.worst_total()
        return self.total_of(notion, charged, self.log.latest if now is None else now)

    def owns(self) -> Owns:
        """Return what every author charged, from all entries; call it inside a transaction."""
        try:
            for entry in self.log.entries_after(self._authors_head):
                if entry.kind in CHARGING_KINDS and entry.facts["dataset"] == self.name:
                    self.add_own(self._authors, entry)
                self._authors_head = entry.chain_head
        except BaseException:  # an entry may be added, and its number not noted yet
            self._authors, self._authors_head = {}, START
            raise
        return self._authors

    def stated_owns(self, notion: CompositionNotion[Any], owns: Owns) -> dict[str, Any]:
        """Return what each author charged, as an entry of terms states it."""
        return {
            author: notion.encode(charged.worst_total())
            if isinstance(charged, UserTotals)
            else encoded(notion, charged)
            for author, charged in owns.items()
        }

    def each_total(self) -> list[Total[Any]] | None:
        """Return the totals of users or buckets that have budgets of their own; else None."""
        if self.buckets is not None:
            return list(self.bucket_totals().values())
        return None if self.users is None else self.user_totals().totals

    def bucket_total(self, notion: CompositionNotion[Any], bucket: str) -> Total[Any]:
        """Return what the people of a bucket spent, as the bucket's last charge states it."""
        last_charge = self.log.entry_with_key(bucket_key(self.name, bucket))
        if last_charge is None:
            return notion.zero
        if last_charge.facts["dataset"] != self.name or bucket not in last_charge.facts.get(
            "buckets", {}
        ):
            raise LedgerCorrupt(self.log.name, "does not say what a bucket spent", last_charge.seq)
        return notion.decode(last_charge.facts["buckets"][bucket])

    def bucket_totals(self) -> dict[str, Total[Any]]:
        """Return what each bucket spent, from all entries; call it inside a transaction."""
        for entry in self.log.entries_after(self._buckets_head):
            if entry.kind in CHARGING_KINDS and entry.facts["dataset"] == self.name:
                for bucket, encoded_total in entry.facts["buckets"].items():
                    self._buckets[bucket] = self.notion.decode(encoded_total)
            self._buckets_head = entry.chain_head
        return self._buckets
