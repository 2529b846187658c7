"""Noisy moments of features, and a linear map of the features that is made from them.

After the map the features are centred, and a loss of linear models has about the same curvature in
all directions, so that gradient descent converges quickly.  There are two releases, both means over
the n records.  The first is the mean of the rows and of their squared lengths, for rows shortened
to a public bound b.  The second is the mean of the products z z' of centred rows z, shortened to a
multiple of the length that the first release gave.  In both, Gaussian noise is added, in units of
the length to which rows are shortened.  docs/proofs/clipped_gradients.md proves how far one record
moves each.

References: Dwork, Talwar, Thakurta & Zhang (2014) for noisy products; Boehning & Lindsay (1988) for
the bound of the curvature that they give.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from accountant.numerics import Array
from accountant.plans.adjacency import RECORD_RELATIONS, Adjacency, check_relation
from algorithms.base.clipped_gradient_descent import WITHIN, FeatureMap
from algorithms.base.exact_minimum import GAP, minimum_in_l1_ball, project_to_l1_ball
from algorithms.base.row_blocks import clipped_rows, squared_lengths
from algorithms.linear_models.descent_loss import (
    Prospect,
    Steps,
    best_steps,
    curvatures_of,
    kept_part,
    reference_spectra,
    separated,
)

# Both constants bound the map, and so its round-off: clipped_gradients.md, point 5, counts with
# them.  In units of the bound b of rows: the root of the mean squared length is at least this.
SMALLEST = 0.1
# The mean squared length of rows before moments are released, in units of the square of b: normal
# columns within three deviations have 1 / 9, uniform ones 1 / 3.
USUAL = 0.15
# In units of the mean squared length: at least this is added to every eigenvalue of the products,
# before the map divides by their roots.
LEAST_CURVATURE = 1e-3


class Moves(NamedTuple):
    """How far, in Euclidean length, one record moves the sums of moments, products and gradients.

    Each contribution is in units of the length to which it is shortened.
    """

    moments: float
    products: float
    gradient: float

    @classmethod
    def of(cls, relation: str) -> Moves:
        """Return the bounds of docs/proofs/clipped_gradients.md, 1 to 3, for a relation."""
        neighbours = check_relation("relation", relation, RECORD_RELATIONS)
        replaced = neighbours is Adjacency.REPLACE_ONE
        root_two = math.sqrt(2)
        return cls(2.0, root_two, 2.0) if replaced else cls(root_two, 1.0, 1.0)


@final
@dataclass(frozen=True, slots=True)
class BlockMoments:
    """The sum of (a, |a|^2) over the rows of a block, a = x / bound shortened to length 1.

    The entries of x are clipped to ``x_bound`` before.  `WITHIN` shortens each summand by more
    than round-off could lengthen it.
    """

    x_bound: float
    bound: float

    def __call__(self, block: tuple[Any, ...]) -> Array:
        """Return the sum as one vector, which has one coordinate more than a row."""
        rows = clipped_rows(block[0], self.x_bound)
        lengths = np.sqrt(squared_lengths(rows)) / self.bound
        factors = WITHIN / np.maximum(lengths, 1.0) / self.bound
        total = np.asarray(
            rows.T @ factors
            if not isinstance(rows, np.ndarray)
            else np.einsum("ij,i->j", rows, factors)
        )
        return np.append(total, WITHIN * np.square(np.minimum(lengths, 1.0)).sum())


@final
@dataclass(frozen=True, slots=True)
class BlockProducts:
    """The sum of z z' over the rows of a block, z = (x - centre) / bound shortened to length 1.

    It is returned as the upper triangle.  Entries off the diagonal are multiplied by sqrt 2, so
    that the Euclidean length of the vector is the Frobenius norm of the whole matrix.
    """

    x_bound: float
    centre: Array
    bound: float

    def __call__(self, block: tuple[Any, ...]) -> Array:
        """Return the upper triangle as one vector, row by row."""
        rows = clipped_rows(block[0], self.x_bound)
        rows = (rows if isinstance(rows, np.ndarray) else rows.toarray()) - self.centre
        lengths = np.sqrt(squared_lengths(rows)) / self.bound
        rows = rows * (WITHIN / np.maximum(lengths, 1.0) / self.bound)[:, None]
        # einsum is used instead of BLAS, whose last bits depend on its number of threads.
        products = np.einsum("ij,ik->jk", rows, rows)
        upper = np.triu_indices(rows.shape[1])
        weighted: Array = products[upper] * np.where(upper[0] == upper[1], 1.0, math.sqrt(2))
        return weighted


class Moments(NamedTuple):
    """Estimates from the first release, with the standard deviations of their noise."""

    centre: Array  # the mean of rows, shrunk for its noise; 0 if rows are not to be centred
    square: float  # the mean squared distance of rows from the centre
    square_noise: float = 0.0  # on the square
    centre_noise: float = 0.0  # on each coordinate of the centre

    @classmethod
    def of(cls, released: Array, noise: float, bound: float, centred: bool) -> Moments:
        """Return the estimates from a release whose noise has the deviation ``noise``.

        Release and noise are in units of ``bound``.  If not ``centred``, the centre is 0.  Else it
        is the released mean, shortened by the share of its square that is noise (James & Stein
        1961).
        """
        mean, centre = bound * released[:-1], np.zeros(released.size - 1)
        distance_square = bound**2 * released[-1]
        if centred:
            # With the mean m of p coordinates and noise of deviation s, the released mean has
            # E|m + noise|^2 = |m|^2 + p s^2.  The centre is k (m + noise); on average its mean
            # squared distance from rows is E|x|^2 - |centre|^2 if k = |m|^2 / E|m + noise|^2.
            mean_square = float(mean @ mean)
            noise_square = centre.size * (bound * noise) ** 2
            centre = mean * (
                max(0.0, mean_square - noise_square) / mean_square if mean_square else 0.0
            )
            distance_square -= centre @ centre
        # The noise on |x|^2 is noise bound^2, that on |centre|^2 is 2 |centre| noise bound to first
        # order.
        square_noise = noise * bound * math.hypot(bound, 2 * math.sqrt(centre @ centre))
        # Before the release the square is USUAL bound^2, and deviates by as much.  Both estimates
        # are weighted by the inverse of their variances.
        usual = USUAL * bound**2
        weight = 1 / (1 + (square_noise / usual) ** 2)
        square = usual + weight * (distance_square - usual)
        # A square that is too small makes steps too long, so a deviation is added.
        square += usual * math.sqrt(1 - weight)
        square = float(np.clip(square, (SMALLEST * bound) ** 2, bound**2))
        return cls(centre, square, square_noise, bound * noise if centred else 0.0)

    @classmethod
    def unknown(cls, features: int, bound: float) -> Moments:
        """Return what is assumed where no moments are released."""
        return cls(np.zeros(features), USUAL * bound**2, 0.0, 0.0)


class Spread(NamedTuple):
    """The released mean of z z' over rows z about their noisy mean: a noisy covariance matrix."""

    matrix: Array
    noise: float  # deviation on the diagonal; that of other entries is smaller by sqrt 2
    moments: Moments  # of the first release, with the centre


