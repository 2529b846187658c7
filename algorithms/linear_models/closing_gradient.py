"""Confidence intervals of private linear regression: a last gradient, and one Newton step from it.

After a private gradient descent that ended at theta, one more mean gradient is released there.  It
is clipped at several times the length of most gradients, so that hardly any record is clipped, and
the mean squared length of the records' gradients is released with it.  The step

    d = -H^-1 (gradient + noise)

then leads from theta to least squares of the records, up to an error whose covariance is known.  H
is the released mean of u u' for *mapped* rows u = R' (x - c): rows x less a centre c, times the
root R of about the inverse of their covariance, with a constant coordinate of 1 added.

For the products that H is made of, rows longer than a bound were shortened to it, so that H is a
little too small.  It is multiplied by one factor that makes its trace right.

References: docs/proofs/linear_regression.md, point 5; Bickel (1975) for one Newton step.
"""

from __future__ import annotations

import math
from concurrent.futures import Executor
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from accountant.numerics import Array
from accountant.numerics.search import geometric_mean, least_float_that
from algorithms.base.clipped_gradient_descent import MeanOfClippedGradients
from algorithms.base.glm_losses import HALF_SQUARED, ScoreLoss
from algorithms.base.noisy_gradient_rounds import GradientRounds
from algorithms.linear_models.feature_moments import MappedFeatures, Spread
from algorithms.linear_models.mapped_plan import noise_of
from algorithms.linear_models.regression_plan import SHARES
from algorithms.linear_models.regression_rounds import Descent
from algorithms.linear_models.sufficient_statistics import refuse_hidden

# The last gradient gets two fifths of the squared budget.  For the products, centred rows are
# shortened to 1.5 times the root of their mean squared length, which is longer than in `SHARES`.
SHARES_WITH_INTERVALS = SHARES._replace(products=0.2, closing=0.4, shortened_to=1.5)
# The following constants were chosen on a few fits of tasks on four files of data, with seeds
# that were not reported.
# The clipping norm of the last gradient, over the deviation of gradients (`gradient_deviation`), is
# between these two numbers.  There it is the one whose noise has the ratio NOISE_RATIO to the
# sampling error.
LEAST_CLIPPING, MOST_CLIPPING = 4.0, 8.0
NOISE_RATIO = 1.0
# The norm is at most this multiple of the length of a mapped row times the largest target: hardly a
# gradient is longer, also where noise makes the measured deviation far too large.
MOST_CLIPPING_OF_ROW = 4.0
# The least and the largest factor that makes up for the shortening of rows in their products.
LEAST_FACTOR, MOST_FACTOR = 1.0, 1.1
# Standard deviation, as a share of H d, of the error that remains since one factor is taken for all
# directions.
FACTOR_ERROR = 0.05


class Closing(NamedTuple):
    """The estimate after the last gradient; `coefficient_errors` needs no more."""

    coefficients: Array  # of least squares of clipped rows, the constant last
    covariance: Array  # of the error of these coefficients
    spread: Spread  # the released products of features, and their noise


def close_descent(
    ledger: Any,
    mapped: MappedFeatures,
    descent: Descent,
    y_bound: float,
    executor: Executor | None,
) -> Closing:
    """Release the last gradient, and return the least squares coefficients with their error."""
    part, records = ledger.plan.parts[-1], ledger.shape[0]
    rounds_noise = noise_of(GradientRounds.of(ledger.plan).mechanism)
    deviation = gradient_deviation(descent, rounds_noise / SHARES.unclipped_weight)
    noise = noise_of(part)  # in units of the clipping norm
    # Each of the q coordinates has noise of deviation norm * noise.  The mean of n gradients has a
    # sampling error of deviation / sqrt(n q) in each.  So at norm = balanced * deviation the noise
    # is NOISE_RATIO times the sampling error.  1e-9 keeps the quotient finite without noise.
    balanced = NOISE_RATIO / max(noise * math.sqrt(records * descent.theta.size), 1e-9)
    norm = min(
        min(max(balanced, LEAST_CLIPPING), MOST_CLIPPING) * deviation,
        MOST_CLIPPING_OF_ROW * mapped.length * y_bound,
    )
    query = MeanOfClippedGradients(
        ScoreLoss.within(HALF_SQUARED, -y_bound, y_bound).slopes,
        norm,
        records,
        mapped.features,
        executor,
        unclipped_weight=SHARES.unclipped_weight,
    )
    query.theta = descent.theta
    query.squares = True  # the answer ends with the mean squared length of gradients
    released = ledger.release(part, query, shape=descent.theta.size + 1)
    # The last coordinate is the weighted mean squared length of gradients, in units of the norm.
    square = max(0.0, float(released[-1]) / SHARES.unclipped_weight) * norm**2
    return newton_step(
        mapped,
        descent.theta[:, 0],
        gradient=norm * released[:-1],
        noise=norm * noise,
        sampling_square=square / records,
    )


