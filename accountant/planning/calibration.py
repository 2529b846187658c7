"""Calibration: the least noise with which a plan's epsilon does not exceed a target.

`calibrate` takes any target of epsilon, delta or an attack's rates, and `calibrate_near` a target
of epsilon with a guess.  Both search one parameter; the answer's cost was computed and found to be
at most the target.

References: Balle & Wang (2018), who calibrate by search on the exact profile.  As in the library
dp-accounting, the returned point itself is checked.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from typing import Any, TypeVar, overload

from accountant.accountants.base import Accountant
from accountant.accountants.tight import Tight
from accountant.domains import POSITIVE, warn_of_large_delta
from accountant.errors import ParameterError
from accountant.planning.calibration_goals import goal_of
from accountant.planning.calibration_search import least_noise, on_the_private_side
from accountant.planning.quick_search import (
    TOLERANCE,
    SearchPoints,
    estimated_root,
    usual_slope,
)
from accountant.plans.map_leaves import map_leaves
from accountant.plans.plan import Plan, as_plan
from dp_attest.calls import shows_call
from dp_attest.installation import PACKAGES

# Of `calibrate_near`: steps at most, by `Tight` alone or with a rough accountant first; and the
# factors between which a step may change the parameter.
STEPS, STEPS_WITH_ROUGH = 8, 12
LOWEST_FACTOR, HIGHEST_FACTOR = 0.2, 5

P = TypeVar("P", bound=Plan)


@overload
def calibrate(  # type: ignore[overload-overlap]  # a class is no mere function of a number
    plan_of: type[P],
    *,
    epsilon: float | None = ...,
    delta: float = ...,
    advantage: float | None = ...,
    tpr: float | None = ...,
    fpr: float | None = ...,
    accountant: Accountant | None = ...,
    **fixed: Any,
) -> P: ...
@overload
def calibrate(
    plan_of: Plan,
    *,
    epsilon: float | None = ...,
    delta: float = ...,
    advantage: float | None = ...,
    tpr: float | None = ...,
    fpr: float | None = ...,
    accountant: Accountant | None = ...,
) -> Plan: ...
@overload
def calibrate(
    plan_of: Callable[[float], Plan],
    *,
    epsilon: float | None = ...,
    delta: float = ...,
    advantage: float | None = ...,
    tpr: float | None = ...,
    fpr: float | None = ...,
    accountant: Accountant | None = ...,
    bracket: tuple[float, float] | None = ...,
) -> float: ...
@shows_call("calibrate(Gaussian, sensitivity=1.0, epsilon=1.0, delta=1e-6)")
def calibrate(
    plan_of: Any,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    advantage: float | None = None,
    tpr: float | None = None,
    fpr: float | None = None,
    accountant: Accountant | None = None,
    bracket: tuple[float, float] | None = None,
    **fixed: Any,
) -> Any:
    """Return the least noise whose cost does not exceed the one target that is given.

    The cost of the answer lies in ``[(1 - 1e-6) target, target]`` wherever the cost is continuous
    in the parameter, which may raise or lower it.  For a target of
    ``tpr`` cost and target are true-positive rates minus the false-positive rate.

    Parameters
    ----------
    plan_of : callable, Mechanism class or Plan
        A function from a positive number to a plan; or a mechanism class whose other fields are
        given as keywords; or a plan of mechanisms, all noise of which is scaled by one factor.
    epsilon : float, optional
        The target of epsilon at ``delta``, above 0; or 0, if delta is above 0, which is then the
        target: delta at an epsilon of 0 is the advantage.
    delta : float
        In [0, 1), the delta of ``epsilon``.
    advantage : float, optional
        The target of the `advantage` of an attack, in (0, 1).
    tpr, fpr : float, optional
        The target of the `true_positive_rate` of an attack, and its false-positive rate.
    accountant : Accountant, optional
        Who says what a plan costs; by default `Tight`.
    bracket : tuple of float, optional
        Two values of the parameter around the answer; without them the search finds such values.
    **fixed : Any
        Fields of the mechanism class.

    Returns
    -------
    float, Mechanism or Plan
        The parameter if ``plan_of`` is a function, the mechanism if it is a class, else the plan.

    Raises
    ------
    ParameterError
        If not just one target is given, or no value of the parameter meets it.

    References
    ----------
    Kulynych, Gomez, Kaissis, du Pin Calmon & Troncoso (2024) for calibration to rates of attacks.

    Examples
    --------
    >>> from accountant import calibrate
    >>> from mechanisms import Gaussian, Laplace
    >>> round(calibrate(Gaussian, epsilon=1.0, delta=1e-5).scale, 4)
    3.7306
    >>> round(calibrate(lambda scale: 10 * Laplace(scale), epsilon=1.0), 4)
    10.0
    >>> round(calibrate(Gaussian, advantage=0.1).scale, 4)
    3.979
    """
    goal = goal_of(epsilon, delta, advantage, tpr, fpr, accountant)
    # an estimator that calls warns itself, of 1/n; frames 0 and 1 are this one and `shows_call`
    caller = sys._getframe(2).f_globals.get("__name__", "")  # noqa: SLF001
    # at an epsilon of 0 delta is an advantage
    if epsilon and caller.partition(".")[0] not in PACKAGES:
        warn_of_large_delta(delta)
    search = functools.partial(least_noise, goal=goal, bracket=bracket)
    if isinstance(plan_of, Plan) and not fixed:

        def scaled(factor: float) -> Plan:
            return map_leaves(plan_of, lambda leaf: _leaf_with_noise_factor(leaf, factor))

        return scaled(search(scaled, domain=POSITIVE))
    if isinstance(plan_of, type) and hasattr(plan_of, "knob"):
        name, domain = plan_of.knob(**fixed)

        def build(value: float) -> Plan:
            return as_plan(plan_of(**fixed, **{name: value}))

        parameter: float | None = None
        mechanism: Any = plan_of
        if goal.delta is not None and bracket is None:
            closed_form = mechanism.closed_form(goal.target, goal.delta, **fixed)
            parameter = on_the_private_side(build, goal, domain, closed_form)
        return build(search(build, domain=domain) if parameter is None else parameter)
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
    mostly agrees with `Tight` and is faster; the returned parameter is checked by `Tight` in any
    case.  The search is Newton's step and then interpolation, on the logarithms of cost and
    parameter.  If it leaves its course, `calibrate` starts from the beginning.
    """
    # Costs come first from ``rough``, if it is given, or from ``quick``; only ``sharp``, the
    # default `Tight`, decides.  The intervals of ``quick`` are a quarter as wide as the tolerance.
    quick, sharp = Tight(TOLERANCE / 4), Tight()
    accountant: Accountant = quick if rough is None else rough
    parameter, slope = start, usual_slope(epsilon, delta)
    search_points: SearchPoints = []
    for _ in range(STEPS if rough is None else STEPS_WITH_ROUGH):
        try:
            plan = as_plan(plan_of(parameter))
            if isinstance(accountant, Tight):
                bound = accountant.certify(plan, delta)
                upper, is_wide = bound.upper, bound.width > quick.width * bound.upper
            else:
                upper, is_wide = accountant.epsilon(plan, delta), False
        except ParameterError:  # `calibrate` below raises it again with its reason
            break
        is_met = (1 - TOLERANCE) * epsilon <= upper <= epsilon
        if is_met and accountant is sharp:
            return parameter
        if not 0 < upper < math.inf:
            break
        if is_met and accountant is rough:
            search_points = []  # the next accountant may return another epsilon
        if is_met or is_wide:
            accountant = sharp
        if is_met:
            continue  # the sharp accountant looks at the same parameter
        # The aim is the middle of the interval in which the cost may lie.
        search_points.append(
            (math.log(upper / (epsilon * (1 - TOLERANCE / 2))), math.log(parameter))
        )
        log_parameter = estimated_root(search_points, slope)
        # A larger step is not trusted.
        if (
            log_parameter is None
            or not LOWEST_FACTOR < math.exp(log_parameter) / parameter < HIGHEST_FACTOR
        ):
            break
        parameter = math.exp(log_parameter)
    return calibrate(plan_of, epsilon=epsilon, delta=delta)


def _leaf_with_noise_factor(leaf: Plan, factor: float) -> Plan:
    """Return a mechanism of a plan with its noise scale multiplied by ``factor``."""
    if not hasattr(leaf, "with_noise_factor"):
        raise ParameterError("plan_of", leaf, "made of mechanisms, each with a noise scale")
    scaled: Plan = leaf.with_noise_factor(factor)
    return scaled
