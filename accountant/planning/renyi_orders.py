"""The Rényi order that decides delta, and the costs of releases there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast, final

import numpy as np

from accountant.accountants.budget import Budget
from accountant.composition.plan_totals import fold_plan, infinity_mass
from accountant.losses.loss import Loss
from accountant.numerics import Array
from accountant.numerics.ordered_sums import ordered_sum
from accountant.numerics.search import least_float_that
from accountant.plans.plan import Plan, directions

LOG_INFINITY = 700.0  # as a logarithm
ORDER_FACTORS = np.geomspace(0.02, 200.0, 56)


@final
class RenyiOrderGrid:
    """Rényi orders, less 1 (``a``), around the one at which a budget's delta is decided.

    ``counts`` are of the releases whose costs are given later; ``fixed_plan`` is released too.
    ``initial_log_scale`` is the logarithm of a scale, in units of sensitivity, that is about right
    for all.
    """

    def __init__(self, counts: Sequence[float], fixed_plan: Plan, budget: Budget) -> None:
        self._counts, self._fixed_plan, self._budget = np.array(counts, float), fixed_plan, budget
        # Gaussians whose rho is rho in all cost rho + 2 sqrt(rho nats), at a = sqrt(nats / rho)
        nats = -math.log(budget.delta) if budget.delta else 1.0
        root = budget.epsilon / (math.sqrt(nats + budget.epsilon) + math.sqrt(nats))
        self._orders_minus_one = (
            ORDER_FACTORS * math.sqrt(nats) / root if budget.delta else np.ones(1)
        )
        self.initial_log_scale = math.log(math.sqrt(float(self._counts.sum()) / 2) / root)
        self._fixed_cost = np.exp(self.log_cost(fixed_plan))

    @np.errstate(all="ignore")  # some orders are beyond the range of floats
    def log_cost(self, plan: Plan) -> Array:
        """Return ``ln K`` at every order; ``ln epsilon`` where delta is 0."""
        a, pure = self._orders_minus_one, not self._budget.delta

        def fact(loss: Loss) -> Array | float:
            return loss.max_loss if pure else loss.renyi(a + 1)

        items = list(plan.losses())
        if all(isinstance(item, Loss) and item.reversed is item for item, _ in items):
            direction_costs = [sum(n * fact(cast("Loss", item)) for item, n in items) * a]
        else:
            direction_costs = [fold_plan(direction, fact) * a for direction in directions(plan)]
        worst = np.maximum.reduce(direction_costs) * np.ones_like(a)
        logs: Array = np.clip(np.log(np.nan_to_num(worst, nan=np.inf)), -LOG_INFINITY, LOG_INFINITY)
        return logs

    def common_log_factor(self, costs: Array, cost_slopes: Array) -> tuple[float, int]:
        """Return the log of the common factor of scales that meets delta, and the order's index."""
        factor = least_float_that(
            lambda log: self._excess(costs, cost_slopes, log)[0] <= 0, -60.0, 60.0, steps=27
        )
        return factor, self._excess(costs, cost_slopes, factor)[1]

    def _excess(self, costs: Array, cost_slopes: Array, factor: float) -> tuple[float, int]:
        """Return how far ln delta is above its target, and the index of the deciding order."""
        a, epsilon = self._orders_minus_one, self._budget.epsilon
        total_cost = self._fixed_cost + ordered_sum(
            self._counts, np.exp(np.minimum(costs - cost_slopes * factor, LOG_INFINITY))
        )
        if not self._budget.delta:
            return float(total_cost[0] - epsilon), 0
        height = total_cost - a * epsilon - np.log(a) - np.log1p(a)
        at = min(max(int(np.argmin(height)), 1), a.size - 2)
        # the saddle point: delta = e^height / sqrt(2 pi height'')
        slopes = np.diff(height[at - 1 : at + 2]) / np.diff(a[at - 1 : at + 2])
        bend = max(2 * float(slopes[1] - slopes[0]) / (a[at + 1] - a[at - 1]), 1e-300)
        return float(height[at]) - math.log(2 * math.pi * bend) / 2 - self._log_delta, at

    @property
    def _log_delta(self) -> float:
        # The part of delta that remains after the masses at infinity.
        return math.log(
            max(self._budget.delta - infinity_mass(self._fixed_plan), self._budget.delta / 2)
        )
