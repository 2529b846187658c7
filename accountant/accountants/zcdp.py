"""Zero-concentrated differential privacy: rho adds up.

References: Bun & Steinke (2016); Canonne, Kamath & Steinke (2020), Proposition 12.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from accountant.accountants.base import Accountant
from accountant.composition.plan_totals import fold_plan, infinity_mass
from accountant.losses.zcdp import ZCDPLoss
from accountant.numerics.rounding import round_up
from accountant.plans.plan import Plan


@final
@dataclass(frozen=True, slots=True)
class ZCDP(Accountant):
    """Sum of the rhos, converted by the tight formula; mass at infinity is paid in delta."""

    def rho(self, plan: Plan) -> float:
        """Total rho of one direction of the plan."""
        return round_up(float(fold_plan(plan, lambda loss: loss.rho)))

    def one_way_epsilon(self, plan: Plan, delta: float) -> float:
        """Conversion of the total rho."""
        rho, left = self.rho(plan), delta - infinity_mass(plan)
        if rho == 0:
            return 0.0 if left >= 0 else math.inf
        if left <= 0 or not rho < 1e300:
            return math.inf
        return ZCDPLoss(max(rho, 1e-300)).epsilon_at(left)

    def one_way_delta(self, plan: Plan, epsilon: float) -> float:
        """Conversion of the total rho."""
        rho = self.rho(plan)
        if not rho < 1e300:
            return 1.0
        return round_up(
            infinity_mass(plan) + (ZCDPLoss(max(rho, 1e-300)).delta_at(epsilon) if rho else 0.0)
        )
