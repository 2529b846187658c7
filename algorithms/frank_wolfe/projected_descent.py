"""Noisy gradient descent over the l1 ball: each record's gradient is clipped, no vertex is chosen.

References: Song, Chaudhuri & Sarwate (2013).
"""

from __future__ import annotations

import math
from concurrent.futures import Executor
from typing import Any

import numpy as np

from accountant.numerics import Array
from algorithms.base.adaptive_descent import MeanVector, descend_adaptively
from algorithms.base.exact_minimum import project_to_l1_ball
from algorithms.base.glm_losses import LOGISTIC, LinearLoss
from algorithms.frank_wolfe.constants import Bounds


def run_projected_descent(
    ledger: Any,
    bounds: Bounds,
    loss: LinearLoss,
    fit_intercept: bool,
    executor: Executor | None = None,
) -> Array:
    """Return coefficients and the constant, 0 if none is fitted, from released values only.

    The constant is the coefficient of a feature that is always ``bounds.x``, outside of the ball.
    """
    records, features = ledger.shape
    constant = bounds.x if fit_intercept else 0.0
    # A gradient is the slope of the loss at <x, theta> times x, and |<x, theta>| <= the radius
    # times the largest feature.
    longest = math.hypot(bounds.x * math.sqrt(features), constant)
    steepest = loss.bound(bounds.radius * bounds.x, bounds.y)
    norms = bounds.x * loss.bound(0.0, bounds.y), longest * steepest
    query = MeanVector(
        records,
        executor,
        x_bound=bounds.x,
        y_bound=bounds.y,
        intercept=constant,
        row_square=longest**2,
        slope=loss.slope,
    )
    size = features + fit_intercept

    def project(theta: Array) -> Array:
        return np.append(project_to_l1_ball(theta[:features], bounds.radius), theta[features:])

    theta = descend_adaptively(
        ledger,
        query,
        size,
        longest**2,
        norms,
        np.zeros(size),
        project,
        loss.smoothness,
        bounded_slopes=loss is LOGISTIC,
    )
    return np.append(theta[:features], constant * theta[-1])
