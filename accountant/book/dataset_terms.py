"""The terms of a data set as callers state them: at its opening, and at each change.

A book keeps its data sets in a log of entries, which only grows.  The terms of a data set are its
budget, how costs add up (its *notion*: pure privacy, zCDP, ...), and what else limits spending.
Its opening is an entry of kind "dataset".  A change is an entry of kind "terms" with a reason,
which states all terms anew.  This file checks and writes both kinds;
`accountant.book.limits.terms` reads them.

A plan can be *set aside* at the opening: its cost is then charged at once, and its runs are paid.
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any, NamedTuple

from accountant.accountants.budget import Budget
from accountant.book.account import Account
from accountant.book.chain.entries import TERMS, asks_for_two, checked_name, dataset_key
from accountant.book.chain.roles import RAISE_NEEDS
from accountant.book.limits.plan_proofs import proof_for
from accountant.book.limits.second_curator import append_or_propose
from accountant.book.limits.terms import Terms, exceeds_every_way, utc_time
from accountant.book.limits.windows import checked_window, encoded
from accountant.book.log import Log
from accountant.book.quotas import author_limit
from accountant.book.reservations import Reservations
from accountant.domains import BOOLEAN, IntegerRange, Interval
from accountant.errors import BudgetExceeded, ParameterError, UnsupportedPlan
from accountant.formatting import format_lower, format_upper
from accountant.ledger.composition_notions import (
    ORDER_RANGE,
    certified_total,
    exact_where_sums_exceed,
    notion_of,
    pure_after_plan,
)
from accountant.losses.pure_and_approximate import PureLoss
from accountant.plans.plan import Plan, Repeat, as_plan
from accountant.proofs.checked_proof import CheckedProof, Proof
from accountant.serialisation.plan_json import to_dict

RUNS = IntegerRange(1, 1_000_000)  # runs of a plan that can be set aside
USERS = IntegerRange(1, (1 << 31) - 1)  # users with a budget of their own
QUOTA = Interval(0.0, 1e300)  # the epsilon that an author may spend
DEFAULT_NOTION = "pure-or-rdp"  # how costs add up where the caller does not choose
# The Rényi orders that are tried for a plan: the usual order minus 1 is multiplied by these.  More
# factors would find a slightly better order, and each takes one computation of the plan's cost.
ORDER_FACTORS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 1.5, 2.0, 4.0)


class DatasetTerms(NamedTuple):
    """The stated terms of a data set; None where the caller leaves the choice to the book."""

    budget: Budget | None
    notion: str | None  # its name, such as "zcdp"
    order: float | None  # the Rényi order of notions that have one
    users: int | None  # each of this many users has the budget
    unit: str | None  # who is protected, in words
    idealised: bool | None = None  # whether noise may be drawn in floats
    expires: str | datetime | None = None  # from this time on nothing is spent
    people: str | None = None  # a name for those whom the data are about
    window: str | None = None  # each "month", say, or any "30 days", has the budget
    carry: int | None = None  # earlier windows that leave what they did not spend
    buckets: str | None = None  # each bucket of people has the budget; this says what one is
    plan: Plan | None = None  # one run of the plan that is set aside
    runs: int | None = None  # how many of its runs
    verified: bool | None = None  # whether only plans with a proof of their cost are charged
    proof: Proof | CheckedProof | None = None  # that of all runs of the plan
    raise_needs: int | None = None  # the curators whom a change needs that gives more

    def checked_facts(self) -> dict[str, Any]:
        """Return the terms as an entry states them, each checked."""
        if not isinstance(self.budget, Budget):
            raise ParameterError("budget", self.budget, "a Budget")
        budget = self.budget
        if self.order is not None:
            # The order is checked for every notion, because the entry states it.
            ORDER_RANGE.check("order", self.order)
        limits = {**checked_window(self.window, self.carry), **self._checked_buckets()}
        rule = self.notion, self.order  # how costs add up; (None, None) leaves it to the book
        set_aside_plan = self.checked_plan()
        if set_aside_plan is not None:
            limits["aside"] = {"plan": to_dict(as_plan(self.plan)), "runs": self.runs or 1}
            if rule == (None, None):
                rule = rule_for(set_aside_plan, budget)
        notion = notion_of(rule[0], budget, rule[1])
        flags = {"idealised": self.idealised, "verified": self.verified}
        curators_needed = 1
        if self.raise_needs is not None:
            curators_needed = RAISE_NEEDS.check("raise_needs", self.raise_needs)
        return {
            "epsilon": budget.epsilon,
            "delta": budget.delta,
            "notion": notion.name,
            "order": notion.order,
            "users": None if self.users is None else USERS.check("users", self.users),
            "unit": "one row" if self.unit is None else checked_name("unit", self.unit),
            **{
                name: True
                for name, flag in flags.items()
                if flag is not None and BOOLEAN.check(name, flag)
            },
            **({} if self.expires is None else {"expires": utc_time("expires", self.expires)}),
            **({} if self.people is None else {"people": checked_name("people", self.people)}),
            **({"raise_needs": curators_needed} if curators_needed > 1 else {}),
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

    def write(self, log: Log, name: str) -> None:
        """Write the terms, and what is set aside, unless another process did so first."""
        facts, set_aside_plan = self.checked_facts(), self.checked_plan()
        # Proofs and certified costs take long, so they come before the lock that others wait for.
        certified = (
            math.inf if set_aside_plan is None else self._certified_epsilon(set_aside_plan, facts)
        )
        proved = self.checked_proof()
        with log.writing():
            if log.entry_with_key(dataset_key(name)) is not None:
                return
            if self.window is not None:
                log.refuse_clock_ahead()
            curators = () if log.roles is None else log.roles.facts()["curators"]
            if asks_for_two(facts) and len(curators) < 2:
                allowed = "1, or asked for in a book whose roles name two curators (Book.set_roles)"
                raise ParameterError("raise_needs", self.raise_needs, allowed)
            opened = log.append("dataset", facts, name, dataset_key(name))
            if self.plan is not None:
                Reservations(Account(log, opened)).set_aside(
                    as_plan(self.plan), self.runs or 1, certified, proved
                )

    def _certified_epsilon(self, set_aside_plan: Plan, facts: dict[str, Any]) -> float:
        """Return the exact epsilon of what is set aside, where its sum does not fit the budget.

        It is infinite where the sum fits, and so is charged.  Where neither fits, this raises
        `BudgetExceeded`.
        """
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
        # A script that opens the data set at each start states the terms of the opening.  It may
        # do so after the budget or the expiry was changed, so both times' values are accepted.
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
            ("window", self.window, account.window and account.window.name),
            ("carry", self.carry, account.window and account.window.carry),
            ("buckets", self.buckets, account.buckets),
            (
                "plan",
                None if self.plan is None else to_dict(as_plan(self.plan)),
                account.aside and account.aside["plan"],
            ),
            ("runs", self.runs, account.aside and account.aside["runs"]),
            ("raise_needs", self.raise_needs, opened.raise_needs),
        ):
            if requested is not None and requested != stored:
                raise ParameterError(argument, requested, f"{stored!r}, as the data set was opened")


def rule_for(plan: Plan, budget: Budget) -> tuple[str, float | None]:
    """Return the name and the order of the notion that a data set with a plan set aside has.

    The default notion takes the most kinds of releases next to the plan, at the Rényi order that
    leaves the most; Gaussian privacy is taken where the plan fits in that alone.  Where it fits in
    neither, the default is returned: there the plan is charged its exact cost.  An order of None
    means the usual order of the notion.
    """
    if not budget.delta:
        return "pure", None
    usual_order = notion_of(DEFAULT_NOTION, budget).order or 2.0
    shares = {}
    for factor in ORDER_FACTORS:
        order = None if factor == 1.0 else 1 + (usual_order - 1) * factor
        shares[order] = _share_of_limit(DEFAULT_NOTION, order, plan, budget)
    best_order = min(shares, key=lambda order: shares[order])
    if shares[best_order] <= 1:
        return DEFAULT_NOTION, best_order
    return ("gdp" if _share_of_limit("gdp", None, plan, budget) <= 1 else DEFAULT_NOTION), None


def _share_of_limit(name: str, order: float | None, plan: Plan, budget: Budget) -> float:
    """Return the share of a notion's limit that a plan needs, at most 1; infinite if it is more.

    A plan that fits only by the limit's tolerance for round-off has the share 1.
    """
    try:
        notion = notion_of(name, budget, order)
        total = notion.after(notion.zero, plan)
    except (ParameterError, UnsupportedPlan):  # the notion cannot add up this plan
        return math.inf
    if notion.refuses(notion.zero, total):
        return math.inf
    shown = notion.shown(total)
    return min(shown.amount / shown.limit, 1.0)


# --- changes of the terms


def close_dataset(account: Account, reason: str) -> None:
    """Close a data set for good, unless it is closed."""
    with account.log.writing():
        if not account.follow_terms().closed:
            append_change(account, "closed", {}, reason)


def raise_budget(account: Account, budget: Budget, reason: str) -> None:
    """Set another budget; it may be smaller, but all that was spent must fit it."""
    if not isinstance(budget, Budget):
        raise ParameterError("budget", budget, "a Budget")
    account.read_ahead()
    with account.log.writing():
        current_budget = account.follow_terms().budget
        if budget.delta < current_budget.delta:
            allowed = (
                f"one with delta of at least {current_budget.delta:g}: what was spent relies on it"
            )
            raise ParameterError("budget", budget, allowed)
        before = account.standing()
        try:
            notions = account.notions_of(budget)
        except ParameterError:
            order = account.notion.order
            allowed = f"a larger one: at the order of the opening, {order:.6g}, it leaves nothing"
            raise ParameterError("budget", budget, allowed) from None
        # the notion whose limit follows from the new budget, with what windows carry over
        after = account.limit_under(
            notions,
            account.counts_after_plan(before.notion),
            account.last_charge(),
            account.log.times.window,
        )
        if exceeds_every_way(after, before.total, account.each_total()):
            unit, spent, limit = after.shown(before.total)
            allowed = f"one that holds what was spent, {unit} {format_upper(spent)}"
            allowed += f" (its limit is {format_lower(limit)})"
            raise ParameterError("budget", budget, allowed)
        append_change(account, "raised", {"epsilon": budget.epsilon, "delta": budget.delta}, reason)


def set_expiry(account: Account, when: str, reason: str) -> None:
    """Set the time from which on nothing is spent; it may be later than the one before."""
    with account.log.writing():
        account.follow_terms()
        append_change(account, "expires", {"expires": when}, reason)


def set_quota(account: Account, author: str, quota: object, reason: str) -> None:
    """Set how much of the budget one author's own spends may cost."""
    checked_name("author", author)
    with account.log.reading():
        account.author_totals()  # most entries are read before the lock, for which others wait
    with account.log.writing():
        account.follow_terms()
        epsilon = _checked_quota(account, quota)
        change_over_quotas(account, reason)
        state_quota(account, author, epsilon, reason)


