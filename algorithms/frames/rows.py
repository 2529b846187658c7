"""Rows as a schema declares them: clipped, with labels as numbers, and cut for each person.

A column is read in two steps.  `raw_column` makes numbers of it: floats with NaN where a value is
missing, or for each row the index of its label.  `declared_values` clips them to the public bounds
and fills gaps, or drops their rows, as the schema says.  Of the rows of a person that are left, the
first ones count (`rows_beyond`).
"""

from __future__ import annotations

import datetime as dt
import math
import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from algorithms.frames.columns.dates import Date
from algorithms.frames.columns.keys import LONGEST_KEY, Key, SelectedKeys
from algorithms.frames.columns.kinds import DROP, ColumnKind
from algorithms.frames.columns.numbers import Integer
from algorithms.frames.conditions import Condition
from algorithms.frames.schema import Schema

NO_LABEL = -1  # the code of a missing value, and of one that is no label of its column
DAY = 86_400_000  # milliseconds
LARGE = 1e290  # the sum of 2^32 such numbers is finite
BLOCK = 2**15  # rows at a time: a block fits into a processor's cache
Values = dict[str, NDArray[Any]]
SURROGATES = re.compile("[\ud800-\udfff]")  # half characters, which are not valid text


class Rows(ABC):
    """Rows that count, as a schema declares them."""

    @abstractmethod
    def kept(self) -> tuple[Values, NDArray[np.intp]]:
        """Return the columns as declared of all rows that count, and the number of each person."""

    @abstractmethod
    def blocks(self, size: int = BLOCK) -> Iterator[tuple[Values, int]]:
        """Yield the columns as declared, and the number, of the rows that count of each block."""


class DeclaredRows(Rows):
    """The rows of a frame that count, in blocks.

    A row counts if it names a person, has a value in every column that is used, fulfils the
    condition, and is one of the first of its person that do so.  All but the last depends on the
    row alone, and the last on the rows of its person alone: other persons do not change the cut.

    Parameters
    ----------
    frame : data frame
        Of pandas, polars or Arrow.
    used : iterable of str
        The columns to read.
    where : Condition or None
        Which rows count.
    schema : Schema
        What is public of the columns.
    """

    def __init__(
        self, frame: Any, used: Iterable[str], where: Condition | None, schema: Schema
    ) -> None:
        table = nw.from_native(frame, eager_only=True)
        self._schema, self._where, self._rows = schema, where, len(table)
        self._columns = {name: raw_column(table[name], schema.kind(name)) for name in used}
        # Rows within the limit of their persons; None if all are.
        self._first: NDArray[np.bool_] | None = None
        self._persons = None
        if schema.person is not None:
            self._persons = persons_of(table, schema.person)
            self._first = self._first_of_persons(self._persons, schema.person)

    def kept(self) -> tuple[Values, NDArray[np.intp]]:
        """Return the columns as declared of all rows that count, and the number of each person."""
        values, persons = self.of_persons()
        return values, persons if isinstance(persons, np.ndarray) else person_numbers(persons)

    def of_persons(self) -> tuple[Values, Any]:
        """Return the columns as declared of all rows that count, and the column of persons.

        Where each row is a person, the places of the rows in place of persons.
        """
        values, keep = self._declared(slice(0, self._rows))
        keep = both(keep, self._first)
        index = np.arange(self._rows) if keep is None else np.flatnonzero(keep)
        counted_values = {name: column[index] for name, column in values.items()}
        name = self._schema.person
        if self._persons is None or name is None:
            return counted_values, index
        return counted_values, self._persons[index][name]

    def blocks(self, size: int = BLOCK) -> Iterator[tuple[Values, int]]:
        """Yield the columns as declared, and the number, of the rows that count of each block.

        They are overwritten by the next block.
        """
        block_rows = min(size, self._rows)
        memory = {name: np.empty(block_rows) for name in self._columns}
        for start in range(0, max(1, self._rows), size):  # of no rows one block
            block = slice(start, min(start + size, self._rows))
            values, keep = self._declared(block, memory)
            if self._first is not None:
                keep = both(keep, self._first[block])
            if keep is None:
                yield values, block.stop - start
            else:
                counted_values = {name: column[keep] for name, column in values.items()}
                yield counted_values, int(np.count_nonzero(keep))

    def _declared(
        self, block: slice, memory: Values | None = None
    ) -> tuple[Values, NDArray[np.bool_] | None]:
        """Return columns as declared, and which rows may count; None if all may."""
        keep: NDArray[np.bool_] | None = None
        values: Values = {}
        for name, column in self._columns.items():
            raw = column[block]
            out = None if memory is None else memory[name][: raw.size]
            values[name], countable = declared_values(raw, self._schema.kind(name), out)
            keep = both(keep, countable)
        if self._where is not None:
            keep = both(keep, self._where.holds(values, self._schema))
        return values, keep

    def _first_of_persons(self, persons: nw.DataFrame[Any], name: str) -> NDArray[np.bool_] | None:
        """Return which rows are among the first of their persons that may count."""
        keep = ~persons[name].is_null().to_numpy()
        for start in range(0, self._rows, BLOCK):
            block = slice(start, min(start + BLOCK, self._rows))
            keep[block] = both(keep[block], self._declared(block)[1])
        rows = None if keep.all() else np.flatnonzero(keep)
        cut = rows_beyond(
            persons if rows is None else persons[rows], name, self._schema.rows_per_person
        )
        if rows is None and not cut.size:
            return None
        keep[cut if rows is None else rows[cut]] = False
        return keep


