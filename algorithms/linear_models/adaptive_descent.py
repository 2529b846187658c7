"""Gradient descent that learns its clipping norm and its step from noisy rounds.

Every round releases one vector: the mean gradient in units of the clipping norm, the share of
records that were not clipped, and the mean squared length of rows.  So the noise of the plan is the
same whatever the norm is, and the norm follows the residuals at no further cost.

References: Abadi et al. (2016) for clipping; Andrew, Thakkar, McMahan & Ramaswamy (2021) for a
norm that follows a quantile; Polyak & Juditsky (1992) for the mean of the last iterates.
"""

from __future__ import annotations

import math
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, final

import numpy as np

from accountant.ledger.private_data import first_array, take_rows
from accountant.numerics import Array
from accountant.numerics.rounding import round_up
from accountant.plans.adjacency import RECORD_RELATIONS, Adjacency, check_relation
from algorithms.base.clipped_gradient_descent import clipped_rows, row_lengths
from algorithms.base.row_blocks import ordered_sum, row_blocks, row_products, weighted_row_sum

# chosen once, on training parts (docs/algorithms.md says how)
SHARE_WEIGHT = 0.5  # of a coordinate that counts, beside a gradient of length at most 1
KEPT_SHARE = 0.6  # of records that are not clipped
LEARNING_RATE = 0.3  # of the logarithm of the clipping norm
MOST_ROUNDS = 200
TRAVEL = 8.0  # steps over the signal of one round
MOST_MOMENTUM = 0.97


class Schedule(NamedTuple):
    """What rounds depend on, all of it public."""

    rounds: int
    momentum: float


def signal_length(records: int, mu: float, size: int) -> float:
    """Return ``n mu / (2 sqrt p)``: the length 1 of a clipped gradient over the noise of one round.

    ``mu`` is that of all rounds together, which replace one record.
    """
    return records * mu / (2 * math.sqrt(size))


def schedule(signal: float, rounds: int | None = None) -> Schedule:
    """Return the rounds that a signal affords, and how far they travel."""
    if rounds is None:
        # of T rounds the noise of each is sqrt T / signal: at most half of a clipped gradient
        wanted = (signal / 2) ** 2
        rounds = MOST_ROUNDS if wanted > MOST_ROUNDS else max(5, math.floor(wanted))
    # slow directions add up all steps and all noise, so the steps in all follow the signal
    steps = TRAVEL * signal
    return Schedule(rounds, min(max(0.0, 1 - rounds / steps), MOST_MOMENTUM))


def vector_sensitivity(records: int, relation: str) -> float:
    """Return how far a record moves the vector of a round, rounded up."""
    # the gradient moves by 2 at most, or by 1 where the other record adds none; shares by 1 each
    replaced = check_relation("relation", relation, RECORD_RELATIONS) is Adjacency.REPLACE_ONE
    moved = math.sqrt((4.0 if replaced else 1.0) + 2 * SHARE_WEIGHT**2)
    return round_up(moved / records)


@final
@dataclass(frozen=True, slots=True)
class BlockVector:
    """The sum of a block's vectors, at a public theta and a public clipping norm.

    Rows are clipped to ``x_bound`` and targets to ``y_bound``; a longest row has ``row_square`` as
    its squared length.
    """

    x_bound: float
    y_bound: float
    intercept: bool
    row_square: float
    theta: Array
    norm: float

    def __call__(self, block: tuple[Any, ...]) -> Array:
        """Return features, the intercept if there is one, and two numbers."""
        rows, targets = block
        rows = clipped_rows(rows, self.x_bound)
        lengths = row_lengths(rows, self.intercept)
        slopes = self.theta[:-1] if self.intercept else self.theta
        residual = row_products(rows, slopes) - np.clip(targets, -self.y_bound, self.y_bound)
        if self.intercept:
            residual += self.theta[-1]
        size = np.abs(residual) * lengths
        kept = residual / np.maximum(size, self.norm)  # of length |x kept| <= 1
        total = weighted_row_sum(rows, kept)
        if self.intercept:
            total = np.append(total, kept.sum())
        long = np.minimum(lengths**2 / self.row_square, 1.0)
        counts = SHARE_WEIGHT * np.array([np.count_nonzero(size <= self.norm), long.sum()])
        return np.concatenate([total, counts])


class MeanVector:
    """The query of every round."""

    def __init__(self, records: int, executor: Executor | None, **bounds: Any) -> None:
        self._records, self._executor = records, executor
        self._work = partial(BlockVector, **bounds)
        self.theta, self.norm = np.empty(0), 1.0

    def __call__(self, data: Any) -> Array:
        """Return one vector."""
        if not first_array(data).shape[0]:
            return np.zeros(self.theta.size + 2)
        blocks = (take_rows(data, who) for who in row_blocks(data))
        work = self._work(theta=self.theta, norm=self.norm)
        return ordered_sum(work, blocks, self._executor) / self._records


def descend_adaptively(
    ledger: Any,
    query: MeanVector,
    size: int,
    row_square: float,
    largest_norm: float,
    penalty: Array,
    momentum: float,
) -> Array:
    """Return the mean of the last half of the iterates; a plan's ``Repeat`` says the rounds."""
    part, rounds = ledger.plan.part, ledger.plan.count
    noise = getattr(part, "scale", 0.0) / SHARE_WEIGHT
    theta, speed, seen = np.zeros(size), np.zeros(size), 0.0
    norm, kept = largest_norm / 4, []
    for t in range(1, rounds + 1):
        query.theta, query.norm = theta, norm
        released = ledger.release(part, query)
        share, square = released[-2:] / SHARE_WEIGHT
        seen += square
        # the mean of so many noisy squares, and two deviations; the curvature is below it
        curvature = row_square * min(1.0, max(seen / t + 2 * noise / math.sqrt(t), 1e-3))
        gradient = norm * released[:-2] + penalty * theta
        speed = momentum * speed + gradient / (curvature + penalty.max(initial=0.0))
        theta = theta - speed
        # the norm grows while too few records are kept whole
        norm *= math.exp(LEARNING_RATE * (KEPT_SHARE - min(1.0, max(0.0, share))))
        norm = min(max(norm, 1e-4 * largest_norm), largest_norm)
        if 2 * t > rounds:
            kept.append(theta)
    mean: Array = np.mean(kept, axis=0)
    return mean
