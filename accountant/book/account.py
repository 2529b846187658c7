"""The account of one data set in a book: its budget, spent one durable entry at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from accountant.accountants.tight import Tight
from accountant.book.account_state import AFTER_PLAN, MOST_READ_IN_LOCK, AccountState, Standing
from accountant.book.chain.hash_chain import (
    LogEntry,
    canonical_json,
    digest,
)
from accountant.book.label_claim import LabelClaim
from accountant.book.limits.user_totals import encode_users
from accountant.book.log import Log
from accountant.errors import (
    BudgetExceeded,
    OffPlan,
    ParameterError,
    UnhealthyRandomness,
    UnsupportedPlan,
)
from accountant.formats.plan_json import to_dict
from accountant.ledger.certified_plan import certified_total
from accountant.ledger.interfaces import Releasable, charged_plan
from accountant.ledger.private_copies import shown
from accountant.ledger.private_data import Users
from accountant.ledger.totals import CompositionNotion, Total, largest_total
from accountant.plans.adjacency import joint_relation
from accountant.plans.declared_releases import idealised_part
from accountant.plans.plan import Plan, as_plan

FreshnessCheck = Callable[[], str]  # the fingerprint of fresh noise
ATTEMPTS = 3


class Account(AccountState):
    """Spends the budget of one data set; its state is read from the log."""

    def __init__(self, log: Log, opened: LogEntry) -> None:
        super().__init__(log, opened)
        self._described: dict[tuple[type[Any], Plan], dict[str, Any]] = {}

    @contextmanager
    def _charging(self) -> Iterator[None]:
        """Open a transaction that charges; few entries are left to read while it holds the lock."""
        for attempt in range(ATTEMPTS):
            with self.log.writing():
                if self.entries_behind() <= MOST_READ_IN_LOCK or attempt == ATTEMPTS - 1:
                    yield
                    return
            self.read_ahead()

    def reserve(
        self,
        mechanism: Releasable,
        who: Users | None,
        facts: dict[str, Any],
        freshness_check: FreshnessCheck,
        label: LabelClaim | None = None,
    ) -> LogEntry:
        """Charge one release; it is on disk on return, and an error changes no state."""
        self._refuse_idealised(mechanism)
        words, raw = (None, None) if who is None else encode_users(who)
        loss = charged_plan(mechanism)
        with self._charging():
            if label is not None:
                label.refuse_if_taken(self.log)
                facts = {**facts, "holder": label.holder}
            self._refuse_if_over()
            last = self.log.last_charge(self.name)
            notion, total = self._standing_with(last, as_plan(mechanism), loss, who)
            cost = notion.cost(loss)
            entry = self.log.append(
                "reserve",
                {
                    **facts,
                    "mechanism": self.description_of(mechanism),
                    "loss": self.description_of(loss),
                    "relation": self._relation(last, mechanism),
                    "cost": notion.encode(cost),
                    "total": notion.encode(total),
                    **self._within_quota(notion, lambda held: notion.add(held, cost)),
                    **self._counting(notion),
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

        A first plan whose sum does not fit is charged its certified epsilon.
        Where another process was the first to reserve a plan under the key, its entry is returned.
        """
        self._refuse_idealised(plan)
        with self.log.reading():
            self.follow_terms()
            unspent = self.log.last_charge(self.name) is None
        # before the lock, which others wait for
        certified = self._certified_epsilon(plan) if unspent else math.inf
        with self._charging():
            earlier = None if key is None else self.log.entry_with_key(key)
            if earlier is not None:
                return earlier
            self._refuse_if_over()
            last = self.log.last_charge(self.name)
            notion, total = self._standing_with_plan(last, plan, certified)
            whole = {
                **facts, "plan": to_dict(plan), "relation": self._relation(last, plan),
                "total": notion.encode(total), **self._counting(notion),
            }  # fmt: skip
            if last is None and notion is self._after_plan:
                whole["certified"] = certified
            whole |= self._within_quota(
                notion, lambda held: self.total_after_plan(notion, held, plan, whole)
            )
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
        self._refuse_idealised(mechanism)
        words, raw = (None, None) if who is None else encode_users(who)
        key = canonical_json({"run": facts["run"], "step": facts["step"]}) if named else None
        with self.log.writing():
            if key is not None and self.log.entry_with_key(key) is not None:
                raise OffPlan(mechanism, None, "this run goes on in another process")
            self._refuse_if_over()
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

    def _refuse_if_over(self) -> None:
        """Refuse to spend or to look after the end; inside the transaction that would."""
        self.follow_terms().refuse_if_over(self.name, self.log.latest)

    def _within_quota(
        self, notion: CompositionNotion[Any], spend: Callable[[Total[Any]], Total[Any]]
    ) -> dict[str, list[str]]:
        """Return what the author has charged after a spend; refuse more than the author's quota."""
        if not self.terms.quotas:
            return {}
        before = self.own_total(notion, self.log.author)
        after = spend(before)
        self.terms.refuse_over_quota(self.log.author, notion, before, after)
        return {"own": notion.encode(after)}

    def _refuse_idealised(self, plan: Any) -> None:
        """Refuse noise that floats decide, unless the data set was opened to take it.

        Stored answers are given all the same: nothing is reserved for them.
        """
        part = None if self.idealised else idealised_part(plan)
        if part is not None:
            allowed = 'of arithmetic="exact", as the last digits of floats can reveal the data; '
            allowed += "a data set opened with idealised=True takes idealised noise too"
            raise ParameterError("mechanism", shown(part), allowed)

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

    def description_of(self, plan: Any) -> dict[str, Any]:
        """Return a mechanism or loss as plain values, or as its repr if it declares no fields."""
        key = type(plan), plan  # what an undeclared class says of equality is not asked
        known = self._described.get(key)
        if known is None:
            try:
                known = to_dict(plan)
                canonical_json(known)
            except (ValueError, TypeError):
                known = {"repr": repr(plan)[:1000]}
            self._described[key] = known
        return known

    def _standing_with(
        self, last: LogEntry | None, mechanism: Plan, charged: Plan, who: Users | None
    ) -> Standing:
        """Return the largest total of a user after the spend; refuse one that does not fit."""
        notion, before = self.standing_after(last)

        def spend(total: Total[Any]) -> Total[Any]:
            return notion.spend(total, charged, asked=mechanism)

        if self.users is None:
            return Standing(notion, spend(before))
        ends = self.user_totals().totals_after(who, spend)
        if not ends:  # no user answers, so no user pays
            spend(notion.zero)
        return Standing(notion, largest_total([before, *ends.values()]))

    def _standing_with_plan(self, last: LogEntry | None, plan: Plan, certified: float) -> Standing:
        """Return the standing after a plan: the sum, or where it does not fit the certificate."""
        try:
            return self._standing_with(last, plan, plan, None)
        except (BudgetExceeded, UnsupportedPlan):
            whole = certified_total(certified)
            if last is not None or self._after_plan.exceeds(whole):
                raise
            return Standing(self._after_plan, whole)

    def _certified_epsilon(self, plan: Plan) -> float:
        """Return the epsilon of a first plan whose sum does not fit; infinite where it fits."""
        try:
            if not self.notion.refuses(self.notion.zero, self.notion.cost(plan)):
                return math.inf
        except UnsupportedPlan:
            pass
        return Tight().epsilon(plan, self.budget.delta)

    def _counting(self, notion: CompositionNotion[Any]) -> dict[str, str]:
        return {"counting": AFTER_PLAN} if notion is self._after_plan else {}

    def _relation(self, last: LogEntry | None, asked: Any) -> str | None:
        """Return the neighbour relation of all spends so far; refuse a different one."""
        return joint_relation(None if last is None else last.facts["relation"], asked)

    def _fresh(self, fingerprint: str) -> str:
        key = f"noise:{fingerprint}"
        if self.log.entry_in_column(key) is not None:
            raise UnhealthyRandomness("this book has an earlier release with the same")
        return key
