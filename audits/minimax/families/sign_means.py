"""Signs on every coordinate: the hard family of a private mean, sampled or laid down in copies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from accountant.domains import POSITIVE, IntegerRange, Interval
from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.numerics.rounding import round_up
from audits.minimax.information.bernoulli_kl import most_right_given_information
from audits.minimax.information.group_decoding import most_right_at_distance
from audits.minimax.information.sign_index import index_of_signs, power_of_two, signs_of
from audits.minimax.information.sign_information import posterior_divergence, sign_information

SHIFT = Interval(0.0, 1.0, "(]")


@final
@dataclass(frozen=True, slots=True)
class SignMeans:
    """Users' vectors are independent signs of mean ``shift`` or ``-shift``, at length ``radius``.

    Point v, one of ``2^dimension``, has the mean ``radius * shift / sqrt(p) * v``.
    """

    dimension: int
    shift: float = 1.0
    radius: float = 1.0
    central: ClassVar[bool] = False  # who is trusted with the data

    def __post_init__(self) -> None:
        IntegerRange(1).check("dimension", self.dimension)
        SHIFT.check("shift", self.shift)
        POSITIVE.check("radius", self.radius)

    @property
    def points(self) -> int:
        """``2^dimension``, a number of any size."""
        return 1 << self.dimension

    @property
    def separation(self) -> float:
        """Euclidean distance of two means that differ in one sign."""
        return 2 * self.radius * self.shift / math.sqrt(self.dimension)

    def parameter(self, which: int) -> Array:
        """The mean of a user's vector."""
        scale = self.radius * self.shift / math.sqrt(self.dimension)
        return scale * signs_of(which, self.dimension)

    def sample(self, which: int, n: int, rng: np.random.Generator) -> Array:
        """Vectors of n users, (n, dimension), each of length ``radius``."""
        signs = signs_of(which, self.dimension)
        kept = rng.random((IntegerRange(1).check("n", n), self.dimension)) < (1 + self.shift) / 2
        vectors: Array = np.where(kept, signs, -signs) * (self.radius / math.sqrt(self.dimension))
        return vectors

    def decode(self, estimate: Array) -> int:
        """The point whose signs the estimate has."""
        return index_of_signs(estimate, self.dimension)

    def most_right(self, n: int, epsilon: float) -> float:
        """Largest probability of a right decode, non-interactive epsilon-LDP; see the proof."""
        known = IntegerRange(1).check("n", n) * user_information(
            self.dimension, self.shift, epsilon
        )
        return most_right_given_information(known, power_of_two(self.dimension))


@final
@dataclass(frozen=True, slots=True)
class SignCopies:
    """Data sets of ``n`` vectors: ``copies`` times one vector of signs, and zeros.

    Their means lie ``copies / n`` of the radius from 0, and ``copies`` records apart.
    """

    dimension: int
    n: int
    copies: int
    radius: float = 1.0
    central: ClassVar[bool] = True  # who is trusted with the data

    def __post_init__(self) -> None:
        IntegerRange(1).check("dimension", self.dimension)
        IntegerRange(1, IntegerRange(1).check("n", self.n)).check("copies", self.copies)
        POSITIVE.check("radius", self.radius)

    @property
    def points(self) -> int:
        """``2^dimension``, a number of any size."""
        return 1 << self.dimension

    @property
    def separation(self) -> float:
        """Euclidean distance of two means that differ in one sign."""
        return 2 * self.radius * self.copies / self.n / math.sqrt(self.dimension)

    def parameter(self, which: int) -> Array:
        """The mean of the data set."""
        scale = self.radius * self.copies / self.n / math.sqrt(self.dimension)
        return scale * signs_of(which, self.dimension)

    def sample(self, which: int, n: int, rng: np.random.Generator) -> Array:
        """The data set, (n, dimension), in random order; n is its own."""
        if n != self.n:
            raise ParameterError("n", n, f"{self.n}, the size of these data sets")
        vectors = np.zeros((self.n, self.dimension))
        scale = self.radius / math.sqrt(self.dimension)
        vectors[rng.permutation(n)[: self.copies]] = scale * signs_of(which, self.dimension)
        return vectors

    def decode(self, estimate: Array) -> int:
        """The point whose signs the estimate has."""
        return index_of_signs(estimate, self.dimension)

    def most_right(self, n: int, epsilon: float, delta: float = 0.0) -> float:
        """Largest probability of a right decode under central (epsilon, delta)-DP, replace-one."""
        if n != self.n:
            raise ParameterError("n", n, f"{self.n}, the size of these data sets")
        return most_right_at_distance(self.dimension * math.log(2), self.copies, epsilon, delta)


def user_information(dimension: int, shift: float, epsilon: float) -> float:
    """Most nats that a user's report tells of the point: ``min(d^2 (A - 1 - ln A), p phi(d))``."""
    private = shift * shift * posterior_divergence(epsilon)
    return round_up(min(private, dimension * float(sign_information(np.array(shift)))))
