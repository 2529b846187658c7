"""Polytopes over which Frank-Wolfe minimises: the l1 ball, the simplex, hulls of points, boxes.

A round needs of a polytope only the inner products of its vertices with the gradient.

References: Talwar, Thakurta & Zhang (2015), Algorithm 2.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np

from accountant.domains import POSITIVE
from accountant.errors import ParameterError
from accountant.numerics import Array

MAX_BOX_FEATURES = 16  # most coordinates of a box, which then has 65,536 vertices


class Polytope(Protocol):
    """The convex hull of vertices 0, 1, ..., ``count(features) - 1``."""

    @property
    def norm(self) -> float:
        """The largest l1 norm of a vertex."""
        ...

    def count(self, features: int) -> int:
        """Return the number of vertices."""
        ...

    def vertex(self, index: int, features: int) -> Array:
        """Return the vertex of this index, of shape (features,)."""
        ...

    def start(self, features: int) -> Array:
        """Return a starting point (features,); for a user's own set, its first vertex."""
        ...

    def products(self, gradient: Array) -> Array:
        """Return the inner product of every vertex with a vector (features,)."""
        ...


@final
@dataclass(frozen=True, slots=True)
class L1Ball:
    """Vectors of l1 norm at most ``radius``; vertices ``-radius e_j``, then ``radius e_j``."""

    radius: float

    def __post_init__(self) -> None:
        POSITIVE.check("radius", self.radius)

    @property
    def norm(self) -> float:
        """The radius."""
        return self.radius

    def count(self, features: int) -> int:
        """Return twice the number of features."""
        return 2 * features

    def vertex(self, index: int, features: int) -> Array:
        """Return a vector with one entry that is not 0."""
        corner = np.zeros(features)
        corner[index % features] = -self.radius if index < features else self.radius
        return corner

    def start(self, features: int) -> Array:
        """Return the centre."""
        return np.zeros(features)

    def products(self, gradient: Array) -> Array:
        """Return ``-radius g``, then ``radius g``."""
        scaled = self.radius * gradient
        return np.concatenate([-scaled, scaled])


@final
@dataclass(frozen=True, slots=True)
class Simplex:
    """Nonnegative vectors with sum ``radius``; vertices ``radius e_j``."""

    radius: float = 1.0

    def __post_init__(self) -> None:
        POSITIVE.check("radius", self.radius)

    @property
    def norm(self) -> float:
        """The radius."""
        return self.radius

    def count(self, features: int) -> int:
        """Return the number of features."""
        return features

    def vertex(self, index: int, features: int) -> Array:
        """Return a vector with one entry that is not 0."""
        corner = np.zeros(features)
        corner[index] = self.radius
        return corner

    def start(self, features: int) -> Array:
        """Return the centre."""
        return np.full(features, self.radius / features)

    def products(self, gradient: Array) -> Array:
        """Return ``radius g``."""
        return self.radius * gradient


@final
class Hull:
    """The convex hull of the rows of ``vertices`` (k, p)."""

    def __init__(self, vertices: Any) -> None:
        try:
            points = np.array(vertices, dtype=float)
        except (TypeError, ValueError):
            raise ParameterError("vertices", type(vertices), "an array of numbers") from None
        if points.ndim != 2 or points.size == 0:
            raise ParameterError("vertices", points.shape, "of shape (vertices, features)")
        with np.errstate(over="ignore"):
            norms = np.abs(points).sum(axis=1)
        if not np.isfinite(norms).all():
            raise ParameterError("vertices", "of infinite norm or NaN", "finite")
        points.flags.writeable = False
        self.points = points
        # If all vertices were 0, the noise would have scale 0.
        self.norm = POSITIVE.check("norm of the vertices", norms.max())

    def __repr__(self) -> str:
        return "Hull({} vertices of {} features)".format(*self.points.shape)

    def count(self, features: int) -> int:
        """Return the number of rows; the features must be the columns."""
        if features != self.points.shape[1]:
            raise ParameterError(
                "vertices",
                self.points.shape,
                f"of shape (vertices, {features}): X has {features} features",
            )
        return len(self.points)

    def vertex(self, index: int, features: int) -> Array:
        """Return the row of this index."""
        del features
        row: Array = self.points[index]
        return row

    def start(self, features: int) -> Array:
        """Return the mean of the vertices."""
        del features
        centre: Array = self.points.mean(axis=0)
        return centre

    def products(self, gradient: Array) -> Array:
        """Return the product of the matrix with the gradient."""
        scores: Array = self.points @ gradient
        return scores


def box(low: Any, high: Any) -> Hull:
    """Return the box ``low <= theta <= high`` (features,), of up to 16 features, by its corners."""
    ends = np.atleast_2d(np.array([low, high], dtype=float))
    if ends.ndim != 2 or not 0 < ends.shape[1] <= MAX_BOX_FEATURES:
        raise ParameterError(
            "low, high", ends.shape, f"two vectors of 1 to {MAX_BOX_FEATURES} numbers"
        )
    if not (np.isfinite(ends).all() and (ends[0] < ends[1]).all()):
        raise ParameterError("low, high", "NaN, infinite, or out of order", "finite, low < high")
    return Hull(list(itertools.product(*ends.T)))
