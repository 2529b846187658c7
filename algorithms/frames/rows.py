"""Rows as a schema declares them: clipped, with labels as numbers, and cut for each person."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from algorithms.frames.column_kinds import DROP, Category, ColumnKind, Flag, Integer
from algorithms.frames.conditions import Condition
from algorithms.frames.schema import Schema

NO_LABEL = -1


def declared_rows(
    frame: Any, used: Iterable[str], where: Condition | None, schema: Schema
) -> tuple[dict[str, NDArray[Any]], int]:
    """Return the columns, and the number, of the rows that count.

    A row counts if it names a person, has a value in every column that is used, fulfils the
    condition, and is one of the first of its person that do so.  All but the last depends on the
    row alone, and the last on the rows of its person alone: the cut of a person is the same
    whoever else is there.
    """
    table = nw.from_native(frame, eager_only=True)
    keep: NDArray[np.bool_] | None = None
    values = {}
    for name in used:
        values[name], there = declared_column(table[name], schema.kind(name))
        keep = both(keep, there)
    if where is not None:
        keep = both(keep, where.holds(values, schema))
    if schema.person is not None:
        named = ~table[schema.person].is_null().to_numpy()
        if table[schema.person].dtype.is_float():
            named &= ~np.isnan(table[schema.person].to_numpy())
        keep = both(keep, None if named.all() else named)
        kept = None if keep is None else np.flatnonzero(keep)
        persons = table.select(schema.person)
        if persons[schema.person].dtype in {nw.Categorical, nw.Enum}:
            persons = persons.with_columns(nw.col(schema.person).cast(nw.String))
        first = places_within(persons if kept is None else persons[kept], schema.person)
        cut = first < schema.rows_per_person
        if not cut.all():
            rows = np.arange(len(table)) if kept is None else kept
            keep = np.zeros(len(table), dtype=bool)
            keep[rows[cut]] = True
    if keep is None:
        return values, len(table)
    return {name: column[keep] for name, column in values.items()}, int(np.count_nonzero(keep))


def both(
    first: NDArray[np.bool_] | None, second: NDArray[np.bool_] | None
) -> NDArray[np.bool_] | None:
    """Return where both hold; None holds everywhere."""
    if first is None or second is None:
        return second if first is None else first
    return first & second


def declared_column(
    series: nw.Series[Any], kind: ColumnKind
) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """Return a column as declared, and where it has a value; None if it has one everywhere."""
    if kind.bounds is None:
        codes = label_codes(series, kind)
        missing = codes == NO_LABEL
        if not missing.any():
            return codes, None
        assert isinstance(kind, Category | Flag)  # the kinds with labels
        if kind.missing == DROP:
            return codes, ~missing
        return np.where(missing, kind.labels.index(kind.missing), codes), None
    numbers = series if series.dtype == nw.Float64 else series.cast(nw.Float64)
    found = np.clip(numbers.to_numpy(), *kind.bounds)
    if isinstance(kind, Integer):
        np.rint(found, out=found)
    there = ~np.isnan(found)
    if there.all():
        return found, None
    if kind.missing == DROP:  # type: ignore[attr-defined]  # numbers have it
        return found, there
    return np.where(there, found, kind.missing), None  # type: ignore[attr-defined]


def label_codes(series: nw.Series[Any], kind: ColumnKind) -> NDArray[Any]:
    """Return the index of every row's label; -1 where it has none of them."""
    labels = list(kind.labels)
    if series.dtype == nw.Boolean:
        truth = series.cast(nw.Float64).to_numpy()
        return np.where(np.isnan(truth), NO_LABEL, truth).astype(np.intp)
    if isinstance(labels[0], str) and series.dtype not in {nw.String, nw.Object}:
        series = series.cast(nw.String)
    found = series.replace_strict(
        labels, list(range(len(labels))), default=NO_LABEL, return_dtype=nw.Int64
    )
    return found.to_numpy()


def places_within(persons: nw.DataFrame[Any], name: str) -> NDArray[Any]:
    """Return for every row how many rows of the same person stand before it."""
    if not persons.implementation.is_pyarrow():
        other = f"{name}_"
        counted = persons.with_row_index(other).select(nw.col(other).cum_count().over(name))
        return counted[other].to_numpy().astype(np.int64) - 1
    # Arrow has no such expression: sorted by person, the place is the distance from the first
    codes = persons[name].to_native().combine_chunks().dictionary_encode().indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    places = np.empty(len(codes), dtype=np.int64)
    lengths = np.diff(starts, append=len(codes))
    places[order] = np.arange(len(codes)) - np.repeat(starts, lengths)
    return places
