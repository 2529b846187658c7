"""The minimiser of a mean loss of a linear model: what a fit without privacy releases.

The objective is the one that the private rounds descend: the mean over records of ``weight loss(x'
slopes + constant, y)``.  The constant is not penalised, and the slopes may be bound to an l1 ball.
Without a ball, of several minimisers the shortest is taken, its constant with it.

References: Liu & Nocedal (1989) for the quasi-Newton search; Beck & Teboulle (2009) for projected
steps, O'Donoghue & Candes (2015) for their restarts; Jaggi (2013) for the gap that ends them;
Duchi, Shalev-Shwartz, Singer & Chandra (2008) for the projection.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from accountant.ledger.private_data import first_array
from accountant.numerics import Array
from algorithms.base.clipped_gradient_descent import row_weights
from algorithms.base.glm_losses import SQUARED, ScoreObjective
from algorithms.base.row_blocks import (
    row_products,
    squared_lengths,
    sum_over_blocks,
    weight_shares,
    weighted_row_sum,
)

MOST_WHITENED = 1000  # features; the products of more features need too much memory
RANK = 1e-13  # eigenvalues of products below this part of the largest count as 0: round-off
# The search ends at this entry of the gradient, over the largest at 0 or 1, whichever is less.
LEAST_GRADIENT = 1e-9
MOST_STEPS = 2000  # steps of the quasi-Newton search
MOST_PROJECTIONS = 20_000  # projected steps
GAP = 1e-10  # the objective may exceed its minimum by this, over its value at 0 or 1, the lesser

Rows = Callable[[Any], Any]
Weights = Callable[[Any, tuple[Any, ...]], Array]


@final
@dataclass(frozen=True, slots=True)
class BlockObjective:
    """The summed value and gradient of a block of records, at coefficients of mapped rows."""

    objective: ScoreObjective
    rows: Rows
    weights: Weights
    slopes: Array
    constant: Array

    def __call__(self, block: tuple[Any, ...]) -> Array:
        """Return the value, then the gradient by features, the constants last."""
        rows = self.rows(block[0])
        scores = np.stack([row_products(rows, column) for column in self.slopes.T], axis=1)
        scores = scores + self.constant
        values = self.objective.values(scores, block[1])
        slopes = self.objective.slopes(scores, block[1])
        weights = self.weights(rows, block)
        slopes = slopes * weights[:, None]
        gradient = np.stack([weighted_row_sum(rows, column) for column in slopes.T])
        total = np.column_stack([gradient, slopes.sum(axis=0)]).T
        return np.append(float(values @ weights), total.ravel())


@final
@dataclass(frozen=True, slots=True)
class BlockGram:
    """The summed products of weighted rows, to which a constant of 1 is added, in a block."""

    rows: Rows
    weights: Weights

    def __call__(self, block: tuple[Any, ...]) -> Array:
        """Return a symmetric matrix, the constant last."""
        rows = self.rows(block[0])
        weights = self.weights(rows, block)
        rows = rows if isinstance(rows, np.ndarray) else rows.toarray()
        rows = np.hstack([rows, np.ones((len(rows), 1))])
        # einsum is used instead of BLAS, whose last bits depend on its number of threads.
        return np.asarray(np.einsum("ij,i,ik->jk", rows, weights, rows, optimize=False))


@final
@dataclass(frozen=True, slots=True)
class BlockMoments:
    """The sum of weighted rows, of their squared lengths, and of weights, in a block."""

    rows: Rows
    weights: Weights

    def __call__(self, block: tuple[Any, ...]) -> Array:
        """Return the three sums as one vector."""
        rows = self.rows(block[0])
        weights = self.weights(rows, block)
        square = float(squared_lengths(rows) @ weights)
        return np.append(weighted_row_sum(rows, weights), [square, weights.sum()])


def record_weights(
    rows: Any,
    block: tuple[Any, ...],
    *,
    row_bound: float = math.inf,
    intercept: float = 0.0,
    weight_bound: float = 1.0,
    class_weights: Array | None = None,
) -> Array:
    """Return the weight of each record: by its length, its class, and the block's weights if any.

    ``class_weights`` are those of targets 0, 1, ...; None weighs classes alike.
    """
    weights = row_weights(rows, row_bound, intercept)
    if len(block) > 2:
        weights = weights * weight_shares(block[2], weight_bound)
    if class_weights is not None:
        weights = weights * class_weights[block[1].astype(np.intp)]
    return weights


@final
@dataclass(frozen=True)
class ExactMinimum:
    """A query: the minimiser, of shape (features + 1, outputs), the constants last.

    ``rows`` makes the rows of the model from those of the data, ``weights`` says what each record
    counts, and ``l1_radius`` bounds the slopes.  ``ridge`` adds its half times the squared length
    of slopes, without a ball; ``columns`` is how many features ``rows`` gives, if not all.
    """

    objective: ScoreObjective
    rows: Rows
    fit_intercept: bool
    outputs: int = 1
    l1_radius: float = math.inf
    weights: Weights = record_weights
    executor: Executor | None = None
    ridge: float = 0.0
    columns: int | None = None

    def __call__(self, data: Any) -> Array:
        """Return coefficients of the rows that ``rows`` makes."""
        minimiser = self._unbound(data)
        if np.abs(minimiser[:-1]).sum() > self.l1_radius:
            minimiser = self._in_the_ball(data)
        return minimiser

    def _mean(self, work: Any, data: Any) -> Array:
        mean: Array = sum_over_blocks(work, data, self.executor) / first_array(data).shape[0]
        return mean

    def _value_and_gradient(self, data: Any, theta: Array) -> tuple[float, Array]:
        """Return value and gradient at coefficients of shape (features + 1, outputs)."""
        work = BlockObjective(self.objective, self.rows, self.weights, theta[:-1], theta[-1])
        means = self._mean(work, data)
        gradient = means[1:].reshape(theta.shape)
        gradient[:-1] += self.ridge * theta[:-1]
        if not self.fit_intercept:
            gradient[-1] = 0.0
        return float(means[0]) + self.ridge / 2 * float(np.square(theta[:-1]).sum()), gradient

    def _unbound(self, data: Any) -> Array:
        """Return the minimiser without a ball, by a quasi-Newton search.

        Where the products fit into memory, the search is in coordinates in which the loss has about
        the same curvature in all directions (`_whitening`).
        """
        from scipy.optimize import minimize

        features = self.columns or first_array(data).shape[1]
        root, null_space = None, np.zeros((features + 1, 0))
        if features <= MOST_WHITENED:
            gram = self._mean(BlockGram(self.rows, self.weights), data)
            root, null_space = self._whitening(gram)
        size = features + 1 if root is None else root.shape[1]

        def coefficients(flat: Array) -> Array:
            mapped = flat.reshape(size, self.outputs)
            if root is not None:
                mapped = np.einsum("ij,jk->ik", root, mapped)
            return mapped

        def value_and_gradient(flat: Array) -> tuple[float, Array]:
            value, gradient = self._value_and_gradient(data, coefficients(flat))
            if root is not None:
                gradient = np.einsum("ij,ik->jk", root, gradient)
            return value, gradient.ravel()

        start = np.zeros(size * self.outputs)
        # Targets may be small in their units; then so are all gradients.
        largest = float(np.abs(value_and_gradient(start)[1]).max(initial=0.0))
        goal = LEAST_GRADIENT * min(largest, 1.0)
        solution = minimize(
            value_and_gradient,
            start,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": MOST_STEPS, "maxfun": 2 * MOST_STEPS, "ftol": 0.0, "gtol": goal},
        )
        minimiser = coefficients(solution.x)
        # What the null space holds changes no score; without it the minimiser is the shortest.
        shortest: Array = minimiser - null_space @ (null_space.T @ minimiser)
        return shortest

    def _whitening(self, gram: Array) -> tuple[Array, Array]:
        """Return a map R, and an orthonormal basis of coefficients whose scores all are 0.

        The features of R' x have mean squares of 1 and mean products of 0.  Those of x are brought
        to one length first, as some may be in units in which they are very small.
        """
        if not self.fit_intercept:
            gram[-1] = gram[:, -1] = 0.0
        gram[:-1, :-1] += self.ridge * np.eye(len(gram) - 1)
        lengths = np.sqrt(np.diag(gram))
        lengths[lengths == 0] = 1.0
        values, vectors = np.linalg.eigh(gram / np.outer(lengths, lengths))
        in_range = values > RANK * values[-1]
        vectors /= lengths[:, None]
        null_space, _ = np.linalg.qr(vectors[:, ~in_range])
        return vectors[:, in_range] / np.sqrt(values[in_range]), null_space

    def _in_the_ball(self, data: Any) -> Array:
        """Return the minimiser in the l1 ball, by projected steps until the gap is closed.

        The rows are centred, which only changes the constant.
        """
        weight, mean, covariance = self._moments(data)
        centre = mean if self.fit_intercept else np.zeros_like(mean)
        # The spread bounds the largest eigenvalue of the weighted products of centred rows.
        if covariance is None:  # a squared length is at least the largest eigenvalue
            moments = self._mean(BlockMoments(self.rows, self.weights), data)
            spread = float(moments[-2]) - weight * float(centre @ centre)
        else:
            # from products around the mean to those around the centre
            covariance += weight * (np.outer(mean, mean) - np.outer(centre, centre))
            spread = float(np.linalg.eigvalsh(covariance)[-1])
        # Steps of one over a bound of the curvature do not overshoot.
        curvature = self.objective.smoothness
        slope_curvature = curvature * max(spread, 1e-300)

        def value_and_gradient(point: Array) -> tuple[float, Array]:
            """Return value and gradient at slopes and a constant of centred rows."""
            theta = point.copy()
            theta[-1] -= centre @ point[:-1]
            value, gradient = self._value_and_gradient(data, theta[:, None])
            gradient[:-1, 0] -= centre * gradient[-1, 0]
            return value, gradient[:, 0]

        if covariance is not None and getattr(self.objective, "loss", None) is SQUARED:
            # no further pass over the data
            value_and_gradient = self._quadratic(value_and_gradient, covariance, weight)
        largest_gap = GAP * min(value_and_gradient(np.zeros(centre.size + 1))[0], 1.0)
        theta = minimum_in_l1_ball(
            lambda point: value_and_gradient(point)[1],
            centre.size,
            self.l1_radius,
            (slope_curvature, curvature * weight),
            largest_gap,
        )
        theta[-1] -= centre @ theta[:-1]
        return theta[:, None]

    def _moments(self, data: Any) -> tuple[float, Array, Array | None]:
        """Return the mean weight, the weighted mean of rows, and their covariance times weight."""
        if first_array(data).shape[1] > MOST_WHITENED:
            sums = self._mean(BlockMoments(self.rows, self.weights), data)
            return float(sums[-1]), sums[:-2] / sums[-1], None
        gram = self._mean(BlockGram(self.rows, self.weights), data)
        weight, mean = float(gram[-1, -1]), gram[-1, :-1] / gram[-1, -1]
        return weight, mean, gram[:-1, :-1] - weight * np.outer(mean, mean)

    @staticmethod
    def _quadratic(value_and_gradient: Any, covariance: Array, weight: float) -> Any:
        """Return value and gradient of a squared error from its products, read once.

        The error is a quadratic with the second derivatives 2 ``covariance`` and, of the constant,
        2 ``weight``; its value and gradient at 0 are computed.
        """
        start, slope = value_and_gradient(np.zeros(len(covariance) + 1))

        def quadratic(point: Array) -> tuple[float, Array]:
            moved = 2 * np.append(covariance @ point[:-1], weight * point[-1])
            return start + float(point @ (slope + moved / 2)), slope + moved

        return quadratic


def minimum_in_l1_ball(
    gradient_at: Callable[[Array], Array],
    size: int,
    radius: float,
    curvatures: tuple[float, float],
    largest_gap: float,
) -> Array:
    """Return the slopes in the ball, and the constant, of the least value, by projected steps.

    ``curvatures`` bound the second derivative in slopes and in the constant.  For a convex f with
    the gradient g at slopes theta, and r the radius, f - min f <= <g, theta> + r max |g|: that is
    the gap (Jaggi 2013).  ``largest_gap`` also bounds what a step of the constant may still gain.
    """
    slope_curvature, constant_step = curvatures[0], 1 / curvatures[1]
    point = np.zeros(size + 1)
    previous, ahead, momentum = point, point, 1.0
    for _ in range(MOST_PROJECTIONS):
        gradient = gradient_at(ahead)
        slope_gradient = gradient[:-1]
        point = ahead.copy()
        point[:-1] = project_to_l1_ball(ahead[:-1] - slope_gradient / slope_curvature, radius)
        point[-1] -= constant_step * gradient[-1]
        largest = float(np.abs(slope_gradient).max())
        gap = float(slope_gradient @ ahead[:-1]) + radius * largest
        if 0 <= gap <= largest_gap and constant_step * gradient[-1] ** 2 <= largest_gap:
            break
        # The momentum of Beck & Teboulle starts again where it points upwards.
        if float((ahead - point) @ (point - previous)) > 0:
            momentum = 1.0
        following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = point + (momentum - 1) / following * (point - previous)
        previous, momentum = point, following
    return point


def project_to_l1_ball(vector: Array, radius: float) -> Array:
    """Return the nearest vector of l1 norm at most ``radius``."""
    sizes = np.abs(vector)
    if sizes.sum() <= radius:
        return vector
    # Every size is lowered by the same number, such that the positive sizes add up to the radius.
    ordered = np.sort(sizes)[::-1]
    excess = (np.cumsum(ordered) - radius) / np.arange(1, sizes.size + 1)
    lowered = excess[np.flatnonzero(ordered >= excess)[-1]]
    shorter: Array = np.sign(vector) * np.maximum(sizes - lowered, 0.0)
    return shorter
