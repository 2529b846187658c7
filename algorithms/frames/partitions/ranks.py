"""Quantiles of numbers that lie on workers: few places around each quantile are brought here.

A number moves to a point of a public grid (`ValueGrid`).  A point has 2^16 places, over which equal
numbers are spread in a fixed order (`SPREAD`).  Workers hold how many rows of a cell are at each
point.  They are asked how many rows lie below some points, until the points of a window of ranks
are known; then for the counts at the points of the window.  Places follow from these counts.

References: docs/proofs/frames.md, section 10.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np

from accountant.ledger.frames import is_lazy
from accountant.numerics import Array
from algorithms.frames.partitions.reduction import (
    Quiet,
    Reading,
    added_up,
    checked,
    reduced,
    tasks_of,
)
from algorithms.statistics.quantile_scores import (
    PLACE_BITS,
    SPREAD,
    IndexArray,
    SortedPlaces,
    ValueGrid,
)

MOST_ASKED = 2**13  # points in one question to workers, about
TABLES = 16  # joined tables that stay with the workers, at most
PLACES = 1 << PLACE_BITS  # places of one point of the grid
Question = Callable[["PointCounts"], Any]
# A function that asks: it takes a question to tables of points, and what joins two answers, and
# returns the answer of all tables.
Asking = Callable[[Question, Callable[[Any, Any], Any]], Any]


class PointCounts(NamedTuple):
    """How many rows are at points of the grid, by cell and by point, both ascending."""

    cells: IndexArray
    points: IndexArray
    counts: IndexArray

    def below(self, cells: IndexArray, points: IndexArray) -> IndexArray:
        """Return how many rows of each cell lie below each point."""
        ends = np.append(0, np.cumsum(self.counts))
        starts = np.searchsorted(self.cells, cells, side="left")
        stops = np.searchsorted(self.cells, cells, side="right")
        counts_below = np.empty(cells.size, dtype=np.int64)
        for cell in np.unique(cells):
            in_cell = cells == cell
            start, stop = starts[in_cell][0], stops[in_cell][0]
            index = start + np.searchsorted(self.points[start:stop], points[in_cell])
            counts_below[in_cell] = ends[index] - ends[start]
        return counts_below

    def within(self, cells: IndexArray, lows: IndexArray, highs: IndexArray) -> PointCounts:
        """Return the points of each cell from its ``lows`` to its ``highs``, as one table.

        In place of the cell the table has the number of the question, its index in ``cells``.
        """
        windows = []
        for at, (cell, low, high) in enumerate(zip(cells, lows, highs, strict=True)):
            start, stop = np.searchsorted(self.cells, [cell, cell + 1])
            begin, end = start + np.searchsorted(self.points[start:stop], [low, high + 1])
            window = slice(begin, end)
            question_numbers = np.full(end - begin, at)
            windows.append(PointCounts(question_numbers, self.points[window], self.counts[window]))
        return PointCounts(*map(np.concatenate, zip(*windows, strict=True)))

    def joined(self, other: PointCounts) -> PointCounts:
        """Return the counts of the rows of both tables together."""
        cells, points = (np.append(a, b) for a, b in zip(self[:2], other[:2], strict=True))
        order = np.lexsort((points, cells))
        cells, points = cells[order], points[order]
        new = np.append(True, (cells[1:] != cells[:-1]) | (points[1:] != points[:-1]))
        new = new[: cells.size]
        counts = np.append(self.counts, other.counts)[order]
        summed = np.add.reduceat(counts, np.flatnonzero(new)) if counts.size else counts
        return PointCounts(cells[new], points[new], summed)


def counted_points(rows: Any, numbers: Callable[[Any], list[Array]], grid: ValueGrid) -> Any:
    """Return how many of the rows that count are at each point, by cell."""
    column_counts = []
    for cell, column in enumerate(numbers(rows)):
        points, counts = np.unique(grid.points_of(column), return_counts=True)
        column_counts.append(PointCounts(np.full(points.size, cell), points, counts))
    return PointCounts(*map(np.concatenate, zip(*column_counts, strict=True)))


def asking_workers(frame: Any, reading: Reading, work: Callable[[Any], Any]) -> Asking:
    """Return what asks tables of points that stay with the workers of a Dask frame."""
    import dask

    tables = tasks_of(frame, reading, work)
    join = dask.delayed(Quiet(partial(reduce, PointCounts.joined)))
    # Few joined tables need few tasks for each question.
    groups = [tables[at::TABLES] for at in range(min(TABLES, len(tables)))]
    joined_tables = dask.persist(*map(join, groups))

    def ask(question: Question, add: Callable[[Any, Any], Any]) -> Any:
        task = dask.delayed(Quiet(question))
        return checked(dask.compute(added_up([task(table) for table in joined_tables], add))[0])

    return ask


def asking_here(frame: Any, reading: Reading, work: Callable[[Any], Any]) -> Asking:
    """Return what asks the one table of points of a lazy frame, which is in memory here."""
    table = reduced(frame, reading, work, PointCounts.joined)
    return lambda question, add: question(table)


class PointRanks:
    """The ranks of numbers of cells, of which tables of points are asked by ``ask``."""

    def __init__(self, ask: Asking) -> None:
        self._ask = ask

    def below(self, cells: IndexArray, points: IndexArray) -> IndexArray:
        """Return how many rows of cells lie below points."""
        batch_counts = [
            self._ask(
                partial(PointCounts.below, cells=cells[batch], points=points[batch]), operator.add
            )
            for batch in (slice(at, at + MOST_ASKED) for at in range(0, cells.size, MOST_ASKED))
        ]
        return np.concatenate([np.zeros(0, dtype=np.int64), *batch_counts])

    def below_places(self, cells: IndexArray, places: IndexArray) -> IndexArray:
        """Return how many rows of cells lie below places."""
        points, offsets = places >> PLACE_BITS, places & (PLACES - 1)
        counts_below = self.below(np.tile(cells, 2), np.append(points, points + 1))
        below_point, below_next = counts_below[: cells.size], counts_below[cells.size :]
        # of the rows at the point itself, those at lower places of it
        tied = [
            ties_below(int(ties), int(offset)) if offset and ties else 0
            for ties, offset in zip(below_next - below_point, offsets, strict=True)
        ]
        return below_point + np.array(tied, dtype=np.int64)

    def points_of_ranks(
        self, cells: IndexArray, ranks: IndexArray, low: IndexArray, high: IndexArray
    ) -> IndexArray:
        """Return the points of the rows of some ranks, that lie from ``low`` to ``high``."""
        low, high = low.copy(), high.copy()
        # Bisection in many parts: each question cuts every range that has several points at equal
        # distances, and keeps the part in which the row lies.
        while (active := np.flatnonzero(low < high)).size:
            steps = max(2, MOST_ASKED // active.size)
            width = -(-(high[active] - low[active] + 1) // steps)
            edges = low[active, None] + np.arange(1, steps) * width[:, None]
            edges = np.minimum(edges, high[active, None] + 1)
            repeated_cells = np.repeat(cells[active], steps - 1)
            counts_below = self.below(repeated_cells, edges.ravel()).reshape(edges.shape)
            # The point of rank r is the last point with at most r rows below it.
            at = (counts_below <= ranks[active, None]).sum(axis=1)
            borders = np.column_stack([low[active], edges, high[active] + 1])
            ranges = np.arange(active.size)
            low[active], high[active] = borders[ranges, at], borders[ranges, at + 1] - 1
        return low

    def places(
        self,
        cells: IndexArray,
        first: IndexArray,
        last: IndexArray,
        low: IndexArray,
        high: IndexArray,
    ) -> list[IndexArray]:
        """Return the places of the ranks from ``first`` to before ``last`` of cells.

        They lie at points from ``low`` to ``high``.
        """
        end_ranks = np.append(first, last - 1), np.tile(low, 2), np.tile(high, 2)
        points = self.points_of_ranks(np.tile(cells, 2), *end_ranks)
        begins, ends = points[: cells.size], points[cells.size :]
        rows_before = self.below(cells, begins)
        question = partial(PointCounts.within, cells=cells, lows=begins, highs=ends)
        between = self._ask(question, PointCounts.joined)
        places = []
        for at in range(cells.size):
            in_cell = slice(*np.searchsorted(between.cells, [at, at + 1]))
            window = int(first[at] - rows_before[at]), int(last[at] - rows_before[at])
            places.append(tied_places(between.points[in_cell], between.counts[in_cell], *window))
        return places


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


class WorkerPlaces(SortedPlaces):
    """The sorted places of the numbers of a cell, which workers hold."""

    def __init__(self, ranks: PointRanks, cell: int, points: int) -> None:
        self._ranks, self._cell, self._points = ranks, cell, points

    def searchsorted(self, places: Any, side: str = "left", sorter: Any = None) -> IndexArray:
        """Return how many numbers lie below each place."""
        del side, sorter
        queries = np.asarray(places, dtype=np.int64)
        return self._ranks.below_places(np.full(queries.size, self._cell), queries)

    def __getitem__(self, ranks: slice) -> IndexArray:
        """Return the places of some ranks."""
        if ranks.stop <= ranks.start:
            return np.zeros(0, dtype=np.int64)
        bounds = self._cell, ranks.start, ranks.stop, 0, self._points - 1
        return self._ranks.places(*(np.array([bound], dtype=np.int64) for bound in bounds))[0]


def places_of_cells(
    frame: Any,
    reading: Reading,
    numbers: Callable[[Any], list[Array]],
    grid: ValueGrid,
    cells: int,
) -> list[WorkerPlaces]:
    """Return the places of the numbers of every cell, of which workers hold the points."""
    work = partial(counted_points, numbers=numbers, grid=grid)
    ranks = PointRanks((asking_here if is_lazy(frame) else asking_workers)(frame, reading, work))
    return [WorkerPlaces(ranks, cell, grid.points) for cell in range(cells)]
