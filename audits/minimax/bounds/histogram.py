"""Minimax lower bounds on the error of the shares of k labels, estimated from local reports.

The larger of two bounds is taken.  One is by pairs of labels: a secret sign says which label of a
pair is likelier, and reports carry little information about it.  The other is by van Trees'
inequality, with a bound on the information of a report.  The *ratio* of a report z at a label x is
P(z | x) / P(z); two ratios of one report differ by a factor of at most E = e^epsilon.

Proofs: `docs/proofs/minimax_histogram.md`.  References: Duchi, Jordan & Wainwright (2018) for the
pairs; Ye & Barg (2018), whose subset selection attains the constant for many users.
"""

from __future__ import annotations

import math

import numpy as np

from accountant.domains import POSITIVE
from accountant.numerics.rounding import round_up
from audits.minimax.bounds.bound import LowerBound
from audits.minimax.families.paired_shares import (
    LABELS,
    PairedShares,
    integers_near,
    report_information,
)
from audits.minimax.information.sign_information import sign_error
from audits.minimax.information.theorem_domains import USERS

# The relative shifts of pairs, and the widths of priors, that are tried, both from 0 to 1.  Each
# gives a valid bound.
SHIFTS = np.geomspace(1e-6, 1.0, 500)
# The bounds are formulas of about ten operations on numbers that are rounded already.  This
# relative error, 4500 units in the last place, is far above theirs.
ROUND_OFF = 1e-12


def private_histogram(n: int, k: int, epsilon: float) -> LowerBound:
    """Bound the worst-case ``E sum_x (estimate_x - share_x)^2`` of locally private histograms.

    Parameters
    ----------
    n : int
        Number of users, each epsilon-LDP for their own label.
    k : int
        Number of labels, at least 2.
    epsilon : float
        Positive.

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
    Duchi, Jordan & Wainwright (2018) for the pairs; Ye & Barg (2018), whose subset selection
    attains the constant for many users.  Proof: ``docs/proofs/minimax_histogram.md``.

    Examples
    --------
    >>> from audits.minimax import private_histogram
    >>> round(private_histogram(n=1000, k=10, epsilon=1.0).value, 5)
    0.00324
    """
    n, k = USERS.check("n", n), LABELS.check("k", k)
    epsilon = POSITIVE.check("epsilon", epsilon)
    pairs_bound, shift = by_pairs(n, k, epsilon)
    information_bound, width = by_information(n, k, epsilon)
    candidates = f"pairs shifted by {shift:.4g}: {pairs_bound:.4g}"
    candidates += f"; shares within {width:.4g}: {information_bound:.4g}"
    return LowerBound(
        value=max(pairs_bound, information_bound),
        published=None,
        statement=f"worst-case E |estimate - shares|^2 over laws of {k:,} labels, {n:,} users, "
        f"each epsilon = {epsilon:g} for their own label",
        construction=PairedShares(k, shift),
        valid_for="non-interactive epsilon-LDP, delta = 0, every epsilon, n and k",
        optimised_over=f"the shift of pairs, and the width of a prior on shares; {candidates}",
    )


def by_pairs(n: int, k: int, epsilon: float) -> tuple[float, float]:
    """``max_d floor(k/2) 2 d^2 / k^2 (1 - m^2)`` over relative shifts d of pairs, and its d.

    m is the largest root mean square correlation of an estimate with a pair's sign that the reports
    allow; `sign_error` is 1 - m^2.  It holds for users who report once, without interaction.
    """
    informations = np.array([report_information(k, float(d), epsilon) for d in SHIFTS])
    risks = k // 2 * 2 * SHIFTS**2 / k**2 * sign_error(n * informations / (k // 2))
    best = int(np.argmax(risks))
    return float(risks[best]) * (1 - ROUND_OFF), float(SHIFTS[best])


def by_information(n: int, k: int, epsilon: float) -> tuple[float, float]:
    """``max_w (k-1)^2 / (n k V_w / (1-w) + 4 pi^2 k^3 / w^2)`` and its w, by van Trees' inequality.

    V_w is the largest variance of a report's ratio if shares are within ``(1 +- w) / k``, and the
    last term is the information of the prior, with a density of cos^2 on that range.  It holds for
    sequential interaction, too.
    """
    widths = SHIFTS[:-1]  # without 1, as 1 - w divides
    variance = np.array([variance_near(k, float(w), epsilon) for w in widths])
    prior = 4 * math.pi**2 * k**3 / widths**2
    risks = (k - 1) ** 2 / (n * k * variance / (1 - widths) + prior)
    best = int(np.argmax(risks))
    return float(risks[best]) * (1 - ROUND_OFF), float(widths[best])


def variance_near(k: int, width: float, epsilon: float) -> float:
    """The largest variance of a report's ratios if shares are within ``(1 +- width) / k``.

    It is the largest ``(E-1)^2 f (1-f) / (1 + f (E-1))^2`` with ``E = e^epsilon``.  Here f is the
    share of users whose labels are E times as likely as the others to be reported so.  Rounded up.
    """
    # The variance has one peak over the share, at 1 / (E + 1).
    peak = 1 / (1 + math.exp(min(epsilon, 700.0)))
    # If ``count`` labels have the larger ratio, their share is within (1 +- width) count / k.  The
    # range nearest to the peak is the last that begins before the peak, or one next to that.
    count = integers_near(k * peak / (1 - width), k - 1)
    low = np.minimum((1 - width) * count / k, 1.0)
    high = np.minimum((1 + width) * count / k, 1.0)
    share = np.clip(peak, low, high)
    # Numerator and denominator are divided by E^2, so that no term overflows.
    inverse, gap = math.exp(-epsilon), -math.expm1(-epsilon)  # 1 / E and 1 - 1 / E
    variance = gap**2 * share * (1 - share) / (inverse + share * gap) ** 2
    # The formula has about 15 operations; the result is raised by 64 units in the last place.
    return round_up(float(variance.max()), ulps=64)
