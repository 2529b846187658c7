"""Convex losses of linear models: value and slope in the score ``u = <x, theta>``.

`GLM_LOSSES` are those of Frank-Wolfe; `poisson_loss` and `huber_loss` have public parameters.  A
quantile's loss is Huber's, tilted: both are quadratic within a threshold, which smooths the corner
of the quantile's loss.

References: Talwar, Thakurta & Zhang (2015), Definition 2.1; Huber (1964); Koenker & Bassett (1978),
smoothed as by Fernandes, Guerre & Horta (2021).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np
from scipy.special import expit

from accountant.domains import NON_NEGATIVE, POSITIVE, OneOf
from accountant.errors import ParameterError
from accountant.numerics import Array


@final
@dataclass(frozen=True, slots=True)
class LinearLoss:
    """A loss of a linear model: the gradient of a record x is ``slope(<x, theta>, y) x``.

    ``slope`` is nondecreasing in its first argument, which makes the loss convex. ``steepest(inner,
    y)`` bounds its absolute value where ``|<x, theta>| <= inner`` and ``|y| <= y``; slopes are
    clipped to that.  ``smoothness`` bounds its derivative; ``value`` is the loss.
    """

    slope: Callable[[Array, Array], Array]
    steepest: Callable[[float, float], float]
    smoothness: float
    value: Callable[[Array, Array], Array]

    def __post_init__(self) -> None:
        for name in ("slope", "steepest", "value"):
            if not callable(getattr(self, name)):
                raise ParameterError(name, getattr(self, name), "a function of two arguments")
        NON_NEGATIVE.check("smoothness", self.smoothness)

    def bound(self, inner: float, y: float) -> float:
        """Return the bound of the slope; it must be positive and finite."""
        return POSITIVE.check("loss.steepest", self.steepest(inner, y))


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


def squared_slope(inner: Array, y: Array) -> Array:
    """Return the slope of ``(u - y)^2``."""
    return 2 * (inner - y)


def logistic_slope(inner: Array, y: Array) -> Array:
    """Return the slope of ``ln(1 + e^{-y u})`` with labels -1 and 1."""
    slope: Array = -y * expit(-y * inner)
    return slope


def squared_steepest(inner: float, y: float) -> float:
    """Return the largest absolute value of ``2 (u - y)``."""
    return 2 * (inner + y)


def logistic_steepest(inner: float, y: float) -> float:
    """Return the bound ``y / (1 + e^{-y |u|})`` of the logistic slope, rounded up."""
    return float(y * expit(y * inner)) * (1 + 1e-15)


def squared_value(inner: Array, y: Array) -> Array:
    """Return the squared residual."""
    value: Array = (inner - y) ** 2
    return value


def logistic_value(inner: Array, y: Array) -> Array:
    """Return minus the log-likelihood."""
    value: Array = np.logaddexp(0.0, -y * inner)
    return value


def logistic_curvature(inner: Array, y: Array) -> Array:
    """Return the derivative of the logistic slope."""
    curvature: Array = y * y * expit(inner * y) * expit(-inner * y)
    return curvature


def logistic_curvatures(scores: Array, classes: Array) -> Array:
    """Return the curvature of one score a record, over its bound of a quarter."""
    del classes
    return 4 * logistic_curvature(scores[:, 0], np.ones(1))


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


def poisson_mean(inner: Array, greatest: float) -> Array:
    """Return ``e^u``, but at most the ``greatest`` target."""
    mean: Array = np.exp(np.minimum(inner, math.log(greatest)))
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


def one_bound(inner: float, y: float, bound: float) -> float:
    """Return the bound of a slope that is the same for all targets."""
    del inner, y
    return bound


# named functions, so that they can be pickled
SQUARED = LinearLoss(squared_slope, squared_steepest, 2.0, squared_value)
# |y| <= 1: the slope's derivative is at most y^2 / 4
LOGISTIC = LinearLoss(logistic_slope, logistic_steepest, 0.25, logistic_value)


def poisson_loss(greatest: float) -> LinearLoss:
    """Return minus the log-likelihood of counts up to the ``greatest``, over it."""
    slope, value = (partial(part, greatest=greatest) for part in (poisson_slope, poisson_value))
    return LinearLoss(slope, partial(one_bound, bound=1.0), 1.0, value)


def huber_loss(threshold: float, quantile: float = 0.5) -> LinearLoss:
    """Return Huber's loss over its threshold, tilted for another quantile than the median.

    Far from the target its slopes are ``2 (1 - quantile)`` and ``-2 quantile``.
    """
    tilt = 1 - 2 * quantile
    return LinearLoss(
        partial(huber_slope, threshold=threshold, tilt=tilt),
        partial(one_bound, bound=1 + abs(tilt)),
        1 / threshold,
        partial(huber_value, threshold=threshold, tilt=tilt),
    )


GLM_LOSSES = {"squared": SQUARED, "logistic": LOGISTIC}
GLM_LOSS_NAMES = OneOf(tuple(GLM_LOSSES))


def glm_loss_of(loss: object) -> LinearLoss | DeclaredLoss:
    """Return a loss by its name, or the loss itself."""
    if isinstance(loss, (LinearLoss, DeclaredLoss)):
        return loss
    if isinstance(loss, str) and loss in GLM_LOSSES:
        return GLM_LOSSES[loss]
    raise ParameterError("loss", loss, f"{GLM_LOSS_NAMES}, a LinearLoss or a DeclaredLoss")
