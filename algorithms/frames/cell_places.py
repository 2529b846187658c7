"""The query of private quantiles: the numbers of each cell's rows, as places of a public grid.

The rows of a frame are sorted into cells by the labels or bins of some columns, the keys.  In every
cell the quantiles of one column of numbers are sought, level by level of a tree.  A number moves to
the nearest point of a grid; a place is a point with one of its finer steps, so that equal numbers
have different places.  The mechanism draws a place by its score, which says how far its rank is
from the quantile's.

References: Kaplan, Schnapp & Stemmer (2022); docs/proofs/frames.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from accountant.numerics import Array
from algorithms.frames.cells import Axis, table_shape
from algorithms.frames.columns.dates import Date
from algorithms.frames.columns.numbers import Integer
from algorithms.frames.conditions import Condition
from algorithms.frames.ranks import CellRanks, RankedPlaces
from algorithms.frames.rows import Reading
from algorithms.frames.schema import Schema
from algorithms.statistics.quantile_ends import EndPart, end_scores
from algorithms.statistics.quantile_scores import Part, ValueGrid, part_scores


def grid_of(column: str, schema: Schema) -> ValueGrid:
    """Return the points that can be quantiles of a column.

    For whole numbers and dates these are the whole numbers between the column's bounds; for other
    numbers the points of a grid of 2^24 steps.
    """
    kind = schema.kind(column)
    bounds = cast("tuple[float, float]", kind.bounds)  # `QuantileQuery.check` was called
    return ValueGrid.of(*bounds, 1.0 if isinstance(kind, Integer | Date) else None)


class CellPlaces:
    """The private numbers of one question, by cell, and what its releases ask of them.

    The rows are counted at the first request, by the points of the grid; see `CellRanks`.

    Parameters
    ----------
    column : str
        The column of numbers.
    keys : tuple of Axis
        The columns whose labels or bins define the cells.
    where : Condition or None
        Which rows count.
    used : tuple of str
        The columns to read.
    schema : Schema
        What is public of the columns.
    public_rows : bool
        Whether the number of rows is public: then neighbours replace a row.
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
        self._ranks: CellRanks | None = None

    def counted(self, frame: Any) -> NDArray[np.int64] | int:
        """Return the number of rows in every cell, before noise; an int where there is one cell."""
        sizes = self._ranks_of(frame).below_buckets[:, -1]
        return sizes if sizes.size > 1 else int(sizes[0])

    def scores(self, frame: Any, parts: Sequence[Sequence[Part]], scale: float) -> Array:
        """Return the scores of the places in the parts of a level of the tree.

        ``parts`` has a list of parts of the grid for each cell, and ``scale`` is that of the
        mechanism.  The result has the shape (parts, 2, runs), the parts of one cell after those of
        another.  A run is a row of places with equal scores: the score, and how many places.
        """
        # At the root one part holds all rows, whose number is public.
        public_root = self._public_rows and len(parts[0]) == 1
        places_of_cells = self._of(frame)

        def runs_of_parts() -> Array:
            score_runs = [
                part_scores(places, cell_parts, scale, public_root)
                for places, cell_parts in zip(places_of_cells, parts, strict=True)
            ]
            width = max(runs.shape[2] for runs in score_runs)
            # Runs of length 0 pad all parts to the same number of runs.
            return np.concatenate(
                [np.pad(runs, ((0, 0), (0, 0), (0, width - runs.shape[2]))) for runs in score_runs]
            )

        return self._ranks_of(frame).settled(runs_of_parts)

    def end_scores(self, frame: Any, parts: Sequence[Sequence[EndPart]], scale: float) -> Array:
        """Return the scores of places as ends of confidence intervals, in the shape of `scores`."""
        return self._ranks_of(frame).settled(partial(end_scores, self._of(frame), parts, scale))

    def _of(self, frame: Any) -> list[Any]:
        """Return the sorted places of the rows of every cell; private.

        They remain on the engine, and are searched and sliced like arrays.
        """
        ranks, shape = self._ranks_of(frame), table_shape(self._keys, self._schema)
        return [RankedPlaces(ranks, cell) for cell in range(math.prod(shape))]

    def _ranks_of(self, frame: Any) -> CellRanks:
        """Return what is asked of the engine of the frame; private."""
        if self._ranks is None:
            cells = math.prod(table_shape(self._keys, self._schema))
            grid = grid_of(self._column, self._schema)
            reading = Reading(self._used, self._where, self._schema)
            self._ranks = CellRanks(frame, reading, self._keys, cells, self._column, grid)
        return self._ranks
