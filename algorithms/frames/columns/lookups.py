"""Columns that a frame has by another column of it: those of a public table, and keys of joins.

They are read from the column that has the keys, row by row, so a row adds what it added before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar, final

import narwhals as nw

from algorithms.frames.columns.keys import Key
from algorithms.frames.columns.kinds import DROP, NUMBERS, TEXTS, ColumnKind


@final
@dataclass(frozen=True, slots=True)
class LookedUp(ColumnKind):
    """How a column of a public table is read: by the key that a row has.

    Parameters
    ----------
    on : str
        The column of the frame that has the key.
    keys : tuple of str or int
        The keys of the table, all different.
    table_values : tuple
        What the table has for each key, as an engine has it: texts, or floats within the bounds.
    table_kind : ColumnKind
        The kind of the column of the table.
    """

    kind: ClassVar[str] = "key of a public table"

    on: str
    keys: tuple[str | int, ...]
    table_values: tuple[str | float, ...]
    table_kind: ColumnKind

    @property
    def declared_kind(self) -> ColumnKind:
        """The kind of the column that is read so."""
        return self.table_kind

    @property
    def missing(self) -> Any:
        """What a row without a key of the table counts as, or "drop"."""
        return self.table_kind.missing

    @property
    def filled(self) -> Any:
        """What a row without a key of the table counts as in sums, or "drop"."""
        return self.table_kind.filled

    def fits(self, type_name: str) -> bool:
        """Return whether a column of this type may hold the keys."""
        types = TEXTS if isinstance(self.keys[0], str) else NUMBERS
        return re.fullmatch(rf"({types})\d*", type_name.lower()) is not None

    @property
    def labels(self) -> tuple[str | int, ...]:
        """The keys, as which the column of the frame is read."""
        return self.keys

    def present(self, column: nw.Expr) -> nw.Expr:
        """Return where a row has a key of the table."""
        return column.is_in(list(self.texts))

    @property
    def rule(self) -> str:
        """Where values are from, and what counts as what, in words."""
        return f"by {self.on} of a public table of {len(self.keys)} keys; {self.table_kind.rule}"


@final
@dataclass(frozen=True, slots=True)
class JoinKey(ColumnKind):
    """A column by which two private tables are joined: its values are texts, and private."""

    kind: ClassVar[str] = "key"
    types: ClassVar[str] = Key.types

    on: str

    @property
    def declared_kind(self) -> JoinKey:
        """The kind of the column that is read so."""
        return self

    @property
    def missing(self) -> str:
        """What a row without a key counts as: it is dropped."""
        return DROP

    def present(self, column: nw.Expr) -> nw.Expr:
        """Return where a row has a key."""
        return Key().present(column)

    @property
    def rule(self) -> str:
        """What counts as what, in words."""
        return "rows without a key do not count"
