"""What a row adds to a statistic: a few whole numbers, so that sums are exact in any order.

A number x is counted in steps of 2^-30 of its range.  Sums of whole numbers have no round-off, so
the sensitivity of what is released is that of the proof (docs/proofs/frames.md), and frames that
are stored otherwise, or in another order, give the same bits.

References: Casacuberta, Shoemate, Vadhan & Wagaman (2022), for the sensitivity of floating sums.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from accountant.errors import ParameterError
from accountant.numerics import Array
from algorithms.frames.column_kinds import Integer
from algorithms.frames.schema import Schema

STEPS = 2**30
# of a Gaussian's budget: the share of the count, of the sum, and of the sum of squares
MEAN_WEIGHTS = (math.isqrt(STEPS**2 // 3), math.isqrt(2 * STEPS**2 // 3))
VARIANCE_WEIGHTS = tuple(math.isqrt(round(share * STEPS**2)) for share in (0.28, 0.36, 0.36))


@dataclass(frozen=True, slots=True)
class Basis:
    """What is summed in every cell, with the largest that a row can add.

    Parameters
    ----------
    vertices : sequence of tuple of int
        The contribution of any row lies in the convex hull of these and of zero.
    unit : float
        What one step is worth in the units of the answer.
    """

    vertices: Sequence[tuple[int, ...]]
    unit: float

    @property
    def size(self) -> int:
        """How many numbers a cell has."""
        return len(self.vertices[0])


@dataclass(frozen=True, slots=True)
class Statistic:
    """A statistic of the rows of a cell."""

    name: ClassVar[str]

    column: str | None

    def check(self, schema: Schema) -> None:
        """Refuse a column that the statistic does not exist for."""
        if self.column is not None and schema.kind(self.column).bounds is None:
            allowed = "a Number or an Integer, which have public bounds"
            raise ParameterError(f"column {self.column!r}", schema.kind(self.column), allowed)

    @abstractmethod
    def basis(self, schema: Schema, noise: str) -> Basis:
        """Return what is summed if the noise is "laplace" or "gaussian"."""

    @abstractmethod
    def contributions(self, values: Array | None, schema: Schema, noise: str) -> list[Any]:
        """Return what each row adds to each number of its cell: whole numbers, or one for all."""

    def usual_error(self, noise: str) -> float:
        """Return the deviation of the answer for noise of deviation 1, on middling data."""
        del noise
        return 1.0

    def _bounds(self, schema: Schema) -> tuple[float, float]:
        bounds = schema.kind(self.column).bounds
        assert bounds is not None  # `check` was called
        return bounds


@final
@dataclass(frozen=True, slots=True)
class Count(Statistic):
    """How many rows there are."""

    name: ClassVar[str] = "count"

    def check(self, schema: Schema) -> None:
        """Refuse a column that is not declared."""
        if self.column is not None:
            schema.kind(self.column)

    def basis(self, schema: Schema, noise: str) -> Basis:
        """Return the unit."""
        return Basis([(1,)], 1.0)

    def contributions(self, values: Array | None, schema: Schema, noise: str) -> list[Any]:
        """Return 1."""
        return [1]


@final
@dataclass(frozen=True, slots=True)
class Sum(Statistic):
    """The sum of a column."""

    name: ClassVar[str] = "sum"

    def basis(self, schema: Schema, noise: str) -> Basis:
        """Return the bounds in steps; the steps of whole numbers are 1."""
        low, high = self._bounds(schema)
        unit = self._unit(schema)
        ends = [(round(low / unit),), (round(high / unit),)]
        return Basis([end for end in ends if end[0]], unit)

    def _unit(self, schema: Schema) -> float:
        if isinstance(schema.kind(self.column), Integer):
            return 1.0
        return max(map(abs, self._bounds(schema))) / STEPS

    def contributions(self, values: Array | None, schema: Schema, noise: str) -> list[Any]:
        """Return the numbers in steps."""
        assert values is not None  # it has a column
        unit = self._unit(schema)
        low, high = (round(end / unit) for end in self._bounds(schema))
        steps = values / unit if unit != 1 else values
        return [np.clip(np.rint(steps), low, high)]


@dataclass(frozen=True, slots=True)
class Moment(Statistic):
    """A statistic of moments; ``u`` is a number as its place between the bounds, -1 to 1.

    For Laplace noise a row adds Bernstein polynomials of its place: none is negative and their sum
    is 1, so they cost what one number costs.  For Gaussian noise it adds 1, u and 2 u^2 - 1 with
    weights whose squares sum to 1.
    """

    bernstein: ClassVar[tuple[tuple[int, ...], ...]]
    weights: ClassVar[tuple[int, ...]]

    def basis(self, schema: Schema, noise: str) -> Basis:
        """Return the corners of the simplex, or of the box."""
        size = len(self.weights)
        if noise == "laplace":
            return Basis(
                [tuple(row) for row in (STEPS * np.eye(size, dtype=int)).tolist()], 1 / STEPS
            )
        signs = np.meshgrid(*[[1], *[[-1, 1]] * (size - 1)])
        corners = np.stack([sign.ravel() for sign in signs], axis=1) * self.weights
        return Basis([tuple(corner) for corner in corners.tolist()], 1 / STEPS)

    def moments_of(self, noise: str) -> Array:
        """Return the matrix that makes the sums of 1, u (and u^2) from those of the basis."""
        if noise == "laplace":
            return np.array(self.bernstein) / STEPS
        matrix = np.diag(1.0 / np.array(self.weights))
        if len(matrix) > 2:  # u^2 is the mean of 1 and of 2 u^2 - 1
            matrix[2] = (matrix[0] + matrix[2]) / 2
        return matrix

    def error_weights(self, noise: str, mean: Array, spread: Array) -> Array:
        """Return how noise on the sums moves the statistic of one row, cell by cell.

        ``mean`` and ``spread`` are the mean and the variance of u.
        """
        count, total, *squares = self.moments_of(noise)
        mean, spread = mean[:, None], spread[:, None]
        weights: Array = total - mean * count  # the change of S / N
        if squares:  # the change of Q / N - (S / N)^2
            weights = squares[0] - 2 * mean * total + (mean**2 - spread) * count
        return weights

    def usual_error(self, noise: str) -> float:
        """Return the norm of the weights where a mean lies a quarter off the middle."""
        return float(np.linalg.norm(self.error_weights(noise, np.array([0.25]), np.array([0.15]))))

    def place(self, values: Array | None, schema: Schema) -> Array:
        """Return where numbers lie between the bounds, from 0 to 1."""
        assert values is not None  # it has a column
        low, high = self._bounds(schema)
        if high - low > 1e300:  # in halves: the distance may be beyond the floats
            place = (values / 2 - low / 2) / (high / 2 - low / 2)
        else:
            place = values - low
            place /= high - low
        return np.clip(place, 0.0, 1.0, out=place)

    def units(self, schema: Schema) -> tuple[float, float]:
        """Return the middle of the bounds, and half their distance."""
        low, high = self._bounds(schema)
        return low / 2 + high / 2, high / 2 - low / 2


@final
@dataclass(frozen=True, slots=True)
class Mean(Moment):
    """The mean of a column."""

    name: ClassVar[str] = "mean"
    bernstein: ClassVar[tuple[tuple[int, ...], ...]] = ((1, 1), (-1, 1))
    weights: ClassVar[tuple[int, ...]] = MEAN_WEIGHTS

    def contributions(self, values: Array | None, schema: Schema, noise: str) -> list[Any]:
        """Return 1 - t and t, or 1 and u, in steps."""
        place = self.place(values, schema)
        if noise == "laplace":
            above = whole_steps(place, STEPS)
            return [STEPS - above, above]
        count, total = self.weights
        return [count, whole_steps(2 * place - 1, total)]


@final
@dataclass(frozen=True, slots=True)
class Variance(Moment):
    """The variance of a column: the mean square of the distances from its mean."""

    name: ClassVar[str] = "variance"
    bernstein: ClassVar[tuple[tuple[int, ...], ...]] = ((1, 1, 1), (-1, 0, 1), (1, -1, 1))
    weights: ClassVar[tuple[int, ...]] = VARIANCE_WEIGHTS

    def contributions(self, values: Array | None, schema: Schema, noise: str) -> list[Any]:
        """Return (1 - t)^2, 2 t (1 - t) and t^2, or 1, u and 2 u^2 - 1, in steps."""
        place = self.place(values, schema)
        if noise == "laplace":
            both = whole_steps(place * place, STEPS)
            # at most what is left of the row's one: their sum is STEPS whatever was rounded
            none = np.minimum(whole_steps((1 - place) ** 2, STEPS), STEPS - both)
            return [none, STEPS - both - none, both]
        count, total, squares = self.weights
        u = 2 * place - 1
        second = whole_steps(2 * u * u - 1, squares)
        return [count, whole_steps(u, total), second]


def whole_steps(fraction: Array, steps: int) -> Array:
    """Return fractions of so many steps as whole floats, in the same memory."""
    fraction *= steps
    return np.rint(fraction, out=fraction)
