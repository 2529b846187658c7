"""Outputs that hide the value: fields of numbers, containers that lie, causes, states in C."""

import itertools
import random
import types
from collections import defaultdict
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest

from audits import Outcome, audit
from audits.classifiers.output_features import ReadDraw
from audits.classifiers.output_walk import OutputWalk
from audits.classifiers.python_readers import reader_of
from audits.runs.release_functions import vectorised


class HiddenFloat(float):
    pass


class HiddenArray(np.ndarray):
    pass


class EmptyList(list):
    def __iter__(self):
        return iter(())


class EmptyDict(dict):
    def __iter__(self):
        return iter(())

    def items(self):
        return []


class OtherClass:
    __class__ = property(lambda self: int)

    def __init__(self, value):
        self.value = value


class NoAttributes:
    def __init__(self, value):
        self.value = value

    def __getattribute__(self, name):
        raise RuntimeError(name)


def with_field(output, value):
    output.hidden = value
    return output


def generator_that_returns(value):
    yield 1
    return value


def error_from(value):
    error = ValueError("fixed")
    error.__cause__ = KeyError(value)
    return error


def in_a_double_cycle(value):
    items = [1]
    items.extend([items, {"all": [items, value]}])
    return items


LEAKS = {
    "float": lambda value: with_field(HiddenFloat(), value),
    "array": lambda value: with_field(np.zeros(2).view(HiddenArray), value),
    "list": lambda value: EmptyList([value]),
    "dict": lambda value: EmptyDict(a=value),
    "class": OtherClass,
    "result": generator_that_returns,
    "cause": error_from,
    "default": lambda value: defaultdict(lambda: value),
    "bound": lambda value: [value].append,
    "cycle": in_a_double_cycle,
    "state": lambda value: random.Random(value > 0.5),
    "timedelta": lambda value: np.timedelta64(round(8 * value), "us"),
}


@pytest.mark.parametrize("name", LEAKS)
def test_what_an_output_hides_is_read(name):
    def release(value, rng, scale):
        return LEAKS[name](float(value + rng.laplace(scale=scale)))

    found = audit(lambda v, rng: release(v, rng, 0.25), (0.0, 1.0), 1.0, runs=1000, rng=1)
    assert found.outcome is Outcome.FALSIFIED
    honest = audit(lambda v, rng: release(v, rng, 2.0), (0.0, 1.0), 1.0, 1000, 1 - 1e-6, rng=1)
    assert honest.outcome is Outcome.SURVIVED
    assert honest.unseen == ()


@pytest.mark.parametrize(
    "make", [lambda v: type("C", (), {"v": v}), lambda v: types.ModuleType("m"), NoAttributes]
)
def test_what_cannot_be_read_is_unseen(make):
    found = audit(lambda v, rng: make(v + rng.laplace()), (0.0, 1.0), 1.0, runs=1000, rng=1)
    assert found.outcome is Outcome.INCONCLUSIVE
    assert found.unseen


def with_attributes(series, attributes):
    series.attrs = attributes
    return series


UNREADABLE = types.ModuleType("m")
PLACES = {
    "": UNREADABLE,
    "[1]": (0.0, UNREADABLE),
    "[0][2]": [[0.0, 1.0, UNREADABLE]],
    "['a'][0]": np.array([(0.0, UNREADABLE)], [("b", float), ("a", object)]),
    "['p'][0]": pl.DataFrame({"p": pl.Series([UNREADABLE], dtype=pl.Object)}),
    "['c'][1]": pd.DataFrame({"c": pd.Series([0.0, UNREADABLE], dtype=object)}),
    "['k'][0]": pd.DataFrame({"k": pd.Categorical([UNREADABLE])}),
    ".attrs['note']": with_attributes(pd.Series([0.0]), {"note": UNREADABLE}),
    ".name": pd.Series([0.0], name=UNREADABLE),
    "[0]": pd.Index([0.0], name=UNREADABLE),
    ".index[1]": pd.Series(
        [0.0], index=pd.MultiIndex.from_tuples([(0, 1)], names=["a", UNREADABLE])
    ),
    ".columns[1]": pd.DataFrame([[0.0, 1.0]], columns=["a", UNREADABLE]),
}


@pytest.mark.parametrize("place", PLACES)
def test_what_is_unseen_is_named_by_its_place(place):
    walk = OutputWalk(reader_of)
    walk.read(PLACES[place])
    assert walk.unseen == [f"output{place}: module"]


def test_an_exit_and_what_caused_an_error_are_outcomes():
    def exits(value, rng):
        raise SystemExit(int(rng.random() < 0.1 + 0.8 * value)) from None

    def fails(value, rng):
        if rng.random() < 0.5:
            return 0.0
        error = KeyError(float(value + rng.laplace(scale=0.25)))
        raise ValueError("fixed") from error

    def returns_or_exits(value, rng):
        return 1.0 if rng.random() < 0.5 else exits(value, rng)

    for release in (returns_or_exits, fails):
        found = audit(release, (0, 1), 0.5, runs=2000, rng=1)
        assert found.outcome is Outcome.FALSIFIED


def without_end(value, rng):
    def numbers():
        yield value + rng.laplace(scale=0.5)
        yield from itertools.repeat(0.0)

    return numbers()


def of_six_hundred(value, rng):
    return (value + rng.laplace() for _ in range(600))


def test_outputs_without_an_end_are_read_in_bounds():
    rng = np.random.default_rng(1)
    endless, finite = (ReadDraw(vectorised(one)) for one in (without_end, of_six_hundred))
    output = endless(0.0, rng, 1)
    assert endless.bounded(output, 5000).items == 209
    assert endless.bounded(output, 10**6).items == 64
    assert endless.bounded(output, 5000)(0.0, rng, 1)[0].unseen == (
        "output: items beyond the first 209",
    )
    assert finite.bounded(finite(0.0, rng, 1), 10**6) == finite


@pytest.mark.parametrize(
    "make",
    [lambda last: Decimal(f"0.1{'0' * 30}{last}"), lambda last: Fraction(10**40 + last, 3),
     lambda last: 10**40 + last],
)  # fmt: skip
def test_digits_beyond_those_of_floats_are_read(make):
    def release(value, rng):
        return make(value if rng.random() < 0.95 else 1 - value)

    found = audit(vectorised(release), (0, 1), 1.0, runs=1000, rng=1)
    assert float(make(0)) == float(make(1))
    assert found.outcome is Outcome.FALSIFIED
