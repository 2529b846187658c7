"""Losses of generalised linear models as the rounds of `descend_mapped` see them.

`Poisson` and `TiltedHuber` are the two kinds; `REGRESSION_LOSSES` has a line for each name that
`PrivateGeneralizedLinearModel` knows.  The loss of a round is a function of released values.

*Poisson.* The mean of ``e^u`` over records, for normal scores u, is ``e^(m + v / 2)`` with their
mean m and variance v, which the coefficients say.  That is the mean curvature, and its root is
about the deviation of residuals: both are known without a release of their own.

*Huber and quantiles.* The level is a width that a public share of residuals is steered to lie
within.  So the threshold of the loss needs no public scale.  With the share s within the width w
the density of residuals near 0 is about s / 2w, and the mean curvature of slopes about s / w.

References: Holland & Welsch (1977) for a threshold that follows the residuals.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np

from accountant.ledger.private_data import take_rows
from accountant.numerics import Array
from algorithms.base.exact_minimum import ExactMinimum, Rows, Weights
from algorithms.base.glm_losses import LinearLoss, huber_loss, poisson_loss
from algorithms.base.row_blocks import row_blocks, row_products
from algorithms.linear_models.regression_rounds import LEAST, DescentLoss, Progress, RoundLoss

# These constants were chosen on made-up designs of 2,000 and 20,000 records (docs/algorithms.md).
# The deviation of residuals that the first clipping norm allows for, over that of Poisson counts.
DISPERSION = 2.0
LEAST_MEAN = 1e-3  # the least mean that steps are made for, over the largest target
HUBER_SHARE = 0.8  # of residuals within the threshold, about 1.3 deviations of normal ones
# A quantile's threshold is this part of the width within which half of the residuals lie.
QUANTILE_SHARE, QUANTILE_THRESHOLD = 0.5, 0.25
MOST_THRESHOLDS = 50  # thresholds that a fit without privacy tries
ARRIVED = 1e-6  # they end at this change of the threshold, relative to it


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

        def within(scores: Array, targets: Array) -> Array:
            residuals = scores[:, 0] - np.clip(targets, -self.y_bound, self.y_bound)
            return np.abs(residuals) <= width

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
