"""The kinds `Number` and `Integer`: columns of numbers that are clipped to public bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self, final

import narwhals as nw

from accountant.domains import REAL, IntegerRange, Interval
from accountant.errors import ParameterError
from algorithms.frames.arguments import answered_class
from algorithms.frames.columns.kinds import DROP, NUMBERS, ColumnKind, missing_in_words, whole

# The bounds that an `Integer` may have: sums of 2^32 rows then fit into 64 bits.
WHOLE_BOUND = IntegerRange(-(2**30), 2**30)
UNKNOWN_BOUND = 2.0**127  # of a `Number` whose bounds are unknown
MISSING_NUMBER = '"drop", or a number within the bounds'


@final
@answered_class("Number(0, 100)")
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
        # Bounds above 1e300 and ranges below 1e-300 are refused: they are near the ends of floats.
        if not low < high <= 1e300 or high - low < 1e-300:
            allowed = f"a number above low, which is {low:g}: Number(low, high)"
            raise ParameterError("high", self.high, allowed)
        _set_bounds(self, low, high)

    @classmethod
    def unknown(cls, missing: float | str = DROP) -> Self:
        """Return a column of numbers of which no bounds are public: `bounds` finds some first.

        Parameters
        ----------
        missing : "drop" or float
            As of others; a number is moved to the bounds that are found.

        Returns
        -------
        Number
            Up to 2^127 in size, 1.7e38.
        """
        return cls(-UNKNOWN_BOUND, UNKNOWN_BOUND, missing)

    @property
    def is_unknown(self) -> bool:
        """Whether no bounds are public."""
        return (self.low, self.high) == (-UNKNOWN_BOUND, UNKNOWN_BOUND)

    @property
    def bounds(self) -> tuple[float, float]:
        """The public bounds."""
        return self.low, self.high

    @property
    def rule(self) -> str:
        """What counts as what, in words."""
        if self.is_unknown:
            return f"bounds are unknown, {missing_in_words(self.missing)}"
        return f"clipped to {self.low:g} .. {self.high:g}, {missing_in_words(self.missing)}"


@final
@answered_class("Integer(0, 20)")
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

    def declared(self, column: nw.Expr) -> nw.Expr:
        """Return whole numbers within the bounds."""
        rounded: nw.Expr = whole(ColumnKind.declared(self, column))
        return rounded

    @property
    def rule(self) -> str:
        """What counts as what, in words."""
        clipped = f"rounded and clipped to {self.low} .. {self.high}"
        return f"{clipped}, {missing_in_words(self.missing)}"


def _set_bounds(kind: Number | Integer, low: float, high: float) -> None:
    """Set the fields of a frozen column: checked bounds, and what a missing number counts as."""
    object.__setattr__(kind, "low", low)
    object.__setattr__(kind, "high", high)
    if kind.missing == DROP:
        return
    within = IntegerRange(int(low), int(high)) if type(kind) is Integer else Interval(low, high)
    try:
        object.__setattr__(kind, "missing", within.check("missing", kind.missing))
    except ParameterError:
        raise ParameterError("missing", kind.missing, MISSING_NUMBER) from None
