"""The account of one data set in a book: its budget, spent one durable entry at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from accountant.accountants.budget import Budget
from accountant.book.hash_chain import (
    FIRST_PREDECESSOR,
    ChainHead,
    LogEntry,
    canonical_json,
    digest,
)
from accountant.book.label_claim import LabelClaim
from accountant.book.log import Log
from accountant.book.log_reader import CHARGING_KINDS
from accountant.book.user_totals import UserTotals, decode_users, encode_users
from accountant.errors import LedgerCorrupt, OffPlan, ParameterError, UnhealthyRandomness
from accountant.formats.plan_json import from_dict, to_dict
from accountant.ledger.composition_notions import notion_of
from accountant.ledger.interfaces import Releasable
from accountant.ledger.private_data import Users
from accountant.ledger.totals import Total, largest_total
from accountant.plans.plan import Plan

FreshnessCheck = Callable[[], str]  # the fingerprint of fresh noise


class Account:
    """Spends the budget of one data set; its state is read from the log."""

    def __init__(self, log: Log, opened: LogEntry) -> None:
        self.log, facts = log, opened.facts
        self.name: str = facts["dataset"]
        self.users: int | None = facts["users"]
        self.unit: str = facts["unit"]
        self.opened: str = facts["time"]
        self.budget = Budget(facts["epsilon"], facts["delta"])
        self.notion = notion_of(facts["notion"], self.budget, facts["order"])
        self._user_totals = self.unspent_users()
        self._applied_head = ChainHead(0, FIRST_PREDECESSOR)
        self._described: dict[Plan, dict[str, Any]] = {}

    def total(self) -> Total[Any]:
        """Return what the user with the largest total spent; call it inside a transaction."""
        return self._total(self.log.last_charge(self.name))

    def _total(self, last: LogEntry | None) -> Total[Any]:
        return self.notion.zero if last is None else self.notion.decode(last.facts["total"])

    def unspent_users(self) -> UserTotals | None:
        """Return the users before any spend, or None for a data set without users."""
        return None if self.users is None else UserTotals(self.users, self.notion.zero)

    def user_totals(self) -> UserTotals:
        """Bring every user's total up to date and return them; inside a transaction."""
        if self._user_totals is None:
            raise ParameterError("name", self.name, "a data set opened with users=")
        for entry in self.log.entries_after(self._applied_head):
            if entry.kind in CHARGING_KINDS and entry.facts["dataset"] == self.name:
                self.apply(self._user_totals, entry)
            self._applied_head = entry.chain_head
        return self._user_totals

    def reserve(
        self,
        mechanism: Releasable,
        who: Users | None,
        facts: dict[str, Any],
        freshness_check: FreshnessCheck,
        label: LabelClaim | None = None,
    ) -> LogEntry:
        """Charge one release; it is on disk on return, and an error changes no state."""
        words, raw = (None, None) if who is None else encode_users(who)
        loss = mechanism.loss
        with self.log.writing():
            if label is not None:
                label.refuse_if_taken(self.log)
                facts = {**facts, "holder": label.holder}
            last = self.log.last_charge(self.name)
            total = self._total_after(last, loss, who)
            entry = self.log.append(
                "reserve",
                {
                    **facts,
                    "mechanism": self.description_of(mechanism),
                    "loss": self.description_of(loss),
                    "relation": self._relation(last, mechanism),
                    "cost": self.notion.encode(self.notion.cost(loss)),
                    "total": self.notion.encode(total),
                    "who": words,
                    "block": None if raw is None else digest(raw),
                },
                self.name,
                self._fresh(freshness_check()),
                None if label is None else label.key,
            )
            if raw is not None:
                self.log.attach(entry, raw)
        return entry

    def reserve_plan(self, plan: Plan, facts: dict[str, Any], key: str | None) -> LogEntry:
        """Charge a whole plan to all users; of a parallel, the largest part is charged.

        Where another process was the first to reserve a plan under the key, its entry is returned.
        """
        with self.log.writing():
            earlier = None if key is None else self.log.entry_with_key(key)
            if earlier is not None:
                return earlier
            last = self.log.last_charge(self.name)
            total = self._total_after(last, plan, None)
            whole = {
                **facts, "plan": to_dict(plan), "relation": self._relation(last, plan),
                "total": self.notion.encode(total),
            }  # fmt: skip
            return self.log.append("plan", whole, self.name, key)

    def reserve_step(
        self,
        mechanism: Releasable,
        who: Users | None,
        facts: dict[str, Any],
        freshness_check: FreshnessCheck,
        named: bool,
    ) -> LogEntry:
        """Record that a step, paid by its plan, is about to read the data."""
        words, raw = (None, None) if who is None else encode_users(who)
        key = canonical_json({"run": facts["run"], "step": facts["step"]}) if named else None
        with self.log.writing():
            if key is not None and self.log.entry_with_key(key) is not None:
                raise OffPlan(mechanism, None, "this run goes on in another process")
            whole = {
                **facts,
                "mechanism": self.description_of(mechanism),
                "who": words,
                "noise": freshness_check(),
                "block": None if raw is None else digest(raw),
            }
            entry = self.log.append("step", whole, self.name, key)
            if raw is not None:
                self.log.attach(entry, raw)
        return entry

    def answer(self, reserved: LogEntry, raw: bytes, key: str | None) -> LogEntry:
        """Store an answer and return its entry, or the earlier entry of the same key."""
        with self.log.writing():
            earlier = None if key is None else self.log.entry_with_key(key)
            if earlier is not None and earlier.kind == "release":
                return earlier
            facts = {"of": reserved.seq, "answer": digest(raw), "size": len(raw)}
            entry = self.log.append("release", facts, self.name, key)
            self.log.attach(entry, raw)
        return entry

    def fail(self, reserved: LogEntry, label: str | None = None) -> None:
        """Record that a charged release has no answer; the key of its label is free again."""
        with self.log.writing():
            last = None if label is None else self.log.entry_with_key(label)
            also = label if last is not None and last.seq == reserved.seq else None
            self.log.append("failed", {"of": reserved.seq}, self.name, also=also)

    def mark_seed(self, fingerprint: str) -> None:
        """Record a seeded noise stream; refuse one that was used before."""
        with self.log.writing():
            key = f"noise:{fingerprint}"
            if self.log.entry_in_column(key) is not None:
                allowed = "a seed that no release used before: the same noise twice cancels"
                raise ParameterError("rng", "one that this book has seen", allowed)
            self.log.append("seed", {}, self.name, key)

    def apply(self, user_totals: UserTotals, entry: LogEntry) -> None:
        """Add the cost of a log entry to its users' totals, without checking the limit."""
        facts = entry.facts
        if entry.kind == "plan":
            plan = from_dict(facts["plan"])
            user_totals.assign_totals(
                None, user_totals.totals_after(None, lambda total: self.notion.spend(total, plan))
            )
            return
        who = self.users_of(entry)
        cost = self.notion.decode(facts["cost"])
        user_totals.assign_totals(
            who, user_totals.totals_after(who, lambda total: self.notion.add(total, cost))
        )

    def users_of(self, entry: LogEntry) -> Users | None:
        """Return the users that an entry names; None means all users."""
        words, block = entry.facts["who"], entry.facts["block"]
        if words is None:
            return None
        raw = None if block is None else self.log.attachment(entry, block)
        try:
            return decode_users(words, raw)
        except (ValueError, TypeError):
            raise LedgerCorrupt(self.log.name, "names no users", entry.seq) from None

    def description_of(self, plan: Any) -> dict[str, Any]:
        """Return a mechanism or loss as plain values, or as its repr if it declares no fields."""
        known = self._described.get(plan)
        if known is None:
            try:
                known = to_dict(plan)
                canonical_json(known)
            except (ValueError, TypeError):
                known = {"repr": repr(plan)[:1000]}
            self._described[plan] = known
        return known

    def _total_after(self, last: LogEntry | None, asked: Plan, who: Users | None) -> Total[Any]:
        """Return the largest total of a user after the spend."""
        before = self._total(last)
        if self.users is None:
            return self.notion.spend(before, asked)
        ends = self.user_totals().totals_after(who, lambda total: self.notion.spend(total, asked))
        if not ends:  # no user answers, so no user pays
            self.notion.spend(self.notion.zero, asked)
        held = [before, *ends.values()]
        return largest_total(held)

    def _relation(self, last: LogEntry | None, asked: Any) -> str | None:
        """Return the neighbour relation of all spends so far; refuse a different one."""
        stated = {None if last is None else last.facts["relation"], asked.relation} - {None}
        if len(stated) > 1:
            allowed = "stated for the neighbours of earlier releases: relations do not mix"
            raise ParameterError("mechanism", " and ".join(sorted(map(str, stated))), allowed)
        return stated.pop() if stated else None

    def _fresh(self, fingerprint: str) -> str:
        key = f"noise:{fingerprint}"
        if self.log.entry_in_column(key) is not None:
            raise UnhealthyRandomness("this book has an earlier release with the same")
        return key
