"""Minimax lower bounds on the squared error of a private mean of bounded vectors.

In the local model the larger of two bounds is taken: one by vectors of random signs, whose means
reports hardly tell, and one by van Trees' inequality.  In the central model the data are g copies
of each of a few random directions, and zeros: an estimate must be close to directions that it may
hardly depend on.  The privacy of g records together has ``K = g epsilon``, called the reach, and a
delta of `group_delta`.  All bounds are for the unit ball; `private_mean` multiplies them by the
squared radius.

Proofs: `docs/proofs/minimax_mean.md`.  References: Assouad (1983) for the signs; Gill & Levit
(1995) for van Trees' inequality; Ahlswede & Gacs (1976) for the information in noisy signs.
"""

from __future__ import annotations

import math

import numpy as np

from accountant.domains import DELTA, POSITIVE, Interval, OneOf
from accountant.errors import ParameterError
from accountant.numerics.rounding import round_up
from accountant.numerics.search import least_float_that
from audits.minimax.bounds.bound import LowerBound
from audits.minimax.families.sign_means import SignCopies, SignMeans, user_information
from audits.minimax.information.group_decoding import group_delta
from audits.minimax.information.sign_information import posterior_divergence, sign_error
from audits.minimax.information.theorem_domains import DIMENSION, USERS
from mechanisms.families.mean_oracle import gamma_ratio
from mechanisms.priv_unit import cap_mass

MODEL = OneOf(("local", "central"))
RADIUS = Interval(1e-150, 1e150)  # its square is a float
# The means of signs, and the widths of priors, that are tried; each gives a valid bound.
SHIFTS = np.geomspace(1e-6, 1.0, 500)
# Numbers of copies that are tried.  Each gives a valid bound; more could only raise the best one.
MAX_COUNTS = 300
# By these shares the bounds are lowered for round-off.  The local ones are formulas of about ten
# operations on numbers that are rounded already; the central ones use functions of scipy, which are
# less exact.
LOCAL_ROUND_OFF = 1e-12
CENTRAL_ROUND_OFF = 1e-9


def private_mean(
    n: int,
    dimension: int,
    epsilon: float,
    model: str = "local",
    delta: float = 0.0,
    radius: float = 1.0,
) -> LowerBound:
    """Bound the worst-case ``E |estimate - mean|^2`` of vectors of bounded Euclidean length.

    Parameters
    ----------
    n : int
        Number of users or records.
    dimension : int
        Length of a vector.
    epsilon : float
        Positive.
    model : {"local", "central"}, optional
        "local": each user is epsilon-DP and reports once; the mean is the distribution's.
        "central": (epsilon, delta)-DP for one replaced record; the mean is that of the data set.
    delta : float, optional
        In [0, 1); 0 in the local model.
    radius : float, optional
        Largest Euclidean length of a vector.

    Returns
    -------
    LowerBound
        The bound, rounded down, in the units of ``radius^2``.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    References
    ----------
    Assouad (1983); Gill & Levit (1995) for van Trees' inequality; Ahlswede & Gacs (1976).  Proof:
    ``docs/proofs/minimax_mean.md``.

    Examples
    --------
    >>> from audits.minimax import private_mean
    >>> round(private_mean(n=1000, dimension=10, epsilon=1.0).value, 5)
    0.01207
    """
    n, p = USERS.check("n", n), DIMENSION.check("dimension", dimension)
    epsilon, radius = POSITIVE.check("epsilon", epsilon), RADIUS.check("radius", radius)
    delta = DELTA.check("delta", delta)
    if MODEL.check("model", model) == "central":
        return (approximate_mean if delta else pure_mean)(n, p, epsilon, delta, radius)
    if delta:
        raise ParameterError(
            "delta", delta, '0, as the local bound is for pure epsilon, or "central"'
        )
    signs_bound, shift = by_signs(n, p, epsilon)
    information_bound, width = by_information(n, p, epsilon)
    candidates = f"signs of mean {shift:.4g}: {signs_bound:.4g}"
    candidates += f"; means up to {width:.4g}: {information_bound:.4g}"
    return LowerBound(
        value=radius * radius * max(signs_bound, information_bound),
        published=None,
        statement="worst-case E |estimate - mean|^2 over distributions in the ball, "
        f"{n:,} users, each epsilon = {epsilon:g} for their own vector",
        construction=SignMeans(p, shift, radius),
        valid_for="non-interactive epsilon-LDP, delta = 0, every epsilon, n and dimension",
        optimised_over=f"the signs' mean, and the width of a prior on means; {candidates}",
    )


