"""Accounting by Rényi differential privacy: divergences add up at each order.

With D the total divergence of the order a + 1, every order bounds delta at epsilon by

    ln delta = a (D - epsilon) + a ln(a / (1 + a)) - ln(1 + a),

and the other way round epsilon at delta; the best order that a search finds is taken.  The mass of
outcomes that are impossible on the neighbour is added to delta.

References: Mironov (2017); Canonne, Kamath & Steinke (2020), Proposition 12, for the conversion.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from accountant.accountants.base import Accountant
from accountant.accountants.basic import Basic
from accountant.composition.plan_totals import fold_plan, infinity_mass
from accountant.numerics import Array
from accountant.numerics.rounding import round_up
from accountant.numerics.search import minimum_of_one_valley
from accountant.plans.plan import Plan, Sequential

# A plan of at least MANY different losses is first searched with one loss in SHARE, which shows
# about where the best order is.
MANY, SHARE = 64, 16
STEPS_NEAR = (0.05, 0.003, 0.0002)  # in ln(order - 1): grid steps of the search near that order
# Grids that are tried there before the whole range is searched; a grid with the least value at its
# end is followed by one with steps four times as long.
MAX_SWEEPS = 6
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

        def epsilons_at(a: Array, of: Plan = plan, factor: float = 1.0) -> Array:
            """Return epsilon by each order a + 1, for ``factor`` times the divergence of a plan."""
            # D + [ln(1/delta) + a ln(a / (1+a)) - ln(1+a)] / a
            conversion = (-math.log(finite_delta) - a * np.log1p(1 / a) - np.log1p(a)) / a
            epsilons, best = np.full(a.shape, np.inf), math.inf
            for block in np.split(np.arange(a.size), np.searchsorted(a, COSTLY_ORDERS)):
                if block.size:
                    divergence = factor * self.curve(of, a[block] + 1)
                    epsilons[block] = divergence + conversion[block]
                    best = min(best, float(np.nanmin(epsilons[block], initial=np.inf)))
                    # D grows with the order, so if the last D of a block and the least conversion
                    # add up to more than the best, no larger order is better.
                    if divergence[-1] + min(0.0, float(np.min(conversion))) > best:
                        break
            return epsilons

        items = list(plan.losses())
        # One loss of each SHARE stands for all of them, from the middle of the first group on.
        if len(items) >= MANY:
            few = Sequential(count * item for item, count in items[SHARE // 2 :: SHARE])
            factor = len(items) / len(few.parts)
            start, _ = minimum_of_one_valley(lambda a: epsilons_at(a, of=few, factor=factor))
            least_epsilon = _least_near(epsilons_at, start)
            if least_epsilon is not None:
                return round_up(least_epsilon, 16)
        _, least_epsilon = minimum_of_one_valley(epsilons_at)
        return round_up(least_epsilon, 16)

    def one_way_delta(self, plan: Plan, epsilon: float) -> float:
        """Return the mass at infinity plus the least delta that any order gives."""

        def log_deltas_at(a: Array) -> Array:
            log_delta = a * (self.curve(plan, a + 1) - epsilon) - a * np.log1p(1 / a) - np.log1p(a)
            return np.minimum(log_delta, 0.0)

        _, least_log_delta = minimum_of_one_valley(log_deltas_at)
        return round_up(infinity_mass(plan) + math.exp(least_log_delta), 64)


def _least_near(f: Callable[[Array], Array], start: float) -> float | None:
    """Return the least value seen of ``f`` near ``start``, on ever finer grids of nine points.

    Each grid is in ln a, around the vertex of the parabola through the best three points of the
    grid before.  None if the valley of ``f`` is not found within `MAX_SWEEPS` grids.
    """
    at, best, steps = math.log(start), math.inf, list(STEPS_NEAR)
    for _ in range(MAX_SWEEPS):
        if not steps:
            return min(best, float(f(np.exp(np.array([at])))[0]))
        grid = at + steps[0] * np.arange(-4.0, 5.0)
        value = f(np.exp(grid))
        i = int(np.argmin(value))
        best, at = min(best, float(value[i])), float(grid[i])
        if 0 < i < grid.size - 1 and np.isfinite(value[i - 1 : i + 2]).all():
            # The vertex of the parabola through three points, two of them a step away.
            fall, rise = value[i - 1] - value[i], value[i + 1] - value[i]
            at += steps.pop(0) * float(fall - rise) / (2 * max(float(fall + rise), 1e-300))
        else:
            steps[0] *= 4
    return None
