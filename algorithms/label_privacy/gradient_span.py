"""The span of all labels' gradients around a public centre, in which Duchi's randomiser works.

A user has a private label, one of K.  The gradient of the loss is g_k if the label is k.  All g_k
are public, as the features are, so that with the centre c of a small ball around them the vectors
g_k - c span at most K - 1 dimensions.  The user randomises (g_k - c) / r there, r the radius, and
the report becomes K coefficients, which mix the gradients to an estimate of the user's own.

Everything here is public: it uses the gradients of all labels, and not which label is true.

References: "Convex Optimization with Local Label Differential Privacy", Appendix B.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from accountant.numerics import Array

CENTRE_ROUNDS = 1000  # rounds of Frank-Wolfe, at most
CENTRE_TOLERANCE = 1e-3  # rounds end at this gap of the squared radius to the least, relative to it


@final
@dataclass(frozen=True)
class GradientSpan:
    """Coordinates in K-1 dimensions of all labels' gradients, for every user of a batch.

    ``centre_weights`` (users, K) are weights lambda_k with ``c = sum_k lambda_k g_k``, the centre.
    ``corners`` (users, K, K-1) are the coordinates of ``(g_k - c) / r``, where the radius r is the
    largest ``|g_k - c|``.  ``inverse_map`` (users, K, K-1) has weights with which the ``g_k - c``
    add up to r times the unit vector of each coordinate.  Arrays for one user serve all users.
    """

    centre_weights: Array
    corners: Array
    inverse_map: Array

    @classmethod
    def from_gram(cls, gram: Array) -> Self:
        """Return the span given all users' ``<g_j, g_k>``, of shape (users, K, K)."""
        weights = smallest_ball_centre(gram)
        # The matrix <g_j - c, g_k - c> is V diag(l^2) V^T, so that row k of V diag(l) has the
        # coordinates of g_k - c.  The centre's weights are a null vector of the matrix: the least
        # eigenvalue, which comes first, is 0 and is left out.
        products_with_centre = np.einsum("ijk,ik->ij", gram, weights)
        centre_square = np.einsum("ij,ij->i", products_with_centre, weights)[:, None, None]
        centred_gram = (
            gram
            - products_with_centre[:, :, None]
            - products_with_centre[:, None, :]
            + centre_square
        )
        values, vectors = np.linalg.eigh(centred_gram)
        values, vectors = values[:, 1:], vectors[:, :, 1:]
        # Eigenvalues below 1e-12 of their sum are round-off: no gradient has a part there.
        lengths = np.sqrt(np.where(values > 1e-12 * values.sum(1, keepdims=True), values, 0.0))
        corners = vectors * lengths[:, None, :]
        radius = np.sqrt((corners**2).sum(axis=2).max(axis=1))[:, None, None]
        inverse = np.divide(1.0, lengths, where=lengths > 0, out=np.zeros_like(lengths))
        unit = np.where(radius > 0, radius, 1.0)
        return cls(weights, corners / unit, vectors * inverse[:, None, :] * radius)

    @classmethod
    @functools.lru_cache(maxsize=8)
    def regular_simplex(cls, classes: int) -> Self:
        """Return the span of gradients ``e_k``: a regular simplex of corners, for all users."""
        return cls.from_gram(np.eye(classes)[None])

    def label_corners(self, labels: Any) -> Array:
        """Return the vector that each user randomises: the corner of the label."""
        shared = len(self.corners) == 1
        return np.asarray(self.corners[0 if shared else np.arange(len(labels)), labels])

    def coefficients(self, reports: Array) -> Array:
        """Return K coefficients for every report x: ``w + lambda (1 - sum w)``, w = inverse map x.

        With them the gradients add up to ``sum_k w_k (g_k - c) + c = r x + c``.
        """
        if len(self.inverse_map) == 1:
            weights: Array = reports @ self.inverse_map[0].T
        else:
            weights = np.einsum("ikj,ij->ik", self.inverse_map, reports)
        excess = 1 - weights.sum(axis=1, keepdims=True)
        return np.asarray(weights + self.centre_weights * excess)


def smallest_ball_centre(gram: Array) -> Array:
    """Return weights of each user's gradients that give nearly the centre of their smallest ball.

    ``gram`` (users, K, K) has the products ``<g_j, g_k>``.  The weights w, at least 0 and of sum 1,
    maximise ``sum_k w_k |g_k|^2 - |c|^2`` with the centre ``c = sum_k w_k g_k``; the maximum is the
    squared radius.  Pairwise Frank-Wolfe with exact steps begins with equal weights, which are best
    for the corners of a regular simplex.  The largest squared distance, less the mean one under w,
    bounds how far the value is below the maximum.
    """
    users, classes, _ = gram.shape
    squares, everyone = np.einsum("ikk->ik", gram), np.arange(users)
    weights = np.full((users, classes), 1 / classes)
    for _ in range(CENTRE_ROUNDS):
        products_with_centre = np.einsum("ijk,ik->ij", gram, weights)
        centre_square = np.einsum("ij,ij->i", products_with_centre, weights)
        # Squared distances |g_k - c|^2.  Weight moves from the nearest gradient with a positive
        # weight to the farthest one.
        square_distances = squares - 2 * products_with_centre + centre_square[:, None]
        farthest_index, nearest_index = (
            square_distances.argmax(axis=1),
            np.where(weights > 0, square_distances, np.inf).argmin(axis=1),
        )
        farthest = square_distances[everyone, farthest_index]
        if (
            farthest - np.einsum("ik,ik->i", square_distances, weights)
            <= CENTRE_TOLERANCE * farthest
        ).all():
            break
        pair_squares = (
            squares[everyone, farthest_index]
            + squares[everyone, nearest_index]
            - 2 * gram[everyone, farthest_index, nearest_index]
        )
        gain = np.maximum(farthest - square_distances[everyone, nearest_index], 0.0)
        step = np.divide(gain, 2 * pair_squares, where=pair_squares > 0, out=np.zeros(users))
        step = np.minimum(step, weights[everyone, nearest_index])
        weights[everyone, farthest_index] += step
        weights[everyone, nearest_index] -= step
    return weights
