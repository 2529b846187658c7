"""Sparse regression in the central model: a bound with constants, and the reference rate.

A packing is a set of parameters theta that lie far apart.  An accurate estimate would tell which of
them the records come from (decode it), but neither the records nor a private answer reveal that
often enough.

Reference: Cai, Wang & Zhang (2021) for the rate; the constants are ours, by a packing and group
privacy (as Acharya, Sun & Zhang, 2021).
"""

from __future__ import annotations

import math
from functools import partial

from accountant.domains import DELTA, POSITIVE_DELTA, IntegerRange, Interval
from accountant.errors import ParameterError
from accountant.numerics.search import maximum_of_one_peak
from audits.minimax.bounds.bound import LowerBound, round_down
from audits.minimax.families.packings import log_points
from audits.minimax.information.bernoulli_kl import most_right_given_information
from audits.minimax.information.contraction import entropy_factor
from audits.minimax.information.theorem_domains import DIMENSION, USERS, TheoremDomain

_THEOREM = "Cai, Wang and Zhang"
_EPSILON = Interval(1e-300, 300.0)


def central_rate(n: int, p: int, s: int, epsilon: float, delta: float) -> float:
    """Compute the rate ``sqrt(s ln p / n) + s ln p sqrt(ln(1/delta)) / (n epsilon)``.

    It is the rate of the l2 error of sparse regression under central privacy, without constants,
    and no bound.

    Parameters
    ----------
    n : int
        Number of records.
    p : int
        Number of features.
    s : int
        Number of non-zero coefficients, at most p.
    epsilon : float
        Positive, at most 300.
    delta : float
        In (0, 1).

    Returns
    -------
    float
        The rate, not rounded to either side.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    References
    ----------
    Cai, Wang & Zhang (2021).

    Examples
    --------
    >>> from audits.minimax import central_rate
    >>> round(central_rate(n=10_000, p=100, s=5, epsilon=1.0, delta=1e-6), 4)
    0.0565
    """
    n = TheoremDomain(USERS, _THEOREM).whole("n", n)
    p = TheoremDomain(DIMENSION, _THEOREM).whole("p", p)
    s = TheoremDomain(IntegerRange(1, p), _THEOREM).whole("s", s)
    epsilon = TheoremDomain(_EPSILON, _THEOREM).number("epsilon", epsilon)
    delta = TheoremDomain(POSITIVE_DELTA, _THEOREM).number("delta", delta)
    private = s * math.log(p) * math.sqrt(-math.log(delta)) / (n * epsilon)
    return math.sqrt(s * math.log(p) / n) + private


def central_regression(n: int, p: int, s: int, epsilon: float, delta: float) -> LowerBound:
    """Bound the worst-case ``E ||estimate - theta||_2`` of (epsilon, delta)-DP sparse regression.

    Records are sign vectors x in p dimensions and labels in {-1, 1} of mean ``<x, theta>``, with
    theta s-sparse; neighbours differ in one record.  ``published`` is `central_rate`, which is no
    bound.

    Parameters
    ----------
    n : int
        Number of records.
    p : int
        Number of features, at least 2.
    s : int
        Number of non-zero coefficients, below 2p / 3 and at most 512.
    epsilon : float
        Positive, at most 300.
    delta : float
        In [0, 1).

    Returns
    -------
    LowerBound
        The bound, rounded down.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    References
    ----------
    Cai, Wang & Zhang (2021) for the rate; Acharya, Sun & Zhang (2021) for packing and group
    privacy.  The constants are our own.

    Examples
    --------
    >>> from audits.minimax import central_regression
    >>> bound = central_regression(n=100, p=10, s=1, epsilon=0.5, delta=1e-6)
    >>> round(bound.value, 4)
    0.0457
    """
    n = TheoremDomain(USERS, _THEOREM).whole("n", n)
    p = TheoremDomain(IntegerRange(2, DIMENSION.high), _THEOREM).whole("p", p)
    s = TheoremDomain(IntegerRange(1, min(p, 512)), _THEOREM).whole("s", s)
    if not 3 * s < 2 * p:
        raise ParameterError("s", s, f"below 2p / 3 = {2 * p / 3:g} (the packing)")
    epsilon = TheoremDomain(_EPSILON, _THEOREM).number("epsilon", epsilon)
    delta = TheoremDomain(DELTA, _THEOREM).number("delta", delta)
    # The value of the bound, d, the signs and the squared distance of the packing, and the
    # logarithm of its number of points.  Each packing that is tried gives a valid bound.
    best = (0.0, 0.0, 1, 1, 0.0)
    # The numbers of signs that are tried are s and the powers of two below it.  Vectors that share
    # no place have the squared distance 2 signs; eighths of that are tried.
    for signs in sorted({s, *(2**i for i in range(s.bit_length()))}):
        for squared_distance in sorted({max(1, round(2 * signs * i / 8)) for i in range(1, 9)}):
            size = log_points(p, signs, squared_distance)
            if size >= math.log(2):
                error = partial(_estimation_error, n, signs, squared_distance, size, epsilon, delta)
                value, d = maximum_of_one_peak(error, 1.0)
                best = max(best, (value, d, signs, squared_distance, size))
    value, d, signs, squared_distance, size = best
    return LowerBound(
        value=round_down(value),
        published=central_rate(n, p, s, epsilon, delta) if delta else None,
        statement=f"E ||theta^ - theta||_2 of any ({epsilon:g}, {delta:g})-DP estimate from {n:,} "
        f"records; published is the rate of {_THEOREM} with constant 1, no bound",
        construction=None,
        valid_for="every epsilon, delta and n, s < 2p / 3; central, one record exchanged; signs x, "
        "||theta||_1 <= 1, |noise| <= 2",
        optimised_over=f"d in (0, 1]: {d:.6g}; packing of {signs}-sparse signs, squared distance "
        f"{squared_distance}, of e^{size:.4g} points",
    )


