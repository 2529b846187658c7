"""Joins of two private tables: rows of equal keys, of which each table gives a few for each key.

Of each table the first rows of a person count, then the first rows of each key, in the order of a
hash.  So a person who comes or goes exchanges a bounded number of joined rows; where the key names
the person, the joined rows of a person follow from that person's rows alone.

References: Wilson et al. (2020), and Tumult Analytics, who cut rows so; docs/proofs/frames.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast, final

import narwhals as nw

from accountant.errors import ParameterError
from accountant.ledger.frames import FrameFacts
from accountant.plans.adjacency import Adjacency
from algorithms.frames.columns.keys import Key
from algorithms.frames.columns.lookups import JoinKey
from algorithms.frames.formulas import MISSING, Formula
from algorithms.frames.rows import PERSON, RANK, Reading, first_rows
from algorithms.frames.schema import HASH, Schema
from algorithms.frames.sources import Source, source_of


@final
@dataclass(frozen=True, slots=True)
class PrivateJoin:
    """Which rows of two private tables are joined; made by `Schema.join_private`.

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
        (left, right), (left_rows, right_rows) = self.schemas, self.rows_per_key
        of_left, of_right = left.rows_per_person * right_rows, right.rows_per_person * left_rows
        if self.by_person:
            return min(of_left, of_right)
        # Where persons are exchanged, one goes and another comes.
        persons = 2 if left.relation is Adjacency.REPLACE_ONE else 1
        return persons * (of_left + of_right)

    def used(self, side: int, names: Sequence[str]) -> tuple[str, ...]:
        """Return what is read of one of the tables: of these columns those that it has, and keys.

        Parameters
        ----------
        side : int
            0 or 1.
        names : sequence of str
            Columns of the joined rows.

        Returns
        -------
        tuple of str
            Their names.
        """
        schema = self.schemas[side]
        return (*self.keys, *(name for name in names if name in schema.columns))

    def check_frames(self, facts: FrameFacts | None, names: Sequence[str]) -> None:
        """Refuse two tables whose columns are not those of the schemas.

        Parameters
        ----------
        facts : FrameFacts or None
            What is public of the tables.
        names : sequence of str
            The columns that a statistic reads.
        """
        tables = () if facts is None else tuple(facts.tables.values())
        if len(tables) != len(self.schemas):
            allowed = "a ledger on both tables: Filter({'visits': visits, 'owners': owners}, ...)"
            raise ParameterError("ledger", f"{len(tables)} tables", allowed)
        for side, (schema, table) in enumerate(zip(self.schemas, tables, strict=True)):
            schema.check_frame(table, self.used(side, names))
        types = {t.types[s.person] for s, t in zip(self.schemas, tables, strict=True) if s.person}
        if self.by_person and len(types) > 1:
            allowed = "of one type in both tables, as they are joined by it"
            raise ParameterError("person", sorted(types), allowed)

    @property
    def owners(self) -> str:
        """Whose rows are whose, in words."""
        return ", ".join(
            ("each row" if schema.person is None else f"column {schema.person!r}")
            + f" of the {place} table"
            for schema, place in zip(self.schemas, ("first", "second"), strict=True)
        )

    def __str__(self) -> str:
        names = [self.schemas[0].read_from(key)[0] for key in self.keys]
        names += [str(self.schemas[0].person)] if self.by_person else []
        first, second = self.rows_per_key
        words = f"joined on {', '.join(names)}: of a key the first {first} and {second} rows"
        if self.by_person:
            return words
        return f"{words}; a person exchanges {self.rows_per_person} joined rows at most"


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
        for column, kind in schema.columns.items():
            if isinstance(kind, Key):
                allowed = "a Category in a join of private tables, or a column of on= alone"
                raise ParameterError(f"column {column!r}", kind, allowed)
    both = sorted(set(left.columns) & set(right.columns))
    if both:
        raise ParameterError("other", both, "a schema with other columns: rename those of a table")
    by_person = None not in {left.person, right.person} and on.get(str(left.person)) == right.person
    pairs = [pair for pair in on.items() if not (by_person and pair[0] == left.person)]
    keys = tuple(f"key {i}" for i in range(len(pairs)))
    of_left, of_right = (
        schema.with_sources({k: JoinKey(pair[i]) for k, pair in zip(keys, pairs, strict=True)})
        for i, schema in enumerate((left, right))
    )
    return PrivateJoin((of_left, of_right), keys, rows_per_key, by_person)


def joined_source(frames: Mapping[str, Any], reading: Reading) -> Source:
    """Return the joined rows of two tables that count."""
    schema, join = reading.schema, cast("PrivateJoin", reading.schema.joined)
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
        left, right = map(few, (left, right), join.rows_per_key)
        rows = left.join(right, on=matched, how="inner")
        if reading.where is not None:
            rows = rows.filter(reading.where.holds(reading.values, schema))
        return reading.cut(rows)

    return sides[0].joined(sides[1], matched, joined_rows)


def side_of(reading: Reading, side: int) -> tuple[Reading, dict[str, str]]:
    """Return what is read of one of two tables, and the names that its columns get there."""
    join = cast("PrivateJoin", reading.schema.joined)
    table, read_for = join.schemas[side], reading.read_for
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
