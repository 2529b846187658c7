"""The schema of a data frame: what is public of its columns, and whose rows they are."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self, final

from accountant.domains import IntegerRange
from accountant.errors import ParameterError
from accountant.formats.toml_writer import table_key, table_lines
from accountant.ledger.frames import FrameFacts
from accountant.plans.adjacency import RECORD_RELATIONS, Adjacency, check_relation
from algorithms.frames.arguments import answered_class
from algorithms.frames.columns.dates import Date
from algorithms.frames.columns.keys import Key
from algorithms.frames.columns.kinds import NUMBERS, TEXTS, ColumnKind
from algorithms.frames.columns.labels import Category, Flag
from algorithms.frames.columns.lookups import JoinKey, LookedUp
from algorithms.frames.columns.numbers import Integer, Number
from algorithms.frames.formulas import MISSING as MISSING_VALUE
from algorithms.frames.formulas import Formula
from dp_attest.public_names import nearest_name

ROWS = IntegerRange(1, 2**20)
HASH = "hash"  # rows of a person are in the order of a hash of what they have
ARTICLES = {"integer": "an"}
# Types that cannot identify persons: libraries cannot compare their values, or their ends are
# floats.
NO_NAMES = re.compile(
    r"u?int128|struct|list|large_list|fixed_size_list|array|map|null|complex|interval"
)
# Two whole numbers beyond 2^53 may be the same float, so two persons would be one.
FLOATS = re.compile(r"float\d*|double|halffloat|decimal\d*")
PLACES = rf"{NUMBERS}|{TEXTS.removeprefix('object|')}|{Date.types}"  # types that order rows
KINDS: dict[str, type[Any]] = {
    kind.kind: kind for kind in (Number, Integer, Date, Flag, Category, Key)
}
FACTS = ("person", "rows_per_person", "relation", "order", "groups_per_person",
         "rows_per_person_and_group")  # fmt: skip


@final
@answered_class("Schema({'age': Number(0, 100)}, person='id')")
@dataclass(frozen=True, slots=True)
class Schema:
    """What is public of a data frame; sensitivities follow from it.

    Parameters
    ----------
    columns : dict
        The kind of every column that is asked about, by name: `Number`, `Integer`, `Date`,
        `Flag`, `Category`, `Key`.
    person : str, optional
        The column that names the person whose row it is; each row is a person's only one without
        it.  A row that names none does not count.
    rows_per_person : int
        How many rows of a person count at most: the first that a statistic could use.
    relation : {"add-remove", "replace-one"}
        Neighbouring frames differ by all rows of one person: they are there or not, or they are
        those of another person.
    order : str, optional
        The column that orders the rows of a person, such as a time; those without a value come
        last.  "hash" orders them by a hash of what they have.  By default it is the order of the
        frame, which tables of a database do not have.
    groups_per_person, rows_per_person_and_group : int, optional
        In place of ``rows_per_person``: how many groups of a question a person has at most, and
        rows in each.  Their product is ``rows_per_person``.  Sums by groups get less Gaussian
        noise so: it grows with the root of the number of groups.  Labels of `top_k` are groups too.
        Quantiles, the selection of keys, and questions without groups take the first rows, as many
        as the product.
    formulas : dict, optional
        What columns follow from, by name; `derive` and `join_public` give it, with their kinds.
    joined : PrivateJoin, optional
        Which two private tables the rows are from; `join_private` gives it.

    Examples
    --------
    >>> from algorithms.frames import Category, Number, Schema
    >>> schema = Schema({"age": Number(0, 100), "job": Category(["cook", "nurse"])}, person="id",
    ...                 rows_per_person=3)
    >>> schema.columns["age"].bounds
    (0.0, 100.0)
    """

    columns: Mapping[str, ColumnKind]
    person: str | None
    rows_per_person: int
    relation: Adjacency
    order: str | None
    groups_per_person: int | None
    formulas: Mapping[str, Formula | LookedUp | JoinKey]
    joined: Any

    def __init__(
        self,
        columns: Mapping[str, ColumnKind],
        person: str | None = None,
        rows_per_person: int = 1,
        relation: str = Adjacency.ADD_REMOVE,
        order: str | None = None,
        groups_per_person: int | None = None,
        rows_per_person_and_group: int | None = None,
        formulas: Mapping[str, Formula | LookedUp | JoinKey] = MappingProxyType({}),
        joined: Any = None,
    ) -> None:
        allowed = "a dict from names of columns to Number, Integer, Date, Flag, Category or Key"
        if not isinstance(columns, Mapping) or not columns:
            raise ParameterError("columns", columns, allowed)
        for name, kind in columns.items():
            if not isinstance(name, str) or not isinstance(kind, ColumnKind):
                raise ParameterError(f"columns[{name!r}]", kind, allowed + like(kind))
        if person is not None and (not isinstance(person, str) or not person):
            raise ParameterError("person", person, "the name of a column, or None")
        rows = ROWS.check("rows_per_person", rows_per_person)
        if groups_per_person is not None or rows_per_person_and_group is not None:
            if rows > 1:
                allowed = "left out, where groups_per_person is given: it is the product of both"
                raise ParameterError("rows_per_person", rows_per_person, allowed)
            groups = ROWS.check("groups_per_person", groups_per_person)
            group_rows = ROWS.check("rows_per_person_and_group", rows_per_person_and_group or 1)
            rows = ROWS.check("groups_per_person * rows_per_person_and_group", groups * group_rows)
        if rows > 1 and person is None and joined is None:
            raise ParameterError("person", None, "the column that says whose row it is")
        if order is not None and (person is None or not isinstance(order, str) or not order):
            allowed = 'the name of a column, or "hash", where a column names persons'
            raise ParameterError("order", order, allowed)
        object.__setattr__(self, "columns", MappingProxyType(dict(columns)))
        object.__setattr__(self, "formulas", MappingProxyType(dict(formulas)))
        object.__setattr__(self, "person", person)
        object.__setattr__(self, "rows_per_person", rows)
        checked = check_relation("relation", relation, RECORD_RELATIONS)
        object.__setattr__(self, "relation", checked)
        object.__setattr__(self, "order", order)
        object.__setattr__(self, "groups_per_person", groups_per_person)
        object.__setattr__(self, "joined", joined)
        for name in columns.keys() & self.formulas.keys():
            source = self.formulas[name]
            kind = source.kind(self.kind) if isinstance(source, Formula) else source.declared_kind
            if columns[name] != kind:  # rows are not clipped once more, so others would be beyond
                allowed = f"left as it follows from others, {kind}: derive or join it anew"
                raise ParameterError(f"columns[{name!r}]", columns[name], allowed)
        if joined is not None:
            joined.check_schema(self)

    def __hash__(self) -> int:
        facts = {**self._facts, "formulas": tuple(self.formulas.items())}
        return hash((tuple(self.columns.items()), *facts.values()))

    def __reduce__(self) -> tuple[object, ...]:
        return Schema, (
            dict(self.columns),
            *{**self._facts, "formulas": dict(self.formulas)}.values(),
        )

    @property
    def groups(self) -> int:
        """How many groups of a question a person has at most."""
        return self.rows_per_person if self.groups_per_person is None else self.groups_per_person

    @property
    def _facts(self) -> dict[str, Any]:
        """The arguments that it was made with, but the columns."""
        ungrouped = self.groups_per_person is None
        group_rows = None if ungrouped else self.rows_per_person // self.groups
        return {
            "person": self.person,
            "rows_per_person": self.rows_per_person if ungrouped else 1,
            "relation": str(self.relation),
            "order": self.order,
            "groups_per_person": self.groups_per_person,
            "rows_per_person_and_group": group_rows,
            "formulas": self.formulas,
            "joined": self.joined,
        }

    def with_columns(self, columns: Mapping[str, ColumnKind]) -> Schema:
        """Return the schema of the same persons with other columns.

        Parameters
        ----------
        columns : dict
            The kind of every column, by name.

        Returns
        -------
        Schema
            It protects the same.
        """
        return Schema(columns, **self._facts)

    def with_kind(self, name: str, kind: ColumnKind) -> Schema:
        """Return the schema with another kind of a column, and of those that follow from it.

        Parameters
        ----------
        name : str
            The column.
        kind : ColumnKind
            What is public of it now, such as bounds that `bounds` found.

        Returns
        -------
        Schema
            It protects the same.
        """
        self.kind(name)
        columns = {**self.columns, name: kind}
        for derived, formula in self.formulas.items():
            if isinstance(formula, Formula) and derived != name:
                columns[derived] = formula.kind(columns.__getitem__)
        return self.with_columns(columns)

    def derive(self, **formulas: Formula) -> Schema:
        """Return the schema with further columns, each of which follows from others.

        Parameters
        ----------
        **formulas : Formula
            By the name of the new column, such as ``cost=col("price") * col("count")``,
            ``unknown=col("age").is_null()`` or ``month=col("day").dt.month()``.

        Returns
        -------
        Schema
            The kinds of the new columns follow from those of the others: they need no bounds.
        """
        columns = dict(self.columns)
        for name, derived in formulas.items():
            if not isinstance(derived, Formula) or name in columns:
                allowed = "a formula, such as col('price') * col('count'), under a new name"
                raise ParameterError(name, type(derived), allowed)
            for source in derived.columns:
                if isinstance(self.formulas.get(source), Formula):
                    allowed = "of columns of the frame: put the other formula in its place"
                    raise ParameterError(name, source, allowed)
            columns[name] = derived.kind(self.kind)
        facts = {**self._facts, "formulas": {**self.formulas, **formulas}}
        return Schema(columns, **facts)

    def with_sources(self, sources: Mapping[str, LookedUp | JoinKey]) -> Schema:
        """Return the schema with further columns that are read from others.

        Parameters
        ----------
        sources : dict of LookedUp or JoinKey
            How they are read, by their names.

        Returns
        -------
        Schema
            It protects the same.
        """
        kinds = {name: source.declared_kind for name, source in sources.items()}
        facts = {**self._facts, "formulas": {**self.formulas, **sources}}
        return Schema({**self.columns, **kinds}, **facts)

    def sources(self, used: Iterable[str]) -> tuple[str, ...]:
        """Return the columns that are read for some columns: of the frame, or of a public table.

        Parameters
        ----------
        used : iterable of str
            Names of columns.

        Returns
        -------
        tuple of str
            Without those of which only is asked whether they are missing.
        """
        sources: list[str] = []
        for name in used:
            derived = self.formulas.get(name)
            sources += derived.columns if isinstance(derived, Formula) else [name]
        return tuple(dict.fromkeys(sources))

    def asked_missing(self, used: Iterable[str]) -> tuple[str, ...]:
        """Return the columns of the frame of which is asked whether they are missing.

        Parameters
        ----------
        used : iterable of str
            Names of columns.

        Returns
        -------
        tuple of str
            Their names.
        """
        formulas = [f for name in used if isinstance(f := self.formulas.get(name), Formula)]
        return tuple(dict.fromkeys(f.parts[0] for f in formulas if f.operation == MISSING_VALUE))

    def read_from(self, name: str) -> tuple[str, ColumnKind]:
        """Return which column of the frame is read for a column, and as what.

        Parameters
        ----------
        name : str
            Its name.

        Returns
        -------
        tuple
            The column itself and its kind; of a public table the column of the keys.
        """
        source = self.formulas.get(name)
        if isinstance(source, LookedUp | JoinKey):
            return source.on, source
        return name, self.kind(name)

    @classmethod
    def from_toml(cls, path: str) -> Self:
        """Read a schema from a file that `to_toml` wrote, or that was written by hand.

        Parameters
        ----------
        path : str
            The file.

        Returns
        -------
        Schema
            The schema.

        Raises
        ------
        ParameterError
            If the file is no schema; the message names the key.
        """
        return cls(**read_schema(path))

    def to_toml(self, path: str | None = None) -> str:
        """Return the schema as TOML, and write it to a file.

        Parameters
        ----------
        path : str, optional
            The file; none is written without it.

        Returns
        -------
        str
            The text, which `from_toml` reads.
        """
        if self.joined is not None:
            raise ParameterError("schema", str(self.joined), "of one table: write both before")
        if self.formulas:
            allowed = "a schema without derived and joined columns: add them when it was read"
            raise ParameterError("schema", list(self.formulas), allowed)
        facts = {n: fact for n, fact in self._facts.items() if fact is not None and n != "formulas"}
        if self.groups_per_person is not None:
            del facts["rows_per_person"]
        return write_schema(facts, self.columns, path)

    @property
    def row_relation(self) -> Adjacency:
        """How rows of neighbours differ: a person who comes may put joined rows of others out."""
        by_others = self.joined is not None and not self.joined.by_person
        return Adjacency.REPLACE_ONE if by_others else self.relation

    @property
    def unit(self) -> str:
        """Who is protected, in words."""
        owner = "each row is a person" if self.person is None else f"column {self.person!r}"
        owner = owner if self.joined is None else self.joined.owners
        change = (
            "one person more or less"
            if self.relation is Adjacency.ADD_REMOVE
            else "one person exchanged for another"
        )
        return f"{change} ({owner})"

    def kind(self, name: object) -> ColumnKind:
        """Return the kind of a column.

        Parameters
        ----------
        name : str
            Its name.

        Returns
        -------
        ColumnKind
            Its kind.

        Raises
        ------
        ParameterError
            If the schema does not have it; the message suggests a name that it has.
        """
        if isinstance(name, str) and name in self.columns:
            return self.columns[name]
        if not isinstance(name, str):  # it may be a column object, whose rows are private
            raise ParameterError("column", type(name), "the name of a column that is declared")
        raise ParameterError("column", name, f"declared in the schema{near(name, self.columns)}")

    def rule(self, name: str) -> str:
        """Return how the values of a column count, in words.

        Parameters
        ----------
        name : str
            Its name.

        Returns
        -------
        str
            What it follows from, or what is clipped and missing.
        """
        derived, kind = self.formulas.get(name), self.kind(name)
        if not isinstance(derived, Formula):
            return self.read_from(name)[1].rule
        ends = "" if kind.bounds is None else f", {kind.bounds[0]:g} .. {kind.bounds[1]:g}"
        return f"{derived!r}{ends}"

    def check_persons(self, instead: str) -> None:
        """Refuse rows of which it is not known whose they are, as several persons have a part.

        Parameters
        ----------
        instead : str
            What may be asked, in words.
        """
        if self.joined is not None and not self.joined.by_person:
            allowed = f"joined on the persons of both tables too; or ask {instead}"
            raise ParameterError("schema", str(self.joined), allowed)

    def check_frame(self, facts: FrameFacts | None, used: Sequence[str]) -> None:
        """Refuse a frame whose columns are not those of the schema; no row is looked at.

        Parameters
        ----------
        facts : FrameFacts or None
            What is public of the frame: `Ledger.frame_facts`.
        used : iterable of str
            The columns that a statistic reads.

        Raises
        ------
        ParameterError
            If one is missing, or is of another type, or the persons' cannot be distinguished.
        """
        if facts is None or (facts.tables and self.joined is None):
            allowed = (
                "a ledger on a data frame of pandas, polars, Arrow, Dask, DuckDB, Spark, SQLFrame "
                "or Ibis; of two private tables join_private makes the rows"
            )
            raise ParameterError("ledger", "arrays" if facts is None else "tables", allowed)
        if self.joined is not None:
            names = [*self.sources(used), *self.asked_missing(used)]
            self.joined.check_frames(facts, self, names)
            return
        sources = dict(map(self.read_from, [*self.sources(used), *self.asked_missing(used)]))
        order = None if self.order == HASH else self.order
        extra = {"person": self.person, "order": order}
        for argument, name in [*(("column", name) for name in sources), *extra.items()]:
            if name is not None and name not in facts.types:
                allowed = f"a column of the frame{near(name, facts.types)}"
                raise ParameterError(argument, name, allowed)
            if name is not None and facts.types[name] == "String_of_the_engine":
                allowed = (
                    "a column of whole numbers on this engine, whose texts may be equal where "
                    "letters differ: two persons, or two labels, would be one"
                )
                raise ParameterError(f"{argument} {name!r}", facts.types[name], allowed)
        if self.person is not None and self.order is None and not facts.ordered:
            allowed = (
                "given, as tables of this engine have no order of rows, and the first rows of a "
                f"person count: Schema(..., order='a column'), or order={HASH!r}"
            )
            raise ParameterError("order", None, allowed)
        if order is not None and not re.fullmatch(rf"({PLACES})\d*", facts.types[order].lower()):
            allowed = "a column of numbers, dates, times or texts"
            raise ParameterError(f"order {order!r}", facts.types[order], allowed)
        named = None if self.person is None else facts.types[self.person]
        if named is not None and NO_NAMES.match(named.lower()):
            allowed = "a column of whole numbers of 64 bits or less, texts, dates or such"
            raise ParameterError(f"person {self.person!r}", named, allowed)
        if named is not None and FLOATS.fullmatch(named.lower()):
            allowed = (
                "a column of whole numbers or texts: of floats two persons beyond 2^53 are one. "
                "Read it as such from its source, as dtype='Int64' of pandas keeps missing ones"
            )
            raise ParameterError(f"person {self.person!r}", named, allowed)
        for name, kind in sources.items():
            dtype = facts.types[name]
            if not kind.fits(dtype):
                allowed = f"of a type that is {ARTICLES.get(kind.kind, 'a')} {kind.kind}"
                allowed += ", as the schema declares"
                allowed += advice(kind, dtype)
                raise ParameterError(f"column {name!r}", dtype, allowed)


def near(name: object, candidates: Iterable[str]) -> str:
    """Return a suggestion for an unknown name: the nearest candidate, or a list of candidates."""
    names = list(candidates)
    meant = nearest_name(str(name), names)
    listed = ", ".join(map(repr, names[:10])) + (", ..." if len(names) > 10 else "")
    return f", one of {listed}" if meant is None else f": did you mean {meant!r}?"


def like(declared: object) -> str:
    """Return a hint how to declare a column that was declared as another object."""
    if isinstance(declared, type) and issubclass(declared, ColumnKind):
        return f"; {declared.__name__} takes what is public of its values, as Number(0, 100) does"
    if isinstance(declared, tuple | list) and declared:
        numbers = all(isinstance(element, int | float) for element in declared)
        if numbers and len(declared) == 2:
            return f"; bounds are Number({declared[0]!r}, {declared[1]!r})"
        return f"; labels are Category({list(declared)!r})"
    return "; a column of numbers is Number(low, high), with bounds known without the data"


def advice(kind: ColumnKind, dtype: str) -> str:
    """Return a hint for a column whose type does not fit its declared kind."""
    texts = re.fullmatch(rf"({TEXTS})\d*", dtype.lower()) is not None
    dates = re.fullmatch(rf"({Date.types})\d*", dtype.lower()) is not None
    if dates:
        return "; a column of dates is declared as Date(low, high)"
    if texts and isinstance(kind, Date):
        return (
            "; dates as strings are converted before: pandas.to_datetime(column), or "
            "column.str.to_date() of polars"
        )
    if texts and kind.bounds is not None:
        return "; numbers as strings are converted before, and labels are a Category or a Key"
    if texts:
        return f"; its labels are strings, as in Category(['a', 'b']), not {kind.labels[:2]!r}"
    if dtype.lower().startswith("bool"):
        return "; a column of True and False is declared as Flag()"
    if isinstance(kind, Flag):
        return "; a column of 0 and 1 is declared as Integer(0, 1)"
    if re.fullmatch(rf"({NUMBERS})\d*", dtype.lower()):
        return "; labels that are numbers are declared as such: Category([1, 2])"
    return "; convert the column to such a type before"


def read_schema(path: str) -> dict[str, Any]:
    """Return the arguments of the schema that a file declares."""
    try:
        document = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ParameterError("path", str(path), f"a TOML file ({error})") from None
    unknown = set(document) - {*FACTS, "columns"}
    if unknown or not isinstance(document.get("columns"), dict):
        allowed = f"keys {', '.join(FACTS)} and a table for each column, [columns.NAME]"
        raise ParameterError("schema", sorted(document), allowed)
    columns = {name: _kind(name, table) for name, table in document.pop("columns").items()}
    return {"columns": columns, **document}


def _kind(name: str, table: Any) -> ColumnKind:
    settings = dict(table) if isinstance(table, dict) else {}
    word = settings.pop("kind", None)
    if word not in KINDS:
        raise ParameterError(f"columns.{name}.kind", word, f"one of {', '.join(KINDS)}")
    names = [field.name for field in fields(KINDS[word])]
    needed = [field.name for field in fields(KINDS[word]) if field.default is MISSING]
    if not set(needed) <= set(settings) <= set(names):
        allowed = f"the keys kind, {', '.join(needed)}, and if wanted {names[-1]}"
        raise ParameterError(f"columns.{name}", sorted(settings), allowed)
    try:
        column_kind: ColumnKind = KINDS[word](**settings)
    except ParameterError as error:
        argument = f"columns.{name}.{error.argument}"
        raise ParameterError(argument, error.value, error.allowed) from None
    return column_kind


def write_schema(facts: dict[str, Any], columns: Mapping[str, ColumnKind], path: str | None) -> str:
    """Return a schema as TOML; write it to a file where one is named."""
    blocks = [table_lines(facts)]
    for name, kind in columns.items():
        settings = {field.name: getattr(kind, field.name) for field in fields(kind)}
        table = table_lines({"kind": kind.kind, **settings})
        blocks.append([f"[columns.{table_key(name)}]", *table])
    text = "\n\n".join("\n".join(lines) for lines in blocks) + "\n"
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text
