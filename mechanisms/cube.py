"""A vector of the cube, reported as a random corner of a larger cube.

The vector is first rounded to a corner of its own cube at random, without bias.  A corner of the
larger cube is *near* if more than half of its coordinates have the signs of the rounded vector, and
*halfway* if just half of them do.  Near corners have one probability, all others a smaller one.
The larger cube is such that the expectation of a report is the vector.

References: Duchi, Jordan & Wainwright (2018), Section 4.2.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accountant.domains import POSITIVE, IntegerRange, Interval
from accountant.losses.finite_pair import PairLoss, response_pair
from accountant.numerics import Array
from accountant.randomness import Rng, generator, public_generator
from mechanisms.base import (
    EXACT,
    Arithmetic,
    Ball,
    FiniteRows,
    bit_rows,
    declare,
    draw_shape,
    param,
    refuse_size_for_batch,
    sum_log_density,
)
from mechanisms.base.mechanism import cache_blocks
from mechanisms.exact_noise.exact_bernoulli import Bits, bernoulli
from mechanisms.families.mean_oracle import FixedLengthMeanOracle, gamma_ratio, out_of_range


@final
@declare
class CubeLinf(FixedLengthMeanOracle):
    """A corner of a cube: one nearer to the value than to its opposite is more probable.

    The probabilities differ by the factor ``keep / (1 - keep)``.  In even dimensions, a corner
    halfway between the value and its opposite has the smaller probability.

    Examples
    --------
    >>> from mechanisms import CubeLinf
    >>> cube = CubeLinf(dimension=2, radius=1.0, keep=0.75)
    >>> cube.release([0.5, -1.0], rng=0).round(4).tolist()
    [-3.0, 3.0]
    >>> round(cube.loss.pure, 4)
    1.0986
    """

    releases: ClassVar[str] = "a vector of each user, for its mean"
    # Duchi et al. draw from one of two halves of the cube.  Both contain the halfway corners, so in
    # even dimensions that would cost ln(1 + e^epsilon).
    reference: ClassVar[str] = (
        "Duchi, Jordan & Wainwright (2018), Section 4.2; Nguyên et al. (2016) for even dimensions"
    )

    dimension: int = param(IntegerRange(1), "number of coordinates", typical=(3, 4))
    radius: float = param(POSITIVE, "largest absolute value of a coordinate", typical=(1.0,))
    keep: float = param(
        Interval(0.5, 1.0, "()"),
        "keep / (1 - keep) is the ratio of the two probabilities",
        typical=(0.7310585786300049,),  # e / (1 + e), at which epsilon is 1
        knob=True,
    )
    longer: str = out_of_range("greater vector")

    def release(self, value: ArrayLike, rng: Rng = None, size: int | None = None) -> Any:
        """Return one randomised corner for every vector; see `Mechanism.release`."""
        vectors, source = self.values.check(value), generator(rng)
        refuse_size_for_batch(size, vectors, 1)
        public = public_generator(source)
        reports = np.empty(draw_shape(size, vectors.shape))
        rows = reports.reshape(-1, self.dimension)
        for block in cache_blocks(rows, 8 * self.dimension):
            # Every coordinate is rounded to an end of its range, without bias.  The guarantee holds
            # for any rounding, also for a public one (docs/proofs/vectors.md).
            uniform = public.random(rows[block].shape)
            uniform -= 0.5
            uniform *= 2 * self.radius
            corners = uniform < (vectors if vectors.ndim == 1 else vectors[block])
            rows[block] = np.where(self._randomised_corners(corners, source), self.end, -self.end)
        return reports

    def _randomised_corners(self, corners: Bits, rng: np.random.Generator) -> Bits:
        """Return a randomised corner for each row of ``corners``, the rounded vectors, as bits."""
        # A uniform corner is drawn.  A coin of probability keep decides whether the report is near;
        # where the drawn corner is not as decided, its opposite is taken.  A halfway corner is
        # reported with probability 2 (1 - keep); otherwise all is drawn again.  Only exact bits
        # decide.
        reported = np.empty_like(corners)
        pending = np.arange(len(corners))
        while pending.size:
            drawn = fair_bit_rows(pending.size, self.dimension, rng)
            # The number of coordinates that agree with the user's corner, less those that do not.
            lead = 2 * np.count_nonzero(drawn == corners[pending], axis=1) - self.dimension
            is_near = bernoulli(self.keep, pending.shape, rng)
            is_flipped = ((lead > 0) != is_near) & (lead != 0)
            drawn ^= is_flipped[:, None]
            reported[pending] = drawn
            halfway = pending[lead == 0]
            pending = halfway[bernoulli(2 * self.keep - 1, halfway.shape, rng)]
        return reported

    def log_density(self, output: ArrayLike, value: ArrayLike, each: bool = False) -> Array:
        """Return the log-probability of a corner, summed."""
        vectors, reports = self.values.check(value), np.asarray(output, dtype=float)
        # P(z | v) is proportional to 1 - keep + (2 keep - 1) P(more than half of the coordinates
        # of the rounded v have the sign of those of z).
        agree = (1 + np.sign(reports) * (vectors / self.radius)) / 2
        majority = majority_probability(agree)
        terms = np.log1p(-self.keep + (2 * self.keep - 1) * majority) - math.log(self._mean_weight)
        possible = (np.abs(reports) == self.end).all(axis=-1)
        terms = np.where(possible, terms - self.dimension * math.log(2), -np.inf)
        return sum_log_density(terms, vectors.ndim - 1, each)

    @property
    def end(self) -> float:
        """The absolute value of every coordinate of a report, which makes it unbiased."""
        # For corners z and V of the cube of side 2, E<z, V> = (keep - 1/2) E|S| / W, where W is the
        # mean weight, S the sum of d random signs, and E|S| = d C(2m, m) / 4^m with m = floor(d/2).
        per_coordinate = (
            (self.keep - 0.5)
            / self._mean_weight
            * central_binomial_probability(self.dimension // 2)
        )
        return self.radius / per_coordinate

    @property
    def length(self) -> float:
        """The Euclidean length of a corner."""
        return math.sqrt(self.dimension) * self.end

    @classmethod
    def _closed_form(cls, epsilon: float, delta: float, fields: Any) -> float | None:
        del fields
        return None if delta else 1 / (1 + math.exp(-epsilon))

    @property
    def loss(self) -> PairLoss:
        """The loss of three outcomes: corners near the value, near its opposite, and halfway."""
        near_mass = (1 - self._halfway_share) / 2 / self._mean_weight  # over its weight ``keep``
        # The masses are moved apart by 16 units in their last place, for their round-off.
        return response_pair(self.keep * near_mass, (1 - self.keep) * near_mass, ulps=16.0)

    @property
    def _halfway_share(self) -> float:
        """The share of all corners that is halfway between a corner and its opposite."""
        return 0.0 if self.dimension % 2 else central_binomial_probability(self.dimension // 2)

    @property
    def _mean_weight(self) -> float:
        """The mean weight of a corner, ``keep`` or ``1 - keep``, by which weights are divided."""
        return (1 - self._halfway_share * (2 * self.keep - 1)) / 2

    def worst_pair(self, epsilon: float = 0.0) -> tuple[Array, Array]:
        """Return two opposite corners, for any epsilon."""
        del epsilon
        corner = np.full(self.dimension, self.radius)
        return corner, -corner

    @property
    def values(self) -> Ball:
        """The vectors of the cube."""
        return Ball(self.dimension, self.radius, math.inf, self.longer == "clip")

    @property
    def support(self) -> FiniteRows:
        """The corners of the larger cube."""
        ends = np.array([-self.end, self.end])
        return FiniteRows(2**self.dimension, lambda: ends[bit_rows(self.dimension)])

    @property
    def arithmetic(self) -> Arithmetic:
        """EXACT: given the rounded vector, only exact bits decide."""
        return EXACT


def central_binomial_probability(m: int) -> float:
    """Return ``C(2m, m) / 4^m``, the probability that 2m random signs sum to 0."""
    return 1 / (math.sqrt(math.pi) * gamma_ratio(m + 0.5))


def majority_probability(chances: Array) -> Array:
    """Return the probability that more than half of independent events happen."""
    dimension = chances.shape[-1]
    counts = np.zeros((*chances.shape[:-1], dimension + 1))
    counts[..., 0] = 1.0
    for chance in np.moveaxis(chances, -1, 0)[..., None]:
        happens = counts[..., :-1] * chance
        counts *= 1 - chance
        counts[..., 1:] += happens
    probability: Array = counts[..., dimension // 2 + 1 :].sum(axis=-1)
    return probability


def fair_bit_rows(count: int, length: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return rows of fair bits."""
    octets = -(-length // 8)
    raw = np.frombuffer(rng.bytes(count * octets), np.uint8).reshape(count, octets)
    return np.unpackbits(raw, axis=1, count=length).view(bool)
