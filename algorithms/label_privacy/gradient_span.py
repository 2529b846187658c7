"""The span of all labels' gradients around a public centre, in which Duchi's randomiser works.

Everything here is public: it uses the gradients of all labels, and not which label is true.

References: "Convex Optimization with Local Label Differential Privacy", Appendix B.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from accountant.numerics import Array

CENTRE_ROUNDS = 1000  # of Frank-Wolfe, at most
CENTRE_TOLERANCE = 1e-3  # how close the squared radius is to the smallest


@final
@dataclass(frozen=True)
class GradientSpan:
    """Coordinates in K-1 dimensions of all labels' gradients, for every user of a batch.

    ``centre_weights`` (users, K) mix the gradients to the centre; ``corners`` (users, K, K-1) are
    the gradients around it, the longest of length 1; ``inverse_map`` (users, K, K-1) are the
    weights of gradients that make each coordinate's unit vector, times the true length.
    """

    centre_weights: Array
    corners: Array
    inverse_map: Array

    @classmethod
    def from_gram(cls, gram: Array) -> Self:
        """Return the span given all users' ``<g_j, g_k>``, of shape (users, K, K)."""
        weights = smallest_ball_centre(gram)
        # The products around the centre are <g_j - c, g_k - c>; the weights are their null vector.
        to_centre = np.einsum("ijk,ik->ij", gram, weights)
        square = np.einsum("ij,ij->i", to_centre, weights)[:, None, None]
        inner = gram - to_centre[:, :, None] - to_centre[:, None, :] + square
        values, vectors = np.linalg.eigh(inner)
        values, vectors = values[:, 1:], vectors[:, :, 1:]
        lengths = np.sqrt(np.where(values > 1e-12 * values.sum(1, keepdims=True), values, 0.0))
        corners = vectors * lengths[:, None, :]
        radius = np.sqrt((corners**2).sum(axis=2).max(axis=1))[:, None, None]
        inverse = np.divide(1.0, lengths, where=lengths > 0, out=np.zeros_like(lengths))
        unit = np.where(radius > 0, radius, 1.0)
        return cls(weights, corners / unit, vectors * inverse[:, None, :] * radius)

    @classmethod
    @functools.lru_cache(maxsize=8)
    def regular_simplex(cls, classes: int) -> Self:
        """Return the regular simplex ``e_k - 1/K``, the same for all users and sizes."""
        return cls.from_gram(np.eye(classes)[None])

    def label_corners(self, labels: Any) -> Array:
        """Return the vector that each user randomises: the corner of the label."""
        shared = len(self.corners) == 1
        return np.asarray(self.corners[0 if shared else np.arange(len(labels)), labels])

    def coefficients(self, reports: Array) -> Array:
        """Return K coefficients for every report: ``w + lambda (1 - sum w)``, w the inverse map."""
        if len(self.inverse_map) == 1:
            weights: Array = reports @ self.inverse_map[0].T
        else:
            weights = np.einsum("ikj,ij->ik", self.inverse_map, reports)
        excess = 1 - weights.sum(axis=1, keepdims=True)
        return np.asarray(weights + self.centre_weights * excess)


def smallest_ball_centre(gram: Array) -> Array:
    """Return weights of each user's gradients that give nearly the centre of their smallest ball.

    Pairwise Frank-Wolfe with exact steps on ``max sum_k w_k |g_k|^2 - |sum_k w_k g_k|^2``, from
    equal weights, which are best for the corners of a regular simplex.
    """
    users, classes, _ = gram.shape
    squares, everyone = np.einsum("ikk->ik", gram), np.arange(users)
    weights = np.full((users, classes), 1 / classes)
    for _ in range(CENTRE_ROUNDS):
        to_centre = np.einsum("ijk,ik->ij", gram, weights)
        square = np.einsum("ij,ij->i", to_centre, weights)
        # |g_k - c|^2: weight moves from the nearest gradient with positive weight to the farthest.
        far = squares - 2 * to_centre + square[:, None]
        to, nearest = far.argmax(axis=1), np.where(weights > 0, far, np.inf).argmin(axis=1)
        farthest = far[everyone, to]
        if (farthest - np.einsum("ik,ik->i", far, weights) <= CENTRE_TOLERANCE * farthest).all():
            break
        square_distance = (
            squares[everyone, to] + squares[everyone, nearest] - 2 * gram[everyone, to, nearest]
        )
        gain = np.maximum(farthest - far[everyone, nearest], 0.0)
        step = np.divide(gain, 2 * square_distance, where=square_distance > 0, out=np.zeros(users))
        step = np.minimum(step, weights[everyone, nearest])
        weights[everyone, to] += step
        weights[everyone, nearest] -= step
    return weights
