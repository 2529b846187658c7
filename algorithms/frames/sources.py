"""The rows of a frame that count, on the engine that has them; only aggregates leave it.

A `Source` holds lazy rows of Narwhals.  Queries make groups and sums of them (`grouped`), and
`Source.columns` brings the result here: the one place where numbers leave an engine.  Frames in the
memory of Python are made plain first: their columns may hold any Python object, of which those
that are not declared are missing values.

Of a Dask frame each partition is split by a hash of the persons, and the pieces with one hash are
joined on one worker (`partitions_of`): it has all rows of its persons then, each with its place in
the frame, so the same rows count as of a frame in one piece.
"""

from __future__ import annotations

import datetime as dt
import math
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, cast

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from accountant.errors import PrivateValueError
from accountant.ledger.frames import is_partitioned
from algorithms.frames.columns.dates import Date
from algorithms.frames.columns.keys import Key
from algorithms.frames.columns.kinds import SURROGATES, ColumnKind
from algorithms.frames.columns.lookups import JoinKey
from algorithms.frames.formulas import MISSING, Formula
from algorithms.frames.rows import ORDER, PERSON, PLACE, RANK, Reading, first_rows, typed
from algorithms.frames.schema import HASH, Schema

COUNT = "count"  # the column of how many rows a group has
Query = Callable[[nw.LazyFrame[Any]], nw.LazyFrame[Any]]
Join = Callable[[nw.LazyFrame[Any], nw.LazyFrame[Any]], nw.LazyFrame[Any]]
SIGNED = {nw.Int8, nw.Int16, nw.Int32, nw.Int64}
FEW_PARTS = 16  # parts by the hash of persons, at least, where there are as many partitions
FAR = 2**40  # the places of a partition's rows begin this far after those of the one before


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

    def joined(self, other: Source, keys: Sequence[str], query: Join) -> Source:
        """Return what a query makes of these and of other rows; it joins those of equal keys."""
        del keys
        return Source(query(self._rows, other._rows))

    def columns(self) -> dict[str, NDArray[Any]]:
        """Bring the columns here."""
        table = self._rows.collect()
        return {name: table[name].to_numpy() for name in table.columns}


def source_of(frame: Any, reading: Reading) -> Source:
    """Return the rows of a frame that count."""
    if reading.schema.joined is not None:
        return joined_source(frame, reading)
    if is_partitioned(frame):
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
    rows: nw.LazyFrame[Any],
    groups: Mapping[str, nw.Expr],
    schema: Schema,
    limit: int | None = None,
    named: bool = False,
) -> nw.LazyFrame[Any]:
    """Return one row for each person and group, of the first ``limit`` groups of a person.

    If ``named`` they keep the person, and the rank of the group.
    """
    if schema.person is None:
        return rows.select(**groups) if groups else rows
    grouped_rows = rows.with_columns(**groups) if groups else rows
    pairs = grouped_rows.group_by(PERSON, *groups).agg(nw.col(RANK).min())
    if limit is not None:
        pairs = first_rows(pairs.rename({RANK: PLACE}), [PLACE], limit)
    return pairs.select(*groups) if groups and not named else pairs


