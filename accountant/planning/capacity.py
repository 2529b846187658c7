"""How many more releases of one kind a budget has room for after a plan.

The cost of n more is epsilon at the budget's delta, which grows with n.  The search starts from the
number that Rényi divergences suggest, and uses bounds on the cost that are quick and a little too
large; the budget itself decides about the last releases.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from accountant.accountants.basic import Basic
from accountant.accountants.budget import Budget
from accountant.accountants.rdp import RDP
from accountant.accountants.tight import Tight
from accountant.errors import UnsupportedPlan
from accountant.plans.plan import Plan, Repeat, Sequential

CAPACITY_CAP = 1_000_000  # no larger number of releases is returned
# How many times the true cost a computed one may be: `Tight.epsilons` are about 1e-4 of themselves
# too large where the cumulants of all losses are known exactly.  Where the costs are looser, the
# answer may be too small.
COST_TOLERANCE = 1.0003
HALVING = 5  # every fifth step of the search halves its interval in place of a secant


def remaining_capacity(plan: Plan, part: Plan, budget: Budget) -> int:
    """Return how many times ``part`` fits the budget after the plan, up to `CAPACITY_CAP`."""

    def with_more(n: int) -> Plan:
        return Sequential([plan, Repeat(part, n)])

    @functools.cache
    def cost(n: int) -> float:
        return float(Tight().epsilons(with_more(n), [budget.delta])[0])

    def quick_cost(n: int) -> float:
        return float(Tight().epsilons(with_more(n), [budget.delta], with_envelopes=False)[0])

    if quick_cost(0) > budget.epsilon and cost(0) > budget.epsilon * COST_TOLERANCE:
        return 0
    # Quick costs are larger only where losses cover many pairs; then the search goes on from there.
    limit = budget.epsilon
    n, slope = _largest_count_within(quick_cost, limit, *_renyi_guess(plan, part, budget))
    if n < CAPACITY_CAP and cost(n + 1) <= limit:
        n, _ = _largest_count_within(cost, limit, n + 1, slope, n)
    # Where the cost of the next count is above the budget by no more than the tolerance, the budget
    # itself decides, by a sharper bound.
    while (
        n < CAPACITY_CAP
        and cost(n + 1) <= budget.epsilon * COST_TOLERANCE
        and budget.admits(with_more(n + 1))
    ):
        n += 1
    return max(n, 0)


def _largest_count_within(
    cost: Callable[[int], float], limit: float, guess: int, slope: float, low: int = -1
) -> tuple[int, float]:
    """Return the greatest n up to `CAPACITY_CAP` with ``cost(n) <= limit``, and the cost of one.

    It searches by secants, and by halving where these leave the interval or are slow.  ``guess`` is
    about the answer, ``slope`` about what one release more adds to the cost; ``low`` is returned
    if no greater n is within.
    """
    high, count, evaluations = CAPACITY_CAP + 1, guess, 0
    previous: tuple[int, float] | None = None
    while high - low > 1:
        count = min(max(count, low + 1), high - 1)
        value = cost(count)
        low, high = (count, high) if value <= limit else (low, count)
        if previous is not None and previous[0] != count:
            slope = (value - previous[1]) / (count - previous[0])
        previous, evaluations = (count, value), evaluations + 1
        step = (limit - value) / slope if math.isfinite(value) and slope > 0 else math.inf
        if evaluations % HALVING and abs(step) < CAPACITY_CAP:
            count += math.floor(step) if value <= limit else -math.ceil(-step)
        elif high <= CAPACITY_CAP:
            count = (low + high) // 2
        else:  # no count is known to be too large yet
            count = 4 * count + 1
    return low, slope


def _renyi_guess(plan: Plan, part: Plan, budget: Budget) -> tuple[int, float]:
    """Return about how many parts fit, by Rényi divergences, and about the cost of one more."""
    if budget.delta == 0:
        part_epsilon = Basic().epsilon(part, 0.0)
        remaining_epsilon = budget.epsilon - Basic().epsilon(plan, 0.0)
        if not (remaining_epsilon > 0 and 0 < part_epsilon < math.inf):
            return 0, 0.0
        return int(min(remaining_epsilon / part_epsilon, CAPACITY_CAP)), part_epsilon
    # Canonne, Kamath & Steinke (2020), Proposition 12, with R the total divergence and a for the
    # order less 1:
    #
    #     epsilon = R(a + 1) + (ln(1 / delta) - ln(1 + a)) / a - ln(1 + 1 / a)
    #
    # Each order gives a count that fits by it, and the largest one is about the answer.
    a = np.geomspace(1e-2, 1e4, 200)
    conversion = (-math.log(budget.delta) - np.log1p(a)) / a - np.log1p(1 / a)
    with np.errstate(all="ignore"):  # orders without a finite value are left out
        spent, part_cost = RDP().curve(plan, a + 1) + conversion, RDP().curve(part, a + 1)
        count = np.where(part_cost > 0, (budget.epsilon - spent) / part_cost, np.inf)
    count = np.where(np.isfinite(spent) & ~np.isnan(count), count, -np.inf)
    best = int(np.argmax(count))
    if not 0 < count[best] < math.inf:
        return 0, float(part_cost[best])
    return int(min(count[best], CAPACITY_CAP)), float(part_cost[best])


def capacity_if_known(plan: Plan, part: Plan, budget: Budget) -> int | None:
    """Return the capacity; None where no accountant can compute it."""
    try:
        return remaining_capacity(plan, part, budget)
    except UnsupportedPlan:
        return None
