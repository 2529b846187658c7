"""What a spend of a data set adds to its totals, and when it is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from accountant.book.account_shares import AccountShares
from accountant.book.account_state import AFTER_PLAN, PAID
from accountant.book.chain.hash_chain import (
    LogEntry,
)
from accountant.book.limits.user_totals import UserTotals
from accountant.book.limits.windows import WHOLE, decoded, encoded
from accountant.book.log_reader import set_aside_key
from accountant.errors import (
    BudgetExceeded,
    LedgerCorrupt,
    OffPlan,
    ParameterError,
    UnhealthyRandomness,
    UnsupportedPlan,
)
from accountant.ledger.certified_plan import certified_total, exact_where_sums_exceed
from accountant.ledger.interfaces import Releasable
from accountant.ledger.private_copies import shown
from accountant.ledger.private_data import Users
from accountant.ledger.totals import CompositionNotion, Total, largest_total
from accountant.plans.adjacency import joint_relation
from accountant.plans.declared_releases import idealised_part
from accountant.plans.plan import Plan
from accountant.serialisation.plan_json import to_dict


class AccountCharges(AccountShares):
    """Totals after a spend, as an entry states them, and every reason to refuse one."""

    def charge(
        self,
        last_charge: LogEntry | None,
        mechanism: Plan,
        charged: Plan,
        who: Users | None,
        facts: dict[str, Any],
    ) -> tuple[CompositionNotion[Any], dict[str, Any]]:
        """Return what an entry states of totals after a spend; refuse one that does not fit."""
        notion, before = self.standing_after(last_charge)

        def spend(total: Total[Any]) -> Total[Any]:
            return notion.spend(total, charged, mechanism=mechanism)

        if self.buckets is not None:  # the people of a bucket pay for releases of its data
            paid = {bucket: spend(self.bucket_total(notion, bucket)) for bucket in facts["buckets"]}
            total_after = largest_total([before, *paid.values()])
            encoded_totals = {bucket: notion.encode(total) for bucket, total in paid.items()}
            return notion, {"total": notion.encode(total_after), "buckets": encoded_totals}
        if self.users is not None:
            ends = self.user_totals().totals_after(who, spend)
            if not ends:  # no user answers, so no user pays
                spend(notion.zero)
            return notion, {"total": notion.encode(largest_total([before, *ends.values()]))}
        stated: dict[str, Any] = {"total": notion.encode(spend(before))}
        if self.window is not None:
            parts = {} if last_charge is None else decoded(notion, last_charge.facts["parts"])
            now = self.log.latest
            after = self.parts_after(notion, parts, now, lambda total: notion.after(total, charged))
            stated["parts"] = encoded(notion, after)
        return notion, stated

    def charge_plan(
        self, last_charge: LogEntry | None, plan: Plan, certified: float, facts: dict[str, Any]
    ) -> tuple[CompositionNotion[Any], dict[str, Any]]:
        """Return what an entry states after a plan: the sum, or the exact cost if no sum fits."""
        try:
            return self.charge(last_charge, plan, plan, None, facts)
        except (BudgetExceeded, UnsupportedPlan):
            plan_total = certified_total(certified)
            if last_charge is not None or self._after_plan.exceeds(plan_total):
                raise
            return self._after_plan, {"total": self._after_plan.encode(plan_total)}

    def within_quota(
        self,
        notion: CompositionNotion[Any],
        who: Users | None,
        spend: Callable[[Total[Any]], Total[Any]],
    ) -> dict[str, Any]:
        """Return what the author has charged after a spend; refuse more than the author's quota."""
        if not self.terms.quotas:
            return {}
        author = self.log.author
        if self.users is None:
            own_parts = self.own_parts(notion, author)
            parts = self.parts_after(notion, own_parts, self.log.latest, spend)
            before, after = self.own_total(notion, own_parts), self.own_total(notion, parts)
        else:
            user_totals = self.owns().get(author) or UserTotals(self.users, notion.zero)
            before = self.own_total(notion, user_totals)
            ends = (
                user_totals.totals_after(who, spend) if isinstance(user_totals, UserTotals) else {}
            )
            after = largest_total([before, *ends.values()])
            parts = {WHOLE: after}
        self.terms.refuse_over_quota(author, notion, before, after)
        return {"own": encoded(notion, parts)}

    def next_run_set_aside(self, plan: Plan) -> dict[str, Any]:
        """Return the facts of the next run's entry, if a run of the plan is still set aside."""
        if not self.free_runs(plan):
            return {}
        last_run = self.log.entry_with_key(set_aside_key(self.name))
        if last_run is None:
            return {}
        return {
            PAID: last_run.facts.get(PAID, last_run.seq),
            "nth": last_run.facts.get("nth", 0) + 1,
        }

    def free_runs(self, plan: Plan) -> int:
        """Return how many more runs of a plan were set aside."""
        runs = self.runs()
        if self.aside is None or runs is None or self.aside["plan"] != to_dict(plan):
            return 0
        runs_made, runs_paid = runs
        return runs_paid - runs_made

    def runs(self) -> tuple[int, int] | None:
        """Return how many runs were made of a plan that was set aside, and are paid for."""
        if self.aside is None:
            return None
        last_run = self.log.entry_with_key(set_aside_key(self.name))
        if (
            last_run is None
            or self.log.entry(last_run.facts.get(PAID, last_run.seq)).facts.get("runs") is None
        ):
            raise LedgerCorrupt(self.log.name, "does not say what was set aside")
        return last_run.facts.get("nth", 0), self.aside["runs"]

    def refuse_run_of_other_window(self, mechanism: Releasable, run: int) -> None:
        """Refuse a step after the window that paid for its plan: it would read later data."""
        if self.window is not None:
            label = self.window.label(self.log.entry(run).latest)
            if label != self.window.label(self.log.latest):
                why = f"this run was paid for in {label}; a new run is paid for in the open window"
                raise OffPlan(mechanism, None, why)

    def certified_epsilon(self, plan: Plan) -> float:
        """Return the epsilon of a first plan whose sum does not fit; infinite where it fits.

        With windows or buckets all is added up.
        """
        if self.window is not None or self.buckets is not None:
            return math.inf
        return exact_where_sums_exceed(self.notion, plan)

    def counting(self, notion: CompositionNotion[Any]) -> dict[str, str]:
        """Return how an entry names the notion that adds up next to a certified plan."""
        return {"counting": AFTER_PLAN} if notion is self._after_plan else {}

    def relation(self, last_charge: LogEntry | None, released: Any) -> str | None:
        """Return the neighbour relation of all spends so far; refuse a different one."""
        return joint_relation(
            None if last_charge is None else last_charge.facts["relation"], released
        )

    def fresh(self, fingerprint: str) -> str:
        """Return the key of noise that no release of the book had before; refuse other noise."""
        key = f"noise:{fingerprint}"
        if self.log.entry_in_column(key) is not None:
            raise UnhealthyRandomness("this book has an earlier release with the same")
        return key

    def refuse_if_over(self) -> None:
        """Refuse to spend or to read data after the end; call it inside the transaction."""
        self.follow_terms().refuse_if_over(self.name, self.log.latest)

    def refuse_idealised(self, plan: Any) -> None:
        """Refuse noise that floats decide, unless the data set was opened to take it.

        Stored answers are given all the same: nothing is reserved for them.
        """
        part = None if self.idealised else idealised_part(plan)
        if part is not None:
            allowed = 'of arithmetic="exact", as the last digits of floats can reveal the data; '
            allowed += "a data set opened with idealised=True takes idealised noise too"
            raise ParameterError("mechanism", shown(part), allowed)
