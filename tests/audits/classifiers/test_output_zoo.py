"""Outputs of every type: a leak in each is convicted, and its honest twin survives."""

import array
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import io
import json
import pathlib
import struct
import uuid

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from accountant import PureLoss
from audits import Outcome, audit
from audits.classifiers.output_features import extract_features, read_outputs, unseen_parts

ONE = PureLoss(1.0)
RUNS = 2000
SURE = 1 - 1e-6


class Slotted:
    __slots__ = ("__hidden", "shown")

    def __init__(self, number, noise):
        self.__hidden, self.shown = number, noise


class Items:
    """A sequence that is no list."""

    def __init__(self, *items):
        self.get = lambda place: items[place]
        self.size = len(items)

    def __len__(self):
        return self.size

    def __getitem__(self, place):
        if place >= self.size:
            raise IndexError(place)
        return self.get(place)

    def __iter__(self):
        return (self.get(place) for place in range(self.size))


class Convertible:
    """An object whose number is behind ``__float__`` alone."""

    __slots__ = ("_read",)

    def __init__(self, number):
        self._read = lambda: number

    def __float__(self):
        return self._read()


class Tensor:
    """What a tensor of torch looks like, without torch."""

    def __init__(self, values, dtype="torch.float32"):
        self._hidden = lambda: np.asarray(values)
        self.dtype, self.shape, self.requires_grad = dtype, np.shape(values), True

    def __array__(self, *_):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")

    def detach(self):
        detached = Tensor(self._hidden(), self.dtype)
        detached.requires_grad = False
        return detached

    def cpu(self):
        return self

    def numpy(self):
        if self.dtype == "torch.bfloat16":
            raise TypeError("Got unsupported ScalarType BFloat16")
        if self.requires_grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        return self._hidden()

    def resolve_conj(self):
        return self

    def resolve_neg(self):
        return self

    def float(self):
        made = Tensor(self._hidden(), "torch.float32")
        made.requires_grad = False
        return made


Tensor.__module__ = "torch"


class DeviceArray:
    """What an array of JAX looks like."""

    def __init__(self, values):
        self._hidden = lambda: np.asarray(values)
        self.dtype, self.shape = np.dtype(float), np.shape(values)

    def __array__(self, *_, **__):
        return self._hidden()


DeviceArray.__qualname__, DeviceArray.__module__ = "ArrayImpl", "jaxlib._jax"
Side = enum.Enum("Side", "LOW HIGH")
Point = collections.namedtuple("Point", "x y")
DAY = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)


@dataclasses.dataclass(slots=True)
class Record:
    number: float
    when: datetime.date


def record_array(x, noise):
    return np.array([(x, noise, b"a")], dtype=[("x", float), ("y", float), ("z", "S1")])


# a number with noise, and another noise, as an output
OUTPUTS = {
    "Fraction": lambda x, noise: fractions.Fraction(x).limit_denominator(10**6),
    "Decimal": lambda x, noise: decimal.Decimal(repr(x)),
    "datetime": lambda x, noise: DAY + datetime.timedelta(seconds=x),
    "date": lambda x, noise: datetime.date(2020, 1, 1) + datetime.timedelta(days=round(100 * x)),
    "time": lambda x, noise: (DAY + datetime.timedelta(hours=x)).time(),
    "timedelta": lambda x, noise: datetime.timedelta(hours=x),
    "deque": lambda x, noise: collections.deque([noise, x], maxlen=3),
    "array.array": lambda x, noise: array.array("d", [noise, x]),
    "sequence": lambda x, noise: Items(noise, x),
    "generator": lambda x, noise: (one for one in (noise, x)),
    "iterator in a tuple": lambda x, noise: (1, map(float, (noise, x))),
    "slots": Slotted,
    "slots of a dataclass": lambda x, noise: Record(x, datetime.date(2020, 1, 1)),
    "bytes": lambda x, noise: struct.pack("<hd", round(1000 * x), noise),
    "bytearray": lambda x, noise: bytearray(struct.pack(">h", round(20 * x))),
    "memoryview": lambda x, noise: memoryview(np.array([noise, x])).cast("B")[8:],
    "complex": lambda x, noise: complex(noise, x),
    "frame of pandas": lambda x, noise: pd.DataFrame({"a": [noise, x], "b": ["u", "v"]}),
    "index of pandas": lambda x, noise: pd.DataFrame({"a": [noise, 1.0]}, index=[0.0, x]),
    "series of pandas": lambda x, noise: pd.Series([noise, x], index=["u", "v"]),
    "objects of pandas": lambda x, noise: pd.Series([decimal.Decimal(repr(x)), None], dtype=object),
    "missing values of pandas": lambda x, noise: pd.Series([round(50 * x), None], dtype="Int64"),
    "times of pandas": lambda x, noise: pd.Series([pd.Timestamp(DAY) + pd.Timedelta(x, "h")] * 2),
    "frame of polars": lambda x, noise: pl.DataFrame({"a": [noise, x], "b": ["u", "v"]}),
    "series of polars": lambda x, noise: pl.Series("a", [x, None]),
    "objects of polars": lambda x, noise: pl.DataFrame({"a": [[noise, x], [1.0]]}),
    "table of pyarrow": lambda x, noise: pa.table({"a": [noise, x, None], "b": ["u", "v", "w"]}),
    "array of pyarrow": lambda x, noise: pa.array([{"a": x}, {"a": noise}]),
    "tensor": lambda x, noise: Tensor([noise, x]),
    "tensor of short numbers": lambda x, noise: [Tensor([noise, x], "torch.bfloat16")],
    "array of a device": lambda x, noise: DeviceArray([noise, x]),
    "set": lambda x, noise: {x, "u"},
    "frozenset": lambda x, noise: frozenset({(x, 1)}),
    "structured array": record_array,
    "record": lambda x, noise: record_array(x, noise)[0],
    "masked array": lambda x, noise: np.ma.masked_array([noise, x], [False, True]),
    "range": lambda x, noise: range(0, 1000 + round(100 * x)),
    "UUID": lambda x, noise: uuid.UUID(int=10**6 + round(30 * x)),
    "Path": lambda x, noise: pathlib.Path("of") / f"{x:.3f}.csv",
    "sparse matrix": lambda x, noise: scipy.sparse.csr_matrix([[0.0, x], [noise, 0.0]]),
    "named tuple": lambda x, noise: Point(noise, x),
    "text": lambda x, noise: f"the mean is {x:.5f} +- {noise:.2e}",
    "JSON": lambda x, noise: json.dumps({"a": {"noise": noise}, "b": x}),
    "open text": lambda x, noise: io.StringIO(f"a,b\n{noise},{x}\n"),
    "times of numpy": lambda x, noise: np.datetime64(round(x * 1e6), "us"),
    "an error": lambda x, noise: ValueError(f"found {x}"),
    "function": lambda x, noise: lambda: x,
    "a number of one's own": lambda x, noise: Convertible(x),
}


