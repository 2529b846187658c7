"""Notions of privacy that add up one number of every loss: zCDP, GDP, and RDP at one order.

The number is rho, mu^2, or the Rényi divergence at an order fixed in advance.  It adds up even
while the answers choose what comes next, and the total implies an epsilon at the budget's delta.

References: Feldman & Zrnic (2021), Theorem 4.3 (zCDP, and RDP at one order fixed in advance);
Smith & Thakurta (2022) for GDP.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Self, final

import numpy as np

from accountant.accountants.budget import TOLERANCE, Budget
from accountant.errors import UnsupportedPlan
from accountant.ledger.totals import CompositionNotion, Spending, Total, worse_direction
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.loss import Loss
from accountant.losses.zcdp import ZCDPLoss
from accountant.numerics.rounding import round_up
from accountant.plans.plan import Plan

# This share of delta is set aside for masses at infinity, because every loss that is a list of
# outcomes has a small one.
INFINITY_SHARE = 1e-12
# Many sums, each rounded up, exceed one product, rounded up, by at most this share.  A larger one
# would only make `how_often` count one release too few.
ROUND_OFF_MARGIN = 1e-9


@dataclass(frozen=True, slots=True)
class AdditiveNotion(CompositionNotion[float]):
    """A notion that adds one number of every loss: rho, the divergence at one order, or mu squared.

    Probability masses at infinity add up too, within a share of delta that the limit sets aside.
    """

    zero = Total(0.0, 0.0)

    def __post_init__(self) -> None:
        # The limit includes the tolerance for epsilon.  Where rho grows with the square of epsilon,
        # it includes twice that; the factor 4 leaves room for this.
        object.__setattr__(self, "full", self.limit.spent * (1 - 4 * TOLERANCE))

    @property
    @abstractmethod
    def unit(self) -> str:
        """Return the unit of the total."""

    @abstractmethod
    def summand(self, loss: Loss) -> float:
        """Return the number that adds up, for one direction of the loss."""

    @abstractmethod
    def _epsilon(self, spent: float, delta: float) -> float:
        """Return the epsilon that ``spent > 0`` implies."""

    def add(self, total: Total[float], cost: Total[float]) -> Total[float]:
        """Return the sum, rounded up."""
        spent = math.nextafter(total.spent + cost.spent, math.inf)
        return Total(spent, total.infinity + cost.infinity)

    def times(self, cost: Total[float], count: int) -> Total[float]:
        """Return the product, rounded up."""
        factor = float(count)
        # four units in the last place are more than the rounding of the count and of the product
        return Total(round_up(cost.spent * factor, 4), round_up(cost.infinity * factor, 4))

    def shown(self, total: Total[float], unit: str | None = None) -> Spending:
        """Return the sum in the notion's unit, or the mass at infinity where this is too much."""
        if unit == "delta" or (unit is None and self.fails_by_infinity(total)):
            return Spending("delta", total.infinity, self.limit.infinity)
        return Spending(self.unit, total.spent, self.limit.spent)

    def how_often(self, cost: Total[float], total: Total[float]) -> int | None:
        """Return how many more releases of ``cost`` surely fit, every sum rounded up."""
        if not cost.spent:
            return None
        remaining = max(self.limit.spent - total.spent, 0.0)
        return int(remaining / (cost.spent * (1 + ROUND_OFF_MARGIN)))

    def left(self, total: Total[float]) -> float:
        """Return what remains of the sum, rounded down."""
        return max(math.nextafter(self.full - total.spent, -math.inf), 0.0)

    def with_more(self, increase: float) -> Self:
        """Return the notion whose limit is larger, rounded down."""
        if increase <= 0:
            return self
        largest_sum = math.nextafter(self.limit.spent + increase, 0.0)
        epsilon = max(self._epsilon(largest_sum, spendable_delta(self.budget)), self.budget.epsilon)
        budget = Budget(epsilon, self.budget.delta)
        widened = replace(self, budget=budget, limit=Total(largest_sum, self.limit.infinity))
        object.__setattr__(widened, "_costs", self._costs)  # costs do not depend on the limit
        object.__setattr__(widened, "full", math.nextafter(self.full + increase, 0.0))
        return widened

    def epsilon(self, total: Total[float]) -> float:
        """Return epsilon at the budget's delta, rounded up; 0 if the total is empty."""
        if total.spent == 0:
            return 0.0
        return self._epsilon(total.spent, spendable_delta(self.budget))

    def encode(self, total: Total[float]) -> list[str]:
        """Return the total as floats in hexadecimal."""
        return [float(total.spent).hex(), float(total.infinity).hex()]

    def decode(self, encoded: list[str]) -> Total[float]:
        """Return the total that `encode` encoded."""
        spent, infinity = encoded
        return Total(float.fromhex(spent), float.fromhex(infinity))

    def _cost(self, loss: Loss) -> Total[float]:
        spent = math.nextafter(worse_direction(loss, self.summand), math.inf)
        if not math.isfinite(spent):
            raise self._no_cost(loss)
        return Total(spent, worse_direction(loss, lambda direction: direction.infinity))

    def refusal(self, total: Total[float], cost: Total[float], plan: Plan) -> RuntimeError:
        """Return the error for a plan that does not fit, or that has no finite cost."""
        if cost.infinity > self.limit.infinity:
            return self._no_cost(plan)
        # a class with slots is made anew by its decorator, so a plain super() would miss it
        return super(AdditiveNotion, self).refusal(total, cost, plan)

    def _other_notions(self, plan: Plan) -> list[str]:
        """Return words on the notion that keeps the sum of epsilons as well."""
        return ["notion='pure-or-rdp' admits what fits by its epsilons too"]

    def _no_cost(self, plan: Plan) -> UnsupportedPlan:
        reason = f"it has no {self.unit}; a pure filter takes it if it is bounded"
        return UnsupportedPlan(plan, f"a filter of {self.unit}", reason)


