"""A data set of a book: its budget, and the spending of it, one durable entry at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from accountant.accountants.budget import Budget
from accountant.book.hash_chain import START, Entry, Link, canonical, digest
from accountant.book.log import Log
from accountant.book.log_reader import CHARGING
from accountant.book.totals import Total, Totals
from accountant.book.user_totals import People, packed, unpacked
from accountant.errors import LedgerCorrupt, OffPlan, ParameterError, UnhealthyRandomness
from accountant.formats.plan_json import from_dict, to_dict
from accountant.ledger.interfaces import Releasable
from accountant.ledger.private_data import Users
from accountant.plans.plan import Plan

Healthy = Callable[[], str]  # the fingerprint of fresh noise


class Account:
    """Spends the budget of one data set; what it knows it reads from the log."""

    def __init__(self, log: Log, opened: Entry) -> None:
        self.log, facts = log, opened.facts
        self.name: str = facts["dataset"]
        self.users: int | None = facts["users"]
        self.unit: str = facts["unit"]
        self.opened: str = facts["time"]
        self.budget = Budget(facts["epsilon"], facts["delta"])
        self.totals = Totals(facts["notion"], self.budget, facts["order"])
        self._people = None if self.users is None else People(self.users, self.totals.zero)
        self._applied = Link(0, START)
        self._described: dict[Plan, dict[str, Any]] = {}

    def total(self) -> Total:
        """What was spent, by the worst-off user; inside a transaction."""
        return self._total(self.log.last_charge(self.name))

    def _total(self, last: Entry | None) -> Total:
        return self.totals.zero if last is None else self.totals.read(last.facts["total"])

    def people(self) -> People:
        """The total of every user, brought up to date; inside a transaction."""
        if self._people is None:
            raise ParameterError("name", self.name, "a data set opened with users=")
        for entry in self.log.chained(self._applied):
            if entry.kind in CHARGING and entry.facts["dataset"] == self.name:
                self.apply(self._people, entry)
            self._applied = entry.link
        return self._people

    def reserve(
        self, mechanism: Releasable, who: Users | None, facts: dict[str, Any], healthy: Healthy
    ) -> Entry:
        """Charge one release; on disk when it returns.  Raises, and then nothing has changed."""
        words, raw = (None, None) if who is None else packed(who)
        loss = mechanism.loss
        with self.log.writing():
            last = self.log.last_charge(self.name)
            total = self._after(last, loss, who)
            cost = self.totals.cost(loss)
            entry = self.log.append(
                "reserve",
                {
                    **facts,
                    "mechanism": self.described(mechanism),
                    "loss": self.described(loss),
                    "relation": self._relation(last, mechanism),
                    "cost": self.totals.written(cost),
                    "total": self.totals.written(total),
                    "who": words,
                    "block": None if raw is None else digest(raw),
                },
                self.name,
                self._fresh(healthy()),
            )
            if raw is not None:
                self.log.attach(entry, raw)
        return entry

    def reserve_plan(self, plan: Plan, facts: dict[str, Any], key: str | None) -> Entry:
        """Charge a whole plan at once: to everybody, each part of a parallel the greatest."""
        with self.log.writing():
            last = self.log.last_charge(self.name)
            total = self._after(last, plan, None)
            whole = {
                **facts, "plan": to_dict(plan), "relation": self._relation(last, plan),
                "total": self.totals.written(total),
            }  # fmt: skip
            return self.log.append("plan", whole, self.name, key)

    def reserve_step(
        self, mechanism: Releasable, who: Users | None, facts: dict[str, Any], healthy: Healthy
    ) -> Entry:
        """Note that a step which its plan has paid for is about to look at the data."""
        words, raw = (None, None) if who is None else packed(who)
        key = canonical({"run": facts["run"], "step": facts["step"]})
        with self.log.writing():
            if self.log.keyed(key) is not None:
                raise OffPlan(mechanism, None, "this run goes on in another process")
            whole = {
                **facts, "mechanism": self.described(mechanism), "who": words, "noise": healthy(),
                "block": None if raw is None else digest(raw),
            }  # fmt: skip
            entry = self.log.append("step", whole, self.name, key)
            if raw is not None:
                self.log.attach(entry, raw)
        return entry

    def answer(self, reserved: Entry, raw: bytes, key: str | None) -> Entry:
        """Store what was released; the entry of an earlier answer where the key has one."""
        with self.log.writing():
            earlier = None if key is None else self.log.keyed(key)
            if earlier is not None:
                return earlier
            facts = {"of": reserved.seq, "answer": digest(raw), "size": len(raw)}
            entry = self.log.append("release", facts, self.name, key)
            self.log.attach(entry, raw)
        return entry

    def fail(self, reserved: Entry) -> None:
        """Note that a release which was charged has no answer."""
        with self.log.writing():
            self.log.append("failed", {"of": reserved.seq}, self.name)

    def mark_seed(self, fingerprint: str) -> None:
        """Note a seeded stream of noise; one that was used before is refused."""
        with self.log.writing():
            key = f"noise:{fingerprint}"
            if self.log.keyed(key) is not None:
                allowed = "a seed that no release used before: the same noise twice cancels"
                raise ParameterError("rng", "one that this book has seen", allowed)
            self.log.append("seed", {}, self.name, key)

    def apply(self, people: People, entry: Entry) -> None:
        """Let the users pay for an entry of the log, whatever the limit."""
        facts = entry.facts
        if entry.kind == "plan":
            plan = from_dict(facts["plan"])
            people.move(None, people.after(None, lambda total: self.totals.spend(total, plan)))
            return
        who = self.users_of(entry)
        cost = self.totals.read(facts["cost"])
        people.move(who, people.after(who, lambda total: self.totals.add(total, cost)))

    def users_of(self, entry: Entry) -> Users | None:
        """Whom an entry names; None is everybody."""
        words, block = entry.facts["who"], entry.facts["block"]
        if words is None:
            return None
        raw = None if block is None else self.log.attached(entry, block)
        try:
            return unpacked(words, raw)
        except (ValueError, TypeError):
            raise LedgerCorrupt(self.log.name, "names no users", entry.seq) from None

    def described(self, plan: Any) -> dict[str, Any]:
        """A mechanism or loss as plain values, or in its own words where it declares none."""
        known = self._described.get(plan)
        if known is None:
            try:
                known = to_dict(plan)
                canonical(known)
            except (ValueError, TypeError):
                known = {"repr": repr(plan)[:1000]}
            self._described[plan] = known
        return known

    def _after(self, last: Entry | None, asked: Plan, who: Users | None) -> Total:
        """Where the worst-off user would stand."""
        before = self._total(last)
        if self.users is None:
            return self.totals.spend(before, asked)
        ends = self.people().after(who, lambda total: self.totals.spend(total, asked))
        if not ends:  # nobody answers, so nobody pays
            self.totals.spend(self.totals.zero, asked)
        held = [before, *ends.values()]
        return Total(max(one.spent for one in held), max(one.infinity for one in held))

    def _relation(self, last: Entry | None, asked: Any) -> str | None:
        """The neighbours that all spends so far were stated for; what differs is refused."""
        stated = {None if last is None else last.facts["relation"], asked.relation} - {None}
        if len(stated) > 1:
            allowed = "stated for the neighbours of earlier releases: relations do not mix"
            raise ParameterError("mechanism", " and ".join(sorted(map(str, stated))), allowed)
        return stated.pop() if stated else None

    def _fresh(self, fingerprint: str) -> str:
        key = f"noise:{fingerprint}"
        if self.log.keyed(key) is not None:
            raise UnhealthyRandomness("this book has an earlier release with the same")
        return key