def by_signs(n: int, dimension: int, epsilon: float) -> tuple[float, float]:
    """``max_d d^2 (1 - m^2)`` over means d of the signs, and its d, at unit radius.

    m is the largest root mean square correlation of an estimate with a sign that the reports allow
    (`sign_error`).
    """
    informations = [user_information(dimension, float(d), epsilon) for d in SHIFTS]
    risks = SHIFTS**2 * sign_error(n * np.array(informations) / dimension)
    best = int(np.argmax(risks))
    return float(risks[best]) * (1 - LOCAL_ROUND_OFF), float(SHIFTS[best])


def by_information(n: int, dimension: int, epsilon: float) -> tuple[float, float]:
    """``max_w p / (n J(w) + p pi^2 / w^2)`` and its w at unit radius, by van Trees' inequality.

    w is the width of the prior: the mean of each sign is at most w in size.  With p the dimension
    and D the `posterior_divergence`, ``J(w) = min(2 D / (1 - w^2)^2, p / (1 - w^2))`` bounds the
    trace of a report's Fisher information.  It holds for sequential interaction, too.
    """
    widths = SHIFTS[:-1]  # without 1, as 1 - w^2 divides
    variance_factor = 1 - widths**2
    fisher = np.minimum(
        2 * posterior_divergence(epsilon) / variance_factor**2, dimension / variance_factor
    )
    risks = dimension / (n * fisher + dimension * math.pi**2 / widths**2)
    best = int(np.argmax(risks))
    return float(risks[best]) * (1 - LOCAL_ROUND_OFF), float(widths[best])


def pure_mean(n: int, dimension: int, epsilon: float, delta: float, radius: float) -> LowerBound:
    """Return the central bound at delta 0: ``max_j (j/n)^2 (1 - m(j epsilon)^2)``.

    The data are j copies of a uniform direction, and zeros; m is `best_guess_correlation`.
    """
    counts = copy_counts(n)
    risks = [
        (j / n) ** 2 * (1 - best_guess_correlation(dimension, reach=j * epsilon) ** 2)
        for j in counts
    ]
    best = int(np.argmax(risks))
    return LowerBound(
        value=radius * radius * risks[best] * (1 - CENTRAL_ROUND_OFF),
        published=None,
        statement="worst-case E |estimate - mean of the data|^2 over data sets of "
        f"{n:,} vectors of the ball, epsilon = {epsilon:g}, delta = {delta:g}",
        construction=SignCopies(dimension, n, counts[best], radius),
        valid_for="central epsilon-DP, one record exchanged, delta = 0, every epsilon and n",
        optimised_over=f"the number of copies of a direction of the sphere: {counts[best]:,}",
    )


def approximate_mean(
    n: int, dimension: int, epsilon: float, delta: float, radius: float
) -> LowerBound:
    """Return the central bound at delta > 0: `pair_risk` or `fingerprint_risk`.

    It is the largest of both over numbers of copies.
    """
    risk, choice = 0.0, "nothing"
    for g in copy_counts(n):
        risk_of_pair = pair_risk(n, g, epsilon, delta)
        risk_of_k, k = fingerprint_risk(n, g, dimension, epsilon, delta)
        if risk_of_pair > risk:
            risk, choice = risk_of_pair, f"a direction or its opposite, {g:,} times"
        if risk_of_k > risk:
            risk, choice = risk_of_k, f"{k:,} independent directions, {g:,} times each"
    return LowerBound(
        value=radius * radius * risk * (1 - CENTRAL_ROUND_OFF),
        published=None,
        statement="worst-case E |estimate - mean of the data|^2 over data sets of "
        f"{n:,} vectors of the ball, epsilon = {epsilon:g}, delta = {delta:g}",
        construction=None,  # no finite family: data sets are drawn at random, and traced
        valid_for="central (epsilon, delta)-DP, one record exchanged, every epsilon and delta",
        optimised_over=f"how many directions, and how many copies of each: {choice}",
    )


