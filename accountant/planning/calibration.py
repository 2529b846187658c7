"""Calibration: the least noise with which a plan's epsilon does not exceed a target.

References: Balle & Wang (2018), who calibrate by search on the exact profile; the habit of
checking the returned point is dp-accounting's.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, TypeVar, overload

from accountant.accountants.base import Accountant
from accountant.accountants.tight import Tight
from accountant.domains import DELTA, POSITIVE, Interval
from accountant.errors import ParameterError
from accountant.numerics.search import geometric_mean
from accountant.planning.bracketing import PlanCost, bracket_target, checked_bracket
from accountant.plans.map_leaves import map_leaves
from accountant.plans.plan import Plan, Release, as_plan

TOLERANCE = 1e-6
P = TypeVar("P", bound=Plan)


@overload
def calibrate(  # type: ignore[overload-overlap]  # a class is no mere function of a number
    plan_of: type[P],
    *,
    epsilon: float,
    delta: float = ...,
    accountant: Accountant | None = ...,
    **fixed: Any,
) -> P: ...
@overload
def calibrate(
    plan_of: Plan,
    *,
    epsilon: float,
    delta: float = ...,
    accountant: Accountant | None = ...,
) -> Plan: ...
@overload
def calibrate(
    plan_of: Callable[[float], Plan],
    *,
    epsilon: float,
    delta: float = ...,
    accountant: Accountant | None = ...,
    bracket: tuple[float, float] | None = ...,
) -> float: ...
def calibrate(
    plan_of: Any,
    *,
    epsilon: float,
    delta: float = 0.0,
    accountant: Accountant | None = None,
    bracket: tuple[float, float] | None = None,
    **fixed: Any,
) -> Any:
    """Return the least noise whose epsilon at ``delta`` does not exceed the target.

    The cost of the answer lies in ``[(1 - 1e-6) epsilon, epsilon]`` wherever the cost is continuous
    in the parameter, which may raise or lower it.

    Parameters
    ----------
    plan_of : callable, Mechanism class or Plan
        A function from a positive number to a plan; or a mechanism class whose other fields are
        given as keywords; or a plan of mechanisms, all noise of which is scaled by one factor.
    epsilon : float
        The target, above 0.
    delta : float
        In [0, 1).
    accountant : Accountant, optional
        Who says what a plan costs; by default `Tight`.
    bracket : tuple of float, optional
        Two values of the parameter around the answer; found by itself without.
    **fixed : Any
        Fields of the mechanism class.

    Returns
    -------
    float, Mechanism or Plan
        The parameter, the mechanism or the plan, by what ``plan_of`` is.

    Raises
    ------
    ParameterError
        If no value of the parameter meets the target.

    Examples
    --------
    >>> from accountant import calibrate
    >>> from mechanisms import Gaussian, Laplace
    >>> round(calibrate(Gaussian, epsilon=1.0, delta=1e-5).scale, 4)
    3.7306
    >>> round(calibrate(lambda scale: 10 * Laplace(scale), epsilon=1.0), 4)
    10.0
    """
    target, delta = POSITIVE.check("epsilon", epsilon), DELTA.check("delta", delta)
    accountant = Tight() if accountant is None else accountant
    if not isinstance(accountant, Accountant):
        raise ParameterError("accountant", accountant, "an accountant, such as RDP()")
    search = functools.partial(
        _search, target=target, delta=delta, accountant=accountant, bracket=bracket
    )
    if isinstance(plan_of, Plan) and not fixed:

        def scaled(factor: float) -> Plan:
            return map_leaves(plan_of, lambda leaf: _leaf_with_noise_factor(leaf, factor))

        return scaled(search(scaled, domain=POSITIVE))
    if isinstance(plan_of, type) and hasattr(plan_of, "knob"):
        name, domain = plan_of.knob(**fixed)

        def build(value: float) -> Plan:
            return as_plan(plan_of(**fixed, **{name: value}))

        mechanism: Any = plan_of
        start = mechanism.closed_form(target, delta, **fixed) if bracket is None else None
        found = _on_the_private_side(PlanCost(build, delta, accountant), target, domain, start)
        return build(search(build, domain=domain) if found is None else found)
    if fixed:
        raise ParameterError("plan_of", plan_of, f"a mechanism class to take {sorted(fixed)}")
    if not callable(plan_of):
        raise ParameterError("plan_of", plan_of, "a mechanism class, or a function of one number")
    return search(lambda x: as_plan(plan_of(x)), domain=POSITIVE)


def calibrate_near(
    plan_of: Callable[[float], Plan],
    start: float,
    epsilon: float,
    delta: float,
    rough: Accountant | None = None,
) -> float:
    """Return what `calibrate` returns, in few steps where ``start`` is near the answer.

    The cost must fall in the parameter, about as its inverse.  ``rough`` is an accountant that
    mostly says what `Tight` says, and sooner; the answer is what `Tight` says of it in any case.
    """
    # bounds nearly as wide as the tolerance are far quicker where width costs time
    quick, sharp = Tight(TOLERANCE / 4), Tight()
    accountant: Accountant = quick if rough is None else rough
    here, slope = start, _usual_slope(epsilon, delta)
    known: list[tuple[float, float]] = []  # ln of cost over the aim, and of the parameter
    for _ in range(8 if rough is None else 12):
        try:
            plan = as_plan(plan_of(here))
            if isinstance(accountant, Tight):
                bound = accountant.certify(plan, delta)
                upper, is_wide = bound.upper, bound.width > quick.width * bound.upper
            else:
                upper, is_wide = accountant.epsilon(plan, delta), False
        except ParameterError:  # `calibrate` says why
            break
        is_met = (1 - TOLERANCE) * epsilon <= upper <= epsilon
        if is_met and accountant is sharp:
            return here
        if not 0 < upper < math.inf:
            break
        if is_met and accountant is rough:
            known = []  # the other one may say something else
        if is_met or is_wide:
            accountant = sharp
        if is_met:
            continue
        # aim at the middle of the tolerance
        known.append((math.log(upper / (epsilon * (1 - TOLERANCE / 2))), math.log(here)))
        there = _interpolated_at_zero(known[-3:], slope)
        if there is None or not 0.2 < math.exp(there) / here < 5:
            break
        here = math.exp(there)
    return calibrate(plan_of, epsilon=epsilon, delta=delta)


def _usual_slope(epsilon: float, delta: float) -> float:
    """Return about the slope of ln epsilon in ln noise, where releases are many."""
    if delta == 0:
        return -1.0
    # epsilon = r^2 + 2 r sqrt(L), with L = ln(1 / delta) and r as the inverse of noise
    most = -math.log(delta)
    r = math.sqrt(most + epsilon) - math.sqrt(most)
    return -2 * r * (r + math.sqrt(most)) / epsilon


def _interpolated_at_zero(points: list[tuple[float, float]], slope: float) -> float | None:
    """Return the polynomial through a few points at 0; through one of them, of a given slope."""
    if len(points) == 1:
        return points[0][1] - points[0][0] / slope
    places = [x for x, _ in points]
    if len(set(places)) < len(places):
        return None
    return sum(
        y * math.prod(-other / (x - other) for other in places if other != x) for x, y in points
    )


def _leaf_with_noise_factor(leaf: Plan, factor: float) -> Plan:
    if not hasattr(leaf, "with_noise_factor"):
        raise ParameterError("plan_of", leaf, "made of mechanisms, each with a noise scale")
    scaled: Plan = leaf.with_noise_factor(factor)
    return scaled


def _on_the_private_side(
    cost: PlanCost, target: float, domain: Interval, start: float | None
) -> float | None:
    """Return ``start`` moved by round-off until the target is met; None if that is not enough."""
    if start is None or start not in domain or not cost(start) < math.inf:
        return None
    moves = [start * (1 + side * TOLERANCE) for side in (-1, 1)]
    inside = [x for x in moves if x in domain] or [start]
    towards = min(inside, key=cost)
    found, step = start, math.ulp(start)
    while cost(found) > target and step < TOLERANCE * start:
        found, step = start + math.copysign(step, towards - start), 2 * step
    near = found in domain and (1 - TOLERANCE) * target <= cost(found) <= target
    return found if near else None


def _search(
    build: Callable[[float], Plan],
    target: float,
    delta: float,
    accountant: Accountant,
    domain: Interval,
    bracket: tuple[float, float] | None,
) -> float:
    cost = PlanCost(build, delta, accountant)
    if bracket is not None:
        ends = checked_bracket(bracket)
    elif domain.low > 0 and domain.high / domain.low > 1e12:  # a scale: look around 1
        ends = bracket_target(cost, target, 1.0)
    else:
        low, high = domain.low, domain.high
        ends = (math.nextafter(low, high), math.nextafter(high, low))
    private, leaky = ends if cost(ends[0]) <= target else ends[::-1]
    if not cost(private) <= target < cost(leaky):
        costs = f"{cost(ends[0]):.6g} and {cost(ends[1]):.6g}"
        if delta == 0 and cost(ends[0]) == math.inf == cost(ends[1]):
            _refuse_noise_that_needs_delta(build, ends, accountant)
        raise ParameterError(
            "epsilon", target, f"between the costs at the parameter's ends, {costs}"
        )
    # `private` meets the target and `leaky` does not: close in on a logarithmic scale, guessing
    # by the secant of ln cost on ln parameter and halving whenever that was no great help.
    for step in range(200):
        if cost(private) >= (1 - TOLERANCE) * target or math.isclose(private, leaky, rel_tol=1e-15):
            break
        middle = geometric_mean(private, leaky)
        guess = _secant(private, leaky, cost, target) if step % 3 else middle
        low, high = sorted((private, leaky))
        if not low < guess < high:
            guess = middle if low < middle < high else (low + high) / 2
        private, leaky = (guess, leaky) if cost(guess) <= target else (private, guess)
    return private


def _refuse_noise_that_needs_delta(
    build: Callable[[float], Plan], ends: tuple[float, float], accountant: Accountant
) -> None:
    """Raise where a plan without a finite epsilon at delta 0 has one at a larger delta."""
    cost = PlanCost(build, 1e-6, accountant)
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
