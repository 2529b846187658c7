"""The columns that a public table adds to a frame, by a key that the rows have.

Each row finds one row of the table at most, so a person moves sums by what she moved before; the
domains of the new columns are those of the table, which is public.
"""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import narwhals as nw

from accountant.errors import ParameterError
from algorithms.frames.columns.dates import Date
from algorithms.frames.columns.kinds import DROP, ColumnKind
from algorithms.frames.columns.labels import Category, Flag
from algorithms.frames.columns.lookups import LookedUp
from algorithms.frames.columns.numbers import WHOLE_BOUND, Integer, Number
from algorithms.frames.rows import Reading
from algorithms.frames.schema import Schema, near
from algorithms.frames.sources import Source, prepared

EXACT_WHOLE = 2**53  # keys beyond it may be one float


def looked_up(
    table: Any, on: str, columns: Iterable[str] | Mapping[str, ColumnKind] | None
) -> dict[str, LookedUp]:
    """Return how each column of a public table is read, by its name.

    ``columns`` names some of them, or gives their kinds; those of all others follow from the
    values.
    """
    opened: Any = nw.from_native(table, pass_through=True)
    if not isinstance(opened, nw.DataFrame | nw.LazyFrame):
        raise ParameterError("table", type(table), "a data frame of pandas, polars, Arrow or such")
    rows = opened.collect() if isinstance(opened, nw.LazyFrame) else opened
    named = rows.columns if columns is None else [columns] if isinstance(columns, str) else columns
    names = [name for name in named if name != on]
    for name in (on, *names):
        if name not in rows.columns:
            raise ParameterError("table", name, f"with that column{near(name, rows.columns)}")
    if not names:
        raise ParameterError("columns", names, f"of the table, other than {on!r}")
    keys = keys_of_table(rows[on])
    declared = columns if isinstance(columns, Mapping) else {}
    found = {}
    for name in names:
        kind = declared[name] if name in declared else kind_of(rows[name])
        if not isinstance(kind, Number | Integer | Date | Flag | Category):
            allowed = "a Number, an Integer, a Date, a Flag or a Category"
            raise ParameterError(f"columns[{name!r}]", kind, allowed)
        # Rows of the table are read as those of a frame are: the same values count as the same.
        reading = Reading((on, name), None, Schema({on: keys, name: kind}))
        try:
            source = Source(reading.counted(reading.read(prepared(table_of(rows), reading))))
            values = source.columns()
        except Exception as error:
            raise ParameterError(f"table, column {name!r}", kind, f"so: {error}") from None
        if not values["c0"].size:
            raise ParameterError(f"table, column {name!r}", [], "a column with values for keys")
        label_of = dict(zip(keys.texts, keys.labels, strict=True))
        labels = tuple(label_of[text] for text in values["c0"].tolist())
        found[name] = LookedUp(on, labels, tuple(values["c1"].tolist()), kind)
    return found


def table_of(rows: nw.DataFrame[Any]) -> Any:
    """Return the table as the library has it, with rows counted from 0 on."""
    native = rows.to_native()
    return native.reset_index(drop=True) if rows.implementation.is_pandas() else native


def values_of(column: nw.Series[Any]) -> list[Any]:
    """Return the values of a column that are not missing; NaN is."""
    return [
        v
        for v in column.to_list()
        if v is not None and not (isinstance(v, float) and math.isnan(v))
    ]


def keys_of_table(column: nw.Series[Any]) -> Category:
    """Return the kind of a column whose labels are the keys of a table; refuse repeated ones."""
    labels = values_of(column)
    kinds = {type(label) for label in labels}
    if len(kinds) != 1 or not kinds <= {str, int}:
        allowed = "a column of texts, or of whole numbers, that has a key for each row"
        raise ParameterError(f"table, column {column.name!r}", column.dtype, allowed)
    repeated = [key for key, times in Counter(labels).items() if times > 1]
    if repeated:
        allowed = "in one row of the table: a row of the frame would count more than once"
        raise ParameterError(f"table, key of {column.name!r}", repeated[0], allowed)
    if kinds == {int} and max(map(abs, labels)) > EXACT_WHOLE:
        allowed = "below 2^53 in size, or texts: larger keys may be one float"
        raise ParameterError(f"table, key of {column.name!r}", max(labels, key=abs), allowed)
    return Category(labels)


def kind_of(column: nw.Series[Any]) -> ColumnKind:
    """Return the kind of a column of a public table, whose domain is that of its values."""
    values = values_of(column)
    kinds = {type(value) for value in values}
    if kinds == {bool}:
        return Flag()
    if kinds == {str}:
        if DROP not in values:
            return Category(sorted(set(values)))
    elif kinds and all(issubclass(kind, dt.date) for kind in kinds):
        days = [value.date() if isinstance(value, dt.datetime) else value for value in values]
        if min(days) < max(days):
            return Date(min(days).isoformat(), max(days).isoformat())
    elif kinds and kinds <= {int, float}:
        low, high = min(values), max(values)
        if kinds == {int} and low < high and max(-low, high) <= WHOLE_BOUND.high:
            return Integer(low, high)
        if low < high and math.isfinite(low) and math.isfinite(high):
            return Number(low, high)
    allowed = (
        f"of labels, or of numbers or dates that differ: columns={{{column.name!r}: ...}} gives "
        "its kind"
    )
    raise ParameterError(f"table, column {column.name!r}", column.dtype, allowed)
