"""The common factor of many scales, with few calls of an exact accountant."""

from __future__ import annotations

import math
from collections.abc import Callable

from accountant.accountants.budget import Budget
from accountant.accountants.tight import Tight
from accountant.planning.bracketing import PlanCost
from accountant.planning.calibration import calibrate
from accountant.plans.plan import Plan

SEARCH_ACCOUNTANT = Tight(width=1e-6)
# A plan that this accountant admits is admitted by any sharper accountant.
MARGIN = 1e-7
MAX_STEPS = 8


def common_factor(
    plan_of: Callable[[float], Plan], budget: Budget, tolerance: float
) -> tuple[float, float]:
    """Return a factor near 1 and the plan's epsilon there, ``tolerance`` below the budget's."""
    target = budget.epsilon * (1 - MARGIN)
    cost = PlanCost(plan_of, lambda plan: SEARCH_ACCOUNTANT.epsilon(plan, budget.delta))
    aim = math.log(target * (1 - tolerance / 2))
    # the cost falls with the factor, at first about as 1 / factor
    log_factor, slope = 0.0, -1.2
    for _ in range(MAX_STEPS):
        epsilon = cost(math.exp(log_factor))
        if (1 - tolerance) * target <= epsilon <= target:
            return math.exp(log_factor), epsilon
        if not 0 < epsilon < math.inf:
            break
        log_excess = math.log(epsilon) - aim
        log_step = max(-1.0, min(1.0, -log_excess / slope))
        next_epsilon = cost(math.exp(log_factor + log_step))
        if not 0 < next_epsilon < math.inf or next_epsilon == epsilon or log_step == 0:
            break
        slope = min(math.log(next_epsilon / epsilon) / log_step, -0.1)
        log_factor += log_step
    factor = calibrate(plan_of, epsilon=target, delta=budget.delta, accountant=SEARCH_ACCOUNTANT)
    return factor, cost(factor)
