"""Rounds of a regression: clipped gradients of mapped rows, and a level that learns.

Mapped rows are the features after the linear map that `feature_moments` makes of noisy moments; for
them the squared error has about the same curvature in every direction.  Every round releases the
mean gradient in units of the clipping norm, and the share of the records that were not clipped.  So
the noise of the plan is the same whatever the norm is, and the norm follows the residuals at no
further cost.

`RoundLoss` is what rounds see of a loss.  One number, the level, is steered by the released share:
the clipping norm in units of the loss, or the threshold of Huber's loss, whose share is that of
residuals within it.

`REGRESSION_LOSSES` has a line for each name that `PrivateGeneralizedLinearModel` knows.

*Poisson.* The mean of ``e^u`` over records, for normal scores u, is ``e^(m + v / 2)`` with their
mean m and variance v, which the coefficients say.  That is the mean curvature, and its root is
about the deviation of residuals: both are known without a release of their own.

*Huber and quantiles.* The level is a width that a public share of residuals is steered to lie
within.  So the threshold of the loss needs no public scale.  With the share s within the width w
the density of residuals near 0 is about s / 2w, and the mean curvature of slopes about s / w.

References: Abadi et al. (2016) for clipping; Andrew, Thakkar, McMahan & Ramaswamy (2021) for a
norm that follows a quantile; Polyak & Juditsky (1992) for the mean of iterates; Holland & Welsch
(1977) for a threshold that follows the residuals.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, final

import numpy as np

from accountant.ledger.private_data import take_rows
from accountant.numerics import Array
from algorithms.base.clipped_gradient_descent import (
    MeanOfClippedGradients,
    Residuals,
    Within,
    squared_residuals,
)
from algorithms.base.exact_minimum import ExactMinimum, Rows, Weights
from algorithms.base.glm_losses import LinearLoss, huber_loss, poisson_loss
from algorithms.base.noisy_gradient_rounds import GradientRounds
from algorithms.base.row_blocks import row_blocks, row_products
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
NARROWING = 0.2  # fall of the logarithm of a threshold in a round, while all residuals are within
LEARNING_RATE = 0.4  # change of ln C in a round, for each unit that the share is off its target
WANDER = 0.5  # about how far the noise of all shares may move ln C
# The first level of the squared error, of others; the least, the largest; where steps are halved.
FIRST, START, LEAST, LARGEST, TOO_LARGE = 0.2, 0.5, 1e-4, 1.0, 2.0
# The weight of the latest share in the running mean of shares, and the share of rounds before
# iterates are averaged where the curvature of the loss is not constant.
LATEST, APPROACH = 0.3, 1 / 3


# These constants were chosen on made-up designs of 2,000 and 20,000 records (docs/algorithms.md).
# The deviation of residuals that the first clipping norm allows for, over that of Poisson counts.
DISPERSION = 2.0
LEAST_MEAN = 1e-3  # the least mean that steps are made for, over the largest target
HUBER_SHARE = 0.8  # of residuals within the threshold, about 1.3 deviations of normal ones
# A quantile's threshold is this part of the width within which half of the residuals lie.
QUANTILE_SHARE, QUANTILE_THRESHOLD = 0.5, 0.25
MOST_THRESHOLDS = 50  # thresholds that a fit without privacy tries
ARRIVED = 1e-6  # they end at this change of the threshold, relative to it


class Progress(NamedTuple):
    """What the rounds so far have released, as far as the loss of the next one depends on it."""

    passed: float  # share of the approach that is over, in [0, 1]
    level: float  # steered by the released shares
    share: float  # running mean of the shares, less than which noise hides: an upper estimate
    constant: float  # the score of the mean row
    variance: float  # of the scores, from above


class RoundLoss(NamedTuple):
    """A loss of one score in a round."""

    residuals: Residuals
    norm: float  # to which gradients are clipped, over the length of mapped rows
    curvature: float = 1.0  # estimate of the mean curvature: steps are divided by it
    within: Within | None = None  # which records the share counts; None: those not clipped


class DescentLoss(Protocol):
    """A loss of one score, as a descent sees it."""

    @property
    def steered_share(self) -> float | None:
        """The share to which the level is steered; None takes `target_share`."""
        ...

    @property
    def first_score(self) -> float:
        """The score of all records at the start, if there is a constant."""
        ...

    @property
    def is_quadratic(self) -> bool:
        """Whether the curvature is 1 everywhere."""
        ...

    def at(self, progress: Progress) -> RoundLoss:
        """Return the loss of the next round."""
        ...


@final
@dataclass(frozen=True, slots=True)
class SquaredRounds:
    """Half the squared error; the level is the clipping norm over that of the largest target."""

    y_bound: float
    steered_share: float | None = None
    first_score: float = 0.0
    is_quadratic: bool = True

    def at(self, progress: Progress) -> RoundLoss:
        """Return the loss, with the norm of this level."""
        residuals = partial(squared_residuals, y_bound=self.y_bound)
        return RoundLoss(residuals, progress.level * self.y_bound)


@final
@dataclass(frozen=True, slots=True)
class ScoreLoss:
    """A loss of one score for records whose targets are clipped to [lowest, highest]."""

    loss: LinearLoss
    lowest: float
    highest: float

    @property
    def curvature(self) -> float:
        """At least the second derivative."""
        return self.loss.smoothness

    def __call__(self, scores: Array, targets: Array) -> tuple[Array, Array]:
        """Return a value for each record, and slopes of the shape of scores."""
        targets = np.clip(targets, self.lowest, self.highest)
        return self.loss.value(scores[:, 0], targets), self.residuals(scores, targets)

    def residuals(self, scores: Array, targets: Array) -> Array:
        """Return slopes of the shape of scores."""
        targets = np.clip(targets, self.lowest, self.highest)
        return self.loss.slope(scores[:, 0], targets)[:, None]


class RegressionLoss(DescentLoss, Protocol):
    """A loss for a descent and for a fit without privacy."""

    def exact_minimum(
        self, rows: Rows, fit_intercept: bool, weights: Weights, executor: Executor | None
    ) -> Callable[[Any], Array]:
        """Return the query of a fit without privacy."""
        ...


@final
@dataclass(frozen=True, slots=True)
class Poisson:
    """Minus the log-likelihood of counts up to ``y_bound``, whose mean is ``e^u``."""

    y_bound: float
    steered_share: float | None = None
    is_quadratic: bool = False

    @property
    def first_score(self) -> float:
        """The score of the largest mean, from which Newton steps go down without overshooting."""
        return math.log(self.y_bound)

    @property
    def score_loss(self) -> ScoreLoss:
        """The loss, over the largest target."""
        return ScoreLoss(poisson_loss(self.y_bound), 0.0, self.y_bound)

    def at(self, progress: Progress) -> RoundLoss:
        """Return the loss; the level is of the norm, in units of the deviation of counts."""
        log_mean = progress.constant + progress.variance / 2 - math.log(self.y_bound)
        curvature = max(math.exp(min(log_mean, 0.0)), LEAST_MEAN)
        deviation = min(DISPERSION * math.sqrt(curvature / self.y_bound), 1.0)
        return RoundLoss(self.score_loss.residuals, 2 * progress.level * deviation, curvature)

    def exact_minimum(
        self, rows: Rows, fit_intercept: bool, weights: Weights, executor: Executor | None
    ) -> Callable[[Any], Array]:
        """Return the query of the minimiser."""
        return ExactMinimum(
            self.score_loss, rows, fit_intercept, weights=weights, executor=executor
        )


@final
@dataclass(frozen=True, slots=True)
class TiltedHuber:
    """Huber's loss of a quantile, whose threshold follows the residuals.

    Half of the residuals, or another ``steered_share``, lie within a width; the threshold is
    ``narrower`` times that.
    """

    y_bound: float
    steered_share: float
    narrower: float = 1.0
    quantile: float = 0.5
    first_score: float = 0.0
    is_quadratic: bool = False

    def score_loss(self, width: float, quantile: float) -> ScoreLoss:
        """Return the loss of a quantile, at a width."""
        loss = huber_loss(self.narrower * width, quantile)
        return ScoreLoss(loss, -self.y_bound, self.y_bound)

    def at(self, progress: Progress) -> RoundLoss:
        """Return the loss at the width of this level; its quantile moves away from the median."""
        width = progress.level * self.y_bound
        quantile = 0.5 + (self.quantile - 0.5) * progress.passed
        # More residuals than the steered share are within while the width is too large.
        curvature = min(max(progress.share, self.steered_share), 1.0) / width

        def within(scores: Array, targets: Array) -> Any:
            residuals = scores[:, 0] - np.clip(targets, -self.y_bound, self.y_bound)
            return np.asarray(np.abs(residuals) <= width)

        # The norm is the steepest slope: a shorter one would clip the rarer side of a quantile.
        steepest = 1 + abs(1 - 2 * quantile)
        residuals = self.score_loss(width, quantile).residuals
        return RoundLoss(residuals, steepest, curvature, within)

    def exact_minimum(
        self, rows: Rows, fit_intercept: bool, weights: Weights, executor: Executor | None
    ) -> Callable[[Any], Array]:
        """Return the query of the minimiser whose width holds the steered share of residuals."""

        def minimum(data: Any) -> Array:
            width, theta = self.y_bound, np.zeros(0)
            for _ in range(MOST_THRESHOLDS):
                loss = self.score_loss(width, self.quantile)
                query = ExactMinimum(loss, rows, fit_intercept, weights=weights, executor=executor)
                theta, last_width = query(data), width
                sizes = []
                for block in (take_rows(data, block_rows) for block_rows in row_blocks(data)):
                    scores = row_products(rows(block[0]), theta[:-1, 0]) + theta[-1, 0]
                    targets = np.clip(block[1], -self.y_bound, self.y_bound)
                    sizes.append(np.abs(scores - targets))
                width = float(np.quantile(np.concatenate(sizes), self.steered_share))
                width = max(width, LEAST * self.y_bound)
                if abs(width - last_width) <= ARRIVED * width:
                    break
            return theta

        return minimum


# The losses of `PrivateGeneralizedLinearModel`, from the largest target and the quantile.
REGRESSION_LOSSES: dict[str, Callable[[float, float], RegressionLoss]] = {
    "poisson": lambda y_bound, quantile: Poisson(y_bound),
    "huber": lambda y_bound, quantile: TiltedHuber(y_bound, HUBER_SHARE),
    "quantile": lambda y_bound, quantile: TiltedHuber(
        y_bound, QUANTILE_SHARE, QUANTILE_THRESHOLD, quantile
    ),
}


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
    loss: DescentLoss,
    executor: Executor | None,
    ridge: float = 0.0,
    weight_bound: float = 1.0,
) -> Descent:
    """Return the descent; its coefficients are those of mapped rows.

    They are the last iterate, or the weighted mean of the iterates, in which iterate t has the
    weight t.  If the level of a quadratic loss grows far beyond the largest one, steps were too
    long: they are halved, and the descent starts again from 0.  Of another loss, only the iterates
    after the approach are averaged.  ``ridge`` is the penalty on half the squared length of the
    slopes.
    """
    plan_rounds, features = GradientRounds.of(ledger.plan), mapped.features
    rounds, size = plan_rounds.count, ledger.shape[1] + bool(features.intercept)
    step, first_level = mapped.steps.travel / rounds, FIRST if loss.is_quadratic else START
    share_noise = noise_of(plan_rounds.mechanism) / SHARES.unclipped_weight
    share_goal, level = target_share(ledger.plan, ledger.shape, size), first_level
    # The noise of all shares together moves ln C by no more than WANDER on average.
    rate = min(LEARNING_RATE, WANDER / max(share_noise * math.sqrt(rounds), 1e-300))
    if loss.steered_share is not None:
        share_goal = loss.steered_share
        rate = NARROWING / (1 - share_goal)  # from a share of 1 the level falls by NARROWING
        level = LARGEST
    theta = np.zeros((size, 1))
    if features.intercept:
        theta[-1] = loss.first_score / features.intercept
    query = MeanOfClippedGradients(
        squared_residuals,
        1.0,
        ledger.shape[0],
        features,
        executor,
        weight_bound,
        SHARES.unclipped_weight,
    )
    # Iterates after round ``start`` are averaged: the last new start, or the end of the approach.
    mean, start = theta, 0 if loss.is_quadratic else int(APPROACH * rounds)
    norms, shares, mean_share = np.empty(rounds), np.empty(rounds), 1.0
    mean_share_noise = share_noise * math.sqrt(LATEST / (2 - LATEST))
    for t in range(1, rounds + 1):
        constant, slopes = 0.0, theta
        if features.intercept:
            constant, slopes = features.intercept * float(theta[-1, 0]), theta[:-1]
        variance = float(np.square(slopes).sum()) / mapped.longest_step
        passed = min((t - 1) / (APPROACH * rounds), 1.0)
        round_loss = loss.at(
            Progress(passed, level, mean_share + mean_share_noise, constant, variance)
        )
        norm = mapped.length * round_loss.norm
        query.residuals, query.within = round_loss.residuals, round_loss.within
        query.theta, query.clip = theta, norm
        # The released vector is the mean gradient over the norm, then the weighted share.
        released = ledger.release(plan_rounds.part, query, shape=theta.size + 1)
        gradient = norm * released[:-1, None] + ridge * penalty_slope(mapped, theta)
        theta = theta - step * mapped.longest_step / round_loss.curvature * gradient
        norms[t - 1], shares[t - 1] = norm, released[-1] / SHARES.unclipped_weight
        # The level grows while the share is below its goal.
        share = min(1.0, max(0.0, shares[t - 1]))
        mean_share += LATEST * (share - mean_share)
        change = rate * (share_goal - share)
        if loss.steered_share is None:  # the noise of shares beyond 0 and 1 averages out
            change = rate * (share_goal - float(shares[t - 1]))
            change = min(max(change, -LEARNING_RATE), LEARNING_RATE)
        level = max(level * math.exp(change), LEAST)
        if not loss.is_quadratic:
            level = min(level, LARGEST)
        elif level > TOO_LARGE:  # at theta = 0 few gradients are so large
            step, level, start, theta = step / 2, FIRST, t, np.zeros_like(theta)
        # Iterate k after a start weighs k in the mean: 2 / (k + 1) of the mean of the first k.
        averaged = (mapped.steps.averaged or not loss.is_quadratic) and t > start
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
