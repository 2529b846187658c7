"""Confidence intervals where the curvature of the loss is not constant.

After the rounds two more means are released at theta, where they ended: the products of mapped rows
u, each with the curvature w of its record's loss, H = mean of w u u'; and the gradient, clipped so
that hardly any record is.  One Newton step d = -H^-1 (gradient + noise) leads from theta to the
minimiser of the records, up to an error whose covariance is known: point 6 of
docs/proofs/linear_regression.md.

References: Bickel (1975) for one Newton step.
"""

from __future__ import annotations

import math
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from sklearn.utils.validation import check_is_fitted

from accountant.errors import ParameterError
from accountant.numerics import Array
from algorithms.base.clipped_gradient_descent import WITHIN, FeatureMap, MeanOfClippedGradients
from algorithms.base.column_bounds import PrivatelyBounded
from algorithms.base.glm_losses import ScoreLoss
from algorithms.base.intervals import CONFIDENCE, normal_interval
from algorithms.base.row_blocks import MeanOfBlocks, clipped_rows, row_products, squared_lengths
from algorithms.linear_models.closing_gradient import linear_part
from algorithms.linear_models.feature_moments import MappedFeatures
from algorithms.linear_models.mapped_plan import noise_of
from algorithms.linear_models.sufficient_statistics import refuse_hidden

# The weight, beside a clipped gradient, of its squared length.
SQUARE_WEIGHT = 0.3
# The shares of the two releases, in place of a part of the rounds.
FOR_INTERVALS = {"curvature": 0.15, "closing": 0.35, "square_weight": SQUARE_WEIGHT}
# The following constants were chosen on made-up designs.  The clipping norm of the last gradient,
# over the deviation of the lengths of gradients, is between the first two; there it is the one
# whose noise is as large as the sampling error.
LEAST_CLIPPING, MOST_CLIPPING = 4.0, 8.0
# Rows are shortened to a multiple of their length for the products: one whose noise has a norm of
# PRODUCT_NOISE mean eigenvalues, between the other two numbers.
PRODUCT_NOISE, LEAST_LENGTH, MOST_LENGTH = 0.07, 1.5, 4.0
LEAST_MEAN = 1e-3  # the least mean curvature that is reckoned with


@final
@dataclass(frozen=True, slots=True)
class BlockCurvature:
    """The sum of z z' over a block, z = sqrt(w) u / length shortened to length 1.

    The w are curvatures of the loss, over their bound.  The sum is the upper triangle, in which
    entries off the diagonal are multiplied by sqrt 2, as in `BlockProducts`.
    """

    loss: ScoreLoss
    features: FeatureMap
    theta: Array
    length: float

    def __call__(self, block: tuple[Any, ...]) -> Array:
        """Return the upper triangle as one vector, row by row."""
        rows = clipped_rows(block[0], self.features.x_bound)
        slopes, constant = self.features.coefficients(self.theta)
        scores = np.stack([row_products(rows, column) for column in slopes.T], axis=1) + constant
        curvatures = np.clip(self.loss.curvatures(scores, block[1]), 0.0, 1.0)
        weights = np.sqrt(curvatures * self.features.row_weights(rows))
        mapped = self.features.mapped(rows)
        if self.features.intercept:
            mapped = np.hstack([mapped, np.full((len(mapped), 1), self.features.intercept)])
        mapped = mapped * weights[:, None]
        lengths = np.sqrt(squared_lengths(mapped)) / self.length
        mapped = mapped * (WITHIN / np.maximum(lengths, 1.0) / self.length)[:, None]
        # einsum is used instead of BLAS, whose last bits depend on its number of threads.
        products = np.einsum("ij,ik->jk", mapped, mapped)
        upper = np.triu_indices(mapped.shape[1])
        weighted: Array = products[upper] * np.where(upper[0] == upper[1], 1.0, math.sqrt(2))
        return weighted


class CurvedClosing(NamedTuple):
    """The estimate after the last two releases."""

    coefficients: Array  # of the minimiser, for clipped rows, the constant last
    covariance: Array  # of the error of these coefficients
    eigenvalues: Array  # of the released curvature, in ascending order
    noise: float  # about the norm of the noise on the curvature

    def errors(self) -> tuple[Array, Array]:
        """Return coefficients and their deviations; refuse what noise hides."""
        refuse_hidden(self.eigenvalues, self.noise)
        return self.coefficients, np.sqrt(np.maximum(np.diag(self.covariance), 0.0))


