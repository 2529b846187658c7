"""Data on which a good fit must memorise rows: a code of traceable rows and a ridge.

The *code* is a set of random sign vectors with target 1.  A fit that does well on them correlates
with the vectors it saw more than with others, so that a vector can be traced.  The *ridge* is a set
of orthogonal rows with target 0, which makes large coefficients expensive.

A column is *unanimous* if all code rows have the same sign in it, and *split* if not.  Lemma 3.3 of
the paper says that a fit of small loss has these signs in most unanimous columns.  The paper's
letters are: w code rows in a data set, p columns, k ridge rows, and tau = k / (w p), which is 1 / w
here, as k = p.  The allowed loss is a tau w with a factor a in (1, 2), the ``loss_factor``; theta
are the coefficients of a fit.  The paper's numbers of rows are far too large to be run; the
*scaled* lemma (`agreement`) is the same for any tau and for any share of split columns.

References: Talwar, Thakurta & Zhang (2015), Theorem 3.1, in a scaling that fits a computer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import final

import numpy as np

from accountant.domains import IntegerRange, Interval
from accountant.errors import ParameterError
from accountant.numerics import Array
from audits.minimax.families.bernoulli_products import BernoulliProducts

MIN_FEATURES, MAX_FEATURES = 2, 1 << 14  # columns of a code, a power of two
LOSS_FACTOR = Interval(1.0, 2.0, "()")


@final
@dataclass(frozen=True, slots=True)
class Certificate:
    """Properties of the data sets, computed and not assumed.

    ``orthogonal``: whether the columns of the ridge are so, exactly.  ``unanimous`` is the share of
    columns on which all rows agree.  ``agreement`` is the share of unanimous columns whose signs
    every theta with ``|theta|_1 <= 1`` and loss below ``loss_factor tau w`` must have by the scaled
    Lemma 3.3.  It is 0 if the lemma does not apply: rows may still be traced in the data sets, but
    no theorem says that every good fit allows it.
    """

    orthogonal: bool
    unanimous: float
    tau: float
    loss_factor: float  # the factor of the allowed loss, in (1, 2)
    agreement: float


@final
@dataclass(frozen=True, slots=True)
class Fingerprints:
    """``rows + 1`` data sets, each without one row of a common code.

    A data set has ``rows`` sign vectors with target 1 and, as a ridge, the rows of a
    Sylvester-Hadamard matrix with target 0.  The code is drawn from ``seed``; the means of its
    columns have the arcsine law of `BernoulliProducts`, by which most are near -1 or 1.

    Parameters
    ----------
    rows : int, optional
        Number of code rows in a data set, 2 to 1000.
    features : int, optional
        Number of columns, a power of two up to 2^14.
    reach : float, optional
        Range of the arcsine means, in (0, 0.5].
    seed : int, optional
        Seed of the code.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    References
    ----------
    Talwar, Thakurta & Zhang (2015), Theorem 3.1.

    Examples
    --------
    >>> from audits.minimax import Fingerprints
    >>> family = Fingerprints(rows=5, features=512)
    >>> family.decode(family.parameter(2))
    2
    >>> family.certify().orthogonal
    True
    """

    rows: int = 24
    features: int = 2048
    reach: float = 0.45
    seed: int = 0
    means: Array = field(init=False, repr=False, compare=False)
    code: Array = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        IntegerRange(2, 1000).check("rows", self.rows)
        checked_features(self.features)
        rng = np.random.default_rng(IntegerRange(0).check("seed", self.seed))
        family = BernoulliProducts(self.features, "arcsine", self.reach)
        means = family.means(rng)
        object.__setattr__(self, "means", means)
        object.__setattr__(self, "code", family.sample(means, self.rows + 1, rng))

    @property
    def points(self) -> int:
        """``rows + 1``, the number of data sets."""
        return self.rows + 1

    @property
    def separation(self) -> float:
        """The least l1 distance of two parameters, computed over all pairs."""
        centres = np.stack([self.parameter(which) for which in range(self.points)])
        # One parameter at a time against those after it: all pairs at once would fill the memory.
        distances = (
            np.abs(centres[which + 1 :] - centre).sum(axis=-1).min()
            for which, centre in enumerate(centres[:-1])
        )
        return float(min(distances))

    def parameter(self, which: int) -> Array:
        """Compute the signs of the columns' sums without one row, over the number of columns.

        Parameters
        ----------
        which : int
            The missing row, from 0 to ``rows``.

        Returns
        -------
        array
            A vector of l1 norm at most 1, shape (features,).
        """
        which = IntegerRange(0, self.points - 1).check("which", which)
        signs: Array = np.sign(self.code.sum(axis=0) - self.code[which])
        return signs / self.features

    def sample(self, which: int, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw the data set without one row, in random order.

        Parameters
        ----------
        which : int
            The missing row, from 0 to ``rows``.
        n : int
            Number of records, which must be ``rows + features``.
        rng : numpy.random.Generator
            The generator of the order.

        Returns
        -------
        tuple of arrays
            X of shape (n, features) and y of shape (n,).
        """
        which = IntegerRange(0, self.points - 1).check("which", which)
        if n != self.rows + self.features:
            raise ParameterError("n", n, f"rows + features = {self.rows + self.features}")
        x, y = append_ridge(np.delete(self.code, which, axis=0))
        order = rng.permutation(n)
        return x[order], y[order]

    def decode(self, estimate: Array) -> int:
        """Find the row of the code that correlates least with an estimate.

        Parameters
        ----------
        estimate : array
            Coefficients, shape (features,).

        Returns
        -------
        int
            The row, from 0 to ``rows``.
        """
        return int(np.argmin(tracing_scores(estimate, self.code, self.means)))

    def certify(self, loss_factor: float = 1.1) -> Certificate:
        """Check the ridge, count the unanimous columns, and apply the scaled Lemma 3.3.

        Parameters
        ----------
        loss_factor : float, optional
            Factor of the allowed loss, in (1, 2).

        Returns
        -------
        Certificate
            The properties of the data sets; ``agreement`` is 0 if the lemma does not apply.
        """
        a = LOSS_FACTOR.check("loss_factor", loss_factor)
        ridge = hadamard(self.features)
        gram = ridge.T @ ridge  # sums of at most 2^14 signs: floats are exact
        unanimous = float(np.mean(np.abs(self.code.sum(axis=0)) == self.points))
        tau = 1 / self.rows  # k / (w p) with k = p
        return Certificate(
            orthogonal=bool((gram == self.features * np.eye(self.features)).all()),
            unanimous=unanimous,
            tau=tau,
            loss_factor=a,
            agreement=agreement(a, split=1 - unanimous, tau=tau),
        )


