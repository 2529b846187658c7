"""The numbers of the rows of every cell, as places of a grid: what quantiles are sought among.

References: Kaplan, Schnapp & Stemmer (2022); docs/proofs/frames.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from accountant.ledger.frames import is_lazy, is_partitioned
from accountant.numerics import Array
from algorithms.frames.bases import Count
from algorithms.frames.cells import Axis, table_shape
from algorithms.frames.columns.dates import Date
from algorithms.frames.columns.numbers import Integer
from algorithms.frames.conditions import Condition
from algorithms.frames.schema import Schema
from algorithms.statistics.quantile_ends import EndPart, end_scores
from algorithms.statistics.quantile_scores import IndexArray, Part, ValueGrid, part_scores


def grid_of(column: str, schema: Schema) -> ValueGrid:
    """Return the points that can be quantiles of a column; of whole numbers those."""
    kind = schema.kind(column)
    bounds = cast("tuple[float, float]", kind.bounds)  # `QuantileQuery.check` was called
    return ValueGrid.of(*bounds, 1.0 if isinstance(kind, Integer | Date) else None)


class CellPlaces:
    """What the releases of a question read: the rows are read and sorted once.

    Parameters
    ----------
    column : str
        The column of numbers.
    keys : tuple of Axis
        What rows are sorted by into cells.
    where : Condition or None
        Which rows count.
    used : tuple of str
        The columns to read.
    schema : Schema
        What is public of them.
    public_rows : bool
        Whether the number of rows is public.
    """

    def __init__(
        self,
        column: str,
        keys: tuple[Axis, ...],
        where: Condition | None,
        used: tuple[str, ...],
        schema: Schema,
        public_rows: bool,
    ) -> None:
        self._column, self._keys, self._where, self._used = column, keys, where, used
        self._schema, self._public_rows = schema, public_rows
        self._places: list[IndexArray] | None = None

    def counted(self, frame: Any) -> NDArray[np.int64] | int:
        """Return the number of rows in every cell, before noise; an int where there is one."""
        if is_partitioned(frame) or is_lazy(frame):
            from algorithms.frames.cell_sums import cell_sums
            from algorithms.frames.partitions.reduction import Reading, reduced

            work = partial(
                cell_sums,
                statistic=Count(None),
                keys=self._keys,
                schema=self._schema,
                kind="laplace",
            )
            counts: NDArray[np.int64] | int
            counts = reduced(frame, Reading(self._used, self._where, self._schema), work)
            return counts
        sizes = np.array([places.size for places in self._of(frame)])
        return sizes if sizes.size > 1 else int(sizes[0])

    def scores(self, frame: Any, parts: Sequence[Sequence[Part]], scale: float) -> Array:
        """Return the scores of a level of the tree: (parts, 2, runs), a cell after another."""
        public_root = self._public_rows and len(parts[0]) == 1
        score_runs = [
            part_scores(places, cell_parts, scale, public_root)
            for places, cell_parts in zip(self._of(frame), parts, strict=True)
        ]
        width = max(runs.shape[2] for runs in score_runs)
        # Runs of length 0 are padding.
        filled = [np.pad(runs, ((0, 0), (0, 0), (0, width - runs.shape[2]))) for runs in score_runs]
        return np.concatenate(filled)

    def end_scores(self, frame: Any, parts: Sequence[Sequence[EndPart]], scale: float) -> Array:
        """Return the scores of ends of intervals: (parts, 2, runs), a cell after another."""
        return end_scores(self._of(frame), parts, scale)

    def _of(self, frame: Any) -> list[IndexArray]:
        if self._places is None:
            from algorithms.frames.partitions.reduction import Reading

            grid = grid_of(self._column, self._schema)
            reading = Reading(self._used, self._where, self._schema)
            if is_partitioned(frame) or is_lazy(frame):
                from algorithms.frames.partitions.ranks import places_of_cells

                cells = math.prod(table_shape(self._keys, self._schema))
                # These objects are searched and sliced like arrays.
                worker_places: Any = places_of_cells(frame, reading, self._numbers, grid, cells)
                self._places = worker_places
            else:
                self._places = [
                    grid.places_of(column) for column in self._numbers(reading.of(frame))
                ]
        return self._places

    def _numbers(self, rows: Any) -> list[Array]:
        """Return the numbers of the rows that count in every cell, clipped; private."""
        from algorithms.frames.cell_sums import cells_of

        values, _ = rows.kept()
        shape, column = table_shape(self._keys, self._schema), values[self._column]
        if not shape:
            return [column]
        index = cells_of(values, self._keys, shape, self._schema)
        order = np.argsort(index, kind="stable")
        ends = np.searchsorted(index[order], np.arange(math.prod(shape) + 1))
        return np.split(column[order], ends)[1:-1]
