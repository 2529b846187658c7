"""Least squares from noisy sufficient statistics: one release, then solutions and intervals.

A record is shortened to a public length, its target by the same factor, so that a linear model
stays one.  The products of its features with each other (the Gram matrix), those with the target,
and the target's square are one vector.  Each of these three parts has a unit of its own, which
gives it its share of the budget; the vector then gets noise of one deviation from one Gaussian.
docs/proofs/linear_regression.md, points 2 to 4, has the proofs.

References: Vu & Slavkovic (2009); Wang (2018), Algorithm 2, for a ridge that follows the spectrum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.numerics.rounding import round_up
from accountant.plans.adjacency import RECORD_RELATIONS, Adjacency, check_relation
from algorithms.base.row_blocks import clipped_rows, row_lengths, weight_shares

# Shares of the squared budget: products of features, products with targets, squares of targets.
# Any shares that add up to 1 give a valid plan; the squares only serve the intervals.
SHARES = (0.55, 0.4, 0.05)
# A least eigenvalue below this part of the largest is taken for round-off: up to 4,000
# features it exceeds one unit in the last place of the largest for each of them.
ROUND_OFF = 1e-12
# The least eigenvalue of the products must be above this multiple of the norm of their noise.
SEPARATION = 4.0


@final
@dataclass(frozen=True, slots=True)
class StatisticUnits:
    """The units in which a record moves the three parts by the roots of their shares at most."""

    gram: float  # of products of features
    products: float  # of products of features with the target
    square: float  # of the target's square

    @classmethod
    def of(cls, row_bound: float, y_bound: float, relation: str) -> StatisticUnits:
        """Return the units for rows of length at most ``row_bound``."""
        neighbours = check_relation("relation", relation, RECORD_RELATIONS)
        replaced = neighbours is Adjacency.REPLACE_ONE
        # If a record (x, y) is replaced by (z, w), with the bounds B of rows and Y of targets:
        # |x x' - z z'|^2 = |x|^4 + |z|^4 - 2 <x, z>^2 <= 2 B^4, |x y - z w| <= 2 B Y,
        # and |y^2 - w^2| <= Y^2.  One that is added or removed moves them by B^2, B Y, Y^2.
        gram = row_bound**2 * (math.sqrt(2) if replaced else 1.0)
        products = row_bound * y_bound * (2.0 if replaced else 1.0)
        gram_share, product_share, square_share = map(math.sqrt, SHARES)
        return cls(gram / gram_share, products / product_share, y_bound**2 / square_share)


def statistics_sensitivity(records: int) -> float:
    """Return how far a record moves the mean vector in L2; rounded up.

    It is 1 / records, as the shares add up to 1.  The 16 units in the last place are for the roots,
    products and quotients that make the units; docs/proofs/linear_regression.md, point 3, says what
    covers the round-off of lengths.
    """
    return round_up(1 / records, 16)


class Statistics(NamedTuple):
    """Released means, and the deviations of their noise."""

    gram: Array
    products: Array
    square: float
    gram_noise: float  # on the diagonal; the noise of other entries is smaller by sqrt 2
    products_noise: float


@final
@dataclass(frozen=True, slots=True)
class BlockStatistics:
    """The summed statistics of a block; rows have norms of at most ``row_bound``.

    A block is (rows, targets) or (rows, targets, weights); rows and targets are multiplied by the
    root of a weight's share of ``weight_bound``, clipped to [0, 1].
    """

    x_bound: float
    y_bound: float
    intercept: bool
    row_bound: float
    units: StatisticUnits
    weight_bound: float = 1.0

    def __call__(self, block: tuple[Any, ...]) -> Array:
        """Return one vector: the upper triangle, the products, and the square."""
        rows, targets, *record_weights = block
        rows = clipped_rows(rows, self.x_bound)
        lengths = row_lengths(rows, self.intercept)
        shorter: Array = self.row_bound / np.maximum(lengths, self.row_bound)
        if record_weights:
            shorter = shorter * np.sqrt(weight_shares(record_weights[0], self.weight_bound))
        rows = rows.toarray() if hasattr(rows, "toarray") else rows
        if self.intercept:
            rows = np.hstack([rows, np.ones((len(rows), 1))])
        rows = rows * shorter[:, None]
        targets = np.clip(targets, -self.y_bound, self.y_bound) * shorter
        upper = np.triu_indices(rows.shape[1])
        # Entries off the diagonal weigh sqrt 2, so that the vector is as long as the whole matrix
        # is in the Frobenius norm.
        weights = np.where(upper[0] == upper[1], 1.0, math.sqrt(2)) / self.units.gram
        # einsum is used instead of BLAS, whose last bits depend on its number of threads.
        gram = np.einsum("ij,ik->jk", rows, rows)[upper] * weights
        products = np.einsum("ij,i->j", rows, targets) / self.units.products
        return np.concatenate([gram, products, [float(targets @ targets) / self.units.square]])


def vector_size(size: int) -> int:
    """Return the length of the vector for so many coefficients."""
    return size * (size + 1) // 2 + size + 1


def unpacked(released: Array, size: int, units: StatisticUnits, scale: float) -> Statistics:
    """Return the statistics of a released vector whose noise has the deviation ``scale``."""
    triangle = size * (size + 1) // 2
    upper = np.triu_indices(size)
    weights = np.where(upper[0] == upper[1], 1.0, math.sqrt(2)) / units.gram
    gram = np.zeros((size, size))
    gram[upper] = released[:triangle] / weights
    gram = gram + np.triu(gram, 1).T
    products = released[triangle:-1] * units.products
    return Statistics(
        gram,
        products,
        float(released[-1]) * units.square,
        scale * units.gram,
        scale * units.products,
    )


def solved(statistics: Statistics, penalty: Array) -> Array:
    """Return coefficients, with a ridge where noise hides the least eigenvalue of the products.

    With s the norm of the noise over sqrt 2, the ridge is s, but no more than what raises the least
    eigenvalue to 2 s, and 0 if it is above 2 s already.
    """
    values, vectors = np.linalg.eigh(statistics.gram + np.diag(penalty))
    # A symmetric p x p matrix of noise with deviation t on its diagonal and t / sqrt 2 off it has a
    # norm of about t sqrt(2 p).
    s = statistics.gram_noise * math.sqrt(statistics.products.size)
    ridge = max(0.0, min(s, 2 * s - float(values[0])))
    values = np.maximum(values, 0.0) + ridge
    # No data lie in directions whose eigenvalue is 0; infinity makes the coefficient 0 there.
    values[values <= ROUND_OFF * values[-1]] = np.inf
    coefficients: Array = vectors @ ((vectors.T @ statistics.products) / values)
    return coefficients


def refuse_hidden(values: Array, noise: float) -> None:
    """Raise `ParameterError` where noise hides the least of the ``values``, which are eigenvalues.

    They are in ascending order; ``noise`` is about the norm of the noise of their matrix.
    """
    if not values[0] > max(SEPARATION * noise, ROUND_OFF * values[-1]):
        raise ParameterError(
            "X",
            f"features whose least eigenvalue is not {SEPARATION:g} times the noise's norm",
            "more records, a larger epsilon, or features of which none is nearly the sum of others",
        )


def coefficient_covariance(statistics: Statistics, records: float) -> tuple[Array, Array]:
    """Return coefficients without a ridge, and the covariance of their error.

    For infinitely many records it is the covariance of the noise alone.
    Raises `ParameterError` where noise hides the least eigenvalue.
    """
    values, vectors = np.linalg.eigh(statistics.gram)
    size = statistics.products.size
    refuse_hidden(values, statistics.gram_noise * math.sqrt(2 * size))
    inverse = (vectors / values) @ vectors.T
    theta = inverse @ statistics.products
    # The error of the released theta is G^-1 (e - E theta + mean of x r), with G the released Gram
    # matrix, E its noise, e that of the products with targets, and r the residuals.  E has
    # variances s^2 on its diagonal and s^2 / 2 off it, so Cov(E theta) = s^2 / 2 (|theta|^2 I +
    # theta theta').  The mean of x r has the covariance (mean of r^2) G / n, if residuals have one
    # variance.
    residual_square = (
        statistics.square - 2 * statistics.products @ theta + theta @ statistics.gram @ theta
    )
    middle = statistics.products_noise**2 * np.eye(size)
    middle += statistics.gram_noise**2 / 2 * (theta @ theta * np.eye(size) + np.outer(theta, theta))
    middle += max(residual_square, 0.0) / records * statistics.gram
    return theta, inverse @ middle @ inverse
