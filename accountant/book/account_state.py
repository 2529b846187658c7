"""What the users of one data set have spent: read from the log, entry by entry."""

from __future__ import annotations

from itertools import islice
from typing import Any, NamedTuple

from accountant.accountants.budget import Budget
from accountant.book.chain.hash_chain import FIRST_PREDECESSOR, ChainHead, LogEntry
from accountant.book.limits.terms import Terms
from accountant.book.limits.user_totals import Spend, UserTotals, decode_users
from accountant.book.limits.windows import WHOLE, Parts, decoded, window_of
from accountant.book.log import Log
from accountant.book.log_reader import CHARGING_KINDS
from accountant.errors import LedgerCorrupt, ParameterError
from accountant.ledger.certified_plan import certified_total, pure_after_plan
from accountant.ledger.composition_notions import notion_of
from accountant.ledger.private_data import Users
from accountant.ledger.totals import CompositionNotion, Total
from accountant.plans.plan import Plan
from accountant.serialisation.plan_json import from_dict

PAID = "paid"  # of a run of a plan that was set aside: the number of the entry that paid for it
AFTER_PLAN = "epsilons after a plan"  # how entries name the notion next to a certified plan
START = ChainHead(0, FIRST_PREDECESSOR)
MOST_READ_IN_LOCK = 32  # entries; other writers wait meanwhile
ENTRIES_READ_AHEAD = 10_000  # entries in one transaction, in which other threads wait


class Standing(NamedTuple):
    """What a data set has spent: a total, and the notion that adds it up."""

    notion: CompositionNotion[Any]
    total: Total[Any]