def agreement(loss_factor: float, split: float, tau: float) -> float:
    """The largest share b of the scaled lemma; ``split`` is the share of split columns.

    Loss below ``a tau w``, a the ``loss_factor``, forces agreement on b of the unanimous columns if
    ``1 - sqrt(a b) - sqrt(a split) >= sqrt(a tau)`` and ``4 split^2 < (a - 1) tau``.
    """
    a = loss_factor
    margin = 1 - math.sqrt(a * split) - math.sqrt(a * tau)
    if margin <= 0 or 4 * split**2 >= (a - 1) * tau:
        return 0.0
    return min(margin**2 / a, 1.0)


def hadamard(order: int) -> Array:
    """The Sylvester-Hadamard matrix: signs, rows and columns orthogonal."""
    matrix = np.ones((1, 1))
    while len(matrix) < order:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix


def append_ridge(members: Array) -> tuple[Array, Array]:
    """The members with target 1, and as many ridge rows as columns with target 0."""
    count, features = members.shape
    x = np.vstack([members, hadamard(checked_features(features))])
    return x, np.repeat([1.0, 0.0], [count, features])


def append_ridge_twice(x: Array, y: Array) -> tuple[Array, Array]:
    """The same data for losses with labels -1 and 1: each ridge row occurs with both labels.

    A row of target 0 becomes one of label -1, and a copy of it with label 1 is appended.
    """
    ridge = x[y == 0]
    labels = np.where(y == 1, 1.0, -1.0)
    return np.vstack([x, ridge]), np.append(labels, np.ones(len(ridge)))


def tracing_scores(estimate: Array, rows: Array, means: Array) -> Array:
    """``sum_j sgn(theta_j) (x_j - mu_j) / sqrt(sum_{theta_j != 0} (1 - mu_j^2))`` of each row x.

    theta is the estimate and mu the ``means``.  For a row that did not enter the estimate the score
    has mean 0 and variance 1.
    """
    signs = np.sign(np.asarray(estimate, dtype=float))
    spread = math.sqrt(float(np.abs(signs) @ (1 - means**2)))
    scores: Array = (rows - means) @ signs
    return scores / spread if spread else scores


def checked_features(features: object) -> int:
    """A power of two from 2 to 2^14, else `ParameterError`."""
    count = IntegerRange(MIN_FEATURES, MAX_FEATURES).check("features", features)
    if count & (count - 1):
        raise ParameterError(
            "features", count, f"a power of two from {MIN_FEATURES} to {MAX_FEATURES:,}"
        )
    return count
