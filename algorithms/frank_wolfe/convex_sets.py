"""Convex sets given by a linear oracle: the point with the smallest product with a direction.

References: Talwar, Thakurta & Zhang (2015), Theorem 2.6, for the Gaussian width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np

from accountant.domains import POSITIVE, IntegerRange
from accountant.errors import ParameterError
from accountant.numerics import Array

ROUNDING_SLACK = 1 + 1e-9


class ConvexSet(Protocol):
    """A bounded convex set of vectors (features,)."""

    @property
    def radius(self) -> float:
        """The largest l2 norm of a point."""
        ...

    def width(self, features: int) -> float:
        """Return a bound on the Gaussian width ``E max <theta, g>``, g standard normal."""
        ...

    def start(self, features: int) -> Array:
        """Return a starting point; optional for a user's own set."""
        ...

    def minimiser(self, direction: Array) -> Array:
        """Return a point with the smallest inner product with a direction."""
        ...

    def contains(self, point: Array) -> bool:
        """Return whether a point belongs to the set, up to rounding."""
        ...


@final
@dataclass(frozen=True, slots=True)
class L2Ball:
    """Vectors of l2 norm at most ``radius``."""

    radius: float

    def __post_init__(self) -> None:
        POSITIVE.check("radius", self.radius)

    def width(self, features: int) -> float:
        """Return ``radius sqrt(p)``."""
        return self.radius * math.sqrt(features)

    def start(self, features: int) -> Array:
        """Return the centre."""
        return np.zeros(features)

    def minimiser(self, direction: Array) -> Array:
        """Return the point of the sphere opposite to the direction."""
        return -self.radius * unit_vector(direction)

    def contains(self, point: Array) -> bool:
        """Return whether the norm is at most the radius."""
        return bool(np.linalg.norm(point) <= self.radius * ROUNDING_SLACK)


@final
class GroupBall:
    """Vectors whose groups' l2 norms sum to at most ``radius``; ``groups`` labels features."""

    def __init__(self, groups: Any, radius: float) -> None:
        labels = np.asarray(groups)
        if labels.ndim != 1 or labels.size == 0 or labels.dtype.kind not in "iu":
            raise ParameterError("groups", labels.shape, "a whole number for every feature")
        self.radius = POSITIVE.check("radius", radius)
        _, self._group, sizes = np.unique(labels, return_inverse=True, return_counts=True)
        self._count, self._largest = sizes.size, int(sizes.max())

    def __repr__(self) -> str:
        return f"GroupBall({self._count} groups, radius={self.radius:g})"

    def width(self, features: int) -> float:
        """Return ``radius (sqrt(largest group) + sqrt(2 ln groups))``, at most the l2 ball's."""
        self.start(features)
        # a group's norm is 1-Lipschitz, so the largest exceeds sqrt(size) by a normal's tail
        longest = math.sqrt(self._largest) + math.sqrt(2 * math.log(self._count))
        return self.radius * min(longest, math.sqrt(features))

    def start(self, features: int) -> Array:
        """Return the centre."""
        if features != self._group.size:
            raise ParameterError(
                "groups", self._group.shape, f"one label for each of {features} features"
            )
        return np.zeros(features)

    def minimiser(self, direction: Array) -> Array:
        """Return the opposite direction within the group of largest norm."""
        vertex = np.zeros(direction.size)
        best = self._group == np.argmax(self._norms(direction))
        vertex[best] = -self.radius * unit_vector(direction[best])
        return vertex

    def contains(self, point: Array) -> bool:
        """Return whether the sum of norms is at most the radius."""
        return bool(self._norms(point).sum() <= self.radius * ROUNDING_SLACK)

    def _norms(self, vector: Array) -> Array:
        return np.sqrt(np.bincount(self._group, vector**2, self._count))


@final
@dataclass(frozen=True, slots=True)
class NuclearBall:
    """Matrices (rows, columns), flattened row by row, with singular values of bounded sum.

    The sum is at most ``radius``.
    """

    shape: tuple[int, int]
    radius: float

    def __post_init__(self) -> None:
        POSITIVE.check("radius", self.radius)
        if not isinstance(self.shape, tuple) or len(self.shape) != 2:
            raise ParameterError("shape", self.shape, "(rows, columns)")
        for size in self.shape:
            IntegerRange(1).check("shape", size)

    def width(self, features: int) -> float:
        """Return ``radius (sqrt(rows) + sqrt(columns))``, Gordon's bound of the spectral norm."""
        self.start(features)
        return self.radius * sum(map(math.sqrt, self.shape))

    def start(self, features: int) -> Array:
        """Return the centre."""
        if features != math.prod(self.shape):
            raise ParameterError(
                "shape",
                self.shape,
                f"(rows, columns) whose product is the number of features, {features}",
            )
        return np.zeros(features)

    def minimiser(self, direction: Array) -> Array:
        """Return minus the radius times the outer product of the first singular vectors."""
        left_vectors, _, right_vectors = np.linalg.svd(
            direction.reshape(self.shape), full_matrices=False
        )
        vertex: Array = -self.radius * np.outer(left_vectors[:, 0], right_vectors[0]).ravel()
        return vertex

    def contains(self, point: Array) -> bool:
        """Return whether the sum of singular values is at most the radius."""
        singular = np.linalg.svd(point.reshape(self.shape), compute_uv=False)
        return bool(singular.sum() <= self.radius * ROUNDING_SLACK)


def unit_vector(vector: Array) -> Array:
    """Return the vector at length 1; a zero vector stays."""
    length = float(np.linalg.norm(vector))
    return vector / length if length > 0 else vector
