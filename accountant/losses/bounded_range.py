"""The loss of bounded range, which is that of the exponential mechanism.

A release has range epsilon if for any two neighbours all its log-ratios ln(P/Q) lie in an interval
[t - epsilon, t].  That is stronger than epsilon-DP, which allows them between -epsilon and epsilon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from accountant.domains import POSITIVE, RECORDS
from accountant.losses.finite_pair import PairLoss
from accountant.losses.least_rho import least_rho
from accountant.losses.loss import Loss, SymmetricLoss, epsilons, orders
from accountant.losses.loss_numerics import MANY_PAIRS_BY_RENYI, LossNumerics
from accountant.numerics import Array
from accountant.numerics.logspace import log1mexp
from accountant.numerics.rounding import ULP, round_up, round_up_square


class BoundedLoss(SymmetricLoss):
    """A symmetric loss that never exceeds its epsilon."""

    __slots__ = ()
    epsilon: float

    @property
    def max_loss(self) -> float:
        """The largest finite loss, in nats: epsilon."""
        return self.epsilon

    @property
    def infinity(self) -> float:
        """0: every outcome is possible on both neighbours."""
        return 0.0


@final
@dataclass(frozen=True, slots=True)
class BoundedRangeLoss(BoundedLoss):
    """Any release with log-ratios in ``[t - epsilon, t]`` for some t: the exponential mechanism.

    A supremum over many pairs: profile, rho and Rényi curve have formulas of their own.

    Parameters
    ----------
    epsilon : float
        Width of the range of log-ratios, above 0.

    References
    ----------
    Durfee & Rogers (2019); Dong, Durfee & Rogers (2020), Lemma 3.2; Cesar & Rogers (2021).

    Examples
    --------
    >>> from accountant import BoundedRangeLoss
    >>> round(BoundedRangeLoss(1.0).rho, 4)
    0.1233
    """

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", POSITIVE.check("epsilon", self.epsilon))

    def profile(self, epsilon: ArrayLike) -> Array:
        """Return the supremum of two-point hockey sticks, attained at ``t = (eps + e0) / 2``."""
        # With the range e0, a pair of two outcomes is extreme: its log-ratios are t and t - e0, and
        # Q has the mass q(t) = (e^-t - e^-e0) / (1 - e^-e0) at t, so that P sums to 1.  The
        # greatest q(t) (e^t - e^eps) over t is (1 - e^{(eps - e0) / 2})^2 / (1 - e^-e0).
        e = epsilons(epsilon)
        root = -np.expm1(np.minimum(e - self.epsilon, 0.0) / 2)
        greatest: Array = root * root / -math.expm1(-self.epsilon)
        return greatest

    @property
    def numerics(self) -> LossNumerics:
        """No pair attains the whole profile, and the Rényi curve determines it."""
        return MANY_PAIRS_BY_RENYI

    @property
    def attained_pair(self) -> Loss:
        """The two-point pair whose log-ratios are ``+-epsilon / 2``."""
        low = math.exp(-self.epsilon / 2) / (1 + math.exp(-self.epsilon / 2))
        return PairLoss((1 - low, low), (low, 1 - low))

    @property
    def rho(self) -> float:
        """The supremum of the Rényi curve, at most ``epsilon^2 / 8``.

        References
        ----------
        Cesar & Rogers (2021), Lemma 3.4, for ``epsilon^2 / 8``.
        """
        return min(round_up_square(self.epsilon, 8), least_rho(self))

    def renyi(self, order: ArrayLike) -> Array:
        """Return the supremum over t of the two-point Rényi divergences, in closed form."""
        # With c = e^-e0 and b = order - 1, the moment is
        #     e^{bt} [(1 - c^{b+1}) - e^t (c - c^{b+1})] / (1 - c);
        # its derivative in t vanishes at
        #     e^t = [(1 - c^{b+1}) / (b + 1)] / [c (1 - c^b) / b],
        # where the moment is e^{bt} (1 - c^{b+1}) / ((b + 1) (1 - c)).  The last quotient is
        # [1 + c (1 - c^b) / (1 - c)] / (1 + b), in which nothing cancels where b is small.
        b, e0 = orders(order) - 1, self.epsilon
        log_1_less_c_to_b = log1mexp(-b * e0)  # ln(1 - c^b)
        log_growth = log1mexp(-(b + 1) * e0) - np.log1p(b)
        log_fall = log_1_less_c_to_b - np.log(b) - e0
        t = log_growth - log_fall
        log_quotient = np.log1p(np.exp(log_1_less_c_to_b - log1mexp(np.array(-e0)) - e0))
        factor = (log_quotient - np.log1p(b)) / b
        size = np.abs(log_growth) + np.abs(log_fall) + e0 + (log_quotient + np.log1p(b)) / b
        divergence = t + factor + 16 * ULP * (1 + size)
        return np.minimum(
            np.minimum(divergence, orders(order) * round_up_square(e0, 8)), round_up(e0)
        )

    def for_group(self, size: int) -> BoundedRangeLoss:
        """Return the loss whose range is ``size`` times as large: ranges of records add up."""
        return BoundedRangeLoss(round_up(RECORDS.check("size", size) * self.epsilon))