def _estimation_error(
    n: int, signs: int, squared_distance: int, size: float, epsilon: float, delta: float, d: float
) -> float:
    """Half the separation of the packing, times the least probability of a wrong decoding.

    The parameters are theta = (d / signs) v, of l1 norm d, for the points v of the packing, which
    has e^``size`` of them.  An estimate nearer to theta than half the separation decodes v.  P_v is
    the law of a record for the point v, and P_0 that for theta = 0.
    """
    half_separation = d / signs * math.sqrt(squared_distance) / 2
    points = math.exp(min(size, 600.0))  # a finite float; fewer points give a valid bound too
    # Without privacy: KL(P_v || P_0) <= c_2(d) E <x, theta>^2, as |<x, theta>| <= d.
    information = n * entropy_factor(d) * d * d / signs
    right = most_right_given_information(information, points)
    # With privacy: let P_0 have fair labels that do not depend on x.  Records of P_v can be drawn
    # together with records of P_0 such that Bin(n, TV) of them differ, where TV is the total
    # variation distance E |<x, theta>| / 2 <= d / (2 sqrt(signs)).
    mean_changed = n * min(1.0, d / (2 * math.sqrt(signs)))
    right = min(right, _right_by_group_privacy(n, mean_changed, size, epsilon, delta))
    return half_separation * (1 - right)


def _right_by_group_privacy(
    n: int, mean_changed: float, size: float, epsilon: float, delta: float
) -> float:
    """A bound on the probability of a right decoding, by group privacy of m records.

    It is the least over some m of
    ``e^(m eps) / points + m e^((m - 1) eps) delta + P(more than m records change)``, where
    ``points`` is ``e^size``.  The number of changed records has the mean ``mean_changed``.
    """
    probability = 1.0
    # Each m is a valid choice; the best is the mean or a few standard deviations more.
    for deviations in (0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0):
        more = deviations * math.sqrt(mean_changed) + deviations
        changed = min(float(n), math.ceil(mean_changed + more))
        tail = 0.0 if changed == n else _chernoff_tail(mean_changed, changed)
        reach = changed * epsilon
        if reach > 600:  # e^reach soon leaves the range of floats
            continue
        shared = math.exp(reach - size) + changed * math.exp(reach - epsilon) * delta
        probability = min(probability, shared + tail)
    return probability


def _chernoff_tail(mean: float, changed: float) -> float:
    """Chernoff's bound on P(X > ``changed``) for a binomial X with this ``mean``."""
    above = changed + 1
    if mean == 0 or above <= mean:
        return 0.0 if mean == 0 else 1.0
    return math.exp(above - mean - above * math.log(above / mean))
