"""Columns of private keys: which keys occur in them is not public, such as words or web addresses.

A question by such a column first selects keys in private, those that enough persons have.  Then
`SelectedKeys`, a column of these public keys, takes the place of `Key`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import narwhals as nw

from accountant.domains import IntegerRange
from algorithms.frames.arguments import answered_class
from algorithms.frames.columns.kinds import DROP, TEXTS, ColumnKind

# A person who is replaced by another moves the keys of both, of which `PartitionSelection` takes at
# most 1024.
KEYS_OF_PERSON = IntegerRange(1, 512)
LONGEST_KEY = 256  # characters; a longer key counts as missing


@final
@answered_class("Key(keys_per_person=2)")
@dataclass(frozen=True, slots=True)
class Key(ColumnKind):
    """A column of strings or whole numbers of which it is private which of them occur.

    A question ``by`` it first selects keys that enough persons have, then answers for those.
    Empty strings, and those of more than 256 characters, count as missing; rows without a key do
    not count.

    Parameters
    ----------
    keys_per_person : int
        Largest number of different keys of a person that count for the selection, 1 to 512: the
        first ones in the order of the rows.

    Examples
    --------
    >>> from algorithms.frames import Key
    >>> Key(keys_per_person=3).rule
    'private keys, of each person the first 3; rows without one do not count'
    """

    kind: ClassVar[str] = "key"
    types: ClassVar[str] = rf"u?int|{TEXTS}"  # a pattern of the names of types

    keys_per_person: int = 1

    def __post_init__(self) -> None:
        checked = KEYS_OF_PERSON.check("keys_per_person", self.keys_per_person)
        object.__setattr__(self, "keys_per_person", checked)

    @property
    def missing(self) -> str:
        """What a missing key counts as: its row is dropped."""
        return DROP

    def present(self, column: nw.Expr) -> nw.Expr:
        """Return where a row has a key: no null byte at its end, which arrays of strings drop."""
        length = column.str.len_chars()
        return (length > 0) & (length <= LONGEST_KEY) & ~column.str.ends_with("\0")

    @property
    def rule(self) -> str:
        """What counts as what, in words."""
        key_limit = f"the first {self.keys_per_person}" if self.keys_per_person > 1 else "the first"
        return f"private keys, of each person {key_limit}; rows without one do not count"


@final
@dataclass(frozen=True, slots=True)
class SelectedKeys(ColumnKind):
    """A column of keys after the selection: the ``selected`` ones are public, others dropped."""

    kind: ClassVar[str] = "key"
    types: ClassVar[str] = Key.types

    selected: tuple[str | int, ...]

    @property
    def missing(self) -> str:
        """What a key that was not selected counts as: its row is dropped."""
        return DROP

    @property
    def labels(self) -> tuple[str | int, ...]:
        """The keys that were selected."""
        return self.selected

    @property
    def texts(self) -> tuple[str, ...]:
        """The keys as texts, as they are read."""
        return tuple(map(str, self.selected))

    def present(self, column: nw.Expr) -> nw.Expr:
        """Return where a row has one of the keys."""
        return column.is_in(list(self.texts))

    @property
    def rule(self) -> str:
        """What counts as what, in words."""
        return f"{len(self.selected)} selected keys, rows with none of them do not count"
