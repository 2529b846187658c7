"""Means and variances of a column: what rows add, so that their number costs nothing more.

Let t be where a number lies between its bounds, from 0 to 1, and u = 2 t - 1.  A mean is the ratio
of the sum of u and the number of rows, the sum of 1; a variance also needs the sum of u^2.  What a
row adds is chosen so that all these sums together cost no more than one sum:

- for Laplace noise, which counts the L1 norm, the polynomials of Bernstein: 1 - t and t for a mean;
  (1 - t)^2, 2 t (1 - t) and t^2 for a variance.  None is negative, and they add up to 1;
- for Gaussian noise, which counts the L2 norm, 1, u and 2 u^2 - 1 times weights whose squares add
  up to 1;
- where the number of rows is public, an exchanged row moves other combinations of u and u^2 least
  (see `Moment`).

The sums of 1, u and u^2 are linear in those that are released (`Moment.moments_of`).  All sums are
of whole steps, `STEPS` for 1.

References: Farouki (2012), for the basis of Bernstein; docs/proofs/frames.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from accountant.errors import ParameterError
from accountant.numerics import Array
from algorithms.frames.bases import STEPS, Basis, Statistic
from algorithms.frames.columns.kinds import whole
from algorithms.frames.columns.labels import Flag
from algorithms.frames.schema import Schema

# Weights, in steps, of what a row adds for Gaussian noise: of 1 and u for a mean, of 1, u and
# 2 u^2 - 1 for a variance.  Their squares add up to at most STEPS^2, so that a row adds a vector of
# length 1 at most, and each square is that number's share of the budget.  PUBLIC_SQUARES and
# PUBLIC_TOTAL are the weights of u^2 and u where the number of rows is public: an exchanged row
# moves u^2 by 1 and u by 2 at most, so the square of what it moves is at most .6 + 4 * .1 = 1.
MEAN_WEIGHTS = (math.isqrt(STEPS**2 // 3), math.isqrt(2 * STEPS**2 // 3))
PUBLIC_SQUARES, PUBLIC_TOTAL = (math.isqrt(round(share * STEPS**2)) for share in (0.6, 0.1))
VARIANCE_WEIGHTS = tuple(math.isqrt(round(share * STEPS**2)) for share in (0.28, 0.36, 0.36))
MAX_HALF_WIDTH = 5e149  # half the largest width of the bounds of a variance


@dataclass(frozen=True, slots=True)
class Moment(Statistic):
    """A statistic of moments; ``u`` is a number as its place between the bounds, -1 to 1.

    The number of rows is public where rows are exchanged and all of them count.  Then a row adds u
    alone for a mean.  For a variance it adds u^2 and u with weights for Gaussian noise, and
    u^2 + u/2 and u^2 - u/2 for Laplace noise: if an exchange moves u^2 by a and u/2 by b, both
    together move by |a + b| + |a - b| = 2 max(|a|, |b|) <= 2 in the L1 norm.
    """

    # One row for each of the moments 1, u (and u^2): what the sums of Bernstein's polynomials
    # count for in it.
    bernstein: ClassVar[tuple[tuple[int, ...], ...]]
    weights: ClassVar[tuple[int, ...]]  # for Gaussian noise, as above
    # By the noise, where the number of rows is public: vertices, and the matrix of `moments_of`.
    public_vertices: ClassVar[Mapping[str, Sequence[tuple[int, ...]]]]
    public_moments: ClassVar[Mapping[str, Array]]
    public_rows: bool = False

    def basis(self, schema: Schema, noise: str) -> Basis:
        """Return the corners of what a row can add: a simplex, or a box for Gaussian noise."""
        size = len(self.weights)
        if self.public_rows:
            return Basis(self.public_vertices[noise], 1 / STEPS)
        if noise == "laplace":
            corners = STEPS * np.eye(size, dtype=int)
        else:
            corners = box([[1], *[[-1, 1]] * (size - 1)]) * self.weights
        return Basis([tuple(corner) for corner in corners.tolist()], 1 / STEPS)

    def moments_of(self, noise: str) -> Array:
        """Return the matrix that makes the sums of 1, u (and u^2) from those that are released.

        Its first row is 0 where the number of rows is public: it is no sum then.
        """
        if self.public_rows:
            return self.public_moments[noise]
        if noise == "laplace":
            return np.array(self.bernstein) / STEPS
        matrix = np.diag(1.0 / np.array(self.weights))
        if len(matrix) > 2:  # u^2 is the mean of 1 and of 2 u^2 - 1
            matrix[2] = (matrix[0] + matrix[2]) / 2
        return matrix

    def error_weights(self, noise: str, mean: Array, spread: Array) -> Array:
        """Return by how much each released sum moves the statistic times N, cell by cell.

        N, S and Q are the sums of 1, u and u^2.  ``mean`` and ``spread`` are the mean and the
        variance of u, and the weights are the derivatives at them.
        """
        count, total, *squares = self.moments_of(noise)
        mean, spread = mean[:, None], spread[:, None]
        weights: Array = total - mean * count  # the change of S / N
        if squares:  # the change of Q / N - (S / N)^2
            weights = squares[0] - 2 * mean * total + (mean**2 - spread) * count
        return weights

    def usual_error(self, noise: str) -> float:
        """Return the norm of the error weights at one typical mean and variance of u.

        The kind of noise is chosen by it, before the data are read.
        """
        return float(np.linalg.norm(self.error_weights(noise, np.array([0.25]), np.array([0.15]))))

    def steps(self, values: Any, schema: Schema, steps: int) -> Any:
        """Return the positions of numbers between the bounds, in steps from 0 to ``steps``."""
        return whole(fractions_of(values, *self._bounds(schema), steps))

    def squares(self, values: Any, schema: Schema, steps: int) -> Any:
        """Return u^2 in so many whole steps."""
        u = fractions_of(values, *self._bounds(schema), 2) - 1
        return whole(u * u * steps)

    def units(self, schema: Schema) -> tuple[float, float]:
        """Return the middle of the bounds, and half their distance."""
        low, high = self._bounds(schema)
        return low / 2 + high / 2, high / 2 - low / 2


@dataclass(frozen=True, slots=True)
class Mean(Moment):
    """The mean of a column."""

    name: ClassVar[str] = "mean"
    bernstein: ClassVar[tuple[tuple[int, ...], ...]] = ((1, 1), (-1, 1))
    weights: ClassVar[tuple[int, ...]] = MEAN_WEIGHTS
    public_vertices: ClassVar[Mapping[str, Sequence[tuple[int, ...]]]] = dict.fromkeys(
        ("laplace", "gaussian"), ((-STEPS,), (STEPS,))
    )
    public_moments: ClassVar[Mapping[str, Array]] = dict.fromkeys(
        ("laplace", "gaussian"), np.array([[0.0], [1 / STEPS]])
    )

    def contributions(self, values: Any, schema: Schema, noise: str) -> list[Any]:
        """Return 1, and t or 2 t in steps."""
        if self.public_rows:
            return [1, self.steps(values, schema, 2 * STEPS)]
        steps = STEPS if noise == "laplace" else 2 * self.weights[1]
        return [1, self.steps(values, schema, steps)]

    def mixed(self, sums: NDArray[np.int64], noise: str) -> NDArray[np.int64]:
        """Return the sums of 1 - t and t, or of 1 and u = 2 t - 1, or of u alone."""
        rows, total_t = sums
        if self.public_rows:
            alone: NDArray[np.int64] = (total_t - STEPS * rows)[None]
            return alone
        if noise == "laplace":
            return np.stack([STEPS * rows - total_t, total_t])
        count, total = self.weights
        return np.stack([count * rows, total_t - total * rows])


@dataclass(frozen=True, slots=True)
class Variance(Moment):
    """The variance of a column: the mean square of the distances from its mean."""

    name: ClassVar[str] = "variance"
    bernstein: ClassVar[tuple[tuple[int, ...], ...]] = ((1, 1, 1), (-1, 0, 1), (1, -1, 1))
    weights: ClassVar[tuple[int, ...]] = VARIANCE_WEIGHTS
    public_vertices: ClassVar[Mapping[str, Sequence[tuple[int, ...]]]] = {
        # These are (square + u, square - u) for squares 0 and 1 and for u of -1/2 and 1/2.
        "laplace": (
            (-STEPS // 2, STEPS // 2),
            (STEPS // 2, -STEPS // 2),
            (STEPS // 2, 3 * STEPS // 2),
            (3 * STEPS // 2, STEPS // 2),
        ),
        "gaussian": (
            (0, -PUBLIC_TOTAL),
            (0, PUBLIC_TOTAL),
            (PUBLIC_SQUARES, -PUBLIC_TOTAL),
            (PUBLIC_SQUARES, PUBLIC_TOTAL),
        ),
    }
    public_moments: ClassVar[Mapping[str, Array]] = {
        "laplace": np.array([[0, 0], [1, -1], [0.5, 0.5]]) / STEPS,
        "gaussian": np.array([[0, 0], [0, 1 / PUBLIC_TOTAL], [1 / PUBLIC_SQUARES, 0]]),
    }

    def check(self, schema: Schema) -> None:
        """Refuse a column that has no numbers, or whose squares are beyond the range of floats."""
        Moment.check(self, schema)  # a dataclass with slots is another class than `super` knows
        low, high = self._bounds(schema)
        if high / 2 - low / 2 > MAX_HALF_WIDTH:
            allowed = f"bounds at most {2 * MAX_HALF_WIDTH:g} apart, for their square is taken"
            raise ParameterError(f"column {self.column!r}", high, allowed)

    def contributions(self, values: Any, schema: Schema, noise: str) -> list[Any]:
        """Return 1, t and t^2, or 1, 2 t and u^2, in steps."""
        if not self.public_rows and noise == "laplace":
            t = self.steps(values, schema, STEPS)
            # With R = STEPS and a = R t, a^2 / R is rounded to a whole number q.  `mixed` then
            # makes the three parts R - 2 a + q, 2 (a - q) and q of R; none of them is negative.
            return [1, t, whole(t * t * (1 / STEPS))]
        _, total, squares = self._parts(noise)
        u = self.steps(values, schema, 2 * total)
        return [1, u, self.squares(values, schema, squares)]

    def mixed(self, sums: NDArray[np.int64], noise: str) -> NDArray[np.int64]:
        """Return the sums of (1 - t)^2, 2 t (1 - t), t^2; or of 1, u, 2 u^2 - 1; or of u, u^2."""
        rows, linear, quadratic = sums
        if not self.public_rows and noise == "laplace":
            mixed_term = 2 * (linear - quadratic)
            return np.stack([STEPS * rows - mixed_term - quadratic, mixed_term, quadratic])
        count, total, squares = self._parts(noise)
        u = linear - total * rows
        if not self.public_rows:
            return np.stack([count * rows, u, quadratic - squares // 2 * rows])
        return np.stack([quadratic + u, quadratic - u] if noise == "laplace" else [quadratic, u])

    def _parts(self, noise: str) -> tuple[int, int, int]:
        """Return what 1, u and u^2 count for in what a row adds, in steps."""
        if not self.public_rows:
            count, total, squares = self.weights
            return count, total, 2 * squares
        if noise == "gaussian":
            return 0, PUBLIC_TOTAL, PUBLIC_SQUARES
        return 0, STEPS // 2, STEPS


@final
@dataclass(frozen=True, slots=True)
class Deviation(Variance):
    """The standard deviation of a column: the root of its variance."""

    name: ClassVar[str] = "standard deviation"


@final
@dataclass(frozen=True, slots=True)
class Share(Mean):
    """The share of rows in which a flag is True: the mean of 0 and 1."""

    name: ClassVar[str] = "share"

    def check(self, schema: Schema) -> None:
        """Refuse a column that is no flag."""
        if not isinstance(schema.kind(self.column), Flag):
            allowed = "a Flag; of numbers ask count(where=...), and of labels histogram(column)"
            raise ParameterError(f"column {self.column!r}", schema.kind(self.column), allowed)

    def _bounds(self, schema: Schema) -> tuple[float, float]:
        return 0.0, 1.0


def box(sides: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    """Return the corners of a box, a row each."""
    return np.array(list(itertools.product(*sides)))


def fractions_of(values: Any, low: float, high: float, steps: int) -> Any:
    """Return where numbers lie between two bounds, from 0 to ``steps``.

    For numbers within the bounds the result is at most ``steps (1 + 2^-50)``, and rises with them.
    """
    width = high - low
    if not 1e-280 < width < 1e300:
        # Halves are used, as the width may be beyond the range of floats.
        fraction = (values / 2 - low / 2) / (high / 2 - low / 2)
        return fraction.clip(0.0, 1.0) * steps
    return (values if low == 0 else values - low) * (steps / width)
