"""What one data set of a book has spent, read from the entries of the log; nothing here writes.

A book is a log of entries on disk.  An entry that charges states the total after it, so the last
charge says what the data set spent.  A *notion* (pure privacy, zCDP, ...) says how costs add up,
and which total the budget allows; the *terms* are the budget and what else limits spending.

Some data sets have more totals than one.  With ``users``, each of them has the budget; with
``buckets``, such as regions, the people of each have it.  With a window, such as a month, an entry
states *parts*: what was spent in each month, or on each day.  While there are quotas, it also
states what its author has charged.

A plan can be *set aside* when the data set is opened: one entry pays for all its runs, and the
runs themselves cost nothing more.  The first plan may be charged at its *certified* epsilon, which
is that of the whole plan at the budget's delta, computed exactly or proved.  Later costs are then
epsilons that are added to it: they are counted *after the plan*.
"""

from __future__ import annotations

from itertools import islice
from typing import Any, NamedTuple

from accountant.accountants.budget import Budget
from accountant.book.chain.entries import (
    CHARGING_KINDS,
    FIRST_PREDECESSOR,
    PAID,
    TERMS,
    ChainHead,
    LogEntry,
    author_key,
    bucket_key,
    canonical_json,
    set_aside_key,
)
from accountant.book.limits.terms import Terms
from accountant.book.limits.user_totals import Spend, UserTotals, decode_users
from accountant.book.limits.windows import WHOLE, Parts, decoded, encoded, window_of
from accountant.book.log import Log
from accountant.errors import LedgerCorrupt, ParameterError
from accountant.ledger.composition_notions import certified_total, notion_of, pure_after_plan
from accountant.ledger.private_data import Users
from accountant.ledger.totals import CompositionNotion, Total
from accountant.plans.plan import Plan
from accountant.serialisation.plan_json import from_dict, to_dict

AFTER_PLAN = "epsilons after a plan"  # how entries name the notion that counts after a plan
START = ChainHead(0, FIRST_PREDECESSOR)  # the head of a log without entries
MOST_READ_IN_LOCK = 32  # the most entries that are read in the lock of writers, while others wait
ENTRIES_READ_AHEAD = 10_000  # the most entries read in one transaction, while other threads wait
# What each author charged, by name: to each user where there are users, else by part.
AuthorCharges = dict[str, Parts | UserTotals]


class Standing(NamedTuple):
    """What a data set has spent: a total, and the notion that adds it up."""

    notion: CompositionNotion[Any]
    total: Total[Any]