@final
@dataclass(frozen=True, slots=True)
class ZCDPNotion(AdditiveNotion):
    """The notion that adds the rho of zCDP."""

    name = "zcdp"

    @property
    def unit(self) -> str:
        """Return the name of the unit, rho."""
        return "rho"

    def summand(self, loss: Loss) -> float:
        """Return rho."""
        return loss.rho

    def _epsilon(self, spent: float, delta: float) -> float:
        return ZCDPLoss(spent).epsilon_at(delta)


@final
@dataclass(frozen=True, slots=True)
class GDPNotion(AdditiveNotion):
    """The notion that adds the mu squared of GDP."""

    name = "gdp"

    @property
    def unit(self) -> str:
        """Return the name of the unit, mu squared."""
        return "mu^2"

    def summand(self, loss: Loss) -> float:
        """Return mu squared."""
        return loss.gdp_mu**2

    def _epsilon(self, spent: float, delta: float) -> float:
        return GaussianLoss(round_up(math.sqrt(spent))).epsilon_at(delta)


@final
@dataclass(frozen=True, slots=True)
class RDPNotion(AdditiveNotion):
    """The notion that adds the Rényi divergence at ``order``, fixed in advance."""

    name = "rdp"

    @property
    def unit(self) -> str:
        """Return the name of the unit, the divergence at the order."""
        return f"divergence of order {self._order:.6g}"

    @property
    def _order(self) -> float:
        return math.nan if self.order is None else self.order

    def summand(self, loss: Loss) -> float:
        """Return the divergence at the order."""
        return float(loss.renyi(np.array(self._order)))

    def _epsilon(self, spent: float, delta: float) -> float:
        a = float(self._order) - 1
        # eps = divergence + [ln(1/delta) - a ln(1 + 1/a) - ln(1 + a)] / a at the order a + 1
        conversion_term = (-math.log(delta) - a * math.log1p(1 / a) - math.log1p(a)) / a
        return max(0.0, round_up(spent + conversion_term, 16))


def spendable_delta(budget: Budget) -> float:
    """Return the budget's delta without the share that is kept for masses at infinity."""
    return budget.delta * (1 - INFINITY_SHARE)
