"""Minimax lower bounds for sparse linear regression with locally private records.

The hard family is `SignedBasis`: theta is d e_j or -d e_j, so that a report carries little
information about j and the sign, but a wrong guess costs an error of the size of d.  Each bound is
given twice: sharp, and as Wang & Xu publish it.  In both, the labels are a or -a, with
``a = noise_bound / 2``, and d is at most ``min(1, a)``: theta lies in the unit ball, and the noise
y - <x, theta> is at most a + d <= noise_bound in size.  Each d gives a valid bound.  The bound at
the best d found is returned, which needs no proof that there is no better d.

Reference: Wang & Xu (2021), Theorems 1 to 4.
"""

from __future__ import annotations

import math

from accountant.domains import IntegerRange, Interval
from accountant.numerics.search import maximum_of_one_peak
from audits.minimax.bounds.bound import LowerBound, round_down
from audits.minimax.decoding.decoding_rates import most_right, most_right_chi_squared
from audits.minimax.families.signed_basis import SignedBasis
from audits.minimax.information.contraction import chi_squared_divergence, le_cam_divergence
from audits.minimax.information.theorem_domains import (
    DIMENSION,
    LOCAL_EPSILON,
    LOSS,
    SCALE,
    USERS,
    Interaction,
    Loss,
    TheoremDomain,
    is_sequential,
)

_CLASS = "x uniform on {-1, 1}^p, y = <x, theta> + noise of mean 0, ||theta||_2 <= 1, 1-sparse"
_ZCDP = Interval(0.0, 300.0)  # of rho and of xi
# Exponents are cut here, as e^600 is a finite float.  A chi-squared divergence of e^600 is far
# above p, and all above p have the same sharp bound: that of users who publish their records.
_LARGEST_EXPONENT = 600.0


def sparse_regression(
    n: int,
    p: int,
    epsilon: float,
    interaction: Interaction = "none",
    loss: Loss = "squared",
    noise_bound: float = 2.0,
) -> LowerBound:
    """Bound the worst-case error of sparse regression from n epsilon-LDP reports.

    The error is ``E ||estimate - theta||_2^2`` or ``E |sum(estimate - theta)|``.  Each user reports
    once; features are signs.

    Parameters
    ----------
    n : int
        Number of users.
    p : int
        Number of features; at least 2 without interaction and with squared loss.
    epsilon : float
        0 to 300.
    interaction : {"none", "sequential"}, optional
        Whether users report at once, or one after another.
    loss : {"squared", "sum"}, optional
        Which of the two errors.
    noise_bound : float, optional
        Largest size of the noise in a label, 1e-6 to 1e6.

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
    Wang & Xu (2021), Theorems 1 to 3; our form is sharper.  Proof:
    ``docs/proofs/decoding_records.md``.

    Examples
    --------
    >>> from audits.minimax import sparse_regression
    >>> bound = sparse_regression(n=1000, p=100, epsilon=1.0)
    >>> round(bound.value, 4), round(bound.published, 4)
    (0.304, 0.0678)
    """
    sequential, total = is_sequential(interaction), LOSS.check("loss", loss) == "sum"
    theorem = "Theorem 3" if total else "Theorem 2" if sequential else "Theorem 1"
    theorem += " of Wang and Xu"
    n = TheoremDomain(USERS, theorem).whole("n", n)
    p = TheoremDomain(DIMENSION if sequential or total else IntegerRange(2, 10**9), theorem).whole(
        "p", p
    )
    epsilon = TheoremDomain(LOCAL_EPSILON, theorem).number("epsilon", epsilon)
    noise_bound = TheoremDomain(SCALE, theorem).number("noise_bound", noise_bound)
    label = noise_bound / 2  # a, the size of every label
    high = min(1.0, label)

    def squared(d: float) -> float:
        # An estimate that leads to a wrong decoding has an error of at least half the separation.
        family = SignedBasis(p, d, noise_bound)
        return family.separation**2 / 4 * (1 - most_right(family, n, epsilon, interaction))

    def summed(d: float) -> float:
        # Le Cam's method between theta = 0 and the mixture of all d e_j gives (d / 2)(1 - TV), and
        # Pinsker's inequality bounds TV.
        divergence = le_cam_divergence(SignedBasis(p, d, noise_bound), n, epsilon).sharp
        return d / 2 * (1 - math.sqrt(divergence / 2))

    value, d = maximum_of_one_peak(summed if total else squared, high)
    # The published bounds on the information are multiples of d^2 n (e^eps - 1)^2 / (p a^2).
    cost = n * (math.expm1(epsilon) / label) ** 2 / p
    if total:
        published = _by_le_cam(cost, high, 1)
    else:
        published = _by_le_cam(cost, high, 2) if sequential else _by_fano(cost, high, p)
    measure = "|sum(theta^ - theta)|" if total else "||theta^ - theta||_2^2"
    interaction_text = (
        "one after another, each knowing the reports before" if sequential else "all at once"
    )
    return LowerBound(
        value=round_down(value),
        published=round_down(published),
        statement=f"E {measure} of any {epsilon:g}-LDP estimate from {n:,} users, "
        f"{interaction_text} ({theorem}, sharper constants)",
        construction=SignedBasis(p, d, noise_bound),
        valid_for=f"every epsilon, n and p; {_CLASS}, |noise| <= {noise_bound:g}; delta 0",
        optimised_over=f"d in (0, {high:g}]: d = {d:.6g}",
    )


