"""Directions of integer vectors, all or those of a cap, whose law is exact, given ideal words.

References: Canonne, Kamath & Steinke (2020) for the integers; proofs in docs/proofs/vectors.md.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accountant.numerics import Array
from mechanisms.exact_noise.exact_bernoulli import Bits
from mechanisms.exact_noise.integer_noise import IntegerNoise

WIDTH_BITS = 44  # coordinates of about 2^44, which floats hold exactly with bits to spare
LAW = IntegerNoise(2.0**WIDTH_BITS, 2)
TRIALS_AT_ONCE = 1 << 16  # numbers


def cap_mass_error(dimension: int) -> float:
    """Return a bound of how far the mass of a cap of these directions is from that of the sphere.

    It holds for every axis.
    """
    return 64 * math.sqrt(dimension) / 2.0**WIDTH_BITS


def integer_axes(vectors: Array) -> Array:
    """Return vectors as directions: whole numbers of at most 2^44, the greatest of about that."""
    greatest = np.abs(vectors).max(axis=-1, keepdims=True)
    axes: Array = np.rint(vectors / greatest * 2.0**WIDTH_BITS)
    return axes


def directions(
    axes: Array, capped: Bits, height: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return an integer vector for every axis: within the cap of ``height`` where ``capped``.

    Vectors are drawn anew until they are not 0 and, where that is asked, in the cap.
    """
    found = np.empty(axes.shape)
    left = np.arange(len(axes))
    most = max(1, TRIALS_AT_ONCE // axes.shape[1])
    while left.size:
        now = left[:most]
        drawn = LAW.draw(now.size * axes.shape[1], rng).reshape(now.size, -1).astype(float)
        right: Bits = np.asarray(drawn.any(axis=1))
        asked = np.flatnonzero(capped[now] & right)
        right[asked] = in_cap(drawn[asked], axes[now[asked]], height)
        found[now[right]] = drawn[right]
        left = np.concatenate([now[~right], left[most:]])
    return found


def in_cap(vectors: Array, axes: Array, height: float) -> Bits:
    """Return whether ``<u, t> >= height |u| |t|`` for rows of whole numbers; exact."""
    product = np.einsum("ij,ij->i", vectors, axes)
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors) * np.einsum("ij,ij->i", axes, axes))
    # sums of p products are good to p units in the last place of the product of the lengths
    margin = (4 * vectors.shape[1] + 64) * 2.0**-53 * lengths
    inside: Bits = product > height * lengths
    for i in np.flatnonzero(np.abs(product - height * lengths) <= margin):
        inside[i] = _in_cap_exactly(vectors[i], axes[i], height)
    return inside


def _in_cap_exactly(vector: Array, axis: Array, height: float) -> bool:
    u, t = ([int(x) for x in row] for row in (vector, axis))
    along = sum(map(int.__mul__, u, t))
    squares: Any = sum(x * x for x in u) * sum(x * x for x in t)
    return along >= 0 and along * along >= Fraction(height) ** 2 * squares
