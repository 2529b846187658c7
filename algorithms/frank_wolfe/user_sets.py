"""Sets of a user's own for Frank-Wolfe, given by oracles.

The sensitivity of a fit follows from the norm or radius that the user declares.  So a sample of the
set is checked against that before anything is released, and every point again when it is used.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from accountant.domains import POSITIVE, IntegerRange
from accountant.errors import ParameterError
from accountant.numerics import Array
from algorithms.frank_wolfe.convex_sets import (
    ROUNDING_SLACK,
    ConvexSet,
    GroupBall,
    L2Ball,
    NuclearBall,
)
from algorithms.frank_wolfe.polytopes import Hull, L1Ball, Polytope, Simplex

CHECKED_VERTICES = 1024  # vertices that are checked before anything is released
CHECKED_DIRECTIONS = 16  # directions in which a convex set's oracle is checked


@final
@dataclass(frozen=True)
class CheckedPolytope:
    """A user's own `Polytope`; every vertex that is used must have at most the declared norm."""

    inner: Any
    norm: float = field(init=False)

    def __post_init__(self) -> None:
        for name in ("count", "vertex", "products", "norm"):
            if not hasattr(self.inner, name):
                raise ParameterError("vertices_or_oracle", self.inner, f"an object with {name}")
        norm = POSITIVE.check("vertices_or_oracle.norm", self.inner.norm)
        object.__setattr__(self, "norm", norm * (1 + 1e-9))  # vertices may be rounded

    def count(self, features: int) -> int:
        """Return the declared number, after a check of at most 1,024 vertices."""
        declared_count = IntegerRange(1).check(
            "vertices_or_oracle.count", self.inner.count(features)
        )
        sampled = np.unique(
            np.linspace(0, declared_count - 1, min(declared_count, CHECKED_VERTICES)).astype(int)
        )
        direction = np.random.default_rng(0).normal(size=features)
        products = self.products(direction)
        if products.shape != (declared_count,):
            allowed = f"of shape ({declared_count},), one a vertex"
            raise ParameterError("vertices_or_oracle.products", products.shape, allowed)
        for index in sampled:
            product = float(self.vertex(int(index), features) @ direction)
            if not abs(product - products[index]) <= 1e-9 * self.norm * np.abs(direction).max():
                raise ParameterError(
                    "vertices_or_oracle.products",
                    f"a different number at vertex {index}",
                    "the inner products of the vertices",
                )
        return declared_count

    def vertex(self, index: int, features: int) -> Array:
        """Return the vertex, if its norm is at most the declared one."""
        try:
            point = np.asarray(self.inner.vertex(index, features), dtype=float)
        except (TypeError, ValueError):
            point = np.empty(0)
        inside = point.shape == (features,) and np.abs(point).sum() <= self.norm
        if not inside:
            allowed = f"a point (features,) of the set, of l1 norm at most {self.norm:g}"
            raise ParameterError(
                "vertices_or_oracle.vertex", f"another point at index {index}", allowed
            )
        return point

    def start(self, features: int) -> Array:
        """Return the first vertex."""
        return self.vertex(0, features)

    def products(self, gradient: Array) -> Array:
        """Return the products that the user's object computes."""
        return np.asarray(self.inner.products(gradient), dtype=float)


@final
@dataclass(frozen=True)
class CheckedConvexSet:
    """A user's own `ConvexSet`; every point that is used must belong to it."""

    inner: Any
    radius: float = field(init=False)

    def __post_init__(self) -> None:
        for name in ("radius", "width", "minimiser", "contains"):
            if not hasattr(self.inner, name):
                raise ParameterError("convex_set", self.inner, f"an object with {name}")
        radius = POSITIVE.check("convex_set.radius", self.inner.radius)
        object.__setattr__(self, "radius", radius)

    def width(self, features: int) -> float:
        """Return the declared width, after a check in some directions."""
        rng = np.random.default_rng(0)
        for direction in rng.normal(size=(CHECKED_DIRECTIONS, features)):
            self.minimiser(direction)
        return POSITIVE.check("convex_set.width", self.inner.width(features))

    def start(self, features: int) -> Array:
        """Return one of its points."""
        return self.minimiser(np.ones(features))

    def minimiser(self, direction: Array) -> Array:
        """Return the point, if it belongs to the set and is within the declared radius."""
        try:
            point = np.asarray(self.inner.minimiser(direction), dtype=float)
        except (TypeError, ValueError):
            point = np.empty(0)
        belongs = (
            point.shape == direction.shape
            and np.linalg.norm(point) <= self.radius * ROUNDING_SLACK
            and self.inner.contains(point)
        )
        if not belongs:
            allowed = f"a point of the set, of l2 norm at most {self.radius:g}"
            raise ParameterError("convex_set.minimiser", "a point outside", allowed)
        return point

    def contains(self, point: Array) -> bool:
        """Return whether a point is in the set, as the user's object says."""
        return bool(self.inner.contains(point))


def polytope_of(vertices_or_oracle: Any) -> Polytope:
    """Return the set itself, the hull of an array of vertices, or a checked user's set."""
    if isinstance(vertices_or_oracle, (L1Ball, Simplex, Hull, CheckedPolytope)):
        return vertices_or_oracle
    if isinstance(vertices_or_oracle, (list, tuple, np.ndarray)):
        return Hull(vertices_or_oracle)
    return CheckedPolytope(vertices_or_oracle)


def convex_set_of(convex_set: Any) -> ConvexSet:
    """Return the set itself, or a checked user's set."""
    if isinstance(convex_set, (L2Ball, GroupBall, NuclearBall, CheckedConvexSet)):
        return convex_set
    return CheckedConvexSet(convex_set)
