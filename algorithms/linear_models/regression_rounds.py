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
from algorithms.linear_models.mapped_plan import Shares, Sizes, noise_of, signal_of

# These constants were chosen once, on training parts of data sets: docs/proofs/linear_regression.md
# says how.  No privacy rests on them.  "Signal" is about the length of a clipped gradient over the
# noise of all rounds together.
SHARES = Shares(moments=0.05, products=0.15, unclipped_weight=0.3)
# What is assumed of targets: their deviation is a third of the largest one, and features explain
# half of their variance, 1 / 18 of the largest square.  The first clipping norm is START, below;
# the constant may be the largest target, and deviates by a tenth of it.  In units of what features
# explain:
CLIP_SQUARE, CONSTANT_SQUARE = 0.72, 18.0
# In units of the largest square:
USUAL_SLOPES, USUAL_CONSTANT = 1 / 18, 1 / 100
# The share of records that are not clipped is to be 1 - CLIPPED at the signal CLIPPED_SIGNAL, more
# at larger signals by this power, and never less than LEAST_UNCLIPPED.
LEAST_UNCLIPPED, CLIPPED, CLIPPED_SIGNAL, CLIPPED_POWER = 0.6, 0.35, 80.0, 0.7
LEARNING_RATE = 0.4  # change of ln C in a round, for each unit that the share is off its target
WANDER = 0.5  # about how far the noise of all shares may move ln C
# The first, least and largest clipping norm, over the length of a row times the largest target.
START, LEAST, LARGEST = 0.2, 1e-4, 2.0


class Descent(NamedTuple):
    """Where a descent ended, in mapped coordinates, and what it saw."""

    theta: Array
    norms: Array  # of the rounds
    shares: Array  # noisy shares of the records that were not clipped


def target_share(plan: Any, shape: tuple[int, int], size: int) -> float:
    """Return the share of records that are not to be clipped, for so many coefficients.

    Clipped gradients are biased if residuals are skewed, so fewer are clipped at larger signals.
    """
    # The constants were chosen for the rounds' usual share of the budget, so the signal is that of
    # a whole budget of which the rounds have the usual share.
    rounds = GradientRounds.of(plan)
    noise = noise_of(rounds.mechanism)
    mu = rounds.mechanism.sensitivity * math.sqrt(rounds.count / SHARES.rounds) / noise
    signal = signal_of(Sizes(*shape, size), mu)
    return max(LEAST_UNCLIPPED, 1 - CLIPPED * math.pow(CLIPPED_SIGNAL / signal, CLIPPED_POWER))


def descend_mapped(
    ledger: Any,
    mapped: MappedFeatures,
    y_bound: float,
    executor: Executor | None,
    ridge: float,
) -> Descent:
    """Return the descent; its coefficients are those of mapped rows.

    They are the last iterate, or the weighted mean of the iterates, in which iterate t has the
    weight t.  If the norm grows beyond its largest value, steps were too long: they are halved, and
    the descent starts again from 0.  ``ridge`` is the penalty on half the squared length of the
    slopes.
    """
    plan_rounds = GradientRounds.of(ledger.plan)
    rounds, size = plan_rounds.count, ledger.shape[1] + bool(mapped.features.intercept)
    unclipped_share = target_share(ledger.plan, ledger.shape, size)
    step = mapped.steps.travel / rounds
    # The noise of all shares together moves ln C by no more than WANDER on average.
    share_noise = noise_of(plan_rounds.mechanism) / SHARES.unclipped_weight
    rate = min(LEARNING_RATE, WANDER / max(share_noise * math.sqrt(rounds), 1e-300))
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
    theta = np.zeros((size, 1))
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
        change = rate * (unclipped_share - shares[t - 1])
        norm = max(norm * math.exp(min(max(change, -LEARNING_RATE), LEARNING_RATE)), LEAST * unit)
        if norm > LARGEST * unit:  # at theta = 0 few gradients are so large
            step, norm, start, theta = step / 2, START * unit, t, np.zeros_like(theta)
        # Iterate k after a start weighs k in the mean: 2 / (k + 1) of the mean of the first k.
        averaged = mapped.steps.averaged and t > start
        mean = mean + 2 / (t - start + 1) * (theta - mean) if averaged else theta
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