def persons_of(table: nw.DataFrame[Any], name: str) -> nw.DataFrame[Any]:
    """Return the column of persons; names as texts where it holds objects or categories."""
    persons = table.select(name)
    cells = cells_of_objects(persons[name])
    if cells is not None:
        import pandas as pd

        names = pd.Series(persons_of_objects(cells), dtype=object, name=name)
        return nw.from_native(names.to_frame(), eager_only=True)
    return persons


def both(
    first: NDArray[np.bool_] | None, second: NDArray[np.bool_] | None
) -> NDArray[np.bool_] | None:
    """Return where both masks are True; None stands for a mask that is True everywhere."""
    if first is None or second is None:
        return second if first is None else first
    return first & second


def raw_column(series: nw.Series[Any], kind: ColumnKind) -> NDArray[Any]:
    """Return numbers as floats, NaN where one is missing; or the index of every row's label.

    Private keys are strings instead, empty where one is missing.
    """
    if isinstance(kind, Key):
        return key_strings(series)
    if isinstance(kind, SelectedKeys):
        code_of_label = {str(cell): i for i, cell in enumerate(kind.labels)}
        codes = (code_of_label.get(cell, NO_LABEL) for cell in key_strings(series))
        return np.fromiter(codes, np.intp, len(series))
    if kind.bounds is None:
        return label_codes(series, kind)
    if isinstance(kind, Date):
        return days_of(series)
    if series.implementation.is_pyarrow():
        # A safe cast of Arrow refuses a column that has a whole number beyond 2^53.
        floats: NDArray[Any] = series.to_native().cast("float64", safe=False).to_numpy()
        return floats
    return (series if series.dtype == nw.Float64 else series.cast(nw.Float64)).to_numpy()


def declared_values(
    column: NDArray[Any], kind: ColumnKind, out: NDArray[Any] | None = None
) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """Return a column as declared, and where it has a value; None if it has one everywhere.

    Numbers are written to ``out`` where it is given.
    """
    filled: Any = kind.filled
    if isinstance(kind, Key):
        gap = column == ""
    elif kind.bounds is None:
        gap = column == NO_LABEL
        filled = kind.labels.index(filled) if filled != DROP else filled
    else:
        column = np.clip(column, *kind.bounds, out=out)
        if isinstance(kind, Integer):
            np.rint(column, out=column)
        # One NaN makes the whole sum NaN, and clipped numbers have no infinite sum.  A product
        # would start the threads of BLAS.
        if max(map(abs, kind.bounds)) < LARGE and not math.isnan(column.sum()):
            return column, None
        gap = np.isnan(column)
    if not gap.any():
        return column, None
    return (column, ~gap) if filled == DROP else (np.where(gap, filled, column), None)


def key_strings(series: nw.Series[Any]) -> NDArray[np.object_]:
    """Return private keys as strings, empty where one is missing, empty or too long."""
    keys = np.empty(len(series), dtype=object)
    cells = cells_of_objects(series)
    if cells is None and series.dtype.is_numeric():
        keys[:] = list(map(str, series.to_list()))
        keys[series.is_null().to_numpy()] = ""
        return keys
    # Arrays of strings drop a null byte at the end of a string.
    keys[:] = [
        str(cell) if is_text(cell) and 0 < len(cell) <= LONGEST_KEY and cell[-1] != "\0" else ""
        for cell in (series.to_list() if cells is None else cells)
    ]
    return keys


def days_of(series: nw.Series[Any]) -> NDArray[np.float64]:
    """Return the days since 1970 of every row; NaN where there is none."""
    if series.dtype == nw.Date:
        # Whole days are converted: libraries cannot convert the milliseconds of far dates.
        whole_days = series.to_arrow().cast("date32").cast("int32")
        return np.asarray(whole_days.cast("float64").to_numpy(zero_copy_only=False))
    dtype: Any = series.dtype
    if dtype != nw.Datetime or dtype.time_zone is not None:
        # narwhals cannot read some names of time zones of pandas, such as America/New_York.
        series = series.dt.replace_time_zone(None)
    gap = series.is_null().to_numpy()
    ticks = series.dt.timestamp("ms").cast(nw.Float64).to_numpy()
    days: NDArray[np.float64] = np.floor(ticks / DAY)
    return np.where(gap, np.nan, days)


