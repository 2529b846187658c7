"""What private reports can tell of a point: nats, in our sharper form and in the papers'.

References: Duchi, Jordan & Wainwright (2018) and Wang & Xu (2021) for the published forms; the
sharper ones are derived in `methods.md`, section 4, and enumerated in `enumeration`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, final

from accountant.domains import NON_NEGATIVE, Interval
from audits.minimax.information.theorem_domains import LOCAL_EPSILON, USERS

# a number that is no infinity, so that 0 times it is 0
LARGE_FINITE = 1e300


class SymmetricFamily(Protocol):
    """A family that holds ``-v`` with each v, whose ``P_v / P_0`` is ``1 + lean`` or ``1 - lean``.

    Each with chance 1/2 under ``P_0``; its C_infinity and C_2 are those of the contractions.
    """

    @property
    def lean(self) -> float:
        """How far ``P_v / P_0`` is from 1."""
        ...

    @property
    def c_infinity(self) -> float:
        """``sup avg_v (E_v g - E_0 g)^2`` over ``|g| <= 1``."""
        ...

    @property
    def c_two(self) -> float:
        """``sup avg_v (E_v g - E_0 g)^2`` over ``E_0 g^2 <= 1``."""
        ...


@final
@dataclass(frozen=True, slots=True)
class Contraction:
    """An upper bound in nats: ``sharp`` ours, ``published`` the papers' with explicit constants."""

    sharp: float
    published: float


def fano_information(family: SymmetricFamily, n: int, epsilon: float) -> Contraction:
    """``I(V; Z_1 .. Z_n)`` of epsilon-LDP reports without interaction.

    Ours ``c_2(t) n sinh^2(eps / 2) C_2`` with ``t = lean tanh(eps / 2)``; the paper's
    ``n (e^eps - 1)^2 C_infinity / 4``.
    """
    n, epsilon = USERS.check("n", n), LOCAL_EPSILON.check("epsilon", epsilon)
    private = entropy_factor(_density_deviation(family, epsilon)) * _energy(family, n, epsilon)
    # nor do reports tell more than the data they are of
    sharp = min(private, entropy_factor(family.lean) * n * family.lean**2)
    return Contraction(sharp, published_information(n, epsilon, family.c_infinity))


def le_cam_divergence(family: SymmetricFamily, n: int, epsilon: float) -> Contraction:
    """The mean over v of ``KL(M_0 || M_v)`` of epsilon-LDP reports, each knowing those before.

    Ours ``c_1(t) n sinh^2(eps / 2) C_2 / 2``.  The paper's bounds ``KL(M_0 || avg_v M_v)``, which
    is smaller, and by ``n (e^eps - 1)^2 C_infinity / 4``.
    """
    n, epsilon = USERS.check("n", n), LOCAL_EPSILON.check("epsilon", epsilon)
    private = log_factor(_density_deviation(family, epsilon)) / 2 * _energy(family, n, epsilon)
    sharp = min(private, _data_divergence(family, n))
    return Contraction(
        min(sharp, LARGE_FINITE), published_information(n, epsilon, family.c_infinity)
    )


def chi_squared_divergence(family: SymmetricFamily, n: int, chi2: float) -> Contraction:
    """The mean of ``KL(M_0 || M_v)`` where two inputs' reports have chi-squared at most ``chi2``.

    ``chi2 = e^(xi + 2 rho) - 1`` for (xi, rho)-zCDP, ``eps^2`` for (2, ln(1 + eps^2))-RDP; reports
    in turn.  Ours ``c_1(lean) n chi2 C_2 / 2``, the paper's ``n chi2 C_2 / (1 - lean)``.
    """
    n, chi2 = USERS.check("n", n), NON_NEGATIVE.check("chi2", chi2)
    energy = n * chi2 * family.c_two
    published = energy / (1 - family.lean) if family.lean < 1 else LARGE_FINITE
    sharp = min(log_factor(family.lean) / 2 * energy, _data_divergence(family, n))
    return Contraction(min(sharp, LARGE_FINITE), min(published, LARGE_FINITE))


def distance_information(n: int, epsilon: float, mean_squared_tv: float) -> Contraction:
    """``I(V; Z_1 .. Z_n)`` without interaction from the mean of ``TV(P_v, P_w)^2`` over pairs.

    The mean runs over all ordered pairs, equal ones too, and over users.  Any finite family.
    """
    n, epsilon = USERS.check("n", n), LOCAL_EPSILON.check("epsilon", epsilon)
    mean_squared_tv = Interval(0.0, 1.0).check("mean_squared_tv", mean_squared_tv)
    # avg_v (m_v - m)^2 = avg_vw (m_v - m_w)^2 / 2 <= (q_max - q_min)^2 avg TV^2 / 2, and a report's
    # density under the mixture is at least q_min, of which there is at most 1 in all
    sharp = n * math.expm1(epsilon) ** 2 * mean_squared_tv / 2
    # a report's chi-squared to the mixture never exceeds sinh^2(eps / 2) (Bhatia & Davis, 2000)
    most = n * math.sinh(epsilon / 2) ** 2
    return Contraction(min(sharp, most), 4 * n * math.expm1(epsilon) ** 2 * mean_squared_tv)


def published_information(n: int, epsilon: float, c_infinity: float) -> float:
    """``n (e^eps - 1)^2 C_infinity / 4``, for every epsilon."""
    return n * math.expm1(epsilon) ** 2 * c_infinity / 4


def _data_divergence(family: SymmetricFamily, n: int) -> float:
    """``KL(P_0 || P_v)`` of the data, ``-n ln(1 - lean^2) / 2``: reports tell no more."""
    return log_factor(family.lean) / 2 * n * family.lean**2


def _density_deviation(family: SymmetricFamily, epsilon: float) -> float:
    """``t``: a report's density under a point is within ``1 +- t`` of the one under P_0."""
    # two densities in [q, e^eps q], each under half of P_0: |a - b| / (a + b) <= tanh(eps / 2)
    return family.lean * math.tanh(epsilon / 2)


def _energy(family: SymmetricFamily, n: int, epsilon: float) -> float:
    """``n sinh^2(eps / 2) C_2``: the variance of a density in ``[q, e^eps q]`` (Bhatia & Davis)."""
    return n * math.sinh(epsilon / 2) ** 2 * family.c_two


def entropy_factor(t: float) -> float:
    """``c_2 = [(1 + t) ln(1 + t) + (1 - t) ln(1 - t)] / (2 t^2)``: 1/2 at 0, ln 2 at 1."""
    if t < 1e-3:
        return 0.5 + t * t / 12 + t**4 / 30
    low = (1 - t) * math.log1p(-t) if t < 1 else 0.0  # x ln x is 0 at 0
    return ((1 + t) * math.log1p(t) + low) / (2 * t * t)


def log_factor(t: float) -> float:
    """``c_1 = -ln(1 - t^2) / t^2``: 1 at 0, infinite at 1."""
    if t < 1e-3:
        return 1 + t * t / 2 + t**4 / 3
    return -(math.log1p(-t) + math.log1p(t)) / (t * t) if t < 1 else LARGE_FINITE