def released(output, scale):
    def release(value, rng):
        return output(value + rng.laplace(scale=scale), rng.normal())

    return release


QUICK_LEAKS = ("Fraction", "Decimal", "timedelta", "deque", "generator", "slots", "bytes",
               "frame of pandas", "frame of polars", "table of pyarrow", "tensor",
               "set", "masked array", "text")  # fmt: skip
QUICK_TWINS = ("Fraction", "generator", "series of polars", "tensor")


def some_quick(quick):
    return [pytest.param(name, marks=[] if name in quick else pytest.mark.slow) for name in OUTPUTS]


@pytest.mark.parametrize("name", OUTPUTS)
def test_nothing_of_any_type_is_unseen(name):
    numbers = [(0.25, 1.0), (0.75, 1.0), (0.25, 1.0), (0.25, 1.0), (0.75, 1.0)]
    outputs = np.empty(len(numbers), dtype=object)
    for place, (x, noise) in enumerate(numbers):
        outputs[place] = OUTPUTS[name](x, noise)
    read = read_outputs(outputs)
    assert unseen_parts(read) == ()
    found = extract_features(read)
    assert [code == found.category[0] for code in found.category] == [
        True,
        False,
        True,
        True,
        False,
    ]
    assert found.numbers[0].tolist() != found.numbers[1].tolist()


@pytest.mark.parametrize("name", some_quick(QUICK_LEAKS))
def test_a_leak_in_any_type_is_convicted(name):
    found = audit(released(OUTPUTS[name], 0.5), (0.0, 1.0), ONE, RUNS, SURE, rng=1)
    assert found.outcome is Outcome.FALSIFIED, found.witness
    assert 1 < found.epsilon_lower < 2


@pytest.mark.parametrize("name", some_quick(QUICK_TWINS))
def test_its_honest_twin_survives(name):
    found = audit(released(OUTPUTS[name], 1.0), (0.0, 1.0), ONE, RUNS, SURE, rng=1)
    assert found.outcome is Outcome.SURVIVED, (found.witness, found.unseen)
    assert found.unseen == ()


def test_an_exact_value_is_a_category():
    def release(value, rng):  # one float, two decimals
        return decimal.Decimal("0.50" if rng.random() < 0.3 + 0.4 * value else "0.5")

    found = audit(release, (0, 1), PureLoss(0.3), RUNS, SURE, rng=1)
    assert found.outcome is Outcome.FALSIFIED


@pytest.mark.slow
def test_false_alarms_of_honest_outputs_are_at_most_nominal():
    """2,016 audits of honest twins at a nominal rate of 10 %."""
    from scipy.stats import binom

    names = [name for name in OUTPUTS for _ in range(42)]
    alarms = [
        name for seed, name in enumerate(names)
        if audit(
            released(OUTPUTS[name], 1.0), (0.0, 1.0), ONE, 400, 0.9, rng=seed
        ).outcome is Outcome.FALSIFIED
    ]  # fmt: skip
    print(f"outputs of {len(OUTPUTS)} kinds: {len(alarms)} of {len(names)} fell")
    assert len(names) >= 2000
    assert 0 < len(alarms) <= binom.ppf(1 - 1e-6, len(names), 0.1), alarms
