"""Privacy notions whose costs may be added while answers choose what comes next (filter theorems).

References: Rogers, Roth, Ullman & Vadhan (2016), Theorem 4.1 (pure sums); Feldman & Zrnic (2021),
Theorem 4.3 (zCDP, and RDP at one order fixed in advance); Smith & Thakurta (2022) for GDP.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

from accountant.accountants.basic import DECIMAL_CONTEXT, printed_decimal
from accountant.accountants.budget import TOLERANCE, Budget
from accountant.accountants.tight import Tight
from accountant.domains import Interval
from accountant.errors import ParameterError, UnsupportedPlan
from accountant.ledger.additive_notions import (
    INFINITY_SHARE,
    GDPNotion,
    RDPNotion,
    ZCDPNotion,
    spendable_delta,
)
from accountant.ledger.pure_dp_notion import PureDPNotion
from accountant.ledger.pure_or_renyi_notion import PureOrRenyiNotion, Sums
from accountant.ledger.totals import CompositionNotion, Total
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.zcdp import ZCDPLoss
from accountant.numerics.search import geometric_mean, greatest_float_that
from accountant.plans.plan import Plan

NAMES = "'pure', 'zcdp', 'rdp', 'gdp' or 'pure-or-rdp'"  # of the notions, for error messages
ORDER_RANGE = Interval(1.0, 1e9, "(]")


def notion_of(
    name: str | None, budget: Budget, order: float | None = None
) -> CompositionNotion[Any]:
    """Return the notion of a filter, limited by the budget.

    By default it is pure privacy at delta 0, else the notion "pure-or-rdp".  A limit that was
    computed in floats is lowered by a margin for their round-off.
    """
    if name is None:
        name = "pure-or-rdp" if budget.delta else "pure"
    if name in ("profile", "pld", "tight"):
        allowed = (
            f"{NAMES}: composing the profiles that were spent is no valid "
            "filter when answers choose the next release"
        )
        raise ParameterError("notion", name, allowed)
    if order is not None:
        order = ORDER_RANGE.check("order", order)
    if name == "pure":
        return PureDPNotion(budget, pure_limit(budget), order)
    if budget.delta == 0:
        raise ParameterError("budget", budget, f"one with delta > 0 for the notion {name!r}")
    delta, infinity = spendable_delta(budget), budget.delta * INFINITY_SHARE
    if name == "pure-or-rdp":
        return _pure_or_renyi(budget, order)
    if name == "zcdp":
        rho = largest_parameter(lambda rho: ZCDPLoss(rho).epsilon_at(delta), budget)
        return ZCDPNotion(budget, Total(rho, infinity), order)
    if name == "gdp":
        mu = largest_parameter(lambda mu: GaussianLoss(mu).epsilon_at(delta), budget)
        return GDPNotion(budget, Total(mu * mu * (1 - 1e-15), infinity), order)
    if name != "rdp":
        raise ParameterError("notion", name, NAMES)
    nats = -math.log(delta)
    if order is None:  # this order is the best one for Gaussian noise
        order = 1 + 2 * nats / budget.epsilon
    a = ORDER_RANGE.check("order", order) - 1
    largest_divergence = (
        budget.admitted_epsilon - (nats - a * math.log1p(1 / a) - math.log1p(a)) / a
    )
    if largest_divergence <= 0:
        raise ParameterError("order", order, "one that leaves something of the budget")
    return RDPNotion(budget, Total(largest_divergence * (1 - 1e-14), infinity), order)


def largest_parameter(cost: Callable[[float], float], budget: Budget) -> float:
    """Return the largest parameter found whose cost, an epsilon, stays within the budget.

    The search is over nearly all positive floats, by halving their logarithms.
    """
    epsilon_limit = budget.admitted_epsilon
    if not cost(1e-200) <= epsilon_limit:
        raise ParameterError("budget", budget, "one that this notion can keep")
    return greatest_float_that(
        lambda x: cost(x) <= epsilon_limit, 1e-200, 1e200, relative=1e-13, mean=geometric_mean
    )


def pure_limit(budget: Budget) -> Total[Decimal]:
    """Return the sums of epsilon and delta that fit a pure filter, with the tolerance."""
    factor = DECIMAL_CONTEXT.add(Decimal(1), printed_decimal(TOLERANCE))
    return Total(
        DECIMAL_CONTEXT.multiply(printed_decimal(budget.epsilon), factor),
        DECIMAL_CONTEXT.multiply(printed_decimal(budget.delta), factor),
    )


def _pure_or_renyi(budget: Budget, order: float | None) -> PureOrRenyiNotion:
    """Return the notion with three sums; the order decides epsilon where rho is all spent."""
    zcdp: Any = notion_of("zcdp", budget)
    if order is None:
        order = ZCDPLoss(zcdp.limit.spent).order_at(spendable_delta(budget))
    rdp: Any = notion_of("rdp", budget, order)
    # Rho must state the same limit as the divergence: separate limits would need two deltas.
    rho = min(zcdp.limit.spent, rdp.limit.spent / order * (1 - 1e-15))
    zcdp = replace(zcdp, limit=Total(rho, zcdp.limit.infinity))
    pure = PureDPNotion(Budget(budget.epsilon), pure_limit(Budget(budget.epsilon)))
    limit = Total(Sums(pure.limit.spent, zcdp.limit.spent, rdp.limit.spent), zcdp.limit.infinity)
    return PureOrRenyiNotion(budget, limit, order, pure=pure, zcdp=zcdp, rdp=rdp)


# --- a fixed plan that is charged its certified epsilon, and pure releases next to it


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
