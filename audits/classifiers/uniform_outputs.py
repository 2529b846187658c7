"""Reads many outputs of one structure together, in columns, which is faster than one by one.

What is read of an output are words that describe its structure (types, lengths, keys), its numbers
as floats, and values that floats do not determine.  It is the same as what a walk through each
output (`OutputWalk`) would read.  Where outputs differ in more than their numbers, `uniform_block`
returns None, and each output is walked.  The same holds of every function here: it returns the
block of some part of all outputs, or None.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accountant.numerics import Array
from audits.classifiers.library_readers import array_word, frame_words, index_word, series_word
from audits.classifiers.output_walk import (
    MAX_DEPTH,
    MAX_NUMBERS,
    MAX_WORDS,
    OutputWalk,
    not_exact,
    type_name,
)
from audits.classifiers.python_readers import equal_numbers, mapping_words, reader_of

NUMBERS = frozenset({bool, int, float, np.float64, np.int64, np.bool_})  # types of single numbers
CONSTANTS = frozenset({str, bytes, type(None)})  # types that must have one value in all outputs


@final
@dataclass(frozen=True, slots=True)
class UniformBlock:
    """What was read of outputs of one structure."""

    words: list[str] = field(default_factory=list)  # the structure, which all of them share
    exact: list[bytes] = field(default_factory=list)  # values beyond floats, which they share too
    columns: list[Array] = field(default_factory=list)  # tables of numbers, a row for each output
    letters: list[bytes] = field(default_factory=list)  # ends of texts, which they share

    def append(self, block: UniformBlock | None) -> bool:
        """Append what a part holds; False if its structure differs between outputs."""
        if block is not None:
            self.words.extend(block.words)
            self.exact.extend(block.exact)
            self.columns.extend(block.columns)
            self.letters.extend(block.letters)
        return block is not None

    def append_array(self, values: NDArray[Any]) -> bool:
        """Append numbers, a row for each output; False if their floats are not exact."""
        rows = values.reshape(len(values), -1)
        if values.dtype.kind not in "biuf" or not_exact(values):
            return False
        self.columns.append(rows.astype(float))
        return True


def uniform_block(values: Sequence[Any]) -> UniformBlock | None:
    """Outputs of one structure as a block; None if structures differ or have no reader here."""
    block = _block(values, 1)
    if block is None or len(block.words) > MAX_WORDS:
        return None
    return block if sum(column.shape[1] for column in block.columns) <= MAX_NUMBERS else None


def array_block(outputs: NDArray[Any]) -> UniformBlock | None:
    """Numbers or rows of an array as a block, read as the objects of a list of them would be."""
    if not outputs.size or outputs[0].size > MAX_NUMBERS:
        return None
    if outputs.ndim == 1:
        return _numbers(outputs, type(outputs[0])) if type(outputs[0]) in NUMBERS else None
    block = UniformBlock([array_word(outputs[0])])
    return block if block.append_array(outputs) else None


def _block(values: Sequence[Any], depth: int) -> UniformBlock | None:
    """The block of the same part of all outputs; ``depth`` is how deeply it is nested."""
    kinds = set(map(type, values))
    kind = kinds.pop()
    if kinds or depth > MAX_DEPTH:
        return None
    if kind in NUMBERS:
        return _numbers(values, kind)
    if kind in CONSTANTS:
        return _constant(values)
    if kind is dict:
        return _dictionaries(values, depth)
    if kind in {list, tuple}:
        return _sequences(values, kind, depth)
    if kind is np.ndarray:
        return _arrays(values)
    pandas = sys.modules.get("pandas")
    if pandas is not None and kind is pandas.DataFrame:
        return _frames(values, depth)
    if pandas is not None and kind is pandas.Series:
        return _series(values, depth)
    return None


def _numbers(values: Sequence[Any] | NDArray[Any], kind: type) -> UniformBlock | None:
    block = UniformBlock([type_name(values[0])])
    try:
        numbers = np.array(values, np.int64 if kind in {int, np.int64} else float)
    except OverflowError:  # a long integer
        return None
    return block if block.append_array(numbers) else None


def _constant(values: Sequence[Any]) -> UniformBlock | None:
    """A value that all outputs share, such as a label; not one that is decoded."""
    if any(output != values[0] for output in values):
        return None
    walk = OutputWalk(reader_of)
    walk.read(values[0])
    if walk.decoded:  # a walk reads it after the rest of an output
        return None
    columns = [np.broadcast_to(walk.row(), (len(values), walk.row().size))]
    return UniformBlock(walk.words, walk.exact, columns, walk.letters)


def _dictionaries(values: Sequence[Any], depth: int) -> UniformBlock | None:
    """Dictionaries of the same keys in the same order, all texts."""
    keys = list(values[0])
    if len(keys) > MAX_WORDS or any(list(output) != keys for output in values):
        return None
    # Keys that are no texts may be equal and have other words, as 1 and 1.0.
    if set(map(type, itertools.chain.from_iterable(values))) - {str}:
        return None
    key_words = list(map(repr, keys))
    walk = OutputWalk(reader_of)
    mapping_words("dict", key_words, walk)
    block = UniformBlock(walk.words)
    for at in sorted(range(len(keys)), key=key_words.__getitem__):
        key = keys[at]
        if not block.append(_block([output[key] for output in values], depth + 1)):
            return None
    return block


def _sequences(values: Sequence[Any], kind: type, depth: int) -> UniformBlock | None:
    """Lists or tuples of one length: of numbers as a table, else item by item."""
    length = len(values[0])
    if length > MAX_NUMBERS or any(len(output) != length for output in values):
        return None
    numbers = equal_numbers(values)
    if numbers is not None:
        block = UniformBlock([f"{kind.__name__} {length} {numbers.dtype}"])
        return block if block.append_array(numbers) else None
    block = UniformBlock([f"{kind.__name__} {length}"])
    for position in range(length):
        if not block.append(_block([output[position] for output in values], depth + 1)):
            return None
    return block


def _arrays(values: Sequence[Any]) -> UniformBlock | None:
    word = array_word(values[0])
    if any(_stored_as(output) != _stored_as(values[0]) for output in values):
        return None
    if any(output.dtype.metadata for output in values):  # notes are read one by one
        return None
    block = UniformBlock([word])
    return block if block.append_array(np.stack(values)) else None


def _stored_as(output: NDArray[Any]) -> tuple[Any, ...]:
    """What the word of an array is made from, except its class."""
    flags = output.flags
    return output.dtype, output.shape, flags.c_contiguous, flags.f_contiguous, flags.writeable


def _frames(values: Sequence[Any], depth: int) -> UniformBlock | None:
    """Frames of pandas with the same columns, types and length, without notes (``attrs``)."""
    first_frame = values[0]
    labels, dtypes = first_frame.columns.tolist(), first_frame.dtypes.tolist()
    for frame in values:
        if (
            len(frame) != len(first_frame)
            or frame.columns.tolist() != labels
            or frame.dtypes.tolist() != dtypes
            or frame.attrs
        ):
            return None
    if not labels or not len(first_frame):
        return None
    block = UniformBlock(frame_words(first_frame, labels, dtypes))
    if not block.append(_block([frame.columns.tolist() for frame in values], depth + 1)):
        return None
    stacked = sys.modules["pandas"].concat(values, ignore_index=True)
    for position in range(len(labels)):
        if not block.append(_columns(stacked.iloc[:, position], len(values), depth)):
            return None
    return block if block.append(_indices([frame.index for frame in values], depth + 1)) else None


def _series(values: Sequence[Any], depth: int) -> UniformBlock | None:
    """Series of pandas of one type and length, without notes (``attrs``)."""
    first_series = values[0]
    if any(
        len(series) != len(first_series) or series.dtype != first_series.dtype or series.attrs
        for series in values
    ):
        return None
    block = UniformBlock([series_word(first_series)])
    if not (
        len(first_series) and block.append(_block([series.name for series in values], depth + 1))
    ):
        return None
    stacked = sys.modules["pandas"].concat(values, ignore_index=True)
    if not block.append(_columns(stacked, len(values), depth)):
        return None
    return block if block.append(_indices([series.index for series in values], depth + 1)) else None


def _columns(stacked: Any, count: int, depth: int) -> UniformBlock | None:
    """The values of ``count`` columns of one dtype and length, which stand one after the other."""
    dtype, block = stacked.dtype, UniformBlock()
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
        return block if block.append_array(stacked.to_numpy().reshape(count, -1)) else None
    if hasattr(dtype, "categories") or getattr(dtype, "kind", "O") in "biufmM":
        return None
    items, size = stacked.tolist(), len(stacked) // count
    return _block([items[at : at + size] for at in range(0, len(items), size)], depth + 1)


def _indices(values: Sequence[Any], depth: int) -> UniformBlock | None:
    """Indices of pandas of one type and length; a RangeIndex is determined by its words."""
    word = index_word(values[0])
    block = UniformBlock([word])
    if any(index_word(index) != word for index in values) or depth >= MAX_DEPTH:
        return None
    if word.startswith("RangeIndex"):
        return block
    if not block.append(_block([list(index.names) for index in values], depth + 1)):
        return None
    stacked = values[0].append(list(values[1:]))
    return block if block.append(_columns(stacked, len(values), depth)) else None
