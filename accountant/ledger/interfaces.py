"""The interfaces of a gate: the mechanism it releases, the meter it charges, and its transcript."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from accountant.errors import PrivateValueError
from accountant.ledger.private_data import UNMASKED, Users, is_masked
from accountant.losses.loss import Loss
from accountant.plans.plan import Plan, Sampler

Query = Callable[[Any], Any]


class Releasable(Protocol):
    """The part of a mechanism that a gate uses."""

    @property
    def loss(self) -> Loss:
        """Return the loss of one release."""
        ...

    @property
    def value_axes(self) -> int | None:
        """Return the number of axes of one value; None if an array of any shape is one value."""
        ...

    @property
    def sampler(self) -> Sampler | None:
        """Return the sampler of the users it reads; None if it reads all of them."""
        ...

    def release(self, value: Any, rng: np.random.Generator, size: int | None = None) -> Any:
        """Return the value with noise."""
        ...


class PrivacyMeter(Protocol):
    """The meter that a gate charges before it reads data."""

    @property
    def next(self) -> Plan | None:
        """Return what may be released next, where that is fixed in advance; else None."""
        ...

    def charge(self, mechanism: Releasable, who: Users | None) -> None:
        """Charge one release; an error leaves the state unchanged."""
        ...


class Entry(NamedTuple):
    """One line of a transcript; ``output`` is the answer, its digest, or None if it failed.

    ``seeded`` marks noise that can be reproduced from a seed: a reader who knows the seed can
    remove it.  ``undeclared`` names the class of a mechanism that is not declared, ``executor``
    that of workers which the gate did not start itself: both had to be trusted.
    """

    mechanism: Releasable
    who: Users | None
    output: Any
    seeded: bool = False
    undeclared: str = ""
    executor: str = ""


def checked_value(mechanism: Releasable, query_result: Any, users: int | None) -> Any:
    """Return the query's value as an array for the mechanism: one value, or one for each user."""
    if is_masked(query_result):
        raise PrivateValueError("value", UNMASKED)
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


def class_name(thing: object) -> str:
    """Return the class of an object, with its module."""
    return f"{type(thing).__module__}.{type(thing).__qualname__}"


def charged_plan(mechanism: Any) -> Plan:
    """Return what an accountant adds up for a release: its loss; a sampled release as it is."""
    if isinstance(mechanism, Loss) or not hasattr(mechanism, "loss"):
        plan: Plan = mechanism
        return plan
    loss: Loss = mechanism.loss
    return loss


def drawing_mechanism(mechanism: Any) -> Any:
    """Return the part that draws the noise: the mechanism, or the part inside a sampler."""
    sampler = mechanism.sampler
    return mechanism if sampler is None else sampler.part
