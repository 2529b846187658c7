"""Law: parameters refuse nonsense, naming argument, value and allowed range."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from accountant import ParameterError, PrivateValueError
from accountant.domains import Interval
from mechanisms.base.parameters import parameters_of
from mechanisms.families.selection import Boolean
from tests.laws.common import every_class, every_mechanism, example_value

NONSENSE = [
    float("nan"), float("inf"), -float("inf"), -1.0, -0.0, 0, 5e-324, True, np.True_, "1", b"1",
    None, 1j, [1.0], np.array([1.0]),
]  # fmt: skip

FINITE = [bad for bad in NONSENSE if type(bad) in (int, float) and math.isfinite(bad)]


def typical(cls):
    return {name: meaning.typical[0] for name, meaning in parameters_of(cls).items()}


@every_class
@pytest.mark.parametrize("bad", NONSENSE, ids=repr)
def test_every_parameter_refuses_nonsense(cls, bad):
    for name, meaning in parameters_of(cls).items():
        domain = meaning.domain_of(cls.instances()[0])
        if isinstance(domain, Interval) and domain.low < 0 and any(bad is one for one in FINITE):
            continue  # a threshold may be any number
        if isinstance(domain, Boolean) and isinstance(bad, (bool, np.bool_)):
            continue
        with pytest.raises(ParameterError) as caught:
            cls(**{**typical(cls), name: bad})
        words = str(caught.value)
        assert name in words
        assert "must be" in words
        assert "\n" not in words
        assert caught.value.value is bad


@every_class
def test_numbers_of_other_types_mean_the_same(cls):
    fields = typical(cls)
    for name, value in fields.items():
        if isinstance(value, float):
            for same in (np.float64(value), Fraction(value), Decimal(value)):
                made = cls(**{**fields, name: same})
                assert made == cls(**fields)
                assert type(getattr(made, name)) is float


@every_mechanism
def test_a_private_value_is_refused_without_being_shown(mechanism):
    value = np.asarray(example_value(mechanism, np.random.default_rng(1)), dtype=float)
    for bad in (value * np.nan, value + np.inf, "secret", value + 123456.789j):
        with pytest.raises(PrivateValueError) as caught:
            mechanism.release(bad, 0)
        words = str(caught.value)
        assert "value must be" in words
        assert not any(shown in words for shown in ("123456", "secret", "nan", "inf,"))


@every_mechanism
def test_a_refused_value_draws_nothing(mechanism):
    rng = np.random.default_rng(4)
    before = rng.bit_generator.state
    with pytest.raises(PrivateValueError):
        mechanism.release("secret", rng)
    assert rng.bit_generator.state == before
