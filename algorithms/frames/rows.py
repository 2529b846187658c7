"""Rows as a schema declares them, in expressions of Narwhals that every engine evaluates.

A column is read as numbers or as texts (`typed`), clipped or compared with its labels by its kind,
and a row without a value fills the gap or does not count.  Of the rows of a person that are left
the first count, as many as the schema says (`first_rows`): a function of that person's rows alone.

Engines differ in what they leave open: NaN is a missing value here, on every engine; halves are
rounded up; what is added up are whole numbers.  docs/frames.md lists these rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import narwhals as nw

from algorithms.frames.columns.dates import Date, days_since
from algorithms.frames.columns.keys import Key
from algorithms.frames.columns.kinds import DROP, ColumnKind, whole
from algorithms.frames.columns.lookups import JoinKey, LookedUp
from algorithms.frames.conditions import Condition
from algorithms.frames.formulas import Formula
from algorithms.frames.schema import HASH, Schema

PRIME = 2**31 - 1  # products of numbers below it are below 2^62
# Columns of rows beside those that are used, which are named c0, c1 and so on.
PERSON, ORDER, PLACE, RANK = "person", "order", "place", "rank"
WITHOUT = "without"  # 1 where a row has no value of the column that orders rows
Values = Mapping[str, nw.Expr]


class Reading(NamedTuple):
    """Which rows count, and as what."""

    used: tuple[str, ...]  # the columns that a statistic needs
    where: Condition | None  # which rows are asked for; None for all
    schema: Schema
    groups: Mapping[str, nw.Expr] = MappingProxyType({})  # of which a person may have only some

    @property
    def values(self) -> dict[str, nw.Expr]:
        """The columns of rows that count, by the name that the frame has for them."""
        schema = self.schema
        values = {name: nw.col(f"c{i}") for i, name in enumerate(schema.sources(self.used))}
        missing = {n: nw.col(f"n{i}") for i, n in enumerate(schema.asked_missing(self.used))}
        for name in self.used:
            if isinstance(derived := schema.formulas.get(name), Formula):
                values[name] = derived.value(values, missing)
        return values

    @property
    def kinds(self) -> dict[str, ColumnKind]:
        """The kinds of the columns that are read, by the names that they get."""
        return {c: self.schema.read_from(n)[1] for c, n in self.read_for.items()}

    @property
    def columns(self) -> dict[str, str]:
        """The columns of the frame that are read, by the names that they get."""
        columns = {c: self.schema.read_from(name)[0] for c, name in self.read_for.items()}
        if self.schema.person is not None:
            columns[PERSON] = self.schema.person
            if self.schema.order not in {None, HASH}:
                columns[ORDER] = self.schema.order
        return columns

    @property
    def read_for(self) -> dict[str, str]:
        """The columns for which some are read, by the names that these get."""
        columns = {f"c{i}": name for i, name in enumerate(self.schema.sources(self.used))}
        missing = self.schema.asked_missing(self.used)
        return columns | {f"n{i}": name for i, name in enumerate(missing)}

    @property
    def places_rows(self) -> bool:
        """Whether the first rows of a person are those that come first in the frame."""
        return self.schema.person is not None and self.schema.order is None

    def read(self, frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        """Return numbers and texts of the columns, which have their new names."""
        types = frame.collect_schema()
        columns = [typed(nw.col(c), types[c], kind) for c, kind in self.kinds.items()]
        columns += [plain(nw.col(name), types[name]) for name in (PERSON, PLACE) if name in types]
        if ORDER in types:
            order = plain(nw.col(ORDER), types[ORDER])
            without = order.is_null()
            without = without | order.is_nan() if types[ORDER].is_float() else without
            columns.append(nw.when(without).then(1).otherwise(0).alias(WITHOUT))
            columns.append(nw.when(~without).then(order).alias(PLACE))
        return frame.select(*columns) if columns else frame

    def counted(self, read: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        """Return the rows that may count, as declared; those of a person are not cut yet."""
        kinds = {c: kind for c, kind in self.kinds.items() if c[0] == "c"}
        missing = {c: kind for c, kind in self.kinds.items() if c[0] == "n"}
        rows = read
        for c, kind in kinds.items():
            if isinstance(kind, LookedUp):
                rows = translated(rows, c, kind.texts, kind.table_values)
                kinds[c] = kind.table_kind
        needed = [k.present(nw.col(c)) for c, k in kinds.items() if k.filled == DROP]
        if self.schema.person is not None:
            needed.append(~nw.col(PERSON).is_null())
        rows = rows.filter(*needed) if needed else rows
        if kinds:
            rows = rows.with_columns(**{c: as_declared(nw.col(c), k) for c, k in kinds.items()})
        if missing:
            present = {c: nw.when(kind.present(nw.col(c))) for c, kind in missing.items()}
            flags = {
                c: then.then(nw.lit(0.0)).otherwise(nw.lit(1.0)) for c, then in present.items()
            }
            rows = rows.with_columns(**flags)
        return (
            rows if self.where is None else rows.filter(self.where.holds(self.values, self.schema))
        )

    def cut(self, rows: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        """Return the first rows of each person, with their rank; all where each row is a person."""
        if self.schema.person is None:
            return rows
        names = rows.collect_schema().names()
        order = [name for name in (WITHOUT, PLACE) if name in names]
        if order != [PLACE]:  # rows of one place, or of none, are ordered by a hash, then by values
            columns = [name for name in names if name not in {PERSON, PLACE, WITHOUT}]
            rows, order = self.hashed(rows), [*order, HASH, *columns]
        if self.schema.groups_per_person is None or not self.groups:
            return first_rows(rows, order, self.schema.rows_per_person)
        # All rows are ranked, then the first groups of each person, and the first rows of each.
        ranked = first_rows(rows.with_columns(**self.groups), order, None)
        begins = ranked.group_by(PERSON, *self.groups).agg(nw.col(RANK).min().alias("begin"))
        few = first_rows(begins, ["begin"], self.schema.groups).drop(RANK)
        joined = ranked.join(few, on=[PERSON, *self.groups], how="inner")
        limit = self.schema.rows_per_person // self.schema.groups
        placed = joined.rename({RANK: "ranked"})
        return first_rows(placed, ["ranked"], limit, [PERSON, *self.groups])

    def hashed(self, rows: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        """Return rows with a hash of what they have, in whole numbers that engines share.

        It differs from person to person where those are named by whole numbers.
        """
        named, code = rows.collect_schema().get(PERSON, nw.String()), nw.lit(1, nw.Int64)
        labels: list[str] = []
        if named.is_integer() and named not in {nw.UInt64, nw.UInt128, nw.Int128}:
            code = nw.col(PERSON).cast(nw.Int64) % PRIME
        for name, value in self.values.items():
            kind = self.schema.kind(name)
            if isinstance(kind, Key | JoinKey):
                continue  # equal hashes are ordered by the keys themselves
            if kind.bounds is None:
                labels.append(f"label {len(labels)}")
                rows = rows.with_columns(value.alias(labels[-1]))
                rows = translated(rows, labels[-1], kind.texts, range(len(kind.texts)))
                number = nw.col(labels[-1]).fill_null(0)
            else:
                low, high = kind.bounds
                number = whole((value / 2 - low / 2) / (high / 2 - low / 2) * (PRIME - 1))
            code = (code * 1_103_515_245 + number.cast(nw.Int64)) % PRIME
            code = (code * code + 12_345) % PRIME
        return rows.with_columns(code.alias(HASH)).drop(labels)


def translated(
    rows: nw.LazyFrame[Any], column: str, old: Sequence[Any], new: Sequence[Any]
) -> nw.LazyFrame[Any]:
    """Return rows with new values of a column for old ones; others become null."""
    if not rows.implementation.is_duckdb():
        types: dict[type, Any] = {str: nw.String, float: nw.Float64, int: nw.Int64}
        replaced = nw.col(column).replace_strict(
            old, new, default=None, return_dtype=types[type(new[0])]
        )
        return rows.with_columns(replaced.alias(column))
    # DuckDB would search a list from its start for each row; a join has a hash table.
    from duckdb import ConstantExpression, FunctionExpression

    new_of = dict(zip(old, new, strict=True))  # a value that is in it twice would double rows
    one_row = rows.to_native().limit(0).aggregate("count(*)")
    table = one_row.select(
        *(FunctionExpression("unnest", ConstantExpression(list(values))).alias(name)
          for name, values in (("old", new_of.keys()), ("new", new_of.values())))
    )  # fmt: skip
    joined = rows.join(nw.from_native(table), left_on=column, right_on="old", how="left")
    return joined.with_columns(nw.col("new").alias(column)).drop("new")


def first_rows(
    rows: nw.LazyFrame[Any],
    order: Sequence[str],
    limit: int | None,
    within: Sequence[str] = (PERSON,),
) -> nw.LazyFrame[Any]:
    """Return the first rows of each person in an order, with their rank from 1 on."""
    if rows.implementation.is_pyarrow():  # Arrow has no windows: equal persons are neighbours
        table = rows.collect().sort(*within, *order).with_row_index("index")
        differs = [nw.col(name) != nw.col(name).shift(1) for name in within]
        begins = nw.any_horizontal(*differs, ignore_nulls=False).fill_null(True)
        starts = nw.when(begins).then(nw.col("index")).otherwise(0).cum_max()
        table = table.with_columns((nw.col("index") - starts + 1).alias(RANK))
        ranked = table.drop("index").lazy()
    else:
        # In pandas the column that is counted must not be one of the order: it is overwritten.
        rank = nw.col(RANK).cum_count().over(*within, order_by=order)
        ranked = rows.with_columns(nw.lit(1).alias(RANK)).with_columns(rank.alias(RANK))
    return ranked if limit is None else ranked.filter(nw.col(RANK) <= limit)


def plain(column: nw.Expr, dtype: Any) -> nw.Expr:
    """Return categories as texts, and times with a zone as the clock shows there."""
    if dtype == nw.Categorical or dtype == nw.Enum:  # noqa: PLR1714 (an Enum has its own hash)
        return column.cast(nw.String)
    if dtype == nw.Datetime and dtype.time_zone is not None:
        return column.dt.replace_time_zone(None)
    return column


def typed(column: nw.Expr, dtype: Any, kind: ColumnKind) -> nw.Expr:
    """Return a column as floats, or as texts where its labels are."""
    column = plain(column, dtype)
    if isinstance(kind, Date) and dtype != nw.Float64:
        return days_of(column, kind)
    if not kind.numeric:
        return column.cast(nw.String) if dtype.is_numeric() else column
    floats = column if dtype == nw.Float64 else column.cast(nw.Float64)
    # A sum has no sign of a zero, by which Arrow tells it from the label 0.
    return floats + 0.0 if kind.bounds is None else floats


def days_of(column: nw.Expr, kind: Date) -> nw.Expr:
    """Return the days since 1970 of dates; of years beyond the bounds those of the next year."""
    low, high = int(kind.low[:4]), int(kind.high[:4])
    year = column.dt.year().cast(nw.Float64).clip(low - 1.0, high + 1.0)
    before = year - 1  # leap days are those of the years before
    leaps = (before / 4).floor() - (before / 100).floor() + (before / 400).floor()
    start = float(days_since("0001-01-01"))
    return before * 365 + leaps + (start - 1) + column.dt.ordinal_day().cast(nw.Float64)


def as_declared(column: nw.Expr, kind: ColumnKind) -> nw.Expr:
    """Return values as the kind declares them, and what a missing one counts as."""
    declared = kind.declared(column)
    if kind.filled == DROP:
        return declared
    filled = kind.filled if isinstance(kind.filled, str) else float(kind.filled)
    return nw.when(kind.present(column)).then(declared).otherwise(nw.lit(filled))