def fingerprint_risk(
    n: int, copies: int, dimension: int, epsilon: float, delta: float
) -> tuple[float, int]:
    """``g^2 k / n^2 (1 - k b)`` at its best k, and this k.

    The data are k independent uniform directions, each g (``copies``) times, and zeros; b is
    `max_correlation`.  The best k is next to 1 / (2 b), or n / g if that is less.
    """
    b = max_correlation(copies, dimension, epsilon, delta)
    best_k = max(1, math.floor(min(1 / (2 * b), n)))
    possible = {min(n // copies, k) for k in (best_k, best_k + 1)}
    return max(((copies / n) ** 2 * k * (1 - k * b), k) for k in possible)


def max_correlation(copies: int, dimension: int, epsilon: float, delta: float) -> float:
    """The largest correlation of an estimate with a direction that the data hold g times.

    With ``K = g epsilon`` it is the smaller of two bounds.  One is
    ``sinh(K)^2 / p + 2 delta_g (1 + e^-K)``; the other is ``2 delta_g`` plus the mean square of a
    uniform direction's coordinate in a cap that has the share ``e^-K`` of the sphere.
    """
    reach, delta_of_group = copies * epsilon, group_delta(copies, epsilon, delta)
    by_cap = cap_square(dimension, reach) + 2 * delta_of_group
    if reach > 3:  # here the other bound is larger: sinh(K)^2 > 2 (K + 1)
        return by_cap
    by_hyperbolic_sine = math.sinh(reach) ** 2 / dimension
    by_hyperbolic_sine += 2 * delta_of_group * (1 + math.exp(-reach))
    return min(by_hyperbolic_sine, by_cap)


def cap_square(dimension: int, reach: float) -> float:
    """``min_h h^2 + e^K E (U^2 - h^2) 1{U > h}``, U a coordinate of a uniform direction.

    K is the ``reach``.  The bound is 1 at most, as U^2 is.
    """
    from scipy.special import betaincc, betainccinv

    if dimension == 1:
        return 1.0
    # In p dimensions, P(U > h) <= e^(-p h^2 / 2).
    crude = min(1.0, 2 * (reach + 1) / dimension)
    if reach > 600:  # e^reach soon leaves the range of floats
        return crude
    # U^2 has the law Beta(1/2, a).  Any h gives a bound; the best is where P(U > h) is e^-K.
    a = (dimension - 1) / 2
    square_of_h = float(betainccinv(0.5, a, min(1.0, 2 * math.exp(-reach))))
    # Both terms are for U > h and U < -h together.
    tail = float(betaincc(1.5, a, square_of_h)) / dimension
    tail -= square_of_h * float(betaincc(0.5, a, square_of_h))
    # The tail is of the size of e^-K, so that 1e-9 covers the relative errors of the functions.
    return min(crude, square_of_h + math.exp(reach) * max(tail, 0.0) / 2 + 1e-9)


def pair_risk(n: int, copies: int, epsilon: float, delta: float) -> float:
    """``g^2 / n^2 (1 - TV)``: the data are one direction g times, or its opposite, and zeros.

    ``1 - TV = 2 (1 - delta_g) / (e^(g epsilon) + 1)`` is the least overlap of the answers' laws.
    """
    common = 2 * math.exp(-copies * epsilon) / (1 + math.exp(-copies * epsilon))
    return (copies / n) ** 2 * (1 - group_delta(copies, epsilon, delta)) * common


def best_guess_correlation(dimension: int, reach: float) -> float:
    """The largest correlation of a guess with a uniform direction, under total epsilon ``reach``.

    The root m of ``(e^K - 1) E (U - m)_+ = m``, where U is a coordinate of the direction and K the
    reach: a direction is most likely guessed by the points of a cap around it of height m, which
    are e^K times as likely as the rest.  Rounded up.
    """
    if dimension == 1:
        return min(1.0, round_up(math.tanh(reach / 2)))
    a = (dimension - 1) / 2
    # E (U - h)_+ = E U 1{U >= h} - h P(U >= h), and E U 1{U >= h} = (1 - h^2)^a / (2 a B(1/2, a)).
    log_factor = -math.log(2 * a * math.sqrt(math.pi) / gamma_ratio(a))
    log_odds = reach + math.log(-math.expm1(-reach))  # ln(e^K - 1)

    def root_reached(height: float) -> bool:
        log_tail = log_factor + a * math.log1p(-height * height)
        # The second term lowers the tail.  It is left out where the first one underflows, and
        # lowers it by the factor 1e-9 at most: both raise the root.
        if log_tail > -600:
            remaining_share = 1 - height * cap_mass(dimension, height) * math.exp(-log_tail)
            log_tail += math.log(max(remaining_share, 1e-9))
        return log_odds + log_tail <= math.log(height)

    root = least_float_that(root_reached, 0.0, 1.0, steps=60)
    return min(1.0, root * (1 + CENTRAL_ROUND_OFF))


def copy_counts(n: int) -> list[int]:
    """Integers from 1 to n: all of them, or about 300 on a logarithmic scale."""
    return sorted({round(x) for x in np.geomspace(1, n, MAX_COUNTS)})