def state_quota(account: Account, author: str, quota: float, reason: str) -> None:
    """Append an author's quota, under the author's key, with what the author has charged."""
    notion, _ = account.standing()
    is_listed = bool(account.terms.listed_quotas)
    is_new = is_listed or author_limit(account, notion, author) is None
    # After a correction of the clock the last entry under the key may state other sums than these.
    parts = account.author_totals().parts(author)
    facts = {
        "whose": author,
        "quota": quota,
        "own": encoded(notion, parts),
        "quotas": {},
        "limited_authors": account.terms.limited_authors + is_new,
    }
    append_change(account, "quota", facts, reason)


def change_over_quotas(account: Account, reason: str) -> None:
    """Give each quota that an earlier version listed in the terms an entry under a key."""
    for author, quota in account.follow_terms().listed_quotas.items():
        state_quota(account, author, quota, reason)


def _checked_quota(account: Account, quota: object) -> float:
    """Return the epsilon of a quota, at the delta of its data set."""
    if isinstance(quota, Budget):
        if quota.delta != account.budget.delta:
            allowed = f"an epsilon, or a Budget of delta {account.budget.delta:g} as the data set's"
            raise ParameterError("quota", quota, allowed)
        return quota.epsilon
    epsilon = QUOTA.check("quota", quota)
    notion = account.standing().notion
    # The epsilon at which a nearly free release is shown: a quota below it would refuse all spends.
    smallest_epsilon = notion.epsilon(notion.cost(PureLoss(1e-12)))
    if 0 < epsilon < smallest_epsilon:
        allowed = f"0, or at least epsilon {format_upper(smallest_epsilon)}, "
        allowed += "what the notion gives any spend"
        raise ParameterError("quota", quota, allowed)
    return epsilon


def append_change(account: Account, change: str, facts: dict[str, Any], reason: str) -> None:
    """Append the whole terms with a change; a closed data set takes none."""
    terms: Terms = account.terms
    account.refuse_unknown_terms()
    if change != "closed":
        account.last_charge()  # it raises where the charge broke terms that a change would hide
    terms.refuse_if_closed(account.name)
    changed_terms = {**terms.facts(), **facts, "change": change, "reason": reason}
    if account.window is not None:  # an earlier window may have spent this much
        changed_terms["largest"] = max(terms.largest, changed_terms["epsilon"])
    append_or_propose(
        account.log, TERMS, changed_terms, account.name, terms.facts(), account.terms_seq
    )
