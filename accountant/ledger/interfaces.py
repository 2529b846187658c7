"""What passes a gate: a mechanism, a query, and the line that is kept of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from accountant.errors import PrivateValueError
from accountant.ledger.private_data import Users
from accountant.losses.loss import Loss
from accountant.plans.plan import Plan, Sampler

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

    @property
    def sampler(self) -> Sampler | None:
        """What draws the users that it sees; None: it sees all of them."""
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


def checked_value(mechanism: Releasable, query_result: Any, users: int | None) -> Any:
    """What a query gave as the very array that the mechanism gets, one value or one a user."""
    try:
        value = np.asarray(query_result)
    except ValueError:
        raise PrivateValueError("value", "rectangular, not ragged") from None
    axes, shape = drawing_mechanism(mechanism).value_axes, np.shape(value)
    if users is None:
        if axes is not None and len(shape) != axes:
            raise PrivateValueError("value", f"a single one, with {axes} axes")
    elif shape[:1] != (users,) or (axes is not None and len(shape) != axes + 1):
        raise PrivateValueError("value", f"one for each of {users} users")
    return value


def drawing_mechanism(mechanism: Any) -> Any:
    """What draws the noise: the mechanism itself, or the part that sees a sample."""
    sampler = mechanism.sampler
    return mechanism if sampler is None else sampler.part
