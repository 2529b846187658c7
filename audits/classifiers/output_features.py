"""Features of any output: numbers become columns, structure a code, the whole output a category.

A walk through an output collects None, types, lengths, keys, exceptions and texts as its
structure; the numbers form a row, with a few summaries.  All are functions of the output alone, so
a claim about the release holds for its features.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from accountant.numerics import Array
from audits.classifiers.output_walk import (
    ITEMS_BEYOND,
    MAX_NUMBERS,
    MAX_TEXTS,
    MAX_WORDS,
    OutputWalk,
)
from audits.classifiers.python_readers import reader_of
from audits.classifiers.uniform_outputs import UniformBlock, array_block, uniform_block
from audits.runs.release_functions import Draw, RaisedOutcome

# An output of at most this many numbers has a column for each of them; of a wider one, the numbers
# that matter are found by screening.
RAW_COLUMNS = 64
MIN_GROUP = 4  # at least this many outputs of one kind are read together; fewer are not worth it
# The items that are read from iterators without an end: about ENDLESS_ITEMS in all runs together,
# and at least MIN_ITEMS in each run.
ENDLESS_ITEMS, MIN_ITEMS = 1 << 20, 64
MAX_UNSEEN = 16  # a finding names at most this many parts that nothing could read
MAX_BLOCK = 1 << 20  # numbers that are hashed at a time
Codes = NDArray[np.uint64]
# Types of outputs that stay as they are, and the types of numpy's numbers, which stay too: rules of
# single numbers look at them.
PLAIN = {bool, int, float, RaisedOutcome}
AS_THEY_ARE = (np.integer, np.floating, np.bool_)


@final
@dataclass(frozen=True, slots=True)
class Features:
    """What audits read of many outputs; see `OutputFeatures`."""

    numbers: Array  # a row for each output, padded with NaN
    structure: Codes  # a code for each
    category: Codes
    letters: NDArray[np.uint8]  # both ends of the first texts in each, padded with 0


class OutputFeatures(NamedTuple):
    """What audits read of one output, which stands in its place.

    ``structure`` is a code of types, lengths and texts; ``category`` combines the codes of the
    structure, of the numbers and of exact values.  ``unseen`` are parts that nothing could read,
    ``letters`` both ends of the first texts.
    """

    structure: int
    category: int
    numbers: Array
    unseen: tuple[str, ...] = ()
    letters: bytes = b""


@final
@dataclass(frozen=True, slots=True)
class ReadDraw:
    """Draws of a release whose outputs are read at once.

    An output may be an iterator, which can be read only once; features can be read again.
    """

    draw: Draw
    items: int = MAX_WORDS  # read of each output from iterators without a length, at most

    @property
    def release(self) -> Any:
        """The release that is drawn from."""
        return getattr(self.draw, "release", self.draw)

    def __call__(self, value: Any, rng: np.random.Generator, size: int) -> NDArray[Any]:
        """Outputs of ``size`` runs: numbers as they are, and what is read of others."""
        return read_outputs(self.draw(value, rng, size), self.items)

    def one_output(self, value: Any) -> NDArray[Any]:
        """The output of one additional run; none if it raises."""
        try:
            return self(value, np.random.default_rng(0), 1)
        except Exception:  # the audit itself meets and reports it
            return np.empty(0)

    def bounded(self, output: NDArray[Any], runs: int) -> ReadDraw:
        """This draw, which reads fewer items of each output if the one that was read has no end.

        ``runs`` is the number of runs that share `ENDLESS_ITEMS`.
        """
        endless = any(ITEMS_BEYOND in unseen for unseen in unseen_parts(output))
        items = min(max(ENDLESS_ITEMS // runs, MIN_ITEMS), MAX_WORDS)
        return replace(self, items=items) if endless else self


def read_outputs(outputs: NDArray[Any], items: int = MAX_WORDS) -> NDArray[Any]:
    """Outputs with each object replaced by what is read of it; numbers and errors stay."""
    if outputs.dtype.kind in "biufcmM":
        return outputs
    listed = list(outputs)
    array = np.empty(len(listed), dtype=object)
    objects = []
    for index, output in enumerate(listed):
        array[index] = output
        kind: Any = type(output)
        stays = issubclass(kind, (*AS_THEY_ARE, OutputFeatures)) and kind is not np.timedelta64
        if kind not in PLAIN and not stays:
            objects.append(index)
    features = _features_of_each([listed[index] for index in objects], items)
    for index, output in zip(objects, features, strict=True):
        array[index] = output
    return array


def output_features(output: Any) -> OutputFeatures:
    """The features of one output of any kind."""
    return _walked([output])[0]


def extract_features(outputs: NDArray[Any]) -> Features:
    """The features of outputs, one row per run; each depends on its own output alone.

    An array is read as a list of its elements or rows would be, since one output of another kind
    makes a list of what would else be an array.
    """
    block = array_block(outputs) if outputs.dtype.kind in "biuf" else None
    if block is not None:
        table, structure, codes = _table_and_codes(block, len(outputs))
        no_letters = np.empty((len(outputs), 0), np.uint8)
        return Features(table, np.full(len(outputs), structure, np.uint64), codes, no_letters)
    items = list(read_outputs(outputs))
    plain = [index for index, item in enumerate(items) if not isinstance(item, OutputFeatures)]
    new_features = _features_of_each([items[index] for index in plain])
    for index, item in zip(plain, new_features, strict=True):
        items[index] = item
    # letters as a table, short rows padded with 0
    letter_width = max((len(item.letters) for item in items), default=0)
    letters = b"".join(item.letters.ljust(letter_width, b"\0") for item in items)
    return Features(
        _padded_table([item.numbers for item in items]),
        np.array([item.structure for item in items], dtype=np.uint64),
        np.array([item.category for item in items], dtype=np.uint64),
        np.frombuffer(letters, np.uint8).reshape(len(items), letter_width),
    )


def unseen_parts(*sides: NDArray[Any]) -> tuple[str, ...]:
    """Parts of outputs that nothing could look into: path and type, the first ones."""
    unseen: dict[str, None] = {}
    for outputs in sides:
        if outputs.dtype != object:
            if outputs.ndim > 1 and np.prod(outputs.shape[1:]) > MAX_NUMBERS:
                unseen[f"output: numbers beyond the first {MAX_NUMBERS:,}"] = None
            continue
        for output in outputs:
            if isinstance(output, OutputFeatures) and output.unseen:
                unseen |= dict.fromkeys(output.unseen)
    return tuple(unseen)[:MAX_UNSEEN]


def summary_columns(numbers: Array) -> Array:
    """Summaries of each row: sum, extremes and their indices, first change, ties, slope, signs.

    A classifier may tell two values apart by them where single numbers do not.
    """
    count, width = numbers.shape
    if width < 2:
        return np.empty((count, 0))
    is_finite = np.isfinite(numbers)
    x = lowest = highest = numbers
    if not is_finite.all():
        x, lowest, highest = (np.where(is_finite, numbers, end) for end in (0.0, np.inf, -np.inf))
    top, bottom = highest.argmax(axis=1), lowest.argmin(axis=1)
    rows = np.arange(count)
    differs_from_first = numbers != numbers[:, :1]
    different_count = np.count_nonzero(differs_from_first, axis=1)
    first_change = np.where(different_count > 0, differs_from_first.argmax(axis=1), width)
    changed_number = numbers[rows, np.minimum(first_change, width - 1)]
    from_middle = np.arange(width) - (width - 1) / 2  # of the indices, as weights of the slope
    greatest, others = highest[rows, top], highest.copy()
    others[rows, top] = -np.inf
    positive, negative = (np.count_nonzero(side, axis=1) for side in (x > 0, x < 0))
    with np.errstate(invalid="ignore", over="ignore"):  # outputs may be arbitrarily large
        columns = [
            # the sum, the extremes and their indices
            x.sum(axis=1), greatest, lowest[rows, bottom], top, bottom,
            # where the numbers first change and to what, and how many equal the first one
            first_change, changed_number, width - different_count,
            # the slope, and the distance of the greatest number to the next
            x @ from_middle, greatest - others.max(axis=1),
            # sizes, signs, numbers clipped to [-1, 1], and how many numbers are finite
            np.abs(x).sum(axis=1), positive - negative, np.clip(x, -1, 1).sum(axis=1),
            np.count_nonzero(is_finite, axis=1),
        ]  # fmt: skip
    result: Array = np.column_stack(columns).astype(float)
    return result


def _features_of_each(outputs: Sequence[Any], items: int = MAX_WORDS) -> list[OutputFeatures]:
    """Features of outputs: those of one kind together where they can be, else one by one."""
    groups: dict[Any, list[int]] = {}
    for index, output in enumerate(outputs):
        # What outputs that are read together have in common: the type, and the length or shape.
        kind: Any = type(output)
        if kind in {list, tuple, dict}:
            kind = kind, len(output)
        elif kind is np.ndarray:
            kind = kind, output.dtype, output.shape
        groups.setdefault(kind, []).append(index)
    features: list[Any] = [None] * len(outputs)
    for places in groups.values():
        group = [outputs[index] for index in places]
        together = _read_together(group) if len(group) >= MIN_GROUP else None
        for index, output in zip(
            places, _walked(group, items) if together is None else together, strict=True
        ):
            features[index] = output
    return features


def _read_together(outputs: Sequence[Any]) -> list[OutputFeatures] | None:
    """Features of outputs of one structure; None if it differs between them."""
    block = uniform_block(outputs)
    if block is None:
        return None
    table, structure, codes = _table_and_codes(block, len(outputs))
    pairs = zip(codes.tolist(), table, strict=True)
    letters = b"".join(block.letters[:MAX_TEXTS])
    return [OutputFeatures(structure, code, row, letters=letters) for code, row in pairs]


def _table_and_codes(block: UniformBlock, count: int) -> tuple[Array, int, Codes]:
    """The numbers of ``count`` outputs, the code of their structure, and those of each output."""
    table = np.hstack([np.empty((count, 0)), *block.columns])
    structure = structure_code(block.words)
    return table, structure, combined_codes(structure, block.exact, table)


def _walked(outputs: Iterable[Any], items: int = MAX_WORDS) -> list[OutputFeatures]:
    """Features of outputs, each walked by itself."""
    features = []
    for output in outputs:
        walk = OutputWalk(reader_of, items)
        walk.read(output)
        row, structure = walk.row(), structure_code(walk.words)
        code = combined_codes(structure, walk.exact, row[None, :])
        letters = b"".join(walk.letters)
        features.append(OutputFeatures(structure, int(code[0]), row, tuple(walk.unseen), letters))
    return features


def _padded_table(rows: Sequence[Array]) -> Array:
    """Rows as a table, short ones padded with NaN."""
    widths = {len(row) for row in rows}
    if len(widths) == 1:
        return np.stack(rows).astype(float)
    table = np.full((len(rows), max(widths, default=0)), np.nan)
    for row, numbers in zip(table, rows, strict=True):
        row[: len(numbers)] = numbers
    return table


def structure_code(words: Iterable[str]) -> int:
    """The code of the words of a structure."""
    return zlib.crc32("\0".join(words).encode("utf-8", "surrogatepass"))


def combined_codes(structure: int, exact: Iterable[bytes], rows: NDArray[Any]) -> Codes:
    """The structure's 32 bits above 32 bits of the numbers and the exact values."""
    exact_code = np.uint64(zlib.crc32(b"\0".join(exact)))
    return np.uint64(structure << 32) | (row_codes(rows) >> np.uint64(32)) ^ exact_code


