"""Accounting by zero-concentrated differential privacy: the rhos of the releases add up.

A release is rho-zCDP if its Rényi divergence of every order alpha > 1 is at most rho alpha.  A plan
is so with the sum of the rhos, which `ZCDPLoss` converts to epsilon or delta.  Outcomes that are
impossible on the neighbour have an infinite loss; their mass is subtracted from the given delta, or
added to the computed one.

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
    """Zero-concentrated DP: rhos add, and Proposition 12 converts their sum to epsilon or delta.

    Mass at infinity counts as delta.

    References
    ----------
    Bun & Steinke (2016); Canonne, Kamath & Steinke (2020), Proposition 12.

    Examples
    --------
    >>> from accountant import GaussianLoss, ZCDP
    >>> round(ZCDP().rho(100 * GaussianLoss(0.1)), 6)
    0.5
    """

    def rho(self, plan: Plan) -> float:
        """Return the total rho of one direction of a plan.

        Parameters
        ----------
        plan : Plan
            A plan, a loss or a mechanism.

        Returns
        -------
        float
            The sum of the rhos, of parallel parts the greatest, rounded up.
        """
        return round_up(float(fold_plan(plan, lambda loss: loss.rho)))

    def one_way_epsilon(self, plan: Plan, delta: float) -> float:
        """Return epsilon of the total rho at the delta that the mass at infinity leaves."""
        rho, finite_delta = self.rho(plan), delta - infinity_mass(plan)
        if rho == 0:  # the finite losses are all 0
            return 0.0 if finite_delta >= 0 else math.inf
        if finite_delta <= 0 or not rho < 1e300:
            return math.inf
        # `ZCDPLoss` takes a rho from 1e-300 to 1e300; raising rho keeps the bound valid.
        return ZCDPLoss(max(rho, 1e-300)).epsilon_at(finite_delta)

    def one_way_delta(self, plan: Plan, epsilon: float) -> float:
        """Return the mass at infinity plus delta of the total rho."""
        rho = self.rho(plan)
        if not rho < 1e300:
            return 1.0
        return round_up(
            infinity_mass(plan) + (ZCDPLoss(max(rho, 1e-300)).delta_at(epsilon) if rho else 0.0)
        )
