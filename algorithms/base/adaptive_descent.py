"""Projected gradient descent that learns its clipping norm and its step from noisy rounds.

`PrivateLasso` and `PrivateLogisticLasso` use it for their method "descent".  In round t, at the
coefficients theta and the clipping norm C, let g_i be the gradient of record i, of length |g_i|,
and x_i its row.  The round releases one noisy vector, the mean over n records of

    (g_i / max(|g_i|, C),   k [|g_i| <= C],   k min(|x_i|^2 / r^2, 1)),    k = SHARE_WEIGHT,

where r^2 bounds the squared length of rows: the clipped gradient in units of C, the share of
records that are not clipped, and their mean squared length.  A record moves it by an amount that
does not depend on C, so the noise is the same whatever C is, and C and the step follow from
released values at no further cost in privacy.  A weight multiplies the gradient alone, by its
share of the bound of weights: steps are then shorter where weights, and so the signal, are small.

Proof of the sensitivity: docs/proofs/linear_regression.md, point 1b.
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
from accountant.ledger.ordered_map import map_in_order
from accountant.ledger.private_data import first_array, take_rows
from accountant.numerics import Array
from accountant.numerics.rounding import round_up
from accountant.plans.adjacency import RECORD_RELATIONS, Adjacency, check_relation
from accountant.plans.plan import Repeat
from algorithms.base.clipped_gradient_descent import FeatureMap, clipped_lengths
from algorithms.base.noisy_gradient_rounds import calibrated_gaussian, mu_of_budget
from algorithms.base.row_blocks import (
    block_shares,
    clipped_rows,
    ordered_sum,
    row_blocks,
    row_lengths,
    row_products,
    same_memory,
    weighted_row_sum,
)

# These constants were chosen once, on training parts of data sets: docs/proofs/linear_regression.md
# says how.  Any values give a private plan; `vector_sensitivity` counts with the weight.  "Signal"
# is the number that `signal_length` returns.
SHARE_WEIGHT = 0.3  # weight k of the two shares next to a gradient of length at most 1
# The share of records that are not clipped is to be 1 - CLIPPED at the signal CLIPPED_SIGNAL, more
# at larger signals, and never less than LEAST_UNCLIPPED; see `schedule`.
LEAST_UNCLIPPED, CLIPPED, CLIPPED_SIGNAL = 0.6, 0.3, 50.0
# The least clipping norm at the signal 50, and the largest value it may have, both as multiples of
# the root mean square of rows' lengths; see `least_norm`.  They are those of
# `PrivateLogisticRegression`.
LEAST_NORM, MOST_NORM = 0.4, 2.0
LEARNING_RATE = 0.2  # change of ln C in a round, for each unit that the share is off its target
MOST_ROUNDS = 200
TRAVEL = 12.0  # rounds / (1 - momentum), which is the total of all steps, over the signal
MOST_MOMENTUM = 0.97


class Schedule(NamedTuple):
    """The public numbers that rounds depend on."""

    rounds: int
    momentum: float
    unclipped_share: float  # of the records: what the clipping norm is steered to


def signal_length(records: int, mu: float, size: int) -> float:
    """Return the signal ``n mu / (2 sqrt p)`` of n records and p = ``size`` coefficients.

    It is the greatest length 1 of a clipped gradient over the root mean squared length of the
    noise, if a single round had the whole budget: a replaced record moves the mean gradient by
    2 / n at most, so each of p coordinates has noise of deviation about 2 / (n mu), shares left
    aside.  ``mu`` is that of the Gaussian release which all rounds are together.
    """
    return records * mu / (2 * math.sqrt(size))


def schedule(signal: float, rounds: int | None = None, smoothness: float = 1.0) -> Schedule:
    """Return the number of rounds, the momentum, and the share of records not to be clipped.

    ``rounds`` is taken as given if it is not None; ``smoothness`` is an upper bound on the loss's
    second derivative in the prediction.
    """
    if rounds is None:
        # The noise of each of T rounds has the length sqrt(T) / signal.  That is to be at most half
        # of a clipped gradient's length 1, so T <= (signal / 2)^2, but 5 rounds are made anyway.
        rounds_of_signal = (signal / 2) ** 2
        rounds = (
            MOST_ROUNDS if rounds_of_signal > MOST_ROUNDS else max(5, math.floor(rounds_of_signal))
        )
    # With momentum b a gradient acts 1 / (1 - b) times, so all steps add up to T / (1 - b).  This
    # is to be TRAVEL times the signal, over the smoothness if that is below 1: in directions of
    # small curvature, all steps and all noise add up.
    momentum = min(max(0.0, 1 - rounds * min(smoothness, 1.0) / (TRAVEL * signal)), MOST_MOMENTUM)
    # Clipped gradients are biased if residuals are skewed, so fewer are clipped at larger signals.
    unclipped_share = max(LEAST_UNCLIPPED, 1 - CLIPPED * (CLIPPED_SIGNAL / signal) ** 0.25)
    return Schedule(rounds, momentum, unclipped_share)


def least_norm(signal: float) -> float:
    """Return the least clipping norm for a loss whose slopes are at most 1 in absolute value.

    It is in units of the root mean square of rows' lengths.  If one class is rare, its gradients
    are longer than most: a norm that follows the others would clip them and shift the constant.
    """
    return min(LEAST_NORM * math.cbrt(2 * signal / 100), MOST_NORM)


def descent_plan(shape: tuple[int, int], budget: tuple[float, float], relation: str) -> Repeat:
    """Return the plan for ``shape = (records, coefficients)`` and a budget (epsilon, delta).

    It repeats a Gaussian release of `BlockVector`'s vector, which has two more coordinates than
    there are coefficients.
    """
    records, size = shape
    round_count = schedule(signal_length(records, mu_of_budget(*budget), size)).rounds
    sensitivity = vector_sensitivity(records, relation)
    return Repeat(calibrated_gaussian(*budget, round_count, sensitivity, size + 2), round_count)


def vector_sensitivity(records: int, relation: str) -> float:
    """Return how far one record moves the vector of a round in the l2 norm, rounded up.

    That is ``sqrt(4 + 2 k^2) / n`` if a record is replaced, and ``sqrt(1 + 2 k^2) / n`` if it is
    added or removed: the sum of clipped gradients moves by 2 or 1 at most, each of the two
    weighted shares times n by k.
    """
    replaced = check_relation("relation", relation, RECORD_RELATIONS) is Adjacency.REPLACE_ONE
    moved_length = math.sqrt((4.0 if replaced else 1.0) + 2 * SHARE_WEIGHT**2)
    return round_up(moved_length / records)


@final
@dataclass(frozen=True, slots=True)
class BlockVector:
    """The sum of the vectors of a block of records, at a public theta and a public clipping norm.

    Features are clipped to ``x_bound`` and targets to ``y_bound``.  ``intercept`` is the value of a
    constant feature, 0 if there is none; ``row_square`` bounds the squared length of a row with it.
    ``slope`` gives the derivative of the loss in the prediction, from predictions and targets; the
    default, prediction minus target, is that of half the squared error.  ``weight_bound`` bounds
    weights, if a block has them.
    """

    x_bound: float
    y_bound: float
    intercept: float
    row_square: float
    theta: Array
    norm: float
    slope: Callable[[Array, Array], Array] = np.subtract
    weight_bound: float = 1.0

    def __call__(self, block: tuple[Any, ...]) -> Array:
        """Return the summed clipped gradient, its last coordinate the intercept's, and two shares.

        A block is (rows, targets) or (rows, targets, weights).
        """
        return self.with_lengths((block, None))

    def with_lengths(self, block: tuple[tuple[Any, ...], Array | None]) -> Array:
        """Return what a call does; the lengths may be given of clipped rows with their constant."""
        (rows, targets, *_), lengths = block
        rows = clipped_rows(rows, self.x_bound) if self.x_bound < math.inf else rows
        lengths = row_lengths(rows, self.intercept) if lengths is None else lengths
        weights = self.theta[:-1] if self.intercept else self.theta
        predictions = row_products(rows, weights)
        if self.intercept:
            predictions += self.intercept * self.theta[-1]
        loss_slopes = self.slope(predictions, np.clip(targets, -self.y_bound, self.y_bound))
        gradient_lengths = np.abs(loss_slopes) * lengths
        # The product of a clipped slope and its row has a length of at most 1.
        clipped_slopes = loss_slopes / np.maximum(gradient_lengths, self.norm)
        clipped_slopes = clipped_slopes * block_shares(block[0], self.weight_bound)
        gradient_sum = weighted_row_sum(rows, clipped_slopes)
        if self.intercept:
            gradient_sum = np.append(gradient_sum, self.intercept * clipped_slopes.sum())
        square_shares = np.minimum(lengths**2 / self.row_square, 1.0)
        counts = SHARE_WEIGHT * np.array(
            [np.count_nonzero(gradient_lengths <= self.norm), square_shares.sum()]
        )
        return np.concatenate([gradient_sum, counts])


class MeanVector:
    """The query of every round: the mean of the records' vectors, at ``theta`` and ``norm``.

    `descend_adaptively` sets these two attributes before each round; ``bounds`` are the other
    fields of `BlockVector`.
    """

    def __init__(self, records: int, executor: Executor | None, **bounds: Any) -> None:
        self._records, self._executor = records, executor
        self._work = partial(BlockVector, **bounds)
        self._x_bound, self._intercept = bounds["x_bound"], bounds["intercept"]
        self._prepared: tuple[Any, tuple[Any, list[Array], float]] | None = None
        self.theta, self.norm = np.empty(0), 1.0

    def __call__(self, data: Any) -> Array:
        """Return one vector; lengths of an array's rows are computed in the first round only."""
        features, x_bound = first_array(data), self._x_bound
        blocks = row_blocks(data)
        lengths: list[Any] = [None] * len(blocks)
        if not isinstance(features, Chunks):  # Chunks may hold other rows when they are read again.
            if self._prepared is None or not same_memory(self._prepared[0], features):
                # Dense rows beyond the bound are clipped in every round: a copy of all of them
                # would take as much memory as the data.
                rows = (
                    features
                    if isinstance(features, np.ndarray)
                    else clipped_rows(features, x_bound)
                )
                clips = rows.max() > x_bound or rows.min() < -x_bound
                work = partial(clipped_lengths, FeatureMap(x_bound, self._intercept))
                parts = (rows[block_rows] for block_rows in blocks)
                lengths = list(map_in_order(work, parts, self._executor))
                self._prepared = features, (rows, lengths, x_bound if clips else math.inf)
            rows, lengths, x_bound = self._prepared[1]
            data = (rows, *data[1:])
        pieces = (
            (take_rows(data, block_rows), block_lengths)
            for block_rows, block_lengths in zip(blocks, lengths, strict=True)
        )
        gradient = self._work(theta=self.theta, norm=self.norm, x_bound=x_bound)
        return ordered_sum(gradient.with_lengths, pieces, self._executor) / self._records


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
    """Return the weighted mean of the iterates, in which iterate t has the weight t.

    From the released vector (v, share, square) of round t, with g = C v + penalty theta,

        velocity = momentum velocity + g / (L + max penalty),    theta = P(theta - velocity),
        ln C = ln C + LEARNING_RATE (target share - share),

    where P is ``project``, the projection to a convex set, after which the velocity is the step
    that was taken.  L is an estimate from above of the loss's curvature: ``smoothness``, a bound on
    the second derivative in the prediction, times the mean squared length of rows.

    The ledger's plan is a ``Repeat`` of one release as often as there are rounds.  ``size`` is the
    number of coefficients, ``row_square`` bounds the squared length of a row, ``norms`` are the
    first clipping norm and the largest, and ``penalty`` is the ridge penalty of each coefficient.
    If ``bounded_slopes``, the loss's slopes are at most 1, and C does not fall below `least_norm`
    times the root mean square of rows' lengths; otherwise not below 1e-4 of the largest norm.
    """
    mechanism, rounds = ledger.plan.part, ledger.plan.count
    share_noise = mechanism.scale / SHARE_WEIGHT
    # T rounds of mu are together one Gaussian release of mu sqrt(T).
    signal = signal_length(ledger.shape[0], mechanism.loss.mu * math.sqrt(rounds), size)
    _, momentum, unclipped_share = schedule(signal, rounds, smoothness)
    theta, velocity, square_sum = np.zeros(size), np.zeros(size), 0.0
    (norm, largest_norm), mean_theta = norms, theta
    for t in range(1, rounds + 1):
        query.theta, query.norm = theta, norm
        released = ledger.release(mechanism, query, shape=size + 2)
        unclipped, mean_square = released[-2:] / SHARE_WEIGHT
        square_sum += mean_square
        # The curvature is estimated from above: the mean of t noisy squares, plus two deviations
        # of its noise.  The mean is taken to be at least 1e-3 of its bound, for noise may make it 0
        # or less.
        curvature = (
            smoothness
            * row_square
            * min(1.0, max(square_sum / t + 2 * share_noise / math.sqrt(t), 1e-3))
        )
        gradient = norm * released[:-2] + penalty * theta
        velocity = momentum * velocity + gradient / (curvature + penalty.max(initial=0.0))
        previous_theta, theta = theta, theta - velocity
        if project is not None:
            theta = project(theta)
            velocity = previous_theta - theta
        # The norm grows while the share that is not clipped is below its target.
        norm *= math.exp(LEARNING_RATE * (unclipped_share - min(1.0, max(0.0, unclipped))))
        row_length = math.sqrt(row_square * min(1.0, max(square_sum / t, 1e-3)))
        norm_floor = least_norm(signal) * row_length if bounded_slopes else 1e-4 * largest_norm
        norm = min(max(norm, norm_floor), largest_norm)
        mean_theta = mean_theta + 2 / (t + 1) * (theta - mean_theta)
    return mean_theta
