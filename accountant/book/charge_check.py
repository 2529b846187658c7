"""Verification of charges: each total is the total before and the cost, and keeps its limit."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from accountant.accountants.tight import Tight
from accountant.book.account import Account, Standing
from accountant.book.chain.entries import PAID, LogEntry
from accountant.book.limits.plan_proofs import is_stated
from accountant.book.limits.terms import exceeds_every_way
from accountant.book.limits.user_totals import Spend, UserTotals
from accountant.book.limits.windows import decoded, encoded
from accountant.book.log import Log
from accountant.errors import LedgerCorrupt
from accountant.ledger.totals import CompositionNotion, Total, largest_total
from accountant.plans.plan import Repeat, as_plan
from accountant.serialisation.plan_json import from_dict, to_dict

CERTIFIED_ROUND_OFF = 1e-6  # relative error of an epsilon from other versions of the libraries


class ChargeCheck:
    """Reads along the charges of a log and recomputes what each data set spent."""

    def __init__(self, log: Log) -> None:
        self._log, self.seq = log, 0
        self._standings: dict[str, Standing] = {}
        self._users: dict[str, UserTotals | None] = {}
        self._last_charge: dict[str, LogEntry] = {}  # last charges of data sets with windows
        self._buckets: defaultdict[str, dict[str, Total[Any]]] = defaultdict(dict)
        # entries that set runs aside, and how many runs were made
        self._runs: dict[str, tuple[LogEntry, int]] = {}
        self._costs: dict[tuple[str, str | None, str], tuple[list[str], Total[Any]]] = {}
        self._last_loss_key: Any = None
        self._last_cost: tuple[list[str], Total[Any]] = ([], Total(0, 0))

    def _add(self, account: Account, facts: dict[str, Any], entry: LogEntry) -> None:
        """Check that the total an entry states is the previous total plus its cost."""
        name, users = account.name, self._users[account.name]
        before_notion, before = self._standing_before(account, entry)
        notion = before_notion if account.window else account.notion_in(facts)
        changes = notion is not before_notion
        if changes != ("certified" in facts) or (changes and before != before_notion.zero):
            self._refuse("counts what was spent in another way than the entry before")
        if changes:
            before = notion.zero
            self._check_certified(account, facts)
        cost = self._cost(account, facts) if facts["kind"] == "reserve" else notion.zero

        def spend(total: Total[Any]) -> Total[Any]:
            if PAID in facts:
                return total
            if facts["kind"] == "plan":
                return account.total_after_plan(notion, total, from_dict(facts["plan"]), facts)
            return notion.add(total, cost)

        self._check_runs(account, facts, entry)
        self._check_proof(account, facts)
        if users is not None:
            account.apply(users, entry)
            after = largest_total([users.worst_total(), before])
        elif account.buckets is not None:
            after = largest_total([before, *self._check_buckets(name, notion, facts, spend)])
        else:
            after = spend(before)
        if account.window is not None:
            self._check_parts(account, entry, spend)
        # text is compared first, which is quick; one decimal number has several texts
        stated = facts["total"]
        if stated != notion.encode(after) and notion.decode(stated) != after:
            self._refuse("its total is not the sum of what was spent")
        if exceeds_every_way(notion, after, self._each_total(account)):
            self._refuse("spends more than the budget")
        self._standings[name] = Standing(notion, after)

    def _standing_before(self, account: Account, entry: LogEntry) -> Standing:
        """Return what was spent before an entry; with windows, in the window of its time."""
        if account.window is None:
            return self._standings[account.name]
        return account.standing_after(self._last_charge.get(account.name), entry.latest)

    def _each_total(self, account: Account) -> list[Total[Any]] | None:
        """Return the totals of users or buckets that have budgets of their own; else None."""
        if account.buckets is not None:
            return list(self._buckets[account.name].values())
        users = self._users[account.name]
        return None if users is None else users.totals

    def _check_buckets(
        self, name: str, notion: CompositionNotion[Any], facts: dict[str, Any], spend: Spend
    ) -> list[Total[Any]]:
        """Check what a charge says of each bucket that paid, and return their totals."""
        bucket_totals, stated = self._buckets[name], facts["buckets"]
        ends = {bucket: spend(bucket_totals.get(bucket, notion.zero)) for bucket in stated}
        if not ends or ends != {
            bucket: notion.decode(encoded_total) for bucket, encoded_total in stated.items()
        }:
            self._refuse("its total is not the sum of what a bucket spent")
        bucket_totals.update(ends)
        return list(ends.values())

    def _check_parts(self, account: Account, entry: LogEntry, spend: Spend) -> None:
        """Check what a charge says of each month, or of each day."""
        last_charge, notion = self._last_charge.get(account.name), account.notion
        parts = {} if last_charge is None else decoded(notion, last_charge.facts["parts"])
        ends = account.parts_after(notion, parts, entry.latest, spend)
        stated = entry.facts["parts"]
        if stated != encoded(notion, ends) and decoded(notion, stated) != ends:
            self._refuse("its parts are not the sums of what was spent in them")

    def _check_runs(self, account: Account, facts: dict[str, Any], entry: LogEntry) -> None:
        """Check that only as many runs of a plan were free as were set aside and paid for."""
        set_aside_entry, runs_made = self._runs.get(account.name, (None, 0))
        aside = account.aside
        if "runs" in facts:
            stated = facts["plan"], facts["runs"]
            if aside is None or set_aside_entry is not None or stated != _wanted(**aside):
                self._refuse("sets other runs aside than its data set was opened with")
            self._runs[account.name] = entry, 0
        elif PAID in facts:
            if aside is None or set_aside_entry is None:
                self._refuse("is a run of a plan that was not set aside")
            elif (facts[PAID], facts["plan"]) != (set_aside_entry.seq, aside["plan"]):
                self._refuse("is a run of another plan than was set aside")
            elif facts["nth"] != runs_made + 1 or runs_made >= aside["runs"]:
                self._refuse("is one run more than was set aside")
            else:
                self._runs[account.name] = set_aside_entry, runs_made + 1

    def _check_proof(self, account: Account, facts: dict[str, Any]) -> None:
        """Check that a data set of proved plans was spent by these alone."""
        if not account.verified or PAID in facts:
            return
        if facts["kind"] == "reserve":
            if facts.get("run") is None:
                self._refuse("spends outside of a plan, which its data set does not take")
        elif not is_stated(facts, account.budget):
            self._refuse("opens a plan without a proof, which its data set does not take")

    def _check_certified(self, account: Account, facts: dict[str, Any]) -> None:
        """Check the epsilon that a plan was charged, up to the round-off of another machine."""
        stated = float(facts["certified"]) * (1 + CERTIFIED_ROUND_OFF)
        if not Tight().epsilon(from_dict(facts["plan"]), account.budget.delta) <= stated:
            self._refuse("its total is less than what its plan costs")

    def _cost(self, account: Account, facts: dict[str, Any]) -> Total[Any]:
        """Return the cost of an entry's loss, cached; as stated where it cannot be recomputed."""
        notion, loss = account.notion_in(facts), facts["loss"]
        if "repr" in loss:
            return notion.decode(facts["cost"])
        loss_key = (account.name, facts.get("counting"), loss)
        if loss_key != self._last_loss_key:  # encoding takes longer than this comparison
            key = (account.name, facts.get("counting"), str(loss))
            if key not in self._costs:
                loss_plan: Any = from_dict(loss)
                encoded_cost = notion.encode(notion.cost(as_plan(loss_plan)))
                self._costs[key] = encoded_cost, notion.decode(encoded_cost)
            self._last_loss_key, self._last_cost = loss_key, self._costs[key]
        encoded_cost, cost = self._last_cost
        if encoded_cost != facts["cost"]:
            self._refuse("its cost is not what its loss costs")
        return cost

    def _refuse(self, why: str) -> None:
        raise LedgerCorrupt(self._log.name, why, self.seq)


def _wanted(plan: dict[str, Any], runs: int) -> tuple[dict[str, Any], int]:
    """Return what a data set must set aside, all runs as one plan, in plain values."""
    return plan if runs == 1 else to_dict(Repeat(from_dict(plan), runs)), runs
