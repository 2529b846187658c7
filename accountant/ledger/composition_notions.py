"""Privacy notions whose costs may be added while answers choose what comes next (filter theorems).

References: Rogers, Roth, Ullman & Vadhan (2016), Theorem 4.1 (pure sums); Feldman & Zrnic (2021),
Theorem 4.3 (zCDP, and RDP at one order fixed in advance); Smith & Thakurta (2022) for GDP; Canonne,
Kamath & Steinke (2020), Proposition 12, for the epsilon of a divergence.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from accountant.accountants.basic import DECIMAL_CONTEXT, printed_decimal
from accountant.accountants.budget import TOLERANCE, Budget
from accountant.accountants.tight import Tight
from accountant.composition.composed_loss import has_bounds, loss_of_plan
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
from accountant.plans.plan import Plan, Repeat

# The largest share by which the few roundings of a limit can change it.
ROUND_OFF = 1e-14
NAMES = "'pure', 'zcdp', 'rdp', 'gdp' or 'pure-or-rdp'"  # of the notions, for error messages
ORDER_RANGE = Interval(1.0, 1e9, "(]")


def notion_of(
    name: str | None, budget: Budget, order: float | None = None
) -> CompositionNotion[Any]:
    """Return the notion of a filter, limited by the budget.

    By default it is pure privacy at delta 0, else the notion "pure-or-rdp".  ``order`` is the Rényi
    order of "rdp" and "pure-or-rdp"; other notions only keep it, because books state it.  By
    default it is the order at which the most Gaussian noise fits.  A limit that was computed in
    floats is lowered by `ROUND_OFF`; those that a search has tried need no margin.
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
    # Of delta, `INFINITY_SHARE` is for masses at infinity, and the rest for what adds up.
    delta, infinity = spendable_delta(budget), budget.delta * INFINITY_SHARE
    if name == "gdp":
        mu = largest_parameter(lambda mu: GaussianLoss(mu).epsilon_at(delta), budget)
        return GDPNotion(budget, Total(mu * mu * (1 - ROUND_OFF), infinity), order)
    if name not in ("zcdp", "rdp", "pure-or-rdp"):
        raise ParameterError("notion", name, NAMES)
    rho = largest_parameter(lambda rho: ZCDPLoss(rho).epsilon_at(delta), budget)
    if name == "zcdp":
        return ZCDPNotion(budget, Total(rho, infinity), order)
    if order is None:
        order = ORDER_RANGE.check("order", ZCDPLoss(rho).order_at(delta))
    # A divergence D at order 1 + a gives the epsilon
    #     D + (ln(1 / delta) - a ln(1 + 1 / a) - ln(1 + a)) / a.
    a, nats = order - 1, -math.log(delta)
    largest_divergence = (
        budget.admitted_epsilon - (nats - a * math.log1p(1 / a) - math.log1p(a)) / a
    )
    # The difference may be much smaller than its terms, so the margin is a share of the terms.
    largest_divergence -= ROUND_OFF * (budget.admitted_epsilon + nats / a)
    if largest_divergence <= 0:
        raise ParameterError("order", order, "one that leaves something of the budget")
    rdp = RDPNotion(budget, Total(largest_divergence, infinity), order)
    return rdp if name == "rdp" else _pure_or_renyi(rdp, order, rho)


def largest_parameter(cost: Callable[[float], float], budget: Budget) -> float:
    """Return the largest parameter that a search finds whose cost, an epsilon, fits the budget.

    The search is over nearly all positive floats, by halving the range of their logarithms.
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


def _pure_or_renyi(rdp: RDPNotion, order: float, largest_rho: float) -> PureOrRenyiNotion:
    """Return the notion with three sums, of which ``rdp`` keeps that of the divergences."""
    budget, (largest_divergence, infinity) = rdp.budget, rdp.limit
    # A rho has the divergence rho * order.  So rho within this limit has a divergence within its
    # own, and both notions fail together.  Limits that fail apart would need a delta each.
    rho = min(largest_rho, largest_divergence / order * (1 - ROUND_OFF))
    zcdp = ZCDPNotion(budget, Total(rho, infinity))
    pure = PureDPNotion(Budget(budget.epsilon), pure_limit(Budget(budget.epsilon)))
    limit = Total(Sums(pure.limit.spent, rho, largest_divergence), infinity)
    return PureOrRenyiNotion(budget, limit, order, pure=pure, zcdp=zcdp, rdp=rdp)


# --- a fixed plan that is charged its certified epsilon, and pure releases next to it


def pure_after_plan(budget: Budget) -> PureDPNotion:
    """Return the notion that adds epsilons to the epsilon of a plan, which spends all of delta."""
    return PureDPNotion(budget, pure_limit(Budget(budget.epsilon)))


def certified_total(epsilon: float) -> Total[Decimal]:
    """Return the total of a plan that has this epsilon at the budget's delta."""
    return Total(printed_decimal(epsilon), Decimal(0))


def exact_where_sums_exceed(notion: CompositionNotion[Any], plan: Plan) -> float:
    """Return the epsilon by `Tight` of a plan that comes first, and is too large for the sums.

    It is infinite where the plan fits by its sums, so that it is charged by them.  Runs of a plan
    may be made at the same time, so that answers of one are known before choices of another: each
    run then counts as one release, whose profile is above all that its choices can cost (concurrent
    composition: Vadhan & Zhang, 2023).
    """
    try:
        if not notion.refuses(notion.zero, notion.after(notion.zero, plan)):
            return math.inf
    except UnsupportedPlan:
        pass
    if isinstance(plan, Repeat) and has_bounds(plan):
        plan = Repeat(loss_of_plan(plan.part), plan.count)
    return Tight().epsilon(plan, notion.budget.delta)
