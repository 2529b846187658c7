"""The notion in which a data set that is opened from a plan adds up."""

from __future__ import annotations

from accountant.accountants.budget import Budget
from accountant.errors import ParameterError, UnsupportedPlan
from accountant.ledger.composition_notions import notion_of
from accountant.plans.plan import Plan

DEFAULT = "pure-or-rdp"
ORDER_FACTORS = (0.5, 0.25, 2.0, 0.125, 4.0, 0.0625)  # of the default order, less 1


def rule_for(plan: Plan, budget: Budget) -> tuple[str, float | None]:
    """Return the name and the order of the first notion in which a whole plan fits a budget.

    The default comes first, as it takes the most kinds of releases beside the plan; then the same
    at other Rényi orders, which a sampled plan needs; then Gaussian privacy.  Where the plan fits
    in none of them, the default is returned: there it is charged its exact cost.
    """
    if not budget.delta:
        return "pure", None
    usual = notion_of(DEFAULT, budget).order or 2.0
    orders = [1 + (usual - 1) * factor for factor in ORDER_FACTORS]
    for name, order in [(DEFAULT, None), *((DEFAULT, one) for one in orders), ("gdp", None)]:
        try:
            notion = notion_of(name, budget, order)
            if not notion.refuses(notion.zero, notion.after(notion.zero, plan)):
                return name, order
        except (ParameterError, UnsupportedPlan):  # no such sum of this plan, or no room for it
            continue
    return DEFAULT, None
