"""Convex losses for Frank-Wolfe: how far one record moves a gradient, and how curved they are."""

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
    """Loss of a linear model: a record's gradient is ``slope(<x, theta>, y) x``.

    ``slope`` never falls in its first argument, which is what makes the loss convex.
    ``steepest(inner, y)`` bounds its size where ``|<x, theta>| <= inner`` and ``|y| <= y``;
    slopes are clipped to that.  ``smoothness`` bounds its derivative; ``value`` is the loss.
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
        """The slope's bound, checked: a loss without one must be clipped by whoever declares it."""
        return POSITIVE.check("loss.steepest", self.steepest(inner, y))


@final
@dataclass(frozen=True, slots=True)
class DeclaredLoss:
    """Any convex loss whose constants its author declares.

    ``gradients(theta, X, y)`` gives one gradient a record (records, features); entries are clipped
    to ``[-lipschitz, lipschitz]``.  ``curvature`` is Gamma, ``2 max (L(b) - L(theta) -
    <b - theta, grad L(theta)>) / step^2`` for b a step from theta towards a point of the set; it
    decides about the number of rounds and the bound on the error, not about privacy.
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
    """Of ``(u - y)^2``."""
    return 2 * (inner - y)


def logistic_slope(inner: Array, y: Array) -> Array:
    """Of ``ln(1 + e^{-y u})`` with labels -1 and 1."""
    slope: Array = -y * expit(-y * inner)
    return slope


def squared_steepest(inner: float, y: float) -> float:
    """Of ``2 (u - y)``."""
    return 2 * (inner + y)


def logistic_steepest(inner: float, y: float) -> float:
    """``1 / (1 + e^{-|u|})`` for labels of size 1."""
    return float(y * expit(y * inner)) * (1 + 1e-15)


def squared_value(inner: Array, y: Array) -> Array:
    """The squared residual."""
    value: Array = (inner - y) ** 2
    return value


def logistic_value(inner: Array, y: Array) -> Array:
    """Minus the log-likelihood."""
    value: Array = np.logaddexp(0.0, -y * inner)
    return value


# functions with names, so that they travel to other processes
SQUARED = LinearLoss(squared_slope, squared_steepest, 2.0, squared_value)
# |y| <= 1: the slope's derivative is at most y^2 / 4
LOGISTIC = LinearLoss(logistic_slope, logistic_steepest, 0.25, logistic_value)
GLM_LOSSES = {"squared": SQUARED, "logistic": LOGISTIC}
GLM_LOSS_NAMES = OneOf(tuple(GLM_LOSSES))


def glm_loss_of(loss: object) -> LinearLoss | DeclaredLoss:
    """A loss by its name, or the loss itself."""
    if isinstance(loss, (LinearLoss, DeclaredLoss)):
        return loss
    if isinstance(loss, str) and loss in GLM_LOSSES:
        return GLM_LOSSES[loss]
    raise ParameterError("loss", loss, f"{GLM_LOSS_NAMES}, a LinearLoss or a DeclaredLoss")
