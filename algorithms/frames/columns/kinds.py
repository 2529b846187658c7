"""The base class of the kinds of columns that a schema declares for a data frame.

A kind says which types of a frame library it fits, which values are public (bounds or labels), and
what a missing value counts as.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import narwhals as nw

SURROGATES = re.compile("[\ud800-\udfff]")  # half characters, which are not valid text
DROP = "drop"  # the choice that a row whose value is missing does not count
# Regular expressions of the first words of types of columns (`accountant.ledger.frames.type_word`),
# in lower case and without the digits at the end: "int64" is an "int".  A column of Python objects
# may hold flags or texts, so "object" is in both; each cell is looked at when it is read.
NUMBERS, FLAGS = r"u?int|float|double|halffloat|decimal", r"bool|boolean|object"
TEXTS = r"object|str|string|large_string|string_view|category|categorical|enum|dictionary"


@dataclass(frozen=True, slots=True)
class ColumnKind(ABC):
    """A kind of column; see `Number`, `Integer`, `Date`, `Flag`, `Category` and `Key`.

    ``types`` is a regular expression of the types that fit, and ``kind`` the name of the kind.
    """

    types: ClassVar[str]
    kind: ClassVar[str]

    @property
    @abstractmethod
    def missing(self) -> Any:
        """What a missing value counts as, or "drop"."""

    @property
    def filled(self) -> Any:
        """What a missing value counts as in sums, or "drop".

        In a column with bounds it is a number: for a date the number of its day.
        """
        return self.missing

    def fits(self, type_name: str) -> bool:
        """Return whether a column of this type may be of this kind.

        Parameters
        ----------
        type_name : str
            The type, as the library of the frame calls it.

        Returns
        -------
        bool
            The answer, which depends on the type alone and not on the rows.
        """
        return re.fullmatch(rf"({self.types})\d*", type_name.lower()) is not None

    @property
    def labels(self) -> tuple[str | int | bool, ...]:
        """The public values of a column of labels, in order; empty for all other kinds."""
        return ()

    @property
    def texts(self) -> tuple[str | float, ...]:
        """The labels as an engine has them: texts, or numbers."""
        return tuple(label if isinstance(label, str) else float(label) for label in self.labels)

    @property
    def numeric(self) -> bool:
        """Whether an engine has the values as numbers."""
        return self.bounds is not None or isinstance((*self.texts, "")[0], float)

    def present(self, column: nw.Expr) -> nw.Expr:
        """Return where a row has a value: a number, or one of the labels.

        Parameters
        ----------
        column : narwhals.Expr
            The column, as it is read.

        Returns
        -------
        narwhals.Expr
            True or False, or null for False.
        """
        return ~(column.is_null() | column.is_nan())

    def declared(self, column: nw.Expr) -> nw.Expr:
        """Return values that are present as they count: within the bounds.

        Parameters
        ----------
        column : narwhals.Expr
            The column, as it is read.

        Returns
        -------
        narwhals.Expr
            Numbers, or labels.
        """
        return column if self.bounds is None else column.clip(*map(float, self.bounds))

    @property
    @abstractmethod
    def rule(self) -> str:
        """How values are clipped or replaced before they count, in words."""

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The public bounds of numbers; None where there are none."""
        return None


def whole(number: Any) -> Any:
    """Return the nearest whole number, of a half the larger one: alike on every engine."""
    return math.floor(number + 0.5) if isinstance(number, float) else (number + 0.5).floor()


def missing_in_words(missing: object) -> str:
    """Return the rule for missing values in words."""
    return "rows without one do not count" if missing == DROP else f"missing counts as {missing!r}"