def gradient_deviation(descent: Descent, noise: float) -> float:
    """Return a scale s of the lengths of gradients, from the released shares of unclipped records.

    In the later half of the rounds, with clipping norms C_t, s is the deviation of a normal number
    z for which the mean over t of P(|z| <= C_t) is the mean share of gradients not longer than
    C_t.  ``noise`` is the deviation of the noise of a share.  The mean share is first reduced by
    one deviation of its noise, so that s is too large rather than too small where noise is large.
    """
    half = len(descent.norms) // 2
    norms, shares = descent.norms[half:], descent.shares[half:]
    share_below = float(shares.mean()) - noise / math.sqrt(len(shares))

    def expects_at_most_the_share(deviation: float) -> bool:
        return float(np.mean(2 * ndtr(norms / deviation) - 1)) <= share_below

    smallest, largest = float(norms.min()) / 10, float(norms.max()) * 10
    return least_float_that(
        expects_at_most_the_share, smallest, largest, relative=1e-3, mean=geometric_mean
    )


def newton_step(
    mapped: MappedFeatures, theta: Array, gradient: Array, noise: float, sampling_square: float
) -> Closing:
    """Return least squares from the mean gradient at theta, with the covariance of its error.

    ``noise`` is the deviation of the gradient's noise in each coordinate, and ``sampling_square``
    the expected squared length of its sampling error.  The covariance is H^-1 V H^-1, where V is
    that of the noise, of the sampling error, and of the error of H times d together: point 5 of
    docs/proofs/linear_regression.md.
    """
    spread: Any = mapped.spread
    root: Any = mapped.features.root
    size, factor = len(root), factor_for_shortening(spread)
    curvature = np.eye(theta.size)  # the constant coordinate is 1, and centred rows have mean 0
    curvature[:size, :size] = factor * (root.T @ spread.matrix @ root)
    inverse = np.linalg.inv(curvature)
    step = -inverse @ gradient
    curvature_times_step = curvature @ step
    # V: first the noise.  The sampling error is taken to have a covariance in proportion to H,
    # whose trace is `sampling_square`.
    gradient_covariance = noise**2 * np.eye(theta.size)
    gradient_covariance += sampling_square / np.trace(curvature) * curvature
    # Then the errors of H.  A symmetric matrix of noise, of deviation t on its diagonal and
    # t / sqrt 2 off it, times the slopes v of the step has the covariance t^2 / 2 (|v|^2 I + v v').
    slopes = root @ step[:size]
    product_covariance = slopes @ slopes * np.eye(size) + np.outer(slopes, slopes)
    gradient_covariance[:size, :size] += (
        (factor * spread.noise) ** 2 / 2 * (root.T @ product_covariance @ root)
    )
    if mapped.features.intercept:
        # With noise e on the centre, the true H has -R' e between the constant and the slopes,
        # where the released one has 0.  So H d lacks -(R' e d_constant, e' v).
        effect_of_centre = np.vstack([step[-1] * root.T, slopes])
        gradient_covariance += (
            spread.moments.centre_noise**2 * effect_of_centre @ effect_of_centre.T
        )
    # What the factor leaves of the shortening is an error of FACTOR_ERROR H d.
    gradient_covariance += FACTOR_ERROR**2 * np.outer(curvature_times_step, curvature_times_step)
    to_clipped = linear_part(mapped, theta.size)
    to_clipped_step = to_clipped @ inverse
    return Closing(
        to_clipped @ (theta + step),
        to_clipped_step @ gradient_covariance @ to_clipped_step.T,
        spread,
    )


def factor_for_shortening(spread: Spread) -> float:
    """Return the factor for the products of shortened rows that makes their trace right.

    The right trace is the mean squared length of rows, which the first release has measured.
    """
    moments = spread.moments
    # Noise can make the trace small, or negative.  A factor above 2 is out of the question.  The
    # square is positive (`Moments.of`).
    trace = max(float(np.trace(spread.matrix)), moments.square / 2)
    # Two estimates of the factor are averaged with weights in proportion to the inverse of their
    # variances: the measured one, square / trace, and the middle of the least and the largest
    # factor, whose deviation is half their distance.
    prior_mean = (LEAST_FACTOR + MOST_FACTOR) / 2
    prior_variance = ((MOST_FACTOR - LEAST_FACTOR) / 2) ** 2
    measured_variance = (moments.square_noise / trace) ** 2
    factor = prior_mean + (moments.square / trace - prior_mean) * prior_variance / (
        prior_variance + measured_variance
    )
    return min(max(factor, LEAST_FACTOR), MOST_FACTOR)


def linear_part(mapped: MappedFeatures, size: int) -> Array:
    """Return the matrix that turns coefficients of mapped rows into those of clipped rows.

    Its last row gives the constant, if the model has one.
    """
    columns = [mapped.features.coefficients(unit[:, None]) for unit in np.eye(size)]
    matrix = np.array([np.append(slopes[:, 0], constant) for slopes, constant in columns]).T
    return matrix if mapped.features.intercept else matrix[:-1]


def coefficient_errors(closing: Closing) -> tuple[Array, Array]:
    """Return the coefficients and the covariance of their error.

    Raises `ParameterError` where noise hides the least eigenvalue of the products: the noise matrix
    of p features has a norm of about its deviation times sqrt(2 p).
    """
    values: Any = np.linalg.eigvalsh(closing.spread.matrix)
    refuse_hidden(values, closing.spread.noise * math.sqrt(2 * values.size))
    return closing.coefficients, closing.covariance
