"""Rounds of local sparse regression: fewer coordinates and smaller residuals from round to round.

Every user reports one number.  A round has three stages, each with users of its own.  At a public
theta with the residuals r = y - <x, theta>, the first stage measures *slopes* ``g_j = E[x_j r]`` of
all coordinates, the second *products* ``G_jk = E[x_j x_k]`` of some of them, the candidates, and
the third *sizes*: which share of the |r| lies beyond some levels.  As E[x r] = G theta* - G theta
for the true theta*, every round gives an estimate ``g + G theta`` of G theta*.  A weighted mean of
these is solved for the next theta, and the sizes choose where residuals are clipped next.

All choices here follow from released means and public numbers: whatever the constants are, the fit
is as private.  docs/sparse-regression.md describes the search for the shares.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol, final

import numpy as np
from numpy.typing import NDArray

from accountant.numerics import Array

Indices = NDArray[np.intp]

# Shares of the users: in each round for slopes, products and sizes; the last share is for the
# slopes of the support, the coordinates that are not 0 in the end.
ROUND_SHARES = ((0.2, 0.07, 0.03), (0.13, 0.07, 0.03), (0.12, 0.07, 0.02), (0.1, 0.06, 0.02))
SHARES = (*(share for shares in ROUND_SHARES for share in shares), 0.08)
CANDIDATES = 2  # candidate coordinates, as a multiple of the sparsity
# Most pairs of candidates whose products are measured, unless the sparsity alone makes more.
MOST_PRODUCTS = 400
MOST_LEVELS = 8  # clips to choose from; neighbouring ones differ by a factor of at most 2
BEYOND = 0.2  # largest share of the residuals that a clip may shorten
# So many users are asked at most that the mean report has these standard deviations: the first for
# each slope of the first round, the second for each product and each size.
FIRST_DEVIATION = 0.03
PRODUCT_DEVIATION = 0.03
# A coordinate counts as explained by noise alone if leaving it out costs at most this many times
# ln(features) variances.
NOISE_ALONE = 3.0
GRAM_ERROR = 0.1  # error of G theta over the length of theta, assumed where rounds are pooled
# Features lie in [-1, 1], so the means of their squares lie in [0, 1].  A measured square is
# averaged with the mean of all of them: with equal weights where its noise has this deviation.
SQUARES_SPREAD = 0.1
# Smaller values are raised to these: the mean of all squares, and each square averaged with it.
LEAST_MEAN_SQUARE, LEAST_SQUARE = 0.1, 0.05
CLEAR_PRODUCT = 2.0  # a product of two features counts where it is more than so many deviations
LEAST_EIGENVALUE = 0.1  # of the matrix of products, as a share of the mean square


class Asker(Protocol):
    """Users who report one number each, about one of the coordinates, pairs or levels asked for.

    ``stage`` is the number of the stage in `SHARES`, which says which users are asked.  They are
    shared out evenly among what is asked for.
    """

    def slopes(
        self, stage: int, columns: Indices, theta: Array, clip: float
    ) -> tuple[Array, Array]:
        """Return means of ``x_j r``, residuals clipped to ``clip``, and how many users each had."""

    def products(self, stage: int, pairs: Indices) -> tuple[Array, Array]:
        """Return means of ``x_j x_k``, and how many users each had; row 0 of ``pairs`` has the j.

        Row 1 has the k.
        """

    def beyond(self, stage: int, levels: Array, theta: Array) -> tuple[Array, Array]:
        """Return shares of residuals beyond each level, and how many users each had."""


@final
@dataclass(frozen=True, slots=True)
class Slopes:
    """Measured slopes of all coordinates at theta, and their variances (infinite: not measured)."""

    theta: Array
    means: Array
    variances: Array


@dataclass(slots=True)
class NarrowingRounds:
    """The protocol: rounds of slopes, products and sizes, and slopes of the support at last.

    ``variance`` is that of a report on a number of [-1, 1].  ``reach`` bounds the first residuals,
    and ``noise``, which is below it, the part of a residual that no theta explains.  ``seen`` has
    the slopes of all stages so far, and ``pairs`` for each pair of coordinates the sum of its
    reports and how many users made them.
    """

    features: int
    sparsity: int
    variance: float
    reach: float
    noise: float
    seen: list[Slopes] = field(default_factory=list)
    pairs: dict[tuple[int, ...], tuple[float, float]] = field(default_factory=dict)

    def enough(self) -> Array:
        """Return for each stage but the last the number of users above which more help little."""
        # m reports of residuals up to a clip have a mean of variance clip^2 variance / m.
        candidate_count = candidates(self.features, self.sparsity)
        slopes = self.features * (self.reach / FIRST_DEVIATION) ** 2
        pairs = candidate_count * (candidate_count + 1) / 2 / PRODUCT_DEVIATION**2
        round_users = [math.inf, pairs, MOST_LEVELS / PRODUCT_DEVIATION**2] * len(ROUND_SHARES)
        return self.variance * np.array([slopes, *round_users[1:]])

    def run(self, users: Asker) -> Array:
        """Ask the users round by round, and return the coefficients theta."""
        everything: Indices = np.arange(self.features)
        theta = np.zeros(self.features)
        clip, candidate_columns, gram = self.reach, everything, np.zeros((0, 0))
        for stage in range(0, 3 * len(ROUND_SHARES), 3):
            self._measure(users, stage, everything, theta, clip)
            candidate_columns = self._candidates()
            gram = self._gram(users, stage + 1, candidate_columns)
            theta = self._fit(candidate_columns, gram)
            clip = self._clip(users, stage + 2, theta)
        support = np.flatnonzero(theta) if theta.any() else candidate_columns
        self._measure(users, len(SHARES) - 1, support, theta, clip)
        positions = np.searchsorted(candidate_columns, support)
        return self._fit(support, gram[np.ix_(positions, positions)])

    def _clip(self, users: Asker, stage: int, theta: Array) -> float:
        """Return the smallest level that few residuals at theta lie beyond."""
        lowest_level = max(self.noise, self.reach / 2**MOST_LEVELS)
        level_count = max(1, math.ceil(math.log2(self.reach / lowest_level)))
        levels = self.reach * (lowest_level / self.reach) ** (
            np.arange(level_count + 1) / level_count
        )
        shares, counts = users.beyond(stage, levels[1:], theta)
        with np.errstate(divide="ignore"):
            # A report is 1 beyond the level and -1 within, so its mean moves by twice the share.
            deviations = np.sqrt(self.variance / 4 / counts)
        fits = shares + deviations <= BEYOND
        # Levels decrease, and beyond each lie more residuals than beyond the one before.  The last
        # level before the first that fails is taken.
        return float(levels[int(np.argmin(np.append(fits, False)))])

    def _measure(
        self, users: Asker, stage: int, columns: Indices, theta: Array, clip: float
    ) -> None:
        means, counts = users.slopes(stage, columns, theta, clip)
        slopes = Slopes(theta, np.zeros(self.features), np.full(self.features, math.inf))
        slopes.means[columns] = means
        with np.errstate(divide="ignore"):
            slopes.variances[columns] = clip * clip * self.variance / counts
        self.seen.append(slopes)

    def _candidates(self) -> Indices:
        """Return the coordinates with the largest estimates by the slopes of all rounds so far."""
        # Where the other features are uncorrelated with x_j, and E x_j^2 = 1, g_j + theta_j is the
        # true coefficient.
        total = sum((slopes.means + slopes.theta) / slopes.variances for slopes in self.seen)
        weight = sum(1 / slopes.variances for slopes in self.seen)
        rank = np.abs(total / np.maximum(weight, 1e-300))
        candidate_count = candidates(self.features, self.sparsity)
        return np.sort(np.argsort(-rank, kind="stable")[:candidate_count])

    def _gram(self, users: Asker, stage: int, candidate_columns: Indices) -> Array:
        """Return the products of the candidates; entries that noise explains become 0."""
        rows, columns = np.triu_indices(len(candidate_columns))
        means, counts = self._products(
            users, stage, np.stack([candidate_columns[rows], candidate_columns[columns]])
        )
        deviation = np.sqrt(self.variance / np.maximum(counts, 0.5))
        squares, square_deviation = means[rows == columns], deviation[rows == columns]
        # A square is averaged with the mean of all, by the inverse of the two variances.
        trusted = 1 / (1 + (square_deviation / SQUARES_SPREAD) ** 2)
        mean_square = np.clip(squares.mean(), LEAST_MEAN_SQUARE, 1.0)
        squares = np.clip(trusted * squares + (1 - trusted) * mean_square, LEAST_SQUARE, 1.0)
        gram = np.zeros((len(candidate_columns), len(candidate_columns)))
        gram[rows, columns] = np.where(np.abs(means) > CLEAR_PRODUCT * deviation, means, 0.0)
        gram = gram + gram.T
        np.fill_diagonal(gram, squares)
        values, vectors = np.linalg.eigh(gram)
        eigenvalue_floor = LEAST_EIGENVALUE * float(squares.mean())
        positive_definite: Array = (vectors * np.maximum(values, eigenvalue_floor)) @ vectors.T
        return positive_definite

    def _products(self, users: Asker, stage: int, pairs: Indices) -> tuple[Array, Array]:
        """Return means and numbers of users of the pairs, including those of earlier rounds."""
        means, counts = users.products(stage, pairs)
        for i, pair in enumerate(zip(*pairs.tolist(), strict=True)):
            total, users_before = self.pairs.get(pair, (0.0, 0.0))
            self.pairs[pair] = total + means[i] * counts[i], users_before + counts[i]
        pooled = np.array([self.pairs[pair] for pair in zip(*pairs.tolist(), strict=True)])
        return pooled[:, 0] / np.maximum(pooled[:, 1], 1), pooled[:, 1]

    def _fit(self, candidate_columns: Indices, gram: Array) -> Array:
        """Return a sparse theta on the candidates; it is 0 if noise alone explains all slopes.

        Theta solves G theta = target on a support, from which coordinates are left out one by one:
        without coordinate j the least (target - G theta)' G^-1 (target - G theta) grows by
        theta_j^2 / (G^-1)_jj.
        """
        target, variance = self._pooled(candidate_columns, gram)
        support = np.arange(len(candidate_columns))
        limit = NOISE_ALONE * math.log(max(self.features, 2)) * variance
        while len(support):
            inverse = np.linalg.inv(gram[np.ix_(support, support)])
            solution = inverse @ target[support]
            costs = np.square(solution) / inverse.diagonal()
            weakest = int(np.argmin(costs / limit[support]))
            if len(support) <= self.sparsity and costs[weakest] > limit[support][weakest]:
                break
            support = np.delete(support, weakest)
        theta = np.zeros(self.features)
        if len(support):
            theta[candidate_columns[support]] = solution
        return theta

    def _pooled(self, candidate_columns: Indices, gram: Array) -> tuple[Array, Array]:
        """Return ``G theta`` of the true theta on the candidates, and its variances."""
        latest = self.seen[-1].theta[candidate_columns]
        total, weight = np.zeros(len(candidate_columns)), np.zeros(len(candidate_columns))
        for slopes in self.seen:
            theta = slopes.theta[candidate_columns]
            # g + G theta has an error from G too.  It is the same in rounds of the same theta, and
            # differs from that of the latest round in proportion to the move of theta since then.
            moved = float(np.sum(np.square(latest - theta))) * GRAM_ERROR**2
            share = 1 / (slopes.variances[candidate_columns] + moved)
            total += share * (slopes.means[candidate_columns] + gram @ theta)
            weight += share
        weight = np.where(weight > 0, weight, 1e-300)
        return total / weight, 1 / weight


def candidates(features: int, sparsity: int) -> int:
    """Return how many coordinates have their products measured."""
    # k coordinates have k (k + 1) / 2 pairs: this is the largest k with at most MOST_PRODUCTS.
    product_limit = int((math.sqrt(8 * MOST_PRODUCTS + 1) - 1) / 2)
    return min(max(CANDIDATES * sparsity, 2), features, max(product_limit, sparsity))