def row_codes(rows: NDArray[Any]) -> Codes:
    """A 64-bit code of each row's bytes; -0.0 and 0.0 differ, as do the many NaN.

    It is ``sum_j m_j mix(word_j)`` with odd ``m_j``, of the 64-bit word j of the row: the columns
    need no loop.  The constant is 2^64 over the golden ratio, whose products spread well.  Seldom
    two different rows have one code: then a rule treats them alike, which costs power only.
    """
    rows = np.ascontiguousarray(rows)
    if rows.dtype.kind == "f" and rows.dtype.itemsize == 8:
        bit_patterns = rows.view(np.uint64)
    elif rows.dtype.kind in "iub":
        bit_patterns = rows.astype(np.uint64)
    else:
        bit_patterns = rows.astype(np.float64).view(np.uint64)
    count, width = bit_patterns.shape
    codes, odd = np.zeros(count, np.uint64), _multipliers(width)
    block_size = max(1, MAX_BLOCK // max(width, 1))
    for at in range(0, count, block_size):
        block = bit_patterns[at : at + block_size]
        # Mixing lets the upper bits of a word reach the lower bits of the code, and back.
        mixed = (block ^ (block >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
        codes[at : at + block_size] = np.einsum("ij,j->i", mixed, odd)
    return codes


@functools.lru_cache(maxsize=64)
def _multipliers(count: int) -> Codes:
    """Odd numbers that look random: SplitMix64 of 1, 2, 3, ..."""
    x = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (x ^ (x >> np.uint64(31))) | np.uint64(1)
