"""The losses of linear models, each written once: value, slope and curvature in the scores.

Of one score ``u = <x, theta>`` a loss is a `LinearLoss`.  Some have a public parameter: counts have
a largest one, and Huber's loss a threshold.  A quantile's loss is Huber's, tilted: both are
quadratic within the threshold, which smooths the corner of the quantile's loss.  `GLM_LOSSES` are
those that have a name by themselves.

A fit sees a `ScoreObjective`: a loss and what it makes of the targets in the data.

References: Talwar, Thakurta & Zhang (2015), Definition 2.1; Huber (1964); Koenker & Bassett (1978),
smoothed as by Fernandes, Guerre & Horta (2021); Boehning & Lindsay (1988) for the curvature of the
multinomial loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Protocol, final

import numpy as np
from scipy.special import expit, logit, logsumexp, softmax

from accountant.domains import NON_NEGATIVE, POSITIVE, OneOf
from accountant.errors import ParameterError
from accountant.numerics import Array

LEAST_SCORE = -700.0  # the exponential is a positive float
Formula = Callable[[Array, Array], Array]  # of scores and targets, for each record


def identity(values: Array) -> Array:
    """Return the values."""
    return values


@final
@dataclass(frozen=True, slots=True)
class LinearLoss:
    """A loss of a linear model: the gradient of a record x is ``slope(<x, theta>, y) x``.

    ``slope`` is nondecreasing in its first argument, which makes the loss convex. ``steepest(inner,
    y)`` bounds its absolute value where ``|<x, theta>| <= inner`` and ``|y| <= y``; slopes are
    clipped to that.  ``smoothness`` bounds its derivative; ``value`` is the loss.

    Some fits need more.  ``curvature`` is the derivative of the slope, ``score_at(slope, y)`` the
    score of a slope, infinite beyond all slopes.  ``mean`` is what is predicted at a score.
    ``unit`` is the loss over minus the log-likelihood, or over half the squared error.
    """

    slope: Formula
    steepest: Callable[[float, float], float]
    smoothness: float
    value: Formula
    curvature: Formula | None = None
    score_at: Callable[[float, Array], Array] | None = None
    mean: Callable[[Array], Array] = identity
    unit: float = 1.0

    def __post_init__(self) -> None:
        for name in ("slope", "steepest", "value"):
            if not callable(getattr(self, name)):
                raise ParameterError(name, getattr(self, name), "a function of two arguments")
        NON_NEGATIVE.check("smoothness", self.smoothness)

    def bound(self, inner: float, y: float) -> float:
        """Return the bound of the slope; it must be positive and finite."""
        return POSITIVE.check("loss.steepest", self.steepest(inner, y))

    def times(self, factor: float) -> LinearLoss:
        """Return a multiple of the loss, whose curvature and scores of slopes are not known."""
        return LinearLoss(
            partial(scaled, self.slope, factor),
            partial(scaled, self.steepest, factor),
            factor * self.smoothness,
            partial(scaled, self.value, factor),
            mean=self.mean,
            unit=factor * self.unit,
        )

    def clipped(self, bound: float) -> LinearLoss:
        """Return the convex loss whose slopes are these, clipped to ``[-bound, bound]``."""
        return replace(
            self,
            slope=partial(clipped_slope, self, bound),
            steepest=partial(one_bound, bound=bound),
            value=partial(clipped_value, self, bound),
        )


@final
@dataclass(frozen=True, slots=True)
class DeclaredLoss:
    """A convex loss whose constants are declared by its author.

    ``gradients(theta, X, y)`` gives one gradient a record, of shape (records, features); entries
    are clipped to ``[-lipschitz, lipschitz]``.  ``curvature`` is Gamma, ``2 max (L(b) - L(theta) -
    <b - theta, grad L(theta)>) / step^2`` for b a step from theta towards a point of the set; the
    number of rounds and the error bound depend on it, privacy does not.
    """

    gradients: Callable[[Array, Any, Array], Array]
    lipschitz: float
    curvature: float

    def __post_init__(self) -> None:
        if not callable(self.gradients):
            raise ParameterError("gradients", self.gradients, "a function of theta, X and y")
        POSITIVE.check("lipschitz", self.lipschitz)
        POSITIVE.check("curvature", self.curvature)


# All formulas are named functions, so that losses can be pickled.
def one_bound(inner: float, y: float, bound: float) -> float:
    """Return the bound of a slope that is the same for all targets."""
    del inner, y
    return bound


def clipped_slope(loss: LinearLoss, bound: float, inner: Array, y: Array) -> Array:
    """Return the slope of a loss, clipped."""
    return np.clip(loss.slope(inner, y), -bound, bound)


def clipped_value(loss: LinearLoss, bound: float, inner: Array, y: Array) -> Array:
    """Return a loss that goes on as a straight line beyond the scores of the steepest slopes."""
    score_at: Any = loss.score_at
    inner_within = np.clip(inner, score_at(-bound, y), score_at(bound, y))
    return loss.value(inner_within, y) + bound * np.abs(inner - inner_within)


def scaled(formula: Callable[[Any, Any], Any], factor: float, inner: Any, y: Any) -> Any:
    """Return a multiple of a formula."""
    return factor * formula(inner, y)


def squared_steepest(inner: float, y: float) -> float:
    """Return the largest absolute residual."""
    return inner + y


def squared_value(inner: Array, y: Array) -> Array:
    """Return half the squared residual."""
    value: Array = (inner - y) ** 2 / 2
    return value


def squared_curvature(inner: Array, y: Array) -> Array:
    """Return 1 for each record."""
    del y
    return np.ones_like(inner)


def squared_score(slope: float, y: Array) -> Array:
    """Return the score of a residual."""
    return y + slope


def logistic_slope(inner: Array, y: Array) -> Array:
    """Return the slope of ``ln(1 + e^{-y u})`` with labels -1 and 1."""
    slope: Array = -y * expit(-y * inner)
    return slope


def logistic_steepest(inner: float, y: float) -> float:
    """Return the bound ``y / (1 + e^{-y |u|})`` of the logistic slope, rounded up."""
    return float(y * expit(y * inner)) * (1 + 1e-15)


def logistic_value(inner: Array, y: Array) -> Array:
    """Return minus the log-likelihood."""
    value: Array = np.logaddexp(0.0, -y * inner)
    return value


def logistic_curvature(inner: Array, y: Array) -> Array:
    """Return the derivative of the logistic slope."""
    curvature: Array = y * y * expit(inner * y) * expit(-inner * y)
    return curvature


def logistic_score(slope: float, y: Array) -> Array:
    """Return the score at which a label has this slope."""
    score: Array = -y * logit(np.clip(-slope * y, 0.0, 1.0))
    return score


def huber_slope(inner: Array, y: Array, threshold: float = 1.0, tilt: float = 0.0) -> Array:
    """Return ``(u - y) / threshold``, clipped to [-1, 1], and the tilt."""
    slope: Array = np.clip((inner - y) / threshold, -1.0, 1.0) + tilt
    return slope


def huber_value(inner: Array, y: Array, threshold: float = 1.0, tilt: float = 0.0) -> Array:
    """Return Huber's loss of ``r = u - y``, over the threshold, and ``tilt r``."""
    size = np.abs(inner - y)
    within = np.minimum(size, threshold)
    value: Array = within**2 / (2 * threshold) + (size - within) + tilt * (inner - y)
    return value


