"""Pure privacy as a notion: the epsilons and deltas of releases add up, as decimal numbers.

Each is taken as it is printed, so ten times 0.1 is 1.  The delta of a release is its mass at
infinity, the probability of outcomes that are impossible on the neighbour.

Source: Rogers, Roth, Ullman & Vadhan (2016), Theorem 4.1: the sums bound what was spent, also where
earlier answers choose later releases.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import final

from accountant.accountants.basic import (
    DECIMAL_CONTEXT,
    float_ceiling,
    float_floor,
    printed_decimal,
)
from accountant.accountants.budget import Budget
from accountant.errors import UnsupportedPlan
from accountant.ledger.totals import CompositionNotion, Spending, Total, worse_direction
from accountant.losses.loss import Loss
from accountant.plans.plan import Plan

exact_sum = DECIMAL_CONTEXT.add


@final
@dataclass(frozen=True, slots=True)
class PureDPNotion(CompositionNotion[Decimal]):
    """The notion that adds epsilons and deltas exactly, as decimals in their printed form.

    A `Total` has the sum of epsilons (``spent``) and that of deltas (``infinity``).  ``limit`` is
    the largest total, and ``full`` the budget's epsilon as it is printed, at which nothing remains.
    A certified plan, charged as one epsilon, may have taken all of delta: what is released beside
    the plan has ``limit.infinity`` 0, though the budget's delta is positive.
    """

    name = "pure"
    zero = Total(Decimal(0), Decimal(0))

    def __post_init__(self) -> None:
        # The class is frozen; `full` is a field of the base class that each notion computes.
        object.__setattr__(self, "full", printed_decimal(self.budget.epsilon))

    def add(self, total: Total[Decimal], cost: Total[Decimal]) -> Total[Decimal]:
        """Return the exact sums."""
        (spent, infinity), (cost_spent, cost_infinity) = total, cost
        return Total(exact_sum(spent, cost_spent), exact_sum(infinity, cost_infinity))

    def times(self, cost: Total[Decimal], count: int) -> Total[Decimal]:
        """Return the exact products."""
        return Total(
            DECIMAL_CONTEXT.multiply(cost.spent, count),
            DECIMAL_CONTEXT.multiply(cost.infinity, count),
        )

    def shown(self, total: Total[Decimal], unit: str | None = None) -> Spending:
        """Return the sum of the epsilons, or that of the deltas where it alone is too large."""
        if unit == "delta" or (unit is None and self.fails_by_infinity(total)):
            delta_limit = 0.0 if self._beside_plan else self.budget.delta
            return Spending("delta", float_ceiling(total.infinity), delta_limit)
        return Spending("epsilon", float_ceiling(total.spent), self.budget.epsilon)

    def how_often(self, cost: Total[Decimal], total: Total[Decimal]) -> int | None:
        """Return how many more releases of ``cost`` fit."""
        # The default context of decimals would round, and its digits are the caller's to set.
        counts = [
            int(
                DECIMAL_CONTEXT.divide_int(
                    max(DECIMAL_CONTEXT.subtract(limit, spent), Decimal(0)), increment
                )
            )
            for limit, spent, increment in zip(self.limit, total, cost, strict=True)
            if increment
        ]
        return min(counts, default=None)

    def left(self, total: Total[Decimal]) -> Decimal:
        """Return what remains of the sum of epsilons, exactly."""
        return max(DECIMAL_CONTEXT.subtract(self.full, total.spent), Decimal(0))

    def largest_epsilon(self, unspent: Decimal) -> float:
        """Return the epsilon that is left, rounded down."""
        return float_floor(unspent)

    def with_more(self, increase: Decimal) -> PureDPNotion:
        """Return the notion whose epsilon is larger by ``increase``.

        Its budget has that epsilon rounded up, for display; `full` and `limit` are exact.
        """
        epsilon = float_ceiling(exact_sum(self.full, increase))
        limit = Total(exact_sum(self.limit.spent, increase), self.limit.infinity)
        widened = replace(self, budget=Budget(epsilon, self.budget.delta), limit=limit)
        object.__setattr__(widened, "_costs", self._costs)  # costs do not depend on the limit
        object.__setattr__(widened, "full", exact_sum(self.full, increase))
        return widened

    def epsilon(self, total: Total[Decimal]) -> float:
        """Return the sum of the epsilons."""
        return float_ceiling(total.spent)

    def encode(self, total: Total[Decimal]) -> list[str]:
        """Return the decimals in their printed form."""
        return [str(total.spent), str(total.infinity)]

    def decode(self, encoded: list[str]) -> Total[Decimal]:
        """Return the total that `encode` encoded."""
        spent, infinity = encoded
        return Total(Decimal(spent), Decimal(infinity))

    @property
    def _beside_plan(self) -> bool:
        """Return whether a certified plan has all of delta, which rules out other notions."""
        return self.budget.delta > 0 and not self.limit.infinity

    def _other_notions(self, plan: Plan) -> list[str]:
        """Return words on Rényi sums, which grow more slowly over many releases."""
        if self._beside_plan:
            return []
        if self.budget.delta == 0:
            return ["a budget with delta > 0 adds Rényi divergences, which cost many releases less"]
        return ["notion='pure-or-rdp' adds Rényi divergences too, which cost many releases less"]

    def _cost(self, loss: Loss) -> Total[Decimal]:
        """Return an upper bound on epsilon and delta: each is that of its own worse direction."""
        epsilon = worse_direction(loss, lambda direction: direction.max_loss)
        if math.isinf(epsilon):
            instead = (
                "use notion='zcdp'" if self.budget.delta else "a budget with delta > 0 takes it"
            )
            if self._beside_plan:
                instead = "beside a plan that was charged its certified epsilon it does not add up"
            raise UnsupportedPlan(loss, "a pure filter", f"it has no epsilon; {instead}")
        infinity = worse_direction(loss, lambda direction: direction.infinity)
        return Total(printed_decimal(epsilon), printed_decimal(infinity))
