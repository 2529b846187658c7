"""Least squares on few columns of public features and noisy labels: which columns, what weights.

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
SETTLED = 1e-9  # relative change of coefficients after which rounds stop


@dataclass(frozen=True, slots=True)
class NormalEquations:
    """``G t = c`` for the coefficients t of some columns, and the labels' own square."""

    columns: Indices
    gram: Array
    products: Array
    square: float
    records: int

    def only(self, positions: Indices) -> NormalEquations:
        """Return the equations of the columns at these positions."""
        inside = self.gram[np.ix_(positions, positions)]
        return NormalEquations(
            self.columns[positions], inside, self.products[positions], self.square, self.records
        )

    def solution(self) -> Array:
        """Return the shortest coefficients of least squares."""
        return np.asarray(np.linalg.lstsq(self.gram, self.products, rcond=1e-12)[0], dtype=float)

    def residual(self) -> float:
        """Return the sum of squares that the coefficients leave."""
        return max(self.square - float(self.products @ self.solution()), 0.0)

    def significant(self, features: int) -> NormalEquations:
        """Return the equations without the columns that noise alone would explain.

        One after the other, the column whose loss costs least is left out, while the sum of squares
        grows by less than ``2 ln(features)`` variances of the residuals.
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
    """Public features and noisy labels, and how the labels follow from the features."""

    link: Link
    data: tuple[Any, ...]  # features, labels, and perhaps the weights of the labels
    executor: Executor | None = None

    def equations(self, columns: Indices, theta: Array) -> NormalEquations:
        """Return the equations of the columns, with the link replaced by its tangent at theta."""
        total = self._sum(TangentMoments(self.link, columns, theta))
        k = len(columns)
        weights = self.data[-1] if len(self.data) > 2 else np.ones(len(self.data[1]))
        return NormalEquations(
            columns, total[:k, :k], total[:k, k], float(total[k, k]), int(np.count_nonzero(weights))
        )

    def slopes(self, theta: Array) -> Array:
        """Return the weighted sum of ``f'(<x, theta>) (y - f(<x, theta>)) x`` over the rows."""
        return self._sum(WeightedSlopes(self.link, theta))

    def lengths(self) -> Array:
        """Return the Euclidean length of every column; 1 for columns of zeros."""
        squares = self._sum(column_squares)
        return np.sqrt(np.where(squares > 0, squares, 1.0))

    def _sum(self, work: Callable[[Any], Array]) -> Array:
        return sum_over_blocks(work, self.data, self.executor)


def pursued_support(rows: PublicRows, sparsity: int, rounds: int) -> NormalEquations:
    """Return the equations of the ``sparsity`` columns that explain the labels best.

    Each round adds the columns of the largest gradient to those kept, solves least squares on all
    of them, and keeps the ``sparsity`` largest terms: Dai & Milenkovic (2009).
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
        residual, before = pruned.residual(), theta
        if rows.link.low == rows.link.high and residual >= best_residual:
            break
        best, best_residual = pruned, residual
        theta = np.zeros(features)
        theta[pruned.columns] = pruned.solution()
        if np.linalg.norm(theta - before) <= SETTLED * np.linalg.norm(theta):
            break
    nothing = np.zeros(0, dtype=np.intp)
    return rows.equations(nothing, theta) if best is None else best


@final
@dataclass(frozen=True, slots=True)
class TangentMoments:
    """All products of the columns ``f' x_j`` and ``y - f + f' <x, theta>`` of a block's rows."""

    link: Link
    columns: Indices
    theta: Array

    def __call__(self, block: tuple[Any, ...]) -> Array:
        """Return a square matrix, the labels' column last."""
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
        products: Array = np.einsum("ij,ik->jk", augmented, augmented)  # not BLAS: see row_products
        return products


@final
@dataclass(frozen=True, slots=True)
class WeightedSlopes:
    """The slopes of half the weighted sum of squares over a block's rows, downhill."""

    link: Link
    theta: Array

    def __call__(self, block: tuple[Any, ...]) -> Array:
        """Return one vector."""
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
