"""Conditions on rows, with public values: ``(col("age") >= 18) & (col("job") == "cook")``."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, final

import narwhals as nw

from accountant.domains import REAL
from accountant.errors import ParameterError
from algorithms.frames.columns.dates import Date, checked_date, days_since
from algorithms.frames.columns.kinds import ColumnKind
from algorithms.frames.formulas import MISSING, Formula, Operand
from algorithms.frames.schema import Schema

COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "in": lambda value, public: value.is_in(public),
}


@final
@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on a row, made by comparing `col` with public values.

    Values are compared as the schema declares them: clipped, and with the value that a missing one
    counts as.  A row without a value of a column in the condition does not count.

    Parameters
    ----------
    operation : str
        A comparison, "and", "or" or "not".
    parts : tuple
        A column's name and a value, or conditions.

    Examples
    --------
    >>> from algorithms.frames import col
    >>> (col("age") >= 18) & ~col("job").is_in(["cook"])
    (age >= 18) and (not (job in ('cook',)))
    """

    operation: str
    parts: tuple[Any, ...]

    def __and__(self, other: object) -> Condition:
        return Condition("and", (self, checked_condition(other)))

    def __or__(self, other: object) -> Condition:
        return Condition("or", (self, checked_condition(other)))

    def __invert__(self) -> Condition:
        return Condition("not", (self,))

    def __bool__(self) -> NoReturn:
        allowed = "joined by &, | and ~, with brackets: (col('a') > 1) & (col('b') < 2)"
        raise ParameterError("condition", self, allowed)

    def __repr__(self) -> str:
        texts = [
            f"({part!r})" if isinstance(part, Condition) else repr(part) for part in self.parts
        ]
        if self.operation in COMPARE:
            return f"{self.parts[0]} {self.operation} {texts[1]}"
        return f" {self.operation} ".join(texts) if len(texts) > 1 else f"not {texts[0]}"

    @property
    def columns(self) -> Iterator[str]:
        """The names of its columns."""
        if self.operation in COMPARE:
            yield self.parts[0]
        else:
            for part in self.parts:
                yield from part.columns

    def check(self, schema: Schema) -> None:
        """Refuse columns that are not declared, and values that they cannot have.

        Parameters
        ----------
        schema : Schema
            What is public of the columns.
        """
        if self.operation not in COMPARE:
            for part in self.parts:
                part.check(schema)
            return
        name, value = self.parts
        kind = schema.kind(name)
        for compared in value if self.operation == "in" else (value,):
            if kind.bounds is not None:
                number_of(name, kind, compared)
            elif self.operation not in {"==", "!=", "in"}:
                raise ParameterError("where", self, f"==, != or is_in, as {name!r} has no order")
            else:
                label_index(name, kind, compared)

    def holds(self, values: Mapping[str, nw.Expr], schema: Schema) -> nw.Expr:
        """Return where the condition holds, of columns as the schema declares them.

        Parameters
        ----------
        values : dict of narwhals.Expr
            Numbers, and the labels of categories and flags as an engine has them.
        schema : Schema
            What is public of the columns.

        Returns
        -------
        narwhals.Expr
            True or False in each row.
        """
        if self.operation in COMPARE:
            name, value = self.parts
            kind, listed = schema.kind(name), self.operation == "in"
            public = [
                number_of(name, kind, compared)
                if kind.bounds is not None
                else kind.texts[label_index(name, kind, compared)]
                for compared in (value if listed else (value,))
            ]
            mask: nw.Expr
            mask = COMPARE[self.operation](values[name], public if listed else public[0])
            return mask
        parts: list[nw.Expr] = [part.holds(values, schema) for part in self.parts]
        if self.operation == "not":
            return ~parts[0]
        return parts[0] & parts[1] if self.operation == "and" else parts[0] | parts[1]


