"""Rounds of linear regression: clipped gradients of mapped rows, and a norm that learns.

Mapped rows are the features after the linear map that `feature_moments` makes of noisy moments; for
them the squared error has about the same curvature in every direction.  Every round releases the
mean gradient in units of the clipping norm, and the share of the records that were not clipped.  So
the noise of the plan is the same whatever the norm is, and the norm follows the residuals at no
further cost.

References: Abadi et al. (2016) for clipping; Andrew, Thakkar, McMahan & Ramaswamy (2021) for a
norm that follows a quantile; Polyak & Juditsky (1992) for the mean of iterates.
"""

from __future__ import annotations

import math
from concurrent.futures import Executor
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from accountant.numerics import Array
from algorithms.base.clipped_gradient_descent import MeanOfClippedGradients, squared_residuals
from algorithms.base.noisy_gradient_rounds import GradientRounds
from algorithms.linear_models.feature_moments import MappedFeatures
from algorithms.linear_models.mapped_plan import Shares

# These constants were chosen once, on training parts of data sets: docs/proofs/linear_regression.md
# says how.  No privacy rests on them.  "Signal" is about the length of a clipped gradient over the
# noise of all rounds together.
SHARES = Shares(moments=0.05, products=0.15, unclipped_weight=0.3)
DAMPING = 0.5  # the ridge of the map, as a multiple of the norm of the noise on products
ROUNDS, MOST_ROUNDS = 60, 200  # least and largest number of rounds, if none is asked for
# The travel is the sum of all steps in units of the longest stable step: TRAVEL times the signal,
# but at most SHORT_TRAVEL, or LONG_TRAVEL times the signal if that is more; see `schedule`.
TRAVEL, SHORT_TRAVEL = 0.4, 24.0
LONG_TRAVEL = 0.01
LONGEST = 0.95  # largest step, in units of the longest step that is surely stable
# The share of records that are not clipped is to be 1 - CLIPPED at the signal CLIPPED_SIGNAL, more
# at larger signals by this power, and never less than LEAST_UNCLIPPED.
LEAST_UNCLIPPED, CLIPPED, CLIPPED_SIGNAL, CLIPPED_POWER = 0.6, 0.35, 80.0, 0.7
LEARNING_RATE = 0.4  # change of ln C in a round, for each unit that the share is off its target
# The first, least and largest clipping norm, over the length of a row times the largest target.
START, LEAST, LARGEST = 0.5, 1e-4, 1.0


class Descent(NamedTuple):
    """Where a descent ended, in mapped coordinates, and what it saw."""

    theta: Array
    norms: Array  # of the rounds
    shares: Array  # noisy shares of the records that were not clipped


class Schedule(NamedTuple):
    """The public numbers that rounds depend on."""

    rounds: int
    step: float  # share of the longest stable step
    unclipped_share: float  # of the records: what the clipping norm is steered to


def schedule(signal: float, rounds: int | None = None) -> Schedule:
    """Return the number of rounds, the length of steps, and the share of records not clipped.

    ``rounds`` is taken as given if it is not None.
    """
    # In a direction of small curvature the descent moves by about the sum of the steps, and so does
    # the noise that adds up.  So more signal, which is less noise, allows a longer travel.
    travel = max(min(TRAVEL * signal, SHORT_TRAVEL), min(LONG_TRAVEL * signal, MOST_ROUNDS))
    if rounds is None:
        rounds = int(min(max(ROUNDS, travel / LONGEST), MOST_ROUNDS))
    # Clipped gradients are biased if residuals are skewed, so fewer are clipped at larger signals.
    unclipped_share = max(LEAST_UNCLIPPED, 1 - CLIPPED * (CLIPPED_SIGNAL / signal) ** CLIPPED_POWER)
    return Schedule(rounds, min(travel / rounds, LONGEST), unclipped_share)


def descend_mapped(
    ledger: Any,
    mapped: MappedFeatures,
    y_bound: float,
    signal: float,
    executor: Executor | None,
    ridge: float,
) -> Descent:
    """Return the descent; its coefficients are those of mapped rows.

    They are the weighted mean of the iterates, in which iterate t has the weight t.  If the norm
    grows beyond its largest value, steps were too long: they are halved, and the descent starts
    again from 0.  ``signal`` chooses steps and the share of records that are clipped; ``ridge``
    is the penalty on half the squared length of the slopes.
    """
    plan_rounds = GradientRounds.of(ledger.plan)
    rounds = plan_rounds.count
    _, step, unclipped_share = schedule(signal, rounds)
    unit, features = mapped.length * y_bound, mapped.features
    norm = START * unit
    query = MeanOfClippedGradients(
        partial(squared_residuals, y_bound=y_bound),
        norm,
        ledger.shape[0],
        features,
        executor,
        unclipped_weight=SHARES.unclipped_weight,
    )
    theta = np.zeros((ledger.shape[1] + bool(features.intercept), 1))
    mean, start = theta, 0  # of the iterates after round ``start``, which is the last new start
    norms, shares = np.empty(rounds), np.empty(rounds)
    for t in range(1, rounds + 1):
        query.theta, query.clip = theta, norm
        # The released vector is the mean gradient over the norm, then the weighted share.
        released = ledger.release(plan_rounds.part, query, shape=theta.size + 1)
        gradient = norm * released[:-1, None] + ridge * penalty_slope(mapped, theta)
        theta = theta - step * mapped.longest_step * gradient
        norms[t - 1], shares[t - 1] = norm, released[-1] / SHARES.unclipped_weight
        # The norm grows while the share that is not clipped is below its target.
        share = min(1.0, max(0.0, shares[t - 1]))
        norm = max(norm * math.exp(LEARNING_RATE * (unclipped_share - share)), LEAST * unit)
        if norm > LARGEST * unit:  # at theta = 0 few gradients are so large
            step, norm, start, theta = step / 2, START * unit, t, np.zeros_like(theta)
        # Iterate k after a start weighs k in the mean: 2 / (k + 1) of the mean of the first k.
        mean = mean + 2 / (t - start + 1) * (theta - mean) if t > start else theta
    return Descent(mean, norms, shares)


def penalty_slope(mapped: MappedFeatures, theta: Array) -> Array:
    """Return the gradient, in theta, of half the squared length of the slopes of clipped rows.

    With the map's root R these slopes are R theta, so the gradient is R' R theta.  The constant is
    not penalised.
    """
    slopes, constant = mapped.features.coefficients(theta)
    if mapped.features.root is not None:
        slopes = np.einsum("ji,jk->ik", mapped.features.root, slopes)
    return np.vstack([slopes, 0 * constant]) if mapped.features.intercept else slopes
