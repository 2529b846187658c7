"""Gauss-Legendre quadrature, on one interval and between many edges."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from accountant.numerics import Array

# Points of a rule for moments.  An order that needs more is out of reach: its cumulant counts as
# infinite, and a search for the best order or contour turns back, as each point costs an
# exponential at every node of a contour.
MAX_POINTS = 8_000


@functools.cache
def legendre(points: int) -> tuple[Array, Array]:
    """Return nodes and weights of the Gauss-Legendre rule on ``[-1, 1]``."""
    nodes, weights = np.polynomial.legendre.leggauss(points)
    return nodes, weights


def gauss_legendre_panels(edges: Array, points: int = 24) -> tuple[Array, Array, NDArray[np.intp]]:
    """Return Gauss-Legendre nodes between neighbouring edges, their weights, and their panels."""
    x, w = legendre(points)
    half = np.diff(edges)[:, None] / 2
    nodes = edges[:-1, None] + half * (x + 1)
    return nodes.ravel(), (half * w).ravel(), np.repeat(np.arange(half.size), x.size)
