"""One run of a plan: paid for as a whole, followed step by step, and resumed after a crash."""

from __future__ import annotations

from typing import Any, NamedTuple

from accountant.book.account import Account, FreshnessCheck
from accountant.book.chain.hash_chain import LogEntry, canonical_json, digest
from accountant.book.limits.user_totals import encode_users
from accountant.errors import OffPlan, ParameterError
from accountant.ledger.interfaces import Releasable
from accountant.ledger.plan_cursor import PlanCursor
from accountant.ledger.private_data import Users
from accountant.plans.plan import Plan
from accountant.proofs.checked_proof import Proof
from accountant.serialisation.plan_json import to_dict


class ReservedRelease(NamedTuple):
    """A paid release; ``stored`` is its answer if it was released before."""

    entry: LogEntry
    key: str | None = None
    stored: LogEntry | None = None


class PlanRun:
    """The state of one run of a plan: its position, earlier releases and public coins."""

    def __init__(
        self,
        account: Account,
        plan: Plan,
        name: str | None,
        users: int,
        coins: tuple[int, ...],
        buckets: dict[str, Any],
        proof: Proof | None = None,
        verified: bool = False,
    ) -> None:
        self._account, self._plan, self._users = account, plan, users
        key = None if name is None else canonical_json({"dataset": account.name, "run": name})
        with account.log.reading():
            opened = None if key is None else account.log.entry_with_key(key)
        if opened is None:
            facts = {"run": name, "coins": list(coins), **buckets}
            opened = account.reserve_plan(plan, facts, key, proof, verified)
        if opened.facts["plan"] != to_dict(plan):
            raise ParameterError("run", name, "a name that no run of another plan has")
        if sorted(opened.facts.get("buckets", ())) != buckets.get("buckets", []):
            paid = ", ".join(sorted(opened.facts["buckets"]))
            raise ParameterError("run", name, f"a run that these buckets paid for, not {paid}")
        self._seq, self._named = opened.seq, name is not None
        self._last_recorded = 0  # later entries belong to another process in the same run
        if self._named:
            with account.log.reading():
                self._last_recorded = account.log.head.seq
        self.coins: tuple[int, ...] = tuple(opened.facts["coins"])
        self._cursor = PlanCursor(plan, users)
        self._charged: list[tuple[Releasable, Users | None]] = []

    @property
    def next(self) -> Plan | None:
        """Return the leaf of the plan that may be released next."""
        return self._cursor.next

    def check(self, plan: Plan) -> None:
        """Refuse a plan whose releases are not the next ones of this run."""
        self._cursor.check(plan)

    @property
    def has_recorded_steps(self) -> bool:
        """Return whether the next step was released before."""
        return self._recorded(len(self._charged))[0] is not None

    def charge(
        self,
        mechanism: Releasable,
        who: Users | None,
        facts: dict[str, Any],
        freshness_check: FreshnessCheck,
    ) -> ReservedRelease:
        """Move on by one step: released before, paid by the plan, or lost in a crash."""
        self._cursor.charge(mechanism, who)
        try:
            reserved = self._reserved(mechanism, who, facts, freshness_check)
        except BaseException:
            self._cursor = PlanCursor(self._plan, self._users)
            for charged_step in self._charged:
                self._cursor.charge(*charged_step)
            raise
        self._charged.append((mechanism, who))
        return reserved

    def _reserved(
        self,
        mechanism: Releasable,
        who: Users | None,
        facts: dict[str, Any],
        freshness_check: FreshnessCheck,
    ) -> ReservedRelease:
        step = len(self._charged)
        facts = {**facts, "run": self._seq, "step": step}
        # a run without a name is never resumed: its steps need no keys
        key = answer_key(self._seq, step) if self._named else None
        earlier, answer = self._recorded(step)
        if earlier is None:
            return ReservedRelease(
                self._account.reserve_step(mechanism, who, facts, freshness_check, self._named), key
            )
        encoded_users, raw = (None, None) if who is None else encode_users(who)
        requested = (
            self._account.description_of(mechanism),
            encoded_users,
            None if raw is None else digest(raw),
        )
        if requested != tuple(earlier.facts[name] for name in ("mechanism", "who", "block")):
            raise OffPlan(mechanism, None, "the run that is resumed released something else here")
        if answer is not None:
            return ReservedRelease(earlier, key, answer)
        # reserved and never answered: the data may have been read, so a second read is paid for
        return ReservedRelease(self._account.reserve(mechanism, who, facts, freshness_check), key)

    def _recorded(self, step: int) -> tuple[LogEntry | None, LogEntry | None]:
        """Return the step and its answer; None for what was not recorded at the opening."""
        log = self._account.log
        if not self._last_recorded:
            return None, None
        with log.reading():
            entries = [log.entry_with_key(name(self._seq, step)) for name in (step_key, answer_key)]
        entry, answer = (
            None
            if recorded_entry is None or recorded_entry.seq > self._last_recorded
            else recorded_entry
            for recorded_entry in entries
        )
        if entry is None:  # steps are recorded in order, so no later one was recorded
            self._last_recorded = 0
        return entry, answer


def step_key(run: int, step: int) -> str:
    """Return the key of a step of a run; the run's number is that of its first entry."""
    return canonical_json({"run": run, "step": step})


def answer_key(run: int, step: int) -> str:
    """Return the key of the answer of a step."""
    return canonical_json({"answer": step, "run": run})
