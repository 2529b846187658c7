"""A last gradient that clips hardly any record, and what it says of least squares.

After a descent one more mean gradient is released where it ended, clipped at several times the
length of most gradients, with their mean squared length.  A Newton step from there, with the
released products of features, is least squares of the records plus noise of a known covariance.

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
from algorithms.linear_models.sufficient_statistics import refuse_hidden

# The last gradient gets two fifths of the budget.  Rows are shortened less for the products.
CLOSED = SHARES._replace(products=0.2, closing=0.4, shortened=1.5)
# chosen on a few fits of the tasks of docs/algorithms.md, with seeds that are not reported there
WIDE, WIDER = 4.0, 8.0  # least and largest clipping norm over the deviation of gradients
QUIET = 1.0  # the norm is chosen so that noise is this multiple of the sampling error
WIDEST = 4.0  # largest clipping norm over the length of a row times the largest target
FACTORS = (1.0, 1.1)  # range of the factor by which shortening reduces the trace of products
UNEVEN = 0.05  # the factor may differ between directions by this


class Closing(NamedTuple):
    """What is known after the last gradient; `coefficient_errors` needs no more."""

    centre: Array  # least squares coefficients, the constant last
    covariance: Array
    spread: Spread


def close_descent(
    ledger: Any,
    mapped: MappedFeatures,
    descent: Descent,
    y_bound: float,
    executor: Executor | None,
) -> Closing:
    """Release the last gradient, and return least squares and their error."""
    part, records = ledger.plan.parts[-1], ledger.shape[0]
    deviation = gradient_deviation(descent, noise_of(rounds_of(ledger.plan).part) / SHARES.kept)
    noise = noise_of(part)  # in units of the clipping norm
    # Noise is norm * noise on each of q coordinates; the mean of n gradients errs by
    # deviation / sqrt(n q) on each.
    quiet = QUIET / max(noise * math.sqrt(records * descent.theta.size), 1e-9)
    norm = min(max(WIDE, min(quiet, WIDER)) * deviation, WIDEST * mapped.length * y_bound)
    query = MeanOfClippedGradients(
        partial(squared_residuals, y_bound=y_bound),
        norm,
        records,
        mapped.features,
        executor,
        kept_weight=SHARES.kept,
    )
    query.theta, query.squares = descent.theta, True
    released = ledger.release(part, query, shape=descent.theta.size + 1)
    square = max(0.0, float(released[-1]) / SHARES.kept) * norm**2
    gradient = norm * released[:-1]
    return newton_step(mapped, descent.theta[:, 0], gradient, norm * noise, square / records)


def gradient_deviation(descent: Descent, noise: float) -> float:
    """Return the deviation of normal numbers whose sizes are below the norms as often as gradients.

    It uses the later half of the rounds.  Where ``noise`` of a share hides it, it is too large.
    """
    half = len(descent.norms) // 2
    norms, shares = descent.norms[half:], descent.shares[half:]
    share_below = float(shares.mean()) - noise / math.sqrt(len(shares))

    def too_few(deviation: float) -> bool:
        return float(np.mean(2 * ndtr(norms / deviation) - 1)) <= share_below

    smallest, largest = float(norms.min()) / 10, float(norms.max()) * 10
    return least_float_that(too_few, smallest, largest, relative=1e-3, mean=geometric_mean)


def newton_step(
    mapped: MappedFeatures, theta: Array, gradient: Array, noise: float, square: float
) -> Closing:
    """Return least squares from a gradient at theta whose coordinates have noise.

    ``square`` is the expected squared length of its sampling error.
    """
    spread: Any = mapped.spread
    root: Any = mapped.features.root
    size, constant = len(root), mapped.features.intercept
    curvature = np.eye(theta.size)
    curvature[:size, :size] = unshortened(spread) * (root.T @ spread.matrix @ root)
    inverse = np.linalg.inv(curvature)
    step = -inverse @ gradient
    pushed = curvature @ step
    middle = noise**2 * np.eye(theta.size) + square / np.trace(curvature) * curvature
    # The curvature has errors too: noise on products, which the slopes of the step multiply, noise
    # on the centre, which the constant multiplies, and the effect of shortening.
    slopes = root @ step[:size]
    of_slopes = spread.noise**2 / 2 * (slopes @ slopes * np.eye(size) + np.outer(slopes, slopes))
    if constant:
        centre_square = (constant * spread.moments.centre_noise) ** 2
        of_slopes += centre_square * step[-1] ** 2 * np.eye(size)
        middle[-1, -1] += centre_square * (slopes @ slopes)
    middle[:size, :size] += root.T @ of_slopes @ root
    middle += UNEVEN**2 * np.outer(pushed, pushed)
    to_clipped = linear_part(mapped, theta.size)
    to_clipped_step = to_clipped @ inverse
    return Closing(
        to_clipped @ (theta + step), to_clipped_step @ middle @ to_clipped_step.T, spread
    )


def unshortened(spread: Spread) -> float:
    """Return the factor for the products of shortened rows, whose trace is known."""
    moments = spread.moments
    trace = max(float(np.trace(spread.matrix)), moments.square / 2)
    low, high = FACTORS
    prior_mean, prior_variance = (low + high) / 2, ((high - low) / 2) ** 2
    # The measured factor and the prior mean are averaged by their precision.
    measured_variance = (moments.square_noise / trace) ** 2
    factor = prior_mean + (moments.square / trace - prior_mean) * prior_variance / (
        prior_variance + measured_variance
    )
    return min(max(factor, low), high)


def linear_part(mapped: MappedFeatures, size: int) -> Array:
    """Return the matrix from coefficients of mapped rows to coefficients of clipped rows."""
    columns = [mapped.features.coefficients(unit[:, None]) for unit in np.eye(size)]
    matrix = np.array([np.append(slopes[:, 0], constant) for slopes, constant in columns]).T
    return matrix if mapped.features.intercept else matrix[:-1]


def coefficient_errors(closing: Closing) -> tuple[Array, Array]:
    """Return coefficients and the covariance of their error.

    Raises `ParameterError` where noise hides the least eigenvalue of the products.
    """
    values: Any = np.linalg.eigvalsh(closing.spread.matrix)
    refuse_hidden(values, closing.spread.noise * math.sqrt(2 * values.size))
    return closing.centre, closing.covariance
