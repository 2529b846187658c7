"""A fixed plan charged its certified epsilon, and pure releases next to it.

Whatever is released next to the plan adds its epsilon; the plan keeps all of delta: proof in
docs/proofs/two_filters.md.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from accountant.accountants.basic import printed_decimal
from accountant.accountants.budget import Budget
from accountant.accountants.tight import Tight
from accountant.errors import UnsupportedPlan
from accountant.ledger.composition_notions import pure_limit
from accountant.ledger.pure_dp_notion import PureDPNotion
from accountant.ledger.totals import CompositionNotion, Total
from accountant.plans.plan import Plan


def pure_after_plan(budget: Budget) -> PureDPNotion:
    """Return the notion that adds epsilons to that of the plan, which has all of delta."""
    return PureDPNotion(budget, pure_limit(Budget(budget.epsilon)))


def certified_total(epsilon: float) -> Total[Decimal]:
    """Return the total of a plan that has this epsilon at the budget's delta."""
    return Total(printed_decimal(epsilon), Decimal(0))


def exact_where_sums_exceed(notion: CompositionNotion[Any], plan: Plan) -> float:
    """Return the exact epsilon of a first plan whose sum does not fit; infinite where it fits."""
    try:
        if not notion.refuses(notion.zero, notion.after(notion.zero, plan)):
            return math.inf
    except UnsupportedPlan:
        pass
    return Tight().epsilon(plan, notion.budget.delta)
