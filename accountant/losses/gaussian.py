"""The privacy loss of Gaussian noise: P = N(mu, 1) against Q = N(0, 1).

At the output z the loss is ``L = ln p(z)/q(z) = mu z - mu^2 / 2``.  Phi and phi are the
distribution function and the density of N(0, 1).

References: Balle & Wang (2018), Theorem 8, for the profile; Dong, Roth & Su (2022) for composition.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.domains import POSITIVE, RECORDS
from accountant.losses.cell_masses import CellMasses, normal_cell_masses
from accountant.losses.loss import Loss, SymmetricLoss, epsilons, orders
from accountant.losses.loss_numerics import ExactCGF, LossNumerics
from accountant.numerics import Array
from accountant.numerics.logspace import log1mexp, log_ndtr
from accountant.numerics.ordered_sums import ordered_dot
from accountant.numerics.quadrature import legendre
from accountant.numerics.rounding import ACCURACY, ULP, round_up, round_up_square


@final
class GaussianCGF(ExactCGF["GaussianLoss"]):
    """The cumulant ``K(z) = ln E_P e^{zL} = mu^2 (z^2 + z) / 2``.

    The sum of such polynomials is the one of a single Gaussian, whose mu^2 is the sum of theirs.
    """

    distinct_cost_cap = 1  # different Gaussians cost no more to evaluate than one

    def sum_cgf(self, losses: Sequence[GaussianLoss], counts: Array, z: Any) -> tuple[Any, Array]:
        """Return ``sum count mu^2 (z^2 + z) / 2``, and a bound on its round-off."""
        total = sum_of_squared_mu(losses, counts) / 2 * (z * z + z)
        return total, 8 * ULP * np.abs(total)

    def log_cf_bounds(
        self, losses: Sequence[GaussianLoss], counts: Array, a: float, u: Array
    ) -> Array:
        """Return ``Re K(a + iu) - K(a) = -sum count mu^2 u^2 / 2``, rounded up; it falls with u."""
        return -sum_of_squared_mu(losses, counts) * (1 - 1e-12) * u * u / 2


NUMERICS = LossNumerics(GaussianCGF())


@final
@dataclass(frozen=True, slots=True)
class GaussianLoss(SymmetricLoss):
    """The loss of N(mu, 1) against N(0, 1), that is of Gaussian noise on one release.

    Parameters
    ----------
    mu : float
        Sensitivity over noise scale, above 0.

    References
    ----------
    Balle & Wang (2018), Theorem 8; Dong, Roth & Su (2022) for its composition.

    Examples
    --------
    >>> from accountant import GaussianLoss
    >>> round(GaussianLoss(mu=0.5).epsilon_at(1e-6), 4)
    2.2541
    """

    mu: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", POSITIVE.check("mu", self.mu))

    def profile(self, epsilon: ArrayLike) -> Array:
        """Return ``Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu)``, without cancellation."""
        return np.exp(self.log_profile(epsilon))

    def log_profile(self, epsilon: ArrayLike) -> Array:
        """Return the logarithm of `profile`, accurate in the far tail."""
        e = epsilons(epsilon)
        if self.mu < 1:
            return _small_mu_log_profile(e, self.mu)
        log_p, log_q = self._tails(e)
        return log_p + log1mexp(np.minimum(log_q - log_p, 0.0))

    def _tails(self, epsilon: Array) -> tuple[Array, Array]:
        """Return ``ln Phi(-x)`` and ``ln e^eps Phi(-x - mu)``, ``x = eps/mu - mu/2``."""
        from scipy.special import erfcx

        # As e^eps phi(x + mu) = phi(x), the second is phi(x) R(x + mu), with Mills' ratio
        # R(y) = Phi(-y) / phi(y).  Below y = -30, where R overflows soon, Phi(-y) is 1 to nearest.
        with np.errstate(over="ignore"):
            x = np.minimum(epsilon / self.mu, 1e150) - self.mu / 2
            log_phi = -x * x / 2
        y = x + self.mu
        log_mills = np.log(erfcx(np.maximum(y, -30.0) / math.sqrt(2))) - math.log(2)
        return log_ndtr(-x), np.where(y < -30, epsilon, log_phi + log_mills)

    @property
    def infinity(self) -> float:
        """0: every outcome is possible on both neighbours."""
        return 0.0

    @property
    def rho(self) -> float:
        """``mu^2 / 2``, rounded up: the divergence of every order is exactly order times this."""
        return round_up_square(self.mu, 2)

    @property
    def gdp_mu(self) -> float:
        """The mu of this loss itself."""
        return self.mu

    @property
    def numerics(self) -> LossNumerics:
        """The cumulant is exact: a polynomial."""
        return NUMERICS

    def renyi(self, order: ArrayLike) -> Array:
        """Return ``order mu^2 / 2``."""
        return orders(order) * self.rho

    def cumulant(self, z: ArrayLike) -> Any:
        """Return ``mu^2 (z^2 + z) / 2``."""
        s = np.asarray(z, dtype=complex)
        return (self.mu * self.mu * (s * s + s) / 2)[()]

    def cell_masses(self, edges: Array) -> CellMasses:
        """Return differences of normal distribution functions."""
        # The loss is mu z - mu^2 / 2, with z standard normal under Q, and moved by mu under P.
        z = edges / self.mu + self.mu / 2
        p, p_error = normal_cell_masses(z, self.mu)
        q, q_error = normal_cell_masses(z, 0.0)
        size = float(np.max(np.abs(edges[np.isfinite(edges)]), initial=0.0))
        return CellMasses(p, q, p_error, q_error, 8 * ULP * (size + self.mu * self.mu))

    def dominates(self, other: Loss) -> bool:
        """Return whether ``other`` is a Gaussian with no greater shift."""
        return isinstance(other, GaussianLoss) and self.mu >= other.mu

    def for_group(self, size: int) -> GaussianLoss:
        """Return the Gaussian with ``size`` times the shift."""
        return GaussianLoss(round_up(RECORDS.check("size", size) * self.mu))

    def inverse_profile(self, delta: float) -> float:
        """Return the inverse of the profile, by Newton's method on its logarithm."""
        # d ln delta / d eps = -e^eps Phi(-mu/2 - eps/mu) / delta(eps).  The target is lower than
        # ln delta by the relative accuracy of the profile, so that epsilon is rounded up.  ``high``
        # is always an epsilon whose profile is small enough.
        target = math.log(delta) - ACCURACY
        if float(self.log_profile(0.0)) <= target:
            return 0.0
        # At eps = mu (mu/2 + x) the profile is below Phi(-x) <= e^{-x^2/2}, which is the target for
        # x = sqrt(-2 target).
        low, high = 0.0, self.mu * (self.mu / 2 + math.sqrt(max(-2 * target, 0.0))) + 1e-300
        e = high
        for _ in range(100):
            value = float(self.log_profile(e))
            low, high = (low, e) if value <= target else (e, high)
            if high - low <= 4 * ULP * high:
                break
            slope = math.exp(min(float(self._tails(np.array(e))[1]) - value, 700.0))
            step = (value - target) / slope if slope else high
            if abs(step) <= 1e-13 * e and value <= target:
                break
            # 1e-9 farther than Newton's step, so that e ends on the upper side of the root.
            e = e + step * (1 + 1e-9) + 2 * ULP * e
            if not low < e < high:
                e = (low + high) / 2
        return round_up(high)


