"""Verification of accounts: each stated total is the one before plus the cost, within the terms.

A book is a log of entries, each a dictionary of facts.  `AccountsCheck` reads along a log whose
hashes are right.  It gives each entry to the `ChargeCheck` of its data set, which adds up anew what
was spent and compares this with what the entry states.  Each `ChargeCheck` has a `TermsCheck` for
the budget and the end of its data set, and this one a `QuotaCheck` for the quotas of authors.

These kinds of entries say something about an account:

- "dataset" opens a data set: its terms, and as "aside" a plan whose runs are paid for at once.
- "reserve" charges one release, by its "loss" (what the mechanism may reveal).  It states the
  "cost" and the "total" after it, and what else its data set counts: the "parts" of time, the
  total of each of the "buckets" that paid, and as "own" what its author has charged.
- "plan" charges a whole plan, and states the same without a cost.  With "runs" it pays for the runs
  that were set aside.  With `PAID`, the number of that entry, it is one of these runs and costs
  nothing; "nth" counts them.  With "certified" the plan was charged its exact epsilon.
- "step" records a release that its plan, of entry "run", has paid for.
- "terms" states all terms anew; "change" says which of them is another one.
- "clock" sets the log's time back.  A "terms" entry of the change "clock" follows for each data set
  with windows: it states what was spent in each of them by the corrected time.

A *notion* says how costs add up (pure privacy, zCDP, ...).  A *standing* is the notion and the
total that hold after an entry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from accountant.accountants.tight import Tight
from accountant.book.account import Account, Standing
from accountant.book.chain.entries import CHANGES, CHARGING_KINDS, CLOCK, PAID, TERMS, LogEntry
from accountant.book.checks.quota_check import QuotaCheck
from accountant.book.checks.time_check import TimeCheck
from accountant.book.limits.charges import Charge
from accountant.book.limits.plan_proofs import is_stated
from accountant.book.limits.terms import Terms, exceeds_every_way
from accountant.book.limits.user_totals import Spend, UserTotals
from accountant.book.limits.windows import Parts, decoded, encoded
from accountant.book.log import Log
from accountant.errors import DatasetClosed, LedgerCorrupt, LedgerViolated
from accountant.ledger.totals import CompositionNotion, Total, is_at_least, largest_total
from accountant.plans.plan import Repeat, as_plan
from accountant.serialisation.plan_json import PlanFileError, from_dict, to_dict

# Relative difference that a recomputed epsilon may have, since other versions of the libraries may
# compute a slightly different one.  A false entry can hide at most this share of a plan's epsilon.
CERTIFIED_ROUND_OFF = 1e-6


CHECKED_KINDS = {*CHARGING_KINDS, TERMS, "step"}  # the kinds that state something of an account


class AccountsCheck:
    """Reads along the entries of a book, and checks what they state of each data set."""

    def __init__(self, log: Log, times: TimeCheck) -> None:
        self._log, self._times = log, times
        self._checks: dict[str, ChargeCheck] = {}  # by data set
        # What breaks the terms of a data set, and in which entry.  The others are checked further.
        self._violations: dict[str, tuple[str, int]] = {}
        # the data sets whose next entries must count windows anew, after a correction of the clock
        self._to_correct: list[str] = []

    def check_entry(self, entry: LogEntry) -> None:
        """Check what an entry states about the account of a data set, if it states anything."""
        self._times.check_entry(entry)
        kind = entry.kind
        is_counted_anew = kind == TERMS and entry.facts.get("change") == CLOCK
        # Nothing is spent any more from a data set whose terms are broken, corrected or not.
        is_broken = is_counted_anew and entry.facts["dataset"] in self._violations
        if is_counted_anew and not self._to_correct and not is_broken:
            self._refuse("counts windows anew where no clock was corrected", entry)
        if self._to_correct and not is_broken:
            expected = self._to_correct.pop(0)
            if not is_counted_anew or entry.facts["dataset"] != expected:
                self._refuse("comes before all windows are counted by a corrected clock", entry)
        if kind == CLOCK:
            for name, check in self._checks.items():
                self._check(name, check.check_end_after, entry)
            self._to_correct = [
                name
                for name, check in self._checks.items()
                if check.has_moved_windows and name not in self._violations
            ]
        elif kind == "dataset":
            name = entry.facts["dataset"]
            if name in self._checks:  # what it spent before would be forgotten
                self._refuse("opens a data set for a second time", entry)
            self._checks[name] = ChargeCheck(self._log, entry, self._times)
        elif kind in CHECKED_KINDS:
            name = entry.facts["dataset"]
            self._check(name, self._checks[name].check_entry, entry)

    def _check(self, name: str, check: Callable[[LogEntry], None], entry: LogEntry) -> None:
        """Check what an entry means for a data set, and note the first that breaks its terms."""
        if name in self._violations:
            return
        try:
            check(entry)
        except PlanFileError:  # it may be a kind that is declared elsewhere
            raise
        except LedgerCorrupt as violation:
            self._violations[name] = violation.why, violation.entry or entry.seq
        except (KeyError, TypeError, ValueError, ArithmeticError) as error:
            why = f"an entry does not say what it must: {type(error).__name__}"
            self._violations[name] = why, entry.seq

    def check_last_charges(self) -> None:
        """Check that a spend would find the last charge of each data set through the index."""
        if self._to_correct:
            raise LedgerCorrupt(self._log.name, "ends before all windows are counted anew")
        for name, check in self._checks.items():
            if name in self._violations:
                continue
            check.refuse_unstated_quotas()
            indexed_charge = self._log.last_charge(name)
            if check.last_seq != (0 if indexed_charge is None else indexed_charge.seq):
                raise LedgerCorrupt(self._log.name, "an index does not lead to the last spends")

    def refuse_first(self, fault: LedgerCorrupt) -> None:
        """Raise `LedgerCorrupt` for the first violation if the log has this fault after it."""
        if self._violations and not isinstance(fault, LedgerViolated):
            why, seq = next(iter(self._violations.values()))
            if fault.entry is None or seq <= fault.entry:
                raise LedgerCorrupt(self._log.name, why, seq) from None

    def refuse_violations(self) -> None:
        """Raise `LedgerViolated` if entries of some data sets break their terms."""
        if self._violations:
            intact = len(self._checks) - len(self._violations)
            raise LedgerViolated(self._log.name, self._violations, intact)

    def _refuse(self, why: str, entry: LogEntry) -> None:
        raise LedgerCorrupt(self._log.name, why, entry.seq)


class ChargeCheck:
    """Recomputes what one data set spent, from the entry that opened it on."""

    def __init__(self, log: Log, opened: LogEntry, times: TimeCheck) -> None:
        self._log, self._seq = log, opened.seq  # the number of the entry that is checked
        self._account = account = Account(log, opened)
        account.refuse_unknown_terms()
        self._terms = TermsCheck(account, times)
        self._standing = account.standing_after(None)
        self._last_charge: LogEntry | None = None
        self._users: UserTotals | None = None
        if account.users is not None:
            self._users = UserTotals(account.users, account.notion.zero)
        self._bucket_totals: dict[str, Total[Any]] = {}  # by bucket
        self._all_parts: Parts = {}  # what was spent in every part of time since the opening
        # the entry that set runs aside, and how many runs were made since
        self._runs: tuple[LogEntry | None, int] = None, 0
        # The costs of losses, as entries state them and as totals, and that of the last entry: many
        # entries in a row have the same loss.
        self._costs: dict[tuple[str | None, str], tuple[list[str], Total[Any]]] = {}
        self._last_loss_key: Any = None
        self._last_cost: tuple[list[str], Total[Any]] = ([], Total(0, 0))

    @property
    def last_seq(self) -> int:
        """Return the number of the last charge; 0 if there is none."""
        return 0 if self._last_charge is None else self._last_charge.seq

    def refuse_unstated_quotas(self) -> None:
        """Raise `LedgerCorrupt` if the log ends before all quotas are found under keys."""
        self._terms.quotas.refuse_unstated(self._log.head)

    def check_entry(self, entry: LogEntry) -> None:
        """Check a charge, a step of a plan or a change of the terms, and take it into account."""
        self._seq = entry.seq
        # Logs without an index of keys do not name the charge before.  Who leaves it out gains
        # nothing: the totals below are compared with that charge, named or not.
        states_charges = entry.states_charges
        if states_charges and entry.facts.get("before", self.last_seq) != self.last_seq:
            self._refuse("does not name the charge before it")
        if entry.kind == TERMS:
            self._standing = self._terms.check_change(
                entry, self._standing, self._each_total(), self._last_charge
            )
            if states_charges:
                self.check_counted_anew(entry)
                self._last_charge = entry
            return
        if entry.kind in CHARGING_KINDS:
            self._add(entry)
            self._last_charge = entry
        self._terms.check_spend(entry)

    @property
    def has_moved_windows(self) -> bool:
        """Return whether a correction of the clock must be followed by new sums of windows."""
        account = self._account
        has_charges = account.window is not None and self._last_charge is not None
        return has_charges and not account.terms.closed

    def check_end_after(self, correction: LogEntry) -> None:
        """Check that a correction of the clock brings no expired data set back."""
        self._seq, terms = correction.seq, self._account.terms
        if terms.is_over(correction.facts["was"]) and not terms.is_over(correction.latest):
            self._refuse("brings an expired data set back to life")

    def check_counted_anew(self, entry: LogEntry) -> None:
        """Check what a corrected clock makes of parts of time: later ones count in the open one."""
        account, notion = self._account, self._account.notion
        if account.window is None:
            return
        account.window.correct(notion, self._all_parts, entry.window_time)
        parts = account.window.live(self._all_parts, entry.window_time)
        if decoded(notion, entry.facts["parts"]) != parts:
            self._refuse("its parts are not the sums by the corrected clock")
        if notion.decode(entry.facts["total"]) != account.total_of(
            notion, parts, entry.window_time
        ):
            self._refuse("its total is not that of the open window by the corrected clock")

    def _add(self, entry: LogEntry) -> None:
        """Check that the total an entry states is the previous total plus its cost.

        Where users or buckets have budgets of their own, the stated total is the largest one of
        any of them so far.
        """
        account, facts = self._account, entry.facts
        before_notion, before = self._standing
        if account.window is not None:  # what was spent in the window of the entry's time
            before_notion, before = account.standing_after(self._last_charge, entry.window_time)
        notion = before_notion if account.window else account.notion_in(facts)
        # The notion changes once, if the first charge of all is a plan at its certified epsilon:
        # the epsilons of later charges are added to it.
        is_certified = notion is not before_notion
        if is_certified != ("certified" in facts) or (
            is_certified and before != before_notion.zero
        ):
            self._refuse("counts what was spent in another way than the entry before")
        if is_certified:
            before = notion.zero
            self._check_certified(facts)
        cost = self._cost(facts) if facts["kind"] == "reserve" else notion.zero

        def spend(total: Total[Any]) -> Total[Any]:
            if PAID in facts:
                return total
            if facts["kind"] == "plan":
                return account.total_after_plan(notion, total, from_dict(facts["plan"]), facts)
            return notion.add(total, cost)

        self._check_runs(facts, entry)
        self._check_proof(facts)
        if self._users is not None:
            account.charge_users(self._users, entry)
            after = largest_total([self._users.worst_total(), before])
        elif account.buckets is not None:
            after = largest_total([before, *self._check_buckets(notion, facts, spend)])
        else:
            after = spend(before)
        if account.window is not None:
            self._check_parts(entry, spend)
        # Texts are compared first, which is quick, but one decimal number has several texts.
        if facts["total"] != notion.encode(after):
            after = self._stated_total(notion, before, after, facts)
        if exceeds_every_way(notion, after, self._each_total()):
            self._refuse("spends more than the budget")
        self._standing = Standing(notion, after)

    def _stated_total(
        self,
        notion: CompositionNotion[Any],
        before: Total[Any],
        computed: Total[Any],
        facts: dict[str, Any],
    ) -> Total[Any]:
        """Return the stated total, where another version may have computed it.

        Earlier versions added the parts of a repeated release to ``before`` one by one.
        """
        stated = notion.decode(facts["total"])
        is_release = facts["kind"] == "reserve" and "repr" not in facts["loss"]
        if not self._is_paid(facts, stated, computed) and not (
            is_release and stated == notion.after(before, from_dict(facts["loss"]))
        ):
            self._refuse("its total is not the sum of what was spent")
        return stated

    def _is_paid(self, facts: dict[str, Any], stated: Total[Any], computed: Total[Any]) -> bool:
        """Return whether a stated total is the computed one, or more than it by the cost of plans.

        A version with coarser bounds may have charged more for a plan.  The plans of users are
        computed again with each of their charges.
        """
        has_plans = facts["kind"] == "plan" or self._users is not None
        return stated == computed or (has_plans and is_at_least(stated, computed))

    def _each_total(self) -> list[Total[Any]] | None:
        """Return the totals of users or buckets that have budgets of their own; else None."""
        if self._account.buckets is not None:
            return list(self._bucket_totals.values())
        return None if self._users is None else self._users.totals

    def _check_buckets(
        self, notion: CompositionNotion[Any], facts: dict[str, Any], spend: Spend
    ) -> list[Total[Any]]:
        """Check what a charge says of each bucket that paid, and return their totals."""
        ends = {bucket: notion.decode(total) for bucket, total in facts["buckets"].items()}
        if not ends or not all(
            self._is_paid(facts, end, spend(self._bucket_totals.get(bucket, notion.zero)))
            for bucket, end in ends.items()
        ):
            self._refuse("its total is not the sum of what a bucket spent")
        self._bucket_totals.update(ends)
        return list(ends.values())

    def _check_parts(self, entry: LogEntry, spend: Spend) -> None:
        """Check what a charge says of each month, or of each day."""
        account = self._account
        charge = Charge(account.notion, spend, None, entry.window_time)
        computed = charge.parts_after(account.window, account.parts_at(self._last_charge))
        ends = computed
        if entry.facts["parts"] != encoded(charge.notion, computed):
            ends = decoded(charge.notion, entry.facts["parts"])
            if ends.keys() != computed.keys() or not all(
                self._is_paid(entry.facts, ends[part], computed[part]) for part in ends
            ):
                self._refuse("its parts are not the sums of what was spent in them")
        self._all_parts.update(ends)

    def _check_runs(self, facts: dict[str, Any], entry: LogEntry) -> None:
        """Check that only as many runs of a plan were free as were set aside and paid for.

        An entry with "runs" pays for all runs, and one with `PAID` is one of them.
        """
        set_aside_entry, runs_made = self._runs
        aside = self._account.aside
        if "runs" in facts:
            wanted = None
            if aside is not None:
                plan, runs = aside["plan"], aside["runs"]
                all_runs = plan if runs == 1 else to_dict(Repeat(from_dict(plan), runs))
                wanted = all_runs, runs
            if set_aside_entry is not None or (facts["plan"], facts["runs"]) != wanted:
                self._refuse("sets other runs aside than its data set was opened with")
            self._runs = entry, 0
        elif PAID in facts:
            if aside is None or set_aside_entry is None:
                self._refuse("is a run of a plan that was not set aside")
            elif (facts[PAID], facts["plan"]) != (set_aside_entry.seq, aside["plan"]):
                self._refuse("is a run of another plan than was set aside")
            elif facts["nth"] != runs_made + 1 or runs_made >= aside["runs"]:
                self._refuse("is one run more than was set aside")
            else:
                self._runs = set_aside_entry, runs_made + 1

    def _check_proof(self, facts: dict[str, Any]) -> None:
        """Check that a data set of proved plans was spent by these alone."""
        if not self._account.verified or PAID in facts:
            return
        if facts["kind"] == "reserve":
            if facts.get("run") is None:
                self._refuse("spends outside of a plan, which its data set does not take")
        elif not is_stated(facts, self._account.budget):
            self._refuse("opens a plan without a proof, which its data set does not take")

    def _check_certified(self, facts: dict[str, Any]) -> None:
        """Check the epsilon that a plan was charged, at the delta of the budget at this entry.

        It may be less than the one that is computed here by the round-off of another machine.
        """
        stated = float(facts["certified"]) * (1 + CERTIFIED_ROUND_OFF)
        # an epsilon that is not a number is refused too
        if not Tight().epsilon(from_dict(facts["plan"]), self._account.budget.delta) <= stated:
            self._refuse("its total is less than what its plan costs")

    def _cost(self, facts: dict[str, Any]) -> Total[Any]:
        """Return the cost of an entry's loss, which is stated and at least what it costs.

        A version with coarser bounds may have charged more.  The loss of a class that no package
        declares is stated by its repr alone.  It cannot be computed anew, so that its stated cost
        is believed.
        """
        notion, loss = self._account.notion_in(facts), facts["loss"]
        if "repr" in loss:
            return notion.decode(facts["cost"])
        loss_key = (facts.get("counting"), loss)
        if loss_key != self._last_loss_key:  # encoding takes longer than this comparison
            key = (facts.get("counting"), str(loss))
            if key not in self._costs:
                loss_plan: Any = from_dict(loss)
                encoded_cost = notion.encode(notion.cost(as_plan(loss_plan)))
                self._costs[key] = encoded_cost, notion.decode(encoded_cost)
            self._last_loss_key, self._last_cost = loss_key, self._costs[key]
        encoded_cost, cost = self._last_cost
        if encoded_cost == facts["cost"]:
            return cost
        stated_cost = notion.decode(facts["cost"])
        if not is_at_least(stated_cost, cost):
            self._refuse("its cost is not what its loss costs")
        return stated_cost

    def _refuse(self, why: str) -> None:
        raise LedgerCorrupt(self._log.name, why, self._seq)


class TermsCheck:
    """Follows the terms of one data set from entry to entry, and checks that spends kept them."""

    def __init__(self, account: Account, times: TimeCheck) -> None:
        self._account, self._times = account, times
        self.quotas = QuotaCheck(account)

    def check_change(
        self,
        entry: LogEntry,
        before: Standing,
        class_totals: list[Total[Any]] | None,
        last_charge: LogEntry | None,
    ) -> Standing:
        """Check an entry that changes the terms, adopt them, and return the standing under them.

        ``class_totals`` are the totals of users or buckets that have budgets of their own.
        """
        account = self._account
        account.note_unknown_terms(entry.facts)
        account.refuse_unknown_terms()
        old_terms, terms = account.terms, Terms.of(entry.facts)
        if old_terms.closed:
            self._refuse("changes the terms of a data set that was closed", entry)
        change = entry.facts["change"]
        changed_facts = dict.fromkeys(CHANGES.get(change, ()))
        # the facts of both terms, without values where this change may set others
        before_facts, after_facts = (one.facts() | changed_facts for one in (old_terms, terms))
        if change not in CHANGES or before_facts != after_facts:
            self._refuse("changes other terms than it says", entry)
        if change == "quota":
            self.quotas.check_change(entry, before.notion, old_terms, terms)
        elif change == CLOCK:
            self.quotas.check_correction(entry, before.notion, terms)
        else:
            self.quotas.refuse_unstated(entry)
        if not terms.reason:
            self._refuse("changes the terms without a reason", entry)
        if terms.budget.delta < old_terms.budget.delta:
            self._refuse("lowers a delta that spends relied on", entry)
        # An earlier window may have spent a larger budget than the present one: people see
        # the largest of all.
        largest = max(old_terms.largest, terms.budget.epsilon)
        if account.window is not None and terms.largest != largest:
            self._refuse("does not say the largest budget that a window had", entry)
        after_plan = account.counts_after_plan(before.notion)
        if account.window is not None:
            before = account.standing_after(last_charge, entry.window_time)
        account.adopt(terms)
        notions = account.notions_of(terms.budget)
        notion = account.limit_under(notions, after_plan, last_charge, entry.window_time)
        after = Standing(notion, before.total)
        # after a correction of the clock a window may have spent more than any budget
        has_changed = terms.budget != old_terms.budget
        if has_changed and exceeds_every_way(*after, class_totals):
            self._refuse("lowers the budget below what was spent", entry)
        return after

    def check_spend(self, entry: LogEntry) -> None:
        """Check that a spend, or a step of a plan, came before the end of its data set."""
        account = self._account
        try:
            account.terms.refuse_if_over(account.name, entry.latest)
        except DatasetClosed:
            self._refuse("was made after its data set was closed or had expired", entry)
        self.quotas.refuse_unstated(entry)
        if entry.kind in CHARGING_KINDS:
            self.quotas.check_charge(entry)
        elif account.window is not None:
            paid_at = self._times.window_time_now(account.log.entry(entry.facts["run"]))
            if account.window.label(paid_at) != account.window.label(entry.window_time):
                self._refuse("was made in another window than the one that paid for it", entry)

    def _refuse(self, why: str, entry: LogEntry) -> None:
        raise LedgerCorrupt(self._account.log.name, why, entry.seq)
