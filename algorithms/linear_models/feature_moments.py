"""Noisy moments of features, and the map that they give: centred, and of about one curvature.

The mean of shortened rows and of their squared lengths is one release; the products of centred
rows, in units of the length that the first one found, are another.
docs/proofs/clipped_gradients.md proves how far a record moves each.

References: Dwork, Talwar, Thakurta & Zhang (2014) for noisy products; Boehning & Lindsay (1988) for
the bound of the curvature that they give.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from accountant.numerics import Array
from accountant.plans.adjacency import RECORD_RELATIONS, Adjacency, check_relation
from algorithms.base.clipped_gradient_descent import WITHIN, FeatureMap
from algorithms.base.row_blocks import clipped_rows, squared_lengths

SMALLEST = 0.1  # least root of the mean squared length, over the bound of rows
LEAST_CURVATURE = 1e-3  # over the mean squared length; the norm of the noise is added to it


class Moves(NamedTuple):
    """How far a record moves the sums of the three queries, by the neighbours' relation."""

    moments: float
    products: float
    gradient: float

    @classmethod
    def of(cls, relation: str) -> Moves:
        """Return the bounds of docs/proofs/clipped_gradients.md."""
        neighbours = check_relation("relation", relation, RECORD_RELATIONS)
        replaced = neighbours is Adjacency.REPLACE_ONE
        root = math.sqrt(2)
        return cls(2.0, root, 2.0) if replaced else cls(root, 1.0, 1.0)


@final
@dataclass(frozen=True, slots=True)
class BlockMoments:
    """The sum over a block of (x, |x|^2) for rows x, shortened to ``bound``, in units of it."""

    x_bound: float
    bound: float

    def __call__(self, block: tuple[Any, ...]) -> Array:
        """Return one vector, a coordinate longer than a row."""
        rows = clipped_rows(block[0], self.x_bound)
        lengths = np.sqrt(squared_lengths(rows)) / self.bound
        shorter = WITHIN / np.maximum(lengths, 1.0) / self.bound
        total = np.asarray(
            rows.T @ shorter
            if not isinstance(rows, np.ndarray)
            else np.einsum("ij,i->j", rows, shorter)
        )
        return np.append(total, WITHIN * np.square(np.minimum(lengths, 1.0)).sum())


@final
@dataclass(frozen=True, slots=True)
class BlockProducts:
    """The sum over a block of z z' for centred rows z, shortened to ``bound``, in units of it.

    The upper triangle is given; entries off the diagonal weigh the root of 2, so that lengths
    are those of whole matrices.
    """

    x_bound: float
    centre: Array
    bound: float

    def __call__(self, block: tuple[Any, ...]) -> Array:
        """Return one vector."""
        rows = clipped_rows(block[0], self.x_bound)
        rows = (rows if isinstance(rows, np.ndarray) else rows.toarray()) - self.centre
        lengths = np.sqrt(squared_lengths(rows)) / self.bound
        rows = rows * (WITHIN / np.maximum(lengths, 1.0) / self.bound)[:, None]
        # einsum is used instead of BLAS, whose last bits depend on its number of threads.
        products = np.einsum("ij,ik->jk", rows, rows)
        upper = np.triu_indices(rows.shape[1])
        weighted: Array = products[upper] * np.where(upper[0] == upper[1], 1.0, math.sqrt(2))
        return weighted


class Moments(NamedTuple):
    """The released mean of rows, the noise of it, and the mean squared length about it."""

    centre: Array
    square: float
    square_noise: float = 0.0
    centre_noise: float = 0.0

    @classmethod
    def of(cls, released: Array, noise: float, bound: float, centred: bool) -> Moments:
        """Return them from the release in units of ``bound``; without centring the centre is 0.

        The centre is shortened by the part of its square that is noise (James & Stein 1961).
        """
        mean, centre = bound * released[:-1], np.zeros(released.size - 1)
        about = bound**2 * released[-1]
        if centred:
            # E|m + noise|^2 = |m|^2 + p s^2.  For the centre k (m + noise), the mean squared
            # distance from rows is E|x|^2 - |centre|^2 if k = |m|^2 / E|m + noise|^2.
            length = float(mean @ mean)
            hidden = centre.size * (bound * noise) ** 2
            centre = mean * (max(0.0, length - hidden) / length if length else 0.0)
            about -= centre @ centre
        square = float(np.clip(about, (SMALLEST * bound) ** 2, bound**2))
        # The noise of the mean square and, to first order, of the square of the centre.
        square_noise = noise * bound * math.hypot(bound, 2 * math.sqrt(centre @ centre))
        return cls(centre, square, square_noise, bound * noise if centred else 0.0)


class Spread(NamedTuple):
    """Released means of products of features, about a centre that is their noisy mean."""

    matrix: Array
    noise: float  # on the diagonal; the noise of other entries is smaller by sqrt 2
    moments: Moments


class MappedFeatures(NamedTuple):
    """A map, about the root of the mean squared length of mapped rows, and the longest step.

    Steps below ``2 longest_step`` are stable for a loss of the curvature that was asked about.
    """

    features: FeatureMap
    length: float
    longest_step: float
    spread: Spread | None = None


def mapped_features(
    moments: Moments,
    products: Array | None,
    noise: float,
    shortened: float,
    x_bound: float,
    longest_constant: float,
    curvature: float,
    damping: float = 1.0,
    penalty: float = 0.0,
    row_bound: float = math.inf,
) -> MappedFeatures:
    """Return the map for a loss whose second derivative is at most ``curvature``.

    ``products`` are the released ones in units of the squared length at which rows were shortened,
    ``shortened`` times the root of the mean, with noise of deviation ``noise``, of whose norm
    ``damping`` is a multiple; without them no direction is rescaled.  The constant feature is at
    most ``longest_constant`` times as long as a mapped row; 0 for none.  ``penalty`` is the ridge
    of the loss, a part of its curvature, and ``row_bound`` that of `row_weights`.
    """
    square, size = moments.square, moments.centre.size
    if products is None:
        constant = min(1.0, longest_constant) * math.sqrt(square)
        features = FeatureMap(x_bound, constant, moments.centre, None, row_bound)
        return MappedFeatures(
            features, math.hypot(constant, math.sqrt(square)), 1 / (curvature * square + penalty)
        )
    # If all rows are shortened, their products are too small by this factor.
    unit = max(shortened**2, 1.0) * square
    upper = np.triu_indices(size)
    matrix = np.zeros((size, size))
    matrix[upper] = unit * products / np.where(upper[0] == upper[1], 1.0, math.sqrt(2))
    matrix += np.triu(matrix, 1).T
    values, vectors = np.linalg.eigh(matrix)
    # A symmetric matrix with noise of s on its diagonal and s / sqrt 2 off it has norm s sqrt(2 p).
    ridge = damping * unit * noise * math.sqrt(2 * size) + LEAST_CURVATURE * square
    values = np.maximum(values, 0.0)
    scaled = curvature * (values + ridge) + penalty
    root = (vectors / np.sqrt(scaled)) @ vectors.T
    # The positive part of the noise adds to the trace, which is known from the first release.
    share = min(1.0, square / max(float(values.sum()), 1e-300))
    length = math.sqrt(share * float((values / scaled).sum()))
    constant = min(1 / math.sqrt(curvature), longest_constant * length)
    length = math.hypot(length, constant)
    features = FeatureMap(x_bound, constant, moments.centre, root, row_bound)
    spread = Spread(matrix, unit * noise, moments)
    return MappedFeatures(features, length, 1.0, spread)
