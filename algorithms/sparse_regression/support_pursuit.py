"""Sparse regression on public features and noisy labels: subspace pursuit and its normal equations.

The labels carry the noise that makes them private, so everything here is post-processing.  Columns
are chosen by subspace pursuit; on the chosen columns X the coefficients t solve a least squares
problem through its normal equations ``G t = c``, G = X'W X and c = X'W y, with the labels' weights
on the diagonal of W (1 where none are given).  With a link f the model is
y = f(<x, theta>) + error, and f is replaced by its tangent at the last theta.

References: Dai & Milenkovic (2009), Algorithm 1; Donoho & Johnstone (1994) for the threshold.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from accountant.numerics import Array
from algorithms.base.hard_thresholding import keep_largest
from algorithms.base.row_blocks import row_products, sum_over_blocks, weighted_row_sum
from algorithms.sparse_regression.links import Link

Indices = NDArray[np.intp]
SETTLED = 1e-9  # rounds stop where the coefficients change by at most this share of their norm


@dataclass(frozen=True, slots=True)
class NormalEquations:
    """The normal equations ``G t = c`` for the coefficients t of some columns of the features."""

    columns: Indices  # their numbers among all features
    gram: Array  # G, the weighted inner products of the columns
    products: Array  # c, the weighted inner products of the columns with the labels
    square: float  # the weighted sum of squared labels
    records: int  # the number of rows whose weight is not 0

    def only(self, positions: Indices) -> NormalEquations:
        """Return the equations of the columns at these positions within `columns`."""
        inner_gram = self.gram[np.ix_(positions, positions)]
        return NormalEquations(
            self.columns[positions], inner_gram, self.products[positions], self.square, self.records
        )

    def solution(self) -> Array:
        """Return the least squares coefficients, of several solutions the shortest."""
        return np.asarray(np.linalg.lstsq(self.gram, self.products, rcond=1e-12)[0], dtype=float)

    def residual(self) -> float:
        """Return the residual sum of squares of the least squares coefficients."""
        return max(self.square - float(self.products @ self.solution()), 0.0)

    def significant(self, features: int) -> NormalEquations:
        """Return the equations without the columns that noise alone would explain.

        Backward elimination: without column j the residual sum of squares grows by
        t_j^2 / (G^-1)_jj.  The column of the least growth is left out, one after another, while
        that growth is at most ``2 ln(features)`` times the variance of the residuals at the start.
        """
        equations = self
        limit = 2 * math.log(max(features, 2)) * self.residual() / self.records
        while len(equations.columns):
            inverse = np.linalg.pinv(equations.gram, rcond=1e-12, hermitian=True).diagonal()
            costs = np.square(equations.solution()) / np.where(inverse > 0, inverse, math.inf)
            weakest = int(costs.argmin())
            if costs[weakest] > limit:
                break
            equations = equations.only(np.delete(np.arange(len(equations.columns)), weakest))
        return equations


class PublicRows(NamedTuple):
    """Public features and noisy labels, and the link f by which the labels follow from them."""

    link: Link
    data: tuple[Any, ...]  # features, labels, and perhaps the weights of the labels
    executor: Executor | None = None

    def equations(self, columns: Indices, theta: Array) -> NormalEquations:
        """Return the equations of the columns, with the link replaced by its tangent at theta.

        With f and its derivative f' at <x, theta>, f' x takes the place of a row x, and
        y - f + f' <x, theta> that of its label y.
        """
        products = self._sum(TangentMoments(self.link, columns, theta))
        count = len(columns)
        weights = self.data[-1] if len(self.data) > 2 else np.ones(len(self.data[1]))
        return NormalEquations(
            columns,
            products[:count, :count],
            products[:count, count],
            float(products[count, count]),
            int(np.count_nonzero(weights)),
        )

    def slopes(self, theta: Array) -> Array:
        """Return the weighted sum of ``f'(<x, theta>) (y - f(<x, theta>)) x`` over the rows.

        It is minus the gradient of half the weighted sum of squared residuals.
        """
        return self._sum(WeightedSlopes(self.link, theta))

    def lengths(self) -> Array:
        """Return the Euclidean length of every column; 1 for columns of zeros."""
        squares = self._sum(column_squares)
        return np.sqrt(np.where(squares > 0, squares, 1.0))

    def _sum(self, work: Callable[[Any], Array]) -> Array:
        return sum_over_blocks(work, self.data, self.executor)


def pursued_support(rows: PublicRows, sparsity: int, rounds: int) -> NormalEquations:
    """Return the equations of the ``sparsity`` columns that subspace pursuit chooses.

    Each round adds the ``sparsity`` columns with the largest entries of the gradient, over the
    length of the column, to those kept, solves least squares on all of them, and keeps the
    ``sparsity`` columns with the largest coefficients times lengths: Dai & Milenkovic (2009).  With
    a linear link it stops once the residual sum of squares no longer decreases.
    """
    lengths, features = rows.lengths(), rows.data[0].shape[1]
    theta, best, best_residual = np.zeros(features), None, math.inf
    for _ in range(rounds):
        steepest = keep_largest(rows.slopes(theta) / lengths, min(sparsity, features))
        columns = np.flatnonzero((steepest != 0) | (theta != 0))
        if not len(columns):
            break
        merged = rows.equations(columns, theta)
        terms = merged.solution() * lengths[columns]
        pruned = merged.only(np.flatnonzero(keep_largest(terms, sparsity)))
        residual, last_theta = pruned.residual(), theta
        if rows.link.low == rows.link.high and residual >= best_residual:
            break
        best, best_residual = pruned, residual
        theta = np.zeros(features)
        theta[pruned.columns] = pruned.solution()
        if np.linalg.norm(theta - last_theta) <= SETTLED * np.linalg.norm(theta):
            break
    no_columns = np.zeros(0, dtype=np.intp)
    return rows.equations(no_columns, theta) if best is None else best


@final
@dataclass(frozen=True, slots=True)
class TangentMoments:
    """The inner products of the columns ``f' x_j`` and ``y - f + f' <x, theta>`` over a block."""

    link: Link
    columns: Indices
    theta: Array

    def __call__(self, block: tuple[Any, ...]) -> Array:
        """Return the square matrix of these products, the column of the labels last."""
        x, y = block[:2]
        inner = row_products(x, self.theta)
        slope = self.link.derivative(inner)
        selected = x[:, self.columns]
        selected = (
            selected.toarray()
            if hasattr(selected, "toarray")
            else np.asarray(selected, dtype=float)
        )
        target = y - self.link.function(inner) + slope * inner
        augmented = np.column_stack([selected * slope[:, None], target])
        if len(block) > 2:
            augmented *= np.sqrt(block[2])[:, None]
        # einsum is used instead of BLAS, as in `row_products`.
        products: Array = np.einsum("ij,ik->jk", augmented, augmented)
        return products


@final
@dataclass(frozen=True, slots=True)
class WeightedSlopes:
    """Minus the gradient of half the weighted sum of squared residuals over a block of rows."""

    link: Link
    theta: Array

    def __call__(self, block: tuple[Any, ...]) -> Array:
        """Return the vector, with one entry for each feature."""
        inner = row_products(block[0], self.theta)
        slopes = (block[1] - self.link.function(inner)) * self.link.derivative(inner)
        return weighted_row_sum(block[0], slopes if len(block) < 3 else slopes * block[2])


def column_squares(block: tuple[Any, ...]) -> Array:
    """Return the squared length of every column of a block's features."""
    x = block[0]
    if hasattr(x, "multiply"):
        return np.asarray(x.multiply(x).sum(axis=0), dtype=float).reshape(-1)
    squares: Array = np.einsum("ij,ij->j", x, x)
    return squares
