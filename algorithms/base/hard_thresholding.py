"""Iterative hard thresholding: the step that all sparse regressions here share, and its step sizes.

A round moves theta against a gradient, keeps its largest coefficients and projects it to the unit
ball.  In this file p is the number of coefficients and n that of users.

References: Blumensath & Davies (2009); step sizes: Wang & Xu (2021), Theorems 6 and 11, with
constants recomputed (docs/sparse-regression.md).
"""

from __future__ import annotations

import math
import warnings

import numpy as np

from accountant.errors import ParameterError
from accountant.numerics import Array


def keep_largest(vector: Array, sparsity: int) -> Array:
    """Return ``vector`` with all but its ``sparsity`` (>= 1) largest entries, by size, set to 0."""
    thresholded: Array = np.zeros_like(vector)
    if sparsity >= vector.size:
        return vector.copy()
    top = np.argpartition(np.abs(vector), vector.size - sparsity)[vector.size - sparsity :]
    thresholded[top] = vector[top]
    return thresholded


def project_to_ball(vector: Array, radius: float = 1.0) -> Array:
    """Return the nearest vector of Euclidean norm at most ``radius``."""
    norm = float(np.linalg.norm(vector))
    return vector if norm <= radius else vector * (radius / norm)


def iht_step(theta: Array, gradient: Array, step: float, sparsity: int) -> Array:
    """Return the next iterate: a gradient step, thresholded, and projected to the unit ball."""
    return project_to_ball(keep_largest(theta - step * gradient, sparsity))


def step_window(isometry: float, low: float = 1.0, high: float = 1.0) -> tuple[float, float]:
    """Return the least and the greatest step size for which every round halves the error.

    They are ``5 / (7 a^2 (1 - Delta))`` and ``9 / (7 b^2 (1 + Delta))``.  Here Delta is
    ``isometry``, the restricted isometry constant of the features (rows times ``1 / sqrt n``), and
    a and b are ``low`` and ``high``, bounds of the link function's derivative.  The first exceeds
    the second, and no step size will do, unless
    ``Delta <= (9 a^2 - 5 b^2) / (9 a^2 + 5 b^2)``.

    For a step size within the two ends the curvature of the loss on sparse vectors, times the step,
    lies in [5/7, 9/7].  A gradient step then shortens the error to 2/7, and keeping the largest
    entries lengthens it by a factor below 7/4.
    """
    if not 0 <= isometry < 1:
        raise ParameterError("isometry", isometry, "a number in [0, 1)")
    return 5 / (7 * low**2 * (1 - isometry)), 9 / (7 * high**2 * (1 + isometry))


def default_step(low: float = 1.0, high: float = 1.0) -> float:
    """Return the geometric mean of the ends of `step_window` for an isometry constant of 0."""
    smallest, largest = step_window(0.0, low, high)
    return math.sqrt(smallest * largest)


def checked_step(step: float, low: float = 1.0, high: float = 1.0) -> float:
    """Return ``step``; warn where it is outside of `step_window` for an isometry constant of 0."""
    smallest, largest = step_window(0.0, low, high)
    if not smallest <= step <= largest:
        warnings.warn(
            f"step {step:g} lies outside [{smallest:.4g}, {largest:.4g}], where rounds contract",
            UserWarning,
            stacklevel=3,
        )
    return step


def default_rounds(users: int, features: int) -> int:
    """Return the number of rounds of Wang & Xu (2021), ``ceil(ln(n / p))``, at least 1."""
    return max(1, math.ceil(math.log(users / features))) if users > features else 1
