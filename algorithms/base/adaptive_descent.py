"""Gradient descent that learns its clipping norm and its step from noisy rounds.

Every round releases one vector: the mean gradient in units of the clipping norm, the share of
records that were not clipped, and the mean squared length of rows.  So the noise of the plan is the
same whatever the norm is, and the norm follows the residuals at no further cost.

References: Abadi et al. (2016) for clipping; Andrew, Thakkar, McMahan & Ramaswamy (2021) for a
norm that follows a quantile; Polyak & Juditsky (1992) for the mean of iterates.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, final

import numpy as np

from accountant.ledger.chunks import Chunks
from accountant.ledger.private_data import first_array
from accountant.numerics import Array
from accountant.numerics.rounding import round_up
from accountant.plans.adjacency import RECORD_RELATIONS, Adjacency, check_relation
from accountant.plans.plan import Repeat
from algorithms.base.noisy_gradient_rounds import calibrated_gaussian, mu_of_budget
from algorithms.base.non_private import NoPrivacy
from algorithms.base.row_blocks import (
    clipped_rows,
    row_lengths,
    row_products,
    same_memory,
    sum_over_blocks,
    weighted_row_sum,
)

# chosen once, on training parts (docs/algorithms.md says how)
SHARE_WEIGHT = 0.3  # weight of a counting coordinate next to a gradient of length at most 1
LEAST_KEPT, CLIPPED, CLIPPED_SIGNAL = 0.6, 0.3, 50.0  # shares of records; see `schedule`
LEAST_NORM, MOST_NORM = 0.4, 2.0  # as `PrivateLogisticRegression` clips, by the same signal
LEARNING_RATE = 0.2  # step of the logarithm of the clipping norm
MOST_ROUNDS = 200
TRAVEL = 12.0  # steps over the signal of one round
MOST_MOMENTUM = 0.97


class Schedule(NamedTuple):
    """The public numbers that rounds depend on."""

    rounds: int
    momentum: float
    kept: float  # the share of records that are not clipped


def signal_length(records: int, mu: float, size: int) -> float:
    """Return ``n mu / (2 sqrt p)``: the length 1 of a clipped gradient over the noise of one round.

    ``mu`` belongs to all rounds together, if one record is replaced.
    """
    return records * mu / (2 * math.sqrt(size))


def schedule(signal: float, rounds: int | None = None, smoothness: float = 1.0) -> Schedule:
    """Return the rounds that a signal affords, and how far they travel for a loss's smoothness."""
    if rounds is None:
        # The noise of each of T rounds is sqrt T / signal.  It is at most half of a clipped
        # gradient.
        rounds_of_signal = (signal / 2) ** 2
        rounds = (
            MOST_ROUNDS if rounds_of_signal > MOST_ROUNDS else max(5, math.floor(rounds_of_signal))
        )
    # Slow directions add up all steps and all noise, so the total of steps follows the signal.
    momentum = min(max(0.0, 1 - rounds * min(smoothness, 1.0) / (TRAVEL * signal)), MOST_MOMENTUM)
    # A clipped gradient is biased if residuals are skewed, so more signal means less clipping.
    unclipped_share = max(LEAST_KEPT, 1 - CLIPPED * (CLIPPED_SIGNAL / signal) ** 0.25)
    return Schedule(rounds, momentum, unclipped_share)


def least_norm(signal: float) -> float:
    """Return the least clipping norm for slopes within 1, over the root mean square of rows.

    Where one class is rare, its gradients are longer than most: a norm that follows the others
    would clip them and shift the constant.
    """
    return min(LEAST_NORM * math.cbrt(2 * signal / 100), MOST_NORM)


def descent_plan(
    shape: tuple[int, int], budget: tuple[float, float], relation: str, rounds: int | None = None
) -> Repeat:
    """Return the plan for ``shape = (records, coefficients)`` and a budget (epsilon, delta)."""
    records, size = shape
    if math.isinf(budget[0]):
        return Repeat(NoPrivacy(), schedule(math.inf, rounds).rounds)
    count = schedule(signal_length(records, mu_of_budget(*budget), size), rounds).rounds
    moved = vector_sensitivity(records, relation)
    return Repeat(calibrated_gaussian(*budget, count, moved, size + 2), count)


def vector_sensitivity(records: int, relation: str) -> float:
    """Return how far a record moves the vector of a round, rounded up."""
    # A record moves the gradient by 2 at most, or by 1 if it is added or removed; it moves each
    # share by 1.
    replaced = check_relation("relation", relation, RECORD_RELATIONS) is Adjacency.REPLACE_ONE
    moved = math.sqrt((4.0 if replaced else 1.0) + 2 * SHARE_WEIGHT**2)
    return round_up(moved / records)


