"""Upper bounds on the information, in nats, that private reports carry about a hard family's point.

A minimax lower bound hides a point v in the data: the records of n users are drawn from P_v, one of
a family of distributions around P_0.  Each user sends one report Z_i that is locally private.
Privacy contracts the divergences between the distributions of the reports, M_v and M_0, and so the
mutual information I(V; Z_1 .. Z_n) with a uniform random point V.  Fano's and Le Cam's methods turn
these bounds into lower bounds on risk.

E_v and E_0 are means under P_v and P_0, and avg_v is the average over the points.  Each bound is
here twice: sharp, and as the papers print it.

References: Duchi, Jordan & Wainwright (2018) and Wang & Xu (2021) for the published forms; the
sharper ones are proved in `docs/proofs/decoding_records.md` and enumerated in
`audits.minimax.checks.enumeration`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, final

from accountant.domains import NON_NEGATIVE, Interval
from audits.minimax.information.theorem_domains import LOCAL_EPSILON, USERS

# It stands for infinity in a product: it is finite, so that 0 times it is 0.
LARGE_FINITE = 1e300


class SymmetricFamily(Protocol):
    """A family of points that holds ``-v`` with each v, and whose records lean towards their point.

    The ratio ``P_v / P_0`` is ``1 + lean`` or ``1 - lean``, each with probability 1/2 under
    ``P_0``.
    """

    @property
    def lean(self) -> float:
        """The distance of ``P_v / P_0`` from 1."""
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
    """An upper bound on an information or a divergence, in nats, in two forms.

    Parameters
    ----------
    sharp : float
        The bound that this project proves.
    published : float
        The papers' bound with explicit constants.

    Examples
    --------
    >>> from audits.minimax import Contraction, SignedBasis, fano_information
    >>> nats = fano_information(SignedBasis(p=10, d=0.5), n=50, epsilon=1.0)
    >>> round(nats.sharp, 4), round(nats.published, 4)
    (0.1713, 0.9227)
    """

    sharp: float
    published: float


def fano_information(family: SymmetricFamily, n: int, epsilon: float) -> Contraction:
    """Bound the information ``I(V; Z_1 .. Z_n)`` of epsilon-LDP reports without interaction.

    Ours is ``c_2(t) n sinh^2(eps / 2) C_2`` with ``t = lean tanh(eps / 2)``, or the information of
    the data, ``c_2(lean) n lean^2``, if that is smaller; the papers' is
    ``n (e^eps - 1)^2 C_infinity / 4``.  `entropy_factor` is c_2, and the family has C_2 and
    C_infinity.

    Parameters
    ----------
    family : SymmetricFamily
        The hard family, such as `SignedBasis`.
    n : int
        Number of users.
    epsilon : float
        0 to 300.

    Returns
    -------
    Contraction
        Upper bounds in nats, not rounded.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    References
    ----------
    Duchi, Jordan & Wainwright (2018).  Proof: ``docs/proofs/decoding_records.md``.

    Examples
    --------
    >>> from audits.minimax import SignedBasis, fano_information
    >>> nats = fano_information(SignedBasis(p=10, d=0.5), n=50, epsilon=1.0)
    >>> round(nats.sharp, 4), round(nats.published, 4)
    (0.1713, 0.9227)
    """
    n, epsilon = USERS.check("n", n), LOCAL_EPSILON.check("epsilon", epsilon)
    private = entropy_factor(_density_deviation(family, epsilon)) * _energy(family, n, epsilon)
    # reports carry no more information than their data
    sharp = min(private, entropy_factor(family.lean) * n * family.lean**2)
    return Contraction(sharp, published_information(n, epsilon, family.c_infinity))


def le_cam_divergence(family: SymmetricFamily, n: int, epsilon: float) -> Contraction:
    """Bound the mean over v of ``KL(M_0 || M_v)`` of epsilon-LDP reports, one after another.

    Ours is ``c_1(t) n sinh^2(eps / 2) C_2 / 2`` with ``t = lean tanh(eps / 2)`` and c_1 from
    `log_factor`, or the divergence of the data, ``-n ln(1 - lean^2) / 2``, if that is smaller.  The
    papers bound ``KL(M_0 || avg_v M_v)``, which is smaller, by ``n (e^eps - 1)^2 C_infinity / 4``.

    Parameters
    ----------
    family : SymmetricFamily
        The hard family, such as `SignedBasis`.
    n : int
        Number of users, each knowing the reports before.
    epsilon : float
        0 to 300.

    Returns
    -------
    Contraction
        Upper bounds in nats, not rounded.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    References
    ----------
    Wang & Xu (2021), Theorem 2.  Proof: ``docs/proofs/decoding_records.md``.

    Examples
    --------
    >>> from audits.minimax import SignedBasis, le_cam_divergence
    >>> nats = le_cam_divergence(SignedBasis(p=10, d=0.5), n=50, epsilon=1.0)
    >>> round(nats.sharp, 4), round(nats.published, 4)
    (0.1744, 0.9227)
    """
    n, epsilon = USERS.check("n", n), LOCAL_EPSILON.check("epsilon", epsilon)
    private = log_factor(_density_deviation(family, epsilon)) / 2 * _energy(family, n, epsilon)
    sharp = min(private, _data_divergence(family, n))
    return Contraction(
        min(sharp, LARGE_FINITE), published_information(n, epsilon, family.c_infinity)
    )


def chi_squared_divergence(family: SymmetricFamily, n: int, chi2: float) -> Contraction:
    """Bound the mean of ``KL(M_0 || M_v)`` of reports with bounded chi-squared divergence.

    ``chi2`` is ``e^(xi + 2 rho) - 1`` for (xi, rho)-zCDP, and ``eps^2`` for (2, ln(1 + eps^2))-RDP.
    Users report one after another.  Ours is ``c_1(lean) n chi2 C_2 / 2``, with c_1 from
    `log_factor`, or the divergence of the data, ``-n ln(1 - lean^2) / 2``, if that is smaller; the
    papers' is ``n chi2 C_2 / (1 - lean)``.

    Parameters
    ----------
    family : SymmetricFamily
        The hard family, such as `SignedBasis`.
    n : int
        Number of users.
    chi2 : float
        Largest chi-squared divergence between the reports of two inputs, at least 0.

    Returns
    -------
    Contraction
        Upper bounds in nats, at most 1e300, not rounded.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    References
    ----------
    Wang & Xu (2021), Theorem 4.

    Examples
    --------
    >>> from audits.minimax import SignedBasis, chi_squared_divergence
    >>> nats = chi_squared_divergence(SignedBasis(p=10, d=0.5), n=50, chi2=0.5)
    >>> round(nats.sharp, 4), round(nats.published, 4)
    (0.3596, 1.25)
    """
    n, chi2 = USERS.check("n", n), NON_NEGATIVE.check("chi2", chi2)
    energy = n * chi2 * family.c_two
    published = energy / (1 - family.lean) if family.lean < 1 else LARGE_FINITE
    sharp = min(log_factor(family.lean) / 2 * energy, _data_divergence(family, n))
    return Contraction(min(sharp, LARGE_FINITE), min(published, LARGE_FINITE))


def distance_information(n: int, epsilon: float, mean_squared_tv: float) -> Contraction:
    """Bound the information in n reports by the mean of ``TV(P_v, P_w)^2`` over pairs of points.

    Ours is ``n min((e^eps - 1)^2 mean TV^2 / 2, sinh^2(eps / 2))``, the papers' is
    ``4 n (e^eps - 1)^2 mean TV^2``.  The information of a report is at most its mean chi-squared
    divergence to the mixture over the points.

    Parameters
    ----------
    n : int
        Number of users, whose reports are epsilon-LDP without interaction.
    epsilon : float
        0 to 300.
    mean_squared_tv : float
        Mean of the squared total variation over all ordered pairs, equal ones too, and over users;
        in [0, 1].

    Returns
    -------
    Contraction
        Upper bounds in nats, not rounded.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    References
    ----------
    Duchi, Jordan & Wainwright (2018); Bhatia & Davis (2000) for the variance.

    Examples
    --------
    >>> from audits.minimax import distance_information
    >>> nats = distance_information(n=50, epsilon=1.0, mean_squared_tv=0.01)
    >>> round(nats.sharp, 4), round(nats.published, 4)
    (0.7381, 5.905)
    """
    n, epsilon = USERS.check("n", n), LOCAL_EPSILON.check("epsilon", epsilon)
    mean_squared_tv = Interval(0.0, 1.0).check("mean_squared_tv", mean_squared_tv)
    # A report z has the probability m_v under v, m = avg_v m_v under the mixture, and between q_min
    # and q_max <= e^eps q_min given a record.  Then m >= q_min, the sum of q_min over z is at most
    # 1, and avg_v (m_v - m)^2 = avg_vw (m_v - m_w)^2 / 2 <= (q_max - q_min)^2 avg_vw TV^2 / 2.
    sharp = n * math.expm1(epsilon) ** 2 * mean_squared_tv / 2
    # The chi-squared divergence of a report to the mixture never exceeds sinh^2(eps / 2).
    by_variance = n * math.sinh(epsilon / 2) ** 2
    return Contraction(min(sharp, by_variance), 4 * n * math.expm1(epsilon) ** 2 * mean_squared_tv)


def published_information(n: int, epsilon: float, c_infinity: float) -> float:
    """The papers' bound ``n (e^eps - 1)^2 C_infinity / 4``, which holds for every epsilon."""
    return n * math.expm1(epsilon) ** 2 * c_infinity / 4


