"""Losses of linear models whose gradient at one record has a bounded length."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np
from scipy.special import expit

from accountant.data import rows
from accountant.numerics import Array
from accountant.spreading import in_order
from algorithms.blocks import combination, products, row_blocks, summed


@final
@dataclass(frozen=True, slots=True)
class ErmLoss:
    """``slope(<x, theta>, y)`` times x is a record's gradient.

    ``steepest`` bounds the slope's size, and ``curvature`` its derivative.
    """

    slope: Callable[[Array, Array], Array]
    steepest: float
    curvature: float


def logistic_slope(inner: Array, label: Array) -> Array:
    """Of ``ln(1 + e^{-y u})`` with labels -1 and 1."""
    slope: Array = -label * expit(-label * inner)
    return slope


def clipped_residual(inner: Array, label: Array) -> Array:
    """Of ``(u - y)^2 / 2``, clipped to [-1, 1]: Huber's loss."""
    return np.clip(inner - label, -1.0, 1.0)


LOSSES = {
    "logistic": ErmLoss(logistic_slope, 1.0, 0.25),
    "squared": ErmLoss(clipped_residual, 1.0, 1.0),
}


def factors(rows: Any, bound: float) -> Array:
    """What shortens every row to a Euclidean norm of at most ``bound``."""
    if isinstance(rows, np.ndarray):
        squares = np.einsum("ij,ij->i", rows, rows)
    else:
        squares = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
    shorter: Array = bound / np.maximum(np.sqrt(squares), bound)
    return shorter


@final
@dataclass(frozen=True, slots=True)
class BlockGradient:
    """Gradients of a block of records, added; rows are shortened without a copy of them."""

    loss: ErmLoss
    theta: Array

    def __call__(self, block: tuple[Any, Array, Array]) -> Array:
        """One vector."""
        rows, labels, shorter = block
        inner = shorter * products(rows, self.theta)
        return combination(rows, shorter * self.loss.slope(inner, labels))


class MeanGradient:
    """The query of every round: gradient of the records' loss over ``records``, at public theta."""

    def __init__(
        self, loss: ErmLoss, row_bound: float, records: float, executor: Executor | None = None
    ) -> None:
        self._loss, self._records, self._executor = loss, records, executor
        self._shorter = partial(factors, bound=row_bound)
        self._seen: tuple[Any, Array] | None = None
        self.theta = np.empty(0)

    def __call__(self, data: tuple[Any, Array]) -> Array:
        """One vector; the rows' lengths are found once for all rounds on the same data."""
        given, blocks = data[0], row_blocks(data)
        if not given.shape[0]:  # a sample of nobody
            return np.zeros(given.shape[1])
        if self._seen is None or self._seen[0] is not given:
            each = in_order(self._shorter, (given[who] for who in blocks), self._executor)
            self._seen = given, np.concatenate(list(each))
        whole = (*data, self._seen[1])
        pieces = (rows(whole, who) for who in blocks)
        total = summed(BlockGradient(self._loss, self.theta), pieces, self._executor)
        return total / self._records