class MappedFeatures(NamedTuple):
    """A map of features, with what gradient descent on mapped rows needs."""

    features: FeatureMap
    length: float  # estimate of the root of the mean squared length of mapped rows
    longest_step: float  # gradient steps below twice this are stable for the loss of the map
    steps: Steps
    spectrum: Array  # eigenvalues of the centred rows' products; they add up to 1
    constant_curvature: float  # of the loss in the constant, times the longest step
    directions: Array | None = None  # the eigenvectors; None if no products were released
    spread: Spread | None = None  # None if no products were released

    def scores(self, theta: Array) -> tuple[float, float]:
        """Return the score of the mean row, and the deviation of scores, from above.

        Mapped rows have the mean 0 and about the covariance ``longest_step^-1 I``, or a smaller
        one.  Nothing rests on it.
        """
        constant, slopes = 0.0, theta
        if self.features.intercept:
            constant, slopes = self.features.intercept * float(theta[-1, 0]), theta[:-1]
        return constant, math.sqrt(float(np.square(slopes).sum()) / self.longest_step)

    def with_constant(self, score: float) -> Array:
        """Return coefficients with which all scores are this one; 0 if there is no constant."""
        theta = np.zeros((self.spectrum.size + bool(self.features.intercept), 1))
        if self.features.intercept:
            theta[-1] = score / self.features.intercept
        return theta

    def noise_square(self, gradient_noise: float) -> float:
        """Return the mean square that noise adds to predictions.

        ``gradient_noise`` is the deviation of the noise of the mean of all gradients.
        """
        curvatures = curvatures_of(self.spectrum, self.steps.ridge)
        constant = np.array([self.constant_curvature])
        variances = [h * self.steps.variance(h) for h in (curvatures, constant)]
        return (self.longest_step * gradient_noise) ** 2 * float(np.concatenate(variances).sum())

    def in_l1_ball(self, theta: Array, radius: float) -> Array:
        """Return the nearest coefficients whose slopes of clipped rows are in the l1 ball.

        The distance is the mean squared difference of predictions, by the products without their
        noise; without products it is that of the slopes.
        """
        slopes, root = self.features.coefficients(theta)[0][:, 0], self.features.root
        if np.abs(slopes).sum() <= radius:
            return theta
        if root is None or self.directions is None:
            nearest = project_to_l1_ball(slopes, radius)
        else:
            directions = self.directions
            products = np.einsum("ij,j,kj->ik", directions, self.spectrum, directions)
            nearest = minimum_in_l1_ball(
                lambda point: np.append(np.einsum("ij,j->i", products, point[:-1] - slopes), 0.0),
                slopes.size,
                radius,
                (float(self.spectrum.max()), 1.0),
                GAP * float(slopes @ products @ slopes),
            )[:-1]
            nearest = np.asarray(np.linalg.solve(root, nearest))
        return np.vstack([nearest[:, None], theta[slopes.size :]])

    def without_noise(
        self, theta: Array, gradient_noise: float, usual: tuple[float, float], least: float = 0.0
    ) -> Array:
        """Return coefficients of mapped rows, shortened where they are no more than their noise.

        ``gradient_noise`` is the deviation of the noise of the mean of all gradients, and ``usual``
        what slopes and the constant usually take off the loss, twice.  Slopes keep the part
        ``least``.
        """
        gradient_square = (self.longest_step * gradient_noise) ** 2
        size, outputs = self.spectrum.size, np.ones(theta.shape[1])
        curvatures = curvatures_of(self.spectrum, self.steps.ridge)
        gone = 1 - self.steps.missing(curvatures)
        # What a direction adds to predictions is in proportion to its curvature.  Without a map the
        # directions are unknown, and all coefficients of features count alike.
        slopes, weights = theta[:size], np.ones(size)
        usual_slopes = usual[0] * self.longest_step * float(np.sum(gone**2))
        if self.directions is not None:
            slopes, weights = np.einsum("ji,jk->ik", self.directions, slopes), curvatures
            usual_slopes = usual[0] * float(np.sum(self.spectrum * gone**2))
        variances = gradient_square * weights * self.steps.variance(curvatures)
        kept_slopes = kept_part(
            weights[:, None] * slopes**2,
            np.outer(variances, outputs),
            usual_slopes * outputs.size,
            1 - float(np.sum(self.spectrum * gone)),
        )
        constant = np.array([self.constant_curvature])
        missing = float(self.steps.missing(constant)[0])
        kept_constant = kept_part(
            constant * theta[size:] ** 2,
            np.outer(gradient_square * constant * self.steps.variance(constant), outputs),
            usual[1] * self.longest_step * (1 - missing) ** 2 * outputs.size,
            missing,
        )
        return np.vstack([theta[:size] * max(kept_slopes, least), theta[size:] * kept_constant])