def _data_divergence(family: SymmetricFamily, n: int) -> float:
    """``KL(P_0 || P_v) = -n ln(1 - lean^2) / 2`` of the data, which bounds that of the reports."""
    return log_factor(family.lean) / 2 * n * family.lean**2


def _density_deviation(family: SymmetricFamily, epsilon: float) -> float:
    """``t``: a report's density under a point is within ``1 +- t`` of the one under P_0."""
    # A report has the mean probabilities a and b over the halves of P_0 where P_v / P_0 is 1 + lean
    # and 1 - lean.  Both are in [q, e^eps q], so |a - b| / (a + b) <= tanh(eps / 2).
    return family.lean * math.tanh(epsilon / 2)


def _energy(family: SymmetricFamily, n: int, epsilon: float) -> float:
    """``n sinh^2(eps / 2) C_2``, n times an upper bound on avg_v (E_v g - E_0 g)^2.

    g is the ratio of a report's probability given a record to that under P_0.  Its mean is 1 and it
    lies in [q, e^eps q] for some q, so its variance is at most sinh^2(eps / 2) (Bhatia & Davis).
    """
    return n * math.sinh(epsilon / 2) ** 2 * family.c_two


def entropy_factor(t: float) -> float:
    """``c_2 = [(1 + t) ln(1 + t) + (1 - t) ln(1 - t)] / (2 t^2)``: 1/2 at 0, ln 2 at 1.

    Below 1e-3, where digits would cancel, the first terms of its power series are taken.
    """
    if t < 1e-3:
        return 0.5 + t * t / 12 + t**4 / 30
    low = (1 - t) * math.log1p(-t) if t < 1 else 0.0  # x ln x is 0 at 0
    return ((1 + t) * math.log1p(t) + low) / (2 * t * t)


def log_factor(t: float) -> float:
    """``c_1 = -ln(1 - t^2) / t^2``: 1 at 0, infinite at 1; below 1e-3 by its power series."""
    if t < 1e-3:
        return 1 + t * t / 2 + t**4 / 3
    return -(math.log1p(-t) + math.log1p(t)) / (t * t) if t < 1 else LARGE_FINITE
