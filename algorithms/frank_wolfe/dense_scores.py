"""Private Frank-Wolfe over a polytope: the scores of its vertices by a full pass, and the rounds.

The method minimises the mean loss of the records over a polytope.  In round t a mechanism selects a
vertex s by its noisy score ``-<s, gradient at theta>``, and theta moves to
``(1 - step) theta + step s`` with step = 2 / (t + 2).  Only the selected vertex is released, so
theta is public.  The score classes here are the queries that the mechanism asks: one for linear
models in memory, one for a loss that is given by its gradients, one for data read block by block.

References: Talwar, Thakurta & Zhang (2015), Algorithm 2.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy import sparse

from accountant.errors import ParameterError
from accountant.numerics import Array
from algorithms.base.glm_losses import SQUARED, DeclaredLoss, LinearLoss
from algorithms.base.non_private import NoPrivacy
from algorithms.base.row_blocks import (
    block_shares,
    clipped_rows,
    row_products,
    sum_over_blocks,
    weighted_row_sum,
)
from algorithms.frank_wolfe.constants import Bounds
from algorithms.frank_wolfe.polytopes import L1Ball, Polytope

# A declared loss is asked for the gradients of as many records at a time as have so many entries.
BLOCK_ENTRIES = 2**22


class DenseScores:
    """The scores for the loss of a linear model: minus a vertex's inner product with the gradient.

    The gradient is the mean over the records of slope(<x, theta>, y) x, times the share of a
    record's weight if data have weights.  Features, labels and slopes are clipped to the public
    bounds, from which the sensitivity of a score follows.

    It keeps the inner products ``X theta`` across the rounds and updates them in place, so a round
    costs one pass over X.  One object serves one run and is called once a round.
    """

    def __init__(
        self, bounds: Bounds, loss: LinearLoss = SQUARED, polytope: Polytope | None = None
    ) -> None:
        self._bounds, self._loss = bounds, loss
        self._polytope = L1Ball(bounds.radius) if polytope is None else polytope
        self._steepest = loss.bound(bounds.radius * bounds.x, bounds.y)
        self._x: Any = None
        self._columns: Any = None
        self._y: Array = np.empty(0)
        self._inner: Array = np.empty(0)
        self._residual: Array = np.empty(0)
        self._step: tuple[float, Any, Any] | None = None

    def move(self, step: float, where: Any, value: Any) -> None:
        """Record the public move ``theta <- (1 - step) theta + step * vertex`` for the next call.

        The vertex has ``value`` at ``where`` (a feature, or an array of them) and is 0 elsewhere.
        """
        self._step = (step, where, value)

    def __call__(self, data: tuple[Any, ...]) -> Array:
        """Return the scores of the vertices; a larger score reduces the loss more."""
        if self._x is None:
            rows = data[0] if sparse.issparse(data[0]) else data[0][:]
            self._x = clipped_rows(rows, self._bounds.x)
            self._columns = self._x.tocsc() if hasattr(self._x, "tocsc") else self._x
            self._y = clipped_rows(data[1], self._bounds.y)
            start = self._polytope.start(self._x.shape[1])
            self._inner = np.asarray(self._x @ start) if start.any() else np.zeros(len(self._y))
        if self._step is not None:
            step, where, value = self._step
            self._inner *= 1 - step
            self._inner += self._product(where, step * value)
            self._step = None
        slope = np.clip(self._loss.slope(self._inner, self._y), -self._steepest, self._steepest)
        self._residual = slope * block_shares(data, self._bounds.weight)
        gradient: Array = np.asarray(self._residual @ self._x)
        gradient /= -len(self._y)
        return self._polytope.products(gradient)

    def _product(self, where: Any, value: Any) -> Array:
        """Return X times a vector that is 0 outside ``where``."""
        if np.ndim(where) == 0 and not sparse.issparse(self._columns):
            column: Array = self._columns[:, where] * value
            return column
        where, value = np.atleast_1d(where), np.atleast_1d(value)
        product: Array = np.asarray(self._columns[:, where] @ value)
        return product


class DeclaredScores:
    """The scores for a loss that is given by a function for its gradients, and their bound."""

    def __init__(self, loss: DeclaredLoss, polytope: Polytope) -> None:
        self._loss, self._polytope = loss, polytope
        self._theta: Array | None = None
        self._step: tuple[float, Any, Any] | None = None

    def move(self, step: float, where: Any, value: Any) -> None:
        """Record the public move; see `DenseScores.move`."""
        self._step = (step, where, value)

    def __call__(self, data: tuple[Any, Any]) -> Array:
        """Return the scores of the vertices; the entries of every record's gradient are clipped."""
        x, y = data
        if self._theta is None:
            self._theta = self._polytope.start(x.shape[1])
        if self._step is not None:
            step, where, value = self._step
            self._theta *= 1 - step
            self._theta[where] += step * value
            self._step = None
        clip, rows = self._loss.lipschitz, max(1, BLOCK_ENTRIES // x.shape[1])
        total = np.zeros(x.shape[1])
        for start in range(0, len(y), rows):
            block = slice(start, start + rows)
            gradients = np.asarray(self._loss.gradients(self._theta, x[block], y[block]), float)
            if gradients.shape != x[block].shape:
                allowed = "a function that gives one gradient for each record"
                raise ParameterError("gradients", f"of shape {gradients.shape}", allowed)
            total += np.clip(np.nan_to_num(gradients), -clip, clip).sum(axis=0)
        return self._polytope.products(-total / len(y))


@final
@dataclass(frozen=True, slots=True)
class ClippedBlockGradient:
    """The sum of the gradients of a block of records, with clipped data and clipped slopes."""

    bounds: Bounds
    loss: LinearLoss
    theta: Array

    def __call__(self, block: tuple[Any, ...]) -> Array:
        """Return the sum for one block of features, labels, and weights if there are any."""
        x = clipped_rows(block[0], self.bounds.x)
        y = np.clip(block[1], -self.bounds.y, self.bounds.y)
        steepest = self.loss.bound(self.bounds.radius * self.bounds.x, self.bounds.y)
        slope = np.clip(self.loss.slope(row_products(x, self.theta), y), -steepest, steepest)
        return weighted_row_sum(x, slope * block_shares(block, self.bounds.weight))


class StreamedScores:
    """The scores for the loss of a linear model on data that every round reads block by block."""

    def __init__(
        self, bounds: Bounds, loss: LinearLoss, polytope: Polytope, executor: Executor | None
    ) -> None:
        self._bounds, self._loss, self._polytope = bounds, loss, polytope
        self._executor, self._theta = executor, np.empty(0)

    def move(self, step: float, where: Any, value: Any) -> None:
        """Record the public move; see `DenseScores.move`."""
        self._theta *= 1 - step
        self._theta[where] += step * value

    def __call__(self, data: tuple[Any, ...]) -> Array:
        """Return the scores of the vertices; a larger score reduces the loss more."""
        records, features = data[0].shape
        if not self._theta.size:
            self._theta = self._polytope.start(features)
        work = ClippedBlockGradient(self._bounds, self._loss, self._theta)
        return self._polytope.products(-sum_over_blocks(work, data, self._executor) / records)


@final
@dataclass(frozen=True, slots=True)
class BestVertex:
    """The query of a selection without privacy: the index of the largest score."""

    scores: Any

    def __call__(self, data: Any) -> int:
        """Return the index of the vertex or candidate with the largest score."""
        return int(np.argmax(self.scores(data)))


def run_frank_wolfe(
    ledger: Any,
    mechanism: Any,
    rounds: int,
    bounds: Bounds,
    loss: LinearLoss | DeclaredLoss = SQUARED,
    polytope: Polytope | None = None,
    average: bool = False,
    query: Any = None,
) -> Array:
    """Return the last iterate of private Frank-Wolfe, or with ``average`` the mean of iterates.

    ``ledger`` holds the data and releases what ``mechanism`` selects by the scores of ``query``;
    by default the query follows from the loss.
    """
    polytope, features = polytope or L1Ball(bounds.radius), ledger.shape[1]
    if query is None and isinstance(loss, DeclaredLoss):
        query = DeclaredScores(loss, polytope)
    elif query is None and isinstance(loss, LinearLoss):
        query = DenseScores(bounds, loss, polytope)
    theta = polytope.start(features)
    mean = theta.copy()
    selection_query = query
    shape: tuple[int, ...] = (polytope.count(features),)
    if isinstance(mechanism, NoPrivacy):
        selection_query, shape = BestVertex(query), ()
    for t in range(1, rounds + 1):
        index = int(ledger.release(mechanism, selection_query, shape=shape))
        vertex = polytope.vertex(index, features)
        where = np.flatnonzero(vertex)
        at = int(where[0]) if where.size == 1 else where
        step = 2 / (t + 2)
        theta *= 1 - step
        theta[at] += step * vertex[at]
        query.move(step, at, vertex[at])
        if average:
            # This makes iterate t (0 is the start) weigh in proportion to t + 1 in the mean.
            mean += step * (theta - mean)
    return mean if average else theta
