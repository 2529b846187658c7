"""Sets of private values that mechanisms take: the check of a value, neighbours, and examples.

A mechanism refuses a value outside of its set before it draws noise.  Tests and audits draw random
examples of the set and random neighbours of them.  Errors name the fault and the index of the wrong
entry, and never show the value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accountant.errors import ParameterError, PrivateValueError
from accountant.numerics import Array

Generator = np.random.Generator
A = TypeVar("A", bound=NDArray[Any])


class Values(Protocol):
    """A set of values with its neighbours.

    Mechanisms also take a batch, an array of values with one more axis in front.
    """

    @property
    def axes(self) -> int | None:
        """The number of axes of one value: 0 for a number, None for an array of any shape."""
        ...

    def check(self, value: ArrayLike) -> NDArray[Any]:
        """Return the value as an array, or raise `PrivateValueError`, which never shows it."""
        ...

    def example(self, rng: Generator) -> Any:
        """Return a random value; extreme values are likely."""
        ...

    def neighbour(self, value: Any, rng: Generator) -> Any:
        """Return a random neighbour of a value; extreme ones are likely."""
        ...


@dataclass(frozen=True, slots=True)
class Reals:
    """Real numbers or vectors; neighbours are within ``sensitivity`` in the declared norm."""

    sensitivity: float
    axes: int | None = None  # as in `Values`
    dimension: int | None = None  # coordinates of a vector, at most; None for any number

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The shape of one vector; None where its length is not declared."""
        return None if self.dimension is None else (self.dimension,)

    def check(self, value: ArrayLike) -> Array:
        """Return finite floats with at most ``dimension`` coordinates, where that is declared."""
        return checked_dimension(finite_floats(value), self.axes, self.dimension)

    def example(self, rng: Generator) -> Any:
        """Return a number, or where only vectors are values, a vector of length 1 or 2."""
        if self.axes != 1:
            return float(rng.normal(scale=10))
        return rng.normal(scale=10, size=min(self.dimension or 2, 2))

    def neighbour(self, value: Any, rng: Generator) -> Any:
        """Return the value moved by at most the sensitivity, along one coordinate."""
        step = rng.choice([1.0, -1.0, rng.uniform(-1, 1)]) * self.sensitivity
        return value + (np.eye(np.size(value))[0] if np.ndim(value) else 1) * step


