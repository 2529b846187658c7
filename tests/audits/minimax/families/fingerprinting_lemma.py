"""The fingerprinting lemma of one column of n signs, exactly.

An answer is a function f from the mean of the column's signs, which has n + 1 values, to [-1, 1].
"""

import math

import numpy as np
from scipy.stats import binom

from accountant.numerics.quadrature import legendre


def fingerprinting_sum(answer, n):
    """``E[f(x) sum_i (x_i - mu) + (f(x) - mean(x))^2]`` for uniform mu."""
    sums = 2 * np.arange(n + 1.0) - n
    answers = answer(sums / n)
    # For uniform mu, each number of ones among n signs has the probability 1 / (n + 1).  Given the
    # sum S of signs, E[mu] = S / (n + 2), so E[sum_i (x_i - mu)] = S - n E[mu] = 2 S / (n + 2).
    return float(np.mean(answers * sums * 2 / (n + 2) + (answers - sums / n) ** 2))


def least_fingerprinting_sum(n):
    """The least `fingerprinting_sum` of any answer: ``(n + 4) / (3 (n + 2)) > 1/3``.

    Given x, with the mean m of its signs, the conditional expectation is ``f c + (f - m)^2`` with
    ``c = 2 n m / (n + 2)``.  It is least at ``f = m - c / 2``; then ``E[m^2] = (n + 2) / (3 n)``
    gives the value.
    """
    return (n + 4) / (3 * (n + 2))


def column_score(answer, n, reach=0.45):
    """``E[f(x) sum_i (x_i - mu) / sqrt(1 - mu^2)]`` under arcsine means.

    With g(mu) = E[f | mu] it is ``(g(sin a) - g(-sin a)) / (2 a)`` for a = reach pi, since
    ``E[f sum_i (x_i - mu) | mu] = (1 - mu^2) g'(mu)``.  An answer that is the common sign of
    unanimous columns scores about ``1 / a`` where columns of mean ``sin a`` are nearly always
    unanimous, and exactly that at reach 0.5.
    """
    max_angle = reach * math.pi
    answers = answer((2 * np.arange(n + 1.0) - n) / n)
    answer_at_top, answer_at_bottom = (
        float(_probabilities(n, side * math.sin(max_angle)) @ answers) for side in (1.0, -1.0)
    )
    return (answer_at_top - answer_at_bottom) / (2 * max_angle)


def column_score_by_quadrature(answer, n, reach=0.45):
    """`column_score` from its definition.

    The expectation over columns is a sum over the n + 1 sums of signs; that over u, of which the
    mean is sin(u), is a Gauss-Legendre quadrature of 60 nodes on [-reach pi, reach pi].
    """
    nodes, weights = legendre(60)
    sums, score = 2 * np.arange(n + 1.0) - n, 0.0
    for angle, weight in zip(reach * math.pi * nodes, weights / 2, strict=True):
        mean = math.sin(angle)
        expected_product = _probabilities(n, mean) @ (answer(sums / n) * (sums - n * mean))
        score += float(weight * expected_product / math.cos(angle))
    return score


def _probabilities(n, mean):
    """The probabilities of 0 to n ones among n signs of this mean, shape (n + 1,)."""
    return binom.pmf(np.arange(n + 1), n, (1 + mean) / 2)
