"""The search for the least noise that meets a goal: every answer was seen to meet it."""

from __future__ import annotations

import math
from collections.abc import Callable

from accountant.accountants.tight import Tight
from accountant.domains import Interval
from accountant.errors import ParameterError
from accountant.numerics.search import geometric_mean
from accountant.planning.bracketing import PlanCost, bracket_target, checked_bracket
from accountant.planning.calibration_goals import Goal, epsilon_goal
from accountant.planning.quick_search import (
    TOLERANCE,
    is_expensive,
    root_near,
    rough_start,
    usual_slope,
)
from accountant.plans.plan import Plan, Release, as_plan

SLOPE_STEP = 1.001  # of the parameter, where a slope is measured


def on_the_private_side(
    build: Callable[[float], Plan], goal: Goal, domain: Interval, start: float | None
) -> float | None:
    """Return ``start`` moved by round-off until the target is met; None if that is not enough."""
    cost, target = PlanCost(build, goal.measure), goal.target
    if start is None or start not in domain or not cost(start) < math.inf:
        return None
    moves = [start * (1 + side * TOLERANCE) for side in (-1, 1)]
    inside = [x for x in moves if x in domain] or [start]
    towards = min(inside, key=cost)
    parameter, step = start, math.ulp(start)
    while cost(parameter) > target and step < TOLERANCE * start:
        parameter, step = start + math.copysign(step, towards - start), 2 * step
    meets_target = parameter in domain and (1 - TOLERANCE) * target <= cost(parameter) <= target
    return parameter if meets_target else None


def least_noise(
    build: Callable[[float], Plan],
    goal: Goal,
    domain: Interval,
    bracket: tuple[float, float] | None,
) -> float:
    """Return the parameter whose cost is the target, or less by the tolerance."""
    cost, target = PlanCost(build, goal.measure), goal.target
    is_scale = domain.low > 0 and domain.high / domain.low > 1e12
    if bracket is None and is_scale:
        root = _quick_root(build, cost, goal)
        if root is not None:
            return root
    if bracket is not None:
        ends = checked_bracket(bracket)
    elif is_scale:  # look around 1
        ends = bracket_target(cost, target, 1.0)
    else:
        low, high = domain.low, domain.high
        ends = (math.nextafter(low, high), math.nextafter(high, low))
    private, leaky = ends if cost(ends[0]) <= target else ends[::-1]
    if not cost(private) <= target < cost(leaky):
        costs = f"{cost(ends[0]):.6g} and {cost(ends[1]):.6g}"
        if goal.delta == 0 and cost(ends[0]) == math.inf == cost(ends[1]):
            _refuse_noise_that_needs_delta(build, ends, goal)
        raise ParameterError(
            goal.argument, target, f"between the costs at the parameter's ends, {costs}"
        )
    # `private` meets the target and `leaky` does not.  The interval shrinks on a logarithmic scale,
    # by secants of ln cost on ln parameter, and by halving in every third step.
    for step in range(200):
        if cost(private) >= (1 - TOLERANCE) * target or math.isclose(private, leaky, rel_tol=1e-15):
            break
        # An attack rate jumps where its bound becomes trivial: no noise has a slope of 1e6.
        is_jump = goal.delta is None and cost(leaky) > 1.01 * cost(private)
        if is_jump and math.isclose(private, leaky, rel_tol=1e-8):
            break
        middle = geometric_mean(private, leaky)
        guess = _secant(private, leaky, cost, target) if step % 3 else middle
        low, high = sorted((private, leaky))
        if not low < guess < high:
            guess = middle if low < middle < high else (low + high) / 2
        private, leaky = (guess, leaky) if cost(guess) <= target else (private, guess)
    return private


def _quick_root(build: Callable[[float], Plan], cost: PlanCost, goal: Goal) -> float | None:
    """Return the parameter after a few steps; None where only the search can tell.

    It is used for rates of attacks, and for plans whose epsilon is expensive.
    """
    start: tuple[float, float | None] = (1.0, None)
    if goal.delta is not None:
        if not isinstance(goal.accountant, Tight):
            return None
        try:
            if not is_expensive(as_plan(build(1.0)), goal.delta):
                return None
            usual = 1.0, usual_slope(goal.target, goal.delta)
            start = rough_start(build, goal.target, goal.delta) or usual
        except ParameterError:  # the search says why
            return None
    elif goal.rough is not None:
        quick = PlanCost(build, goal.rough)
        parameter = root_near(quick, goal.target, 1.0)
        if parameter is not None:
            if (1 - TOLERANCE) * goal.target <= cost(parameter) <= goal.target:
                return parameter
            rise = quick(parameter * SLOPE_STEP) / quick(parameter)
            slope = math.log(rise) / math.log(SLOPE_STEP) if rise > 0 else None
            start = (parameter, slope or None)
    return root_near(cost, goal.target, *start)


def _refuse_noise_that_needs_delta(
    build: Callable[[float], Plan], ends: tuple[float, float], goal: Goal
) -> None:
    """Raise where a plan without a finite epsilon at delta 0 has one at a larger delta."""
    cost = PlanCost(build, epsilon_goal(goal.target, 1e-6, goal.accountant).measure)
    if min(cost(ends[0]), cost(ends[1])) < math.inf:
        plan = build(ends[0])
        what = f"{type(plan).__name__} noise" if isinstance(plan, Release) else "this plan"
        raise ParameterError("delta", 0.0, f"above 0: {what} has no finite epsilon at delta 0")


def _secant(private: float, leaky: float, cost: PlanCost, target: float) -> float:
    below, above = cost(private), cost(leaky)
    if not (0 < below < math.inf and 0 < above < math.inf) or below == above:
        return geometric_mean(private, leaky)
    # aim at the middle of the tolerance, so that the guess lands on the private side
    aim = math.log(target * (1 - TOLERANCE / 2) / below) / math.log(above / below)
    return float(private * (leaky / private) ** aim)
