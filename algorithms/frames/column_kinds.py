"""Kinds of columns: what is public of their values, and what a missing one counts as."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, final

from accountant.domains import REAL, IntegerRange, Interval
from accountant.errors import ParameterError

DROP = "drop"  # a row whose value is missing does not count
NUMBERS, FLAGS = r"u?int|float|double|halffloat|decimal", r"bool|boolean|object"
TEXTS = r"object|str|string|large_string|string_view|category|categorical|enum|dictionary"
WHOLE_BOUND = IntegerRange(-(2**30), 2**30)  # so that sums of 2^32 rows fit 64 bits
KEYS_OF_PERSON = IntegerRange(1, 512)  # twice as many are what one selection takes
LONGEST_KEY = 256
MISSING_NUMBER = '"drop", or a number within the bounds'


@dataclass(frozen=True, slots=True)
class ColumnKind:
    """A kind of column; see `Number`, `Integer`, `Date`, `Flag`, `Category` and `Key`."""

    types: ClassVar[str]
    kind: ClassVar[str]

    @property
    @abstractmethod
    def missing(self) -> Any:
        """What a missing value counts as, or "drop"."""

    @property
    def filled(self) -> Any:
        """What a missing value counts as in sums, or "drop"."""
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
            Without a look at the rows.
        """
        return re.fullmatch(rf"({self.types})\d*", type_name.lower()) is not None

    @property
    def labels(self) -> tuple[str | int | bool, ...]:
        """The public values, where there are few."""
        return ()

    @property
    @abstractmethod
    def rule(self) -> str:
        """What counts as what, in words."""

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The public bounds of numbers; None where there are none."""
        return None


def missing_in_words(missing: object) -> str:
    """Return the rule for missing values in words."""
    return "rows without one do not count" if missing == DROP else f"missing counts as {missing!r}"


@final
@dataclass(frozen=True, slots=True)
class Number(ColumnKind):
    """A column of numbers with public bounds; numbers beyond are clipped to them.

    Parameters
    ----------
    low, high : float
        The bounds, known without the data.
    missing : "drop" or float
        Whether a row without a number is left out, or the number that it counts as.  NaN is
        missing; infinities are beyond the bounds.

    Examples
    --------
    >>> from algorithms.frames import Number
    >>> Number(0, 100).rule
    'clipped to 0 .. 100, rows without one do not count'
    """

    types: ClassVar[str] = NUMBERS
    kind: ClassVar[str] = "number"

    low: float
    high: float
    missing: float | str = DROP

    def __post_init__(self) -> None:
        low, high = REAL.check("low", self.low), REAL.check("high", self.high)
        if not low < high <= 1e300 or high - low < 1e-300:  # halves of it are no numbers
            allowed = f"a number above low, which is {low:g}: Number(low, high)"
            raise ParameterError("high", self.high, allowed)
        _set_bounds(self, low, high)

    @property
    def bounds(self) -> tuple[float, float]:
        """The public bounds."""
        return self.low, self.high

    @property
    def rule(self) -> str:
        """What counts as what, in words."""
        return f"clipped to {self.low:g} .. {self.high:g}, {missing_in_words(self.missing)}"


@final
@dataclass(frozen=True, slots=True)
class Integer(ColumnKind):
    """A column of whole numbers with public bounds: sums of them are whole, and so is their noise.

    Parameters
    ----------
    low, high : int
        The bounds, of size 2^30 at most, known without the data.
    missing : "drop" or int
        As in `Number`.

    Examples
    --------
    >>> from algorithms.frames import Integer
    >>> Integer(0, 8, missing=0).rule
    'rounded and clipped to 0 .. 8, missing counts as 0'
    """

    types: ClassVar[str] = NUMBERS
    kind: ClassVar[str] = "integer"

    low: int
    high: int
    missing: int | str = DROP

    def __post_init__(self) -> None:
        low = WHOLE_BOUND.check("low", self.low)
        _set_bounds(self, low, IntegerRange(low + 1, 2**30).check("high", self.high))

    @property
    def bounds(self) -> tuple[int, int]:
        """The public bounds."""
        return self.low, self.high

    @property
    def rule(self) -> str:
        """What counts as what, in words."""
        clipped = f"rounded and clipped to {self.low} .. {self.high}"
        return f"{clipped}, {missing_in_words(self.missing)}"


def _set_bounds(kind: Number | Integer, low: float, high: float) -> None:
    """Set checked bounds, and what a missing number counts as."""
    object.__setattr__(kind, "low", low)
    object.__setattr__(kind, "high", high)
    if kind.missing == DROP:
        return
    within = IntegerRange(int(low), int(high)) if type(kind) is Integer else Interval(low, high)
    try:
        object.__setattr__(kind, "missing", within.check("missing", kind.missing))
    except ParameterError:
        raise ParameterError("missing", kind.missing, MISSING_NUMBER) from None


@final
@dataclass(frozen=True, slots=True)
class Flag(ColumnKind):
    """A column of True and False.

    Parameters
    ----------
    missing : "drop" or bool
        Whether a row without a value is left out, or the value that it counts as.

    Examples
    --------
    >>> from algorithms.frames import Flag
    >>> Flag(missing=False).labels
    (False, True)
    """

    types: ClassVar[str] = FLAGS
    kind: ClassVar[str] = "flag"

    missing: bool | str = DROP

    def __post_init__(self) -> None:
        if self.missing != DROP and not isinstance(self.missing, bool):
            raise ParameterError("missing", self.missing, '"drop", True or False')

    @property
    def labels(self) -> tuple[bool, ...]:
        """False and True."""
        return False, True

    @property
    def rule(self) -> str:
        """What counts as what, in words."""
        return f"False or True, {missing_in_words(self.missing)}"


@final
@dataclass(frozen=True, slots=True)
class Category(ColumnKind):
    """A column of labels, all known without the data; other labels are missing values.

    Parameters
    ----------
    categories : list of str or int
        The public labels, of one type.
    missing : "drop" or str or int
        Whether a row with another label or none is left out, or the label that it counts as, which
        is one more where it is not among ``categories``.

    Examples
    --------
    >>> from algorithms.frames import Category
    >>> Category(["cook", "nurse"], missing="other").labels
    ('cook', 'nurse', 'other')
    """

    kind: ClassVar[str] = "category"

    categories: tuple[str | int, ...]
    missing: str | int = DROP

    def __init__(self, categories: Iterable[str | int], missing: str | int = DROP) -> None:
        allowed = 'a list of distinct labels, all str or all int, none of them "drop"'
        if isinstance(categories, str):
            raise ParameterError("categories", categories, allowed)
        found = tuple(categories)
        kinds = {type(one) for one in found}
        if len(kinds) != 1 or not kinds <= {str, int} or len(set(found)) < len(found):
            raise ParameterError("categories", found, allowed)
        if DROP in found:
            raise ParameterError("categories", found, allowed)
        if missing != DROP and type(missing) not in kinds:
            raise ParameterError("missing", missing, '"drop", or a label of the same type')
        object.__setattr__(self, "categories", found)
        object.__setattr__(self, "missing", missing)

    def fits(self, type_name: str) -> bool:
        """Return whether a column of this type may hold these labels."""
        types = TEXTS if isinstance(self.categories[0], str) else NUMBERS
        return re.fullmatch(rf"({types})\d*", type_name.lower()) is not None

    @property
    def labels(self) -> tuple[str | int, ...]:
        """The public labels, with the one of missing values."""
        own = self.missing == DROP or self.missing in self.categories
        return self.categories if own else (*self.categories, self.missing)

    @property
    def rule(self) -> str:
        """What counts as what, in words."""
        words = missing_in_words(self.missing).replace("without one", "with none of them")
        return f"{len(self.categories)} public labels, {words}"


@final
@dataclass(frozen=True, slots=True)
class Key(ColumnKind):
    """A column of strings or whole numbers that are private: which of them exist is not known.

    A question ``by`` it first selects keys that enough persons have, then answers for those.
    Empty strings, and those of more than 256 characters, are missing; rows without a key do not
    count.

    Parameters
    ----------
    keys_per_person : int
        How many different keys of a person count for the selection at most: the first ones.

    Examples
    --------
    >>> from algorithms.frames import Key
    >>> Key(keys_per_person=3).rule
    'private keys, of each person the first 3; rows without one do not count'
    """

    kind: ClassVar[str] = "key"
    types: ClassVar[str] = rf"u?int|{TEXTS}"

    keys_per_person: int = 1

    def __post_init__(self) -> None:
        checked = KEYS_OF_PERSON.check("keys_per_person", self.keys_per_person)
        object.__setattr__(self, "keys_per_person", checked)

    @property
    def missing(self) -> str:
        """What a missing key counts as: its row is dropped."""
        return DROP

    @property
    def rule(self) -> str:
        """What counts as what, in words."""
        most = f"the first {self.keys_per_person}" if self.keys_per_person > 1 else "the first"
        return f"private keys, of each person {most}; rows without one do not count"


@final
@dataclass(frozen=True, slots=True)
class SelectedKeys(ColumnKind):
    """A column of keys of which some were selected, which are public from then on."""

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
    def rule(self) -> str:
        """What counts as what, in words."""
        return f"{len(self.selected)} selected keys, rows with none of them do not count"
