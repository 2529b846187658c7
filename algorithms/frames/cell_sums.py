"""Exact sums of what rows add, in the cells of a table.

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

EXACT_FLOATS = 2**52  # whole numbers up to here add up exactly as floats


def cell_sums(
    rows: Rows, statistic: Statistic, keys: tuple[Axis, ...], schema: Schema, kind: str
) -> Any:
    """Return the sums of each cell after those of the cell before; an int where there is one."""
    basis = statistic.basis(schema, kind)
    largest = max(abs(x) for vertex in basis.vertices for x in vertex)

    def added(values: Values) -> Iterable[Any]:
        column = None if statistic.column is None else values[statistic.column]
        return statistic.contributions(column, schema, kind)

    # The sums are combined later, which makes them up to twice as large.
    sums = summed_in_cells(rows, keys, schema, 2 * largest, added)
    flat = statistic.mixed(sums, kind).T.ravel()
    return flat if flat.size > 1 else int(flat[0])


def summed_in_cells(
    rows: Rows,
    keys: tuple[Axis, ...],
    schema: Schema,
    largest: int,
    added: Callable[[Values], Iterable[Any]],
) -> NDArray[np.int64]:
    """Return the sums of each number, for every cell.

    ``added`` gives some whole numbers for each row, or one for all, of at most this size.
    """
    shape = table_shape(keys, schema)
    cells = math.prod(shape)
    # whole numbers add up exactly as floats while no sum of a block can exceed 2^52
    size = min(EXACT_FLOATS // largest, max(BLOCK, cells))
    sums: list[Any] = []
    for values, number in rows.blocks(size):
        index = cells_of(values, keys, shape, schema) if shape else None
        block_sums = [_summed(column, number, index, cells) for column in added(values)]
        sums = sums or [np.zeros(cells, dtype=np.int64) for _ in block_sums]
        sums = [total + part for total, part in zip(sums, block_sums, strict=True)]
    return np.stack(sums)


def cells_of(
    values: Values, keys: tuple[Axis, ...], shape: tuple[int, ...], schema: Schema
) -> NDArray[Any]:
    """Return the number of the cell of every row; the number of cells where it is in none."""
    cells: Any = 0
    outside: Any = False
    for key, size in zip(keys, shape, strict=True):
        index = key.index(values[key.column], schema)
        if index.min(initial=0) < 0:
            outside = outside | (index < 0)
        cells = index if isinstance(cells, int) else cells * size + index
    return cells if outside is False else np.where(outside, math.prod(shape), cells)


def _summed(added: Any, rows: int, index: NDArray[Any] | None, cells: int) -> Any:
    """Return the sums in every cell of whole numbers, one for each row or one for all."""
    if index is None:
        return added * rows if isinstance(added, int) else int(added.sum())
    if isinstance(added, int):
        return added * np.bincount(index, minlength=cells)[:cells]
    return np.bincount(index, added, minlength=cells)[:cells].astype(np.int64)
