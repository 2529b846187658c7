"""A last gradient that clips hardly any record, and what it says of the least squares coefficients.

After a descent one more mean gradient is released where it ended, clipped at several times the
length of most gradients, with their mean squared length.  A Newton step from there, with the
released products of features, is least squares of the records plus noise of a known law.

References: docs/proofs/linear_regression.md, point 5; Bickel (1975) for one Newton step.
"""

from __future__ import annotations

import math
from concurrent.futures import Executor
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from accountant.numerics import Array
from accountant.numerics.search import geometric_mean, least_float_that
from algorithms.base.clipped_gradient_descent import MeanOfClippedGradients, squared_residuals
from algorithms.linear_models.feature_moments import MappedFeatures, Spread
from algorithms.linear_models.mapped_plan import noise_of, rounds_of
from algorithms.linear_models.regression_rounds import SHARES, Descent

WIDE = 4.0  # clipping norm, over the deviation of most gradients
QUIET_WIDE = 0.5  # the same, over the sampling error in units of the noise at a norm of 1
WIDEST = 4.0  # clipping norm, over the length of a row times the largest target


FACTORS = (1.0, 1.1)
UNEVEN = 0.05


class Closing(NamedTuple):
    """Least squares coefficients, the covariance of their error, and how well spread features are."""

    centre: Array
    covariance: Array
    least: float  # eigenvalue of the released products of features
    noise: float  # the norm of their noise


def gradient_deviation(descent: Descent, noise: float) -> float:
    """Return the deviation of normal numbers of which so many are below the norms in size.

    It is that of the later half of rounds; where ``noise`` of a share hides it, it is too large.
    """
    half = len(descent.norms) // 2
    norms, shares = descent.norms[half:], descent.shares[half:]
    least = float(shares.mean()) - noise / math.sqrt(len(shares))
    smallest, largest = float(norms.min()) / 10, float(norms.max()) * 10

    def too_few(deviation: float) -> bool:
        return float(np.mean(2 * ndtr(norms / deviation) - 1)) <= least

    return least_float_that(too_few, smallest, largest, relative=1e-3, mean=geometric_mean)


def close_descent(
    ledger: Any,
    mapped: MappedFeatures,
    descent: Descent,
    y_bound: float,
    executor: Executor | None,
) -> Closing:
    """Release the last gradient, and return what it says."""
    part, records, features = ledger.plan.parts[-1], ledger.shape[0], mapped.features
    share_noise = noise_of(rounds_of(ledger.plan).part) / SHARES.kept
    deviation, noise = gradient_deviation(descent, share_noise), noise_of(part)
    # noise of norm C s beside the error of a mean of n gradients, deviation / sqrt n
    quiet = QUIET_WIDE / max(noise * math.sqrt(records), 1e-9)
    widest = WIDEST * mapped.length * y_bound
    norm = min(max(WIDE, quiet) * deviation, widest)
    query = MeanOfClippedGradients(
        partial(squared_residuals, y_bound=y_bound), norm, records, features, executor,
        kept_weight=SHARES.kept,
    )  # fmt: skip
    query.theta, query.squares = descent.theta, True
    released = ledger.release(part, query)
    square = max(0.0, released[-1] / SHARES.kept) * norm**2
    return newton_step(
        mapped, descent.theta[:, 0], norm * released[:-1], norm * noise, square / records
    )


def newton_step(
    mapped: MappedFeatures, theta: Array, gradient: Array, noise: float, square: float
) -> Closing:
    """Return least squares from a gradient at theta with noise; ``square`` is that of its sampling."""
    spread, features = mapped.spread, mapped.features
    root, size = features.root, features.root.shape[0]
    curvature = np.eye(theta.size)
    curvature[:size, :size] = unshortened(spread) * (root.T @ spread.matrix @ root)
    inverse = np.linalg.inv(curvature)
    step = -inverse @ gradient
    # the step's error is that of the gradient and, by the noise of the curvature, of the step
    slopes = root @ step[:size]
    middle = noise**2 * np.eye(theta.size)
    middle += square * curvature / np.trace(curvature)
    middle += UNEVEN**2 * np.outer(curvature @ step, curvature @ step)
    of_slopes = spread.noise**2 / 2 * (slopes @ slopes * np.eye(size) + np.outer(slopes, slopes))
    constant = features.intercept
    if constant:
        centre_square = (constant * spread.moments.centre_noise) ** 2
        of_slopes += centre_square * step[-1] ** 2 * np.eye(size)
        middle[-1, -1] += centre_square * (slopes @ slopes)
    middle[:size, :size] += root.T @ of_slopes @ root
    back = linear_part(mapped, theta.size)
    centre = back @ (theta + step)
    covariance = back @ inverse @ middle @ inverse @ back.T
    noise_norm = spread.noise * math.sqrt(2 * size)
    return Closing(centre, covariance, float(np.linalg.eigvalsh(spread.matrix)[0]), noise_norm)


def unshortened(spread: Spread) -> float:
    """Return what the products of shortened rows are multiplied by: their trace is known."""
    square, noise, _ = spread.moments[1:]
    found, noise = np.array([square, noise]) / max(float(np.trace(spread.matrix)), square / 2)
    low, high = FACTORS
    middle, known = (low + high) / 2, (high - low) ** 2 / 4
    # the mean of what was found and of what is usual, by their precision
    return float(np.clip(middle + (found - middle) * known / (known + noise**2), low, high))


def linear_part(mapped: MappedFeatures, size: int) -> Array:
    """Return the matrix that takes mapped coefficients to those of clipped rows."""
    columns = [mapped.features.coefficients(one[:, None]) for one in np.eye(size)]
    found = np.array([np.append(slopes[:, 0], constant) for slopes, constant in columns]).T
    return found if mapped.features.intercept else found[:-1]