def close_curved(
    ledger: Any,
    mapped: MappedFeatures,
    theta: Array,
    loss: ScoreLoss,
    deviation: float,
    executor: Executor | None,
) -> CurvedClosing:
    """Release the curvature and the last gradient at theta, and return the Newton step from it.

    ``deviation`` is about that of the lengths of gradients.
    """
    (for_products, for_gradient), records = ledger.plan.parts[-2:], ledger.shape[0]
    size, product_noise = theta.size, noise_of(for_products)
    # With the unit s^2 length^2 of products, noise has a norm of about sqrt(2 q) times its
    # deviation; q eigenvalues add up to about length^2 times the mean curvature.
    relative = max(product_noise * math.sqrt(2 * size) * size, 1e-9)
    stretch = min(max(math.sqrt(PRODUCT_NOISE / relative), LEAST_LENGTH), MOST_LENGTH)
    length = (
        stretch
        * mapped.length
        * math.sqrt(max(loss.mean_curvature(*mapped.scores(theta)), LEAST_MEAN))
    )
    work = BlockCurvature(loss, mapped.features, theta, length)
    query = MeanOfBlocks(work, records, executor)
    released = ledger.release(for_products, query, shape=size * (size + 1) // 2)
    unit, upper = loss.smoothness * length**2, np.triu_indices(size)
    curvature = np.zeros((size, size))
    curvature[upper] = unit * released / np.where(upper[0] == upper[1], 1.0, math.sqrt(2))
    curvature += np.triu(curvature, 1).T
    # A gradient's sampling error is ``deviation`` / sqrt(n q) in each coordinate.
    noise = noise_of(for_gradient)
    balanced = 1 / max(noise * math.sqrt(records * size), 1e-9)
    norm = min(max(balanced, LEAST_CLIPPING), MOST_CLIPPING) * deviation
    gradients = MeanOfClippedGradients(
        loss.slopes, norm, records, mapped.features, executor, unclipped_weight=SQUARE_WEIGHT
    )
    gradients.theta, gradients.squares = theta, True
    released = ledger.release(for_gradient, gradients, shape=size + 1)
    square = max(0.0, float(released[-1]) / SQUARE_WEIGHT) * norm**2
    eigenvalues, vectors = np.linalg.eigh(curvature)
    # Where noise hides the least eigenvalue, no intervals are handed out: see `errors`.
    curvature_noise = unit * product_noise * math.sqrt(2 * size)
    least_eigenvalue = max(curvature_noise, 1e-12 * float(eigenvalues[-1]), 1e-100)
    inverse = (vectors / np.maximum(eigenvalues, least_eigenvalue)) @ vectors.T
    step = -norm * inverse @ released[:-1]
    # The covariance of what the step sees: of noise, of sampling, and of the noise t of H on the
    # step d, t^2 / 2 (|d|^2 I + d d').
    covariance = (norm * noise) ** 2 * np.eye(size)
    trace = max(float(np.trace(curvature)), 1e-300)
    covariance += square / records / trace * curvature
    covariance += (
        (unit * product_noise) ** 2 / 2 * (step @ step * np.eye(size) + np.outer(step, step))
    )
    to_clipped = linear_part(mapped, size)
    to_clipped_step = to_clipped @ inverse
    return CurvedClosing(
        to_clipped @ (theta[:, 0] + step),
        to_clipped_step @ covariance @ to_clipped_step.T,
        eigenvalues,
        curvature_noise,
    )


class CurvedIntervals(PrivatelyBounded):
    """An estimator with intervals by `close_curved`, whose result is `closing_`."""

    closing_: CurvedClosing | None

    def interval(self, confidence: float = 0.95) -> Array:
        """Return intervals for the coefficients of the least loss in the population.

        They count the noise and the sampling of records.  Their centres are coefficients without a
        ridge, and with the threshold of the fit where the loss has one.

        Parameters
        ----------
        confidence : float
            Probability that an interval covers its coefficient, in (0, 1).

        Returns
        -------
        numpy.ndarray of shape (features, 2)
            Lower and upper ends; with an intercept a last row is its own.

        Raises
        ------
        ParameterError
            If the fit was without ``intervals``, or noise hides a direction of the features.
        """
        check_is_fitted(self)
        CONFIDENCE.check("confidence", confidence)
        if self.closing_ is None:
            raise ParameterError("intervals", False, "True before the fit, with epsilon below inf")
        if self.column_bounds_ is not None:
            return self._scaled_interval(confidence)
        return normal_interval(*self.closing_.errors(), confidence)
