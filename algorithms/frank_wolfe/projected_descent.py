"""Noisy gradient descent over the l1 ball: each record's gradient is clipped, no vertex is chosen.

References: Song, Chaudhuri & Sarwate (2013).
"""

from __future__ import annotations

import math
from concurrent.futures import Executor
from functools import partial
from typing import Any

import numpy as np

from accountant.numerics import Array
from algorithms.base.adaptive_descent import MeanVector, descend_adaptively
from algorithms.base.exact_minimum import project_to_l1_ball
from algorithms.base.glm_losses import LinearLoss
from algorithms.frank_wolfe.constants import Bounds


def run_projected_descent(
    ledger: Any, bounds: Bounds, loss: LinearLoss, executor: Executor | None = None
) -> Array:
    """Return the coefficients, computed from released values only."""
    records, features = ledger.shape
    # a gradient is the loss's slope at <x, theta> times x, and |<x, theta>| is at most the radius
    # times a feature
    longest = bounds.x * math.sqrt(features)
    steepest = loss.bound(bounds.radius * bounds.x, bounds.y)
    norms = bounds.x * loss.bound(0.0, bounds.y), longest * steepest
    query = MeanVector(
        records, executor, x_bound=bounds.x, y_bound=bounds.y, intercept=False,
        row_square=longest**2, slope=loss.slope,
    )  # fmt: skip
    project = partial(project_to_l1_ball, radius=bounds.radius)
    return descend_adaptively(
        ledger, query, features, longest**2, norms, np.zeros(features), project, loss.smoothness
    )
