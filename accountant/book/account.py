"""The account of one data set in a book: its budget, spent one durable entry at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from accountant.book.account_charges import AccountCharges
from accountant.book.account_state import MOST_READ_IN_LOCK, PAID
from accountant.book.chain.hash_chain import (
    LogEntry,
    canonical_json,
    digest,
)
from accountant.book.label_claim import LabelClaim
from accountant.book.limits.plan_proofs import (
    proof_for,
    refuse_above,
    refuse_unplanned,
    refuse_unproved,
)
from accountant.book.limits.user_totals import encode_users
from accountant.book.log import Log
from accountant.errors import (
    OffPlan,
    ParameterError,
)
from accountant.ledger.interfaces import Releasable, charged_plan
from accountant.ledger.private_data import Users
from accountant.ledger.totals import Total
from accountant.plans.plan import Plan, Repeat, as_plan
from accountant.proofs.checked_proof import CheckedProof, Proof
from accountant.serialisation.plan_json import to_dict

FreshnessCheck = Callable[[], str]  # the fingerprint of fresh noise
ATTEMPTS = 3


class Account(AccountCharges):
    """Spends the budget of one data set; its state is read from the log."""

    def __init__(self, log: Log, opened: LogEntry) -> None:
        super().__init__(log, opened)
        self._described: dict[tuple[type[Any], Plan], dict[str, Any]] = {}

    @contextmanager
    def _charging(self) -> Iterator[None]:
        """Open a transaction that charges; it reads few entries while it holds the lock."""
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
        self.refuse_idealised(mechanism)
        # facts with a run are of a planned step that is released again after a crash
        if self.verified and "run" not in facts:
            refuse_unplanned()
        encoded_users, raw = (None, None) if who is None else encode_users(who)
        loss = charged_plan(mechanism)
        with self._charging():
            if label is not None:
                label.refuse_if_taken(self.log)
                facts = {**facts, "holder": label.holder}
            self.refuse_if_over()
            last_charge = self.log.last_charge(self.name)
            notion, stated = self.charge(last_charge, as_plan(mechanism), loss, who, facts)
            cost = notion.cost(loss)
            entry = self.log.append(
                "reserve",
                {
                    **facts,
                    "mechanism": self.description_of(mechanism),
                    "loss": self.description_of(loss),
                    "relation": self.relation(last_charge, mechanism),
                    "cost": notion.encode(cost),
                    **stated,
                    **self.within_quota(notion, who, lambda total: notion.add(total, cost)),
                    **self.counting(notion),
                    "who": encoded_users,
                    "block": None if raw is None else digest(raw),
                },
                self.name,
                self.fresh(freshness_check()),
                None if label is None else label.key,
            )
            if raw is not None:
                self.log.attach(entry, raw)
        return entry

    def reserve_plan(
        self,
        plan: Plan,
        facts: dict[str, Any],
        key: str | None,
        proof: Proof | CheckedProof | None = None,
        verified: bool = False,
    ) -> LogEntry:
        """Charge a whole plan to all users; of parallel parts the most expensive one is charged.

        A first plan whose sum does not fit is charged its certified epsilon.  With ``verified``, or
        where the data set was opened so, it is charged only with a proof that checks.
        Where another process was the first to reserve a plan under the key, its entry is returned.
        """
        self.refuse_idealised(plan)
        with self.log.reading():
            self.follow_terms()
            unspent = self.log.last_charge(self.name) is None
            paid_for = self.free_runs(plan) > 0
        verified = verified or self.verified
        # before the lock, which others wait for
        proved = proof_for(plan, self.budget, proof, verified and not paid_for)
        certified = self.certified_epsilon(plan) if unspent else math.inf
        with self._charging():
            earlier = None if key is None else self.log.entry_with_key(key)
            if earlier is not None:
                return earlier
            self.refuse_if_over()
            paid = self.next_run_set_aside(plan)
            if not paid and proved is not None:  # the budget may have changed since the reading
                refuse_above(proved, self.budget)
            elif not paid and verified:
                refuse_unproved(self.budget)
            return self._append_plan(plan, {**facts, **paid}, certified, key, proved)

    def set_aside(
        self, plan: Plan, runs: int, certified: float, proved: CheckedProof | None = None
    ) -> None:
        """Charge all runs of a plan at once, inside the transaction that opens the data set."""
        self.refuse_idealised(plan)
        all_runs = plan if runs == 1 else Repeat(plan, runs)
        self._append_plan(
            all_runs, {"run": None, "coins": [], "runs": runs}, certified, None, proved
        )

    def _append_plan(
        self,
        plan: Plan,
        facts: dict[str, Any],
        certified: float,
        key: str | None,
        proved: CheckedProof | None,
    ) -> LogEntry:
        """Append the charge of a plan, or of a run that was set aside, which costs no more."""
        if proved is not None:
            facts = {**facts, "proof": proved.facts()}
            certified = max(certified, proved.epsilon)
        last_charge = self.log.last_charge(self.name)
        entry_facts = {**facts, "plan": to_dict(plan), "relation": self.relation(last_charge, plan)}
        notion, _ = self.standing_after(last_charge)
        if PAID in facts and last_charge is not None:
            entry_facts |= {"total": last_charge.facts["total"], **self.counting(notion)}
        else:
            notion, stated = self.charge_plan(last_charge, plan, certified, facts)
            entry_facts |= {**stated, **self.counting(notion)}
            if last_charge is None and notion is self._after_plan:
                entry_facts["certified"] = certified

        def spend(total: Total[Any]) -> Total[Any]:
            return (
                total if PAID in facts else self.total_after_plan(notion, total, plan, entry_facts)
            )

        entry_facts |= self.within_quota(notion, None, spend)
        return self.log.append("plan", entry_facts, self.name, key)

    def reserve_step(
        self,
        mechanism: Releasable,
        who: Users | None,
        facts: dict[str, Any],
        freshness_check: FreshnessCheck,
        named: bool,
    ) -> LogEntry:
        """Record that a step, paid by its plan, is about to read the data."""
        self.refuse_idealised(mechanism)
        encoded_users, raw = (None, None) if who is None else encode_users(who)
        key = canonical_json({"run": facts["run"], "step": facts["step"]}) if named else None
        with self.log.writing():
            self.refuse_run_of_other_window(mechanism, facts["run"])
            if key is not None and self.log.entry_with_key(key) is not None:
                raise OffPlan(mechanism, None, "this run goes on in another process")
            self.refuse_if_over()
            entry_facts = {
                **facts,
                "mechanism": self.description_of(mechanism),
                "who": encoded_users,
                "noise": freshness_check(),
                "block": None if raw is None else digest(raw),
            }
            entry = self.log.append("step", entry_facts, self.name, key)
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
            labelled_entry = None if label is None else self.log.entry_with_key(label)
            also = (
                label if labelled_entry is not None and labelled_entry.seq == reserved.seq else None
            )
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
        key = type(plan), plan  # the type first, so that no undeclared class decides on equality
        description = self._described.get(key)
        if description is None:
            try:
                description = to_dict(plan)
                canonical_json(description)
            except (ValueError, TypeError):
                description = {"repr": repr(plan)[:1000]}
            self._described[key] = description
        return description
