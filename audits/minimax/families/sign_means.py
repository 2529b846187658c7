"""The hard families of a private mean: distributions whose mean has one of two signs everywhere.

A sign per coordinate says which way the mean of that coordinate leans.  An accurate estimate of the
mean would reveal the signs, which private releases cannot.  Records are random, or are copies.

Proofs: `docs/proofs/minimax_mean.md`.
"""

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
    """Users' vectors of independent signs with mean ``shift`` or ``-shift``, at length ``radius``.

    Point v, one of ``2^dimension`` sign vectors, has the mean ``radius * shift / sqrt(p) * v``.

    Parameters
    ----------
    dimension : int
        Length p of a vector.
    shift : float, optional
        Mean of a sign, in (0, 1].
    radius : float, optional
        Euclidean length of every vector.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    References
    ----------
    Assouad (1983).  Proof: ``docs/proofs/minimax_mean.md``.

    Examples
    --------
    >>> from audits.minimax import SignMeans
    >>> family = SignMeans(dimension=3, shift=0.5)
    >>> family.parameter(5)
    array([ 0.28867513, -0.28867513,  0.28867513])
    >>> round(family.most_right(n=100, epsilon=0.5), 4)
    0.6607
    """

    dimension: int
    shift: float = 1.0
    radius: float = 1.0
    central: ClassVar[bool] = False  # the local model

    def __post_init__(self) -> None:
        IntegerRange(1).check("dimension", self.dimension)
        SHIFT.check("shift", self.shift)
        POSITIVE.check("radius", self.radius)

    @property
    def points(self) -> int:
        """``2^dimension``, an integer of any size."""
        return 1 << self.dimension

    @property
    def separation(self) -> float:
        """The Euclidean distance of two means that differ in one sign."""
        return 2 * self.radius * self.shift / math.sqrt(self.dimension)

    def parameter(self, which: int) -> Array:
        """Compute the mean of a user's vector at a point.

        Parameters
        ----------
        which : int
            The point, from 0 to ``points - 1``.

        Returns
        -------
        array
            The mean, shape (dimension,).
        """
        scale = self.radius * self.shift / math.sqrt(self.dimension)
        return scale * signs_of(which, self.dimension)

    def sample(self, which: int, n: int, rng: np.random.Generator) -> Array:
        """Draw the vectors of ``n`` users.

        Parameters
        ----------
        which : int
            The point, from 0 to ``points - 1``.
        n : int
            Number of users.
        rng : numpy.random.Generator
            The generator.

        Returns
        -------
        array
            Vectors of length ``radius``, shape (n, dimension).
        """
        signs = signs_of(which, self.dimension)
        agrees = rng.random((IntegerRange(1).check("n", n), self.dimension)) < (1 + self.shift) / 2
        vectors: Array = np.where(agrees, signs, -signs) * (self.radius / math.sqrt(self.dimension))
        return vectors

    def decode(self, estimate: Array) -> int:
        """Find the point with the signs of an estimate.

        Parameters
        ----------
        estimate : array
            An estimate of the mean, shape (dimension,).

        Returns
        -------
        int
            The point, from 0 to ``points - 1``.
        """
        return index_of_signs(estimate, self.dimension)

    def most_right(self, n: int, epsilon: float) -> float:
        """Bound the probability of a right decode from non-interactive epsilon-LDP reports.

        Parameters
        ----------
        n : int
            Number of users.
        epsilon : float
            Positive.

        Returns
        -------
        float
            The probability, rounded up.
        """
        information = IntegerRange(1).check("n", n) * user_information(
            self.dimension, self.shift, epsilon
        )
        return most_right_given_information(information, power_of_two(self.dimension))


