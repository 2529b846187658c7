"""What a gate works with: the mechanism it releases, the meter it charges, and its transcript.

A gate (`accountant.ledger.gate`) holds the private data; an algorithm asks a query through it.  For
each release it charges a meter, computes the query's value on the data, adds the mechanism's noise,
and adds a line to its transcript.  The value must have a shape that is known without the data,
because an output shows the shape of its value: `ShapedQuery` checks that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from accountant.domains import IntegerRange
from accountant.errors import ParameterError, PrivateValueError
from accountant.ledger.private_data import UNMASKED, Users, is_masked
from accountant.losses.loss import Loss
from accountant.plans.plan import Plan, Sampler

Query = Callable[[Any], Any]
Shape = int | tuple[int, ...]  # of an array; a number is the length of its only axis
SIZE_OF_AXIS = IntegerRange(0)
# What a refused value of a query, and a missing shape, should have been.
ONE_NUMBER = (
    "a single number: a vector needs shape=, which must be public, such as the number of public "
    "keys; private keys are selected first, as partition selection does"
)
PUBLIC_SHAPE = (
    "given: how many candidates or coordinates the query's value has, which must be public; "
    "private keys are selected first, as partition selection does"
)


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
        """Return the sampler that draws the users it reads; None if it reads all of them."""
        ...

    def release(self, value: Any, rng: np.random.Generator, size: int | None = None) -> Any:
        """Return the value with noise."""
        ...


class PrivacyMeter(Protocol):
    """The meter that a gate charges before it reads data, such as a filter or a plan's cursor."""

    @property
    def next(self) -> Plan | None:
        """Return the release that must come next, where that is fixed in advance; else None."""
        ...

    def charge(self, mechanism: Releasable, who: Users | None) -> None:
        """Charge one release; an error leaves the state unchanged."""
        ...


class Entry(NamedTuple):
    """One line of a transcript: the mechanism, the users whose data it read, and its output.

    ``output`` is the answer, its digest, or None if it failed.  ``seeded`` marks noise that can be
    reproduced from a seed: a reader who knows the seed can remove it.  ``undeclared`` names the
    class of a mechanism that is not declared, ``executor`` that of workers which the gate did not
    start itself: both had to be trusted.
    """

    mechanism: Releasable
    who: Users | None
    output: Any
    seeded: bool = False
    undeclared: str = ""
    executor: str = ""


class ShapedQuery(NamedTuple):
    """A query, and the public shape of its value.

    The shape of an output is that of the value, without noise: it may not depend on the data.
    ``hidden_axes`` are the last axes of the value, which no output shows.
    """

    query: Query
    shape: tuple[int, ...]
    hidden_axes: int = 0

    def value(self, rows: Any, users: int | None) -> Any:
        """Return the query's value on the rows as an array: one value, or one for each user.

        With a number of ``users``, the array has a value for each of them along its first axis.
        Another shape than the declared one is refused.
        """
        output = self.query(rows)
        if is_masked(output):
            raise PrivateValueError("value", UNMASKED)
        try:
            value = np.asarray(output)
        except ValueError:
            raise PrivateValueError("value", "rectangular, not ragged") from None
        shown = value.shape[: value.ndim - self.hidden_axes] if self.hidden_axes else value.shape
        if users is not None and shown != (users, *self.shape):
            shape_words = f" of shape {self.shape}" if self.shape else ""
            raise PrivateValueError("value", f"one{shape_words} for each of {users} users")
        if users is None and shown != self.shape:
            allowed = f"of shape {self.shape}, as declared" if self.shape else ONE_NUMBER
            raise PrivateValueError("value", allowed)
        return value


def shaped_query(mechanism: Releasable, query: Query, shape: Shape | None) -> ShapedQuery:
    """Return the query with the shape that a release declares, or else that of its mechanism.

    A declared shape must have as many axes as values of the mechanism, without hidden ones, and
    must not be larger than the mechanism's own shape, if it has one.
    """
    drawing = drawing_mechanism(mechanism)
    axes, hidden = drawing.value_axes, getattr(drawing, "hidden_axes", 0)
    own_shape: tuple[int, ...] | None
    own_shape = getattr(drawing, "value_shape", None) if axes else ()
    if shape is None:
        if own_shape is None:
            raise ParameterError("shape", None, PUBLIC_SHAPE)
        return ShapedQuery(query, own_shape, hidden)
    sizes = shape if isinstance(shape, tuple) else (shape,)
    checked = tuple(SIZE_OF_AXIS.check("shape", size) for size in sizes)
    if axes is not None and len(checked) != axes - hidden:
        raise ParameterError(
            "shape", shape, f"{axes - hidden} numbers: {drawing!r} has such values"
        )
    if own_shape and any(
        size > largest_size for size, largest_size in zip(checked, own_shape, strict=True)
    ):
        raise ParameterError("shape", shape, f"at most {own_shape}, which {drawing!r} declares")
    return ShapedQuery(query, checked, hidden)


def class_name(thing: object) -> str:
    """Return the class of an object, with its module."""
    return f"{type(thing).__module__}.{type(thing).__qualname__}"


def charged_plan(mechanism: Any) -> Plan:
    """Return what an accountant adds up for a release: the mechanism's loss.

    What is a loss itself, or has none, such as a sampled release, is returned as it is.
    """
    if isinstance(mechanism, Loss) or not hasattr(mechanism, "loss"):
        plan: Plan = mechanism
        return plan
    loss: Loss = mechanism.loss
    return loss


def drawing_mechanism(mechanism: Any) -> Any:
    """Return the part that draws the noise: the mechanism, or the part inside a sampler."""
    sampler = mechanism.sampler
    return mechanism if sampler is None else sampler.part
