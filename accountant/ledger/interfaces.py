"""What passes a gate: a mechanism, a query, and the line that is kept of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from accountant.ledger.private_data import Users
from accountant.losses.loss import Loss
from accountant.plans.plan import Plan

Query = Callable[[Any], Any]


class Releasable(Protocol):
    """A mechanism, as far as a gate must know it."""

    @property
    def loss(self) -> Loss:
        """What one release costs."""
        ...

    @property
    def value_axes(self) -> int | None:
        """Axes of one value; None where an array of any shape is one value."""
        ...

    def release(self, value: Any, rng: np.random.Generator, size: int | None = None) -> Any:
        """Release the value with noise."""
        ...


class PrivacyMeter(Protocol):
    """What a gate charges before it looks."""

    @property
    def next(self) -> Plan | None:
        """What may be released next, where that is fixed in advance."""
        ...

    def charge(self, mechanism: Releasable, who: Users | None) -> None:
        """Spend, or raise and leave everything as it was."""
        ...


class Entry(NamedTuple):
    """One line of a transcript; ``output`` is the answer, its digest, None if it failed.

    ``seeded`` marks noise that can be made again from a seed: no protection against whoever
    knows it.
    """

    mechanism: Releasable
    who: Users | None
    output: Any
    seeded: bool = False
