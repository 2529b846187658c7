"""What a lower bound says, and what the hard family behind it can do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np

from accountant.numerics import Array


class Construction(Protocol):
    """A finite family of data distributions that an accurate algorithm must tell apart."""

    @property
    def points(self) -> int:
        """How many distributions the family has."""
        ...

    @property
    def separation(self) -> float:
        """Certified: the least distance between two parameters, in the norm of the loss."""
        ...

    def parameter(self, which: int) -> Array:
        """Return the parameter of a point: what an algorithm should estimate."""
        ...

    def sample(self, which: int, n: int, rng: np.random.Generator) -> Any:
        """Draw the data of ``n`` users from a point."""
        ...

    def decode(self, estimate: Array) -> int:
        """Return the point that an estimate means."""
        ...


@final
@dataclass(frozen=True, slots=True)
class LowerBound:
    """No private algorithm has a worst-case risk below ``value`` over ``construction``.

    ``value`` is the sharpest proved form, rounded down; ``published`` the papers' with explicit
    constants, None where no paper has one.  ``statement`` says in words what is bounded,
    ``valid_for`` for which parameters, ``optimised_over`` which of the construction was searched
    and what the search found.
    """

    value: float
    published: float | None
    statement: str
    construction: Construction | None
    valid_for: str
    optimised_over: str


def round_down(x: float) -> float:
    """A bound rounded down, past the rounding of its formula."""
    return max(0.0, x * (1 - 1e-11))