def _by_fano(cost: float, high: float, p: int) -> float:
    """Fano's bound as published: ``(d^2 / 2)(1 - (cost d^2 / 4 + ln 2) / ln 2p)`` at its best d.

    The best ``d^2`` is ``2 ln p / cost``, where the derivative is 0, or ``high^2`` if that is less.
    """
    log_p = math.log(p)
    square = min(high**2, 2 * log_p / cost) if cost > 0 else high**2
    return square / 2 * (log_p - cost * square / 4) / math.log(2 * p)


def _by_le_cam(cost: float, high: float, power: int) -> float:
    """Le Cam's bound as published: ``(d / 2)^power (1 - d sqrt(cost / 8))`` at its best d.

    The power is 1 in Theorem 3, 2 in Theorem 2.
    """
    root = math.sqrt(cost / 8)
    d = min(high, power / (power + 1) / root) if root > 0 else high
    return (d / 2) ** power * (1 - d * root)


def sparse_regression_zcdp(n: int, p: int, rho: float, xi: float = 0.0) -> LowerBound:
    """Bound the worst-case squared error of n locally (xi, rho)-zCDP reports.

    The error is ``E ||estimate - theta||_2^2``.  Users report one after another, each knowing the
    reports before.

    Parameters
    ----------
    n : int
        Number of users.
    p : int
        Number of features.
    rho : float
        0 to 300.
    xi : float, optional
        0 to 300.

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
    Wang & Xu (2021), Theorem 4; our form is sharper.

    Examples
    --------
    >>> from audits.minimax import sparse_regression_zcdp
    >>> round(sparse_regression_zcdp(n=1000, p=100, rho=0.5).value, 5)
    0.01957
    """
    theorem = "Theorem 4 of Wang and Xu"
    rho = TheoremDomain(_ZCDP, theorem).number("rho", rho)
    xi = TheoremDomain(_ZCDP, theorem).number("xi", xi)
    # The Renyi divergence of order 2 is at most xi + 2 rho, and it is ln(1 + chi2).
    chi2 = math.expm1(min(xi + 2 * rho, _LARGEST_EXPONENT))
    return _by_chi_squared(n, p, chi2, f"({xi:g}, {rho:g})-zCDP")


def sparse_regression_rdp(n: int, p: int, epsilon: float) -> LowerBound:
    """Bound the worst-case squared error of n locally (2, ln(1 + epsilon^2))-RDP reports.

    The error is ``E ||estimate - theta||_2^2``.  Users report one after another, each knowing the
    reports before.

    Parameters
    ----------
    n : int
        Number of users.
    p : int
        Number of features.
    epsilon : float
        The square root of the largest chi-squared divergence of two reports, 0 to 1e100.

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
    Wang & Xu (2021), Theorem 4; our form is sharper.

    Examples
    --------
    >>> from audits.minimax import sparse_regression_rdp
    >>> round(sparse_regression_rdp(n=1000, p=100, epsilon=1.0).value, 5)
    0.03238
    """
    epsilon = TheoremDomain(Interval(0.0, 1e100), "Theorem 4 of Wang and Xu").number(
        "epsilon", epsilon
    )
    return _by_chi_squared(n, p, epsilon**2, f"(2, ln(1 + {epsilon:g}^2))-Renyi")


def _by_chi_squared(n: int, p: int, chi2: float, privacy: str) -> LowerBound:
    """Theorem 4 for reports whose chi-squared divergence between two inputs is at most ``chi2``.

    ``privacy`` names the privacy claim in the statement of the bound.
    """
    theorem = "Theorem 4 of Wang and Xu"
    n = TheoremDomain(USERS, theorem).whole("n", n)
    p = TheoremDomain(DIMENSION, theorem).whole("p", p)

    def sharp(d: float) -> float:
        family = SignedBasis(p, d)
        return family.separation**2 / 4 * (1 - most_right_chi_squared(family, n, chi2))

    def published(d: float) -> float:
        # (d^2 / 4)(1 - sqrt(n chi2 d^2 / (2 p (1 - d)))), by Pinsker
        divergence = chi_squared_divergence(SignedBasis(p, d), n, chi2).published
        return d * d / 4 * (1 - math.sqrt(divergence / 2))

    value, d = maximum_of_one_peak(sharp, 1.0)
    return LowerBound(
        value=round_down(value),
        published=round_down(maximum_of_one_peak(published, 1.0)[0]),
        statement=f"E ||theta^ - theta||_2^2 of any estimate from {n:,} locally {privacy} private "
        f"users, one after another ({theorem}, sharper constants)",
        construction=SignedBasis(p, d),
        valid_for=f"every privacy level, n and p; {_CLASS}, |noise| <= 2",
        optimised_over=f"d in (0, 1]: d = {d:.6g}",
    )
