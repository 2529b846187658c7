"""What one data set of a book has spent, read from the entries of the log; nothing here writes.

A book is a log of entries on disk.  An entry that charges states the total after it, so the last
charge says what the data set spent.  A *notion* (pure privacy, zCDP, ...) says how costs add up,
and which total the budget allows; the *terms* are the budget and what else limits spending.

Some data sets have more totals than one.  With ``users``, each of them has the budget; with
``buckets``, such as regions, the people of each have it.  With a window, such as a month, an entry
states *parts*: what was spent in each month, or on each day.  What an author may spend is in
`accountant.book.quotas`.

A plan can be *set aside* when the data set is opened: one entry pays for all its runs, and the
runs themselves cost nothing more.  The first plan may be charged at its *certified* epsilon, which
is that of the whole plan at the budget's delta, computed exactly or proved.  Later costs are then
epsilons that are added to it: they are counted *after the plan*.

An `Account` is made from the log and the entry that opened its data set.  It returns what was spent
and by which notion (`Account.standing`), and what an entry adds to totals (`Account.charge_of`).
Before a charge is written, `accountant.book.reservations` decides by it whether the charge fits.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

from accountant.accountants.budget import Budget
from accountant.book.chain.entries import (
    CLOCK,
    CLOCK_KEY,
    PAID,
    TERMS,
    LogEntry,
    bucket_key,
    canonical_json,
    checked_name,
    set_aside_key,
    unknown_terms,
)
from accountant.book.limits.charges import AuthorTotals, Charge, RunningSums, unchanged
from accountant.book.limits.second_curator import terms_of_one
from accountant.book.limits.terms import Terms, stated_quota
from accountant.book.limits.user_totals import UserTotals
from accountant.book.limits.windows import WHOLE, Parts, decoded, window_of
from accountant.book.log import Log
from accountant.book.stored_values import decode_users
from accountant.errors import LedgerCorrupt, LedgerNewer, LedgerViolated, ParameterError
from accountant.ledger.composition_notions import certified_total, notion_of, pure_after_plan
from accountant.ledger.private_data import Users
from accountant.ledger.totals import CompositionNotion, Total
from accountant.plans.plan import Plan
from accountant.serialisation.plan_json import from_dict, to_dict

AFTER_PLAN = "epsilons after a plan"  # how entries name the notion that counts after a plan
MOST_READ_IN_LOCK = 32  # the most entries that are read in the lock of writers, while others wait
ENTRIES_READ_AHEAD = 10_000  # the most entries read in one transaction, while other threads wait


class Notions(NamedTuple):
    """How costs add up under one budget: as the data set was opened, and after a certified plan."""

    usual: CompositionNotion[Any]
    after_plan: CompositionNotion[Any]

    def counting(self, after_plan: bool) -> CompositionNotion[Any]:
        """Return the notion that holds after a certified plan, or the usual one."""
        return self.after_plan if after_plan else self.usual


class Standing(NamedTuple):
    """What a data set has spent: a total, and the notion that adds it up."""

    notion: CompositionNotion[Any]
    total: Total[Any]


class RunsSetAside(NamedTuple):
    """The runs of a plan that was set aside: how many were made, and how many ``paid_by`` paid for.

    ``paid_by`` is the number of the entry that charged them all.
    """

    made: int
    paid: int
    paid_by: int


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
        self.opening_seq = opened.seq
        self._notions: dict[Budget, Notions] = {}
        self._rule: tuple[str, float | None] = facts["notion"], facts["order"]
        self.opening = Terms.of(facts)
        self._unknown_at_opening = self._unknown = unknown_terms(facts)
        # hash and number of the entry that states the terms in force; empty for the opening
        self._terms_mark, self.terms_seq = "", 0
        self._opening_entry = opened
        # why an entry of terms lacks a second curator, and its number; once it does, it stays so
        self._terms_of_one: tuple[str, int] | None = None
        self.adopt(self.opening)
        self._user_totals: RunningSums[Account, UserTotals] | None = None
        if self.users is not None:
            unspent = partial(UserTotals, self.users, self.notion.zero)
            self._user_totals = RunningSums(log, self.name, unspent, Account.charge_users)
        uncharged = partial(AuthorTotals, self.users, self.window)
        self._author_totals = RunningSums(log, self.name, uncharged, Account.charge_author)
        self._own_totals = RunningSums(log, self.name, uncharged, Account.charge_own)
        self._bucket_totals = RunningSums(
            log, self.name, dict[str, Total[Any]], Account.charge_buckets
        )
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
                description = {"repr": repr(plan)[:1000]}  # an undeclared class may print pages
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
            self.note_unknown_terms({} if last_terms is None else last_terms.facts)
            if last_terms is not None and self.log.head.roles_after:
                terms_of_one_curator = terms_of_one(
                    self.log, self._opening_entry, last_terms, self._terms_mark
                )
                self._terms_of_one = self._terms_of_one or terms_of_one_curator
            self._terms_mark = mark
            self.terms_seq = 0 if last_terms is None else last_terms.seq
        return self.terms

    def note_unknown_terms(self, facts: dict[str, Any]) -> None:
        """Note what the terms in force, or the opening, state that this version does not know."""
        self._unknown = [*self._unknown_at_opening, *unknown_terms(facts)]

    @property
    def has_unknown_terms(self) -> bool:
        """Return whether newer code limits the data set by what this code does not know."""
        return bool(self._unknown)

    def refuse_unknown_terms(self) -> None:
        """Raise `LedgerNewer` if newer code limits the data set by what this code does not know."""
        if self._unknown:
            limits = ", ".join(map(repr, self._unknown))
            raise LedgerNewer(self.log.name, f"limits the data set {self.name!r} by {limits}")

    def refuse_terms_of_one(self) -> None:
        """Raise `LedgerViolated` if one curator alone gave more, where two are needed."""
        if self._terms_of_one is not None:
            raise LedgerViolated(self.log.name, {self.name: self._terms_of_one}, None)

    def notions_of(self, budget: Budget) -> Notions:
        """Return both notions under a budget."""
        if budget not in self._notions:
            name, order = self._rule
            self._notions[budget] = Notions(notion_of(name, budget, order), pure_after_plan(budget))
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
        notions: Notions,
        after_plan: bool,
        last_charge: LogEntry | None,
        now: str,
    ) -> CompositionNotion[Any]:
        """Return the notion whose limit holds for what was spent up to a charge, at the time now.

        It is one of the two notions of a budget.  With a window, its limit includes what earlier
        windows carry over.
        """
        if self.window is None:
            return notions.counting(after_plan)
        return self.window.notion(notions.usual, self.parts_at(last_charge), now)

    def shown_notion(self, budget: Budget, after_plan: bool) -> CompositionNotion[Any]:
        """Return the notion to show totals in; with windows, of the largest limit of any window."""
        notion = self.notions_of(budget).counting(after_plan)
        return notion if self.window is None else self.window.widest(notion)

    # --- the total of the data set

    def last_charge(self) -> LogEntry | None:
        """Return the last charge, None if there is none; call it inside a transaction.

        Raises `LedgerViolated` if it does not state what its limits ask for: a version that does
        not know them has charged, so what it spent is missing from the totals of these limits.
        So it does where one curator gave what needs two.
        """
        self.refuse_terms_of_one()
        last_charge = self.log.last_charge(self.name)
        if last_charge is None:
            return None
        missing = [
            limit
            for limit, fact, is_set in (
                ("windows", "parts", self.window is not None),
                ("buckets", "buckets", self.buckets is not None),
                ("quotas", "own", self.terms.has_quotas and last_charge.seq > self.terms_seq),
            )
            if is_set and fact not in last_charge.facts
        ]
        if missing:
            why = f"was charged by a version that does not know {missing[0]}"
            raise LedgerViolated(self.log.name, {self.name: (why, last_charge.seq)}, None)
        return last_charge

    def standing(self) -> Standing:
        """Return what the data set has spent now; call it inside a transaction.

        With users, this is what the user with the largest total spent.
        """
        self.follow_terms()
        return self.standing_after(self.last_charge())

    def standing_after(self, last_charge: LogEntry | None, now: str | None = None) -> Standing:
        """Return the notion and the total after a charge; the total is zero where that is None.

        With a window, the total is of the window that is open ``now``, by default at the log's
        time for windows.
        """
        if self.window is not None:
            when = self.log.times.window if now is None else now
            parts = self.parts_at(last_charge)
            notion = self.window.notion(self.notion, parts, when)
            return Standing(notion, self.window.spent(notion, parts, when))
        if last_charge is None:
            return Standing(self.notion, self.notion.zero)
        notion = self.notion_in(last_charge.facts)
        return Standing(notion, notion.decode(last_charge.facts["total"]))

    def parts_at(self, last_charge: LogEntry | None) -> Parts:
        """Return what was spent in each part of time up to a charge, as it states this."""
        return {} if last_charge is None else decoded(self.notion, last_charge.facts["parts"])

    def total_of(
        self, notion: CompositionNotion[Any], parts: Parts, now: str | None = None
    ) -> Total[Any]:
        """Return the total of parts: of the window that is open, where there are windows.

        The time is that of the log where it is not given as ``now``.
        """
        if self.window is not None:
            return self.window.spent(notion, parts, self.log.times.window if now is None else now)
        return parts.get(WHOLE, notion.zero)

    def total_after_plan(
        self, notion: CompositionNotion[Any], total: Total[Any], plan: Plan, facts: dict[str, Any]
    ) -> Total[Any]:
        """Return the total after the plan of an entry: the certified one if the facts state it."""
        if "certified" in facts:
            return certified_total(facts["certified"])
        return notion.after(total, plan)

    def note_parts(self, parts: Parts, entry: LogEntry) -> None:
        """Add what an entry states of parts of time to what those before it stated of all parts."""
        if self.window is not None:
            if entry.kind == TERMS:
                self.window.correct(self.notion, parts, entry.window_time)
            parts.update(self.parts_at(entry))

    def paid_at(self, run: int) -> str:
        """Return the time by which windows count the entry that paid for a run."""
        paid_at = self.log.entry(run).window_time
        correction = self.log.entry_with_key(CLOCK_KEY)
        while correction is not None and correction.seq > run:
            paid_at = min(paid_at, correction.window_time)
            # a damaged entry cannot lead in a circle
            earlier = min(correction.facts["earlier"], correction.seq - 1)
            correction = self.log.entry(earlier) if earlier else None
        return paid_at

    # --- runs of a plan that was set aside

    def runs_set_aside(self) -> RunsSetAside | None:
        """Return the runs of the plan that was set aside; None if no plan was."""
        if self.aside is None:
            return None
        last_run = self.log.entry_with_key(set_aside_key(self.name))
        paid_by = 0 if last_run is None else last_run.facts.get(PAID, last_run.seq)
        if last_run is None or self.log.entry(paid_by).facts.get("runs") is None:
            raise LedgerCorrupt(self.log.name, "does not say what was set aside")
        return RunsSetAside(last_run.facts.get("nth", 0), self.aside["runs"], paid_by)

    def free_runs(self, plan: Plan) -> int:
        """Return how many runs of this plan are paid for and not made yet."""
        runs = self.runs_set_aside()
        if self.aside is None or runs is None or self.aside["plan"] != to_dict(plan):
            return 0
        return runs.paid - runs.made

    def next_run(self, plan: Plan) -> dict[str, Any]:
        """Return the facts by which the entry of a run is free; none if no run of the plan is."""
        runs = self.runs_set_aside()
        if runs is None or not self.free_runs(plan):
            return {}
        return {PAID: runs.paid_by, "nth": runs.made + 1}

    # --- what a charge adds to totals

    def charge_of(self, entry: LogEntry) -> Charge:
        """Return what a charging entry adds to totals, without checking the limit.

        It names users only where they have totals of their own.
        """
        facts, notion = entry.facts, self.notion_in(entry.facts)
        if PAID in facts:
            return Charge(notion, unchanged, None, entry.window_time)
        if entry.kind == "plan":
            plan = from_dict(facts["plan"])
            return Charge(
                notion,
                lambda total: self.total_after_plan(notion, total, plan, facts),
                None,
                entry.window_time,
            )
        cost = notion.decode(facts["cost"])
        who = None if self.users is None else self.users_of(entry)
        return Charge(notion, lambda total: notion.add(total, cost), who, entry.window_time)

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

    # --- totals of users

    def charge_users(self, users: UserTotals, entry: LogEntry) -> None:
        """Add a charge to the totals of the users who pay it, without checking the limit."""
        if entry.kind != TERMS:
            charge = self.charge_of(entry)
            users.add(charge.who, charge.spend)

    def user_totals(self) -> UserTotals:
        """Bring every user's total up to date and return them; call it inside a transaction."""
        if self._user_totals is None:
            raise ParameterError("name", self.name, "a data set opened with users=")
        return self._user_totals.up_to_date(self)

    def entries_behind(self) -> int:
        """Return how many entries the users' totals are behind the log."""
        return 0 if self._user_totals is None else self._user_totals.entries_behind

    def read_ahead(self) -> None:
        """Bring the totals of users nearly up to date, in transactions that only read."""
        if self._user_totals is None:
            return
        is_behind = True
        while is_behind:
            with self.log.reading():
                is_behind = self._user_totals.entries_behind > MOST_READ_IN_LOCK
                if is_behind:
                    self._user_totals.up_to_date(self, ENTRIES_READ_AHEAD)
        with self.log.reading():
            if self.follow_terms().has_quotas:
                self.own_totals()

    # --- what each author charged

    def uncharged_authors(self) -> AuthorTotals:
        """Return the totals of authors before any charge."""
        return AuthorTotals(self.users, self.window)

    def charge_author(self, authors: AuthorTotals, entry: LogEntry) -> None:
        """Add a charge to its author's totals; a plan that was set aside counts for no author.

        An entry of terms may set a quota, or move the totals of all authors to other windows by a
        corrected clock.
        """
        facts = entry.facts
        if entry.kind == TERMS:
            if facts["change"] == "quota":
                authors.quotas[facts["whose"]] = stated_quota(facts)
            elif facts["change"] == CLOCK:
                authors.correct(self.notion, entry.window_time)
            return
        charge = (
            Charge(self.notion_in(facts), unchanged, None, entry.window_time)
            if "runs" in facts
            else self.charge_of(entry)
        )
        authors.add(facts["author"], charge)

    def charge_own(self, authors: AuthorTotals, entry: LogEntry) -> None:
        """Do what `charge_author` does, for the author who has opened the book alone."""
        if entry.kind == TERMS or entry.facts["author"] == self.log.author:
            self.charge_author(authors, entry)

    def author_totals(self) -> AuthorTotals:
        """Return what every author charged, from all entries; call it inside a transaction."""
        return self._author_totals.up_to_date(self)

    def own_totals(self) -> AuthorTotals:
        """Return what the author who has opened the book charged; inside a transaction."""
        return self._own_totals.up_to_date(self)

    # --- what the people of each bucket spent

    def checked_buckets(self, buckets: Iterable[str] | None) -> tuple[str, ...]:
        """Return the names of the buckets that pay, each once; none where a data set has none."""
        if self.buckets is None:
            if buckets is not None:
                allowed = "absent: the data set was opened without buckets="
                raise ParameterError("buckets", buckets, allowed)
            return ()
        if buckets is None or isinstance(buckets, str):
            allowed = f"a list of names: each {self.buckets} whose people the data are of"
            raise ParameterError("buckets", buckets, allowed)
        names = tuple(sorted({checked_name("buckets", bucket) for bucket in buckets}))
        if not names:
            raise ParameterError("buckets", buckets, f"one {self.buckets} at least")
        return names

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

    def charge_buckets(self, totals: dict[str, Total[Any]], entry: LogEntry) -> None:
        """Take the totals that a charge states, of each bucket that paid it."""
        stated = {} if entry.kind == TERMS else entry.facts["buckets"]
        for bucket, encoded_total in stated.items():
            totals[bucket] = self.notion.decode(encoded_total)

    def bucket_totals(self) -> dict[str, Total[Any]]:
        """Return what each bucket spent, from all entries; call it inside a transaction."""
        return self._bucket_totals.up_to_date(self)

    def each_total(self) -> list[Total[Any]] | None:
        """Return the totals of users or buckets that have budgets of their own; else None."""
        if self.buckets is not None:
            return list(self.bucket_totals().values())
        return None if self.users is None else self.user_totals().totals