@final
class ColumnName(Operand):
    """The name of a column, to be compared with public values or put in a formula; see `col`."""

    __hash__ = None  # type: ignore[assignment]  # == makes a condition

    def __init__(self, name: str) -> None:
        self._name = self.column_name = name

    def __lt__(self, value: object) -> Condition:
        return Condition("<", (self._name, value))

    def __le__(self, value: object) -> Condition:
        return Condition("<=", (self._name, value))

    def __gt__(self, value: object) -> Condition:
        return Condition(">", (self._name, value))

    def __ge__(self, value: object) -> Condition:
        return Condition(">=", (self._name, value))

    def __eq__(self, value: object) -> Condition:  # type: ignore[override]  # as in a data frame
        return Condition("==", (self._name, value))

    def __ne__(self, value: object) -> Condition:  # type: ignore[override]  # as in a data frame
        return Condition("!=", (self._name, value))

    def _refused(self, other: object) -> NoReturn:
        """Refuse `col("a") > 3 & col("b") == 1`, of which Python joins `3 & col("b")` first."""
        allowed = (
            "compared, in brackets, before it is joined: & and | bind more tightly than > and ==, "
            f"(col('a') > 3) & (col({self._name!r}) == ...)"
        )
        raise ParameterError(f"col({self._name!r})", type(other).__name__, allowed)

    __and__ = __rand__ = __or__ = __ror__ = _refused

    def __invert__(self) -> Condition:
        """Return the condition that a flag is False."""
        return Condition("==", (self._name, False))

    def is_null(self) -> Formula:
        """Return the flag whether the column has no value that counts, for `Schema.derive`."""
        return Formula(MISSING, (self._name,))

    @property
    def dt(self) -> DateParts:
        """The parts of dates, for `Schema.derive`: year, month and weekday."""
        return DateParts(self._name)

    def between(self, low: object, high: object) -> Condition:
        """Return the condition that the value lies between two others, or is one of them."""
        return (self >= low) & (self <= high)

    def is_in(self, values: Iterable[object]) -> Condition:
        """Return the condition that the value is one of those given."""
        return Condition("in", (self._name, tuple(values)))


@final
class DateParts:
    """The parts of a column of dates; see `ColumnName.dt`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def year(self) -> Formula:
        """Return the year."""
        return Formula("year", (self._name,))

    def month(self) -> Formula:
        """Return the month, 1 to 12."""
        return Formula("month", (self._name,))

    def weekday(self) -> Formula:
        """Return the day of the week, 1 for Monday to 7."""
        return Formula("weekday", (self._name,))


def col(name: str) -> ColumnName:
    """Return a column, to be compared with public values.

    Parameters
    ----------
    name : str
        Its name.

    Returns
    -------
    ColumnName
        Comparing it makes a `Condition`.

    Examples
    --------
    >>> from algorithms.frames import col
    >>> col("age") >= 18
    age >= 18
    """
    if not isinstance(name, str) or not name:
        raise ParameterError("name", name, "the name of a column")
    return ColumnName(name)


def checked_condition(where: object) -> Condition:
    """Return a condition, or raise `ParameterError`."""
    if not isinstance(where, Condition):
        allowed = "a comparison of a column, such as col('age') >= 18"
        # A condition object of a library may show rows in its text.
        shown = where if isinstance(where, str) else type(where)
        raise ParameterError("where", shown, allowed)
    return where


def checked_where(where: object) -> Condition | None:
    """Return a condition, or None where all rows count."""
    return None if where is None else checked_condition(where)


def number_of(name: str, kind: ColumnKind, value: Any) -> float:
    """Return a public value that numbers, or dates as days, are compared with."""
    argument = f"the value for column {name!r}"
    if isinstance(kind, Date):
        return days_since(checked_date(argument, value))
    return REAL.check(argument, value)


def label_index(name: str, kind: ColumnKind, label: object) -> int:
    """Return the index of a label of a column; True and 1 are not the same label."""
    for i, candidate in enumerate(kind.labels):
        if candidate == label and type(candidate) is type(label):
            return i
    raise ParameterError(f"the value for column {name!r}", label, f"one of {list(kind.labels)}")