def prepared(frame: Any, reading: Reading) -> nw.LazyFrame[Any]:
    """Return the columns that are read, under new names and of types that all engines have."""
    table: Any = nw.from_native(frame)
    # Rows of which nothing is read are counted: they keep a column, which is not looked at.
    columns = reading.columns or {"row": table.collect_schema().names()[0]}
    if table.implementation.is_duckdb():
        table = nw.from_native(without_collations(frame, columns.values()))
    table = table.select(**{name: nw.col(column) for name, column in columns.items()})
    if not reading.columns:
        table = table.with_columns(row=nw.lit(1))
    if isinstance(table, nw.LazyFrame) and nw.Object in table.collect_schema().values():
        table = table.collect()  # objects of Python have no lazy expressions
    if isinstance(table, nw.DataFrame):
        kinds = reading.kinds
        table = table.with_columns(
            **{name: plain_series(table[name], kinds.get(name)) for name in columns}
        )
    if reading.places_rows:
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
    """Return a column in memory with values of one type; persons and the order have no kind.

    The types of pandas that have missing values become floats, and Python objects texts or floats.
    """
    backend: Any = series.implementation
    if series.name == ORDER:
        series = dictionary_values(series)
    cells = cells_of_objects(series)
    if cells is not None:
        if kind is None:
            name_of = text_in_order if series.name == ORDER else person_of
            values: list[Any] = [name_of(cell) for cell in cells]
        elif isinstance(kind, Key | JoinKey):
            values = texts_of(cells)
        else:
            # A number is the label that it is equal to, as in columns of numbers.
            texts = dict(zip(kind.labels, kind.texts, strict=True))
            comparable = str if isinstance(kind.labels[0], str) else int | float | np.bool_
            values = [texts.get(cell) if isinstance(cell, comparable) else None for cell in cells]
        are_floats = kind is not None and kind.numeric
        if backend.is_pandas():
            import pandas as pd

            native: Any = series.to_native()
            same = values is cells and getattr(native.dtype, "hasobject", False)
            native = (
                native.reset_index(drop=True)
                if same
                else pd.Series(values, dtype=float if are_floats else object)
            )
            return nw.from_native(native, series_only=True)
        return nw.new_series(
            series.name, values, nw.Float64 if are_floats else nw.String, backend=backend
        )
    arrow_type = getattr(getattr(series.to_native(), "dtype", None), "pyarrow_dtype", None)
    if kind is None and arrow_type is not None and series.dtype in SIGNED:
        # Numbers of Arrow in a pandas frame lack operations that a hash needs.
        return nw.from_native(series.to_native().astype("Int64"), series_only=True)
    has_labels = kind is not None and not kind.numeric and not isinstance(kind, Key | JoinKey)
    if has_labels and arrow_type is not None:
        # The codes of texts of Arrow, by which rows are ordered, would be numbers of Arrow, which
        # lack operations too.
        import pandas as pd

        texts = series.to_native().to_numpy(object, na_value=None)
        return nw.from_native(pd.Series(texts, dtype=object), series_only=True)
    if kind is None or not kind.numeric or backend.is_polars():
        return long_texts(series) if isinstance(kind, JoinKey) else series
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


def long_texts(series: nw.Series[Any]) -> nw.Series[Any]:
    """Return keys of Arrow as texts of one type: Arrow joins no others."""
    if not series.implementation.is_pyarrow():
        return series
    native = dictionary_values(series).to_native()
    return nw.from_native(native.cast("large_string"), series_only=True)


def dictionary_values(series: nw.Series[Any]) -> nw.Series[Any]:
    """Return the values of a column of dictionaries of Arrow, whose type they have."""
    native = series.to_native()
    kind: Any = getattr(native, "dtype", getattr(native, "type", None))
    arrow_type = getattr(kind, "pyarrow_dtype", kind)
    if not str(arrow_type).startswith("dictionary"):
        return series
    if series.implementation.is_pyarrow():
        native = native.cast(arrow_type.value_type)
    else:
        native = native.astype(type(kind)(arrow_type.value_type))
    values: nw.Series[Any] = nw.from_native(native, series_only=True).alias(series.name)
    return values


def cells_of_objects(series: nw.Series[Any]) -> list[Any] | None:
    """Return the cells of a column of Python objects, also if they are categories; else None.

    The type of the column decides, not what narwhals infers from its rows.
    """
    native = series.to_native()
    kind = getattr(native, "dtype", None)
    categories: Any = getattr(kind, "categories", None)
    if categories is not None and series.implementation.is_pandas():
        names = [*categories, None]  # code -1 is missing
        return list(map(names.__getitem__, native.cat.codes.tolist()))
    if getattr(kind, "hasobject", False):
        return cast("list[Any]", native.tolist())  # an iterator takes six times as long
    return list(native) if series.dtype == nw.Object else None


def texts_of(cells: list[Any]) -> list[str | None]:
    """Return the text of each cell, as `text_of` does, of many cells at once where it can."""
    types = set(map(type, cells))
    texts = cells if types == {str} else [cell for cell in cells if type(cell) is str]
    letters = "".join(texts)
    if any(issubclass(kind, str) for kind in types - {str}) or not (
        letters.isascii() or SURROGATES.search(letters) is None
    ):
        return list(map(text_of, cells))
    return texts if texts is cells else [cell if type(cell) is str else None for cell in cells]


