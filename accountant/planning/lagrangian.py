"""Noise scales that minimise the total error at a given budget, by Lagrange multipliers.

Write E_i for the weighted error of release i and K_i(a) for its cumulant at the real a at which
delta is decided (its Rényi divergence of order a + 1, times a). Where sum E_i is least at a given
delta, the derivatives of E_i and of K_i by ln scale_i have the same ratio for all i. Both are
nearly powers of the scale, so that each step solves for powers with the present exponents.

Reference: Boyd & Vandenberghe (2004), Sections 4.5 (geometric programs) and 5.5 (multipliers).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast, final

import numpy as np

from accountant.accountants.budget import Budget
from accountant.composition.plan_totals import fold_plan, infinity_mass
from accountant.errors import ParameterError
from accountant.losses.loss import Loss
from accountant.numerics import Array
from accountant.numerics.ordered_sums import ordered_dot, ordered_sum
from accountant.numerics.search import least_float_that
from accountant.planning.requests import Wanted
from accountant.plans.plan import Plan, directions

LOG_INFINITY = 700.0  # larger logarithms are replaced by this, as e^700 is still a float
# Multiples of the a at which delta is decided for Gaussian releases: the grid of orders.
ORDER_FACTORS = np.geomspace(0.02, 200.0, 56)
LOG_SCALE_STEP = 0.02  # in ln scale: differences over this step stand for derivatives
# Steps at most; in ln scale, the largest move of the last step, and the largest of any step.  The
# error of the scales is about the square of the last move.
MAX_STEPS, MOVE_TOLERANCE, MAX_MOVE = 30, 0.03, 3.0
# Distances in ln scale, both ways, at which a mechanism is sought where none is known yet.
JUMPS = (0.5, 1, 2, 4, 8, 16, 32)
FLATTEST = 1e-3  # smallest exponent of the powers of the scale


def lagrangian_scales(
    wanted: Sequence[Wanted], counts: Sequence[float], fixed_plan: Plan, budget: Budget
) -> Array:
    """Return a noise scale for each of ``wanted``, up to a common factor.

    Each is released as often as ``counts`` says, and ``fixed_plan`` is released too.
    """
    orders = RenyiOrderGrid(counts, fixed_plan, budget)
    counts_array = np.array(counts, dtype=float)
    weights = np.array([request.weight for request in wanted], dtype=float)
    logs = np.array([orders.initial_log_scale + math.log(request.unit) for request in wanted])
    low, high = (
        np.log([getattr(request.domain, end) for request in wanted]) for end in ("low", "high")
    )
    valid_logs = np.full(logs.shape, np.nan)
    for _ in range(MAX_STEPS):
        logs = np.clip(logs, low, high)
        costs, falls, errors, rises = _costs_and_errors(wanted, orders, logs, valid_logs)
        valid_logs = logs.copy()
        log_factor, order = orders.common_log_factor(costs, falls)
        fall = falls[:, order]
        # The logarithms of -n K' and of n w E', with count n, weight w and derivatives by ln scale,
        # after all scales are multiplied by the common factor.
        log_saving = np.log(counts_array * fall) + costs[:, order] - fall * log_factor
        log_harm = np.log(counts_array * weights * rises) + errors + rises * log_factor
        # Their difference falls by `closing` where ln scale grows by 1.  At the optimum it is the
        # logarithm of the multiplier for all; with this multiplier the moves do not change delta,
        # to first order.
        log_ratio, closing = log_saving - log_harm, fall + rises
        share = np.exp(log_saving - log_saving.max()) / closing
        log_multiplier = ordered_dot(log_ratio, share) / share.sum()
        move = np.clip((log_ratio - log_multiplier) / closing, -MAX_MOVE, MAX_MOVE)
        logs = logs + log_factor + move
        if np.abs(move).max() < MOVE_TOLERANCE and abs(log_factor) < 1:
            break
    scales: Array = np.exp(np.clip(logs, low, high))
    return scales


def _costs_and_errors(
    wanted: Sequence[Wanted], orders: RenyiOrderGrid, logs: Array, valid_logs: Array
) -> tuple[Array, Array, Array, Array]:
    """Return (ln K, minus its slope, ln error, its slope) at each of ``logs``.

    The first two are matrices with a row for each release and a column for each order.  Where no
    mechanism has such a scale, ``logs`` is moved in place towards the last valid one.
    """
    rows = []
    for i, request in enumerate(wanted):
        # Some scales may have no mechanism.  Then others are tried, nearer to the last valid one.
        way_back = valid_logs[i] - logs[i]
        offsets = [0.0, way_back / 2, 0.9 * way_back, way_back]
        if math.isnan(way_back):  # none is known yet
            offsets = [0.0, *(sign * jump for jump in JUMPS for sign in (1, -1))]
        for offset in offsets:
            try:
                scales = math.exp(logs[i] + offset), math.exp(logs[i] + offset + LOG_SCALE_STEP)
                plans = [request.plan(s) for s in scales]
                log_cost, log_cost_after = map(orders.log_cost, plans)
                error, error_after = map(request.error_of, plans, scales)
            except ParameterError as wrong:
                if wrong.argument in {"error", "plan"}:  # no other scale helps
                    raise
                continue  # no mechanism has this noise
            logs[i] += offset
            break
        else:
            allowed = "mechanisms that exist at some scale"
            raise ParameterError("releases", request.label, allowed)
        if log_cost.min() >= LOG_INFINITY:
            allowed = "releases with a cost at this delta"
            raise ParameterError("releases", request.label, allowed)
        if not 0 < error <= error_after:
            raise ParameterError("error", error, "a positive number that grows with the scale")
        fall = (log_cost - log_cost_after) / LOG_SCALE_STEP
        rise = math.log(error_after / error) / LOG_SCALE_STEP
        rows.append((log_cost, fall, math.log(error), rise))
    costs, falls, errors, rises = (np.array(column) for column in zip(*rows, strict=True))
    return costs, np.maximum(falls, FLATTEST), errors, np.maximum(rises, FLATTEST)


@final
class RenyiOrderGrid:
    """A grid of Rényi orders a + 1 around the one at which a budget's delta is decided.

    ``counts`` are the numbers of the releases whose costs are given later; ``fixed_plan`` is
    released too.  ``initial_log_scale`` is the logarithm of a noise scale, in units of the
    sensitivity, from which the search for all scales starts.
    """

    def __init__(self, counts: Sequence[float], fixed_plan: Plan, budget: Budget) -> None:
        self._counts, self._budget = np.array(counts, float), budget
        # Gaussians with the total rho cost about epsilon = rho + 2 sqrt(rho nats), which is decided
        # at a = sqrt(nats / rho).  `root` is the sqrt(rho) that solves this, nats = ln(1 / delta).
        nats = -math.log(budget.delta) if budget.delta else 1.0
        root = budget.epsilon / (math.sqrt(nats + budget.epsilon) + math.sqrt(nats))
        self._orders_minus_one = (
            ORDER_FACTORS * math.sqrt(nats) / root if budget.delta else np.ones(1)
        )
        self.initial_log_scale = math.log(math.sqrt(float(self._counts.sum()) / 2) / root)
        self._fixed_cost = np.exp(self.log_cost(fixed_plan))
        if budget.delta:
            # the part of delta that the masses at infinity leave
            remaining_delta = max(budget.delta - infinity_mass(fixed_plan), budget.delta / 2)
            self._log_remaining_delta = math.log(remaining_delta)

    @np.errstate(all="ignore")  # some orders are beyond the range of floats
    def log_cost(self, plan: Plan) -> Array:
        """Return ``ln K`` of the worse direction at every order; ``ln epsilon`` if delta is 0."""
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
        # At the saddle point, the least h(a) = K(a) - a epsilon - ln a - ln(1 + a), delta is about
        # e^h / sqrt(2 pi h'').
        height = total_cost - a * epsilon - np.log(a) - np.log1p(a)
        at = min(max(int(np.argmin(height)), 1), a.size - 2)
        slopes = np.diff(height[at - 1 : at + 2]) / np.diff(a[at - 1 : at + 2])
        bend = max(2 * float(slopes[1] - slopes[0]) / (a[at + 1] - a[at - 1]), 1e-300)
        return float(height[at]) - math.log(2 * math.pi * bend) / 2 - self._log_remaining_delta, at