def huber_curvature(inner: Array, y: Array, threshold: float = 1.0) -> Array:
    """Return the derivative of Huber's slope, with or without a tilt."""
    curvature: Array = (np.abs(inner - y) < threshold) / threshold
    return curvature


def huber_score(slope: float, y: Array, threshold: float = 1.0, tilt: float = 0.0) -> Array:
    """Return the score at which a target has this slope."""
    residual = slope - tilt
    return y + (threshold * residual if abs(residual) < 1 else math.copysign(math.inf, residual))


def poisson_mean(inner: Array, greatest: float) -> Array:
    """Return ``e^u``, but at most the ``greatest`` target, and positive."""
    mean: Array = np.exp(np.clip(inner, LEAST_SCORE, math.log(greatest)))
    return mean


def poisson_slope(inner: Array, y: Array, greatest: float) -> Array:
    """Return the slope ``e^u - y`` over the greatest target.

    Beyond the score of that target the slope goes on as a straight line, so that its derivative is
    at most 1.  No mean of targets lies there.
    """
    beyond = np.maximum(inner - math.log(greatest), 0.0)
    slope: Array = (poisson_mean(inner, greatest) - y) / greatest + beyond
    return slope


def poisson_value(inner: Array, y: Array, greatest: float) -> Array:
    """Return minus the log-likelihood over the greatest target, up to what no score changes."""
    beyond = np.maximum(inner - math.log(greatest), 0.0)
    mean = poisson_mean(inner, greatest)
    value: Array = (mean - y * inner) / greatest + beyond + beyond**2 / 2
    return value


def poisson_curvature(inner: Array, y: Array, greatest: float) -> Array:
    """Return the derivative of the slope."""
    del y
    return poisson_mean(inner, greatest) / greatest


HALF_SQUARED = LinearLoss(
    np.subtract, squared_steepest, 1.0, squared_value, squared_curvature, squared_score
)
SQUARED = HALF_SQUARED.times(2.0)
# |y| <= 1: the slope's derivative is at most y^2 / 4
LOGISTIC = LinearLoss(
    logistic_slope, logistic_steepest, 0.25, logistic_value, logistic_curvature, logistic_score
)


