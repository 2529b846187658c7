"""The ranges of the theorems: a domain whose error message names its theorem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast, final, get_args

from accountant.domains import Domain, IntegerRange, Interval, OneOf
from accountant.errors import ParameterError

Interaction = Literal["none", "sequential"]
Loss = Literal["squared", "sum"]
INTERACTION = OneOf(get_args(Interaction))
LOSS = OneOf(get_args(Loss))
USERS = IntegerRange(1)
DIMENSION = IntegerRange(1, 10**9)
# Up to this epsilon the square of e^epsilon is a finite float.
LOCAL_EPSILON = Interval(0.0, 300.0)
# The scale of noise, or a slope: products with those squares and any n are then floats.
SCALE = Interval(1e-6, 1e6)


@final
@dataclass(frozen=True, slots=True)
class TheoremDomain:
    """A domain that a theorem requires."""

    domain: Domain
    theorem: str

    def check(self, argument: str, value: object) -> object:
        """Return ``value`` in its normal form, or raise a `ParameterError` with the theorem."""
        try:
            return self.domain.check(argument, value)
        except ParameterError:
            raise ParameterError(argument, value, str(self)) from None

    def number(self, argument: str, value: object) -> float:
        """The value as a float of the domain, or `ParameterError` with the theorem."""
        return cast("float", self.check(argument, value))

    def whole(self, argument: str, value: object) -> int:
        """The value as an integer of the domain, or `ParameterError` with the theorem."""
        return cast("int", self.check(argument, value))

    def __str__(self) -> str:
        return f"{self.domain} ({self.theorem})"


def is_sequential(interaction: object) -> bool:
    """True if users report one after another, each knowing the reports before."""
    return INTERACTION.check("interaction", interaction) == "sequential"
