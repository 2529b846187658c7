"""Losses of additive noise: Gaussian and Laplace."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from accountant.domains import POSITIVE
from accountant.loss import Symmetric, epsilons, orders
from accountant.numerics import ULP, Array, legendre, log1mexp, log_ndtr, square_up, up, up_sum


@final
@dataclass(frozen=True, slots=True)
class GaussianLoss(Symmetric):
    """N(mu, 1) against N(0, 1), ``mu`` the shift in standard deviations.

    Source: Balle & Wang (2018), Theorem 8; Dong, Roth & Su (2022) for its composition.
    """

    mu: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", POSITIVE.check("mu", self.mu))

    def profile(self, epsilon: ArrayLike) -> Array:
        """``Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu)``, without cancelling."""
        e = epsilons(epsilon)
        if self.mu < 1:
            return _narrow_profile(e, self.mu)
        with np.errstate(over="ignore"):
            shift = e / self.mu
        log_p = log_ndtr(self.mu / 2 - shift)
        log_q = log_ndtr(-self.mu / 2 - shift)
        with np.errstate(invalid="ignore"):
            ratio = np.where(np.isfinite(log_q), e + log_q - log_p, -np.inf)
        return np.exp(log_p + log1mexp(np.minimum(ratio, 0.0)))

    @property
    def infinity(self) -> float:
        """Nothing is impossible."""
        return 0.0

    @property
    def rho(self) -> float:
        """``mu^2 / 2``, attained at every order."""
        return square_up(self.mu, 2)

    def renyi(self, order: ArrayLike) -> Array:
        """``order mu^2 / 2``."""
        return orders(order) * self.rho

    def cumulant(self, z: complex) -> complex:
        """``mu^2 (z^2 + z) / 2``."""
        return self.mu * self.mu * (z * z + z) / 2


@final
@dataclass(frozen=True, slots=True)
class LaplaceLoss(Symmetric):
    """Laplace(0, 1) against Laplace(shift, 1).

    Source: Dwork, McSherry, Nissim & Smith (2006); Mironov (2017), Table II for its Rényi curve.
    """

    shift: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "shift", POSITIVE.check("shift", self.shift))

    def profile(self, epsilon: ArrayLike) -> Array:
        """``1 - e^{(eps - shift) / 2}`` below the shift, 0 above."""
        e = epsilons(epsilon)
        inside: Array = -np.expm1(np.minimum(e - self.shift, 0.0) / 2)
        return inside

    @property
    def bound(self) -> float:
        """The shift."""
        return self.shift

    @property
    def infinity(self) -> float:
        """Nothing is impossible."""
        return 0.0

    @property
    def rho(self) -> float:
        """``shift - 1 + e^-shift``: the divergence at order 1, where the ratio is greatest."""
        m = self.shift
        return min(square_up(m, 2), max(m + math.expm1(-m) + 4 * ULP * m, 1e-300))

    def renyi(self, order: ArrayLike) -> Array:
        """Rényi divergence of two shifted Laplace laws."""
        # ln[ a/(2a-1) e^{(a-1)m} + (a-1)/(2a-1) e^{-am} ] / (a-1)
        a, m = orders(order), self.shift
        log_moment = np.logaddexp(
            np.log(a / (2 * a - 1)) + (a - 1) * m, np.log((a - 1) / (2 * a - 1)) - a * m
        )
        divergence: Array = np.minimum(up_sum(log_moment, a * m) / (a - 1), up(m))
        return divergence

    def cumulant(self, z: complex) -> complex:
        """``ln E[e^{zL}]``; the two atoms +-shift and the slope between them."""
        # e^{zm}/2 + e^{-m-zm}/2 + (e^{-m/2}/2) sinh((z+1/2) m) / (z+1/2), times e^{-zm}
        m, w = self.shift, complex(z) + 0.5
        slope = -np.expm1(-2 * w * m) / (4 * w) if abs(w * m) > 1e-8 else m / 2
        return complex(z * m + np.log(0.5 + np.exp(-2 * w * m) / 2 + slope))


def _narrow_profile(epsilon: Array, mu: float) -> Array:
    """The Gaussian profile for small mu, where the difference of two tails would cancel."""
    from scipy.special import erfcx

    # delta = phi(x) (R(x) - R(x + mu)), x = eps/mu - mu/2, R the Mills ratio, R' = x R - 1:
    # delta = phi(x) int_0^mu 1 - (x + s) R(x + s) ds, by 16 points; all terms are positive.
    size = np.abs(epsilon)
    with np.errstate(over="ignore"):
        x = np.minimum(size / mu, 1e100) - mu / 2
    nodes, weights = legendre(16)
    y = np.minimum(x, 40.0)[..., None] + mu * (nodes + 1) / 2
    slope = 1 - y * np.sqrt(np.pi / 2) * erfcx(y / np.sqrt(2))
    with np.errstate(under="ignore"):
        delta = np.exp(-x * x / 2) / np.sqrt(2 * np.pi) * (slope @ weights) * mu / 2
    # negative epsilons follow from the symmetry of the pair
    negative = -np.expm1(-size) + np.exp(-size) * delta
    either: Array = np.where(epsilon >= 0, delta, negative)
    return either
