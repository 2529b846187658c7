"""When two values of recorded runs are the same."""

import dataclasses
import math
import random
import types

import numpy as np
import pytest

from audits.recorded_runs.comparisons import DEEPEST, plain_result, same_value, where_they_differ
from audits.recorded_runs.noisy_numbers import noisy_of
from audits.recorded_runs.patches import patched
from audits.recorded_runs.records import differing_rows
from audits.recorded_runs.runs import Runs


@pytest.mark.parametrize(
    ("first_value", "second_value", "expected"),
    [
        (0.1 + 0.2, 0.3, True),
        (0.3, 0.3001, False),
        (np.nan, np.nan, True),
        (np.array([1.0, 2.0]), np.array([1.0, 2.0, 3.0]), False),
        (np.array([[1.0, 2.0]]), np.array([1.0, 2.0]), False),
        (np.inf, np.inf, True),
        (np.inf, 1.0, False),
        ({"a": [1, 2]}, {"a": [1, 2]}, True),
        ({"a": [1, 2]}, {"a": [1, 3]}, False),
        (np.zeros(0), np.zeros(0), True),
        (np.zeros(0), np.zeros(1), False),
        (1e-300, 2e-300, False),
        (0.0, 1e-12, False),
        (100.0, 100.0 + 1e-8, True),
        (1e-3, 1e-3 + 1e-10, False),
        ([np.inf, 0.0], [np.inf, 0.5], False),
        (np.array([1.0, 1e9]), np.array([1.5, 1e9]), True),  # up to the largest entry
        (np.nan, 1.0, False),
        (np.array([np.nan, 1.0]), np.array([1.0, np.nan]), False),
        (0.5, "a", False),
        ("a", "a", True),
        (3, 4, False),
        ([[1.0], [2.0, 3.0]], [[1.0], [2.0, 3.0]], True),
        ([[1.0], [2.0, 3.0]], [[1.0], [2.0, 4.0]], False),
        ({1, 2}, {1, 3}, False),
        ({1, 2}, {2, 1}, True),
    ],
)
def test_floats_are_the_same_up_to_round_off_and_arrays_only_of_one_shape(
    first_value, second_value, expected
):
    assert same_value(first_value, second_value) is expected


NAN = math.nan
FLOATS = np.array([[1.0, NAN], [2.0, 3.0], [4.0, 5.0]])


@pytest.mark.parametrize(
    ("one", "other", "rows"),
    [
        (FLOATS, FLOATS.copy(), []),
        (FLOATS, FLOATS[:2], []),
        (FLOATS, FLOATS[1:], [0, 1]),
        (FLOATS, np.where(FLOATS == 3.0, NAN, FLOATS), [1]),
        (FLOATS, np.nan_to_num(FLOATS, nan=7.0), [0]),
        (FLOATS, np.where(FLOATS == 3.0, math.nextafter(3.0, 4.0), FLOATS), [1]),
        (FLOATS[:, 1], np.array([NAN, 3.0, 6.0]), [2]),
        (FLOATS.reshape(3, 1, 2), FLOATS, [0, 1, 2]),
        (FLOATS, FLOATS.reshape(3, 1, 2), [0, 1, 2]),
        (FLOATS, FLOATS[:, :1], [0, 1, 2]),
        (FLOATS.reshape(3, 1, 2), FLOATS.reshape(3, 1, 2) + np.eye(3, 2)[:, None], [0, 1]),
        (np.arange(3), np.array([0, 5, 2]), [1]),
        (["a", "b"], ["a", "c"], [1]),
        ((FLOATS, ["a", "b", "c"]), (FLOATS, ["x", "b", "y"]), [0, 2]),
    ],
)
def test_the_rows_that_differ_are_those_with_another_value(one, other, rows):
    assert differing_rows(one, other) == differing_rows(other, one) == rows


class OneSlot:
    __slots__ = "total"  # noqa: PLC0205 -- one name is allowed, too

    def __init__(self, total):
        self.total = total


class MoreSlots(OneSlot):
    __slots__ = ("count", "not_set")

    def __init__(self, total, count):
        super().__init__(total)
        self.count = count


class OtherOneSlot(OneSlot):
    __slots__ = ()


class Named:
    def __init__(self, **names):
        vars(self).update(names)


@dataclasses.dataclass(slots=True)
class Slotted:
    weights: object


class Convertible:
    """An object that is converted by a method, as frames, sparse matrices and tensors are."""

    def __init__(self, method, array, columns=None):
        setattr(self, method, lambda: array)
        if columns is not None:
            self.columns = columns


class NeedsArguments:
    def __init__(self, value):
        self.value = value

    def numpy(self, dtype):
        return dtype(self.value)


def nested(value, levels):
    for _ in range(levels):
        value = [value]
    return value


def with_attribute(part, x):
    part.x = x
    return part


