"""The notion in which a data set that is opened from a plan adds up."""

from __future__ import annotations

import math

from accountant.accountants.budget import Budget
from accountant.errors import ParameterError, UnsupportedPlan
from accountant.ledger.composition_notions import notion_of
from accountant.plans.plan import Plan

DEFAULT = "pure-or-rdp"
ORDER_FACTORS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 1.5, 2.0, 4.0)


def rule_for(plan: Plan, budget: Budget) -> tuple[str, float | None]:
    """Return the name and the order of the notion that a data set with a plan set aside has.

    The default notion takes the most kinds of releases next to the plan, at the Rényi order that
    leaves the most; Gaussian privacy is taken where the plan fits in that alone.  Where it fits in
    neither, the default is returned: there the plan is charged its exact cost.
    """
    if not budget.delta:
        return "pure", None
    usual = notion_of(DEFAULT, budget).order or 2.0
    shares = {}
    for factor in ORDER_FACTORS:  # each multiplies the usual order less 1
        order = None if factor == 1.0 else 1 + (usual - 1) * factor
        shares[order] = _share(DEFAULT, order, plan, budget)
    best = min(shares, key=lambda order: shares[order])
    if shares[best] <= 1:
        return DEFAULT, best
    return ("gdp" if _share("gdp", None, plan, budget) <= 1 else DEFAULT), None


def _share(name: str, order: float | None, plan: Plan, budget: Budget) -> float:
    """Return the share of a notion's limit that a plan needs; infinite where it does not fit."""
    try:
        notion = notion_of(name, budget, order)
        total = notion.after(notion.zero, plan)
    except (ParameterError, UnsupportedPlan):  # the notion cannot add up this plan
        return math.inf
    if notion.refuses(notion.zero, total):
        return math.inf
    shown = notion.shown(total)
    return min(shown.amount / shown.limit, 1.0)