def sum_of_squared_mu(losses: Sequence[Any], counts: Array) -> float:
    """Return ``sum_i counts[i] mu_i^2`` of Gaussian losses."""
    mu = np.fromiter((loss.mu for loss in losses), float, len(losses))
    with np.errstate(over="ignore"):
        return float(ordered_dot(mu * mu, counts))


def _small_mu_log_profile(epsilon: Array, mu: float) -> Array:
    """Return ln of the profile for mu below 1, where the difference of the two tails would cancel.

    With x = eps/mu - mu/2 and Mills' ratio R(y) = Phi(-y) / phi(y), so R'(y) = y R(y) - 1,

        delta = phi(x) (R(x) - R(x + mu)) = phi(x) int_0^mu [1 - (x + s) R(x + s)] ds,

    by 16 Gauss-Legendre points; all terms are positive.
    """
    from scipy.special import erfcx

    size = np.abs(epsilon)
    with np.errstate(over="ignore"):
        x = np.minimum(size / mu, 1e100) - mu / 2
    nodes, weights = legendre(16)
    y = np.minimum(x, 1e6)[..., None] + mu * (nodes + 1) / 2
    slope = 1 - y * np.sqrt(np.pi / 2) * erfcx(y / np.sqrt(2))
    # Beyond y = 30 the difference 1 - y R(y) cancels; its asymptotic series does not:
    # 1/y^2 - 3/y^4 + 15/y^6 - 105/y^8 + 945/y^10.
    t = 1 / np.maximum(y, 30.0) ** 2
    series = t * (1 - t * (3 - t * (15 - t * (105 - t * 945))))
    slope = np.where(y > 30, series, slope)
    log_delta = -x * x / 2 + np.log(ordered_dot(slope, weights) * mu / 2) - np.log(2 * np.pi) / 2
    # The pair is symmetric, so delta(-eps) = 1 - e^-eps + e^-eps delta(eps).
    with np.errstate(divide="ignore"):
        negative = np.log(-np.expm1(-size) + np.exp(-size + log_delta))
    either: Array = np.where(epsilon >= 0, log_delta, negative)
    return either
