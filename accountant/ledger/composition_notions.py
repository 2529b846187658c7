"""What may be added up while answers steer what comes next: privacy notions with a filter theorem.

References: Rogers, Roth, Ullman & Vadhan (2016), Theorem 4.1 (pure sums); Feldman & Zrnic (2021),
Theorem 4.3 (zCDP, and RDP at one order fixed in advance); Smith & Thakurta (2022) for GDP.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from decimal import Decimal
from typing import NoReturn, final

import numpy as np

from accountant.accountants.basic import DECIMAL_CONTEXT, printed_decimal
from accountant.accountants.budget import Budget
from accountant.domains import Interval
from accountant.errors import BudgetExceeded, ParameterError, UnsupportedPlan
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.loss import Loss
from accountant.losses.zcdp import ZCDPLoss
from accountant.numerics.search import geometric_mean, greatest_float_that

ORDER_RANGE = Interval(1.0, 1e9, "(]")
INFINITY_SHARE = (
    1e-12  # share of delta kept for masses at infinity that no list of outcomes can do without
)


class CompositionNotion(ABC):
    """A running total and its limit."""

    unit: str
    spent: float  # the running total

    @abstractmethod
    def spend(self, loss: Loss, budget: Budget) -> None:
        """Add what ``loss`` costs, or raise and leave the total as it was."""


@final
class PureDPTotal(CompositionNotion):
    """Epsilons and deltas, added exactly as they are printed."""

    unit = "epsilon"

    def __init__(self, budget: Budget | None) -> None:
        self._total, self._delta, self.spent = Decimal(0), Decimal(0), 0.0
        # an odometer has no limit for epsilon, and no delta to spend
        self._limit = Decimal("Infinity"), Decimal(0)
        if budget is not None:
            self._limit = printed_decimal(budget.epsilon), printed_decimal(budget.delta)
        self._known: dict[Loss, tuple[Decimal, Decimal]] = {}

    def spend(self, loss: Loss, budget: Budget) -> None:
        """See `CompositionNotion`."""
        cost = self._known.get(loss)
        if cost is None:
            epsilon = _worse_direction(loss, lambda one: one.max_loss)
            if math.isinf(epsilon):
                raise UnsupportedPlan(loss, "a pure filter", "it has no epsilon; use notion='zcdp'")
            cost = (
                printed_decimal(epsilon),
                printed_decimal(_worse_direction(loss, lambda one: one.infinity)),
            )
            self._known[loss] = cost
        total, delta = (
            DECIMAL_CONTEXT.add(self._total, cost[0]),
            DECIMAL_CONTEXT.add(self._delta, cost[1]),
        )
        if total > self._limit[0]:
            raise BudgetExceeded(self.spent, float(cost[0]), budget)
        if delta > self._limit[1]:
            raise BudgetExceeded(float(self._delta), float(cost[1]), budget, "delta")
        self._total, self._delta, self.spent = total, delta, float(total)


@final
class AdditiveTotal(CompositionNotion):
    """A fact of every loss that adds up: rho, the divergence at one order, or mu squared.

    Masses at infinity add up too, within a share of delta that the limit leaves aside.
    """

    def __init__(self, unit: str, cost_of: Callable[[Loss], float], limit: float) -> None:
        self.unit, self._cost_of_loss, self.limit, self.spent = unit, cost_of, limit, 0.0
        self._infinity = 0.0
        self._known: dict[Loss, float] = {}

    def spend(self, loss: Loss, budget: Budget) -> None:
        """See `CompositionNotion`."""
        cost = self._known.get(loss)
        if cost is None:
            cost = self._known[loss] = self._cost(loss)
        # each sum is rounded up
        total = math.nextafter(self.spent + cost, math.inf)
        if not total <= self.limit:
            raise BudgetExceeded(self.spent, cost, budget, self.unit)
        infinity = self._infinity + _worse_direction(loss, lambda one: one.infinity)
        if not infinity <= budget.delta * INFINITY_SHARE:
            self._refuse(loss)
        self.spent, self._infinity = total, infinity

    def _cost(self, loss: Loss) -> float:
        cost = math.nextafter(_worse_direction(loss, self._cost_of_loss), math.inf)
        if not math.isfinite(cost):
            self._refuse(loss)
        return cost

    def _refuse(self, loss: Loss) -> NoReturn:
        reason = f"it has no {self.unit}; a pure filter takes it if it is bounded"
        raise UnsupportedPlan(loss, f"a filter of {self.unit}", reason)


def _worse_direction(loss: Loss, cost_of: Callable[[Loss], float]) -> float:
    """The greater of both directions; what is negative would refund, what is NaN never ends."""
    facts = cost_of(loss), cost_of(loss.reversed)
    if not all(one >= 0 for one in facts):
        raise UnsupportedPlan(
            loss, "a filter", "it states a cost below 0, or none that is a number"
        )
    return max(facts)


def notion_of(name: str, budget: Budget, order: float | None) -> CompositionNotion:
    """The notion of a filter, its limit from the budget."""
    if name in ("profile", "pld", "tight"):
        allowed = (
            "'pure', 'zcdp', 'rdp' or 'gdp': composing the profiles that were spent is no valid "
            "filter when answers choose the next release"
        )
        raise ParameterError("notion", name, allowed)
    if name == "pure":
        return PureDPTotal(budget)
    if budget.delta == 0:
        raise ParameterError("budget", budget, f"one with delta > 0 for the notion {name!r}")
    delta = budget.delta * (1 - INFINITY_SHARE)
    if name == "zcdp":
        rho = largest_parameter(lambda rho: ZCDPLoss(rho).epsilon_at(delta), budget)
        return AdditiveTotal("rho", lambda loss: loss.rho, rho)
    if name == "gdp":
        mu = largest_parameter(lambda mu: GaussianLoss(mu).epsilon_at(delta), budget)
        return AdditiveTotal("mu^2", lambda loss: loss.gdp_mu**2, mu * mu * (1 - 1e-15))
    if name != "rdp":
        raise ParameterError("notion", name, "'pure', 'zcdp', 'rdp' or 'gdp'")
    nats = -math.log(delta)
    if order is None:  # the best for Gaussians
        order = 1 + 2 * nats / budget.epsilon
    a = ORDER_RANGE.check("order", order) - 1
    limit = budget.epsilon - (nats - a * math.log1p(1 / a) - math.log1p(a)) / a
    if limit <= 0:
        raise ParameterError("order", order, "one that leaves something of the budget")
    fixed = np.array(order)
    unit = f"divergence of order {order:.6g}"
    return AdditiveTotal(unit, lambda loss: float(loss.renyi(fixed)), limit * (1 - 1e-14))


def largest_parameter(cost: Callable[[float], float], budget: Budget) -> float:
    """The greatest parameter whose cost was seen to stay within the budget."""
    if not cost(1e-200) <= budget.epsilon:
        raise ParameterError("budget", budget, "one that this notion can keep")
    return greatest_float_that(
        lambda x: cost(x) <= budget.epsilon, 1e-200, 1e200, relative=1e-13, mean=geometric_mean
    )
