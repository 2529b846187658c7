"""Opening a data set: the terms stated once.  `terms_changes` writes what may change later."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

from accountant.accountants.budget import Budget
from accountant.book.account import Account
from accountant.book.chain.entries import canonical_json
from accountant.book.limits.composition_rule import rule_for
from accountant.book.limits.plan_proofs import proof_for
from accountant.book.limits.terms import utc_time
from accountant.book.limits.windows import checked_window
from accountant.book.log import Log
from accountant.book.reservations import Reservations
from accountant.domains import IntegerRange
from accountant.errors import BudgetExceeded, ParameterError
from accountant.ledger.certified_plan import (
    certified_total,
    exact_where_sums_exceed,
    pure_after_plan,
)
from accountant.ledger.composition_notions import ORDER_RANGE, notion_of
from accountant.plans.plan import Plan, Repeat, as_plan
from accountant.proofs.checked_proof import CheckedProof, Proof
from accountant.serialisation.plan_json import to_dict

RUNS = IntegerRange(1, 1_000_000)
USERS = IntegerRange(1, (1 << 31) - 1)


class DatasetTerms(NamedTuple):
    """The stated terms of a data set; None where the caller leaves the choice to the book."""

    budget: Budget | None
    notion: str | None
    order: float | None
    users: int | None
    unit: str | None
    idealised: bool | None = None
    expires: str | datetime | None = None
    people: str | None = None
    window: str | None = None
    carry: int | None = None
    buckets: str | None = None
    plan: Plan | None = None
    runs: int | None = None
    verified: bool | None = None
    proof: Proof | CheckedProof | None = None

    def checked_facts(self) -> dict[str, Any]:
        """Return the terms as an entry states them, each checked."""
        if not isinstance(self.budget, Budget):
            raise ParameterError("budget", self.budget, "a Budget")
        budget = self.budget
        if self.order is not None:
            # checked for every notion, because the entry states it
            ORDER_RANGE.check("order", self.order)
        limits = {**checked_window(self.window, self.carry), **self._checked_buckets()}
        rule = self.notion, self.order
        set_aside_plan = self.checked_plan()
        if set_aside_plan is not None:
            limits["aside"] = {"plan": to_dict(as_plan(self.plan)), "runs": self.runs or 1}
            if rule == (None, None):
                rule = rule_for(set_aside_plan, budget)
        notion = notion_of(rule[0], budget, rule[1])
        return {
            "epsilon": budget.epsilon,
            "delta": budget.delta,
            "notion": notion.name,
            "order": notion.order,
            "users": None if self.users is None else USERS.check("users", self.users),
            "unit": "one row" if self.unit is None else checked_name("unit", self.unit),
            **self._checked_flag("idealised", self.idealised),
            **self._checked_flag("verified", self.verified),
            **({} if self.expires is None else {"expires": utc_time("expires", self.expires)}),
            **({} if self.people is None else {"people": checked_name("people", self.people)}),
            **limits,
        }

    def _checked_buckets(self) -> dict[str, Any]:
        """Return what the buckets are; refuse two kinds of limits that do not go together."""
        stated_limits = [
            name for name in ("users", "window", "buckets") if getattr(self, name) is not None
        ]
        if len(stated_limits) > 1:
            allowed = (
                f"given without {stated_limits[0]}=; open two data sets of one people= instead"
            )
            raise ParameterError(stated_limits[1], getattr(self, stated_limits[1]), allowed)
        if self.buckets is None:
            return {}
        return {"buckets": checked_name("buckets", self.buckets)}

    def checked_plan(self) -> Plan | None:
        """Return all runs of the plan that is set aside, as one plan."""
        if self.plan is None:
            for name in ("runs", "proof"):
                if getattr(self, name) is not None:
                    raise ParameterError(name, getattr(self, name), "given with plan=")
            return None
        if self.window is not None or self.buckets is not None:
            allowed = "absent: each window, or bucket, pays for the runs that are made in it"
            raise ParameterError("plan", self.plan, allowed)
        plan, runs = as_plan(self.plan), 1 if self.runs is None else RUNS.check("runs", self.runs)
        return plan if runs == 1 else Repeat(plan, runs)

    def checked_proof(self) -> CheckedProof | None:
        """Return the proof of what is set aside, checked; refuse a missing one that is wanted."""
        set_aside_plan, budget = self.checked_plan(), self.budget
        if set_aside_plan is None or budget is None:
            return None
        return proof_for(set_aside_plan, budget, self.proof, bool(self.verified))

    def _checked_flag(self, name: str, stated: object) -> dict[str, bool]:
        """Return a demand as an entry states it; no fact where there is no demand."""
        if stated is not None and not isinstance(stated, bool):
            raise ParameterError(name, stated, "True or False")
        return {name: True} if stated else {}

    def write(self, log: Log, name: str) -> None:
        """Write the terms, and what is set aside, unless another process did so first."""
        facts, set_aside_plan = self.checked_facts(), self.checked_plan()
        # before the lock, which others wait for
        certified = (
            math.inf if set_aside_plan is None else self._certified_epsilon(set_aside_plan, facts)
        )
        proved = self.checked_proof()
        with log.writing():
            if log.entry_with_key(dataset_key(name)) is not None:
                return
            opened = log.append("dataset", facts, name, dataset_key(name))
            if self.plan is not None:
                Reservations(Account(log, opened)).set_aside(
                    as_plan(self.plan), self.runs or 1, certified, proved
                )

    def _certified_epsilon(self, set_aside_plan: Plan, facts: dict[str, Any]) -> float:
        """Return the exact cost of what is set aside, where its sum does not fit the budget."""
        budget = Budget(facts["epsilon"], facts["delta"])
        notion = notion_of(facts["notion"], budget, facts["order"])
        certified = exact_where_sums_exceed(notion, set_aside_plan)
        if certified < math.inf and pure_after_plan(budget).exceeds(certified_total(certified)):
            remedy = "that is its exact cost: fewer runs or more noise fit"
            raise BudgetExceeded(0.0, certified, budget, "epsilon", budget.epsilon, remedy)
        return certified

    def refuse_unless_equal(self, account: Account) -> None:
        """Raise `ParameterError` unless the stored data set has these terms."""
        opened, terms = account.opening, account.terms
        # a script may still state the terms of the opening after the budget was raised
        budget = opened.budget if self.budget == opened.budget else terms.budget
        expires = None if self.expires is None else utc_time("expires", self.expires)
        for argument, requested, stored in (
            ("budget", self.budget, budget),
            ("expires", expires, expires if expires == opened.expires else terms.expires),
            ("notion", self.notion, account.notion.name),
            ("order", self.order, account.notion.order),
            ("users", self.users, account.users),
            ("unit", self.unit, account.unit),
            ("idealised", self.idealised, account.idealised),
            ("verified", self.verified, account.verified),
            ("people", self.people, account.people),
            ("window", self.window, account.window and account.window.kind),
            ("carry", self.carry, account.window and account.window.carry),
            ("buckets", self.buckets, account.buckets),
            (
                "plan",
                None if self.plan is None else to_dict(as_plan(self.plan)),
                account.aside and account.aside["plan"],
            ),
            ("runs", self.runs, account.aside and account.aside["runs"]),
        ):
            if requested is not None and requested != stored:
                raise ParameterError(argument, requested, f"{stored!r}, as the data set was opened")


def dataset_key(name: str) -> str:
    """Return the key of a data set's first entry."""
    return canonical_json({"dataset": name})


def checked_buckets(bucket_kind: str | None, buckets: Iterable[str] | None) -> tuple[str, ...]:
    """Return the names of the buckets that pay, each once; none where a data set has none."""
    if bucket_kind is None:
        if buckets is not None:
            allowed = "absent: the data set was opened without buckets="
            raise ParameterError("buckets", buckets, allowed)
        return ()
    if buckets is None or isinstance(buckets, str):
        allowed = f"a list of names: each {bucket_kind} whose people the data are of"
        raise ParameterError("buckets", buckets, allowed)
    names = tuple(sorted({checked_name("buckets", bucket) for bucket in buckets}))
    if not names:
        raise ParameterError("buckets", buckets, f"one {bucket_kind} at least")
    return names


def checked_name(argument: str, name: object) -> str:
    """Return the name, or refuse one that could look like another when it is shown."""
    if not isinstance(name, str) or not 0 < len(name) <= 200 or not name.isprintable():
        raise ParameterError(argument, name, "1 to 200 printable characters")
    if name != name.strip() or name != unicodedata.normalize("NFC", name):
        allowed = "without spaces at its ends and in Unicode's composed form (NFC)"
        raise ParameterError(argument, name, allowed)
    return name
