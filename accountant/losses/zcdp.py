"""The loss of zero-concentrated differential privacy (zCDP), as a bound over all such releases.

A release is (xi, rho)-zCDP if its Rényi divergence of every order a > 1 is at most xi + rho a.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accountant.domains import NON_NEGATIVE, POSITIVE, RECORDS
from accountant.errors import UnsupportedPlan
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.loss import Loss, SymmetricLoss, epsilons, orders
from accountant.losses.loss_numerics import MANY_PAIRS_BY_RENYI, LossNumerics
from accountant.numerics import Array
from accountant.numerics.rounding import ULP, round_up
from accountant.numerics.search import furthest_that, minimum_of_one_valley


@final
@dataclass(frozen=True, slots=True)
class ZCDPLoss(SymmetricLoss):
    """Any release with Rényi divergence at most ``xi + rho * order``.

    Parameters
    ----------
    rho : float
        Above 0.
    xi : float
        At least 0.

    References
    ----------
    Bun & Steinke (2016); its profile by Canonne, Kamath & Steinke (2020), Proposition 12.

    Examples
    --------
    >>> from accountant import ZCDPLoss
    >>> round(ZCDPLoss(0.5).epsilon_at(1e-6), 4)
    5.2215
    """

    # Every loss has a property `rho`, so the field has a private name.
    _rho: float
    xi: float

    def __init__(self, rho: float, xi: float = 0.0) -> None:
        object.__setattr__(self, "_rho", POSITIVE.check("rho", rho))
        object.__setattr__(self, "xi", NON_NEGATIVE.check("xi", xi))

    @property
    def rho_per_order(self) -> float:
        """The rho of ``xi + rho * order``."""
        return self._rho

    @property
    def numerics(self) -> LossNumerics:
        """An upper envelope: many mechanisms have this rho, and the Rényi curve determines it."""
        return MANY_PAIRS_BY_RENYI

    @property
    def rho(self) -> float:
        """``rho + xi``, since the order is above 1."""
        return round_up(self._rho + self.xi) if self.xi else self._rho

    @property
    def infinity(self) -> float:
        """0: every outcome is possible on both neighbours."""
        return 0.0

    def renyi(self, order: ArrayLike) -> Array:
        """Return ``xi + rho * order``."""
        return self.xi + self._rho * orders(order)

    def profile(self, epsilon: ArrayLike) -> Array:
        """Return the least over a > 0 of ``e^{a((a+1) rho + xi - eps)} a^a / (1+a)^{1+a}``.

        Here a is the Rényi order less 1.
        """
        e = epsilons(epsilon)
        gap = self.xi - np.minimum(e, 1e100)  # an infinite gap would give NaN: inf - inf

        # The exponent is convex in a; its derivative (1+2a) rho + xi - eps + ln(a / (1+a))
        # increases, so bisect on ln a.  Any a gives an upper bound: no accuracy is needed.
        def falls(log_a: Array) -> NDArray[np.bool_]:
            a = np.exp(log_a)
            slope: Array = (1 + 2 * a) * self._rho + gap - np.log1p(1 / a)
            return slope < 0

        # The ends of ln a are such that both a and 1 / a are floats.
        a = np.exp(furthest_that(falls, np.full(e.shape, -700.0), np.full(e.shape, 690.0)))
        with np.errstate(over="ignore", invalid="ignore"):
            size = a * ((a + 1) * self._rho + gap) - a * np.log1p(1 / a) - np.log1p(a)
            # Every a gives a bound, and a -> 0 gives 1.  The exponent is raised by 16 ULP of itself
            # for the round-off.  It may be minus infinity, which 1e300 keeps from NaN.
            delta = np.exp(size + 16 * ULP * np.minimum(np.abs(size), 1e300))
            return np.minimum(np.where(np.isnan(delta), 1.0, delta), 1.0)

    def cumulant(self, z: ArrayLike) -> Any:
        """Return ``z xi + rho (z^2 + z)``, which no one pair attains at all z.

        It bounds the cumulants of all such releases from above at real z >= 0.
        """
        s = np.asarray(z, dtype=complex)
        return (s * self.xi + self._rho * (s * s + s))[()]

    @property
    def attained_pair(self) -> Loss:
        """The Gaussian with this rho; it is rounded down, so that it is surely one such release."""
        return GaussianLoss(math.sqrt(2 * self._rho) * (1 - 4 * ULP))

    def for_group(self, size: int) -> ZCDPLoss:
        """Return the loss of a group, rho times ``size^2`` (Bun & Steinke 2016, Prop. 1.9)."""
        if self.xi:
            reason = "a group bound for xi > 0 is not implemented; use ApproxLoss"
            raise UnsupportedPlan(self, "Grouped", reason)
        return ZCDPLoss(round_up(RECORDS.check("size", size) ** 2 * self._rho))

    def inverse_profile(self, delta: float) -> float:
        """Return the inverse of the profile: the least epsilon over all Rényi orders."""
        _, epsilon = self._best_order(delta)
        return max(0.0, round_up(epsilon, 16))

    def order_at(self, delta: float) -> float:
        """Return the Rényi order that decides epsilon at ``delta``.

        Parameters
        ----------
        delta : float
            In (0, 1).

        Returns
        -------
        float
            Above 1; to nearest: any order gives a bound.
        """
        order_less_1, _ = self._best_order(delta)
        return 1 + order_less_1

    def _best_order(self, delta: float) -> tuple[float, float]:
        """Return the best order less 1, and its epsilon."""

        # Least over a of rho (a+1) + xi + [ln(1/delta) + a ln(a / (1+a)) - ln(1+a)] / a.
        def epsilon(a: Array) -> Array:
            log_terms = -math.log(delta) - a * np.log1p(1 / a) - np.log1p(a)
            return self.xi + self._rho * (a + 1) + log_terms / a

        return minimum_of_one_valley(epsilon)

    def __repr__(self) -> str:
        return f"ZCDPLoss(rho={self._rho!r}, xi={self.xi!r})"
