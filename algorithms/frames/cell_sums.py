"""Exact sums over the rows of a data frame in every cell of a table, before noise is added.

A statistic turns each row into a few whole numbers (a mean, for example, into 1 and the value in
whole steps).  The key columns say in which cell a row is, and the numbers are added up block by
block.  Sums of whole numbers have no round-off, so their sensitivity is exactly the proved one.

References: Casacuberta, Shoemate, Vadhan & Wagaman (2022); docs/proofs/frames.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from algorithms.frames.bases import Statistic
from algorithms.frames.cells import Axis, table_shape
from algorithms.frames.rows import BLOCK, Rows, Values
from algorithms.frames.schema import Schema

# Sums of whole numbers in floats are exact while their absolute values stay up to here.
EXACT_FLOATS = 2**52


def cell_sums(
    rows: Rows, statistic: Statistic, keys: tuple[Axis, ...], schema: Schema, kind: str
) -> Any:
    """Return the sums of the statistic: all of the first cell, then all of the second, and so on.

    ``kind`` is the noise that will be added, "laplace" or "gaussian", for which a statistic may sum
    other numbers.  A single sum is returned as an int.
    """
    basis = statistic.basis(schema, kind)
    largest = max(abs(x) for vertex in basis.vertices for x in vertex)

    def contributions(values: Values) -> Iterable[Any]:
        column = None if statistic.column is None else values[statistic.column]
        return statistic.contributions(column, schema, kind)

    # Of a mean, say, the contributions are 1 and t.  From their sums `mixed` makes those of 1 - t
    # and t, which are the basis.  No contribution is above twice its largest coordinate.
    sums = summed_in_cells(rows, keys, schema, 2 * largest, contributions)
    cell_values = statistic.mixed(sums, kind).T.ravel()
    return cell_values if cell_values.size > 1 else int(cell_values[0])


def summed_in_cells(
    rows: Rows,
    keys: tuple[Axis, ...],
    schema: Schema,
    largest: int,
    contributions: Callable[[Values], Iterable[Any]],
) -> NDArray[np.int64]:
    """Return the sums of all contributions: a row for each number that rows add, in every cell.

    ``contributions(values)`` yields, for each such number, an array with a whole number for each
    row, or an int that every row adds.  Their absolute values are at most ``largest``.
    """
    shape = table_shape(keys, schema)
    cells = math.prod(shape)
    # A block has so few rows that none of its sums can exceed 2^52.  The sums of all blocks are
    # added as 64-bit integers, which hold those of 2^31 rows: a row adds 2^31 at most.
    block_rows = min(EXACT_FLOATS // largest, max(BLOCK, cells))
    sums: list[Any] = []
    for values, row_count in rows.blocks(block_rows):
        index = cells_of(values, keys, shape, schema) if shape else None
        block_sums = [
            _block_sums(contribution, row_count, index, cells)
            for contribution in contributions(values)
        ]
        sums = sums or [np.zeros(cells, dtype=np.int64) for _ in block_sums]
        sums = [total + part for total, part in zip(sums, block_sums, strict=True)]
    return np.stack(sums)


def cells_of(
    values: Values, keys: tuple[Axis, ...], shape: tuple[int, ...], schema: Schema
) -> NDArray[Any]:
    """Return the index of the cell of every row, in C order of ``shape``.

    A row that is in no bin of some key has the index prod(shape), one beyond the last cell.
    """
    cells: Any = 0
    outside: Any = False
    for key, size in zip(keys, shape, strict=True):
        index = key.index(values[key.column], schema)
        if index.min(initial=0) < 0:
            outside = outside | (index < 0)
        cells = index if isinstance(cells, int) else cells * size + index
    return cells if outside is False else np.where(outside, math.prod(shape), cells)


def _block_sums(contribution: Any, rows: int, index: NDArray[Any] | None, cells: int) -> Any:
    """Return the sum of a contribution over the rows of every cell, or of all without an index.

    The contribution has one number for each row, or is an int that each of the ``rows`` rows adds.
    """
    if index is None:
        return contribution * rows if isinstance(contribution, int) else int(contribution.sum())
    if isinstance(contribution, int):
        return contribution * np.bincount(index, minlength=cells)[:cells]
    return np.bincount(index, contribution, minlength=cells)[:cells].astype(np.int64)
