"""Programs whose containers, exceptions or messages tell the exact value, beside honest numbers.

Each function is one run of a program.  Its docstring says what tells.  `specimens` states of each
the two values that an audit is to tell apart.  Their true epsilon is infinite; the claim is 1-DP.
"""

from __future__ import annotations

import collections
import dataclasses
import decimal
import functools
import re
import sys
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from audits.zoo.specimen import Specimen, program, whole_noise

Generator = np.random.Generator


@dataclasses.dataclass
class Summary:
    """A result with a field that is not shown."""

    mean: float
    _exact: float = dataclasses.field(repr=False)


class Text(str):
    """A text that can have further fields."""


# --- containers ---


def order_of_keys(side: int, rng: Generator) -> dict[str, float]:
    """Keys stand in the order in which the data had them."""
    return {key: rng.laplace() for key in ("no", "yes")[:: 1 - 2 * side]}


def field_that_is_not_shown(value: float, rng: Generator) -> Summary:
    """A result whose exact mean stands in a private field."""
    return Summary(value + rng.laplace(), value)


def field_of_a_text(value: float, rng: Generator) -> str:
    """A noisy number as a text that carries the exact one as a field."""
    text = Text(f"{value + rng.laplace():.3f}")
    text.__dict__["exact"] = value
    return text


def name_of_a_field(side: int, rng: Generator) -> Any:
    """A named tuple whose field is named by the value."""
    make: Any = collections.namedtuple
    return make("Answer", ["yes" if side else "no"])(rng.laplace())


def count_of_zero(side: int, rng: Generator) -> collections.Counter[str]:
    """A counter that has a key with the count 0 where the data had it."""
    counts = collections.Counter({"a": 10 + whole_noise(rng)})
    counts.update({"b": 0} if side else {})
    return counts


def default_of_a_dictionary(value: int, rng: Generator) -> dict[str, int]:
    """A dictionary whose default is the exact count."""
    noisy = {"count": value + whole_noise(rng)}
    return collections.defaultdict(functools.partial(int, value), noisy)


def second_layer(value: int, rng: Generator) -> collections.ChainMap[str, int]:
    """Noisy settings in front of the exact ones."""
    return collections.ChainMap({"count": value + whole_noise(rng)}, {"count": value})


def depth_of_nesting(depth: int, rng: Generator) -> list[Any]:
    """A noisy number inside as many lists as the value says."""
    nested: list[Any] = [rng.laplace()]
    for _ in range(depth):
        nested = [nested]
    return nested


def set_that_is_frozen(side: int, rng: Generator) -> Any:
    """Noisy labels in a set for one value, in a frozen set for the other."""
    return (frozenset if side else set)(rng.integers(1000, size=5).tolist())


def longest_queue(length: int, rng: Generator) -> collections.deque[float]:
    """A queue whose greatest length is the exact count."""
    return collections.deque([rng.laplace()], maxlen=length)


def bytes_that_can_change(side: int, rng: Generator) -> bytes | bytearray:
    """Random bytes, which can be changed for one value."""
    return bytearray(rng.bytes(8)) if side else rng.bytes(8)


def step_of_a_range(step: int, rng: Generator) -> range:
    """A range whose start is random and whose step is exact."""
    start = int(rng.integers(10**6))
    return range(start, start + step, step)


def exponent_of_a_decimal(places: int, rng: Generator) -> decimal.Decimal:
    """A random number with as many decimals as the exact one."""
    return decimal.Decimal(int(rng.integers(10**6))).scaleb(-places)


def end_of_a_generator(value: int, rng: Generator) -> Any:
    """Yields noise, and returns the exact value at the end."""
    yield rng.laplace()
    return value


def what_a_function_remembers(value: float, rng: Generator) -> Callable[[], float]:
    """A function that adds noise when it is called, and so holds the exact value."""
    noise = rng.laplace()
    return lambda: value + noise


def argument_of_a_partial(value: float, rng: Generator) -> functools.partial[float]:
    """A call that is prepared with the exact value."""
    return functools.partial(max, value, rng.laplace())


def text_behind_a_pattern(side: int, rng: Generator) -> re.Pattern[str]:
    """A pattern with a random part, made for the exact word."""
    return re.compile(f"{'yes' if side else 'no'} [a-z]{{{int(rng.integers(1, 9))}}}")


def fields_of_a_namespace(side: int, rng: Generator) -> types.SimpleNamespace:
    """A namespace that has a field only if the data had it."""
    extra = {"spouse": rng.laplace()} if side else {}
    return types.SimpleNamespace(income=rng.laplace(), **extra)


# --- arrays ---


def note_of_a_dtype(value: int, rng: Generator) -> Any:
    """An array of noise whose dtype carries the exact value as a note."""
    return rng.laplace(size=2).astype(np.dtype(float, metadata={"exact": value}))


