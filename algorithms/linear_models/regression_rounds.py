"""Rounds of a regression: clipped gradients of mapped rows, and a level that learns.

Mapped rows are the features after the linear map that `feature_moments` makes of noisy moments; for
them the squared error has about the same curvature in every direction.  Every round releases the
mean gradient in units of the clipping norm, and the share of the records that were not clipped.  So
the noise of the plan is the same whatever the norm is, and the norm follows the residuals at no
further cost.

`RoundLoss` is what rounds see of a loss.  One number, the level, is steered by the released share:
the clipping norm in units of the loss, or the threshold of Huber's loss, whose share is that of
residuals within it.  `PrivateLogisticRegression` has the shorter rounds of `descend`: its slopes
are at most 1, so that no norm is to be found, and it has several scores and sampled rounds.

`REGRESSION_LOSSES` has a line for each name that `PrivateGeneralizedLinearModel` knows.

*Likelihoods.* The mean curvature for normal scores follows from their mean and variance, which the
coefficients say, and its root is about the deviation of slopes: both are known without a release of
their own.

*Huber and quantiles.* The level is a width that a public share of residuals is steered to lie
within.  So the threshold of the loss needs no public scale.  With the share s within the width w
the density of residuals near 0 is about s / 2w, and the mean curvature of slopes about s / w.  A
quantile keeps the width of the median's residuals.  Were it still steered, fits that are too high
would widen it, which makes steps longer, while the slope that pulls them down is small.

References: Abadi et al. (2016) for clipping; Andrew, Thakkar, McMahan & Ramaswamy (2021) for a
norm that follows a quantile; Polyak & Juditsky (1992) for the mean of iterates; Holland & Welsch
(1977) for a threshold that follows the residuals.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Protocol, final

import numpy as np
from sklearn.metrics import d2_pinball_score, d2_tweedie_score, r2_score

from accountant.ledger.private_data import take_rows
from accountant.numerics import Array
from algorithms.base.clipped_gradient_descent import MeanOfClippedGradients, Within
from algorithms.base.glm_losses import (
    HALF_SQUARED,
    LinearLoss,
    ScoreLoss,
    huber_loss,
    poisson_loss,
)
from algorithms.base.noisy_gradient_rounds import GradientRounds
from algorithms.base.row_blocks import row_blocks, row_products
from algorithms.linear_models.feature_moments import MappedFeatures
from algorithms.linear_models.mapped_plan import Sizes, mean_noise, noise_of, signal_of
from algorithms.linear_models.regression_plan import SHARES
from algorithms.linear_models.target_shares import TargetRange

# These constants were chosen once, on training parts of data sets: docs/proofs/linear_regression.md
# says how.  No privacy rests on them.  "Signal" is about the length of a clipped gradient over the
# noise of all rounds together.
# What slopes usually explain, and the square of the constant, over the square of targets' reach.
USUAL_SLOPES, USUAL_CONSTANT = 1 / 18, 1 / 100
USUAL_SCORES = 1 / 4  # what features explain of the logarithms of means
# The share of records that are not clipped is to be 1 - CLIPPED at the signal CLIPPED_SIGNAL, more
# at larger signals by this power, and never less than LEAST_UNCLIPPED.
LEAST_UNCLIPPED, CLIPPED, CLIPPED_SIGNAL, CLIPPED_POWER = 0.6, 0.35, 80.0, 0.7
NARROWING = 0.2  # fall of the logarithm of a threshold in a round, while all residuals are within
LEARNING_RATE = 0.4  # change of ln C in a round, for each unit that the share is off its target
WANDER = 0.5  # about how far the noise of all shares may move ln C
# The first level of the squared error, of others; the least, the largest; where steps are halved.
FIRST, START, LEAST, LARGEST, TOO_LARGE = 0.2, 0.5, 1e-4, 1.0, 2.0
# The clipping norm is at least the one whose noise adds this to predictions, over the square of the
# reach: a norm that follows skewed residuals would clip the longer tail.
TOLERATED = 2e-4
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
    deviation: float  # of the scores, from above


class RoundLoss(NamedTuple):
    """A loss of one score in a round."""

    loss: ScoreLoss
    norm: float  # to which gradients are clipped, over the length of mapped rows
    curvature: float = 1.0  # estimate of the mean curvature: steps are divided by it
    within: Within | None = None  # which records the share counts; None: those not clipped
    unit: float = 1.0  # the loss over what a ridge is added to
    steers: bool = True  # whether the level follows the share


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

    @property
    def largest_level(self) -> float:
        """The largest level; if that of a quadratic loss grows beyond, steps were too long."""
        ...

    def at(self, progress: Progress) -> RoundLoss:
        """Return the loss of the next round."""
        ...


class RegressionLoss(DescentLoss, Protocol):
    """A loss of `PrivateGeneralizedLinearModel`, which predicts and is measured by it."""

    @property
    def metric(self) -> Callable[..., float]:
        """The explained share of the loss, from targets and predictions."""
        ...

    @property
    def is_equivariant(self) -> bool:
        """Whether predictions of targets in another unit are those in that unit."""
        ...

    def mean(self, scores: Array) -> Array:
        """Return what is predicted at scores."""
        ...

    def of_targets(self, targets: TargetRange) -> RegressionLoss:
        """Return the loss for targets that lie there."""
        ...


@final
@dataclass(frozen=True, slots=True)
class SquaredRounds:
    """Half the squared error; the level is the clipping norm over that of a target at the reach."""

    y_bound: float
    targets: TargetRange
    steered_share: float | None = None
    is_quadratic: bool = True

    @property
    def first_score(self) -> float:
        """The centre of the targets."""
        return self.targets.centre

    @property
    def largest_level(self) -> float:
        """Far beyond the norm of the largest target."""
        return TOO_LARGE * self.y_bound / self.targets.reach

    def at(self, progress: Progress) -> RoundLoss:
        """Return the loss, with the norm of this level."""
        loss = ScoreLoss.within(HALF_SQUARED, -self.y_bound, self.y_bound)
        return RoundLoss(loss, progress.level * self.targets.reach)


@final
@dataclass(frozen=True, slots=True)
class Likelihood:
    """A multiple of minus the log-likelihood, of targets clipped to ``lowest`` and ``highest``.

    ``first_score`` is one from which Newton steps do not overshoot.
    """

    loss: LinearLoss
    lowest: float
    highest: float
    metric: Callable[..., float]
    first_score: float = 0.0
    steered_share: float | None = None
    is_quadratic: bool = False
    is_equivariant: bool = False
    largest_level: float = LARGEST

    def mean(self, scores: Array) -> Array:
        """Return the means of targets."""
        return self.loss.mean(scores)

    def of_targets(self, targets: TargetRange) -> Likelihood:
        """Return this loss: scores are in no unit of targets."""
        del targets
        return self

    def at(self, progress: Progress) -> RoundLoss:
        """Return the loss; the level is of the norm, in units of the deviation of slopes."""
        loss, unit = ScoreLoss.within(self.loss, self.lowest, self.highest), self.loss.unit
        mean = loss.mean_curvature(progress.constant, progress.deviation)
        curvature = loss.smoothness * max(mean, LEAST_MEAN)
        # The slopes of a log-likelihood have the variance of its curvature.
        steepest = self.loss.steepest(math.inf, self.highest)
        deviation = min(DISPERSION * math.sqrt(curvature * unit), steepest)
        return RoundLoss(loss, 2 * progress.level * deviation, curvature, unit=unit)


@final
@dataclass(frozen=True, slots=True)
class TiltedHuber:
    """Huber's loss of a quantile, whose threshold follows the residuals.

    Half of the residuals, or another ``steered_share``, lie within a width; the threshold is
    ``narrower`` times that.  A ridge is added to half the squared error within the threshold, or to
    the loss over another ``unit``.
    """

    y_bound: float
    steered_share: float
    metric: Callable[..., float]
    narrower: float = 1.0
    quantile: float = 0.5
    unit: float | None = None
    targets: TargetRange | None = None  # None: as far as they may be
    is_quadratic: bool = False
    is_equivariant: bool = True
    largest_level: float = LARGEST

    @property
    def first_score(self) -> float:
        """The centre of the targets."""
        return self.targets.centre if self.targets else 0.0

    @property
    def reach(self) -> float:
        """How far targets are taken to be from their centre: the largest width."""
        return self.targets.reach if self.targets else self.y_bound

    def mean(self, scores: Array) -> Array:
        """Return centres or quantiles."""
        return scores

    def of_targets(self, targets: TargetRange) -> TiltedHuber:
        """Return the loss that starts at the centre, with the reach as the largest width."""
        return replace(self, targets=targets)

    def at(self, progress: Progress) -> RoundLoss:
        """Return the loss at the width of this level; its quantile moves away from the median."""
        width = progress.level * self.reach
        quantile = 0.5 + (self.quantile - 0.5) * min(max(2 * progress.passed - 1, 0.0), 1.0)
        huber = huber_loss(self.narrower * width, quantile)
        loss = ScoreLoss.within(huber, -self.y_bound, self.y_bound)
        # More residuals than the steered share are within while the width is too large.
        curvature = min(max(progress.share, self.steered_share), 1.0) / width

        def within(scores: Array, targets: Array) -> Any:
            return np.asarray(np.abs(scores[:, 0] - loss.targets(targets)) <= width)

        # The norm is the steepest slope: a shorter one would clip the rarer side of a quantile.
        steepest = huber.steepest(math.inf, self.y_bound)
        unit = self.unit or huber.unit
        return RoundLoss(loss, steepest, curvature, within, unit, quantile == 0.5)


# The losses of `PrivateGeneralizedLinearModel`, from the largest target and the quantile.
REGRESSION_LOSSES: dict[str, Callable[[float, float], RegressionLoss]] = {
    "poisson": lambda y_bound, quantile: Likelihood(
        poisson_loss(y_bound), 0.0, y_bound, partial(d2_tweedie_score, power=1), math.log(y_bound)
    ),
    "huber": lambda y_bound, quantile: TiltedHuber(y_bound, HUBER_SHARE, r2_score),
    "quantile": lambda y_bound, quantile: TiltedHuber(
        y_bound,
        QUANTILE_SHARE,
        partial(d2_pinball_score, alpha=quantile),
        QUANTILE_THRESHOLD,
        quantile,
        unit=2.0,  # far from targets it is twice the pinball loss
    ),
}


def exact_minimum(
    data: Any, loss: DescentLoss, y_bound: float, ridge: float, query_of: Callable[..., Any]
) -> Array:
    """Return the minimiser; of a level that is steered, where the share of residuals is within."""
    level, theta = LARGEST, np.zeros(0)
    for _ in range(MOST_THRESHOLDS):
        at_level = loss.at(Progress(1.0, level, 1.0, 0.0, 0.0))
        query = query_of(at_level.loss, ridge=ridge * at_level.unit)
        theta = query(data)
        if loss.steered_share is None:
            break
        sizes = []
        for block in (take_rows(data, block_rows) for block_rows in row_blocks(data)):
            scores = row_products(query.rows(block[0]), theta[:-1, 0]) + theta[-1, 0]
            sizes.append(np.abs(scores - at_level.loss.targets(block[1])))
        last_level = level
        level = float(np.quantile(np.concatenate(sizes), loss.steered_share)) / y_bound
        level = max(level, LEAST)
        if abs(level - last_level) <= ARRIVED * level:
            break
    return theta


class Descent(NamedTuple):
    """Where a descent ended, in mapped coordinates, and what it saw."""

    theta: Array
    start: Array  # the coefficients of the first round
    loss: RoundLoss  # of the last round
    norms: Array  # of the rounds
    curvatures: Array  # estimates, by which the steps of the rounds were divided
    shares: Array  # noisy shares of the records that were not clipped

    @property
    def unit(self) -> float:
        """The unit of the noise in steps: the norm over the curvature.

        What the first half of the gradients added is mostly forgotten.
        """
        units = self.norms / self.curvatures
        return math.sqrt(float(np.mean(units[len(units) // 2 :] ** 2)))


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


def tolerated_level(mapped: MappedFeatures, loss: DescentLoss, noise: float) -> float:
    """Return the least level, for ``noise`` of the mean of all gradients over their norm."""
    noise_square = mapped.noise_square(mapped.length * noise)
    if not (loss.is_quadratic and noise_square):
        return LEAST
    return min(max(math.sqrt(TOLERATED / noise_square), LEAST), loss.largest_level / 2)


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
    weight t.  If the level of a quadratic loss grows beyond the largest one, steps were too long:
    they are halved, and the descent starts again.  Of another loss, only the iterates
    after the approach are averaged.  ``ridge`` is the penalty on half the squared length of the
    slopes.
    """
    plan_rounds, features = GradientRounds.of(ledger.plan), mapped.features
    rounds, size = plan_rounds.count, ledger.shape[1] + bool(features.intercept)
    step, first_level = mapped.steps.travel / rounds, FIRST if loss.is_quadratic else START
    share_noise = noise_of(plan_rounds.mechanism) / SHARES.unclipped_weight
    share_goal = target_share(ledger.plan, ledger.shape, size)
    least_level = tolerated_level(mapped, loss, mean_noise(ledger.plan))
    level = first_level = max(first_level, least_level)
    # The noise of all shares together moves ln C by no more than WANDER on average.
    rate = min(LEARNING_RATE, WANDER / max(share_noise * math.sqrt(rounds), 1e-300))
    if loss.steered_share is not None:
        share_goal = loss.steered_share
        rate = NARROWING / (1 - share_goal)  # from a share of 1 the level falls by NARROWING
        level = LARGEST
    first_theta = theta = mapped.with_constant(loss.first_score)
    query = MeanOfClippedGradients(
        HALF_SQUARED.slope,
        1.0,
        ledger.shape[0],
        features,
        executor,
        weight_bound,
        SHARES.unclipped_weight,
    )
    # Iterates after round ``start`` are averaged: the last new start, or the end of the approach.
    mean, start = theta, 0 if loss.is_quadratic else int(APPROACH * rounds)
    norms, curvatures, shares, mean_share = *np.empty((3, rounds)), 1.0
    shorter = ridge_step(mapped, ridge)
    mean_share_noise = share_noise * math.sqrt(LATEST / (2 - LATEST))
    for t in range(1, rounds + 1):
        passed, share = min((t - 1) / (APPROACH * rounds), 1.0), mean_share + mean_share_noise
        round_loss = loss.at(Progress(passed, level, share, *mapped.scores(theta)))
        norm = mapped.length * round_loss.norm
        query.residuals, query.within = round_loss.loss.slopes, round_loss.within
        query.theta, query.clip = theta, norm
        # The released vector is the mean gradient over the norm, then the weighted share.
        released = ledger.release(plan_rounds.part, query, shape=theta.size + 1)
        gradient = norm * released[:-1, None]
        if loss.is_quadratic:  # the map counts with the ridge
            gradient = gradient + ridge * penalty_slope(mapped, theta)
        length = step * mapped.longest_step / round_loss.curvature
        theta = theta - length * gradient
        if not loss.is_quadratic:
            theta = shorter(theta, length * ridge * round_loss.unit)
        norms[t - 1], curvatures[t - 1] = norm, round_loss.curvature
        shares[t - 1] = released[-1] / SHARES.unclipped_weight
        # The level grows while the share is below its goal.
        share = min(1.0, max(0.0, shares[t - 1]))
        mean_share += LATEST * (share - mean_share)
        change = rate * (share_goal - share)
        if loss.steered_share is None:  # the noise of shares beyond 0 and 1 averages out
            change = rate * (share_goal - float(shares[t - 1]))
            change = min(max(change, -LEARNING_RATE), LEARNING_RATE)
        if round_loss.steers:
            level = max(level * math.exp(change), least_level)
        if not loss.is_quadratic:
            level = min(level, loss.largest_level)
        elif level > loss.largest_level:  # at the start few gradients are so large
            step, level, start, theta = step / 2, first_level, t, first_theta
        # Iterate k after a start weighs k in the mean: 2 / (k + 1) of the mean of the first k.
        averaged = (mapped.steps.averaged or not loss.is_quadratic) and t > start
        mean = mean + 2 / (t - start + 1) * (theta - mean) if averaged else theta
    return Descent(mean, first_theta, round_loss, norms, curvatures, shares)


