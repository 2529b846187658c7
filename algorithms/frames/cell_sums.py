"""Exact sums over the rows of a data frame in every cell of a table, before noise is added.

A statistic turns each row into a few whole numbers (a mean, for example, into 1 and the value in
whole steps).  The engine of the frame adds them up by the labels and bins of the keys, and here
they are put into the cells of the table.  Sums of whole numbers have no round-off, so their
sensitivity is exactly the proved one.

References: Casacuberta, Shoemate, Vadhan & Wagaman (2022); docs/proofs/frames.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from algorithms.frames.bases import Persons, Statistic
from algorithms.frames.cells import Axis, table_shape
from algorithms.frames.rows import Reading
from algorithms.frames.schema import Schema
from algorithms.frames.sources import COUNT, Source, grouped, once_a_person, source_of

TOGETHER = 32  # sums that an engine makes at once, as engines in memory hold what rows add to each


def cell_sums(
    frame: Any, reading: Reading, statistic: Statistic, keys: tuple[Axis, ...], kind: str
) -> Any:
    """Return the sums of the statistic: all of the first cell, then all of the second, and so on.

    ``kind`` is the noise that will be added, "laplace" or "gaussian", for which a statistic may sum
    other numbers.  A single sum is returned as an int.
    """
    if isinstance(statistic, Persons):
        counts = persons_in_cells(frame, reading, keys)
        return counts if counts.size > 1 else int(counts[0])
    column, weights = (
        None if name is None else reading.values[name]
        for name in (statistic.column, statistic.weight)
    )
    contributions = statistic.row_numbers(column, weights, reading.schema, kind)
    # Of a mean, say, the contributions are 1 and t.  From their sums `mixed` makes those of 1 - t
    # and t, which are the basis.
    sums = summed_in_cells(frame, reading, keys, contributions)
    mixed = sums if statistic.weight is not None else statistic.mixed(sums, kind)
    cell_values = mixed.T.ravel()
    return cell_values if cell_values.size > 1 else int(cell_values[0])


def summed_in_cells(
    frame: Any, reading: Reading, keys: tuple[Axis, ...], contributions: Iterable[Any]
) -> NDArray[np.int64]:
    """Return the sums of all contributions: a row for each number that rows add, in every cell.

    A contribution is an expression, a whole number in each row, or an int that every row adds.
    """
    groups = groups_of(keys, reading)
    parts, source = list(contributions), source_of(frame, reading._replace(groups=groups))
    numbers = {f"s{i}": part for i, part in enumerate(parts) if not isinstance(part, int)}
    totals: dict[str, NDArray[np.int64]] = {}
    for start in range(0, max(1, len(numbers)), TOGETHER):
        batch = dict(list(numbers.items())[start : start + TOGETHER])
        query = partial(grouped, groups=groups, sums=batch)
        totals.update(in_cells(source.then(query), keys, reading.schema))
    rows = totals[COUNT]
    return np.stack([totals.get(f"s{i}", rows * (parts[i] if isinstance(parts[i], int) else 1))
                     for i in range(len(parts))])  # fmt: skip


def persons_in_cells(frame: Any, reading: Reading, keys: tuple[Axis, ...]) -> NDArray[np.int64]:
    """Return how many persons have a row in each cell, of the rows that count."""
    groups = groups_of(keys, reading)
    once = partial(once_a_person, groups=groups, schema=reading.schema)
    same = {name: nw.col(name) for name in groups}
    source = source_of(frame, reading._replace(groups=groups))
    pairs = source.then(once).then(partial(grouped, groups=same, sums={}))
    return in_cells(pairs, keys, reading.schema)[COUNT]


def groups_of(keys: Iterable[Axis], reading: Reading) -> dict[str, nw.Expr]:
    """Return what an engine groups rows by."""
    values = reading.values
    return {f"g{i}": k.group(values[k.column], reading.schema) for i, k in enumerate(keys)}


def in_cells(
    totals: Source, keys: tuple[Axis, ...], schema: Schema
) -> dict[str, NDArray[np.int64]]:
    """Return the columns of totals of groups, added up in every cell of the table."""
    columns = totals.columns()
    shape = table_shape(keys, schema)
    index = cells_of(columns, keys, schema)
    cell_totals = {}
    for name in columns.keys() - {f"g{i}" for i in range(len(keys))}:
        cell_totals[name] = np.zeros(math.prod(shape) + 1, dtype=np.int64)
        np.add.at(cell_totals[name], index, columns[name].astype(np.int64))
        cell_totals[name] = cell_totals[name][:-1]
    return cell_totals


def cells_of(
    columns: Mapping[str, NDArray[Any]], keys: tuple[Axis, ...], schema: Schema
) -> NDArray[np.int64]:
    """Return the index of the cell of every group, in C order of the table's shape.

    A group that is in no bin of some key has the index one beyond the last cell.
    """
    shape, rows = table_shape(keys, schema), len(next(iter(columns.values())))
    cells, outside = np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=bool)
    for i, (key, size) in enumerate(zip(keys, shape, strict=True)):
        index = key.index(columns[f"g{i}"], schema)
        outside |= index < 0
        cells = cells * size + index
    return np.where(outside, math.prod(shape), cells)
