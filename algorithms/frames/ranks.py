"""Ranks of the numbers of cells, of which an engine is asked for few counts.

A number moves to a point of a public grid (`ValueGrid`).  A point has 2^16 places, over which equal
numbers are spread in a fixed order (`SPREAD`), so places follow from how many rows are at each
point.  The engine first counts rows in buckets of many points.  Where ranks are asked for, it then
counts the rows at the points of a bucket.

References: docs/proofs/frames.md, section 10.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import narwhals as nw
import numpy as np

from accountant.numerics import Array
from algorithms.frames.cell_sums import cells_of, groups_of
from algorithms.frames.cells import Axis
from algorithms.frames.columns.kinds import whole
from algorithms.frames.rows import Reading
from algorithms.frames.sources import COUNT, grouped, source_of
from algorithms.statistics.quantile_scores import (
    PLACE_BITS,
    SPREAD,
    IndexArray,
    SortedPlaces,
    ValueGrid,
)

MOST_BUCKETS = 2**14  # of all cells
FEW_BUCKETS = 2**6  # of which the points are asked for by name; of more all points are
FEW_ROWS = 2**12  # of which all points are asked for at once
PLACES = 1 << PLACE_BITS  # places of one point of the grid


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
        self._keys, self._schema, self._cells, self._points = keys, reading.schema, cells, grid.points
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
        at, index = np.unique(
            np.append(self._at, cell * self._points + point), return_inverse=True
        )
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