class Account:
    """The terms of one data set, and the totals that its entries in the log add up to."""

    def __init__(self, log: Log, opened: LogEntry) -> None:
        self.log, facts = log, opened.facts
        self.name: str = facts["dataset"]
        self.users: int | None = facts["users"]
        self.unit: str = facts["unit"]
        self.people: str | None = facts.get("people")  # the name of those whom the data are about
        self.window = window_of(facts)
        # the plan that was set aside, as plain values, and the number of its runs
        self.aside: dict[str, Any] | None = facts.get("aside")
        self.buckets: str | None = facts.get("buckets")  # what the buckets are, such as regions
        self.idealised: bool = facts.get("idealised", False)
        # whether only plans with a proof are charged
        self.verified: bool = facts.get("verified", False)
        self.opened: str = facts["time"]  # when it was opened
        # by budget: the notion, and the one that counts after a plan
        self._notions: dict[Budget, tuple[CompositionNotion[Any], CompositionNotion[Any]]] = {}
        self._rule: tuple[str, float | None] = facts["notion"], facts["order"]
        self.opening = Terms.of(facts)
        # the hash of the entry that states the terms in force; empty for those of the opening
        self._terms_mark = ""
        self.adopt(self.opening)
        # What users, authors and buckets spent; each is up to date with the log up to its own head.
        self._user_totals = self.unspent_users()
        self._authors: AuthorCharges = {}
        self._buckets: dict[str, Total[Any]] = {}
        self._applied_head = self._authors_head = self._buckets_head = START
        self._described: dict[tuple[type[Any], Plan], dict[str, Any]] = {}

    def description_of(self, plan: Any) -> dict[str, Any]:
        """Return a mechanism or loss as entries state it: as plain values, else as its repr."""
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

    # --- terms, and the notions that they limit

    def adopt(self, terms: Terms) -> None:
        """Take these terms; kind and order of the notion stay as the data set was opened."""
        self.terms, self.budget = terms, terms.budget
        self.notion, self.after_plan = self.notions_of(terms.budget)

    def follow_terms(self) -> Terms:
        """Adopt the terms in force and return them; call it inside a transaction."""
        last_terms = self.log.last_terms(self.name)
        mark = "" if last_terms is None else last_terms.hash
        if mark != self._terms_mark:
            self.adopt(self.opening if last_terms is None else Terms.of(last_terms.facts))
            self._terms_mark = mark
        return self.terms

    def notions_of(self, budget: Budget) -> tuple[CompositionNotion[Any], CompositionNotion[Any]]:
        """Return the notion under a budget, and the one that counts after a plan."""
        if budget not in self._notions:
            name, order = self._rule
            self._notions[budget] = notion_of(name, budget, order), pure_after_plan(budget)
        return self._notions[budget]

    def notion_in(self, facts: dict[str, Any]) -> CompositionNotion[Any]:
        """Return the notion in which a charging entry states its total."""
        return self.after_plan if facts.get("counting") == AFTER_PLAN else self.notion

    def counting(self, notion: CompositionNotion[Any]) -> dict[str, str]:
        """Return the field in which an entry names the notion; none for the usual one."""
        return {"counting": AFTER_PLAN} if notion is self.after_plan else {}

    def counts_after_plan(self, notion: CompositionNotion[Any]) -> bool:
        """Return whether the notion is the one that counts after a plan."""
        return notion is self.after_plan

    def limit_under(
        self,
        notions: tuple[CompositionNotion[Any], CompositionNotion[Any]],
        after_plan: bool,
        last_charge: LogEntry | None,
        now: str,
    ) -> CompositionNotion[Any]:
        """Return the notion whose limit holds for what was spent up to a charge, at the time now.

        It is one of the two notions of a budget.  With a window, its limit includes what earlier
        windows carry over.
        """
        if self.window is None:
            return notions[after_plan]
        parts = {} if last_charge is None else decoded(self.notion, last_charge.facts["parts"])
        return self.window.notion(notions[0], parts, now)

    def shown_notion(self, budget: Budget, after_plan: bool) -> CompositionNotion[Any]:
        """Return the notion to show totals in; with windows, of the largest limit of any window."""
        notion = self.notions_of(budget)[after_plan]
        return notion if self.window is None else self.window.widest(notion)

    # --- the total of the data set

    def standing(self) -> Standing:
        """Return what the data set has spent now; call it inside a transaction.

        With users, this is what the user with the largest total spent.
        """
        self.follow_terms()
        return self.standing_after(self.log.last_charge(self.name))

    def standing_after(self, last_charge: LogEntry | None, now: str | None = None) -> Standing:
        """Return the notion and the total after a charge; the total is zero where that is None.

        With a window, the total is of the window that is open ``now``, by default at the log's
        latest time.
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

    def total_after_plan(
        self, notion: CompositionNotion[Any], total: Total[Any], plan: Plan, facts: dict[str, Any]
    ) -> Total[Any]:
        """Return the total after the plan of an entry: the certified one if the facts state it."""
        if "certified" in facts:
            return certified_total(facts["certified"])
        return notion.after(total, plan)

    # --- runs of a plan that was set aside

    def runs(self) -> tuple[int, int] | None:
        """Return how many runs of the plan that was set aside were made, and how many are paid.

        None if no plan was set aside.
        """
        if self.aside is None:
            return None
        last_run = self.log.entry_with_key(set_aside_key(self.name))
        if (
            last_run is None
            or self.log.entry(last_run.facts.get(PAID, last_run.seq)).facts.get("runs") is None
        ):
            raise LedgerCorrupt(self.log.name, "does not say what was set aside")
        return last_run.facts.get("nth", 0), self.aside["runs"]

    def free_runs(self, plan: Plan) -> int:
        """Return how many runs of this plan are paid for and not made yet."""
        runs = self.runs()
        if self.aside is None or runs is None or self.aside["plan"] != to_dict(plan):
            return 0
        runs_made, runs_paid = runs
        return runs_paid - runs_made

    # --- totals of users

    def unspent_users(self) -> UserTotals | None:
        """Return the users before any spend, or None for a data set without users."""
        return None if self.users is None else UserTotals(self.users, self.notion.zero)

    def user_totals(self) -> UserTotals:
        """Bring every user's total up to date and return them; call it inside a transaction."""
        return self._apply_entries(None)

    def read_ahead(self) -> None:
        """Bring the totals of users nearly up to date, in transactions that only read."""
        if self.users is None:
            return
        is_behind = True
        while is_behind:
            with self.log.reading():
                is_behind = self.entries_behind() > MOST_READ_IN_LOCK
                if is_behind:
                    self._apply_entries(ENTRIES_READ_AHEAD)
        with self.log.reading():
            if self.follow_terms().quotas:
                self.author_charges()

    def entries_behind(self) -> int:
        """Return how many entries the users' totals are behind the log."""
        return 0 if self.users is None else self.log.head.seq - self._applied_head.seq

    def _apply_entries(self, max_entries: int | None) -> UserTotals:
        """Apply the next entries of the log to the users' totals, all of them for None."""
        if self._user_totals is None:
            raise ParameterError("name", self.name, "a data set opened with users=")
        try:
            for entry in islice(self.log.entries_after(self._applied_head), max_entries):
                if entry.kind in CHARGING_KINDS and entry.facts["dataset"] == self.name:
                    self.apply(self._user_totals, entry)
                self._applied_head = entry.chain_head
        except BaseException:
            # The last entry may be applied without being noted, so the totals begin anew.
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

    # --- what each author charged, which quotas limit

    def author_parts(self, notion: CompositionNotion[Any], author: str) -> Parts:
        """Return what an author charged, as the author's last entry states it while quotas hold.

        It is the author's last charge, or a change of terms, which states this for all authors.
        """
        last_entry = self.log.entry_with_key(author_key(self.name, author))
        if last_entry is None:
            return {}
        if last_entry.facts["dataset"] != self.name or (
            last_entry.kind != TERMS and "own" not in last_entry.facts
        ):
            raise LedgerCorrupt(self.log.name, "does not say what an author spent", last_entry.seq)
        encoded_parts = (
            last_entry.facts["used"][author]
            if last_entry.kind == TERMS
            else last_entry.facts["own"]
        )
        return decoded(notion, encoded_parts)

    def author_total(
        self, notion: CompositionNotion[Any], charged: Parts | UserTotals, now: str | None = None
    ) -> Total[Any]:
        """Return the total that counts for an author: with users, the largest total of a user."""
        if isinstance(charged, UserTotals):
            return charged.worst_total()
        return self.total_of(notion, charged, self.log.latest if now is None else now)

    def author_charges(self) -> AuthorCharges:
        """Return what every author charged, from all entries; call it inside a transaction."""
        try:
            for entry in self.log.entries_after(self._authors_head):
                if entry.kind in CHARGING_KINDS and entry.facts["dataset"] == self.name:
                    self.add_author_charge(self._authors, entry)
                self._authors_head = entry.chain_head
        except BaseException:
            # The last entry may be added without being noted, so the charges begin anew.
            self._authors, self._authors_head = {}, START
            raise
        return self._authors

    def add_author_charge(self, charges: AuthorCharges, entry: LogEntry) -> None:
        """Add a charge to its author's charges; a plan that was set aside counts for no author."""
        facts, author = entry.facts, entry.facts["author"]
        notion = self.notion_in(facts)
        if self.users is not None:
            totals = charges.setdefault(author, UserTotals(self.users, notion.zero))
            if "runs" not in facts and isinstance(totals, UserTotals):
                self.apply(totals, entry)
            return
        own_parts = charges.get(author, {})

        def spend(total: Total[Any]) -> Total[Any]:
            if PAID in facts or "runs" in facts:
                return total
            if facts["kind"] == "plan":
                return self.total_after_plan(notion, total, from_dict(facts["plan"]), facts)
            return notion.add(total, notion.decode(facts["cost"]))

        if not isinstance(own_parts, UserTotals):
            charges[author] = self.parts_after(notion, own_parts, entry.latest, spend)

    def encoded_author_charges(
        self, notion: CompositionNotion[Any], charges: AuthorCharges
    ) -> dict[str, Any]:
        """Return what each author charged, as an entry of terms states it."""
        return {
            author: notion.encode(charged.worst_total())
            if isinstance(charged, UserTotals)
            else encoded(notion, charged)
            for author, charged in charges.items()
        }

    # --- what the people of each bucket spent

    def bucket_total(self, notion: CompositionNotion[Any], bucket: str) -> Total[Any]:
        """Return what the people of a bucket spent, as the bucket's last charge states it."""
        last_charge = self.log.entry_with_key(bucket_key(self.name, bucket))
        if last_charge is None:
            return notion.zero
        if last_charge.facts["dataset"] != self.name or bucket not in last_charge.facts.get(
            "buckets", {}
        ):
            raise LedgerCorrupt(self.log.name, "does not say what a bucket spent", last_charge.seq)
        return notion.decode(last_charge.facts["buckets"][bucket])

    def bucket_totals(self) -> dict[str, Total[Any]]:
        """Return what each bucket spent, from all entries; call it inside a transaction."""
        for entry in self.log.entries_after(self._buckets_head):
            if entry.kind in CHARGING_KINDS and entry.facts["dataset"] == self.name:
                for bucket, encoded_total in entry.facts["buckets"].items():
                    self._buckets[bucket] = self.notion.decode(encoded_total)
            self._buckets_head = entry.chain_head
        return self._buckets

    def each_total(self) -> list[Total[Any]] | None:
        """Return the totals of users or buckets that have budgets of their own; else None."""
        if self.buckets is not None:
            return list(self.bucket_totals().values())
        return None if self.users is None else self.user_totals().totals
