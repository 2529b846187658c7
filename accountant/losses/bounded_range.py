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
from accountant.numerics.rounding import round_up, round_up_square, round_up_sum


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
        # The moment is e^{(a-1)t} [(1 - c^a) - e^t (c - c^a)] / (1 - c), c = e^-e0; its derivative
        # in t vanishes at e^t = (a-1)(1 - c^a) / (a (c - c^a)), where it is
        # e^{(a-1)t} (1 - c^a) / (a (1 - c)).
        a, e0 = orders(order), self.epsilon
        log_1_less_c_to_a = log1mexp(-a * e0)  # ln(1 - c^a)
        log_1_less_c_to_a_less_1 = log1mexp(-(a - 1) * e0)  # ln(1 - c^{a-1})
        log_share = np.log((a - 1) / a)
        t = log_share + log_1_less_c_to_a + e0 - log_1_less_c_to_a_less_1
        size_of_t = (
            np.abs(log_share) + np.abs(log_1_less_c_to_a) + e0 + np.abs(log_1_less_c_to_a_less_1)
        )
        t = round_up_sum(t, size_of_t)
        log_factor = log_1_less_c_to_a - np.log(a) - log1mexp(np.array(-e0))
        size = np.abs(log_factor) + np.abs(log_1_less_c_to_a) + np.log(a)
        divergence = t + round_up_sum(log_factor, size) / (a - 1)
        return np.minimum(np.minimum(divergence, a * round_up_square(e0, 8)), round_up(e0))

    def for_group(self, size: int) -> BoundedRangeLoss:
        """Return the loss whose range is ``size`` times as large: ranges of records add up."""
        return BoundedRangeLoss(round_up(RECORDS.check("size", size) * self.epsilon))
