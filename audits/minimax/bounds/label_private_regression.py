"""Minimax lower bounds for sparse regression with private labels and public features.

Fano's method on a packing: parameters theta of one norm whose s non-zero signs differ in many
places.  Reports carry little information about which of them holds, so an estimate that is nearer
to the true one than half the distance of two of them is rarely possible.

Reference: Wang & Xu (2021), Theorems 5, 7 and 10.
"""

from __future__ import annotations

import math

from accountant.domains import IntegerRange, Interval
from accountant.errors import ParameterError
from accountant.numerics.search import maximum_of_one_peak
from audits.minimax.bounds.bound import LowerBound, round_down
from audits.minimax.families.packings import disjoint_packing, log_points, log_points_printed
from audits.minimax.families.sparse_packing import SparsePacking
from audits.minimax.information.bernoulli_kl import most_right_given_information
from audits.minimax.information.contraction import distance_information
from audits.minimax.information.theorem_domains import LOCAL_EPSILON, SCALE, USERS, TheoremDomain

_THEOREM = "Theorems 5, 7 and 10 of Wang and Xu"
_MAX_SIGNS = 512  # most non-zero signs of the packings tried; fewer than s are in the class too
_SHOWN = 16  # points of a packing that the result shows, at most


def label_regression(
    n: int,
    p: int,
    s: int,
    epsilon: float,
    noise_bound: float,
    rip: float = 0.0,
    slope: float = 1.0,
) -> LowerBound:
    """Bound the worst-case squared error of sparse regression with epsilon-LDP labels.

    The error is ``E ||estimate - theta||_2^2``.  Users send their labels once, all at once; theta
    is s-sparse in the unit ball; features are public.

    Parameters
    ----------
    n : int
        Number of users.
    p : int
        Number of features, at most 10^7.
    s : int
        Number of non-zero coefficients, below 2p / 3.
    epsilon : float
        0 to 300.
    noise_bound : float
        Largest size of the noise in a label, 1e-6 to 1e6.
    rip : float, optional
        Restricted isometry constant of the features on 2s columns, in [0, 1).
    slope : float, optional
        Largest slope of the link function; 1 for the identity.

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
    Wang & Xu (2021), Theorems 5, 7 and 10; our form is sharper.

    Examples
    --------
    >>> from audits.minimax import label_regression
    >>> bound = label_regression(n=100, p=20, s=2, epsilon=1.0, noise_bound=1.0)
    >>> round(bound.value, 5)
    0.00451
    """
    n = TheoremDomain(USERS, _THEOREM).whole("n", n)
    p = TheoremDomain(IntegerRange(1, 10**7), _THEOREM).whole("p", p)
    s = TheoremDomain(IntegerRange(1, p), _THEOREM).whole("s", s)
    if not 3 * s < 2 * p:
        raise ParameterError("s", s, f"below 2p / 3 = {2 * p / 3:g} ({_THEOREM}, the packing)")
    epsilon = TheoremDomain(LOCAL_EPSILON, _THEOREM).number("epsilon", epsilon)
    noise_bound = TheoremDomain(SCALE, _THEOREM).number("noise_bound", noise_bound)
    rip = TheoremDomain(Interval(0.0, 1.0, "[)"), _THEOREM).number("rip", rip)
    slope = TheoremDomain(SCALE, _THEOREM).number("slope", slope)
    # A label is uniform around its mean, with half-width C = noise_bound.  Two such laws whose
    # means are u apart have a total variation of at most |u| / (2C), where |u| is at most the slope
    # times |<x_i, theta - theta'>|.  The sum of <x_i, theta - theta'>^2 over users is at most
    # n (1 + rip) ||theta - theta'||^2.  So the mean squared total variation is at most this factor
    # times ||theta - theta'||^2.
    variation_factor = slope**2 * (1 + rip) / (4 * noise_bound**2)
    cost = n * math.expm1(epsilon) ** 2 * variation_factor
    signs, squared_distance, log_size = _packing(p, s, cost)

    def risk(norm: float) -> float:
        # The mean of ||theta - theta'||^2 over all pairs is at most 2 norm^2.
        mean_squared_tv = min(1.0, 2 * variation_factor * norm**2)
        information = distance_information(n, epsilon, mean_squared_tv).sharp
        # The number of points is cut at e^600, a finite float; fewer points give a valid bound.
        right = most_right_given_information(information, math.exp(min(log_size, 600.0)))
        # The square of half the separation, which is norm sqrt(squared_distance / signs), and the
        # probability that a decoder is wrong.
        return norm**2 * squared_distance / (4 * signs) * (1 - right)

    value, norm = maximum_of_one_peak(risk, 1.0)
    # The packing is only known to exist; a small one of the same kind is shown.
    shown = disjoint_packing(p, signs, min(_SHOWN, 2 * (p // signs)))
    return LowerBound(
        value=round_down(value),
        published=round_down(_published_bound(p, s, cost)),
        statement=f"E ||theta^ - theta||_2^2 of any estimate from {n:,} users whose labels are "
        f"{epsilon:g}-LDP, all at once, x public ({_THEOREM}, sharper constants)",
        construction=SparsePacking(shown, norm, noise_bound),
        valid_for=f"every epsilon and n, s < 2p / 3, restricted isometry {rip:g} on 2s columns, "
        f"||theta||_2 <= 1, |noise| <= {noise_bound:g}, slope at most {slope:g}; delta 0",
        optimised_over=f"norm in (0, 1]: {norm:.6g}; packing of {signs}-sparse signs, squared "
        f"distance {squared_distance}, of e^{log_size:.4g} points, {len(shown)} of them shown",
    )


def _published_bound(p: int, s: int, cost: float) -> float:
    """``(d^2 / 4)(1 - (8 cost d^2 + ln 2) / L)`` at its best ``d^2 <= 1/2``, 0 where L <= ln 2.

    L is `log_points_printed`, d the norm of theta, and ``cost`` is that of `_packing`.
    """
    size = log_points_printed(p, s)
    log_ratio = size - math.log(2)
    if log_ratio <= 0:
        return 0.0
    square = min(0.5, log_ratio / (16 * cost)) if cost > 0 else 0.5
    return square / 4 * (log_ratio - 8 * cost * square) / size


def _packing(p: int, s: int, cost: float) -> tuple[int, int, float]:
    """The (signs, squared distance, log-size) of the packing with the largest bound, by Fano.

    It has e^log-size vectors with ``signs`` entries of -1 or 1, the others 0; any two of them have
    at least this squared distance.  ``cost`` times the squared norm of theta bounds the information
    I of the reports.
    """
    # The numbers of signs that are tried are the powers of two up to s, and s; the squared
    # distances are twelfths of 2 signs, that of vectors that share no place.
    sizes = {s, *(2**i for i in range(s.bit_length()))}
    candidates = []
    for signs in sorted(size for size in sizes if size <= _MAX_SIGNS):
        for squared_distance in sorted({max(1, round(2 * signs * i / 12)) for i in range(1, 13)}):
            size = log_points(p, signs, squared_distance)
            log_ratio = size - math.log(2)
            if log_ratio > 0:
                # Fano's bound is (norm^2 squared_distance / (4 signs)) (log_ratio - I) / size, with
                # I <= cost norm^2.  ``square`` is the best norm^2.
                square = min(1.0, log_ratio / (2 * cost)) if cost > 0 else 1.0
                bound = square * squared_distance / (4 * signs) * (log_ratio - cost * square) / size
                candidates.append((bound, signs, squared_distance, size))
    if not candidates:
        return 1, 1, log_points(p, 1, 1)
    _, signs, squared_distance, size = max(candidates)
    return signs, squared_distance, size