def ridge_step(mapped: MappedFeatures, ridge: float) -> Callable[[Array, float], Array]:
    """Return the proximal step of a penalty on half the squared length of slopes of clipped rows.

    It is stable however steep the penalty is in a mapped direction.  A ridge of 0 changes nothing.
    """
    if not ridge:
        return lambda theta, penalty: theta
    size, root = mapped.spectrum.size, mapped.features.root
    directions, squares = np.eye(size), np.ones(size)
    if root is not None and mapped.directions is not None:
        directions = mapped.directions
        squares = np.square(np.einsum("ji,ji->i", directions, np.einsum("ij,jk", root, directions)))

    def shorter(theta: Array, penalty: float) -> Array:
        slopes = np.einsum("ji,jk->ik", directions, theta[:size])
        slopes = slopes / (1 + penalty * squares)[:, None]
        return np.vstack([np.einsum("ij,jk->ik", directions, slopes), theta[size:]])

    return shorter


def penalty_slope(mapped: MappedFeatures, theta: Array) -> Array:
    """Return the gradient, in theta, of half the squared length of the slopes of clipped rows.

    With the map's root R these slopes are R theta, so the gradient is R' R theta.  The constant is
    not penalised.
    """
    slopes, constant = mapped.features.coefficients(theta)
    if mapped.features.root is not None:
        slopes = np.einsum("ji,jk->ik", mapped.features.root, slopes)
    return np.vstack([slopes, 0 * constant]) if mapped.features.intercept else slopes
