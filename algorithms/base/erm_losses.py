"""Losses of linear models whose gradient at one record has a bounded length.

References: Chaudhuri, Monteleoni & Sarwate (2011), whose losses have slopes of at most 1.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np

from accountant.ledger.chunks import Chunks
from accountant.ledger.ordered_map import map_in_order
from accountant.ledger.private_data import first_array, take_rows
from accountant.numerics import Array
from algorithms.base.glm_losses import LOGISTIC, LinearLoss, huber_loss
from algorithms.base.row_blocks import (
    block_shares,
    ordered_sum,
    row_blocks,
    row_products,
    same_memory,
    squared_lengths,
    weighted_row_sum,
)

# Their slopes are at most 1; "squared" is quadratic up to residuals of 1.
ERM_LOSSES = {"logistic": LOGISTIC, "squared": huber_loss(1.0)}


def norm_clip_factors(rows: Any, bound: float) -> Array:
    """Return factors that scale every row to norm at most ``bound``; 0 for infinite norms."""
    with np.errstate(over="ignore"):
        lengths = np.sqrt(squared_lengths(rows))
    factors: Array = bound / np.maximum(lengths, bound)
    return factors


def clipped_row_products(rows: Any, clip_factors: Array, theta: Array) -> Array:
    """Return ``<row, theta>`` of scaled rows; 0 for rows with factor 0."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(clip_factors > 0, clip_factors * row_products(rows, theta), 0.0)


@final
@dataclass(frozen=True, slots=True)
class ErmBlockGradient:
    """The summed gradient of a block of records; rows are scaled without a copy of them."""

    loss: LinearLoss
    row_bound: float
    theta: Array
    constant: float = 0.0
    weight_bound: float = 1.0

    def __call__(self, block: tuple[tuple[Any, ...], Array | None]) -> Array:
        """Return the summed gradient of (rows, labels) or (rows, labels, weights).

        The factors that shorten rows may be given beside them.  A constant feature, if it is not 0,
        is the last one; rows are shortened without it.
        """
        (rows, labels, *_), factors = block
        factors = norm_clip_factors(rows, self.row_bound) if factors is None else factors
        inner = clipped_row_products(rows, factors, self.theta[: rows.shape[1]])
        if self.constant:
            inner = inner + self.constant * self.theta[-1]
        slope = self.loss.slope(inner, labels)
        slope = slope * block_shares(block[0], self.weight_bound)
        total = weighted_row_sum(rows, factors * slope)
        return np.append(total, self.constant * slope.sum()) if self.constant else total


class MeanGradient:
    """The query of every round: the summed gradient over ``records``, at a public theta.

    ``records`` is a public number; the caller sets ``theta`` before each round.
    """

    def __init__(
        self,
        loss: LinearLoss,
        row_bound: float,
        records: float,
        executor: Executor | None = None,
        constant: float = 0.0,
        weight_bound: float = 1.0,
    ) -> None:
        self._loss, self._bound, self._constant = loss, row_bound, constant
        self._records, self._executor, self._weight_bound = records, executor, weight_bound
        self._norm_clip_factors = partial(norm_clip_factors, bound=row_bound)
        self._cached_factors: tuple[Any, list[Array]] | None = None
        self.theta = np.empty(0)

    def __call__(self, data: Any) -> Array:
        """Return the answer; row lengths are computed once for all rounds on the same arrays."""
        features = first_array(data)
        if not features.shape[0]:  # an empty sample
            return np.zeros(features.shape[1] + bool(self._constant))
        blocks = row_blocks(data)
        factors: list[Any] = [None] * len(blocks)
        if not isinstance(features, Chunks):  # chunks may hold other rows next time
            if self._cached_factors is None or not same_memory(self._cached_factors[0], features):
                parts = (features[block_rows] for block_rows in blocks)
                factors = list(map_in_order(self._norm_clip_factors, parts, self._executor))
                self._cached_factors = features, factors
            factors = self._cached_factors[1]
        pieces = (
            (take_rows(data, block_rows), block_factors)
            for block_rows, block_factors in zip(blocks, factors, strict=True)
        )
        work = ErmBlockGradient(
            self._loss, self._bound, self.theta, self._constant, self._weight_bound
        )
        return ordered_sum(work, pieces, self._executor) / self._records
