"""Features of any output: numbers become columns, structure a code, the whole output a category.

The walk through an output collects None, types, lengths, keys, exceptions and strings as its
structure; the numbers form a row, with a few summaries.  All are functions of the output alone, so
a claim about the release holds for its features.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from accountant.numerics import Array
from audits.runs.release_functions import RaisedOutcome

MAX_NUMBERS = 1 << 20  # numbers of one output that are used
RAW_COLUMNS = 64  # numbers with a column of their own
MAX_DEPTH = 16  # nested containers; deeper ones and cycles are cut off
Codes = NDArray[np.uint64]
# elements of arrays and Python's own count as one type: chunks may come as either
TYPE_NAMES = {"float64": "float", "int64": "int", "bool_": "bool", "str_": "str", "bytes_": "bytes"}


@final
@dataclass(frozen=True, slots=True)
class Features:
    """Rows of numbers (NaN if an output has none), and codes of structure and of whole outputs."""

    numbers: Array
    structure: Codes
    category: Codes


class OutputFeatures(NamedTuple):
    """What audits read of one output, in the place of an output that another process made."""

    structure: int
    category: int
    numbers: list[float]


def extract_features(outputs: NDArray[Any]) -> Features:
    """The features of outputs, one row per run."""
    kind, count = outputs.dtype.kind, len(outputs)
    if kind in "biufcmM":
        flat = outputs.reshape(count, -1)[:, :MAX_NUMBERS]
        if kind == "c":
            flat = np.hstack([flat.real, flat.imag])
        flat = flat.astype(np.int64) if kind in "mM" else flat
        return Features(flat.astype(float), np.zeros(count, np.uint64), _hash_rows(flat))
    if kind in "US":
        flat = outputs.reshape(count, -1)
        lengths = np.char.str_len(flat).astype(float)
        codes = _hash_rows(np.ascontiguousarray(flat).view(np.uint8).reshape(count, -1))
        return Features(lengths, codes, codes)
    return _walk_outputs(outputs)


def summary_columns(numbers: Array) -> Array:
    """Sum, extremes and their places, first change, ties, slope: what may reveal a vector."""
    count, width = numbers.shape
    if width < 2 or count == 0:
        return np.empty((count, 0))
    known = np.isfinite(numbers)
    x = np.where(known, numbers, 0.0)
    lowest, highest = (np.where(known, numbers, end) for end in (np.inf, -np.inf))
    top, least = highest.argmax(axis=1), lowest.argmin(axis=1)
    rows = np.arange(count)
    changed = numbers != numbers[:, :1]
    first = np.where(changed.any(axis=1), changed.argmax(axis=1), width)
    there = numbers[rows, np.minimum(first, width - 1)]
    middle = np.arange(width) - (width - 1) / 2
    two = np.partition(highest, width - 2, axis=1)[:, -2:]
    with np.errstate(invalid="ignore", over="ignore"):  # outputs may be as large as they like
        columns = [
            x.sum(axis=1), highest[rows, top], lowest[rows, least], top, least, first, there,
            np.count_nonzero(~changed, axis=1), x @ middle, two[:, 1] - two[:, 0],
            np.abs(x).sum(axis=1), np.sign(x).sum(axis=1), np.clip(x, -1, 1).sum(axis=1),
            known.sum(axis=1),
        ]  # fmt: skip
    result: Array = np.column_stack(columns).astype(float)
    return result


def _hash_rows(rows: NDArray[Any]) -> Codes:
    """A 64-bit code of each row's bytes; -0.0 and 0.0 differ, as do the many NaN."""
    rows = np.ascontiguousarray(rows)
    if rows.dtype.kind == "f" and rows.dtype.itemsize == 8:
        words = rows.view(np.uint64)
    elif rows.dtype.kind in "iub":
        words = rows.astype(np.uint64)
    else:
        words = rows.astype(np.float64).view(np.uint64)
    code = np.zeros(len(rows), np.uint64)
    for column in words.T:
        code = (code ^ column) * np.uint64(0x9E3779B97F4A7C15)
        code ^= code >> np.uint64(29)
    return code


