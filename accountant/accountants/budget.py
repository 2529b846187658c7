"""A budget: what may be spent, and whether a plan fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from accountant.accountants.tight import Tight
from accountant.domains import DELTA, POSITIVE
from accountant.errors import BudgetExceeded
from accountant.plans.plan import Plan


@final
@dataclass(frozen=True, slots=True)
class Budget:
    """An (epsilon, delta) that must not be exceeded; ``delta = 0`` is pure."""

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", POSITIVE.check("epsilon", self.epsilon))
        object.__setattr__(self, "delta", DELTA.check("delta", self.delta))

    def admits(self, plan: Plan) -> bool:
        """Whether the least sound bound on the plan's epsilon is within the budget."""
        return Tight().epsilon(plan, self.delta) <= self.epsilon

    def check(self, plan: Plan) -> float:
        """Return the plan's epsilon at the budget's delta, or raise `BudgetExceeded`."""
        asked = Tight().epsilon(plan, self.delta)
        if not asked <= self.epsilon:
            raise BudgetExceeded(0.0, asked, self)
        return asked
