"""Columns that follow from others, row by row: ``col("price") * col("count")``, and their domains.

A formula is of columns as the schema declares them, so its bounds follow from theirs: sums and
products of numbers, parts of dates, and whether a value is missing.

References: McSherry (2009); Richards, "Calendars", in the Explanatory Supplement to the
Astronomical Almanac (2013).
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, final

import narwhals as nw

from accountant.domains import REAL
from accountant.errors import ParameterError
from algorithms.frames.columns.dates import Date
from algorithms.frames.columns.kinds import ColumnKind
from algorithms.frames.columns.labels import Category, Flag
from algorithms.frames.columns.numbers import WHOLE_BOUND, Integer, Number

ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}
DATE_PARTS = {"month": 12, "weekday": 7}  # how many there are; 1 is January, and Monday
MISSING = "is_null"


class Operand:
    """What formulas are made of: the name of a column, or a formula."""

    def __add__(self, other: object) -> Formula:
        return formula("+", self, other)

    def __radd__(self, other: object) -> Formula:
        return formula("+", other, self)

    def __sub__(self, other: object) -> Formula:
        return formula("-", self, other)

    def __rsub__(self, other: object) -> Formula:
        return formula("-", other, self)

    def __mul__(self, other: object) -> Formula:
        return formula("*", self, other)

    def __rmul__(self, other: object) -> Formula:
        return formula("*", other, self)


@final
@dataclass(frozen=True, slots=True)
class Formula(Operand):
    """A column that follows from others; made from `col`, and named by `Schema.derive`.

    Parameters
    ----------
    operation : str
        "+", "-", "*", a part of a date, or "is_null"; "" where it is a column or a number itself.
    parts : tuple
        Formulas, or the name of a column, or a number.

    Examples
    --------
    >>> from algorithms.frames import Integer, Number, Schema, col
    >>> schema = Schema({"price": Number(0, 50), "count": Integer(0, 8)})
    >>> schema.derive(cost=col("price") * col("count") - 5).columns["cost"]
    Number(low=-5.0, high=395.0, missing='drop')
    """

    operation: str
    parts: tuple[Any, ...]

    def __repr__(self) -> str:
        if not self.operation:
            return str(self.parts[0])
        if self.operation in ARITHMETIC:
            return f"({self.parts[0]!r} {self.operation} {self.parts[1]!r})"
        return f"{self.operation} of {self.parts[0]}"

    @property
    def columns(self) -> Iterator[str]:
        """The names of its columns, but those that may be missing."""
        if self.operation in ARITHMETIC:
            for part in self.parts:
                yield from part.columns
        elif isinstance(self.parts[0], str) and self.operation != MISSING:
            yield self.parts[0]

    def kind(self, kind_of: Callable[[str], ColumnKind]) -> ColumnKind:
        """Return the kind of the column: its bounds, or labels, follow from those of the others.

        Parameters
        ----------
        kind_of : callable
            Returns the kind of a column by its name.

        Returns
        -------
        ColumnKind
            A Number, an Integer, a Flag or a Category.
        """
        if self.operation == MISSING:
            kind_of(self.parts[0])
            return Flag()
        if self.operation in {"year", *DATE_PARTS}:
            date = kind_of(self.parts[0])
            if not isinstance(date, Date):
                raise ParameterError(f"column {self.parts[0]!r}", date, "a Date, which has parts")
            if self.operation == "year":
                return Category(range(int(date.low[:4]), int(date.high[:4]) + 1))
            return Category(range(1, DATE_PARTS[self.operation] + 1))
        low, high, is_integer = self.value_bounds(kind_of)
        if low == high:
            raise ParameterError("formula", self, "of columns whose values may differ")
        if is_integer and max(abs(low), abs(high)) <= WHOLE_BOUND.high:
            return Integer(int(low), int(high))
        return Number(low, high)

    def value_bounds(self, kind_of: Callable[[str], ColumnKind]) -> tuple[float, float, bool]:
        """Return the least and the largest value, and whether all are whole.

        Floats round alike here and in rows, and rounding keeps order: so no row is beyond.

        Parameters
        ----------
        kind_of : callable
            Returns the kind of a column by its name.

        Returns
        -------
        tuple
            Both bounds, and whether all values are whole numbers.
        """
        part = self.parts[0]
        if self.operation in ARITHMETIC:
            left, right = (part.value_bounds(kind_of) for part in self.parts)
            corners = [
                ARITHMETIC[self.operation](a, b) for a, b in itertools.product(left[:2], right[:2])
            ]
            if not all(map(math.isfinite, corners)):
                # Times 0 infinity would be NaN, which a row may have and no bound shows.
                allowed = "of numbers that stay below 1.8e308: declare closer bounds"
                raise ParameterError("formula", self, allowed)
            return min(corners), max(corners), left[2] and right[2]
        if not isinstance(part, str):
            return part, part, float(part).is_integer()
        kind = kind_of(part)
        if not isinstance(kind, Number | Integer):
            raise ParameterError(f"column {part!r}", kind, "a Number or an Integer, in a formula")
        low, high = map(float, kind.bounds)
        return low, high, isinstance(kind, Integer)

    def value(self, values: Mapping[str, nw.Expr], missing: Mapping[str, nw.Expr]) -> Any:
        """Return the value in each row, of columns as declared.

        Parameters
        ----------
        values : dict of narwhals.Expr
            The columns by name.
        missing : dict of narwhals.Expr
            1 where a column has no value, and 0 elsewhere, by its name.

        Returns
        -------
        narwhals.Expr
            A number, or the label as an engine has it; a float where it is the same in all rows.
        """
        part = self.parts[0]
        if self.operation in ARITHMETIC:
            return ARITHMETIC[self.operation](*(f.value(values, missing) for f in self.parts))
        if self.operation == MISSING:
            return missing[part]
        if self.operation:
            return date_part(values[part], self.operation)
        return values[part] if isinstance(part, str) else part


def formula(operation: str, *parts: object) -> Formula:
    """Return a formula of columns, formulas and numbers."""
    return Formula(operation, tuple(map(operand, parts)))


def operand(part: object) -> Formula:
    """Return a part of a formula; refuse what is no column, formula or number."""
    if isinstance(part, Formula):
        return part
    name = getattr(part, "column_name", None)
    return Formula("", (name if isinstance(part, Operand) else REAL.check("formula", part),))


def date_part(days: nw.Expr, part: str) -> nw.Expr:
    """Return the year, the month or the weekday of days since 1970, in exact floats."""
    if part == "weekday":
        since_monday = days + 3
        return since_monday - (since_monday / 7).floor() * 7 + 1
    months = months_of(days)
    year = (months / 12).floor()
    return year if part == "year" else months - year * 12 + 1


def months_of(days: nw.Expr) -> nw.Expr:
    """Return how many months lie between January of the year 0 and days since 1970.

    Years begin in March here, so that leap days are at their ends.
    """
    centuries = ((days * 4 + 10_036_629) / 146_097).floor()
    quarter_days = (days + 2_441_951 + (centuries * 3 / 4).floor()) * 4 + 3
    year = (quarter_days / 1461).floor()
    day_of_year = ((quarter_days - year * 1461) / 4).floor()
    return (year - 4716) * 12 + ((day_of_year * 5 + 2) / 153).floor() + 2