def text_of(cell: Any) -> str | None:
    """Return the text of a cell; None if it is none, or cannot be encoded."""
    if not isinstance(cell, str) or not (str.isascii(cell) or SURROGATES.search(cell) is None):
        return None
    return cell if type(cell) is str else str.__str__(cell)


def person_of(cell: Any) -> str | None:
    """Return the name of the person that a cell names; None if it names none.

    Different names stay different: a float is none, since large whole numbers are one float.
    """
    if isinstance(cell, str):
        text = text_of(cell)
        return None if text is None else "text " + text
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


def text_in_order(cell: Any) -> str | None:
    """Return a text that orders categories as their values, 9 before 10; None if it has no place.

    It depends on the cell alone: the type of all categories may depend on a single row.
    """
    if isinstance(cell, dt.date):
        return "date " + cell.isoformat()
    number = cell.item() if isinstance(cell, np.generic) else cell
    if not isinstance(number, int | float):
        return person_of(cell)
    # Of two positive floats the larger one has the larger bits.
    bits = int(np.float64(max(-1e300, min(number, 1e300))).view(np.int64))
    rank = bits if bits >= 0 else -(bits & (2**63 - 1))
    return f"number {rank + 2**63:020d}"


class Failed:
    """The result of a failed task, and of each piece of that result."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getitem__(self, part: int) -> Failed:
        return self


class Quiet:
    """A task whose errors are not logged: logs show the rows that a task was given."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def __call__(self, argument: Any) -> Any:
        """Return the result, or `Failed`."""
        for piece in argument if isinstance(argument, list) else [argument]:
            if isinstance(piece, Failed):
                return piece
        try:
            return self._function(argument)
        except Exception as error:  # its message could show a row
            return Failed(type(error).__name__)


class Partitions(Source):
    """Rows in parts on workers, as tasks of Dask that return pandas frames."""

    def __init__(self, tasks: Sequence[Any]) -> None:
        self._tasks = tasks

    def then(self, query: Query) -> Source:
        """Return the rows that a query makes of each part."""
        from dask import delayed

        task = delayed(Quiet(partial(queried, query)))
        return Partitions([task(part) for part in self._tasks])

    def kept(self) -> Source:
        """Return rows that are computed once and stay with the workers."""
        import dask

        return Partitions(dask.persist(*self._tasks))

    def joined(self, other: Source, keys: Sequence[str], query: Join) -> Source:
        """Return what a query makes of both; rows of equal keys meet on one worker."""
        from dask import delayed

        tasks = [*self._tasks, *cast("Partitions", other)._tasks]  # noqa: SLF001 (of this class)
        parts = parts_for(len(tasks))
        split = delayed(Quiet(partial(split_by, parts, keys)))
        pieces = [split(task) for task in tasks]
        join = delayed(Quiet(partial(joined_pieces, query, len(self._tasks))))
        return Partitions([join([piece[part] for piece in pieces]) for part in range(parts)])

    def columns(self) -> dict[str, NDArray[Any]]:
        """Bring the columns of all parts here, one below the other."""
        import dask

        tables = dask.compute(*self._tasks)
        for table in tables:
            if isinstance(table, Failed):
                raise PrivateValueError(
                    "a partition", f"readable as declared: it gave {table.name}"
                )
        names = list(tables[0].columns)
        return {n: np.concatenate([table[n].to_numpy() for table in tables]) for n in names}


def queried(query: Query, part: Any) -> Any:
    """Return what a query makes of a pandas frame."""
    return query(nw.from_native(part).lazy()).collect().to_native()


def partitions_of(frame: Any, reading: Reading) -> Partitions:
    """Return the rows of a Dask frame that count."""
    from dask import delayed

    # A frame needs one column at least to have rows.
    columns = list(dict.fromkeys(reading.columns.values())) or list(frame.columns[:1])
    partitions = frame[columns].to_delayed()
    if reading.schema.person is None:
        task = delayed(Quiet(partial(counted, reading, 0)))
        return Partitions([task(partition) for partition in partitions])
    parts = parts_for(len(partitions))
    split = [
        delayed(Quiet(partial(split_by_person, reading, parts, number)))(partition)
        for number, partition in enumerate(partitions)
    ]
    joined = delayed(Quiet(partial(cut_pieces, reading)))
    return Partitions([joined([pieces[part] for pieces in split]) for part in range(parts)])