@dataclass(frozen=True, slots=True)
class Integers:
    """Integers or vectors of integers; neighbours differ by at most ``sensitivity``."""

    sensitivity: float
    axes: int | None = None  # as in `Values`
    dimension: int | None = None  # coordinates of a vector, at most; None for any number

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The shape of one vector; None where its length is not declared."""
        return None if self.dimension is None else (self.dimension,)

    def check(self, value: ArrayLike) -> NDArray[np.int64]:
        """Return 64-bit integers; arrays of another type, as of bools or floats, are refused."""
        integers = as_int64(value, "whole numbers of an integer type of at most 64 bits")
        return checked_dimension(integers, self.axes, self.dimension)

    def example(self, rng: Generator) -> Any:
        """Return an integer, or where only vectors are values, a vector of length 1 or 2."""
        pair = rng.integers(-20, 21, size=2)
        return pair[: self.dimension] if self.axes == 1 else int(pair[0])

    def neighbour(self, value: Any, rng: Generator) -> Any:
        """Return the value moved by at most the sensitivity, along one coordinate."""
        largest_move = math.floor(self.sensitivity)
        step = int(
            rng.choice(
                np.array(
                    [largest_move, -largest_move, rng.integers(-largest_move, largest_move + 1)]
                )
            )
        )
        return (
            value + np.eye(np.size(value), dtype=int)[0] * step if np.ndim(value) else value + step
        )


@dataclass(frozen=True, slots=True)
class Categories:
    """The labels 0 to ``count - 1``; any two are neighbours."""

    count: int
    axes: ClassVar[int] = 0

    def check(self, value: ArrayLike) -> NDArray[np.intp]:
        """Return labels as indices, each in 0 .. ``count - 1``."""
        allowed = f"whole numbers from 0 to {self.count - 1}"
        labels = as_int64(value, allowed)
        if labels.size and not (labels.min() >= 0 and labels.max() < self.count):
            raise PrivateValueError(
                "value", allowed, first_true_index((labels < 0) | (labels >= self.count))
            )
        return labels.astype(np.intp, copy=False)

    def example(self, rng: Generator) -> int:
        """Return a uniform random label."""
        return int(rng.integers(self.count))

    def neighbour(self, value: Any, rng: Generator) -> int:
        """Return a uniform random label."""
        del value
        return self.example(rng)


@dataclass(frozen=True, slots=True)
class Scores:
    """A vector of scores; between neighbours each score moves by at most ``sensitivity``.

    ``monotone`` scores all move up, or all move down.
    """

    sensitivity: float
    monotone: bool = False
    axes: ClassVar[int] = 1

    def check(self, value: ArrayLike) -> Array:
        """Return finite scores: one vector, or one row for each user of a batch."""
        scores = finite_floats(value)
        if scores.ndim not in (1, 2) or scores.shape[-1] == 0:
            raise PrivateValueError("value", "a vector of scores, or one such row for each user")
        return scores

    def example(self, rng: Generator) -> Array:
        """Return random scores of two to six candidates."""
        scores: Array = rng.normal(scale=3, size=int(rng.integers(2, 7)))
        return scores

    def neighbour(self, value: Any, rng: Generator) -> Array:
        """Return the scores, each moved by at most the sensitivity."""
        return self.moved_by_fractions(value, rng.uniform(-1, 1, np.size(value)), rng)

    def moved_by_fractions(self, value: Any, fractions: Array, rng: Generator) -> Array:
        """Return the scores moved by fractions of the sensitivity; two in three become -1 or 1.

        If scores are monotone, all moves get the sign of the first, and some become 0.
        """
        fractions = np.where(rng.random(fractions.size) < 2 / 3, np.sign(fractions), fractions)
        if self.monotone:
            fractions = (
                np.sign(fractions[0]) * np.abs(fractions) * (rng.random(fractions.size) < 0.7)
            )
        moved: Array = value + self.sensitivity * fractions
        return moved


@dataclass(frozen=True, slots=True)
class Ball:
    """Vectors of norm at most ``radius``; any two are neighbours.

    ``order`` is 2 or infinity.  A longer vector is refused, or with ``clip`` scaled to the radius.
    """

    dimension: int
    radius: float
    order: float = 2.0
    clip: bool = False
    axes: ClassVar[int] = 1

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one vector."""
        return (self.dimension,)

    def check(self, value: ArrayLike) -> Array:
        """Return vectors within the ball: one vector, or one row for each user of a batch."""
        vectors, size = self.check_with_norms(value)
        return vectors if (size <= 1).all() else vectors / np.maximum(size, 1.0)[..., None]

    def check_with_norms(self, value: ArrayLike) -> tuple[Array, Array]:
        """Return vectors longer than the radius by rounding at most, and norms / radius.

        The axes are those of `check`.  With ``clip`` longer vectors are scaled to the radius, and
        their quotient is 1; else they are refused.
        """
        vectors = as_floats(value)
        name = "l2" if self.order == 2 else "l-infinity"
        allowed = f"vectors of {self.dimension} coordinates and {name} norm at most {self.radius:g}"
        if vectors.ndim not in (1, 2) or vectors.shape[-1] != self.dimension:
            raise PrivateValueError("value", allowed)
        size = self._relative_norms(vectors)
        longer = size > 1 + 1e-12  # a smaller excess is round-off of the norm
        if not longer.any():
            return vectors, size
        if not self.clip:
            raise PrivateValueError("value", allowed, first_true_index(longer))
        return vectors / np.maximum(size, 1.0)[..., None], np.minimum(size, 1.0)

    def _relative_norms(self, vectors: Array) -> Array:
        """Return norms over the radius, without overflow or underflow of squares."""
        if 1e-100 < self.radius < 1e100:
            with np.errstate(over="ignore", invalid="ignore"):
                size: Array = norms(vectors, self.order) / self.radius
            if np.isfinite(size).all():
                return size
        # Each vector is divided by its largest coordinate, so that no square leaves the floats.
        greatest = np.abs(finite_floats(vectors)).max(axis=-1)
        scaled: Array = vectors / np.where(greatest > 0, greatest, 1.0)[..., None]
        with np.errstate(over="ignore"):
            size = norms(scaled, self.order) * (greatest / self.radius)
        return np.minimum(size, np.finfo(float).max)

    def example(self, rng: Generator) -> Array:
        """Return a random vector; half of them lie on the boundary."""
        direction: Array = rng.normal(size=self.dimension)
        share = rng.choice([1.0, rng.random()])
        direction *= share * self.radius / norms(direction, self.order)
        return direction

    def neighbour(self, value: Any, rng: Generator) -> Array:
        """Return another vector of the ball; one in five is the opposite vector."""
        return -np.asarray(value) if rng.random() < 0.2 else self.example(rng)