@final
@dataclass(frozen=True, slots=True)
class SignCopies:
    """Data sets of ``n`` vectors: ``copies`` times one sign vector, and zeros.

    The means lie ``copies / n`` of the radius from 0; any two data sets are ``copies`` records
    apart.

    Parameters
    ----------
    dimension : int
        Length p of a vector.
    n : int
        Number of records.
    copies : int
        Number of copies of the sign vector, 1 to n.
    radius : float, optional
        Euclidean length of the sign vector.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    References
    ----------
    Proof: ``docs/proofs/minimax_mean.md``, part 6.

    Examples
    --------
    >>> from audits.minimax import SignCopies
    >>> family = SignCopies(dimension=4, n=10, copies=5)
    >>> family.parameter(15)
    array([0.25, 0.25, 0.25, 0.25])
    >>> round(family.most_right(10, epsilon=0.1), 4)
    0.099
    """

    dimension: int
    n: int
    copies: int
    radius: float = 1.0
    central: ClassVar[bool] = True  # the central model

    def __post_init__(self) -> None:
        IntegerRange(1).check("dimension", self.dimension)
        IntegerRange(1, IntegerRange(1).check("n", self.n)).check("copies", self.copies)
        POSITIVE.check("radius", self.radius)

    @property
    def points(self) -> int:
        """``2^dimension``, an integer of any size."""
        return 1 << self.dimension

    @property
    def separation(self) -> float:
        """The Euclidean distance of two means that differ in one sign."""
        return 2 * self.radius * self.copies / self.n / math.sqrt(self.dimension)

    def parameter(self, which: int) -> Array:
        """Compute the mean of the data set of a point.

        Parameters
        ----------
        which : int
            The point, from 0 to ``points - 1``.

        Returns
        -------
        array
            The mean, shape (dimension,).
        """
        scale = self.radius * self.copies / self.n / math.sqrt(self.dimension)
        return scale * signs_of(which, self.dimension)

    def sample(self, which: int, n: int, rng: np.random.Generator) -> Array:
        """Draw the data set of a point, in random order.

        Parameters
        ----------
        which : int
            The point, from 0 to ``points - 1``.
        n : int
            Number of records, which must be the family's own.
        rng : numpy.random.Generator
            The generator of the order.

        Returns
        -------
        array
            The records, shape (n, dimension).
        """
        if n != self.n:
            raise ParameterError("n", n, f"{self.n}, the size of these data sets")
        vectors = np.zeros((self.n, self.dimension))
        scale = self.radius / math.sqrt(self.dimension)
        vectors[rng.permutation(n)[: self.copies]] = scale * signs_of(which, self.dimension)
        return vectors

    def decode(self, estimate: Array) -> int:
        """Find the point with the signs of an estimate.

        Parameters
        ----------
        estimate : array
            An estimate of the mean, shape (dimension,).

        Returns
        -------
        int
            The point, from 0 to ``points - 1``.
        """
        return index_of_signs(estimate, self.dimension)

    def most_right(self, n: int, epsilon: float, delta: float = 0.0) -> float:
        """Bound the probability of a right decode under central privacy for one replaced record.

        Parameters
        ----------
        n : int
            Number of records, which must be the family's own.
        epsilon : float
            Positive.
        delta : float, optional
            In [0, 1).

        Returns
        -------
        float
            The probability, rounded up.
        """
        if n != self.n:
            raise ParameterError("n", n, f"{self.n}, the size of these data sets")
        return most_right_at_distance(self.dimension * math.log(2), self.copies, epsilon, delta)


def user_information(dimension: int, shift: float, epsilon: float) -> float:
    """Upper bound in nats on a report's information about the point, rounded up.

    It is the lesser of ``d^2`` times the `posterior_divergence` and p times the `sign_information`
    of d, where d is the shift and p the dimension.  The second is the information in the user's own
    vector.
    """
    of_report = shift * shift * posterior_divergence(epsilon)
    of_vector = dimension * float(sign_information(np.array(shift)))
    # 1e4 units in the last place, 2.2e-12, are above the error of `sign_information`.
    return round_up(min(of_report, of_vector), ulps=1e4)
