"""Intervals for the coefficients of a regression on noisy labels, from what was released.

References: White (1980), whose variance allows errors of any size for each user.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from accountant.errors import ParameterError
from accountant.ledger.private_data import take_rows
from accountant.numerics import Array
from algorithms.base.intervals import normal_interval
from algorithms.base.row_blocks import ordered_sum, row_blocks
from algorithms.sparse_regression.links import Link

USERS_PER_FEATURE = 4
NEWTON_STEPS = 8


def coefficient_intervals(data: Any, link: Link, start: Array, level: float) -> Array:
    """Return (lower, upper) of all coefficients of least squares on (features, noisy labels).

    Features are public, so all of this is computed from what was released.  The residuals hold the
    noise of the labels and that of the model.  Labels are those of the first users.
    """
    users, features = len(data[1]), data[0].shape[1]
    if users < USERS_PER_FEATURE * features:
        size = f"{users} users and {features} features"
        raise ParameterError("X", size, f"at least {USERS_PER_FEATURE} users for each feature")
    theta = start
    for _ in range(NEWTON_STEPS if link.low < link.high else 1):
        bread, pull = _gram_and_pull(data, link, theta, weighted=False)
        theta = theta + np.linalg.lstsq(bread, pull, rcond=None)[0]
    bread, _ = _gram_and_pull(data, link, theta, weighted=False)
    meat, _ = _gram_and_pull(data, link, theta, weighted=True)
    inverse = np.linalg.pinv(bread, hermitian=True)
    # the residuals of least squares are a little shorter than the errors
    variance = np.diag(inverse @ meat @ inverse) * users / (users - features)
    return normal_interval(theta, np.sqrt(np.maximum(variance, 0.0)), level)


def _gram_and_pull(data: Any, link: Link, theta: Array, *, weighted: bool) -> tuple[Array, Array]:
    pieces = (take_rows(data, block_rows) for block_rows in row_blocks(data, stop=len(data[1])))
    total = ordered_sum(GaussNewtonBlock(link, theta, weighted), pieces)
    return total[:-1], total[-1]


@final
@dataclass(frozen=True, slots=True)
class GaussNewtonBlock:
    """The sum of ``w j j^T`` over a block of users, and below it the sum of ``r j``.

    j is the gradient of the prediction, r the residual, and w is 1, or r^2 where ``weighted``.
    """

    link: Link
    theta: Array
    weighted: bool

    def __call__(self, block: tuple[Any, Array]) -> Array:
        """Return an array of shape (features + 1, features)."""
        rows, labels = block
        x = np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=np.float64)
        inner = x @ self.theta
        residual = labels - self.link.function(inner)
        slopes = x * self.link.derivative(inner)[:, None]
        weighted = slopes * (residual**2)[:, None] if self.weighted else slopes
        return np.vstack([slopes.T @ weighted, residual @ slopes])