def poisson_loss(greatest: float) -> LinearLoss:
    """Return minus the log-likelihood of counts up to the ``greatest``, over it."""
    slope, value, curvature, mean = (
        partial(formula, greatest=greatest)
        for formula in (poisson_slope, poisson_value, poisson_curvature, poisson_mean)
    )
    steepest = partial(one_bound, bound=1.0)
    return LinearLoss(slope, steepest, 1.0, value, curvature, mean=mean, unit=1 / greatest)


def huber_loss(threshold: float, quantile: float = 0.5) -> LinearLoss:
    """Return Huber's loss over its threshold, tilted for another quantile than the median.

    Far from the target its slopes are ``2 (1 - quantile)`` and ``-2 quantile``.
    """
    tilt = 1 - 2 * quantile
    slope, value, score_at = (
        partial(formula, threshold=threshold, tilt=tilt)
        for formula in (huber_slope, huber_value, huber_score)
    )
    return LinearLoss(
        slope,
        partial(one_bound, bound=1 + abs(tilt)),
        1 / threshold,
        value,
        partial(huber_curvature, threshold=threshold),
        score_at,
        unit=1 / threshold,
    )


GLM_LOSSES = {"squared": SQUARED, "logistic": LOGISTIC}


def glm_loss_of(loss: object) -> LinearLoss | DeclaredLoss:
    """Return a loss by its name, or the loss itself."""
    if isinstance(loss, (LinearLoss, DeclaredLoss)):
        return loss
    if isinstance(loss, str) and loss in GLM_LOSSES:
        return GLM_LOSSES[loss]
    names = OneOf(tuple(GLM_LOSSES))
    raise ParameterError("loss", loss, f"{names}, a LinearLoss or a DeclaredLoss")


class ScoreObjective(Protocol):
    """The loss of a record as a function of its scores, one or several."""

    @property
    def smoothness(self) -> float:
        """At least the second derivative in every direction of the scores."""
        ...

    def values(self, scores: Array, targets: Array) -> Array:
        """Return a value for each record."""
        ...

    def slopes(self, scores: Array, targets: Array) -> Array:
        """Return slopes of the shape of scores: (records, outputs)."""
        ...


def signs(targets: Array) -> Array:
    """Return 1 where a target is positive, and else -1."""
    return np.where(targets > 0, 1.0, -1.0)


@final
@dataclass(frozen=True, slots=True)
class ScoreLoss:
    """A loss of one score; ``targets`` makes its targets from the numbers in the data."""

    loss: LinearLoss
    targets: Callable[[Array], Array] = identity

    @classmethod
    def within(cls, loss: LinearLoss, lowest: float, highest: float) -> ScoreLoss:
        """Return a loss whose targets are clipped."""
        return cls(loss, partial(np.clip, a_min=lowest, a_max=highest))

    @property
    def smoothness(self) -> float:
        """At least the second derivative."""
        return self.loss.smoothness

    def values(self, scores: Array, targets: Array) -> Array:
        """Return a value for each record."""
        return self.loss.value(scores[:, 0], self.targets(targets))

    def slopes(self, scores: Array, targets: Array) -> Array:
        """Return slopes of the shape of scores."""
        return self.loss.slope(scores[:, 0], self.targets(targets))[:, None]

    def curvatures(self, scores: Array, targets: Array) -> Array:
        """Return a curvature for each record, over their bound."""
        curvature: Any = self.loss.curvature
        return np.asarray(curvature(scores[:, 0], self.targets(targets)) / self.smoothness)

    def mean_curvature(self, constant: float, deviation: float) -> float:
        """Return the expected curvature over its bound, for normal scores."""
        nodes, weights = normal_nodes()
        scores = constant + deviation * nodes[:, None]
        targets = self.loss.mean(scores[:, 0])
        return float(weights @ self.curvatures(scores, targets))


@cache
def normal_nodes() -> tuple[Array, Array]:
    """Return nodes and weights for means over a normal number."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(20)
    return nodes, weights / weights.sum()


LOGISTIC_OF_CLASSES = ScoreLoss(LOGISTIC, signs)  # the second class is positive


@final
@dataclass(frozen=True, slots=True)
class MultinomialLoss:
    """Minus the log-likelihood of classes 0, 1, ... with a score for each.

    An unknown class counts as the nearest class.
    """

    smoothness: float = 0.5

    def values(self, scores: Array, targets: Array) -> Array:
        """Return ln sum e^s - s_y."""
        values: Array = logsumexp(scores, axis=1) - scores[self._own(scores, targets)]
        return values

    def slopes(self, scores: Array, targets: Array) -> Array:
        """Return the probabilities, less 1 for the own class."""
        slopes: Array = softmax(scores, axis=1)
        slopes[self._own(scores, targets)] -= 1.0
        return slopes

    @staticmethod
    def _own(scores: Array, targets: Array) -> tuple[Any, Any]:
        """Return where the scores of the own classes are."""
        return np.arange(len(scores)), np.clip(targets, 0, scores.shape[1] - 1).astype(np.intp)