# A maker of results from a number, and the path at which two of them differ.
RESULTS = {
    "number": (lambda x: x, "the result"),
    "list": (lambda x: [0, (1, x)], "the result[1][1]"),
    "dict": (lambda x: {"a": 0, "b": {"c": x}}, "b.c"),
    "key": (lambda x: {x: 0}, "the names in the result"),
    "key in a dict": (lambda x: {"a": {x: 0}}, "the names in a"),
    "key that is a word": (lambda x: {1 if x == 1 else "1": 0}, "the names in the result"),
    "length": (lambda x: [0] * int(x), "the length of the result"),
    "set": (lambda x: {5, x}, "the result[0]"),
    "array": (lambda x: {"a": np.array([1.0, x])}, "a"),
    "array of objects": (lambda x: np.array([None, [x]], dtype=object), "the result[1][0]"),
    "attribute": (lambda x: Named(model=Named(x=x)), "model.x"),
    "class": (lambda x: (OneSlot if x == 1 else OtherOneSlot)(7), "class"),
    "attributes": (lambda x: (OneSlot if x == 1 else Slotted)(7), "the names in the result"),
    "kind of part": (lambda x: {"a": [0] if x == 1 else {"b": 0}}, "a"),
    "kind of part, back": (lambda x: {"a": {"b": 0} if x == 1 else [0]}, "a"),
    "number or part": (lambda x: {"a": 0.5 if x == 1 else [0.5]}, "a"),
    "slot": (OneSlot, "total"),
    "slot of a parent": (lambda x: MoreSlots(x, 5), "total"),
    "slot beside an empty one": (lambda x: MoreSlots(5, x), "count"),
    "slot of a dataclass": (lambda x: {"model": Slotted(x)}, "model.weights"),
    "iterator": (lambda x: iter([3, x]), "the result[1]"),
    "generator": (lambda x: (part for part in (3, x)), "the result[1]"),
    "frame": (lambda x: Convertible("to_numpy", np.array([x])), "the result[0]"),
    "names of columns": (
        lambda x: Convertible("to_numpy", np.ones(1), [f"c{x}"]), "the result[1][0]",
    ),
    "sparse": (lambda x: Convertible("toarray", np.array([x])), "the result[0]"),
    "tensor": (lambda x: Convertible("numpy", np.array([x])), "the result[0]"),
    "method that needs arguments": (NeedsArguments, "value"),
    "deep": (lambda x: nested(x, DEEPEST + 1), "the result" + (DEEPEST + 1) * "[0]"),
    "deep array of objects": (
        lambda x: nested(np.array([[x]], dtype=object), DEEPEST),
        "the result" + (DEEPEST + 1) * "[0]",
    ),
    "value of a number": (lambda x: {7: x}, "[7]"),
}  # fmt: skip


@pytest.mark.parametrize("name", RESULTS)
def test_a_difference_of_results_is_found_where_it_is(name):
    made, path = RESULTS[name]
    first, same, other = (plain_result(made(x)) for x in (1.0, 1.0, 2.0))
    assert where_they_differ(first, same) == ""
    assert where_they_differ(first, other) == path


@pytest.mark.parametrize(
    "made",
    [
        lambda x: nested(x, DEEPEST + 2),
        lambda x: with_attribute(lambda: x, x),
        lambda x: with_attribute(types.ModuleType("part"), x),
        lambda x: {"rng": np.random.default_rng(int(x))},
        lambda x: [np.random.RandomState(int(x)), np.random.PCG64(int(x)), math, print],
        lambda x: Named(method=random.Random(int(x)).random),
        lambda x: {"kind": type("Kind", (), {"x": x})},
    ],
)
def test_parts_of_a_program_and_deep_ones_are_left_out(made):
    assert where_they_differ(plain_result(made(1.0)), plain_result(made(2.0))) == ""


def test_results_in_a_cycle_are_compared():
    def cycle(x):
        result = {"x": x}
        result["self"] = [result]
        return plain_result(result)

    assert where_they_differ(cycle(1.0), cycle(1.0)) == ""
    assert where_they_differ(cycle(1.0), cycle(2.0)) == "x"


HIDDEN = {
    "number": lambda z: z,
    "list": lambda z: [1, z],
    "dict": lambda z: {"a": (z,)},
    "set": lambda z: {z},
    "attribute": lambda z: Named(x=z),
    "slot": OneSlot,
    "array of objects": lambda z: np.array([None, [z]], dtype=object),
    "iterator": lambda z: iter([z]),
}


@pytest.mark.parametrize(
    ("name", "size"),
    [*((name, None) for name in HIDDEN), *((name, 3) for name in HIDDEN if name != "set")],
)
def test_noise_in_a_result_counts_as_released(name, size):
    drawn = []

    def function(data):
        drawn.append(np.random.default_rng(9).laplace(data[0], size=size))
        return HIDDEN[name](drawn[-1])

    with patched({}, function, 3):
        run = Runs(function, (1.0, 2.0), (3.0, 2.0), 3, frozenset()).run()
    assert noisy_of(drawn[0]).used
    numbers = np.random.default_rng(9).laplace(1.0, size=size)
    assert where_they_differ(run.result, plain_result(HIDDEN[name](numbers))) == ""
    pending = [run.result]
    while pending:
        part = pending.pop()
        assert noisy_of(part) is None
        pending += part.values() if isinstance(part, dict) else part if type(part) is list else ()
