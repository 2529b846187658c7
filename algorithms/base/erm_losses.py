"""Losses of linear models whose gradient at one record has a bounded length.

References: Chaudhuri, Monteleoni & Sarwate (2011), whose losses have slopes of at most 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np

from accountant.ledger.chunks import Chunks
from accountant.ledger.ordered_map import map_in_order
from accountant.ledger.private_data import first_array, take_rows
from accountant.numerics import Array
from algorithms.base.glm_losses import logistic_slope
from algorithms.base.row_blocks import (
    block_shares,
    ordered_sum,
    row_blocks,
    row_products,
    same_memory,
    squared_lengths,
    weighted_row_sum,
)


@final
@dataclass(frozen=True, slots=True)
class ErmLoss:
    """A loss of a linear model: the gradient of a record x is ``slope(<x, theta>, y) x``.

    ``steepest`` bounds the absolute slope, and ``smoothness`` its derivative in ``<x, theta>``.
    """

    slope: Callable[[Array, Array], Array]
    steepest: float
    smoothness: float


def clipped_residual(inner: Array, label: Array) -> Array:
    """Return the slope of Huber's loss: ``u - y``, clipped to [-1, 1]."""
    return np.clip(inner - label, -1.0, 1.0)


ERM_LOSSES = {
    "logistic": ErmLoss(logistic_slope, 1.0, 0.25),
    "squared": ErmLoss(clipped_residual, 1.0, 1.0),
}


@final
@dataclass(frozen=True, slots=True)
class ClippedSlopeObjective:
    """The convex loss of one score whose slopes are those of a loss, clipped to ``steepest``.

    It is for the losses of `ERM_LOSSES`, with ``steepest`` at most 1.
    """

    loss: ErmLoss

    @property
    def curvature(self) -> float:
        """At least the second derivative."""
        return self.loss.smoothness

    def __call__(self, scores: Array, targets: Array) -> tuple[Array, Array]:
        """Return values and slopes; beyond the scores where slopes are clipped it is linear."""
        inner, steepest = scores[:, 0], self.loss.steepest
        slopes = np.clip(self.loss.slope(inner, targets), -steepest, steepest)
        if self.loss.slope is clipped_residual:
            return steepest * np.abs(inner - targets) - steepest**2 / 2 + np.maximum(
                0.0, steepest - np.abs(inner - targets)
            ) ** 2 / 2, slopes[:, None]
        margin = inner * targets
        # The slope is -steepest at the margin -logit(steepest).
        start = -math.inf if steepest >= 1 else math.log((1 - steepest) / steepest)
        values = np.logaddexp(0.0, -np.maximum(margin, start))
        return values + steepest * np.maximum(0.0, start - margin), slopes[:, None]


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

    loss: ErmLoss
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
        # The bound of slopes holds for every label, also for an invalid one.
        slope = np.clip(slope, -self.loss.steepest, self.loss.steepest)
        slope = slope * block_shares(block[0], self.weight_bound)
        total = weighted_row_sum(rows, factors * slope)
        return np.append(total, self.constant * slope.sum()) if self.constant else total


class MeanGradient:
    """The query of every round: the summed gradient over ``records``, at a public theta.

    ``records`` is a public number; the caller sets ``theta`` before each round.
    """

    def __init__(
        self,
        loss: ErmLoss,
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
