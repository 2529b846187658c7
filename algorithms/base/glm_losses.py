"""Convex losses for Frank-Wolfe: bounds on one record's gradient, and on the curvature.

References: Talwar, Thakurta & Zhang (2015), Definition 2.1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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


# named functions, so that they can be pickled
SQUARED = LinearLoss(squared_slope, squared_steepest, 2.0, squared_value)
# |y| <= 1: the slope's derivative is at most y^2 / 4
LOGISTIC = LinearLoss(logistic_slope, logistic_steepest, 0.25, logistic_value)
GLM_LOSSES = {"squared": SQUARED, "logistic": LOGISTIC}
GLM_LOSS_NAMES = OneOf(tuple(GLM_LOSSES))


def glm_loss_of(loss: object) -> LinearLoss | DeclaredLoss:
    """Return a loss by its name, or the loss itself."""
    if isinstance(loss, (LinearLoss, DeclaredLoss)):
        return loss
    if isinstance(loss, str) and loss in GLM_LOSSES:
        return GLM_LOSSES[loss]
    raise ParameterError("loss", loss, f"{GLM_LOSS_NAMES}, a LinearLoss or a DeclaredLoss")