@final
@dataclass(frozen=True, slots=True)
class BlockVector:
    """The sum of a block's vectors, at a public theta and a public clipping norm.

    Rows are clipped to ``x_bound`` and targets to ``y_bound``; an ``intercept`` is the value of a
    constant feature, 0 if there is none.  A longest row has ``row_square`` as its squared length.
    ``slope`` is that of the loss at a prediction and a target; by default of half the squared
    error.
    """

    x_bound: float
    y_bound: float
    intercept: float
    row_square: float
    theta: Array
    norm: float
    slope: Callable[[Array, Array], Array] = np.subtract

    def __call__(self, block: tuple[Any, ...]) -> Array:
        """Return features, the intercept if there is one, and two numbers.

        A block may contain the lengths of its rows, which are clipped then.
        """
        rows, targets, *stored_lengths = block
        rows = rows if stored_lengths else clipped_rows(rows, self.x_bound)
        lengths = stored_lengths[0] if stored_lengths else row_lengths(rows, self.intercept)
        slopes = self.theta[:-1] if self.intercept else self.theta
        inner = row_products(rows, slopes)
        if self.intercept:
            inner += self.intercept * self.theta[-1]
        residual = self.slope(inner, np.clip(targets, -self.y_bound, self.y_bound))
        size = np.abs(residual) * lengths
        clipped = residual / np.maximum(size, self.norm)  # |x clipped| <= 1
        total = weighted_row_sum(rows, clipped)
        if self.intercept:
            total = np.append(total, self.intercept * clipped.sum())
        square_shares = np.minimum(lengths**2 / self.row_square, 1.0)
        counts = SHARE_WEIGHT * np.array([np.count_nonzero(size <= self.norm), square_shares.sum()])
        return np.concatenate([total, counts])


class MeanVector:
    """The query of every round."""

    def __init__(self, records: int, executor: Executor | None, **bounds: Any) -> None:
        self._records, self._executor = records, executor
        self._work = partial(BlockVector, **bounds)
        self._x_bound, self._intercept = bounds["x_bound"], bounds["intercept"]
        self._prepared: tuple[Any, Any] | None = None
        self.theta, self.norm = np.empty(0), 1.0

    def __call__(self, data: Any) -> Array:
        """Return one vector; rows are clipped and measured once for all rounds on an array."""
        features = first_array(data)
        if not isinstance(features, Chunks):  # chunks may hold other rows next time
            if self._prepared is None or not same_memory(self._prepared[0], features):
                rows = clipped_rows(features, self._x_bound)
                self._prepared = features, (rows, row_lengths(rows, self._intercept))
            rows, lengths = self._prepared[1]
            data = (rows, data[1], lengths)
        work = self._work(theta=self.theta, norm=self.norm)
        return sum_over_blocks(work, data, self._executor) / self._records


def descend_adaptively(
    ledger: Any,
    query: MeanVector,
    size: int,
    row_square: float,
    norms: tuple[float, float],
    penalty: Array,
    project: Callable[[Array], Array] | None = None,
    smoothness: float = 1.0,
    bounded_slopes: bool = False,
) -> Array:
    """Return the mean of the iterates, of which iterate t weighs t; a ``Repeat`` says the rounds.

    ``smoothness`` bounds the loss's second derivative; ``norms`` are the first clipping norm and
    the largest, ``penalty`` is the ridge of each coefficient, and ``project`` maps an iterate to a
    convex set.  Where slopes are bounded by 1, the norm does not fall below `least_norm` of a row.
    """
    part, rounds = ledger.plan.part, ledger.plan.count
    noise = getattr(part, "scale", 0.0) / SHARE_WEIGHT
    signal = math.inf
    if noise:  # the rounds are one Gaussian release of mu sqrt T
        signal = signal_length(ledger.shape[0], part.loss.mu * math.sqrt(rounds), size)
    _, momentum, unclipped_share = schedule(signal, rounds, smoothness)
    theta, speed, square_sum = np.zeros(size), np.zeros(size), 0.0
    (norm, largest), mean = norms, theta
    for t in range(1, rounds + 1):
        query.theta, query.norm = theta, norm
        released = ledger.release(part, query, shape=size + 2)
        share, square = released[-2:] / SHARE_WEIGHT
        square_sum += square
        # An upper bound of the curvature: the mean of t noisy squares, plus two deviations.
        curvature = (
            smoothness * row_square * min(1.0, max(square_sum / t + 2 * noise / math.sqrt(t), 1e-3))
        )
        gradient = norm * released[:-2] + penalty * theta
        speed = momentum * speed + gradient / (curvature + penalty.max(initial=0.0))
        before, theta = theta, theta - speed
        if project is not None:
            theta = project(theta)
            speed = before - theta
        # The norm grows while too many records are clipped.
        norm *= math.exp(LEARNING_RATE * (unclipped_share - min(1.0, max(0.0, share))))
        length = math.sqrt(row_square * min(1.0, max(square_sum / t, 1e-3)))
        norm_floor = least_norm(signal) * length if bounded_slopes else 1e-4 * largest
        norm = min(max(norm, norm_floor), largest)
        mean = mean + 2 / (t + 1) * (theta - mean)
    return mean
