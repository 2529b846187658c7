"""Spending the budget of a data set: entries that charge it, and entries that answer.

A reservation is on disk before the data are read, and its answer before it is returned.  A plan is
charged as a whole; its steps are then recorded, and cost nothing.

Costs add up in the *notion* of the data set (pure privacy, zCDP, ...).  A first plan whose sum does
not fit may be charged its *certified* epsilon instead, which is that of the whole plan.  An entry
may have a *key*, under which it is found again, and under which no second one is written.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from accountant.book.account import MOST_READ_IN_LOCK, Account
from accountant.book.chain.entries import PAID, LogEntry, digest, step_key
from accountant.book.label_claim import LabelClaim, LabelTaken, process_here
from accountant.book.limits.charges import Charge
from accountant.book.limits.plan_proofs import (
    proof_for,
    refuse_above,
    refuse_unplanned,
    refuse_unproved,
)
from accountant.book.limits.windows import encoded
from accountant.book.quotas import own_facts
from accountant.book.stored_values import encode_users
from accountant.errors import (
    BudgetExceeded,
    OffPlan,
    ParameterError,
    UnhealthyRandomness,
    UnsupportedPlan,
)
from accountant.ledger.composition_notions import certified_total, exact_where_sums_exceed
from accountant.ledger.interfaces import Releasable, charged_plan
from accountant.ledger.private_copies import shown
from accountant.ledger.private_data import Users
from accountant.ledger.totals import CompositionNotion, Total, largest_total
from accountant.plans.adjacency import joint_relation
from accountant.plans.declared_releases import idealised_part
from accountant.plans.plan import Plan, Repeat, as_plan
from accountant.proofs.checked_proof import CheckedProof, Proof
from accountant.serialisation.plan_json import to_dict

FreshnessCheck = Callable[[], str]  # returns the fingerprint of fresh noise
# Transactions of one charge that may find more entries to read than the lock of writers allows.
# Each but the last is given up, to read them outside of the lock; the last reads them inside it.
ATTEMPTS = 3


# The hashes of the reservations of steps of named runs that threads of this process are answering.
# Another thread that opens the same run waits for these, and not for what an exception left behind.
STEPS_IN_PROGRESS: set[str] = set()


class Reservations:
    """Charges the account of one data set, one durable entry at a time, and stores the answers."""

    def __init__(self, account: Account) -> None:
        self.account, self._log = account, account.log

    # --- single releases

    def reserve(
        self,
        mechanism: Releasable,
        who: Users | None,
        facts: dict[str, Any],
        freshness_check: FreshnessCheck,
        label: LabelClaim | None = None,
    ) -> LogEntry:
        """Charge one release; it is on disk on return, and an error changes no state."""
        account = self.account
        self.refuse_idealised(mechanism)
        # Facts with a run are those of a step of a plan, which is released again after a crash.
        if account.verified and "run" not in facts:
            refuse_unplanned()
        users = encode_users(who)
        loss = charged_plan(mechanism)
        with self._charging():
            if label is not None:
                label.refuse_if_taken(self._log)
                facts = {**facts, "holder": label.holder}
            self._refuse_if_over()
            last_charge = account.last_charge()
            # The entry states the cost of the release, and totals that are larger by this cost.
            notion, stated = self._charge(
                last_charge,
                as_plan(mechanism),
                lambda notion, total: notion.add(total, notion.cost(loss)),
                who,
                facts,
            )
            cost = notion.cost(loss)
            entry_facts = {
                **facts,
                "mechanism": account.description_of(mechanism),
                "loss": account.description_of(loss),
                "relation": self._relation(last_charge, mechanism),
                "cost": notion.encode(cost),
                **stated,
                **self._own_facts(
                    Charge(
                        notion, lambda total: notion.add(total, cost), who, self._log.times.window
                    )
                ),
                **account.counting(notion),
                **users.facts(),
            }
            noise_key = f"noise:{freshness_check()}"
            if self._log.entry_in_column(noise_key) is not None:
                raise UnhealthyRandomness("this book has an earlier release with the same")
            label_key = None if label is None else label.key
            entry = self._log.append("reserve", entry_facts, account.name, noise_key, label_key)
            STEPS_IN_PROGRESS.add(entry.hash)  # before others can see the entry
            if users.raw is not None:
                self._log.attach(entry, users.raw)
        return entry

    # --- plans, and their steps

    def reserve_plan(
        self,
        plan: Plan,
        facts: dict[str, Any],
        key: str | None,
        proof: Proof | CheckedProof | None,
        verified: bool,
    ) -> LogEntry:
        """Charge a whole plan to all users; of parallel parts the most expensive one is charged.

        A first plan whose sum does not fit is charged its certified epsilon.  With ``verified``, or
        where the data set was opened so, it is charged only with a proof that checks.
        Where another process was the first to reserve a plan under the key, its entry is returned.
        """
        account = self.account
        self.refuse_idealised(plan)
        with self._log.reading():
            account.follow_terms()
            unspent = account.last_charge() is None
            paid_for = account.free_runs(plan) > 0
        verified = verified or account.verified
        # Proofs and certified costs take long, so they come before the lock that others wait for.
        proved = proof_for(plan, account.budget, proof, verified and not paid_for)
        # With windows or buckets all plans are added up.
        has_one_total = account.window is None and account.buckets is None
        certified = math.inf
        if unspent and has_one_total:
            certified = exact_where_sums_exceed(account.notion, plan)
        with self._charging():
            earlier = None if key is None else self._log.entry_with_key(key)
            if earlier is not None:
                return earlier
            self._refuse_if_over()
            paid = account.next_run(plan)
            if not paid and proved is not None:  # the budget may have changed since the reading
                refuse_above(proved, account.budget)
            elif not paid and verified:
                refuse_unproved(account.budget)
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
        account = self.account
        if proved is not None:
            facts = {**facts, "proof": proved.facts()}
            certified = max(certified, proved.epsilon)
        last_charge = account.last_charge()
        entry_facts = {
            **facts,
            "plan": to_dict(plan),
            "relation": self._relation(last_charge, plan),
        }
        notion, _ = account.standing_after(last_charge)
        if PAID in facts and last_charge is not None:
            entry_facts |= {"total": last_charge.facts["total"], **account.counting(notion)}
        else:
            notion, stated = self._charge_plan(last_charge, plan, certified, facts)
            entry_facts |= {**stated, **account.counting(notion)}
            if last_charge is None and notion is account.after_plan:
                entry_facts["certified"] = certified

        def spend(total: Total[Any]) -> Total[Any]:
            if PAID in facts:
                return total
            return account.total_after_plan(notion, total, plan, entry_facts)

        entry_facts |= self._own_facts(Charge(notion, spend, None, self._log.times.window))
        return self._log.append("plan", entry_facts, account.name, key)

    def reserve_step(
        self,
        mechanism: Releasable,
        who: Users | None,
        facts: dict[str, Any],
        freshness_check: FreshnessCheck,
        named: bool,
    ) -> LogEntry:
        """Record that a step, paid by its plan, is about to read the data.

        It raises `LabelTaken` if another process recorded the step of a ``named`` run first.
        """
        account = self.account
        self.refuse_idealised(mechanism)
        users = encode_users(who)
        key = step_key(facts["run"], facts["step"]) if named else None
        with self._log.writing():
            if account.window is not None:  # a step of an earlier window would read later data
                paid_in = account.window.label(account.paid_at(facts["run"]))
                if paid_in != account.window.label(self._log.times.window):
                    why = f"this run was paid for in {paid_in}; "
                    why += "a new run is paid for in the open window"
                    raise OffPlan(mechanism, None, why)
            if key is not None and self._log.entry_with_key(key) is not None:
                raise LabelTaken
            self._refuse_if_over()
            entry_facts = {
                **facts,
                "mechanism": account.description_of(mechanism),
                **users.facts(),
                "noise": freshness_check(),
            }
            if named:
                entry_facts["holder"] = process_here(os.getpid())
            entry = self._log.append("step", entry_facts, account.name, key)
            STEPS_IN_PROGRESS.add(entry.hash)  # before others can see the entry
            if users.raw is not None:
                self._log.attach(entry, users.raw)
        return entry

    # --- answers

    def answer(self, reserved: LogEntry, raw: bytes, key: str | None) -> LogEntry:
        """Store an answer and return its entry, or the earlier entry of the same key."""
        with self._log.writing():
            earlier = None if key is None else self._log.entry_with_key(key)
            if earlier is not None and earlier.kind == "release":
                return earlier
            facts = {"of": reserved.seq, "answer": digest(raw), "size": len(raw)}
            entry = self._log.append("release", facts, self.account.name, key)
            self._log.attach(entry, raw)
        return entry

    def fail(self, reserved: LogEntry, label: str | None = None) -> None:
        """Record that a charged release has no answer; the key of its label is free again."""
        with self._log.writing():
            labelled_entry = None if label is None else self._log.entry_with_key(label)
            is_own_label = labelled_entry is not None and labelled_entry.seq == reserved.seq
            freed_label = label if is_own_label else None
            self._log.append("failed", {"of": reserved.seq}, self.account.name, also=freed_label)

    def mark_seed(self, fingerprint: str) -> None:
        """Record a seeded noise stream; refuse one that was used before."""
        with self._log.writing():
            key = f"noise:{fingerprint}"
            if self._log.entry_in_column(key) is not None:
                allowed = "a seed that no release used before: the same noise twice cancels"
                raise ParameterError("rng", "one that this book has seen", allowed)
            self._log.append("seed", {}, self.account.name, key)

    # --- totals after a spend, and reasons to refuse one

    @contextmanager
    def _charging(self) -> Iterator[None]:
        """Open a transaction that charges; it reads few entries while it holds the lock."""
        for attempt in range(ATTEMPTS):
            with self._log.writing():
                if self.account.entries_behind() <= MOST_READ_IN_LOCK or attempt == ATTEMPTS - 1:
                    yield
                    return
            self.account.read_ahead()

    def _refuse_if_over(self) -> None:
        """Refuse to spend or to read data after the end; call it inside the transaction.

        With windows it is also refused while the clock is far ahead of the log.
        """
        account, times = self.account, self._log.times
        terms = account.follow_terms()
        account.refuse_unknown_terms()
        account.refuse_terms_of_one()
        if terms.is_over(times.latest):
            terms.refuse_if_over(account.name, times.latest, times.difference(times.latest))
        if account.window is not None:
            self._log.refuse_clock_ahead()

    def refuse_idealised(self, plan: Any) -> None:
        """Refuse noise that floats decide, unless the data set was opened to take it.

        Stored answers are given all the same: nothing is reserved for them.
        """
        part = None if self.account.idealised else idealised_part(plan)
        if part is not None:
            allowed = 'of arithmetic="exact", as the last digits of floats can reveal the data; '
            allowed += "a data set opened with idealised=True takes idealised noise too"
            raise ParameterError("mechanism", shown(part), allowed)

    def _charge(
        self,
        last_charge: LogEntry | None,
        mechanism: Plan,
        total_after: Callable[[CompositionNotion[Any], Total[Any]], Total[Any]],
        who: Users | None,
        facts: dict[str, Any],
    ) -> tuple[CompositionNotion[Any], dict[str, Any]]:
        """Return the notion, and what an entry states of totals after a spend; refuse a misfit.

        ``total_after`` returns the total after the spend, which may exceed the limit.  A refusal
        names ``mechanism`` with more noise.  The stated "total" is that of all people, or the
        largest one of users or buckets that have budgets of their own; with a window there are
        also the "parts" of each month or day.
        """
        account = self.account
        notion, before = account.standing_after(last_charge)

        def spend(total: Total[Any]) -> Total[Any]:
            after = total_after(notion, total)
            if notion.refuses(total, after):
                raise self._refusal(
                    notion.refusal(total, total_after(notion, notion.zero), mechanism)
                )
            return after

        if account.buckets is not None:  # the people of a bucket pay for releases of its data
            paid = {
                bucket: spend(account.bucket_total(notion, bucket)) for bucket in facts["buckets"]
            }
            largest = largest_total([before, *paid.values()])
            encoded_totals = {bucket: notion.encode(total) for bucket, total in paid.items()}
            return notion, {"total": notion.encode(largest), "buckets": encoded_totals}
        if account.users is not None:
            ends = account.user_totals().totals_after(who, spend)
            if not ends:  # no user answers, so no user pays
                spend(notion.zero)
            return notion, {"total": notion.encode(largest_total([before, *ends.values()]))}
        stated: dict[str, Any] = {"total": notion.encode(spend(before))}
        if account.window is not None:
            charge = Charge(notion, partial(total_after, notion), None, self._log.times.window)
            parts = charge.parts_after(account.window, account.parts_at(last_charge))
            stated["parts"] = encoded(notion, parts)
        return notion, stated

    def _charge_plan(
        self, last_charge: LogEntry | None, plan: Plan, certified: float, facts: dict[str, Any]
    ) -> tuple[CompositionNotion[Any], dict[str, Any]]:
        """Return what `_charge` does for a plan: with its sum, or its exact cost if no sum fits."""
        account = self.account
        try:
            return self._charge(
                last_charge, plan, lambda notion, total: notion.after(total, plan), None, facts
            )
        except (BudgetExceeded, UnsupportedPlan):
            plan_total = certified_total(certified)
            if last_charge is not None or account.after_plan.exceeds(plan_total):
                raise
            return account.after_plan, {"total": account.after_plan.encode(plan_total)}

    def _own_facts(self, charge: Charge) -> dict[str, Any]:
        """Return what a charge states of its author; refuse one above the author's quota."""
        try:
            return own_facts(self.account, charge)
        except BudgetExceeded as refusal:
            raise self._refusal(refusal) from None

    def _refusal(self, refusal: RuntimeError) -> RuntimeError:
        """Return a refusal which says, with windows, where the log's time and the clock differ."""
        times = self._log.times
        said = "" if self.account.window is None else times.difference(times.window)
        if not said or not isinstance(refusal, BudgetExceeded):
            return refusal
        spent, requested, budget, unit, limit, remedy = refusal.args
        remedies = "; ".join(filter(None, [remedy, said]))
        return BudgetExceeded(spent, requested, budget, unit, limit, remedies)

    def _relation(self, last_charge: LogEntry | None, released: Any) -> str | None:
        """Return the neighbour relation of all spends so far; refuse a different one."""
        return joint_relation(
            None if last_charge is None else last_charge.facts["relation"], released
        )
