"""Law: parameters refuse nonsense, naming argument, value and allowed range."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from accountant import ParameterError, PrivateValueError
from accountant.domains import Boolean, Interval, OrNone
from mechanisms.base.parameters import parameters_of
from tests.laws.common import every_class, every_mechanism, example_value

NONSENSE = [
    float("nan"), float("inf"), -float("inf"), -1.0, -0.0, 0, 5e-324, True, np.True_, "1", b"1",
    None, 1j, [1.0], np.array([1.0]),
]  # fmt: skip

FINITE = [bad for bad in NONSENSE if type(bad) in (int, float) and math.isfinite(bad)]


def typical(cls):
    return {name: meaning.typical[0] for name, meaning in parameters_of(cls).items()}


def nonsense_violation(cls, bad, make=None) -> str:
    """A parameter that takes ``bad``, or refuses it without saying why."""
    for name, meaning in parameters_of(cls).items():
        domain = meaning.domain_of(cls.instances()[0])
        if isinstance(domain, Interval) and domain.low < 0 and any(bad is one for one in FINITE):
            continue  # a threshold may be any number
        if bad is None and isinstance(domain, OrNone):
            continue
        if bad is cls.__dataclass_fields__[name].default:
            continue  # such as none of the clients
        if isinstance(domain, Boolean) and isinstance(bad, (bool, np.bool_)):
            continue
        try:
            (make or cls)(**{**typical(cls), name: bad})
        except ParameterError as error:
            words = str(error)
            if not (name in words and "must be" in words and "\n" not in words):
                return f"{name} is refused with {words!r}"
            if error.value is not bad:
                return f"{name} is refused as {error.value!r}"
        else:
            return f"{name} takes {bad!r}"
    return ""


@every_class
@pytest.mark.parametrize("bad", NONSENSE, ids=repr)
def test_every_parameter_refuses_nonsense(cls, bad):
    assert nonsense_violation(cls, bad) == ""


def type_violation(cls, make=None) -> str:
    """A number that means something else as another type."""
    fields = typical(cls)
    for name, value in fields.items():
        if isinstance(value, float):
            for same in (np.float64(value), Fraction(value), Decimal(value)):
                made = (make or cls)(**{**fields, name: same})
                if not (made == cls(**fields) and type(getattr(made, name)) is float):
                    return f"{name} of {same!r} is {getattr(made, name)!r}"
    return ""


@every_class
def test_numbers_of_other_types_mean_the_same(cls):
    assert type_violation(cls) == ""


def shown_violation(mechanism) -> str:
    """A wrong private value that is taken, or shown in the words that refuse it."""
    value = np.asarray(example_value(mechanism, np.random.default_rng(1)), dtype=float)
    for bad in (value * np.nan, value + np.inf, "secret", value + 123456.789j):
        try:
            mechanism.release(bad, 0)
        except PrivateValueError as error:
            words = str(error)
            if "value must be" not in words:
                return f"refused with {words!r}"
            if any(shown in words for shown in ("123456", "secret", "nan", "inf,")):
                return f"shown in {words!r}"
        else:
            return f"{bad!r} was released"
    return ""


@every_mechanism
def test_a_private_value_is_refused_without_being_shown(mechanism):
    assert shown_violation(mechanism) == ""


def drawn_violation(mechanism) -> str:
    """Noise drawn for a value that is refused."""
    rng = np.random.default_rng(4)
    before = rng.bit_generator.state
    try:
        mechanism.release("secret", rng)
    except PrivateValueError:
        return "" if rng.bit_generator.state == before else "noise was drawn"
    return "a word was released"


@every_mechanism
def test_a_refused_value_draws_nothing(mechanism):
    assert drawn_violation(mechanism) == ""
