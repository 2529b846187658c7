"""Gradient descent on a linear model: each record's gradient is clipped, each mean is noisy.

The gradient of a record (x, y) at theta is ``x r'`` with residuals ``r(x' theta, y)``, one for each
output of the model.  Its length is ``|x| |r|``, so that clipping needs no array of gradients.

References: Song, Chaudhuri & Sarwate (2013); Abadi et al. (2016), Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np
from scipy.special import expit, softmax

from accountant.ledger.private_data import first_array, take_rows
from accountant.numerics import Array
from algorithms.base.hard_thresholding import project_to_ball
from algorithms.base.row_blocks import ordered_sum, row_blocks, row_products, weighted_row_sum

Residuals = Callable[[Array, Array], Array]
MAX_ENTRY = 1e100  # whose squares are floats


def squared_residuals(scores: Array, targets: Array, y_bound: float = MAX_ENTRY) -> Array:
    """Return the slopes of half the squared error, for one score a record; targets are clipped."""
    return scores - np.clip(targets, -y_bound, y_bound)[:, None]


def logistic_residuals(scores: Array, classes: Array) -> Array:
    """Return the slopes of the logistic loss, for classes 0 and 1 and one score a record."""
    return expit(scores) - (classes > 0)[:, None]


def multinomial_residuals(scores: Array, classes: Array) -> Array:
    """Return the slopes of the multinomial loss, for classes 0, 1, ... and a score for each."""
    found: Array = softmax(scores, axis=1)
    # a class that does not exist is taken for the nearest one
    at = np.clip(classes, 0, scores.shape[1] - 1).astype(np.intp)
    found[np.arange(len(found)), at] -= 1.0
    return found


def clipped_rows(rows: Any, bound: float) -> Any:
    """Return rows with entries clipped to ``[-bound, bound]``; the same ones if none exceeds it."""
    if isinstance(rows, np.ndarray):
        rows = rows.astype(np.float64, copy=False)
        if rows.max(initial=0.0) <= bound and rows.min(initial=0.0) >= -bound:
            return rows
        return np.clip(rows, -bound, bound)
    found = rows.tocsr().astype(np.float64, copy=False)
    if not found.has_canonical_format:  # entries that are stored in parts add up
        found = found.copy()
        found.sum_duplicates()
    if found.data.max(initial=0.0) > bound or found.data.min(initial=0.0) < -bound:
        found = found.copy()
        found.data = np.clip(found.data, -bound, bound)
    return found


def row_lengths(rows: Any, intercept: bool) -> Array:
    """Return Euclidean lengths of rows, to which an intercept adds a constant feature of 1."""
    if isinstance(rows, np.ndarray):
        squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    else:
        squares = np.asarray(rows.multiply(rows).sum(axis=1), dtype=np.float64).ravel()
    lengths: Array = np.sqrt(squares + intercept)
    return lengths


@final
@dataclass(frozen=True, slots=True)
class BlockClippedGradient:
    """The summed clipped gradients of a block of records, at public coefficients.

    A block is (rows, targets) or (rows, targets, weights); weights are clipped to ``[0, 1]``.
    ``theta`` has a row for each feature and, with ``intercept``, a last one for the constant 1.
    """

    residuals: Residuals
    clip: float
    x_bound: float
    intercept: bool
    theta: Array

    def __call__(self, block: tuple[Any, ...]) -> Array:
        """Return an array of the shape of ``theta``."""
        rows, targets, *weights = block
        rows = clipped_rows(rows, self.x_bound)
        slopes = self.theta[:-1] if self.intercept else self.theta
        scores = np.stack([row_products(rows, one) for one in slopes.T], axis=1)
        if self.intercept:
            scores += self.theta[-1]
        found = self.residuals(scores, targets)
        lengths = row_lengths(rows, self.intercept) * np.sqrt(np.square(found).sum(axis=1))
        shorter = self.clip / np.maximum(lengths, self.clip)
        if weights:
            shorter = shorter * np.clip(weights[0], 0.0, 1.0)
        found = found * shorter[:, None]
        total = np.stack([weighted_row_sum(rows, one) for one in found.T], axis=1)
        return np.vstack([total, found.sum(axis=0)]) if self.intercept else total


class ClippedMeanGradient:
    """The query of every round: the mean of clipped gradients, at a public theta.

    ``records`` is what the sum is divided by; a record moves the mean by at most ``clip / records``
    and its exchange for another by twice that.  The answer is one vector: ``theta``'s rows in turn.
    """

    def __init__(
        self,
        residuals: Residuals,
        clip: float,
        records: float,
        x_bound: float = MAX_ENTRY,
        intercept: bool = False,
        executor: Executor | None = None,
    ) -> None:
        self._work = partial(BlockClippedGradient, residuals, clip, x_bound, intercept)
        self._records, self._executor = records, executor
        self.theta: Array = np.empty((0, 1))

    def __call__(self, data: Any) -> Array:
        """Return one vector; it is 0 for an empty sample."""
        if not first_array(data).shape[0]:
            return np.zeros(self.theta.size)
        blocks = (take_rows(data, who) for who in row_blocks(data))
        total = ordered_sum(self._work(self.theta), blocks, self._executor)
        return total.ravel() / self._records


def descend(
    ledger: Any,
    mechanism: Any,
    gradient: ClippedMeanGradient,
    start: Array,
    step: float,
    rounds: int,
    *,
    penalty: float = 0.0,
    radius: float = np.inf,
    average: bool = False,
) -> Array:
    """Return coefficients of the shape of ``start`` after ``rounds`` noisy gradient steps.

    ``penalty`` is the ridge penalty, of half the squared length; ``radius`` the longest theta.
    ``average`` returns the mean of the iterates, with larger weights for later ones (iterate t
    weighs 2 t / (T (T + 1))), instead of the last.
    """
    theta, mean = start, start
    for t in range(rounds):
        gradient.theta = theta
        noisy = np.reshape(ledger.release(mechanism, gradient), start.shape)
        theta = theta - step * (noisy + penalty * theta)
        theta = project_to_ball(theta, radius)
        mean = mean + 2 / (t + 2) * (theta - mean)
    return mean if average else theta
