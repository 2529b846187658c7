"""The nodes and weights of a quadrature rule."""

from __future__ import annotations

import functools

import numpy as np

from accountant.numerics import Array


@functools.cache
def legendre(points: int) -> tuple[Array, Array]:
    """Nodes and weights of the Gauss-Legendre rule on ``[-1, 1]``."""
    nodes, weights = np.polynomial.legendre.leggauss(points)
    return nodes, weights
