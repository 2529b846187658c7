"""The search for a noise parameter at which the cost of a plan meets a target.

The cost (an epsilon, or a rate of an attack) is computed at every parameter that is returned, and
does not exceed the target there.  `PlanCost` remembers costs, `bracket_target` walks to two
parameters around the target, and `least_noise` closes in on it between them.  Of these two the
private one meets the target, and the leaky one does not.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

from accountant.accountants.tight import Tight
from accountant.domains import POSITIVE, Interval
from accountant.errors import ParameterError
from accountant.numerics.search import geometric_mean
from accountant.planning.calibration_goals import Goal, epsilon_goal
from accountant.planning.quick_search import (
    TOLERANCE,
    is_expensive,
    root_near,
    rough_start,
    usual_slope,
)
from accountant.plans.plan import Plan, Release, as_plan

SLOPE_STEP = 1.001  # factor between the two parameters from which a slope is computed
SCALE_RANGE = 1e12  # a parameter whose domain spans this factor or more is a noise scale
# The walk of `bracket_target`: each stride doubles the one before.
STRIDES = 60
FIRST_STRIDE = 0.125  # in powers of two
POWER_LIMIT = 990.0  # powers of two beyond it are near the ends of what floats hold
# The search of `secant_bracket`, by secants of ln cost on ln parameter.
SECANTS = 10
FIRST_FACTOR = 1.25  # between the two parameters of the first secant
FLAT_SLOPE = 1e-3  # a secant of a lesser slope leads nowhere
HIGHEST_JUMP = 20.0  # of ln parameter
PAST_AIM = 1.02  # how far a jump goes, in units of the distance to its aim
# The search between two parameters.  EQUAL is the relative distance at which they count as equal;
# EQUAL_AT_A_JUMP is enough where their costs have a ratio above JUMP_OF_COST.
BISECTIONS = 200
EQUAL = 1e-15
JUMP_OF_COST = 1.01
EQUAL_AT_A_JUMP = 1e-8
# Where a plan has no finite epsilon at delta 0, this delta shows whether it has one at any.
POSSIBLE_DELTA = 1e-6


class PlanCost:
    """Cost of the plan at a parameter value, cached; NaN where the plan cannot be built."""

    def __init__(self, build: Callable[[float], Plan], measure: Callable[[Plan], float]) -> None:
        self._build, self._measure = build, measure
        self._costs: dict[float, float] = {}

    def __call__(self, parameter: float) -> float:
        """Return the cost at ``parameter``."""
        if parameter not in self._costs:
            try:
                plan = self._build(parameter)
            except ParameterError as error:
                if error.argument in {"plan", "plan_of"}:  # no plan at any parameter value
                    raise
                self._costs[parameter] = math.nan
            else:
                self._costs[parameter] = self._measure(plan)
        return self._costs[parameter]


def checked_bracket(bracket: object) -> tuple[float, float]:
    """Return the bracket, checked to be two positive parameter values."""
    if not isinstance(bracket, (tuple, list)) or len(bracket) != 2:
        raise ParameterError("bracket", bracket, "a pair of positive parameter values")
    end_1, end_2 = (POSITIVE.check("bracket", end) for end in bracket)
    return end_1, end_2


def bracket_target(cost: PlanCost, target: float) -> tuple[float, float]:
    """Return two parameters of which only one meets the target, or else the furthest two tried.

    The walk starts from the first value at which the plan exists, of 1 and values ever further
    from it.  It goes both ways in growing strides.  Where the plan ceases to exist, it
    closes in on that edge.
    """
    jumps = (sign * jump for jump in (0.5, *(2**k for k in range(10))) for sign in (-1, 1))
    candidates = itertools.chain([1.0], (2.0**jump for jump in jumps))
    start = next((x for x in candidates if not math.isnan(cost(x))), 1.0)
    secant_ends = secant_bracket(cost, target, start)
    if secant_ends is not None:
        return secant_ends
    start_meets_target = cost(start) <= target
    furthest = [start, start]  # upwards and downwards, the last value at which the plan exists
    # Upwards and downwards, the nearest value tried at which it does not exist.
    missing: list[float | None] = [None, None]
    for stride in range(1, STRIDES + 1):
        jump = FIRST_STRIDE * (2.0**stride - 1)
        for side, sign in enumerate((1.0, -1.0)):
            exponent = math.log2(start) + sign * jump
            end = float(2.0 ** max(-POWER_LIMIT, min(POWER_LIMIT, exponent)))
            beyond = missing[side]
            if beyond is not None:
                end = geometric_mean(furthest[side], beyond)
            if math.isnan(cost(end)):
                missing[side] = end
            elif (cost(end) <= target) != start_meets_target:
                return furthest[side], end
            else:
                furthest[side] = end
    return furthest[1], furthest[0]


def secant_bracket(cost: PlanCost, target: float, start: float) -> tuple[float, float] | None:
    """Return two values around the target by secants of ln cost on ln parameter; else None."""
    previous, current = start, start * FIRST_FACTOR
    for _ in range(SECANTS):
        previous_cost, current_cost = cost(previous), cost(current)
        if not (0 < previous_cost < math.inf and 0 < current_cost < math.inf):
            return None
        if (previous_cost <= target) != (current_cost <= target):
            return previous, current
        slope = math.log(current_cost / previous_cost) / math.log(current / previous)
        if abs(slope) < FLAT_SLOPE:
            return None
        # The step goes a little past the target, so that a next point lies on its other side.
        aim = math.log(target / current_cost) / slope
        past_aim = PAST_AIM * aim + math.copysign(1e-4, aim)
        jump = max(-HIGHEST_JUMP, min(HIGHEST_JUMP, past_aim))
        previous, current = current, current * math.exp(jump)
        if not 1e-290 < current < 1e290:
            return None
    return None


def on_the_private_side(
    build: Callable[[float], Plan], goal: Goal, domain: Interval, start: float | None
) -> float | None:
    """Return ``start``, or a value beside it that meets the target; None if that is not enough.

    ``start`` comes from a formula or another search and may miss the target by its round-off.  It
    is moved by growing steps, of one float at first, and by less than `TOLERANCE` of itself.
    """
    cost, target = PlanCost(build, goal.measure), goal.target
    if start is None or start not in domain or not cost(start) < math.inf:
        return None
    # The direction to go is that in which the cost is less.
    ends = [start * (1 + side * TOLERANCE) for side in (-1, 1)]
    towards = min([end for end in ends if end in domain] or [start], key=cost)
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
    """Return a parameter that meets the target, with a cost less by at most the tolerance.

    Where the cost jumps over the target, the cost is that on the lower side of the jump.  The
    search is between the two values of ``bracket``; without one, around 1 for a noise scale, and in
    the whole domain for other parameters.
    """
    cost, target = PlanCost(build, goal.measure), goal.target
    is_scale = domain.low > 0 and domain.high / domain.low > SCALE_RANGE
    if bracket is None and is_scale:
        root = _quick_root(build, cost, goal)
        if root is not None:
            return root
    if bracket is not None:
        ends = checked_bracket(bracket)
    elif is_scale:  # look around 1
        ends = bracket_target(cost, target)
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
    # `private` meets the target and `leaky` does not: each guess takes the place of one of them.
    # Guesses are secants of ln cost on ln parameter, and geometric means in every third step.
    for step in range(BISECTIONS):
        if cost(private) >= (1 - TOLERANCE) * target or math.isclose(private, leaky, rel_tol=EQUAL):
            break
        # An attack rate jumps where its bound becomes trivial.  No noise has costs of this ratio at
        # parameters so near: the slope of ln cost would be 1e6.
        is_jump = goal.delta is None and cost(leaky) > JUMP_OF_COST * cost(private)
        if is_jump and math.isclose(private, leaky, rel_tol=EQUAL_AT_A_JUMP):
            break
        middle = geometric_mean(private, leaky)
        guess = _secant(private, leaky, cost, target) if step % 3 else middle
        low, high = sorted((private, leaky))
        if not low < guess < high:
            guess = middle if low < middle < high else (low + high) / 2
        private, leaky = (guess, leaky) if cost(guess) <= target else (private, guess)
    return private


def _quick_root(build: Callable[[float], Plan], cost: PlanCost, goal: Goal) -> float | None:
    """Return a parameter of cost at the target by `quick_search`; None where it finds none.

    It is used for rates of attacks with a rough measure, and for plans whose epsilon is expensive.
    """
    start: tuple[float, float | None] = (1.0, None)  # a parameter, and the slope of ln cost there
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
            cost_ratio = quick(parameter * SLOPE_STEP) / quick(parameter)
            slope = math.log(cost_ratio) / math.log(SLOPE_STEP) if cost_ratio > 0 else None
            start = (parameter, slope or None)
    return root_near(cost, goal.target, *start)


def _refuse_noise_that_needs_delta(
    build: Callable[[float], Plan], ends: tuple[float, float], goal: Goal
) -> None:
    """Raise where a plan without a finite epsilon at delta 0 has one at a larger delta."""
    cost = PlanCost(build, epsilon_goal(goal.target, POSSIBLE_DELTA, goal.accountant).measure)
    if min(cost(ends[0]), cost(ends[1])) < math.inf:
        plan = build(ends[0])
        what = f"{type(plan).__name__} noise" if isinstance(plan, Release) else "this plan"
        raise ParameterError("delta", 0.0, f"above 0: {what} has no finite epsilon at delta 0")


def _secant(private: float, leaky: float, cost: PlanCost, target: float) -> float:
    """Return where the secant of ln cost on ln parameter meets the target."""
    below, above = cost(private), cost(leaky)
    if not (0 < below < math.inf and 0 < above < math.inf) or below == above:
        return geometric_mean(private, leaky)
    # The aim is the middle of the tolerance, so that the guess lands on the private side.
    aim = math.log(target * (1 - TOLERANCE / 2) / below) / math.log(above / below)
    return float(private * (leaky / private) ** aim)
