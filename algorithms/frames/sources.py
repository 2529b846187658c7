"""The rows of a frame that count, on the engine that has them; only aggregates leave it.

A `Source` holds lazy rows of Narwhals.  Queries make groups and sums of them (`grouped`), and
`Source.columns` brings the result here: the one place where numbers leave an engine.  Frames in the
memory of Python are made plain first: their columns may hold any Python object, of which those
that are not declared are missing values.  Dask frames are in `partitions`.
"""

from __future__ import annotations

import datetime as dt
import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from accountant.ledger.frames import is_partitioned
from algorithms.frames.columns.dates import Date
from algorithms.frames.columns.keys import Key
from algorithms.frames.columns.kinds import ColumnKind
from algorithms.frames.rows import PERSON, PLACE, RANK, Reading, first_rows, typed
from algorithms.frames.schema import Schema

SURROGATES = re.compile("[\ud800-\udfff]")  # half characters, which are not valid text
COUNT = "count"  # the column of how many rows a group has
Query = Callable[[nw.LazyFrame[Any]], nw.LazyFrame[Any]]


class Source:
    """Rows on one engine."""

    def __init__(self, rows: nw.LazyFrame[Any]) -> None:
        self._rows = rows

    def then(self, query: Query) -> Source:
        """Return the rows that a query makes of these."""
        return Source(query(self._rows))

    def kept(self) -> Source:
        """Return rows that are computed once, where they are in memory; others when asked."""
        in_memory = self._rows.implementation in {nw.Implementation.POLARS}
        return Source(self._rows.collect().lazy()) if in_memory else self

    def columns(self) -> dict[str, NDArray[Any]]:
        """Bring the columns here."""
        table = self._rows.collect()
        return {name: table[name].to_numpy() for name in table.columns}


def source_of(frame: Any, reading: Reading) -> Source:
    """Return the rows of a frame that count."""
    if is_partitioned(frame):
        from algorithms.frames.partitions import partitions_of

        return partitions_of(frame, reading)
    return Source(reading.cut(reading.counted(reading.read(prepared(frame, reading)))))


def grouped(
    rows: nw.LazyFrame[Any], groups: Mapping[str, nw.Expr], sums: Mapping[str, nw.Expr]
) -> nw.LazyFrame[Any]:
    """Return how many rows each group has, and sums of whole numbers of them."""
    numbers = {name: number.cast(nw.Int64) for name, number in sums.items()}
    rows = rows.select(**groups, **numbers) if groups or sums else rows
    totals = {COUNT: nw.len(), **{name: nw.col(name).sum() for name in sums}}
    result = rows.group_by(*groups).agg(**totals) if groups else rows.select(**totals)
    return result.with_columns(**{name: nw.col(name).cast(nw.Int64) for name in totals})


def once_a_person(
    rows: nw.LazyFrame[Any], groups: Mapping[str, nw.Expr], schema: Schema, limit: int | None = None
) -> nw.LazyFrame[Any]:
    """Return one row for each person and group, of the first ``limit`` groups of a person."""
    if schema.person is None:
        return rows.select(**groups)
    pairs = rows.with_columns(**groups).group_by(PERSON, *groups).agg(nw.col(RANK).min())
    if limit is not None:
        pairs = first_rows(pairs.rename({RANK: PLACE}), [PLACE], limit)
    return pairs.select(*groups)


def prepared(frame: Any, reading: Reading) -> nw.LazyFrame[Any]:
    """Return the columns that are read, under new names and of types that all engines have."""
    columns = reading.columns
    if nw.from_native(frame).implementation.is_duckdb():
        frame = without_collations(frame, columns.values())
    table: Any = nw.from_native(frame)
    if columns:
        table = table.select(**{name: nw.col(column) for name, column in columns.items()})
    if isinstance(table, nw.LazyFrame) and nw.Object in table.collect_schema().values():
        table = table.collect()  # objects of Python have no lazy expressions
    if isinstance(table, nw.DataFrame):
        kinds = {f"c{i}": reading.schema.kind(name) for i, name in enumerate(reading.used)}
        table = table.with_columns(
            **{name: plain_series(table[name], kinds.get(name)) for name in columns}
        )
    if reading.schema.person is not None and reading.schema.order is None:
        if isinstance(table, nw.LazyFrame):  # of polars: other lazy frames have no order
            table = nw.from_native(table.to_native().with_row_index(PLACE))
        else:
            table = table.with_row_index(PLACE)
    lazy: nw.LazyFrame[Any] = table.lazy()
    return lazy


def without_collations(relation: Any, columns: Iterable[str]) -> Any:
    """Return columns of a DuckDB relation, of which texts are equal only if all letters are."""
    import duckdb

    types = dict(zip(relation.columns, relation.types, strict=True))
    return relation.select(*(
        duckdb.SQLExpression(f"{quoted} COLLATE \"C\"").alias(name)
        if types[name] == "VARCHAR" else duckdb.ColumnExpression(name)
        for name in dict.fromkeys(columns)
        for quoted in ['"' + name.replace('"', '""') + '"']
    ))  # fmt: skip


def plain_series(series: nw.Series[Any], kind: ColumnKind | None) -> nw.Series[Any]:
    """Return a column in memory with values of one type; persons have no kind.

    The types of pandas that have missing values become floats, and Python objects texts or floats.
    """
    backend: Any = series.implementation
    cells = cells_of_objects(series)
    if cells is not None:
        if kind is None:
            values: list[Any] = [person_of(cell) for cell in cells]
        elif isinstance(kind, Key):
            values = [cell if is_text(cell) else None for cell in cells]
        else:
            place_of, texts = label_place(kind.labels, -1), (*kind.texts, None)
            values = [texts[place_of(cell)] for cell in cells]
        floats = kind is not None and kind.numeric
        if backend.is_pandas():
            import pandas as pd

            native = pd.Series(values, dtype=float if floats else object)
            return nw.from_native(native, series_only=True)
        return nw.new_series(series.name, values, nw.Float64 if floats else nw.String, backend=backend)
    if kind is None or not kind.numeric or backend.is_polars():
        return series
    if isinstance(kind, Date):
        if backend.is_pyarrow():
            return series
        days = typed(nw.col("days"), series.dtype, kind)
        floats = series.alias("days").to_frame().select(days).to_numpy()[:, 0].astype(float)
        return nw.new_series(series.name, floats, nw.Float64, backend=backend)
    if backend.is_pyarrow():  # a safe cast of Arrow refuses whole numbers beyond 2^53
        column = series.to_native()
        return nw.from_native(column.cast("float64", safe=False), series_only=True)
    floats = series.cast(nw.Float64).to_numpy()
    return nw.new_series(series.name, floats, nw.Float64, backend=backend)


def cells_of_objects(series: nw.Series[Any]) -> list[Any] | None:
    """Return the cells of a column of Python objects, also if they are categories; else None.

    The type of the column decides, not what narwhals infers from its rows.
    """
    native = series.to_native()
    kind = getattr(native, "dtype", None)
    categories: Any = getattr(kind, "categories", None)
    if categories is not None and series.implementation.is_pandas():
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
