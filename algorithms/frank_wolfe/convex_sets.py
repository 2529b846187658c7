"""Convex sets known by the point that goes furthest against a direction (a linear oracle)."""

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
        """The greatest l2 norm of a point."""
        ...

    def width(self, features: int) -> float:
        """A bound on the Gaussian width ``E max <theta, g>``, g standard normal."""
        ...

    def start(self, features: int) -> Array:
        """A point to start from; a user's set need not have this."""
        ...

    def minimiser(self, direction: Array) -> Array:
        """A point of least inner product with a direction."""
        ...

    def contains(self, point: Array) -> bool:
        """Whether a point belongs, but for rounding."""
        ...


@final
@dataclass(frozen=True, slots=True)
class L2Ball:
    """Vectors of l2 norm at most ``radius``."""

    radius: float

    def __post_init__(self) -> None:
        POSITIVE.check("radius", self.radius)

    def width(self, features: int) -> float:
        """``radius sqrt(p)``."""
        return self.radius * math.sqrt(features)

    def start(self, features: int) -> Array:
        """The centre."""
        return np.zeros(features)

    def minimiser(self, direction: Array) -> Array:
        """Straight against it."""
        return -self.radius * unit_vector(direction)

    def contains(self, point: Array) -> bool:
        """By the norm."""
        return bool(np.linalg.norm(point) <= self.radius * ROUNDING_SLACK)


@final
class GroupBall:
    """Vectors whose groups' l2 norms add up to at most ``radius``; ``groups`` labels features."""

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
        """``radius (sqrt(largest group) + sqrt(2 ln groups))``, or the l2 ball's if less."""
        self.start(features)
        # a group's norm is 1-Lipschitz, so the greatest exceeds sqrt(size) by a normal's tail
        longest = math.sqrt(self._largest) + math.sqrt(2 * math.log(self._count))
        return self.radius * min(longest, math.sqrt(features))

    def start(self, features: int) -> Array:
        """The centre."""
        if features != self._group.size:
            raise ParameterError("groups", self._group.shape, f"of {features} features")
        return np.zeros(features)

    def minimiser(self, direction: Array) -> Array:
        """Against it in the group where it is longest."""
        found = np.zeros(direction.size)
        best = self._group == np.argmax(self._norms(direction))
        found[best] = -self.radius * unit_vector(direction[best])
        return found

    def contains(self, point: Array) -> bool:
        """By the norm."""
        return bool(self._norms(point).sum() <= self.radius * ROUNDING_SLACK)

    def _norms(self, vector: Array) -> Array:
        return np.sqrt(np.bincount(self._group, vector**2, self._count))


@final
@dataclass(frozen=True, slots=True)
class NuclearBall:
    """Matrices (rows, columns), as vectors row by row, with singular values summing to ``radius``.

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
        """``radius (sqrt(rows) + sqrt(columns))``, Gordon's bound of the spectral norm."""
        self.start(features)
        return self.radius * sum(map(math.sqrt, self.shape))

    def start(self, features: int) -> Array:
        """The centre."""
        if features != math.prod(self.shape):
            raise ParameterError("shape", self.shape, f"of {features} entries")
        return np.zeros(features)

    def minimiser(self, direction: Array) -> Array:
        """Against the greatest singular pair."""
        left, _, right = np.linalg.svd(direction.reshape(self.shape), full_matrices=False)
        found: Array = -self.radius * np.outer(left[:, 0], right[0]).ravel()
        return found

    def contains(self, point: Array) -> bool:
        """By the norm."""
        singular = np.linalg.svd(point.reshape(self.shape), compute_uv=False)
        return bool(singular.sum() <= self.radius * ROUNDING_SLACK)


def unit_vector(vector: Array) -> Array:
    """The vector at length 1; 0 stays."""
    length = float(np.linalg.norm(vector))
    return vector / length if length > 0 else vector