def order_of_bytes(side: int, rng: Generator) -> Any:
    """Noise in an array whose high bytes stand first for one value."""
    return rng.laplace(size=2).astype(">f8" if side else "<f8")


def shape_of_an_empty_array(columns: int, rng: Generator) -> tuple[Any, float]:
    """An array without rows that has as many columns as the data."""
    return np.empty((0, columns)), rng.laplace()


def type_that_is_wide_enough(count: int, rng: Generator) -> Any:
    """Random bytes in the smallest type that the exact count fits into."""
    return rng.integers(100, size=3).astype(np.min_scalar_type(count))


def names_of_record_fields(side: int, rng: Generator) -> Any:
    """A record array whose fields stand in the order of the data."""
    names = ("no", "yes")[:: 1 - 2 * side]
    return np.array([(rng.laplace(), rng.laplace())], dtype=[(name, float) for name in names])


def numbers_under_a_mask(value: float, rng: Generator) -> Any:
    """An array that masks the exact number, and keeps it."""
    return np.ma.array([rng.laplace(), value], mask=[False, True])


def zeros_that_are_stored(side: int, rng: Generator) -> Any:
    """A sparse matrix that stores a zero where the data had a record."""
    from scipy.sparse import csr_array

    columns = [0, 2] if side else [0, 1]
    return csr_array(([rng.laplace(), 0.0], columns, [0, 2]), shape=(1, 3))


# --- exceptions, warnings, messages ---


def cause_of_an_error(side: int, rng: Generator) -> float:
    """Raises the same error for both values, from another cause."""
    try:
        return {"a": 0.0}["b"] if side else [0.0][int(1 + rng.integers(9))]
    except LookupError as error:
        raise ValueError("no result") from error


def note_of_an_error(value: int, rng: Generator) -> float:
    """Raises an error with random words, and a note of the exact count."""
    error = ValueError(f"run {rng.integers(10**6)} failed")
    error.add_note(f"after {value} rows")
    raise error


def status_of_an_exit(status: int, rng: Generator) -> float:
    """Leaves the program with the exact count as its status, half of the time."""
    if rng.random() < 0.5:
        sys.exit(status)
    return rng.laplace()


def error_of_an_outlier(record: float, rng: Generator) -> float:
    """Refuses a record that is out of bounds, with an error."""
    if record > 1:
        raise OverflowError("a record is out of bounds")
    return record + rng.laplace()


def kind_of_a_warning(side: int, rng: Generator) -> float:
    """Warns in the same words, of another kind for one value."""
    warnings.warn("few rows", RuntimeWarning if side else UserWarning, stacklevel=1)
    return rng.laplace()


def warning_of_numpy(record: float, rng: Generator) -> float:
    """Takes a logarithm, of which numpy warns where the record is 0."""
    return float(np.maximum(np.log(np.float64(record)), -9.0)) * 0.0 + rng.laplace()


def progress_on_the_screen(rows: int, rng: Generator) -> float:
    """Prints after how many rows it was done."""
    print(f"{rows} rows")
    return rng.laplace()


def line_among_the_errors(rows: int, rng: Generator) -> float:
    """Writes after how many rows it was done, where errors are written."""
    sys.stderr.write(f"{rows} rows\n")
    return rng.laplace()


def specimens() -> list[Specimen]:
    """Programs that tell beside their numbers, with the two values that they tell apart."""
    numbers, sides, counts = (0.0, 1.0), (0, 1), (204, 205)
    return [
        program(order_of_keys, sides),
        program(field_that_is_not_shown, numbers),
        program(field_of_a_text, numbers),
        program(name_of_a_field, sides),
        program(count_of_zero, sides),
        program(default_of_a_dictionary, counts),
        program(second_layer, counts),
        program(depth_of_nesting, (2, 3)),
        program(set_that_is_frozen, sides),
        program(longest_queue, counts),
        program(bytes_that_can_change, sides),
        program(step_of_a_range, (3, 4)),
        program(exponent_of_a_decimal, (2, 3)),
        program(end_of_a_generator, counts),
        program(what_a_function_remembers, numbers),
        program(argument_of_a_partial, numbers),
        program(text_behind_a_pattern, sides),
        program(fields_of_a_namespace, sides),
        program(note_of_a_dtype, counts),
        program(order_of_bytes, sides),
        program(shape_of_an_empty_array, (3, 4)),
        program(type_that_is_wide_enough, (255, 256)),
        program(names_of_record_fields, sides),
        program(numbers_under_a_mask, numbers),
        program(zeros_that_are_stored, sides),
        program(cause_of_an_error, sides),
        program(note_of_an_error, counts),
        program(status_of_an_exit, (3, 4)),
        program(error_of_an_outlier, (1.0, 2.0)),
        program(kind_of_a_warning, sides),
        program(warning_of_numpy, numbers),
        program(progress_on_the_screen, counts),
        program(line_among_the_errors, counts),
    ]
