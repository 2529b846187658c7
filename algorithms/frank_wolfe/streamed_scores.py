"""Scores of Frank-Wolfe's vertices from data that are read a block at a time, in every round."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from accountant.ledger.private_data import take_rows
from accountant.numerics import Array
from algorithms.base.glm_losses import LinearLoss
from algorithms.base.row_blocks import ordered_sum, row_blocks, row_products, weighted_row_sum
from algorithms.frank_wolfe.constants import Bounds
from algorithms.frank_wolfe.dense_scores import clipped_entries
from algorithms.frank_wolfe.polytopes import Polytope


@final
@dataclass(frozen=True, slots=True)
class ClippedBlockGradient:
    """The summed gradient of a block of records, on clipped data."""

    bounds: Bounds
    loss: LinearLoss
    theta: Array

    def __call__(self, block: tuple[Any, Array]) -> Array:
        """Return one vector."""
        x, y = (
            clipped_entries(block[0], self.bounds.x),
            np.clip(block[1], -self.bounds.y, self.bounds.y),
        )
        steepest = self.loss.bound(self.bounds.radius * self.bounds.x, self.bounds.y)
        slope = np.clip(self.loss.slope(row_products(x, self.theta), y), -steepest, steepest)
        return weighted_row_sum(x, slope)


class StreamedScores:
    """The query of every round; it recomputes what `DenseScores` keeps."""

    def __init__(
        self, bounds: Bounds, loss: LinearLoss, polytope: Polytope, executor: Executor | None
    ) -> None:
        self._bounds, self._loss, self._polytope = bounds, loss, polytope
        self._executor, self._theta = executor, np.empty(0)

    def move(self, step: float, where: Any, value: Any) -> None:
        """Record the public move; see `DenseScores.move`."""
        self._theta *= 1 - step
        self._theta[where] += step * value

    def __call__(self, data: tuple[Any, Any]) -> Array:
        """Return the scores of the vertices; a larger score reduces the loss more."""
        records, features = data[0].shape
        if not self._theta.size:
            self._theta = self._polytope.start(features)
        work = ClippedBlockGradient(self._bounds, self._loss, self._theta)
        pieces = (take_rows(data, block_rows) for block_rows in row_blocks(data))
        return self._polytope.products(-ordered_sum(work, pieces, self._executor) / records)
