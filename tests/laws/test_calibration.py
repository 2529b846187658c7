"""Law: calibration never passes the target, and stops within 1e-6 of it, or of its knob."""

import dataclasses
import math

import pytest

from accountant import ParameterError, Tight, calibrate
from mechanisms.base.parameters import parameters_of
from tests.laws.common import every_mechanism

TARGETS = [(0.01, 1e-6), (0.5, 1e-5), (1.0, 1e-6), (4.0, 1e-9), (20.0, 1e-3)]


def violation(mechanism, epsilon, delta, calibrate=calibrate) -> str:
    """Where the law fails; "" where it holds."""
    names = parameters_of(type(mechanism))
    fixed = {name: getattr(mechanism, name) for name in names if not names[name].knob}
    if epsilon > largest_cost(mechanism, delta):
        try:
            calibrate(type(mechanism), **fixed, epsilon=epsilon, delta=delta)
        except ParameterError as error:
            words = str(error)
            return "" if "between the costs at the parameter's ends" in words else words
        return "a cost beyond the parameter's ends was met"
    if len(fixed) < len(names):
        made = calibrate(type(mechanism), **fixed, epsilon=epsilon, delta=delta)
    elif "clients" in names:  # its shares are scaled
        made = calibrate(mechanism, epsilon=epsilon, delta=delta)
        fixed.pop("mechanism")
    else:  # a wrapper: the knob is that of the inner mechanism
        inner = type(mechanism.inner)
        knob = next(name for name, meaning in parameters_of(inner).items() if meaning.knob)
        rest = {
            name: getattr(mechanism.inner, name) for name in parameters_of(inner) if name != knob
        }
        cheaper = calibrate(inner, **rest, epsilon=epsilon, delta=delta)
        made = dataclasses.replace(mechanism, inner=cheaper)
        fixed.pop("inner")
    spent = Tight().epsilon(made, delta)
    if not spent <= epsilon:
        return f"epsilon {spent}, past {epsilon}"
    # within 1e-6, unless the cost jumps there (delta covers the ends of a truncated law or not)
    if not (spent >= (1 - 2e-6) * epsilon or max(costs_beside(made, delta)) > epsilon):
        return f"epsilon {spent}, far from {epsilon}"
    changed = [name for name, value in fixed.items() if getattr(made, name) != value]
    return f"{changed[0]} was changed" if changed else ""


@every_mechanism
@pytest.mark.parametrize(("epsilon", "delta"), TARGETS)
def test_calibration_meets_the_target_from_the_private_side(mechanism, epsilon, delta):
    assert violation(mechanism, epsilon, delta) == ""


@every_mechanism
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.0), (1.0, 0.05), (1.0, 1e-3)])
def test_a_closed_form_costs_the_target(mechanism, epsilon, delta):
    names = parameters_of(type(mechanism))
    fixed = {name: getattr(mechanism, name) for name in names if not names[name].knob}
    if len(fixed) == len(names) or epsilon > largest_cost(mechanism, delta):
        return  # a wrapper, or a target beyond the end of the knob
    knob = next(name for name in names if names[name].knob)
    value = type(mechanism).closed_form(epsilon, delta, **fixed)
    assert value is None or (
        Tight().epsilon(dataclasses.replace(mechanism, **{knob: value}), delta)
        == pytest.approx(epsilon, rel=1e-9)
    )


def largest_cost(mechanism, delta):
    """What the mechanism costs where its knob, other than a scale, ends."""
    names = parameters_of(type(mechanism))
    knob = next((name for name in names if names[name].knob), None)
    if knob is None or (domain := names[knob].domain_of(mechanism)).high > 1:
        return math.inf
    ends = (math.nextafter(domain.low, domain.high), math.nextafter(domain.high, domain.low))
    return max(
        Tight().epsilon(dataclasses.replace(mechanism, **{knob: end}), delta) for end in ends
    )


def costs_beside(mechanism, delta):
    """Costs a millionth of the knob away."""
    for factor in (1 - 1e-6, 1 + 1e-6):
        try:
            yield Tight().epsilon(mechanism.with_noise_factor(factor), delta)
        except ParameterError:  # beyond the end of the knob
            yield 0.0


def refusal_violation(mechanism, bad, calibrate=calibrate) -> str:
    """A target that is none, and is met all the same."""
    names = parameters_of(type(mechanism))
    fixed = {name: getattr(mechanism, name) for name in names if not names[name].knob}
    free = len(fixed) < len(names)
    # an epsilon of 0 needs a delta above 0, which is then the advantage
    delta = 0.0 if bad == 0 and type(bad) is int else 1e-6
    target = {"epsilon": bad, "delta": delta} if free else {"epsilon": 1.0}
    try:
        calibrate(type(mechanism), **fixed, **target)
    except ParameterError as error:
        refused = ("epsilon must be" if free else "fixed must be fields") in str(error)
        return "" if refused else str(error)
    return f"{target} was met"


@every_mechanism
@pytest.mark.parametrize("bad", [0, -1.0, float("nan"), float("inf"), True, "1", None])
def test_a_target_that_is_none_is_refused(mechanism, bad):
    assert refusal_violation(mechanism, bad) == ""
