"""One run of a plan: paid for as a whole, followed step by step, and resumed after a crash."""

from __future__ import annotations

from typing import Any, NamedTuple

from accountant.book.account import Account, FreshnessCheck
from accountant.book.hash_chain import LogEntry, canonical_json, digest
from accountant.book.user_totals import encode_users
from accountant.errors import OffPlan, ParameterError
from accountant.formats.plan_json import to_dict
from accountant.ledger.interfaces import Releasable
from accountant.ledger.plan_cursor import PlanCursor
from accountant.ledger.private_data import Users
from accountant.plans.plan import Plan


class ReservedRelease(NamedTuple):
    """A paid release; ``stored`` is its answer if it was released before."""

    entry: LogEntry
    key: str | None = None
    stored: LogEntry | None = None


class PlanRun:
    """The state of one run of a plan: its position, earlier releases and public coins."""

    def __init__(
        self, account: Account, plan: Plan, name: str | None, users: int, coins: tuple[int, ...]
    ) -> None:
        self._account, self._plan, self._users = account, plan, users
        key = None if name is None else canonical_json({"dataset": account.name, "run": name})
        with account.log.reading():
            opened = None if key is None else account.log.entry_with_key(key)
        if opened is None:
            facts = {"run": name, "coins": list(coins)}
            opened = account.reserve_plan(plan, facts, key)
        if opened.facts["plan"] != to_dict(plan):
            raise ParameterError("run", name, "a name that no run of another plan has")
        self._seq, self._named = opened.seq, name is not None
        self.coins: tuple[int, ...] = tuple(opened.facts["coins"])
        self._steps, self._answers = self._recorded() if name is not None else ({}, {})
        self._cursor = PlanCursor(plan, users)
        self._charged: list[tuple[Releasable, Users | None]] = []

    @property
    def next(self) -> Plan | None:
        """Return the leaf of the plan that may be released next."""
        return self._cursor.next

    @property
    def has_recorded_steps(self) -> bool:
        """Return whether steps are left that were released before."""
        return len(self._charged) < len(self._steps)

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
            for one in self._charged:
                self._cursor.charge(*one)
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
        key = canonical_json({"answer": step, "run": self._seq}) if self._named else None
        earlier = self._steps.get(step)
        if earlier is None:
            return ReservedRelease(
                self._account.reserve_step(mechanism, who, facts, freshness_check, self._named), key
            )
        words, raw = (None, None) if who is None else encode_users(who)
        asked = (
            self._account.description_of(mechanism),
            words,
            None if raw is None else digest(raw),
        )
        if asked != tuple(earlier.facts[name] for name in ("mechanism", "who", "block")):
            raise OffPlan(mechanism, None, "the run that is resumed released something else here")
        if step in self._answers:
            return ReservedRelease(earlier, key, self._answers[step])
        # reserved, and never answered: the data may have been seen; a second look is paid
        return ReservedRelease(self._account.reserve(mechanism, who, facts, freshness_check), key)

    def _recorded(self) -> tuple[dict[int, LogEntry], dict[int, LogEntry]]:
        steps: dict[int, LogEntry] = {}
        answers: dict[int, LogEntry] = {}
        place: dict[int, int] = {}
        with self._account.log.reading():
            for entry in self._account.log.entries(self._account.name):
                facts = entry.facts
                if facts.get("run") == self._seq and entry.kind in {"step", "reserve"}:
                    steps[facts["step"]] = entry
                    place[entry.seq] = facts["step"]
                elif entry.kind == "release" and facts["of"] in place:
                    answers[place[facts["of"]]] = entry
        return steps, answers