class AccountState:
    """The terms of one data set, and the totals that its entries in the log add up to."""

    def __init__(self, log: Log, opened: LogEntry) -> None:
        self.log, facts = log, opened.facts
        self.name: str = facts["dataset"]
        self.users: int | None = facts["users"]
        self.unit: str = facts["unit"]
        self.people: str | None = facts.get("people")
        self.window = window_of(facts)
        # the plan that was set aside for some runs, as plain values
        self.aside: dict[str, Any] | None = facts.get("aside")
        self.buckets: str | None = facts.get("buckets")  # what the buckets are, such as regions
        self.idealised: bool = facts.get("idealised", False)
        # whether only plans with a proof are charged
        self.verified: bool = facts.get("verified", False)
        self.opened: str = facts["time"]
        self._notions: dict[Budget, tuple[CompositionNotion[Any], CompositionNotion[Any]]] = {}
        self._rule: tuple[str, float | None] = facts["notion"], facts["order"]
        self.opening = Terms.of(facts)
        self._terms_mark = ""  # the hash of the entry that states the terms
        self.adopt(self.opening)
        self._user_totals = self.unspent_users()
        self._applied_head = START

    def adopt(self, terms: Terms) -> None:
        """Take these terms; kind and order of the notion stay as the data set was opened."""
        self.terms, self.budget = terms, terms.budget
        # the second adds up epsilons after a plan that was reserved at its certified epsilon
        self.notion, self._after_plan = self.notions_of(terms.budget)

    def notions_of(self, budget: Budget) -> tuple[CompositionNotion[Any], CompositionNotion[Any]]:
        """Return the notion under a budget, and the one that adds up next to a certified plan."""
        if budget not in self._notions:
            name, order = self._rule
            self._notions[budget] = notion_of(name, budget, order), pure_after_plan(budget)
        return self._notions[budget]

    def follow_terms(self) -> Terms:
        """Adopt the terms in force and return them; call it inside a transaction."""
        last_terms = self.log.last_terms(self.name)
        mark = "" if last_terms is None else last_terms.hash
        if mark != self._terms_mark:
            self.adopt(self.opening if last_terms is None else Terms.of(last_terms.facts))
            self._terms_mark = mark
        return self.terms

    def standing(self) -> Standing:
        """Return what the user with the largest total spent; call it inside a transaction."""
        self.follow_terms()
        return self.standing_after(self.log.last_charge(self.name))

    def standing_after(self, last_charge: LogEntry | None, now: str | None = None) -> Standing:
        """Return the notion and the total after a charge; those of the start for None.

        With a window, what is spent in the one that is open ``now``, by default the latest time.
        """
        if self.window is not None:
            when = self.log.latest if now is None else now
            parts = {} if last_charge is None else decoded(self.notion, last_charge.facts["parts"])
            notion = self.window.notion(self.notion, parts, when)
            return Standing(notion, self.window.spent(notion, parts, when))
        if last_charge is None:
            return Standing(self.notion, self.notion.zero)
        notion = self.notion_in(last_charge.facts)
        return Standing(notion, notion.decode(last_charge.facts["total"]))

    def counts_after_plan(self, notion: CompositionNotion[Any]) -> bool:
        """Return whether a notion adds epsilons to that of a certified plan."""
        return notion is self._after_plan

    def limit_under(
        self,
        notions: tuple[CompositionNotion[Any], CompositionNotion[Any]],
        after_plan: bool,
        last_charge: LogEntry | None,
        now: str,
    ) -> CompositionNotion[Any]:
        """Return which of the notions of a budget limits what was spent up to a charge."""
        if self.window is None:
            return notions[after_plan]
        parts = {} if last_charge is None else decoded(self.notion, last_charge.facts["parts"])
        return self.window.notion(notions[0], parts, now)

    def shown_notion(self, budget: Budget, after_plan: bool) -> CompositionNotion[Any]:
        """Return the notion that shows totals under a budget, whatever window they are of."""
        notion = self.notions_of(budget)[after_plan]
        return notion if self.window is None else self.window.widest(notion)

    def parts_after(
        self, notion: CompositionNotion[Any], parts: Parts, now: str, spend: Spend
    ) -> Parts:
        """Return the parts after a spend at a time, without parts that no longer count."""
        label = WHOLE
        if self.window is not None:
            parts, label = self.window.live(parts, now), self.window.label(now)
        return {**parts, label: spend(parts.get(label, notion.zero))}

    def total_of(self, notion: CompositionNotion[Any], parts: Parts, now: str) -> Total[Any]:
        """Return the total of parts: of the window that is open, where there are windows."""
        if self.window is not None:
            return self.window.spent(notion, parts, now)
        return parts.get(WHOLE, notion.zero)

    def notion_in(self, facts: dict[str, Any]) -> CompositionNotion[Any]:
        """Return the notion in which a charging entry states its total."""
        return self._after_plan if facts.get("counting") == AFTER_PLAN else self.notion

    def unspent_users(self) -> UserTotals | None:
        """Return the users before any spend, or None for a data set without users."""
        return None if self.users is None else UserTotals(self.users, self.notion.zero)

    def user_totals(self) -> UserTotals:
        """Bring every user's total up to date and return them; inside a transaction."""
        return self._follow(None)

    def read_ahead(self) -> None:
        """Bring every user's total nearly up to date, in transactions that hold no one up."""
        while self.users is not None:
            with self.log.reading():
                if self.entries_behind() <= MOST_READ_IN_LOCK:
                    return
                self._follow(ENTRIES_READ_AHEAD)

    def entries_behind(self) -> int:
        """Return how many entries the users' totals are behind the log."""
        return 0 if self.users is None else self.log.head.seq - self._applied_head.seq

    def _follow(self, max_entries: int | None) -> UserTotals:
        """Apply the next entries of the log to the users' totals, all of them for None."""
        if self._user_totals is None:
            raise ParameterError("name", self.name, "a data set opened with users=")
        try:
            for entry in islice(self.log.entries_after(self._applied_head), max_entries):
                if entry.kind in CHARGING_KINDS and entry.facts["dataset"] == self.name:
                    self.apply(self._user_totals, entry)
                self._applied_head = entry.chain_head
        except BaseException:  # an entry may be applied, and its number not noted yet
            self._user_totals, self._applied_head = self.unspent_users(), START
            raise
        return self._user_totals

    def apply(self, user_totals: UserTotals, entry: LogEntry) -> None:
        """Add the cost of a log entry to its users' totals, without checking the limit."""
        facts, notion = entry.facts, self.notion_in(entry.facts)
        if PAID in facts:
            return
        if entry.kind == "plan":
            plan = from_dict(facts["plan"])
            ends = user_totals.totals_after(
                None, lambda total: self.total_after_plan(notion, total, plan, facts)
            )
            user_totals.assign_totals(None, ends)
            return
        who = self.users_of(entry)
        cost = notion.decode(facts["cost"])
        user_totals.assign_totals(
            who, user_totals.totals_after(who, lambda total: notion.add(total, cost))
        )

    def total_after_plan(
        self, notion: CompositionNotion[Any], total: Total[Any], plan: Plan, facts: dict[str, Any]
    ) -> Total[Any]:
        """Return the total after the plan of an entry, or the certified total that it states."""
        if "certified" in facts:
            return certified_total(facts["certified"])
        return notion.after(total, plan)

    def users_of(self, entry: LogEntry) -> Users | None:
        """Return the users that an entry names; None means all users."""
        encoded_users, block = entry.facts["who"], entry.facts["block"]
        if encoded_users is None:
            return None
        raw = None if block is None else self.log.attachment(entry, block)
        try:
            return decode_users(encoded_users, raw)
        except (ValueError, TypeError):
            raise LedgerCorrupt(self.log.name, "names no users", entry.seq) from None
