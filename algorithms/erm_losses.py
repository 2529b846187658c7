"""Losses of linear models whose gradient at one record has a bounded length."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy import sparse
from scipy.special import expit

from accountant.numerics import Array


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


def shortened(rows: Any, bound: float) -> Any:
    """Rows of Euclidean norm at most ``bound``, dense or sparse; the matrix itself if all are."""
    thin: Any = rows if sparse.issparse(rows) else None
    if thin is not None:
        norms = np.sqrt(np.asarray(thin.multiply(thin).sum(axis=1)).ravel())
    else:
        norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    if not (norms > bound).any():
        return rows
    factor = bound / np.maximum(norms, bound)
    if thin is not None:
        return thin.multiply(factor[:, None]).tocsr()
    return rows * factor[:, None]


class MeanGradient:
    """The query of every round: gradient of the records' loss over ``records``, at public theta."""

    def __init__(self, loss: ErmLoss, row_bound: float, records: float) -> None:
        self._loss, self._bound, self._records = loss, row_bound, records
        self._clipped: Any = None
        self.theta = np.empty(0)

    def __call__(self, data: tuple[Any, Array]) -> Array:
        """One vector; rows are shortened once, for all rounds on the same data."""
        given, labels = data
        if self._clipped is None or self._clipped[0] is not given:
            self._clipped = given, shortened(given, self._bound)
        rows = self._clipped[1]
        gradient: Array = np.asarray(rows.T @ self._loss.slope(rows @ self.theta, labels))
        return gradient / self._records
