"""Joins of a frame with a public table, and of two private tables.

Of a public table each row finds one row at most, by its key: so a person moves sums by what she
moved before, and the domains of the new columns are those of the table.

Two private tables are joined by rows of equal keys.  Of each the first rows of a person count, then
the first rows of each key, in the order of a hash.  So a person who comes or goes exchanges a
bounded number of joined rows; where the key names the person, the joined rows of a person follow
from that person's rows alone.

References: Wilson et al. (2020), and Tumult Analytics, who cut rows so; docs/proofs/frames.md.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import narwhals as nw

from accountant.errors import ParameterError
from accountant.ledger.frames import FrameFacts
from accountant.plans.adjacency import Adjacency
from algorithms.frames.columns.dates import Date
from algorithms.frames.columns.keys import Key
from algorithms.frames.columns.kinds import DROP, TEXTS, ColumnKind
from algorithms.frames.columns.labels import Category, Flag
from algorithms.frames.columns.lookups import JoinKey, LookedUp
from algorithms.frames.columns.numbers import WHOLE_BOUND, Integer, Number
from algorithms.frames.rows import Reading
from algorithms.frames.schema import ROWS, Schema, near
from algorithms.frames.sources import Source, prepared

INNER_NAMES = re.compile(r"(key |missing n)\d+")  # of columns that a join adds to its tables
# Types of persons that are equal where their names are: times have units besides.
PERSON_TYPES = re.compile(rf"(u?int|{TEXTS}|date)(8|16|32|64)?")
EXACT_WHOLE = 2**53  # keys beyond it may be one float


def join_public(
    schema: Schema,
    table: Any,
    on: str,
    columns: Iterable[str] | Mapping[str, ColumnKind] | None = None,
) -> Schema:
    """Return the schema with columns of a public table, which rows find by a key.

    Parameters
    ----------
    schema : Schema
        What is public of the private frame.
    table : data frame
        The public table, with each key in one row.
    on : str
        The column of the keys, texts or whole numbers, of the table and of the frame.
    columns : list of str or dict, optional
        Which columns are added, or their kinds by name; all, as their values are, without it.

    Returns
    -------
    Schema
        Rows whose key the table does not have are without a value of the new columns.

    Examples
    --------
    >>> import pandas as pd
    >>> from algorithms.frames import Number, Schema, join_public
    >>> shops = pd.DataFrame({"shop": ["a", "b", "c"], "region": ["north", "south", "north"]})
    >>> visits = join_public(Schema({"cost": Number(0, 50)}), shops, on="shop")
    >>> visits.columns["region"].labels
    ('north', 'south')
    """
    if not isinstance(on, str):
        raise ParameterError("on", type(on), "the name of a column")
    if schema.joined is not None:
        raise ParameterError("schema", "of two private tables", "joined with public ones before")
    sources = looked_up(table, on, columns)
    for name in sources:
        if name in schema.columns:
            allowed = "without columns that the schema has: columns=[...] names some"
            raise ParameterError("table", name, allowed)
    return schema.with_sources(sources)


def join_private(
    schema: Schema,
    other: Schema,
    on: str | Sequence[str] | Mapping[str, str],
    rows_per_key: tuple[int, int],
) -> Schema:
    """Return the schema of the rows of two private tables that have equal keys.

    A ledger holds both tables, the first one of this schema: ``Filter({"visits": visits,
    "owners": owners}, budget)``.  Of each table the first rows of a person count, then the
    first rows of each key, by a hash of what is asked of them.

    Parameters
    ----------
    schema : Schema
        What is public of the first table.
    other : Schema
        What is public of the second table; its columns have other names.
    on : str, list of str or dict
        The columns of the keys, texts or whole numbers; a dict has those of the second table
        as its values.  With the persons of both tables among them a person has joined rows of
        her own, else she moves those of others too.
    rows_per_key : tuple of int
        How many rows of a key count, of the first and of the second table.

    Returns
    -------
    Schema
        With the columns of both tables.

    Examples
    --------
    >>> from algorithms.frames import Number, Schema, join_private, mean
    >>> visits = Schema({"cost": Number(0, 50)}, person="id", rows_per_person=3, order="hash")
    >>> patients = Schema({"age": Number(0, 100)}, person="id", order="hash")
    >>> joined = join_private(visits, patients, on="id", rows_per_key=(3, 1))
    >>> print(mean("age", epsilon=1.0).explain(joined))
    mean of age
      age: clipped to 0 .. 100, rows without one do not count
      joined on id: of a key the first 3 and 1 rows
      of each 'id' the first 3 rows that can count
      neighbours: one person more or less (column 'id' of the first table, column 'id' of the second table)
      DiscreteLaplace noise of scale 3 rows
      costs epsilon 1
    """  # noqa: E501
    for argument, table in (("schema", schema), ("other", other)):
        if not isinstance(table, Schema):
            raise ParameterError(argument, type(table), "the Schema of a table")
    names = [on] if isinstance(on, str) else on
    listed = list(names) if isinstance(names, Sequence | Mapping) else []
    allowed = "a name of columns, a list of them, or a dict from one table to the other"
    if not listed or not all(isinstance(name, str) for name in listed):
        raise ParameterError("on", on, allowed)
    pairs = dict(names) if isinstance(names, Mapping) else dict(zip(listed, listed, strict=True))
    if not all(isinstance(name, str) for name in pairs.values()):
        raise ParameterError("on", on, allowed)
    if not isinstance(rows_per_key, tuple | list) or len(rows_per_key) != 2:
        raise ParameterError("rows_per_key", rows_per_key, "a pair, one for each table: (3, 1)")
    limits = [ROWS.check("rows_per_key", limit) for limit in rows_per_key]
    joined = private_join(schema, other, pairs, (limits[0], limits[1]))
    return Schema(
        {**schema.columns, **other.columns},
        *joined.person_facts,
        formulas={**schema.formulas, **other.formulas},
        joined=joined,
    )


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
    read_as = {}
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
        read_as[name] = LookedUp(on, labels, tuple(values["c1"].tolist()), kind)
    return read_as


def table_of(rows: nw.DataFrame[Any]) -> Any:
    """Return the table as the library has it, with rows counted from 0 on."""
    native = rows.to_native()
    return native.reset_index(drop=True) if rows.implementation.is_pandas() else native


def values_of(column: nw.Series[Any]) -> list[Any]:
    """Return the values of a column that are not missing; NaN is."""
    values = column.drop_nulls().to_list()
    return [v for v in values if not (isinstance(v, float) and math.isnan(v))]


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


@final
@dataclass(frozen=True, slots=True)
class PrivateJoin:
    """Which rows of two private tables are joined; made by `join_private`.

    Parameters
    ----------
    schemas : tuple of Schema
        What is public of either table, with the keys of the join among its columns.
    keys : tuple of str
        The names of the keys there.
    rows_per_key : tuple of int
        How many rows of a key count, of either table.
    by_person : bool
        Whether the person is a key too.
    """

    schemas: tuple[Schema, Schema]
    keys: tuple[str, ...]
    rows_per_key: tuple[int, int]
    by_person: bool

    @property
    def rows_per_person(self) -> int:
        """How many joined rows a person has, or how many are exchanged for a person, at most."""
        (left_limit, right_limit) = self.rows_per_key
        left_schema, right_schema = self.schemas
        of_left = left_schema.rows_per_person * right_limit
        of_right = right_schema.rows_per_person * left_limit
        if self.by_person:
            return min(of_left, of_right)
        # Where persons are exchanged, one goes and another comes.
        persons = 2 if left_schema.relation is Adjacency.REPLACE_ONE else 1
        return persons * (of_left + of_right)

    @property
    def person_facts(self) -> tuple[str | None, int, Adjacency]:
        """The column of persons, how many joined rows a person moves, and the relation."""
        first_schema = self.schemas[0]
        person = first_schema.person if self.by_person else None
        return person, self.rows_per_person, first_schema.relation

    def check_schema(self, joined: Schema) -> None:
        """Refuse a schema of joined rows that would bound less than a person moves.

        Parameters
        ----------
        joined : Schema
            Of the joined rows.
        """
        facts = (joined.person, joined.rows_per_person, joined.relation)
        if facts != self.person_facts or joined.order or joined.groups_per_person:
            allowed = "those of the joined tables: join_private gives them"
            raise ParameterError("person, rows_per_person, relation", facts, allowed)
        for column, kind in joined.columns.items():
            if isinstance(kind, Key):
                allowed = "a Category in a join of private tables, or a column of on= alone"
                raise ParameterError(f"column {column!r}", kind, allowed)
            if INNER_NAMES.fullmatch(column):
                raise ParameterError("column", column, "of another name: joins have such names")

    def side(self, side: int, joined: Schema) -> Schema:
        """Return the schema of one of the tables, with the kinds that the joined rows have.

        Parameters
        ----------
        side : int
            0 or 1.
        joined : Schema
            Of the joined rows: what moves their sums is bounded by its kinds.

        Returns
        -------
        Schema
            With the keys of the join.
        """
        table = self.schemas[side]
        columns = {name: joined.columns.get(name, kind) for name, kind in table.columns.items()}
        return table.with_columns(columns)

    def check_frames(self, facts: FrameFacts | None, joined: Schema, names: Sequence[str]) -> None:
        """Refuse two tables whose columns are not those of the schemas.

        Parameters
        ----------
        facts : FrameFacts or None
            What is public of the tables.
        joined : Schema
            Of the joined rows.
        names : sequence of str
            The columns that a statistic reads.
        """
        tables = () if facts is None else tuple(facts.tables.values())
        if len(tables) != len(self.schemas):
            allowed = "a ledger on both tables: Filter({'visits': visits, 'owners': owners}, ...)"
            raise ParameterError("ledger", f"{len(tables)} tables", allowed)
        schemas = [self.side(side, joined) for side in range(len(tables))]
        for name in names:
            if not any(name in schema.columns for schema in schemas):
                raise ParameterError("column", name, "of one of the tables when they were joined")
        for schema, table in zip(schemas, tables, strict=True):
            own_names = [name for name in names if name in schema.columns]
            schema.check_frame(table, [*self.keys, *own_names])
        types = {t.types[s.person] for s, t in zip(self.schemas, tables, strict=True) if s.person}
        named = [word for word in types if not PERSON_TYPES.fullmatch(word.lower())]
        if self.by_person and (len(types) > 1 or named):
            allowed = "of whole numbers, texts or dates, of one type in both tables joined by it"
            raise ParameterError("person", sorted(types), allowed)
        if facts is not None and not facts.joinable:
            raise ParameterError("ledger", "tables", "tables that one connection can join")

    @property
    def owners(self) -> str:
        """Whose rows are whose, in words."""
        return ", ".join(
            ("each row" if schema.person is None else f"column {schema.person!r}")
            + f" of the {position} table"
            for schema, position in zip(self.schemas, ("first", "second"), strict=True)
        )

    def __str__(self) -> str:
        names = [self.schemas[0].read_from(key)[0] for key in self.keys]
        names += [str(self.schemas[0].person)] if self.by_person else []
        left_limit, right_limit = self.rows_per_key
        text = (
            f"joined on {', '.join(names)}: of a key the first {left_limit} and {right_limit} rows"
        )
        if self.by_person:
            return text
        return f"{text}; a person exchanges {self.rows_per_person} joined rows at most"


def private_join(
    left: Schema, right: Schema, on: dict[str, str], rows_per_key: tuple[int, int]
) -> PrivateJoin:
    """Return the join of two tables by pairs of columns, one of each; refuse what has no bound."""
    if left.relation is not right.relation:
        raise ParameterError("relation", str(right.relation), f"{str(left.relation)!r}, as there")
    for name, schema in (("schema", left), ("other", right)):
        if schema.joined is not None:
            raise ParameterError(name, "of two tables", "of a single table")
        if schema.groups_per_person is not None:
            allowed = "left out in a join: rows_per_person bounds the rows of a person"
            raise ParameterError("groups_per_person", schema.groups_per_person, allowed)
    shared_columns = sorted(set(left.columns) & set(right.columns))
    if shared_columns:
        raise ParameterError(
            "other", shared_columns, "a schema with other columns: rename those of a table"
        )
    by_person = None not in {left.person, right.person} and on.get(str(left.person)) == right.person
    pairs = [pair for pair in on.items() if not (by_person and pair[0] == left.person)]
    keys = tuple(f"key {i}" for i in range(len(pairs)))
    of_left, of_right = (
        schema.with_sources({k: JoinKey(pair[i]) for k, pair in zip(keys, pairs, strict=True)})
        for i, schema in enumerate((left, right))
    )
    return PrivateJoin((of_left, of_right), keys, rows_per_key, by_person)
