"""Accounting by Rényi differential privacy: divergences add up at each order.

With D the total divergence of the order a + 1, every order bounds delta at epsilon by

    ln delta = a (D - epsilon) + a ln(a / (1 + a)) - ln(1 + a),

and the other way round epsilon at delta; the best order that a search finds is taken.  The mass of
outcomes that are impossible on the neighbour is added to delta.

References: Mironov (2017); Canonne, Kamath & Steinke (2020), Proposition 12, for the conversion.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from accountant.accountants.base import Accountant
from accountant.accountants.basic import Basic
from accountant.composition.plan_totals import fold_plan, infinity_mass
from accountant.numerics import Array
from accountant.numerics.rounding import round_up
from accountant.numerics.search import minimum_of_one_valley
from accountant.plans.plan import Plan

# Values of order - 1 that split a grid into blocks of ascending orders.  They are evaluated one by
# one, and the rest is left out as soon as none of its orders can be the best.
COSTLY_ORDERS = (30.0, 1e3, 1e5)


@final
@dataclass(frozen=True, slots=True)
class RDP(Accountant):
    """Rényi DP: divergences add at each order, and are converted at the best order found.

    Any order gives a valid bound, so a coarse search makes the bound weaker and never wrong.

    References
    ----------
    Mironov (2017); Canonne, Kamath & Steinke (2020), Proposition 12, for the conversion.

    Examples
    --------
    >>> from accountant import GaussianLoss, RDP
    >>> round(RDP().epsilon(100 * GaussianLoss(0.1), delta=1e-6), 3)
    5.222
    """

    def curve(self, plan: Plan, order: Array) -> Array:
        """Return the total Rényi divergence of one direction of a plan.

        Parameters
        ----------
        plan : Plan
            A plan, a loss or a mechanism.
        order : array of shape (n,)
            Rényi orders, each above 1.

        Returns
        -------
        array of shape (n,)
            In nats, rounded up.
        """
        # A plan without losses folds to a single 0.
        return fold_plan(plan, lambda loss: loss.renyi(order)) * np.ones_like(order)

    def one_way_epsilon(self, plan: Plan, delta: float) -> float:
        """Return the least epsilon that the total divergence of any order gives."""
        finite_delta = delta - infinity_mass(plan)  # what is left for the finite losses
        if delta == 0 and finite_delta == 0:
            return Basic().one_way_epsilon(plan, 0.0)  # in the limit of large orders
        if finite_delta <= 0:
            return math.inf

        def epsilons_at(a: Array) -> Array:
            """Return epsilon by each order a + 1."""
            # D + [ln(1/delta) + a ln(a / (1+a)) - ln(1+a)] / a
            conversion = (-math.log(finite_delta) - a * np.log1p(1 / a) - np.log1p(a)) / a
            epsilons, best = np.full(a.shape, np.inf), math.inf
            for block in np.split(np.arange(a.size), np.searchsorted(a, COSTLY_ORDERS)):
                if block.size:
                    divergence = self.curve(plan, a[block] + 1)
                    epsilons[block] = divergence + conversion[block]
                    best = min(best, float(np.nanmin(epsilons[block], initial=np.inf)))
                    # D grows with the order, so if the last D of a block and the least conversion
                    # add up to more than the best, no larger order is better.
                    if divergence[-1] + min(0.0, float(np.min(conversion))) > best:
                        break
            return epsilons

        _, least_epsilon = minimum_of_one_valley(epsilons_at)
        return round_up(least_epsilon, 16)

    def one_way_delta(self, plan: Plan, epsilon: float) -> float:
        """Return the mass at infinity plus the least delta that any order gives."""

        def log_deltas_at(a: Array) -> Array:
            log_delta = a * (self.curve(plan, a + 1) - epsilon) - a * np.log1p(1 / a) - np.log1p(a)
            return np.minimum(log_delta, 0.0)

        _, least_log_delta = minimum_of_one_valley(log_deltas_at)
        return round_up(infinity_mass(plan) + math.exp(least_log_delta), 64)
