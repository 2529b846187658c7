"""Two parameter values around a target cost, found without a given range."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from accountant.domains import POSITIVE
from accountant.errors import ParameterError
from accountant.numerics.search import geometric_mean
from accountant.plans.plan import Plan


class PlanCost:
    """Cost of the plan at a parameter value, cached; NaN where the plan cannot be built."""

    def __init__(self, build: Callable[[float], Plan], measure: Callable[[Plan], float]) -> None:
        self._build, self._measure = build, measure
        self._known: dict[float, float] = {}

    def __call__(self, parameter: float) -> float:
        """Return the cost at ``parameter``."""
        if parameter not in self._known:
            try:
                plan = self._build(parameter)
            except ParameterError as error:
                if error.argument in {"plan", "plan_of"}:  # no plan at any parameter value
                    raise
                self._known[parameter] = math.nan
            else:
                self._known[parameter] = self._measure(plan)
        return self._known[parameter]


def checked_bracket(bracket: object) -> tuple[float, float]:
    """Return the bracket, checked to be two positive parameter values."""
    if not isinstance(bracket, (tuple, list)) or len(bracket) != 2:
        raise ParameterError("bracket", bracket, "a pair of positive parameter values")
    end_1, end_2 = (POSITIVE.check("bracket", end) for end in bracket)
    return end_1, end_2


def bracket_target(cost: PlanCost, target: float, start: float) -> tuple[float, float]:
    """Return two parameters of which one meets the target, or the furthest two tried.

    Walks both ways from the first value at which the plan exists, in growing strides; where the
    plan ceases to exist, closes in on that edge.
    """
    start = next((x for x in _starting_points(start) if not math.isnan(cost(x))), start)
    secant_ends = secant_bracket(cost, target, start)
    if secant_ends is not None:
        return secant_ends
    meets = cost(start) <= target
    furthest = [start, start]
    edge: list[float | None] = [None, None]
    for stride in range(1, 61):
        jump = 0.125 * (2.0**stride - 1)
        for side, sign in enumerate((1.0, -1.0)):
            end = _clipped_power_of_two(math.log2(start) + sign * jump)
            beyond = edge[side]
            if beyond is not None:
                end = geometric_mean(furthest[side], beyond)
            if math.isnan(cost(end)):
                edge[side] = end
            elif (cost(end) <= target) != meets:
                return furthest[side], end
            else:
                furthest[side] = end
    return furthest[1], furthest[0]


def secant_bracket(cost: PlanCost, target: float, start: float) -> tuple[float, float] | None:
    """Return two values around the target by secants of ln cost on ln parameter; else None."""
    previous, current = start, start * 1.25
    for _ in range(10):
        previous_cost, current_cost = cost(previous), cost(current)
        if not (0 < previous_cost < math.inf and 0 < current_cost < math.inf):
            return None
        if (previous_cost <= target) != (current_cost <= target):
            return previous, current
        slope = math.log(current_cost / previous_cost) / math.log(current / previous)
        if abs(slope) < 1e-3:
            return None
        # The step goes a little past the target, so that a next point lies on its other side.
        aim = math.log(target / current_cost) / slope
        jump = max(-20.0, min(20.0, 1.02 * aim + math.copysign(1e-4, aim)))
        previous, current = current, current * math.exp(jump)
        if not 1e-290 < current < 1e290:
            return None
    return None


def _starting_points(start: float) -> Iterator[float]:
    yield start
    for jump in (0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512):
        yield _clipped_power_of_two(math.log2(start) - jump)
        yield _clipped_power_of_two(math.log2(start) + jump)


def _clipped_power_of_two(exponent: float) -> float:
    return float(2.0 ** max(-990.0, min(990.0, exponent)))
