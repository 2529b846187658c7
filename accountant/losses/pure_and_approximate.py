"""The losses of pure and approximate privacy, both dominated by randomised response."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.domains import DELTA, EPSILON, POSITIVE, RECORDS
from accountant.losses.bounded_range import BoundedLoss
from accountant.losses.loss import Loss, SymmetricLoss, epsilons, orders
from accountant.losses.loss_numerics import ExactCGF, LossNumerics
from accountant.losses.randomised_response import ResponseCGF, response_cgf, response_pmf
from accountant.numerics import Array
from accountant.numerics.rounding import ULP, round_up, round_up_square, round_up_sum

PURE_CGF = ResponseCGF()
PURE = LossNumerics(PURE_CGF)
APPROXIMATE = LossNumerics(ExactCGF())


@final
@dataclass(frozen=True, slots=True)
class PureLoss(BoundedLoss):
    """Any epsilon-DP release: dominated by binary randomised response.

    Parameters
    ----------
    epsilon : float
        Above 0.

    References
    ----------
    Kairouz, Oh & Viswanath (2015), Theorem 3.1.

    Examples
    --------
    >>> from accountant import PureLoss
    >>> round(PureLoss(1.0).delta_at(0.5), 4)
    0.2876
    """

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", POSITIVE.check("epsilon", self.epsilon))

    def profile(self, epsilon: ArrayLike) -> Array:
        """Return the hockey stick of P = (e^e0, 1) / (1 + e^e0) against its mirror image."""
        # (e^e0 - e^eps)_+ / (1 + e^e0)
        e = epsilons(epsilon)
        inside: Array = -np.expm1(np.minimum(e - self.epsilon, 0.0)) / (1 + math.exp(-self.epsilon))
        return inside

    def renyi(self, order: ArrayLike) -> Array:
        """Return the Rényi divergence of binary randomised response."""
        # ln[(e^{alpha e0} + e^{(1-alpha) e0}) / (1 + e^e0)] / (alpha - 1)
        a, e0 = orders(order), self.epsilon
        log_moment = np.logaddexp(a * e0, (1 - a) * e0) - np.logaddexp(0, e0)
        divergence: Array = round_up_sum(log_moment, a * e0) / (a - 1)
        return divergence

    @property
    def numerics(self) -> LossNumerics:
        """The cumulant is exact: a closed form."""
        return PURE

    @property
    def loss_pmf(self) -> tuple[Array, Array]:
        """The two losses ``+-epsilon`` and their masses."""
        return response_pmf(self.epsilon)

    def cumulant(self, z: ArrayLike) -> Any:
        """Return ``ln E[e^{zL}]`` of the two outcomes ``+-epsilon``."""
        s = np.asarray(z, dtype=complex)
        return PURE_CGF.sum_cgf([self], np.ones(1), s)[0][()]

    def dominates(self, other: Loss) -> bool:
        """Return whether ``other`` is bounded by this epsilon."""
        return other.pure <= self.epsilon

    def for_group(self, size: int) -> PureLoss:
        """Return the pure loss of ``size`` times the epsilon."""
        return PureLoss(round_up(RECORDS.check("size", size) * self.epsilon))

    def inverse_profile(self, delta: float) -> float:
        """Return the inverse of the profile, in closed form."""
        # (e^e0 - e^eps) / (1 + e^e0) = delta
        share = delta * (1 + math.exp(-self.epsilon))
        if share > 0.5:
            return Loss.inverse_profile(self, delta)
        e = self.epsilon + math.log1p(-share)
        return min(self.epsilon, max(0.0, e + 8 * ULP * self.epsilon))


@final
@dataclass(frozen=True, slots=True)
class ApproxLoss(SymmetricLoss):
    """Any (epsilon, delta)-DP release, as a claim or a black box.

    Parameters
    ----------
    epsilon : float
        At least 0.
    delta : float
        In [0, 1).

    References
    ----------
    Kairouz, Oh & Viswanath (2015), Theorem 3.1.

    Examples
    --------
    >>> from accountant import ApproxLoss
    >>> ApproxLoss(1.0, 1e-6).epsilon_at(1e-6)
    1.0
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", EPSILON.check("epsilon", self.epsilon))
        object.__setattr__(self, "delta", DELTA.check("delta", self.delta))

    def profile(self, epsilon: ArrayLike) -> Array:
        """Return delta for the outcomes that reveal the data, plus binary randomised response."""
        e = epsilons(epsilon)
        inside = -np.expm1(np.minimum(e - self.epsilon, 0.0)) / (1 + math.exp(-self.epsilon))
        total: Array = self.delta + (1 - self.delta) * inside
        return total

    @property
    def max_loss(self) -> float:
        """The largest finite loss, in nats: epsilon."""
        return self.epsilon

    @property
    def infinity(self) -> float:
        """The mass of outcomes that are impossible on the neighbour: delta."""
        return self.delta

    @property
    def numerics(self) -> LossNumerics:
        """The cumulant is exact: a closed form."""
        return APPROXIMATE

    @property
    def loss_pmf(self) -> tuple[Array, Array]:
        """The two finite losses ``+-epsilon`` and their masses, ``1 - delta`` together."""
        loss, mass = response_pmf(self.epsilon)
        return loss, mass * (1 - self.delta)

    def cumulant(self, z: ArrayLike) -> Any:
        """Return ``ln (1 - delta)`` plus the cumulant of randomised response."""
        s = np.asarray(z, dtype=complex)
        value, _ = response_cgf(np.array(self.epsilon), s)
        return (value + math.log1p(-self.delta))[()]

    @property
    def rho(self) -> float:
        """``epsilon^2 / 2`` of the finite part, which is binary randomised response."""
        return round_up_square(self.epsilon, 2)

    def renyi(self, order: ArrayLike) -> Array:
        """Return the Rényi divergence of the finite part, which has mass ``1 - delta``."""
        a, e0 = orders(order), self.epsilon
        log_moment = np.logaddexp(a * e0, (1 - a) * e0) - np.logaddexp(0, e0)
        divergence: Array = (round_up_sum(log_moment, a * e0) + math.log1p(-self.delta)) / (a - 1)
        return divergence
