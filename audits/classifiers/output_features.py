"""Features of any output: numbers become columns, structure a code, the whole output a category.

A walk through an output collects None, types, lengths, keys, exceptions and texts as its
structure; the numbers form a row, with a few summaries.  All are functions of the output alone, so
a claim about the release holds for its features.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from accountant.numerics import Array
from audits.classifiers import feature_codes
from audits.classifiers.feature_codes import (
    combined_codes,
    exact_code,
    row_codes,
    structure_code,
)
from audits.classifiers.output_readers import reader_of
from audits.classifiers.output_walk import ITEMS_BEYOND, MAX_NUMBERS, MAX_WORDS, OutputWalk
from audits.classifiers.uniform_outputs import uniform_block
from audits.runs.release_functions import Draw, RaisedOutcome

RAW_COLUMNS = 64  # numbers with a column of their own
MIN_GROUP = 4  # outputs of one kind that are read together
# items read from endless iterators, in all runs together and at least in each
ENDLESS_ITEMS, MIN_ITEMS = 1 << 20, 64
MAX_UNSEEN = 16  # parts that a finding names
Codes = feature_codes.Codes
# outputs that stay as they are: rules of single numbers look at them
PLAIN = {bool, int, float, RaisedOutcome}
AS_THEY_ARE = (np.integer, np.floating, np.bool_)


@final
@dataclass(frozen=True, slots=True)
class Features:
    """Rows of numbers (NaN if an output has none), and codes of structure and of whole outputs."""

    numbers: Array
    structure: Codes
    category: Codes


class OutputFeatures(NamedTuple):
    """What audits read of one output, in its place; ``unseen`` are parts that nothing could read.

    The category combines the codes of the structure, of the numbers and of exact values.
    """

    structure: int
    category: int
    numbers: Array
    unseen: tuple[str, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class ReadDraw:
    """Draws of a release whose outputs are read at once: a generator can be read only once."""

    draw: Draw
    items: int = MAX_WORDS  # of iterators without a length that are read of each output

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
        """The same, with fewer items of each output if the one that was read has no end."""
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
    """The features of outputs, one row per run."""
    kind, count = outputs.dtype.kind, len(outputs)
    if kind in "biufcmM":
        flat = outputs.reshape(count, math.prod(outputs.shape[1:]))[:, :MAX_NUMBERS]
        if kind == "c":
            flat = np.hstack([flat.real, flat.imag])
        flat = flat.astype(np.int64) if kind in "mM" else flat
        return Features(flat.astype(float), np.zeros(count, np.uint64), row_codes(flat))
    items = list(read_outputs(outputs))
    plain = [index for index, item in enumerate(items) if not isinstance(item, OutputFeatures)]
    new_features = _features_of_each([items[index] for index in plain])
    for index, item in zip(plain, new_features, strict=True):
        items[index] = item
    return Features(
        _padded_table([item.numbers for item in items]),
        np.array([item.structure for item in items], dtype=np.uint64),
        np.array([item.category for item in items], dtype=np.uint64),
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
    """Sum, extremes and their places, first change, ties, slope: what may reveal a vector."""
    count, width = numbers.shape
    if width < 2:
        return np.empty((count, 0))
    is_finite = np.isfinite(numbers)
    x = lowest = highest = numbers
    if not is_finite.all():
        x, lowest, highest = (np.where(is_finite, numbers, end) for end in (0.0, np.inf, -np.inf))
    top, bottom = highest.argmax(axis=1), lowest.argmin(axis=1)
    rows = np.arange(count)
    changed = numbers != numbers[:, :1]
    moves = np.count_nonzero(changed, axis=1)
    first_change = np.where(moves > 0, changed.argmax(axis=1), width)
    changed_number = numbers[rows, np.minimum(first_change, width - 1)]
    middle = np.arange(width) - (width - 1) / 2
    greatest, others = highest[rows, top], highest.copy()
    others[rows, top] = -np.inf
    positive, negative = (np.count_nonzero(side, axis=1) for side in (x > 0, x < 0))
    with np.errstate(invalid="ignore", over="ignore"):  # outputs may be arbitrarily large
        columns = [
            x.sum(axis=1), greatest, lowest[rows, bottom], top, bottom,
            first_change, changed_number, width - moves, x @ middle, greatest - others.max(axis=1),
            np.abs(x).sum(axis=1), positive - negative, np.clip(x, -1, 1).sum(axis=1),
            np.count_nonzero(is_finite, axis=1),
        ]  # fmt: skip
    result: Array = np.column_stack(columns).astype(float)
    return result


def _features_of_each(outputs: Sequence[Any], items: int = MAX_WORDS) -> list[OutputFeatures]:
    """Features of outputs: those of one kind together where they can be, else one by one."""
    groups: dict[Any, list[int]] = {}
    for index, output in enumerate(outputs):
        groups.setdefault(_kind_of(output), []).append(index)
    features: list[Any] = [None] * len(outputs)
    for places in groups.values():
        group = [outputs[index] for index in places]
        together = _read_together(group) if len(group) >= MIN_GROUP else None
        for index, output in zip(
            places, _walked(group, items) if together is None else together, strict=True
        ):
            features[index] = output
    return features


def _kind_of(output: Any) -> Any:
    """What outputs that are read together have in common."""
    kind = type(output)
    if kind in {list, tuple, dict}:
        return kind, len(output)
    if kind is np.ndarray:
        return kind, output.dtype, output.shape
    return kind


def _read_together(outputs: Sequence[Any]) -> list[OutputFeatures] | None:
    """Features of outputs of one structure; None if it differs between them."""
    block = uniform_block(outputs)
    if block is None:
        return None
    count = len(outputs)
    table = np.hstack([np.empty((count, 0)), *block.columns])
    structure = structure_code(block.words)
    codes = combined_codes(structure, exact_code(block.exact), row_codes(table)).tolist()
    return [OutputFeatures(structure, code, row) for code, row in zip(codes, table, strict=True)]


def _walked(outputs: Iterable[Any], items: int = MAX_WORDS) -> list[OutputFeatures]:
    """Features of outputs, each walked by itself."""
    features = []
    for output in outputs:
        walk = OutputWalk(reader_of, items)
        walk.read(output)
        row, structure = walk.row(), structure_code(walk.words)
        code = combined_codes(structure, exact_code(walk.exact), row_codes(row[None, :]))
        features.append(OutputFeatures(structure, int(code[0]), row, tuple(walk.unseen)))
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
