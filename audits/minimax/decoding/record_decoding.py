"""How often a private algorithm can tell the points of a family apart, at most.

Derived in `methods.md`, section 4; sharper than the papers, for every epsilon.
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
    entropy_factor,
    fano_information,
    le_cam_divergence,
)
from audits.minimax.information.theorem_domains import (
    INTERACTION,
    LOCAL_EPSILON,
    USERS,
    Interaction,
    is_sequential,
)

__all__ = [
    "INTERACTION",
    "LOCAL_EPSILON",
    "Interaction",
    "entropy_factor",
    "most_right",
    "most_right_chi_squared",
]


def most_right(
    family: SignedBasis, n: int, epsilon: float, interaction: Interaction = "none"
) -> float:
    """The greatest chance that an epsilon-LDP protocol decodes a uniform point; rounded up.

    n users, each reporting once with delta 0, all at once or one after another.
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
    """The same for reports whose chi-squared between two inputs is at most ``chi2``, in turn.

    ``chi2 = e^(xi + 2 rho) - 1`` for (xi, rho)-zCDP, ``eps^2`` for (2, ln(1 + eps^2))-RDP.
    """
    n, chi2 = USERS.check("n", n), NON_NEGATIVE.check("chi2", chi2)
    divergence = chi_squared_divergence(family, n, chi2).sharp
    return most_right_given_divergence(divergence, family.points)
