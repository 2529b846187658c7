"""Sets that are the hull of finitely many points, known by how far each goes along a gradient."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np

from accountant.domains import POSITIVE
from accountant.errors import ParameterError
from accountant.numerics import Array

MAX_BOX_FEATURES = 16  # coordinates of a box: 65,536 vertices


class Polytope(Protocol):
    """The hull of vertices 0, 1, ..., ``count(features) - 1``."""

    @property
    def norm(self) -> float:
        """The greatest l1 norm of a vertex."""
        ...

    def count(self, features: int) -> int:
        """How many vertices there are."""
        ...

    def vertex(self, index: int, features: int) -> Array:
        """One vertex (features,)."""
        ...

    def start(self, features: int) -> Array:
        """A point of the set (features,) to start from; a user's own is its first vertex."""
        ...

    def products(self, gradient: Array) -> Array:
        """The inner product of every vertex with a vector (features,)."""
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
        """Two a feature."""
        return 2 * features

    def vertex(self, index: int, features: int) -> Array:
        """One entry is not 0."""
        found = np.zeros(features)
        found[index % features] = -self.radius if index < features else self.radius
        return found

    def start(self, features: int) -> Array:
        """The centre."""
        return np.zeros(features)

    def products(self, gradient: Array) -> Array:
        """``-radius g``, then ``radius g``."""
        scaled = self.radius * gradient
        return np.concatenate([-scaled, scaled])


@final
@dataclass(frozen=True, slots=True)
class Simplex:
    """Vectors of entries of at least 0 with sum ``radius``; vertices ``radius e_j``."""

    radius: float = 1.0

    def __post_init__(self) -> None:
        POSITIVE.check("radius", self.radius)

    @property
    def norm(self) -> float:
        """The radius."""
        return self.radius

    def count(self, features: int) -> int:
        """One a feature."""
        return features

    def vertex(self, index: int, features: int) -> Array:
        """One entry is not 0."""
        found = np.zeros(features)
        found[index] = self.radius
        return found

    def start(self, features: int) -> Array:
        """The centre."""
        return np.full(features, self.radius / features)

    def products(self, gradient: Array) -> Array:
        """``radius g``."""
        return self.radius * gradient


@final
class Hull:
    """The hull of the rows of ``vertices`` (k, p)."""

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
        # all vertices 0 would ask for noise of scale 0
        self.norm = POSITIVE.check("norm of the vertices", norms.max())

    def __repr__(self) -> str:
        return "Hull({} vertices of {} features)".format(*self.points.shape)

    def count(self, features: int) -> int:
        """The rows; the features must be the columns."""
        if features != self.points.shape[1]:
            raise ParameterError("vertices", self.points.shape, f"of {features} features")
        return len(self.points)

    def vertex(self, index: int, features: int) -> Array:
        """A row."""
        del features
        row: Array = self.points[index]
        return row

    def start(self, features: int) -> Array:
        """The mean of the vertices."""
        del features
        centre: Array = self.points.mean(axis=0)
        return centre

    def products(self, gradient: Array) -> Array:
        """One product with the matrix."""
        found: Array = self.points @ gradient
        return found


def box(low: Any, high: Any) -> Hull:
    """The box ``low <= theta <= high`` (features,), of at most 16 features, by its corners."""
    ends = np.atleast_2d(np.array([low, high], dtype=float))
    if ends.ndim != 2 or not 0 < ends.shape[1] <= MAX_BOX_FEATURES:
        raise ParameterError(
            "low, high", ends.shape, f"two vectors of 1 to {MAX_BOX_FEATURES} numbers"
        )
    if not (np.isfinite(ends).all() and (ends[0] < ends[1]).all()):
        raise ParameterError("low, high", "NaN, infinite, or out of order", "finite, low < high")
    return Hull(list(itertools.product(*ends.T)))