def output_features(output: Any) -> OutputFeatures:
    """The features of one output of any kind."""
    numbers: list[float] = []
    words, exact = [], []
    try:
        for word, number in itertools.islice(_walk_output(output, 0), 2 * MAX_NUMBERS):
            if word is not None:
                words.append(word)
            else:
                numbers.append(_as_float(number))
                exact.append(float.hex(numbers[-1]) if isinstance(number, float) else hex(number))
    except Exception as error:  # an object that cannot be read
        words.append(f"unreadable: {type(error).__name__}")
    structure = zlib.crc32("\0".join(words).encode("utf-8", "replace"))
    exactly = zlib.crc32("\0".join(exact).encode())
    return OutputFeatures(structure, (structure << 32) | exactly, numbers)


def _walk_outputs(outputs: NDArray[Any]) -> Features:
    structure, atom = np.empty((2, len(outputs)), np.uint64)
    rows: list[list[float]] = []
    for place, output in enumerate(outputs):
        found = output if isinstance(output, OutputFeatures) else output_features(output)
        structure[place], atom[place] = found.structure, found.category
        rows.append(found.numbers)
    width = max(map(len, rows), default=0)
    table = np.full((len(rows), width), np.nan)
    for row, numbers in zip(table, rows, strict=True):
        row[: len(numbers)] = numbers
    return Features(table, structure, atom)


def _walk_output(output: Any, depth: int) -> Iterator[tuple[str | None, Any]]:
    """Words of structure as (word, None), numbers as (None, number)."""
    name = TYPE_NAMES.get(type(output).__name__, type(output).__name__)
    if depth > MAX_DEPTH:
        yield "...", None
    elif isinstance(output, RaisedOutcome):
        yield f"raised {output.kind} {output.message}", None
    elif output is None or isinstance(output, (str, bytes)):
        yield f"{name} {output!r}", None
        if output is not None:
            yield None, len(output)
    elif isinstance(output, (bool, int, float, complex, np.number, np.bool_)):
        yield name, None
        for part in (output.real, output.imag) if isinstance(output, complex) else (output,):
            yield None, part
    elif isinstance(output, np.ndarray) and output.dtype.kind in "biufc":
        yield f"{name} {output.dtype} {output.shape}", None
        for number in output.ravel()[:MAX_NUMBERS].tolist():
            yield from (
                _walk_output(number, depth + 1) if isinstance(number, complex) else [(None, number)]
            )
    else:
        yield name, None
        for key, part in _children(output):
            yield key, None
            yield from _walk_output(part, depth + 1)


def _children(output: Any) -> Iterator[tuple[str, Any]]:
    """The parts of a container or an object; an opaque object has only its type."""
    if isinstance(output, Mapping):
        yield f"keys {len(output)}", None
        yield from ((f"key {key!r}", output[key]) for key in sorted(output, key=repr))
    elif isinstance(output, Set):
        yield f"items {len(output)}", None
        yield from (("item", item) for item in sorted(output, key=repr))
    elif isinstance(output, (tuple, list, np.ndarray)):
        items = output.ravel().tolist() if isinstance(output, np.ndarray) else output
        yield f"length {len(items)}", None
        yield from (("", item) for item in items)
    elif is_dataclass(output) and not isinstance(output, type):
        yield from ((field.name, getattr(output, field.name, None)) for field in fields(output))
    elif hasattr(output, "__array__"):
        yield "array", _as_array(output)
    else:
        yield from sorted(getattr(output, "__dict__", {}).items())


def _as_array(output: Any) -> Any:
    try:
        return np.asarray(output)
    except Exception:  # its __array__ fails
        return None


def _as_float(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:  # an integer beyond the floats
        return float("inf") if number > 0 else float("-inf")
