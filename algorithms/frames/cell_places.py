"""The query of private quantiles: the numbers of each cell's rows, as places of a public grid.

The rows of a frame are sorted into cells by the labels or bins of some columns, the keys.  In every
cell the quantiles of one column of numbers are sought, level by level of a tree.  A number moves to
the nearest point of a grid; a place is a point with one of its 2^16 finer steps, over which equal
numbers are spread in a fixed order (`SPREAD`).  The mechanism draws a place by its score, which
says how far its rank is from the quantile's.

So places follow from how many rows are at each point, and the engine of the frame is asked for few
of these counts (`CellRanks`): first for the rows in buckets of many points, then, where ranks are
sought, for the rows at the points of a bucket.

References: Kaplan, Schnapp & Stemmer (2022); docs/proofs/frames.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from accountant.numerics import Array
from algorithms.frames.cell_sums import cells_of, groups_of
from algorithms.frames.cells import Axis, table_shape
from algorithms.frames.columns.dates import Date
from algorithms.frames.columns.kinds import whole
from algorithms.frames.columns.numbers import Integer
from algorithms.frames.conditions import Condition
from algorithms.frames.rows import Reading
from algorithms.frames.schema import Schema
from algorithms.frames.sources import COUNT, grouped, source_of
from algorithms.statistics.quantile_ends import EndPart, end_scores
from algorithms.statistics.quantile_scores import (
    PLACE_BITS,
    SPREAD,
    IndexArray,
    Part,
    SortedPlaces,
    ValueGrid,
    part_scores,
)

MOST_BUCKETS = 2**14  # of all cells
FEW_BUCKETS = 2**6  # of which the points are asked for by name; of more all points are
FEW_ROWS = 2**12  # of which all points are asked for at once
PLACES = 1 << PLACE_BITS  # places of one point of the grid


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


class CellRanks:
    """How many rows of each cell lie below points of the grid.

    Parameters
    ----------
    frame : data frame
        The rows, on any engine.
    reading : Reading
        Which rows count.
    keys : tuple of Axis
        What rows are sorted by into cells.
    cells : int
        How many cells there are.
    column : str
        The column of numbers.
    grid : ValueGrid
        The points.
    """

    def __init__(
        self,
        frame: Any,
        reading: Reading,
        keys: tuple[Axis, ...],
        cells: int,
        column: str,
        grid: ValueGrid,
    ) -> None:
        self._keys, self._schema, self._cells, self._points = (
            keys,
            reading.schema,
            cells,
            grid.points,
        )
        self._bits = 0
        while (grid.points >> self._bits) * cells > MOST_BUCKETS:
            self._bits += 1
        self._groups = groups_of(keys, reading)
        steps = whole((reading.values[column] - grid.lower) / grid.step)
        point = steps.clip(0.0, grid.points - 1.0).cast(nw.Int64)
        columns = {**self._groups, "point": point}
        self._rows = source_of(frame, reading).then(lambda rows: rows.select(**columns)).kept()
        bucket = nw.col("point") // (1 << self._bits)
        cell, buckets, counts = self._totals(bucket, None)
        size = (grid.points - 1 >> self._bits) + 2
        below = np.zeros((cells, size), dtype=np.int64)
        np.add.at(below, (cell, buckets + 1), counts)
        # Rows of a cell in the buckets before each one; the last number is that of all rows.
        self.below_buckets: IndexArray = np.cumsum(below, axis=1)
        self._known = np.zeros(size - 1, dtype=bool)
        self._wanted: set[int] = set()
        self._at = np.zeros(0, dtype=np.int64)  # cells and points that have rows, as one number
        self._counts = np.zeros(0, dtype=np.int64)
        self._ends = np.zeros(1, dtype=np.int64)

    def _totals(
        self, point: nw.Expr, among: list[int] | None
    ) -> tuple[IndexArray, IndexArray, IndexArray]:
        """Return cells, points and the numbers of their rows; in the buckets ``among``, or all."""

        def query(rows: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
            if among is not None:
                rows = rows.filter((nw.col("point") // (1 << self._bits)).is_in(among))
            same = {name: nw.col(name) for name in self._groups}
            return grouped(rows, {**same, "at": point}, {})

        columns = self._rows.then(query).columns()
        cell = cells_of(columns, self._keys, self._schema)
        inside = cell < self._cells
        return cell[inside], columns["at"][inside].astype(np.int64), columns[COUNT][inside]

    def settled(self, ask: Callable[[], Array]) -> Array:
        """Return what a function makes of ranks, after all buckets that it needs were asked for.

        Of buckets that are not known it gets any ranks, and is asked again when they are: so one
        question to the engine serves all cells.
        """
        answer = ask()
        while self._wanted:
            self._know(np.array(sorted(self._wanted)))
            self._wanted.clear()
            answer = ask()
        return answer

    def _know(self, new: IndexArray) -> None:
        """Count the rows at the points of some buckets, of all cells."""
        few = int(self.below_buckets[:, -1].sum()) <= FEW_ROWS
        every = few or new.size > FEW_BUCKETS or self._cells > FEW_BUCKETS
        cell, point, counts = self._totals(nw.col("point"), None if every else new.tolist())
        if every:
            self._at, self._counts = self._at[:0], self._counts[:0]
        self._known[slice(None) if every else new] = True
        at, index = np.unique(np.append(self._at, cell * self._points + point), return_inverse=True)
        summed = np.zeros(at.size, dtype=np.int64)
        np.add.at(summed, index, np.append(self._counts, counts))
        self._at, self._counts, self._ends = at, summed, np.append(0, np.cumsum(summed))

    def _wants(self, buckets: IndexArray) -> None:
        """Note the buckets that are not known."""
        self._wanted.update(buckets[~self._known[buckets]].tolist())

    def below(self, cell: int, points: IndexArray) -> IndexArray:
        """Return how many rows of a cell lie below points."""
        buckets = points >> self._bits
        starts = buckets << self._bits
        self._wants(buckets[starts < points])
        end, start = (np.searchsorted(self._at, cell * self._points + p) for p in (points, starts))
        below: IndexArray = self.below_buckets[cell, buckets] + np.where(
            starts < points, self._ends[end] - self._ends[start], 0
        )
        return below

    def places(self, cell: int, first: int, last: int) -> IndexArray:
        """Return the places of the ranks from ``first`` to before ``last`` of a cell."""
        ends = self.below_buckets[cell]
        low, high = np.searchsorted(ends, [first, last - 1], side="right") - 1
        self._wants(np.arange(low, high + 1))
        if self._wanted:
            return np.zeros(last - first, dtype=np.int64)
        edges = cell * self._points + (np.array([low, high + 1]) << self._bits)
        edges[1] = min(edges[1], (cell + 1) * self._points)
        begin, end = np.searchsorted(self._at, edges)
        points = self._at[begin:end] - cell * self._points
        return tied_places(points, self._counts[begin:end], first - ends[low], last - ends[low])


class RankedPlaces(SortedPlaces):
    """The sorted places of the numbers of a cell, of which the engine has the points."""

    def __init__(self, ranks: CellRanks, cell: int) -> None:
        self._ranks, self._cell = ranks, cell

    def searchsorted(self, places: Any, side: str = "left", sorter: Any = None) -> IndexArray:
        """Return how many numbers lie below each place."""
        del side, sorter
        queries = np.asarray(places, dtype=np.int64)
        points, offsets = queries >> PLACE_BITS, queries & (PLACES - 1)
        below = self._ranks.below(self._cell, np.append(points, points + (offsets > 0)))
        below, below_next = np.split(below, 2)
        # of the rows at the point itself, those at lower places of it
        tied = [
            ties_below(int(ties), int(offset)) if offset and ties else 0
            for ties, offset in zip(below_next - below, offsets, strict=True)
        ]
        return below + np.array(tied, dtype=np.int64)

    def __getitem__(self, ranks: slice) -> IndexArray:
        """Return the places of some ranks."""
        if ranks.stop <= ranks.start:
            return np.zeros(0, dtype=np.int64)
        return self._ranks.places(self._cell, ranks.start, ranks.stop)


def ties_below(ties: int, offset: int) -> int:
    """Return how many of equal numbers lie below an offset among the places of their point."""
    quotient, remainder = divmod(ties, PLACES)
    return quotient * offset + int(np.count_nonzero(SPREAD[1 : remainder + 1] < offset))


def tied_places(points: IndexArray, counts: IndexArray, first: int, last: int) -> IndexArray:
    """Return the sorted places of some ranks of numbers that are counted at points."""
    place_parts = [np.zeros(0, dtype=np.int64)]
    ends = np.cumsum(counts)
    for point, ties, end in zip(points.tolist(), counts.tolist(), ends.tolist(), strict=True):
        start = end - ties
        quotient, remainder = divmod(ties, PLACES)
        if quotient:  # each offset occurs `quotient` times, and the first of SPREAD once more
            at = np.full(PLACES, quotient)
            at[SPREAD[1 : remainder + 1]] += 1
            offsets = np.repeat(np.arange(PLACES), at)
        else:
            offsets = np.sort(SPREAD[1 : remainder + 1])
        place_parts.append((point << PLACE_BITS) + offsets[max(first - start, 0) : last - start])
    return np.concatenate(place_parts)
