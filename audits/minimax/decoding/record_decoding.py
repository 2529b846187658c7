"""The largest probability with which a private algorithm decodes a point of a family of records.

It holds for every epsilon and is sharper than the papers'.  Proof:
`docs/proofs/decoding_records.md`.
"""

from __future__ import annotations

from accountant.domains import NON_NEGATIVE
from audits.minimax.families.signed_basis import SignedBasis
from audits.minimax.information.bernoulli_kl import (
    most_right_given_divergence,
    most_right_given_information,
)
from audits.minimax.information.contraction import (
    chi_squared_divergence,
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
    # a protocol without interaction is one with it, so both inequalities bind it
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
