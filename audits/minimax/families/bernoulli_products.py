"""Rows of random signs with random column means, and the fingerprinting lemma about them.

Column by column, a mean mu is drawn, then n independent signs x_i with that mean.  The lemma says
that an accurate answer f(x) to the column's mean correlates with the rows of its data: the expected
score ``f(x) sum_i (x_i - mu)`` is bounded away from 0.  So the rows of an accurate answer can be
traced.  `BernoulliProducts` draws the data; the functions compute expected scores of one column
exactly.

References: Bun, Ullman & Vadhan (2014), Dwork, Smith, Steinke, Ullman & Vadhan (2015) for the
lemma on uniform means; Tardos (2008) for arcsine ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from accountant.domains import IntegerRange, Interval, OneOf
from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.numerics.quadrature import legendre

LAW = OneOf(("uniform", "arcsine"))
REACH = Interval(0.0, 0.5, "(]")
ColumnAnswer = Callable[[Array], Array]  # from the means of a column's signs to answers in [-1, 1]


@final
@dataclass(frozen=True, slots=True)
class BernoulliProducts:
    """Rows of independent signs with random column means.

    "uniform" means are uniform on [-1, 1].  "arcsine" means are ``sin(u)`` for u uniform on
    ``[-reach pi, reach pi]``, and so lie near -1 and 1, where columns are nearly unanimous.

    Parameters
    ----------
    features : int
        Number of columns.
    law : {"arcsine", "uniform"}, optional
        Distribution of the column means.
    reach : float, optional
        Range of the arcsine means, in (0, 0.5].

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    References
    ----------
    Bun, Ullman & Vadhan (2014); Tardos (2008).

    Examples
    --------
    >>> import numpy as np
    >>> from audits.minimax import BernoulliProducts
    >>> family, rng = BernoulliProducts(features=4), np.random.default_rng(0)
    >>> family.sample(family.means(rng), 3, rng)
    array([[-1., -1., -1., -1.],
           [ 1., -1., -1.,  1.],
           [-1.,  1., -1., -1.]])
    """

    features: int
    law: str = "arcsine"
    reach: float = 0.45

    def __post_init__(self) -> None:
        IntegerRange(1).check("features", self.features)
        LAW.check("law", self.law)
        REACH.check("reach", self.reach)

    def means(self, rng: np.random.Generator) -> Array:
        """Draw one mean for each column.

        Parameters
        ----------
        rng : numpy.random.Generator
            The generator.

        Returns
        -------
        array
            Means in [-1, 1], shape (features,).
        """
        if self.law == "uniform":
            return rng.uniform(-1.0, 1.0, self.features)
        return np.sin(rng.uniform(-self.reach * np.pi, self.reach * np.pi, self.features))

    def sample(self, means: Array, n: int, rng: np.random.Generator) -> Array:
        """Draw ``n`` rows of signs.

        Parameters
        ----------
        means : array
            Column means in [-1, 1], shape (features,).
        n : int
            Number of rows.
        rng : numpy.random.Generator
            The generator.

        Returns
        -------
        array
            Signs -1 and 1, shape (n, features).
        """
        return np.where(rng.random((n, self.features)) < (1 + means) / 2, 1.0, -1.0)


def fingerprinting_sum(answer: ColumnAnswer, n: int) -> float:
    """``E[f(x) sum_i (x_i - mu) + (f(x) - mean(x))^2]`` of one column for uniform mu, exactly.

    ``answer`` is f as a function of the mean of the column's n signs, which has n + 1 values.
    """
    n = IntegerRange(1).check("n", n)
    sums = 2 * np.arange(n + 1.0) - n
    answers = _checked_values(answer(sums / n))
    # For uniform mu, each number of ones among n signs has the probability 1 / (n + 1).  Given the
    # sum S of signs, E[mu] = S / (n + 2), so E[sum_i (x_i - mu)] = S - n E[mu] = 2 S / (n + 2).
    return float(np.mean(answers * sums * 2 / (n + 2) + (answers - sums / n) ** 2))


def least_fingerprinting_sum(n: int) -> float:
    """The least `fingerprinting_sum` of any answer: ``(n + 4) / (3 (n + 2)) > 1/3``.

    Given x, with the mean m of its signs, the conditional expectation is ``f c + (f - m)^2`` with
    ``c = 2 n m / (n + 2)``.  It is least at ``f = m - c / 2``; then ``E[m^2] = (n + 2) / (3 n)``
    gives the value.
    """
    n = IntegerRange(1).check("n", n)
    return (n + 4) / (3 * (n + 2))


def column_score(answer: ColumnAnswer, n: int, reach: float = 0.45) -> float:
    """``E[f(x) sum_i (x_i - mu) / sqrt(1 - mu^2)]`` of one column under arcsine means, exactly.

    With g(mu) = E[f | mu] it is ``(g(sin a) - g(-sin a)) / (2 a)`` for a = reach pi, since
    ``E[f sum_i (x_i - mu) | mu] = (1 - mu^2) g'(mu)``.  An answer that is the common sign of
    unanimous columns scores about ``1 / a`` where columns of mean ``sin a`` are nearly always
    unanimous, and exactly that at reach 0.5.
    """
    max_angle = REACH.check("reach", reach) * math.pi
    answers = _checked_values(answer((2 * np.arange(n + 1.0) - n) / n))
    answer_at_top, answer_at_bottom = (
        float(_probabilities(n, side * math.sin(max_angle)) @ answers) for side in (1.0, -1.0)
    )
    return (answer_at_top - answer_at_bottom) / (2 * max_angle)


def column_score_by_quadrature(answer: ColumnAnswer, n: int, reach: float = 0.45) -> float:
    """`column_score` from its definition, as a check of it.

    The expectation over columns is a sum over the n + 1 sums of signs; that over u, of which the
    mean is sin(u), is a Gauss-Legendre quadrature of 60 nodes on [-reach pi, reach pi].
    """
    nodes, weights = legendre(60)
    max_angle = REACH.check("reach", reach) * math.pi
    sums, score = 2 * np.arange(n + 1.0) - n, 0.0
    answers = _checked_values(answer(sums / n))
    for angle, weight in zip(max_angle * nodes, weights / 2, strict=True):
        mean = math.sin(angle)
        expected_product = _probabilities(n, mean) @ (answers * (sums - n * mean))
        score += float(weight * expected_product / math.cos(angle))
    return score


def _probabilities(n: int, mean: float) -> Array:
    """The probabilities of 0 to n ones among n signs of this mean, shape (n + 1,)."""
    from scipy.stats import binom

    probabilities: Array = binom.pmf(np.arange(n + 1), n, (1 + mean) / 2)
    return probabilities


def _checked_values(values: Array) -> Array:
    """The answers as floats; an error if one is not in [-1, 1]."""
    checked = np.asarray(values, dtype=float)
    if not (np.abs(checked) <= 1).all():
        raise ParameterError("answer", checked, "a function with values in [-1, 1]")
    return checked
