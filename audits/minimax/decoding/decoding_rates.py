"""Upper bounds on the probability that a locally private algorithm decodes a point of a family.

`SignedBasis` is a hard family of sparse regression: 2p points, each with a distribution of records
of p features and a label.  A point is drawn uniformly, n users draw records from its distribution,
and each of them sends a private report.  To decode is to guess the point from the reports.

In `most_right` and `most_right_chi_squared` whole records are private.  These bounds hold for every
epsilon and are sharper than those of Duchi, Jordan & Wainwright (2018) and Wang & Xu (2021), which
the field ``published`` of the information bounds has; proof: `docs/proofs/decoding_records.md`.

In `most_right_of_labels` labels alone are private, and features are public.  Given them a label is
one of two values, and any (epsilon, delta)-private report of one of two values can be simulated
from this one: the value itself with probability delta, else a randomised response of epsilon
(Kairouz, Oh & Viswanath 2015).  See docs/proofs/audits_by_coins.md.
"""

from __future__ import annotations

import math

from accountant.domains import DELTA, NON_NEGATIVE
from audits.minimax.families.signed_basis import SignedBasis
from audits.minimax.information.bernoulli_kl import (
    most_right_given_divergence,
    most_right_given_information,
)
from audits.minimax.information.contraction import (
    chi_squared_divergence,
    entropy_factor,
    fano_information,
    le_cam_divergence,
)
from audits.minimax.information.theorem_domains import (
    LOCAL_EPSILON,
    USERS,
    Interaction,
    is_sequential,
)


def most_right(
    family: SignedBasis, n: int, epsilon: float, interaction: Interaction = "none"
) -> float:
    """Bound the probability that an epsilon-LDP protocol decodes a uniform point.

    Parameters
    ----------
    family : SignedBasis
        The hard family.
    n : int
        Number of users, each reporting once with delta 0.
    epsilon : float
        0 to 300.
    interaction : {"none", "sequential"}, optional
        Whether users report at once, or one after another.

    Returns
    -------
    float
        The probability, rounded up.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    References
    ----------
    Proof: ``docs/proofs/decoding_records.md``.

    Examples
    --------
    >>> from audits.minimax import SignedBasis, most_right
    >>> round(most_right(SignedBasis(p=10, d=0.5), n=50, epsilon=1.0), 4)
    0.2195
    """
    n = USERS.check("n", n)
    epsilon = LOCAL_EPSILON.check("epsilon", epsilon)
    # The bound by divergence (Le Cam) holds for sequential protocols.  A protocol without
    # interaction is a special case of these, so that it has this bound and the one by information
    # (Fano), which is proved without interaction only.
    divergence = le_cam_divergence(family, n, epsilon).sharp
    bound = most_right_given_divergence(divergence, family.points)
    if is_sequential(interaction):
        return bound
    information = fano_information(family, n, epsilon).sharp
    return min(bound, most_right_given_information(information, family.points))


def most_right_chi_squared(family: SignedBasis, n: int, chi2: float) -> float:
    """Bound the probability of decoding a uniform point under bounded chi-squared divergence.

    Users report one after another.  ``chi2`` is ``e^(xi + 2 rho) - 1`` for (xi, rho)-zCDP, and
    ``epsilon^2`` for (2, ln(1 + epsilon^2))-RDP.

    Parameters
    ----------
    family : SignedBasis
        The hard family.
    n : int
        Number of users, each reporting once.
    chi2 : float
        Largest chi-squared divergence between the reports of two inputs, at least 0.

    Returns
    -------
    float
        The probability, rounded up.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    References
    ----------
    Wang & Xu (2021), Theorem 4, for the setting; ``docs/proofs/decoding_records.md``.

    Examples
    --------
    >>> from audits.minimax import SignedBasis, most_right_chi_squared
    >>> round(most_right_chi_squared(SignedBasis(p=10, d=0.5), n=50, chi2=0.5), 4)
    0.4182
    """
    n, chi2 = USERS.check("n", n), NON_NEGATIVE.check("chi2", chi2)
    divergence = chi_squared_divergence(family, n, chi2).sharp
    return most_right_given_divergence(divergence, family.points)


def most_right_of_labels(family: SignedBasis, n: int, epsilon: float, delta: float = 0.0) -> float:
    """An upper bound on the probability of decoding a uniform point from n private labels.

    Features are public.  Every user reports once, whether all at once or one after another.  The
    bound is Fano's inequality on `label_information`, rounded up.
    """
    information = label_information(family, n, epsilon, delta)
    return most_right_given_information(information, family.points)


def label_information(family: SignedBasis, n: int, epsilon: float, delta: float = 0.0) -> float:
    """An upper bound on the information, in nats, of n private labels about the point.

    It is ``n [(1 - delta) g(lean tanh(eps / 2)) + delta g(lean)]``.  Here ``g(t) = [(1 + t) ln(1 +
    t) + (1 - t) ln(1 - t)] / 2`` is the KL divergence of Bernoulli((1 + t) / 2) from a fair coin.
    The label itself has t = ``family.lean``, twice the distance of its probability from 1/2, and
    its randomised response has t = tanh(eps / 2) lean.
    """
    n = USERS.check("n", n)
    epsilon, delta = LOCAL_EPSILON.check("epsilon", epsilon), DELTA.check("delta", delta)

    def g(t: float) -> float:
        return t * t * entropy_factor(t)

    of_response = g(min(1.0, family.lean * math.tanh(epsilon / 2)))
    of_label = g(family.lean)
    return n * ((1 - delta) * of_response + delta * of_label)
