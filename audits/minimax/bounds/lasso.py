"""The least excess of a private LASSO, by Theorem 3.1 of Talwar, Thakurta & Zhang (2015).

The data are w rows of signs with label 1, and k rows with label 0, the *orthogonal rows*: a part of
a Hadamard matrix, whose first min(k, p) columns are orthogonal (further columns are 0 everywhere).
They are scaled so that each column has the squared length ``weight``, and cost ``weight |theta|^2``
in all.  The sign rows are random: the mean of each column is drawn from a Beta(a, a) law.  A fit of
them must correlate with the means of the rows more than with the means that were drawn.  Privacy
forbids that unless the coefficients are large, and large coefficients fit the orthogonal rows
badly.  The paper's theorem is for large n; here the numbers of rows and their lengths are chosen
for the given n.  The steps of the proof stand with the formulas below.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from accountant.domains import DELTA, IntegerRange
from accountant.numerics import Array
from accountant.numerics.rounding import ULP
from audits.minimax.bounds.bound import LowerBound, round_down
from audits.minimax.information.group_decoding import most_right_at_distance
from audits.minimax.information.theorem_domains import DIMENSION, LOCAL_EPSILON, TheoremDomain

_THEOREM = "Theorem 3.1 of Talwar, Thakurta and Zhang"
_RECORDS = IntegerRange(1, 10**15)
_PRIORS = (0.5, 0.25, 0.1, 0.75, 1.0)  # the parameters a that are tried
# Probability that fewer columns agree than `_consensus_loss` counts with; it is added to the loss.
_RARE = 1e-6


class _Construction(NamedTuple):
    """The data of the proof, and the bound that they show; those with the largest are taken."""

    value: float
    sign_rows: int  # w
    order: int  # k
    weight: float
    prior: float  # a


def private_lasso(n: int, p: int, epsilon: float, delta: float = 0.0) -> LowerBound:
    """Bound the worst-case expected excess of ``mean (<x_i, theta> - y_i)^2`` over the l1 ball.

    The fits are (epsilon, delta)-DP for one replaced record, with ``|x|_inf <= 1``, ``|y| <= 1``
    and ``||theta||_1 <= 1``.  No paper states constants, so ``published`` is None.

    Parameters
    ----------
    n : int
        Number of records.
    p : int
        Number of features.
    epsilon : float
        0 to 300.
    delta : float, optional
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
    Talwar, Thakurta & Zhang (2015), Theorem 3.1, in a scaling that finite data allow.

    Examples
    --------
    >>> from audits.minimax import private_lasso
    >>> round(private_lasso(n=16, p=50, epsilon=0.1).value, 5)
    0.17309
    """
    n = TheoremDomain(_RECORDS, _THEOREM).whole("n", n)
    p = TheoremDomain(DIMENSION, _THEOREM).whole("p", p)
    epsilon = TheoremDomain(LOCAL_EPSILON, _THEOREM).number("epsilon", epsilon)
    delta = TheoremDomain(DELTA, _THEOREM).number("delta", delta)
    # Each construction gives a valid bound, so that the grids below only decide how sharp it is and
    # how long the search takes.  The orders are the last eight powers of two up to n - 1 and 4 p.
    best = _Construction(0.0, 0, 0, 0.0, 0.0)
    orders = [2**i for i in range(min(n - 1, 4 * p).bit_length())][-8:]
    for order in orders:
        max_rows = min(n - order, 10**7)
        rows = np.unique(np.geomspace(1, max_rows, 160).astype(int)).astype(float)
        # Orthogonal rows of signs have the weight k; shorter ones have smaller weights.
        for weight in order * 2.0 ** -np.arange(0.0, 6.0):
            for prior in _PRIORS:
                loss = _private_loss(rows, weight, prior, epsilon, delta)
                least_loss = _consensus_loss(rows, min(order, p), weight, prior)
                excess_risk = rows / n * (loss - least_loss)
                index = int(np.argmax(excess_risk))
                value, sign_rows = float(excess_risk[index]), int(rows[index])
                best = max(best, _Construction(value, sign_rows, order, weight, prior))
    value, law = best.value, f"Beta({best.prior:g}, {best.prior:g})"
    search_text = f"{best.sign_rows:,} sign rows of {law} columns, {best.order:,} orthogonal rows"
    search_text += f" of weight {best.weight:g} in all"
    two_point_value, copies = _two_point_bound(n, epsilon, delta)
    if two_point_value > value:
        value = two_point_value
        search_text = f"{copies:,} equal records, and the same with the other label"
    return LowerBound(
        value=round_down(value),
        published=None,
        statement=f"E [empirical risk - least risk] of any ({epsilon:g}, {delta:g})-DP fit of "
        f"theta, ||theta||_1 <= 1, to {n:,} records ({_THEOREM}, a feasible scaling)",
        construction=None,
        valid_for="every epsilon, delta, n and p; central, one record exchanged; "
        "|x|_inf <= 1, |y| <= 1, squared loss without a factor of 1/2",
        optimised_over=search_text,
    )


def _two_point_bound(n: int, epsilon: float, delta: float) -> tuple[float, int]:
    """The best of ``(m / n) P(wrong)``: m records ``x = e_1`` all of label 1, or all of -1.

    A theta of the wrong sign costs ``m (theta_1 - y)^2 / n >= m / n``, the right one 0.
    """
    # Two data sets; epsilon must be positive there, and a larger one lowers the bound.
    log_points, positive = math.log(2), max(epsilon, 1e-300)
    # Each number of copies gives a valid bound; 1.3^129 is above 10^14.
    counts = sorted({min(n, round(1.3**i)) for i in range(130)})
    candidates = [
        (
            m
            / n
            * (1 - most_right_at_distance(log_points, records=m, epsilon=positive, delta=delta)),
            m,
        )
        for m in counts
    ]
    return max(candidates)


def _private_loss(w: Array, weight: float, prior: float, epsilon: float, delta: float) -> Array:
    """The least mean over w of ``sum_i (<x_i, theta> - 1)^2 + weight ||theta||^2`` under DP.

    With xbar the mean of the sign rows, r = E <theta, xbar> and q = E ||theta||^2 it is at least
    ``(1 - r)^2 + (weight / w) q``.  The posterior mean of mu is ``(1 - b) xbar``, ``b = 2a / (w +
    2a)``, so that the mean score is ``E <theta, xbar - mu> = b r``.  DP allows a mean score of at
    most ``sinh(eps) sqrt(q) + 2 delta (1 + e^-eps)``.
    """
    # Let A = <theta, x - mu> be the score of one sign row x, |A| <= 2, and E' the mean if theta is
    # fitted to data in which a fresh row replaces x.  Then theta does not depend on x, so that
    # E' A = 0, E' A+ = E' A- = E'|A| / 2 <= sqrt(q) / 2, and by DP
    # E A = E A+ - E A- <= e^eps E' A+ - e^-eps E' A- + 2 delta (1 + e^-eps).
    b = 2 * prior / (w + 2 * prior)
    # Delta alone, with q = 0, allows an r up to this one.
    free_r = np.minimum(2 * delta * (1 + math.exp(-epsilon)) / b, 1.0)
    # So q >= (b (r - free_r) / sinh eps)^2.  With c = (weight / w) (b / sinh eps)^2 the minimum
    # over r >= free_r of (1 - r)^2 + c (r - free_r)^2 is (1 - free_r)^2 c / (1 + c), computed from
    # 1 / c, which is 0 where a small epsilon underflows.
    inverse_c = w / weight * (math.sinh(epsilon) / b) ** 2
    loss: Array = (1 - free_r) ** 2 / (1 + inverse_c)
    return loss


def _consensus_loss(w: Array, columns: int, weight: float, prior: float) -> Array:
    """An upper bound on the mean of the least loss / w: all weight on columns whose w signs agree.

    Coefficients of sum s, equal on m such columns, cost ``w (1 - s)^2 + weight s^2 / m``, of which
    the least is w times ``weight / (weight + w m)``.
    """
    from scipy.special import gammaln
    from scipy.stats import binom

    a = prior
    # P(w draws of a Beta(a, a) coin agree) = 2 G(a + w) G(2a) / (G(a) G(2a + w)), rounded down:
    # each of the two large logarithms errs by some ulps of itself.
    log_agree = math.log(2) + gammaln(a + w) - gammaln(2 * a + w) + gammaln(2 * a) - gammaln(a)
    rounding = 1e-9 + 16 * ULP * gammaln(2 * a + w)
    agree = np.minimum(np.exp(log_agree - rounding), 1.0)
    # Fewer columns agree with probability `_RARE` at most, and then the loss is at most 1.  The
    # column less is for the round-off of the quantile.
    fewest = np.maximum(binom.ppf(_RARE, columns, agree) - 1, 0.0)
    loss: Array = weight / (weight + w * fewest) + _RARE
    return loss