def mapped_features(
    moments: Moments,
    products: Array | None,
    noise: float,
    shortened_to: float,
    x_bound: float,
    curvature: float,
    prospect: Prospect,
    penalty: float = 0.0,
    row_bound: float = math.inf,
) -> MappedFeatures:
    """Return the map for a loss whose second derivative is at most ``curvature``.

    With the matrix C of the products, without its noise, the mapped row is
    ``H^{-1/2} (x - centre)`` and a constant, where ``H = curvature (C + ridge I) + penalty I``
    estimates a bound on the curvature of the loss.  The ridge, and the length of the constant, are
    those of the least expected loss of the descent (`best_steps`), the ridge not below half the
    norm of the noise on C, nor below `LEAST_CURVATURE`.  Without ``products`` rows are centred, and
    no direction is rescaled.

    ``products`` are the second release.  Their unit is the square of the length to which rows were
    shortened, ``shortened_to`` times the root of ``moments.square``; their noise has the deviation
    ``noise``.
    ``penalty`` is the ridge of the loss, a part of its curvature.  Records whose rows are longer
    than ``row_bound`` have less weight, see `row_weights`.
    """
    square, size = moments.square, moments.centre.size
    if products is None:
        spectra = reference_spectra(size)
        steps = best_steps(spectra, prospect, math.inf)
        constant = steps.constant * math.sqrt(square) if prospect.constant else 0.0
        features = FeatureMap(x_bound, constant, moments.centre, None, row_bound)
        longest_step = 1 / (curvature * square + penalty)
        constant_curvature = curvature * constant**2 * longest_step
        length = math.hypot(constant, math.sqrt(square))
        # Noise adds up most where eigenvalues fall most steeply.
        spectrum = spectra[-1]
        return MappedFeatures(features, length, longest_step, steps, spectrum, constant_curvature)
    # The unit of the products is shortened_to^2 square.  Where ``shortened_to`` is below 1, square
    # is taken instead: if all rows are shortened, their products are too small by shortened_to^2.
    unit = max(shortened_to**2, 1.0) * square
    upper = np.triu_indices(size)
    matrix = np.zeros((size, size))
    matrix[upper] = unit * products / np.where(upper[0] == upper[1], 1.0, math.sqrt(2))
    matrix += np.triu(matrix, 1).T
    eigenvalues, directions = np.linalg.eigh(matrix)
    # A symmetric p x p matrix of noise with deviation s on its diagonal and s / sqrt 2 off it has
    # a norm of about s sqrt(2 p).
    noise_norm = unit * noise * math.sqrt(2 * size)
    eigenvalues = separated(eigenvalues, noise_norm, square)
    spectrum = eigenvalues / max(float(eigenvalues.sum()), 1e-300)
    steps = best_steps([spectrum], prospect, max(LEAST_CURVATURE, noise_norm / (2 * square)))
    curvatures = curvature * (eigenvalues + steps.ridge * square) + penalty
    root = (directions / np.sqrt(curvatures)) @ directions.T
    # Mapped rows have the mean squared length sum_i eigenvalue_i / curvature_i.  The trace of C is
    # known from the first release, and `trace_share` corrects for it.
    trace_share = min(1.0, square / max(float(eigenvalues.sum()), 1e-300))
    length = math.sqrt(trace_share * float((eigenvalues / curvatures).sum()))
    constant = min(1 / math.sqrt(curvature), steps.constant * length) if prospect.constant else 0.0
    length = math.hypot(length, constant)
    features = FeatureMap(x_bound, constant, moments.centre, root, row_bound)
    spread = Spread(matrix, unit * noise, moments)
    constant_curvature = curvature * constant**2
    return MappedFeatures(
        features, length, 1.0, steps, spectrum, constant_curvature, directions, spread
    )