def parts_for(pieces: int) -> int:
    """Return into how many parts so many pieces are split, of which each has some of every piece.

    With more parts each part is smaller.  But n pieces and m parts need n m transfers, so m grows
    as sqrt(n) only.
    """
    return min(pieces, max(FEW_PARTS, 2 * math.isqrt(pieces)))


def counted(reading: Reading, number: int, partition: Any) -> Any:
    """Return the rows of a partition that may count, with their places in the whole frame."""
    table = prepared(partition, reading)
    if reading.places_rows:
        table = table.with_columns(nw.col(PLACE).cast(nw.Int64) + number * FAR)
    return reading.counted(reading.read(table)).collect().to_native()


def split_by_person(reading: Reading, parts: int, number: int, partition: Any) -> list[Any]:
    """Return the rows of a partition that may count, by a hash of their person."""
    return split_by(parts, [PERSON], counted(reading, number, partition))


def split_by(parts: int, names: Sequence[str], rows: Any) -> list[Any]:
    """Return the rows of a pandas frame by a hash of some columns."""
    from pandas.util import hash_pandas_object

    hashes = hash_pandas_object(rows[[*names]], index=False, categorize=False).to_numpy()
    part = hashes % np.uint64(parts)
    return [rows[part == i] for i in range(parts)]


def joined_pieces(query: Join, first: int, pieces: Sequence[Any]) -> Any:
    """Return what a query makes of the first pieces, of one table, and of the others."""
    import pandas as pd

    left_rows, right_rows = (
        nw.from_native(pd.concat(part, ignore_index=True)).lazy()
        for part in (pieces[:first], pieces[first:])
    )
    return query(left_rows, right_rows).collect().to_native()


def cut_pieces(reading: Reading, pieces: Sequence[Any]) -> Any:
    """Return the first rows of each person in all partitions' pieces."""
    import pandas as pd

    rows = nw.from_native(pd.concat(pieces, ignore_index=True)).lazy()
    return reading.cut(rows).collect().to_native()


def joined_source(frames: Mapping[str, Any], reading: Reading) -> Source:
    """Return the joined rows of two tables that count."""
    schema, join = reading.schema, reading.schema.joined
    matched = [*join.keys, *([PERSON] if join.by_person else [])]
    sides = [
        source_of(frame, side).then(partial(selected, reading=side, names=names, matched=matched))
        for frame, (side, names) in zip(
            frames.values(), (side_of(reading, i) for i in range(2)), strict=True
        )
    ]

    def few(rows: nw.LazyFrame[Any], limit: int) -> nw.LazyFrame[Any]:
        columns = [n for n in rows.collect_schema().names() if n not in {HASH, *matched}]
        return first_rows(rows, [HASH, *columns], limit, matched).drop(HASH, RANK)

    def joined_rows(left: nw.LazyFrame[Any], right: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        few_left, few_right = map(few, (left, right), join.rows_per_key)
        rows = few_left.join(few_right, on=matched, how="inner")
        if reading.where is not None:
            rows = rows.filter(reading.where.holds(reading.values, schema))
        return reading.cut(rows)

    return sides[0].joined(sides[1], matched, joined_rows)


def side_of(reading: Reading, side: int) -> tuple[Reading, dict[str, str]]:
    """Return what is read of one of two tables, and the names that its columns get there."""
    join, read_for = reading.schema.joined, reading.read_for
    table = join.side(side, reading.schema)
    # A flag whether a value is missing is a column of the table that follows from it.
    flags = {c: Formula(MISSING, (n,)) for c, n in read_for.items()
             if c[0] == "n" and n in table.columns}  # fmt: skip
    names = {n: c for c, n in read_for.items() if c[0] == "c" and n in table.columns}
    names |= {f"missing {c}": c for c in flags} | {key: key for key in join.keys}
    derived = table.derive(**{f"missing {c}": formula for c, formula in flags.items()})
    return Reading(tuple(names), None, derived), names


def selected(
    rows: nw.LazyFrame[Any], reading: Reading, names: Mapping[str, str], matched: Sequence[str]
) -> nw.LazyFrame[Any]:
    """Return the columns of one of the tables under the names of the joined rows, with a hash."""
    values = {column: reading.values[name] for name, column in names.items()}
    if PERSON in matched:
        values[PERSON] = nw.col(PERSON)
    return reading.hashed(rows).select(HASH, **values)
