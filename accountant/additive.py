"""Losses of additive noise: Gaussian and Laplace."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.domains import POSITIVE, Whole
from accountant.exponentials import BLOCK, phases, power, round_off
from accountant.loss import (
    ACCURACY,
    Loss,
    Symmetric,
    epsilons,
    factors_from_cumulants,
    orders,
)
from accountant.numerics import (
    ULP,
    Array,
    Complex,
    legendre,
    log1mexp,
    log1p,
    log_ndtr,
    square_up,
    up,
    up_sum,
)

RECORDS = Whole(1)
FEW = 2000  # losses; more are interpolated
SMOOTH = 0.1  # |z| shift up to which a cumulant is smooth in the shift


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
        return np.exp(self.log_profile(epsilon))

    def log_profile(self, epsilon: ArrayLike) -> Array:
        """Logarithm of `profile`, exact in the far tail."""
        e = epsilons(epsilon)
        if self.mu < 1:
            return _narrow_log_profile(e, self.mu)
        log_p, log_q = self._tails(e)
        return log_p + log1mexp(np.minimum(log_q - log_p, 0.0))

    def _tails(self, epsilon: Array) -> tuple[Array, Array]:
        """``ln Phi(-x)`` and ``ln e^eps Phi(-x - mu)``, ``x = eps/mu - mu/2``."""
        from scipy.special import erfcx

        # e^eps phi(x + mu) = phi(x), so the second is phi(x) R(x + mu), R the Mills ratio
        with np.errstate(over="ignore"):
            x = np.minimum(epsilon / self.mu, 1e150) - self.mu / 2
            log_phi = -x * x / 2
        log_mills = np.log(erfcx((x + self.mu) / math.sqrt(2))) - math.log(2)
        return log_ndtr(-x), log_phi + log_mills

    @property
    def infinity(self) -> float:
        """Nothing is impossible."""
        return 0.0

    @property
    def rho(self) -> float:
        """``mu^2 / 2``, attained at every order."""
        return square_up(self.mu, 2)

    @property
    def gdp(self) -> float:
        """Its mu."""
        return self.mu

    @property
    def certified(self) -> bool:
        """Its cumulant is a polynomial."""
        return True

    def renyi(self, order: ArrayLike) -> Array:
        """``order mu^2 / 2``."""
        return orders(order) * self.rho

    def cumulant(self, z: ArrayLike) -> Any:
        """``mu^2 (z^2 + z) / 2``."""
        s = np.asarray(z, dtype=complex)
        return (self.mu * self.mu * (s * s + s) / 2)[()]

    @classmethod
    def cumulants(cls, losses: Sequence[Self], counts: Array, z: Any) -> tuple[Any, Array]:
        """All Gaussians of a plan are one."""
        total = square_sum(losses, counts) / 2 * (z * z + z)
        return total, 8 * ULP * np.abs(total)

    @classmethod
    def decays(cls, losses: Sequence[Self], counts: Array, a: float, u: Array) -> Array:
        """``-mu^2 u^2 / 2``."""
        return -square_sum(losses, counts) * (1 - 1e-12) * u * u / 2

    def covers(self, other: Loss) -> bool:
        """A greater shift covers a smaller one."""
        return isinstance(other, GaussianLoss) and self.mu >= other.mu

    def grouped(self, size: int) -> GaussianLoss:
        """``size`` records shift by ``size`` times as much."""
        return GaussianLoss(up(RECORDS.check("size", size) * self.mu))

    def _inverse(self, delta: float) -> float:
        # ln delta(eps) falls with slope -e^{eps + ln Phi(-mu/2 - eps/mu)} / delta(eps): Newton
        target = math.log(delta) - ACCURACY
        if float(self.log_profile(0.0)) <= target:
            return 0.0
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
            e = e + step * (1 + 1e-9) + 2 * ULP * e
            if not low < e < high:
                e = (low + high) / 2
        return up(high)


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
    def top_mass(self) -> float:
        """Half of P lies where the loss is the shift."""
        return 0.5

    @property
    def rho(self) -> float:
        """``shift - 1 + e^-shift``: the divergence at order 1, where the ratio is greatest."""
        m = self.shift
        return min(square_up(m, 2), max(m + math.expm1(-m) + 4 * ULP * m, 1e-300))

    @property
    def certified(self) -> bool:
        """Its cumulant is a closed form."""
        return True

    def renyi(self, order: ArrayLike) -> Array:
        """Rényi divergence of two shifted Laplace laws."""
        # ln[ a/(2a-1) e^{(a-1)m} + (a-1)/(2a-1) e^{-am} ] / (a-1)
        a, m = orders(order), self.shift
        log_moment = np.logaddexp(
            np.log(a / (2 * a - 1)) + (a - 1) * m, np.log((a - 1) / (2 * a - 1)) - a * m
        )
        divergence: Array = np.minimum(up_sum(log_moment, a * m) / (a - 1), up(m))
        return divergence

    def cumulant(self, z: ArrayLike) -> Any:
        """``ln [(z+1) e^{zm} + z e^{-(z+1)m}] / (2z+1)``."""
        s = np.asarray(z, dtype=complex)
        return self.cumulants([self], np.ones(1), s)[0][()]

    @classmethod
    def cumulants(cls, losses: Sequence[Self], counts: Array, z: Any) -> tuple[Any, Array]:
        """Sum of the closed forms, many losses at a time."""
        shifts = np.fromiter((one.shift for one in losses), float, len(losses))
        if shifts.size <= FEW:
            return in_blocks(_laplace_cumulant, shifts, counts, z)
        near = np.abs(z) * np.max(shifts) <= SMOOTH
        value, error = np.empty(z.shape, dtype=z.dtype), np.empty(z.shape)
        standing, weights = interpolated(shifts, counts)
        some, size = in_blocks(_laplace_cumulant, standing, weights, z[near])
        # what interpolation misses, see `interpolated`
        size += 1e-13 * np.abs(z[near] * (z[near] + 1)) * float(counts @ (shifts * shifts))
        value[near], error[near] = some, size
        value[~near], error[~near] = in_blocks(_laplace_cumulant, shifts, counts, z[~near])
        return value, error

    @classmethod
    def factors(cls, losses: Sequence[Self], counts: Array, z: Complex) -> tuple[Complex, Array]:
        """``[(z+1) e^{zm} + z e^{-(z+1)m}] / (2z+1)``: two outer products a loss."""
        if len(losses) > FEW:
            return factors_from_cumulants(cls.cumulants, losses, counts, z)
        a, w = z[0, 0].real, 2 * z + 1
        product, missed = np.ones(z.shape, dtype=complex), np.zeros(z.shape)
        for loss, count in zip(losses, counts.tolist(), strict=True):
            m = loss.shift
            turn = np.outer(phases(z[:, 0].imag * m), phases(z[0].imag * m))
            # scaled by e^{am}; the second term is that of the conjugate phase
            low = math.exp(-(2 * a + 1) * m)
            one = ((z + 1) * turn + low * z * turn.conj()) / w
            one /= one[0, 0].real
            product *= power(one, int(count))
            missed += round_off(count, m, z)
        return product, missed

    @classmethod
    def decays(cls, losses: Sequence[Self], counts: Array, a: float, u: Array) -> Array:
        """``(1 + 1/(2u)) / (1 + tanh(w m) / (2w))`` bounds each factor, ``w = a + 1/2``."""
        # K = -m/2 + ln[cosh(s m) + sinh(s m) / (2s)], s = w + iu; both are below cosh(w m)
        shifts = np.fromiter((one.shift for one in losses), float, len(losses))
        w = a + 0.5
        gain = np.log1p(np.tanh(w * shifts) / (2 * w)) * (1 - 1e-12)
        order = np.argsort(-gain)
        gain, counts = gain[order], counts[order]
        loss = np.log1p(0.5 / u)
        used = np.searchsorted(-gain, -loss)  # only factors that are below 1 help
        number = np.append(0.0, np.cumsum(counts))[used]
        total: Array = number * loss - np.append(0.0, np.cumsum(counts * gain))[used]
        return np.minimum(total, 0.0)

    def covers(self, other: Loss) -> bool:
        """A greater shift covers a smaller one."""
        return isinstance(other, LaplaceLoss) and self.shift >= other.shift

    def grouped(self, size: int) -> LaplaceLoss:
        """``size`` records shift by ``size`` times as much."""
        return LaplaceLoss(up(RECORDS.check("size", size) * self.shift))

    def _inverse(self, delta: float) -> float:
        # 1 - e^{(eps - shift) / 2} = delta
        return min(self.shift, max(0.0, self.shift + 2 * math.log1p(-delta) + 4 * ULP * self.shift))


def square_sum(losses: Sequence[Any], counts: Array) -> float:
    """``sum count mu^2`` of Gaussians."""
    mu = np.fromiter((one.mu for one in losses), float, len(losses))
    with np.errstate(over="ignore"):
        return float(counts @ (mu * mu))


def interpolated(parameters: Array, counts: Array, points: int = 24) -> tuple[Array, Array]:
    """A few parameters with weights that stand for many: Chebyshev interpolation by octaves.

    For a function analytic on the ellipse of radius 4 around [m, 2m] and at most M there, a sum
    over parameters misses at most (4/3) M 4^-24 = 5e-15 M each.  With ``|z| m <= 0.1`` a Laplace
    cumulant is: there ``|E e^{zL} - 1| <= 1/2`` and ``M <= 9 |z (z+1)| m^2``.
    """
    octave = np.frexp(parameters)[1]
    standing, weights = [], []
    angle = (np.arange(points) + 0.5) * np.pi / points
    table = np.cos(np.outer(np.arange(points), angle))  # T_j at the nodes
    table[0] /= 2
    for one in np.unique(octave):
        some = octave == one
        centre, half = 0.75 * 2.0 ** int(one), 0.25 * 2.0 ** int(one)
        x, c = (parameters[some] - centre) / half, counts[some]
        before, now, moments = np.ones(x.size), x, [float(c.sum()), float(c @ x)]
        for _ in range(points - 2):  # T_{j+1} = 2 x T_j - T_{j-1}
            before, now = now, 2 * x * now - before
            moments.append(float(c @ now))
        standing.append(centre + half * np.cos(angle))
        weights.append(2 / points * (np.array(moments) @ table))
    return np.concatenate(standing), np.concatenate(weights)


def in_blocks(formula: Any, parameters: Array, counts: Array, z: Any) -> tuple[Any, Array]:
    """Sum ``counts[i] formula(parameters[i], z)``, (value, round-off), in bounded memory."""
    total, size = np.zeros(z.shape, dtype=z.dtype), np.zeros(z.shape)
    flat, step = z.reshape(1, -1), max(1, BLOCK // max(z.size, 1))
    for first in range(0, parameters.size, step):
        part = slice(first, first + step)
        value, error = formula(parameters[part, None], flat)
        total += (counts[part] @ value).reshape(z.shape)
        size += (np.abs(counts[part]) @ error).reshape(z.shape)
    return total, size + min(parameters.size, 1000) * ULP * np.abs(total)


def _laplace_cumulant(shift: Array, z: Any) -> tuple[Any, Array]:
    # the ratio is 1 + [(z+1) expm1(zm) + z expm1(-(z+1)m)] / (2z+1); where e^{zm} would overflow
    # it is e^{zm} [(z+1) + z e^{-(2z+1)m}] / (2z+1)
    far = shift * (z.real + 1) > 30
    with np.errstate(over="ignore", invalid="ignore"):
        m = np.where(far, 0.0, shift)
        near = ((z + 1) * np.expm1(z * m) + z * np.expm1(-(z + 1) * m)) / (2 * z + 1)
        value = log1p(near)
        if far.any():
            s = np.broadcast_to(2 * z + 1, far.shape)[far]
            large = np.broadcast_to(shift * z, far.shape)[far]
            tail = np.exp(-s * np.broadcast_to(shift, far.shape)[far])
            value[far] = large + np.log(((s + 1) / 2 + (s - 1) / 2 * tail) / s)
        # what the terms cancel to is inexact by an ulp of them
        terms = np.minimum(np.abs(z) * shift, 1.0) * np.exp(z.real * shift - value.real)
        size = terms + np.abs(value) + far
    return value, 16 * ULP * size


def _narrow_log_profile(epsilon: Array, mu: float) -> Array:
    """The Gaussian profile for small mu, where the difference of two tails would cancel."""
    from scipy.special import erfcx

    # delta = phi(x) (R(x) - R(x + mu)), x = eps/mu - mu/2, R the Mills ratio, R' = x R - 1:
    # delta = phi(x) int_0^mu 1 - (x + s) R(x + s) ds, by 16 points; all terms are positive.
    size = np.abs(epsilon)
    with np.errstate(over="ignore"):
        x = np.minimum(size / mu, 1e100) - mu / 2
    nodes, weights = legendre(16)
    y = np.minimum(x, 1e6)[..., None] + mu * (nodes + 1) / 2
    slope = 1 - y * np.sqrt(np.pi / 2) * erfcx(y / np.sqrt(2))
    # beyond y = 30 that difference cancels; 1/y^2 - 3/y^4 + 15/y^6 - 105/y^8 + 945/y^10 does not
    t = 1 / np.maximum(y, 30.0) ** 2
    series = t * (1 - t * (3 - t * (15 - t * (105 - t * 945))))
    slope = np.where(y > 30, series, slope)
    log_delta = -x * x / 2 + np.log(slope @ weights * mu / 2) - np.log(2 * np.pi) / 2
    # negative epsilons follow from the symmetry of the pair
    with np.errstate(divide="ignore"):
        negative = np.log(-np.expm1(-size) + np.exp(-size + log_delta))
    either: Array = np.where(epsilon >= 0, log_delta, negative)
    return either
