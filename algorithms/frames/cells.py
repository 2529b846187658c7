"""Cells of a table of counts or sums: one label or bin of each column that rows are sorted by.

Labels and edges of bins are public: they are given with the schema or the question, or were
released before, and are never looked up in the rows.  An `Axis` is one such column.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, final

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from accountant.domains import REAL, IntegerRange
from accountant.errors import ParameterError
from algorithms.frames.columns.dates import (
    MONTHS,
    PERIODS,
    Date,
    checked_date,
    date_of,
    days_since,
)
from algorithms.frames.formulas import months_of
from algorithms.frames.schema import Schema

MOST_CELLS = 2**24  # of a table, and so also bins of a column
BINS = IntegerRange(1, MOST_CELLS)
MOST_EDGES = 2**12  # that are listed: an engine compares each row with each of them
Bins = int | str | tuple[float, ...] | tuple[dt.date, ...] | None


@final
@dataclass(frozen=True, slots=True)
class Axis:
    """A column that rows are sorted by, with bins if it is one of numbers or dates.

    Parameters
    ----------
    column : str
        Name of the column.
    bins : int, tuple of float or datetime.date, str or None
        For numbers, how many bins of equal width lie between the public bounds, or the rising edges
        of the bins.  For dates, a period of the calendar such as "month", or the edges.  None for
        labels.
    """

    column: str
    bins: Bins = None

    def __str__(self) -> str:
        # With the bins: a book takes questions of the same words for one question.
        if self.bins is None:
            return self.column
        bins = self.bins if isinstance(self.bins, tuple) else (self.bins,)
        return f"{self.column} (bins {', '.join(map(str, bins))})"

    def edges(self, schema: Schema) -> tuple[float, ...]:
        """Return the rising edges of the bins, one more than bins; an empty tuple for labels.

        Those of dates are days since 1970: the first days of the bins, and the day after the last
        one.
        """
        kind = schema.kind(self.column)
        if kind.bounds is None:
            if self.bins is not None:
                raise ParameterError("bins", self.bins, f"None: {self.column!r} has labels")
            return ()
        if isinstance(kind, Date):
            return self._edges_of_dates(kind)
        if self.bins is None:
            allowed = (
                "a Category or a Flag; of numbers histogram(column, bins=...) counts bins, and "
                f"by={{{self.column!r}: 10}} has ten of them"
            )
            raise ParameterError(f"column {self.column!r}", kind, allowed)
        if isinstance(self.bins, int):
            return tuple(np.linspace(*kind.bounds, self.bins + 1).tolist())
        if isinstance(self.bins, str) or isinstance(self.bins[0], dt.date):
            allowed = f"a number of bins, or a list of numbers: {self.column!r} has no dates"
            raise ParameterError("bins", self.bins, allowed)
        bin_edges = self.bins
        if bin_edges[-1] <= kind.bounds[0] or bin_edges[0] >= kind.bounds[1]:
            low, high = kind.bounds
            allowed = f"within the bounds of {self.column!r}, {low:g} .. {high:g}"
            raise ParameterError("bins", self.bins, allowed)
        return bin_edges

    def _edges_of_dates(self, kind: Date) -> tuple[float, ...]:
        dates = isinstance(self.bins, tuple) and isinstance(self.bins[0], dt.date)
        if not dates and not isinstance(self.bins, str):
            allowed = (
                f"{PERIODS}, or a list of dates, as in histogram({self.column!r}, bins='month') "
                f"and by={{{self.column!r}: 'month'}}"
            )
            raise ParameterError("bins", self.bins, allowed)
        return kind.edges(self.bins)

    def size(self, schema: Schema) -> int:
        """Return the number of labels or bins."""
        edges = self.edges(schema)
        return len(edges) - 1 if edges else len(schema.kind(self.column).labels)

    def group(self, value: nw.Expr, schema: Schema) -> nw.Expr:
        """Return what an engine groups rows by: labels, or the index of a bin.

        Rows of one cell have one group, as what a person may move is counted in groups.  Bins are
        half-open, [edge i, edge i + 1); the last one contains its upper edge too.  A number or a
        date in no bin has the index -1.
        """
        kind, edges = schema.kind(self.column), self.edges(schema)
        if not edges:
            return value
        if isinstance(kind, Date) and isinstance(self.bins, str):
            return period_between(value, self.bins, kind.low)
        if isinstance(self.bins, int):
            return bin_of_one_width(value, edges[0], edges[-1], self.bins)
        last = edges[-1] - 1 if isinstance(kind, Date) else edges[-1]
        outside = (value < edges[0]) | (value > last)
        return nw.when(outside).then(nw.lit(-1)).otherwise(bin_between(value, edges, 0))

    def index(self, groups: NDArray[Any], schema: Schema) -> NDArray[np.intp]:
        """Return the index of the label or bin of each group; -1 where it is in none."""
        kind = schema.kind(self.column)
        if kind.bounds is not None:
            return groups.astype(np.intp)
        code = {text: i for i, text in enumerate(kind.texts)}
        return np.array([code.get(group, -1) for group in groups.tolist()], dtype=np.intp)

    def shown(self, index: NDArray[np.intp], schema: Schema) -> dict[str, list[Any]]:
        """Return the columns that name cells of these indices in a frame of answers.

        One column of labels, or two with the ends of bins; of dates, the first and the last day.
        """
        edges = self.edges(schema)
        if not edges:
            labels = schema.kind(self.column).labels
            return {self.column: [labels[i] for i in index.tolist()]}
        edge_array = np.array(edges)
        low, high = edge_array[index].tolist(), edge_array[index + 1].tolist()
        if isinstance(schema.kind(self.column), Date):  # both days belong to the bin
            low, high = [date_of(day) for day in low], [date_of(day - 1) for day in high]
        return {f"{self.column}_from": low, f"{self.column}_to": high}


def bin_of_one_width(value: nw.Expr, low: float, high: float, bins: int) -> nw.Expr:
    """Return the index of the bin of numbers from ``low`` to ``high``, of bins of one width.

    The quotient may round into the neighbouring bin, so numbers are then compared with the edges,
    which are computed as `numpy.linspace` does.
    """
    width, top = (high - low) / bins, bins - 1
    index = ((value - low) * (bins / (high - low))).floor().clip(0.0, float(top))
    upper = (index + 1) * width + low
    below, above = value < index * width + low, (value >= upper) & (index < top)
    corrected = nw.when(below).then(index - 1).when(above).then(index + 1).otherwise(index)
    return corrected.cast(nw.Int64)


def period_between(days: nw.Expr, period: str, first: str) -> nw.Expr:
    """Return how many periods of the calendar lie between that of a first date and that of days."""
    start = dt.date.fromisoformat(first)
    if period in MONTHS:
        number = (months_of(days) / MONTHS[period]).floor()
        first_number = (start.year * 12 + start.month - 1) // MONTHS[period]
    elif period == "week":  # which begins on Monday, as that of 1970-01-01 did three days before
        number, first_number = ((days + 3) / 7).floor(), int(days_since(start) + 3) // 7
    else:
        number, first_number = days, int(days_since(start))
    return (number - first_number).cast(nw.Int64)


def bin_between(value: nw.Expr, edges: Sequence[float], first: int) -> nw.Expr:
    """Return the index of the bin between some edges, counted from ``first`` on, by halves."""
    if len(edges) <= 2:
        return nw.lit(first)
    half = len(edges) // 2
    lower = bin_between(value, edges[: half + 1], first)
    upper = bin_between(value, edges[half:], first + half)
    return nw.when(value < edges[half]).then(lower).otherwise(upper)


def checked_bins(bins: object) -> Bins:
    """Return the checked number of bins, their edges, or a period of the calendar; None stays.

    Edges must be numbers, or dates as such or as text, and rise strictly.
    """
    if bins is None:
        return None
    if isinstance(bins, str):
        return PERIODS.check("bins", bins)
    if isinstance(bins, Iterable):
        listed = list(bins)
        dates = any(isinstance(edge, str | dt.date) for edge in listed)
        check: Callable[[str, Any], Any] = checked_date if dates else REAL.check
        edges = tuple(check("bins", edge) for edge in listed)
        if len(edges) > MOST_EDGES:
            allowed = (
                f"{MOST_EDGES:,} edges at most: bins=10 are ten of one width, bins='day' are days"
            )
            raise ParameterError("bins", f"{len(edges):,} edges", allowed)
        if len(edges) < 2 or any(a >= b for a, b in pairwise(edges)):
            raise ParameterError("bins", edges, "rising edges, two at least")
        return edges
    return BINS.check("bins", bins)


def keys_of(columns: object, argument: str = "by") -> tuple[Axis, ...]:
    """Return the axes of one column's name, a list of distinct names, or a dict of names and bins.

    ``argument`` is the name of the argument in error messages.
    """
    if isinstance(columns, Mapping):
        bins = tuple(checked_bins(column_bins) for column_bins in columns.values())
        named = keys_of(list(columns), argument)
        return tuple(
            Axis(key.column, column_bins) for key, column_bins in zip(named, bins, strict=True)
        )
    names = [columns] if isinstance(columns, str) else columns
    allowed = "the name of a column, a list of distinct names, or a dict of names with bins"
    if not isinstance(names, Sequence) or len(set(map(repr, names))) < len(names):
        raise ParameterError(argument, columns, allowed)
    if not all(isinstance(name, str) for name in names):
        raise ParameterError(argument, columns, allowed)
    return tuple(Axis(name) for name in names)


def shape_of_sums(numbers: int) -> tuple[int, ...]:
    """Return the shape of ``numbers`` sums: a single sum is a number, without an axis."""
    return (numbers,) if numbers > 1 else ()


def table_shape(keys: Iterable[Axis], schema: Schema) -> tuple[int, ...]:
    """Return the number of labels or bins of every axis; their product is at most `MOST_CELLS`."""
    shape = tuple(key.size(schema) for key in keys)
    if np.prod(shape, dtype=float) > MOST_CELLS:
        raise ParameterError("by", shape, f"keys of at most {MOST_CELLS:,} cells in all")
    return shape