@dataclass(frozen=True, slots=True)
class BoundedNumbers:
    """Numbers of absolute value at most ``radius``; any two are neighbours."""

    radius: float
    clip: bool = False
    axes: ClassVar[int] = 0

    def check(self, value: ArrayLike) -> Array:
        """Return numbers within the radius; with ``clip``, larger ones move to the nearest end."""
        real = finite_floats(value)
        outside = np.abs(real) > self.radius
        if outside.any() and not self.clip:
            allowed = f"numbers from {-self.radius:g} to {self.radius:g}"
            raise PrivateValueError("value", allowed, first_true_index(outside))
        return np.clip(real, -self.radius, self.radius)

    def example(self, rng: Generator) -> float:
        """Return a random number; two in three are ends."""
        return float(self.radius * rng.choice([-1.0, 1.0, rng.uniform(-1, 1)]))

    def neighbour(self, value: Any, rng: Generator) -> float:
        """Return a random number of the set."""
        del value
        return self.example(rng)


def finite_floats(value: ArrayLike) -> Array:
    """Return ``value`` as an array of finite floats, or raise `PrivateValueError`."""
    array = as_floats(value)
    if not np.isfinite(array).all():
        raise PrivateValueError(
            "value", "finite in every entry", first_true_index(~np.isfinite(array))
        )
    return array


def as_floats(value: ArrayLike) -> Array:
    """Return ``value`` as an array of floats, perhaps infinite, or raise `PrivateValueError`."""
    raw = _unmasked_array(value, "rectangular, not ragged")
    if raw.dtype.kind not in "biuf":
        raise PrivateValueError("value", "an array of real numbers")
    with np.errstate(over="ignore"):  # numbers of a longer type may become infinite
        return raw.astype(float, copy=False)


def as_int64(value: ArrayLike, allowed: str) -> NDArray[np.int64]:
    """Return ``value`` as 64-bit integers, or raise `PrivateValueError`."""
    raw = _unmasked_array(value, allowed)
    if raw.size == 0 and raw.dtype.kind == "f":  # an empty list
        raw = raw.astype(np.int64)
    if raw.dtype.kind == "f" and (raw != np.floor(raw)).any():
        raise PrivateValueError("value", allowed, first_true_index(raw != np.floor(raw)))
    if raw.dtype.kind not in "iu" or (raw.dtype == np.uint64 and (raw >> np.uint64(63)).any()):
        raise PrivateValueError("value", allowed)
    return raw.astype(np.int64, copy=False)


def checked_dimension(value: A, axes: int | None, dimension: int | None) -> A:
    """Return ``value``; where values are vectors, they have at most ``dimension`` coordinates."""
    if axes == 1 and not (value.ndim > 0 and value.shape[-1] <= (dimension or math.inf)):
        limit = "" if dimension is None else f" of at most {dimension} coordinates"
        raise PrivateValueError("value", f"vectors{limit}")
    return value


def refuse_size_for_batch(size: int | None, value: NDArray[Any], axes: int) -> None:
    """Refuse ``size`` draws of a batch: a batch gives one output for each of its values."""
    if size is not None and value.ndim > axes:
        raise ParameterError("size", size, "None for a batch of values")


def norms(vectors: Array, order: float) -> Array:
    """Return the norm of every vector along the last axis; ``order`` is 2 or infinity."""
    if order == 2:
        lengths: Array = np.sqrt(np.einsum("...i,...i", vectors, vectors))
        return lengths
    greatest: Array = np.abs(vectors).max(axis=-1)
    return greatest


def first_true_index(mask: NDArray[np.bool_]) -> tuple[int, ...]:
    """Return the index of the first True entry, which marks the first wrong value."""
    return tuple(int(i) for i in np.unravel_index(np.argmax(mask), mask.shape))


def _unmasked_array(value: ArrayLike, allowed: str) -> NDArray[Any]:
    if isinstance(value, np.ma.MaskedArray):
        raise PrivateValueError("value", "without a mask")
    try:
        return np.asarray(value)
    except ValueError:
        raise PrivateValueError("value", allowed) from None
