"""Convex sets of coefficients for Frank-Wolfe, each given by its linear oracle.

The oracle `minimiser` returns the point of the set C with the smallest inner product with a
direction d, ``argmin over theta in C of <theta, d>``: a step of Frank-Wolfe goes towards it.  The
Gaussian width ``E max over theta in C of <theta, g>``, with p independent standard normal
coordinates of g, bounds how far noise g on d lowers that least product in expectation.

`L2Ball`, `GroupBall` (group lasso) and `NuclearBall` (matrices of small rank) are the sets here; a
user's own set has the methods of `ConvexSet`.

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

ROUNDING_SLACK = 1 + 1e-9  # a point belongs to the set if its norm is at most radius times this


class ConvexSet(Protocol):
    """A bounded convex set of vectors (features,)."""

    @property
    def radius(self) -> float:
        """The largest l2 norm of a point."""
        ...

    def width(self, features: int) -> float:
        """Return an upper bound on the Gaussian width ``E max <theta, g>``, g standard normal."""
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
        """Return ``radius sqrt(p)``: the width is ``radius E |g|``, and ``E |g| <= sqrt(p)``."""
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
    """Vectors for which the l2 norms of groups of features sum to at most ``radius``.

    ``groups`` has a whole number for each feature, that of its group.
    """

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
        """Return ``radius min(sqrt(s) + sqrt(2 ln K), sqrt(p))``.

        Here s is the size of the largest of K groups, and p the number of features.
        """
        self.start(features)
        # The width is radius times E max over groups of |g_group|.  Each norm has an expectation of
        # at most sqrt(s).  It is a 1-Lipschitz function of g, so what it exceeds its expectation by
        # has E e^{t x} <= e^{t^2 / 2}, and the largest of K such numbers is at most sqrt(2 ln K) in
        # expectation.  The set lies in the l2 ball, whose width is radius sqrt(p) at most.
        largest_norm_bound = math.sqrt(self._largest) + math.sqrt(2 * math.log(self._count))
        return self.radius * min(largest_norm_bound, math.sqrt(features))

    def start(self, features: int) -> Array:
        """Return the centre."""
        if features != self._group.size:
            raise ParameterError(
                "groups", self._group.shape, f"one label for each of {features} features"
            )
        return np.zeros(features)

    def minimiser(self, direction: Array) -> Array:
        """Return minus the radius times the direction's unit vector in the group of largest norm.

        All coordinates outside of this group are 0.
        """
        vertex = np.zeros(direction.size)
        in_best_group = self._group == np.argmax(self._norms(direction))
        vertex[in_best_group] = -self.radius * unit_vector(direction[in_best_group])
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

    The sum, which is the nuclear norm, is at most ``radius``.
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
        """Return ``radius (sqrt(rows) + sqrt(columns))``.

        The width is radius times the expected spectral norm of a matrix of standard normal numbers,
        which is at most this sum of roots (Gordon's inequality).
        """
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
        """Return ``-radius u v'``, u and v the singular vectors of the largest singular value."""
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
    """Return the vector over its l2 norm; a zero vector stays."""
    length = float(np.linalg.norm(vector))
    return vector / length if length > 0 else vector
