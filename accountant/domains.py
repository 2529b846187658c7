"""Domains of arguments: each has a check, and the words that say what is allowed."""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from numbers import Rational
from typing import Any, Protocol

import numpy as np

from accountant.errors import LargeDeltaWarning, ParameterError


class Domain(Protocol):
    """A set of allowed values that can check a member and describe itself."""

    def check(self, argument: str, value: object) -> object:
        """Return ``value`` in its normal form, or raise `ParameterError`."""
        ...

    def __str__(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Interval:
    """Real numbers from ``low`` to ``high``; the brackets say which ends belong."""

    low: float
    high: float
    brackets: str = "[]"

    def __contains__(self, x: float) -> bool:
        above = x >= self.low if self.brackets[0] == "[" else x > self.low
        below = x <= self.high if self.brackets[1] == "]" else x < self.high
        return above and below

    def check(self, argument: str, value: object) -> float:
        """Return ``value`` as a float; refuse bools, strings and complex numbers."""
        x = _real(value)
        if math.isnan(x) or x not in self:
            raise ParameterError(argument, value, str(self))
        return x

    def __str__(self) -> str:
        return f"a number in {self.brackets[0]}{self.low:g}, {self.high:g}{self.brackets[1]}"


@dataclass(frozen=True, slots=True)
class IntegerRange:
    """Whole numbers from ``low`` to ``high``, by default the largest that floats hold exactly.

    Counts are ints; an amount, such as a sensitivity, may also be a float that is whole.
    """

    low: int
    high: int = 2**53
    floats: bool = False

    def check(self, argument: str, value: Any) -> int:
        """Return ``value`` as an int; refuse ``True``, and ``2.0`` unless floats are allowed."""
        if isinstance(value, np.ndarray) and value.ndim == 0:
            value = value[()]  # an array without axes is a number
        if isinstance(value, (bool, np.bool_)):
            raise ParameterError(argument, value, str(self))
        whole_float = (
            self.floats and isinstance(value, (float, np.floating)) and float(value).is_integer()
        )
        try:
            integer = int(value) if whole_float else operator.index(value)
        except TypeError:
            raise ParameterError(argument, value, str(self)) from None
        if not self.low <= integer <= self.high:
            raise ParameterError(argument, value, str(self))
        return integer

    def __str__(self) -> str:
        return f"a whole number from {self.low} to {self.high:,}"


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of a few named choices."""

    choices: tuple[str, ...]

    def check(self, argument: str, value: object) -> str:
        """Return the choice itself."""
        if not isinstance(value, str) or value not in self.choices:
            raise ParameterError(argument, value, str(self))
        return self.choices[self.choices.index(value)]  # a plain string

    def __str__(self) -> str:
        return "one of " + ", ".join(repr(choice) for choice in self.choices)


@dataclass(frozen=True, slots=True)
class Boolean:
    """True or False, as a domain."""

    def check(self, argument: str, value: object) -> bool:
        """Return ``value`` as a bool; the numbers 0 and 1 are refused."""
        if not isinstance(value, (bool, np.bool_)):
            raise ParameterError(argument, value, str(self))
        return bool(value)

    def __str__(self) -> str:
        return "True or False"


BOOLEAN = Boolean()
USUAL_DELTA = 0.01  # a greater delta is a mistake, whatever the number of people


@dataclass(frozen=True, slots=True)
class OrNone:
    """The values of another domain, or None for "not declared"."""

    declared: Domain

    def check(self, argument: str, value: object) -> object:
        """Return None, or the value as the other domain returns it."""
        return None if value is None else self.declared.check(argument, value)

    def __str__(self) -> str:
        return f"{self.declared}, or None"


def _real(value: object) -> float:
    """Return ``value`` as a float, or NaN if it is not a real number."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]  # an array without axes is a number
    if isinstance(value, (bool, np.bool_)):
        return math.nan
    if isinstance(value, (int, float, np.integer, np.floating, Rational, Decimal)):
        try:
            return float(value)
        except (OverflowError, ValueError):
            return math.nan
    return math.nan


# Within the range of floats, so that sums, and products with moderate factors, stay finite.
POSITIVE = Interval(1e-300, 1e300)
NON_NEGATIVE = Interval(0.0, 1e300)
REAL = Interval(-1e300, 1e300)
EPSILON = NON_NEGATIVE
DELTA = Interval(0.0, 1.0, "[)")
POSITIVE_DELTA = Interval(0.0, 1.0, "()")
RECORDS = IntegerRange(1)
BOOLEAN = Boolean()
USUAL_DELTA = 0.01  # a greater delta is a mistake, whatever the number of people


def each_checked(domain: Interval, argument: str, values: object) -> list[float]:
    """Return numbers as floats, each checked, or raise `ParameterError`."""
    axes = values.ndim if isinstance(values, np.ndarray) else 1
    if isinstance(values, str) or not isinstance(values, Iterable) or not axes:
        raise ParameterError(argument, values, f"a list, each {domain}")
    return [domain.check(argument, value) for value in values]


def warn_of_large_delta(delta: float, users: int | None = None, stacklevel: int = 4) -> None:
    """Warn where ``delta > 1 / users``; where their number is not known, above 0.01.

    Such a delta allows a mechanism that always publishes the record of one user, chosen at random.
    """
    if delta <= (USUAL_DELTA if users is None else 1 / users):
        return
    if users is None:
        limit, remedy = f"{USUAL_DELTA:g}", "less than 1/n for n people"
    else:
        limit, remedy = f"1/n = {1 / users:.3g} for {users:,} users", f"{0.1 / users:.0e} or less"
    message = (
        f"delta {delta:g} is above {limit}: it allows a release that publishes a random person's "
        f"record; take {remedy}"
    )
    warnings.warn(message, LargeDeltaWarning, stacklevel=stacklevel)