def label_codes(series: nw.Series[Any], kind: ColumnKind) -> NDArray[Any]:
    """Return the index of every row's label; -1 where it has none of them."""
    labels = list(kind.labels)
    cells = cells_of_objects(series)
    if cells is not None:
        place_of = label_place(labels, NO_LABEL)
        return np.fromiter(map(place_of, cells), np.intp, len(cells))
    if series.dtype == nw.Boolean:
        truth = series.cast(nw.Float64).to_numpy()
        return np.where(np.isnan(truth), NO_LABEL, truth).astype(np.intp)
    if isinstance(labels[0], str) and series.dtype != nw.String:
        series = series.cast(nw.String)
    codes = series.replace_strict(
        labels, list(range(len(labels))), default=NO_LABEL, return_dtype=nw.Int64
    )
    return codes.to_numpy()


def rows_beyond(persons: nw.DataFrame[Any], name: str, limit: int) -> NDArray[np.intp]:
    """Return the index of each row that follows ``limit`` or more rows of the same person."""
    series = persons[name]
    if series.dtype in {nw.Categorical, nw.Enum}:
        persons = persons.with_columns(nw.col(name).cast(nw.String))
    if series.dtype.is_numeric():
        codes = numbered(series.to_numpy())
    elif persons.implementation.is_pyarrow():
        codes = persons[name].to_native().combine_chunks().dictionary_encode().indices.to_numpy()
    else:
        index_name = f"{name}_"
        counted = persons.with_row_index(index_name).select(
            nw.col(index_name).cum_count().over(name)
        )
        return np.flatnonzero(counted[index_name].to_numpy() > limit)
    return places_beyond(codes, limit)


def places_beyond(codes: NDArray[np.intp], limit: int) -> NDArray[np.intp]:
    """Return the index of each number that follows ``limit`` or more equal numbers."""
    # Only the rows of persons with too many rows are sorted.
    crowded = np.flatnonzero(np.bincount(codes)[codes] > limit)
    order = crowded[np.argsort(codes[crowded], kind="stable")]
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    lengths = np.diff(starts, append=order.size)
    rank_of_row = np.arange(order.size) - np.repeat(starts, lengths)
    return order[rank_of_row >= limit]


def person_numbers(series: nw.Series[Any]) -> NDArray[np.intp]:
    """Return a number for each person."""
    if series.dtype.is_numeric():
        return numbered(series.to_numpy())
    codes: dict[Any, int] = {}
    return np.array(
        [codes.setdefault(person, len(codes)) for person in series.to_list()], dtype=np.intp
    )


def numbered(persons: NDArray[Any]) -> NDArray[np.intp]:
    """Return small codes in place of the numbers of persons."""
    if persons.size and persons.dtype.kind in "iu":
        low, high = int(persons.min()), int(persons.max())
        if high - low < 8 * persons.size and -(2**62) < low <= high < 2**62:
            return persons.astype(np.intp) - low
    return np.unique(persons, return_inverse=True)[1]


def cells_of_objects(series: nw.Series[Any]) -> list[Any] | None:
    """Return the cells of a column of Python objects, also if they are categories; else None.

    The type of the column decides, not what narwhals infers from its rows.
    """
    native = series.to_native()
    kind = getattr(native, "dtype", None)
    categories: Any = getattr(kind, "categories", None)  # of pandas, and of an Enum of polars
    if getattr(getattr(categories, "dtype", None), "hasobject", False):
        names = [*categories, None]  # code -1 is missing
        return [names[code] for code in native.cat.codes.tolist()]
    if getattr(kind, "hasobject", False) or series.dtype == nw.Object:
        return list(native)
    return None


def is_text(cell: Any) -> bool:
    """Return whether a cell is a text that can be encoded."""
    return isinstance(cell, str) and SURROGATES.search(cell) is None


def label_place(labels: Iterable[Any], none: int) -> Callable[[Any], int]:
    """Return a function that gives the index of a cell's label, ``none`` where it is no label."""
    indices = {label: index for index, label in enumerate(labels)}
    texts = any(isinstance(label, str) for label in indices)

    def place_of(cell: Any) -> int:
        # a number is the label that it is equal to, as in columns of numbers
        comparable = isinstance(cell, str) if texts else isinstance(cell, int | float | np.bool_)
        return indices.get(cell, none) if comparable else none

    return place_of


def person_of(cell: Any) -> str | None:
    """Return the name of the person that a cell names; None if it names none.

    Different names stay different: a float is none, since large whole numbers are one float.
    """
    if isinstance(cell, str):
        return "text " + cell if is_text(cell) else None
    if isinstance(cell, bool | np.bool_):
        return None
    if isinstance(cell, int | np.integer):
        return f"number {int(cell)}"
    if isinstance(cell, bytes | bytearray):
        return "bytes " + cell.hex()
    if isinstance(cell, uuid.UUID):
        return f"uuid {cell.int}"
    if type(cell) is dt.date:
        return f"date {cell.isoformat()}"
    return None


def persons_of_objects(cells: Iterable[Any]) -> NDArray[np.object_]:
    """Return the names of the persons of some cells, None where there is none."""
    return np.fromiter((person_of(cell) for cell in cells), dtype=object)
