"""Local privacy for the mean of vectors: each is reported as a random direction of its hemisphere.

A user's vector v of the Euclidean ball is first rounded at random to a vector of full length along
its line, without bias.  A report is uniform on the hemisphere around that vector with probability
``keep``, else uniform on the opposite one.  It has a length at which its expectation is v.

References: Duchi, Jordan & Wainwright (2018), Section 4.2.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.domains import POSITIVE, IntegerRange, Interval
from accountant.losses.finite_pair import PairLoss
from accountant.numerics import Array
from accountant.randomness import Rng, generator, public_generator
from mechanisms.base import (
    EXACT,
    Arithmetic,
    Ball,
    declare,
    draw_shape,
    norms,
    param,
    refuse_size_for_batch,
    sum_log_density,
)
from mechanisms.base.mechanism import cache_blocks
from mechanisms.exact_noise.exact_bernoulli import bernoulli
from mechanisms.families.mean_oracle import (
    FixedLengthMeanOracle,
    gamma_ratio,
    on_sphere,
    out_of_range,
    relative_norm,
    stochastic_round,
)
from mechanisms.families.sphere_support import SphereSupport


@final
@declare
class HemisphereL2(FixedLengthMeanOracle):
    """A direction of the value's hemisphere with probability ``keep``, else of the opposite one.

    Examples
    --------
    >>> from mechanisms import HemisphereL2
    >>> one = HemisphereL2(dimension=2, radius=1.0, keep=0.75)
    >>> one.release([0.6, 0.8], rng=0).round(4).tolist()
    [-2.1659, 2.2757]
    >>> round(one.length, 4), round(one.loss.pure, 4)
    (3.1416, 1.0986)
    """

    releases: ClassVar[str] = "a vector of each user, for its mean"
    reference: ClassVar[str] = "Duchi, Jordan & Wainwright (2018), Section 4.2"

    dimension: int = param(IntegerRange(1), "number of coordinates", typical=(3,))
    radius: float = param(POSITIVE, "largest Euclidean norm of a vector", typical=(1.0,))
    keep: float = param(
        Interval(0.5, 1.0, "()"),
        "probability of the vector's own hemisphere",
        typical=(0.7310585786300049,),  # e / (1 + e), at which epsilon is 1
        knob=True,
    )
    longer: str = out_of_range("longer vector")

    def release(self, value: ArrayLike, rng: Rng = None, size: int | None = None) -> Any:
        """Return one randomised direction for every vector; see `Mechanism.release`."""
        # The vector v is rounded to b v/|v|, where b = +-1 has mean |v| / radius.  For a normal
        # vector u, the report is u or -u, scaled to the length: with probability keep the one in
        # the hemisphere of b v, else the other.  Only the coin of probability keep carries
        # privacy: u, the rounding and the side where floats say <u, v> = 0 may be public
        # (docs/proofs/vectors.md).
        (vectors, shares), source = self.values.check_with_norms(value), generator(rng)
        refuse_size_for_batch(size, vectors, 1)
        public = public_generator(source)
        reports: Array = np.empty(draw_shape(size, vectors.shape))
        rows = reports.reshape(-1, self.dimension)
        for at in cache_blocks(rows, 8 * self.dimension):
            vector, share = (vectors, shares) if vectors.ndim == 1 else (vectors[at], shares[at])
            block, users = rows[at], rows[at].shape[:1]
            public.standard_normal(out=block)
            along = np.einsum("...i,...i", block, vector)
            ahead = np.where(along == 0, public.random(users) < 0.5, along > 0)
            positive = stochastic_round(share, users, public)
            # u is reported if it is ahead of b v and the coin says keep, or if neither is so.  It
            # is ahead of b v where ``ahead`` and ``positive``, which is b = 1, are equal.
            reported = bernoulli(self.keep, users, source) ^ positive ^ ahead
            scale = self.length / norms(block, 2)
            block *= np.where(reported, scale, -scale)[:, None]
        return reports

    def log_density(self, output: ArrayLike, value: ArrayLike, each: bool = False) -> Array:
        """Return the log-density relative to the uniform distribution on the sphere, summed."""
        vectors, reports = self.values.check(value), np.asarray(output, dtype=float)
        along = np.sign(np.einsum("...i,...i", reports / self.length, vectors))
        # P(hemisphere of v) = 1/2 + (keep - 1/2) |v| / radius.  Each hemisphere is half of the
        # sphere, so the density is 1 + tilt in it and 1 - tilt in the opposite one.
        tilt = (2 * self.keep - 1) * np.minimum(relative_norm(vectors, self.radius), 1.0)
        terms = np.where(on_sphere(reports, self.length), np.log1p(along * tilt), -np.inf)
        return sum_log_density(terms, vectors.ndim - 1, each)

    @property
    def length(self) -> float:
        """The Euclidean length of every report, which makes it unbiased."""
        # For v of full length and the direction u of its report, E<u, v/|v|> = (2 keep - 1) E|z_1|
        # with z uniform on the unit sphere in d dimensions.  There
        # E|z_1| = Gamma(d/2) / (sqrt(pi) Gamma((d+1)/2)), and `gamma_ratio` is the inverse quotient
        # of the two Gammas.
        mean_coordinate = 1 / (math.sqrt(math.pi) * gamma_ratio(self.dimension / 2))
        return self.radius / (2 * self.keep - 1) / mean_coordinate

    @classmethod
    def _closed_form(cls, epsilon: float, delta: float, fields: Any) -> float | None:
        # The keep at which delta(epsilon) = keep - e^epsilon (1 - keep) is delta.
        del fields
        return (1 + delta * math.exp(-epsilon)) / (1 + math.exp(-epsilon))

    @property
    def loss(self) -> PairLoss:
        """The loss of opposite vectors: a report is in the one's hemisphere or in the other's."""
        return PairLoss((self.keep, 1 - self.keep), (1 - self.keep, self.keep))

    def worst_pair(self, epsilon: float = 0.0) -> tuple[Array, Array]:
        """Return two opposite vectors of full length, for any epsilon."""
        del epsilon
        vector = self.radius * np.eye(self.dimension)[0]
        return vector, -vector

    @property
    def values(self) -> Ball:
        """The vectors of the ball."""
        return Ball(self.dimension, self.radius, 2.0, self.longer == "clip")

    @property
    def support(self) -> SphereSupport:
        """The sphere of reports, divided into two hemispheres."""
        return SphereSupport(self.dimension, self.length, (0.0,))

    @property
    def arithmetic(self) -> Arithmetic:
        """EXACT: floats decide the direction up to its sign, and exact bits the sign."""
        return EXACT
