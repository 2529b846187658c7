"""A sampled Gaussian without its greatest outputs, whose loss alone exceeds an epsilon.

Let A: some output of n is above ``cut``.  Where L(cut) >= eps - (n-1) ln(1 - rate), every outcome
in A costs more than eps, and  delta(eps) = P(A) - e^eps Q(A) + the delta of what is left.  What is
left is bounded, so that a contour through its saddle point is no larger than its delta.

Proof: `docs/proofs/sampled_gaussian.md`.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from accountant.amplification.sampled_gaussian.sampled_gaussian_cgf import SampledGaussian
from accountant.amplification.sampled_gaussian.sampled_gaussian_decay import LINE_LADDER, Decay
from accountant.amplification.sampled_gaussian.sampled_gaussian_lines import (
    TAIL_DEVIATIONS,
    Line,
    log_growth,
    loss_and_share,
    rule_on,
)
from accountant.amplification.sampled_gaussian.sampled_gaussian_moments import (
    log_moments,
    moment_power,
)
from accountant.numerics import Array, Complex
from accountant.numerics.logspace import log_mixture_at, logsumexp
from accountant.numerics.rounding import ULP

STRIP = 0.97 * math.pi / 4  # of the curve's parameter: curve and strip stay left of the cut
STRIP_NATS = 45.0  # e^{2 pi d / h}
LAST_PARAMETER = 36.0  # what lies beyond it is bounded by itself
HIGHEST_CURVE = 1.25
WIDEST_STRIP = 2.5  # e^{2.5^2 / 2} is what it adds to the error of a real line
LARGE_PEAK = 250.0  # ln r^p at the cut for the powers of a rule on the real line
SMALL_MU, SMALL_RATE = 0.6, 0.05  # a bound by the variance is then close
REST_CHANCE = 1e-13  # times what is less than delta
ROUGH_STRIDE = 3  # of the points of a rule for estimates: it errs by e^-15
MAX_CUT = 400.0  # beyond it the quadrature is long, and the tail matters little


@dataclass(frozen=True, slots=True)
class TruncatedSampledGaussian:
    """``count`` sampled Gaussians with the record present, their outputs at most ``cut``."""

    mu: float
    rate: float
    cut: float
    count: int

    def cgf(self, z: Any) -> tuple[Any, Array]:
        """Return ``ln E[e^{zL}; x <= cut]`` of one, and a bound on its error."""
        if np.size(z) == 1 and not np.iscomplexobj(z):
            return tuple(one.reshape(np.shape(z)) for one in _moment(self, float(np.ravel(z)[0])))
        if np.iscomplexobj(z):
            rule = self.curve(float(np.max(z.real)) + 1)
        else:
            rule = cut_line(self.mu, self.rate, self.cut)
        value, error = log_moments(rule, np.ravel(z).astype(complex) + 1)
        found = value if np.iscomplexobj(z) else value.real
        return found.reshape(np.shape(z)), error.reshape(np.shape(z))

    @property
    def has_short_sum(self) -> bool:
        """True: of every few points of the rule."""
        return True

    def rough_cgf(self, a: Array) -> Array:
        """Return about ``ln E[e^{aL}; x <= cut]`` at real ``a``: no bound follows from it."""
        loss, log_mass = _short_rule(self.mu, self.rate, self.cut)
        rough: Array = logsumexp((a[:, None] + 1) * loss + log_mass)
        return rough

    def cf_ratio(self, z: Complex) -> tuple[Complex, Array]:
        """Return the power of ``E[e^{zL}; x <= cut]`` over that at Re z, and its error."""
        return moment_power(self.curve(float(z[0, 0].real) + 1), z + 1, self.count)

    def log_cf_bound(self, a: float, u: Array) -> Array:
        """Return the log of a bound on ``|E e^{(a+iv)L}| / E e^{aL}`` for every ``v >= u``."""
        return _curves_of_decay(self, a, self._highest).log_bound(u)

    @property
    def points(self) -> int:
        """The number of points of the rule, at most."""
        step = 2 * math.pi * STRIP / STRIP_NATS
        return math.ceil((LAST_PARAMETER + (self.cut + TAIL_DEVIATIONS) / self._highest) / step)

    @property
    def _highest(self) -> float:
        return min(0.45 * math.pi / self.mu, HIGHEST_CURVE)

    def curve(self, power: float) -> Line:
        """Return the rule on the curve that ends at the cut, for powers with this real part."""
        return cut_curve(self.mu, self.rate, self.cut, self._highest, power)

    def sure_delta(self, epsilon: float) -> tuple[float, float]:
        """Return ``E[(1 - e^{eps - L})+; A]`` between two bounds."""
        # p - q = rate (N(mu, 1) - N(0, 1))(x > cut);  P(A) - Q(A) = (1-q)^n - (1-p)^n
        q, moved = _normal_tail(self.cut), _normal_tail(self.cut - self.mu)
        if not moved > q:
            return 0.0, 1e-290
        none = self.count * math.log1p(-q)
        more = self.count * math.log1p(-self.rate * (moved - q) / (1 - q))
        gain, paid = -math.exp(none) * math.expm1(more), -math.expm1(epsilon) * math.expm1(none)
        # an ulp of the cut moves a tail by about cut^2 ulps
        error = ULP * (64 + 8 * abs(self.cut) * (abs(self.cut) + self.mu)) * (gain + paid)
        error *= (moved + q) / (moved - q)
        # where the others gain back more than `cut` allows: e^eps Q(A, L < eps) at most
        doubt = math.exp(epsilon) * self.count * q * REST_CHANCE
        return gain - paid - error, gain - paid + error + doubt


@functools.lru_cache(maxsize=4)
def _moment(part: TruncatedSampledGaussian, a: float) -> tuple[Array, Array]:
    """Return the cumulant at one real order: a contour asks for its own more than once."""
    return log_moments(cut_line(part.mu, part.rate, part.cut), np.array([a + 1]))


@functools.lru_cache(maxsize=4)
def _curves_of_decay(part: TruncatedSampledGaussian, a: float, highest: float) -> Decay:
    """Return curves that bound a transform."""
    mu, rate, cut, power = part.mu, part.rate, part.cut, a + 1
    # its power falls by some 60 nats where it is small beside 60 / count: few digits of it matter
    nats = min(60 / part.count + math.log(part.count) + 12, STRIP_NATS)
    t, step, beyond = _parameters(mu, rate, cut, highest, STRIP, power, nats)
    x, speed = _place(t, cut, highest, 0.0)
    eta, rise = highest * LINE_LADDER, 1 / (1 + np.exp(t))
    value, error = part.cgf(np.array([a]))
    moment = float(value[0] - error[0])
    log_weight = -(x.real**2 + math.log(2 * math.pi)) / 2 + np.log(speed.real * step) - moment
    missed = float(part.curve(power).log_missed(np.array([power]))[0]) + STRIP_NATS - nats
    beyond += power * _log_ratio(mu, rate, cut)
    errors = np.full(eta.shape, 2 * math.exp(min(np.logaddexp(missed, beyond) - moment, 700.0)))
    return Decay(mu, rate, power, x.real, log_weight, eta, errors, rise, highest)


def truncated(
    sampled: SampledGaussian, count: int, epsilon: float
) -> TruncatedSampledGaussian | None:
    """Return ``count`` releases without outputs that cost more than epsilon; None if too many."""
    cut = cut_above(sampled.mu, sampled.rate, count, epsilon)
    if not 0 < cut * max(1.0, sampled.mu) < MAX_CUT:
        return None
    return TruncatedSampledGaussian(sampled.mu, sampled.rate, cut, count)


def cut_above(mu: float, rate: float, count: int, epsilon: float) -> float:
    """Return an output whose loss exceeds ``epsilon`` and what the others give back.

    They give back at most ``-(count - 1) ln(1 - rate)``, or less up to a chance of 1e-13.
    """
    least = epsilon + least_return(mu, rate, count)
    least *= 1 + 1e-12
    y = math.log1p(math.expm1(least) / rate) if least < 700 else least - math.log(rate)
    return (y + mu * mu / 2) / mu * (1 + 1e-12) + 1e-12


@functools.lru_cache(maxsize=64)
def least_return(mu: float, rate: float, count: int) -> float:
    """Return what ``count - 1`` losses are above the negative of, under Q, but for 1e-13."""
    most = -(count - 1) * math.log1p(-rate) if rate < 1 else math.inf
    # Q(sum L < -s) <= (E_Q r^-t)^(n-1) e^-ts
    nats = -math.log(REST_CHANCE)
    if mu <= SMALL_MU and rate < SMALL_RATE:
        return min(most, _return_by_variance(mu, rate, count - 1, nats))
    t = np.geomspace(1e-2, 1e3, 12) / (rate * min(mu, 1.0) * math.sqrt(count))
    others = SampledGaussian(mu, rate, True)
    with np.errstate(over="ignore", invalid="ignore"):
        rough = ((count - 1) * others.rough_cgf(t) - math.log(REST_CHANCE)) / t
    best = int(np.argmin(np.where(np.isfinite(rough), rough, np.inf)))
    if rough[best] > most:
        return most
    value, error = others.cgf(t[[best]])
    bound = float(((count - 1) * (value + error) + nats)[0]) / float(t[best])
    return min(most, bound) if math.isfinite(bound) else most


def _return_by_variance(mu: float, rate: float, n: int, nats: float) -> float:
    """Return an ``s`` with ``Q(sum of n losses < -s) <= e^-nats``, close where mu and rate are small.

    By Bernstein's inequality, or by a tangent to the loss, which is convex in the output.
    """
    # r = 1 + W, -ln r <= b = -ln(1-q), <= -W + (W/(1-q))^2 / 2, and its square <= (W/(1-q))^2:
    # ln E r^-t <= v (t/2 + (e^{tb} - 1 - tb) / b^2), v the variance of W over (1-q)^2
    b, v = -math.log1p(-rate), (rate / (1 - rate)) ** 2 * math.expm1(mu * mu)
    t = min(math.sqrt(2 * nats / (n * v)), 2 / b)
    first = n * v * (t / 2 + (math.expm1(t * b) - t * b) / (b * b)) + nats
    # L(x) >= L(0) + L'(0) x:  ln E r^-t <= -t L(0) + (t L'(0))^2 / 2
    rest = rate * math.expm1(-mu * mu / 2)
    slope = mu * rate * math.exp(-mu * mu / 2) / (1 + rest)
    return min(first / t, slope * math.sqrt(2 * nats * n) - n * math.log1p(rest))


@functools.lru_cache(maxsize=16)
def cut_line(mu: float, rate: float, cut: float) -> Line:
    """Return the rule on the real line up to the cut, for real powers."""
    # Re x <= cut on a strip twice as wide as that of a curve, whose height is 0
    width = min(WIDEST_STRIP, 0.9 * math.pi / mu) / (2 * STRIP)
    power = LARGE_PEAK / max(_log_ratio(mu, rate, cut), 1e-300)
    return _up_to(mu, rate, cut, (width, 0.0, 2 * STRIP), power)


@functools.lru_cache(maxsize=4)
def _short_rule(mu: float, rate: float, cut: float) -> tuple[Array, Array]:
    """Return losses and logarithms of masses for estimates: every few points of the line."""
    line = cut_line(mu, rate, cut)
    log_mass = line.log_mass[::ROUGH_STRIDE]
    # that they add up to the mass kept matters more than each: powers of the sum are many
    log_mass = log_mass - logsumexp(log_mass) + math.log1p(-line.lost)
    return line.loss[::ROUGH_STRIDE], log_mass


@functools.lru_cache(maxsize=16)
def cut_curve(mu: float, rate: float, cut: float, height: float, power: float) -> Line:
    """Return the rule on a curve that runs at this height and ends at the cut, at ``Re s``."""
    return _up_to(mu, rate, cut, (height, height, STRIP), power)


def _up_to(
    mu: float, rate: float, cut: float, shape: tuple[float, float, float], power: float
) -> Line:
    """Return the rule on the curve of this width, height and strip, for powers about this one."""
    width, height, strip = shape
    t, step, beyond = _parameters(mu, rate, cut, width, strip, power)
    x: Any
    speed: Any
    x, speed = _place(t, cut, width, height)
    sides, both = np.array([[strip], [-strip]]), 1.0
    if not height:  # real, and the lower edge is the mirror image of the upper one
        x, speed, sides, both = x.real, speed.real, sides[:1], 2.0
    at, along = _place(t + 1j * sides, cut, width, height)
    loss, share = loss_and_share(mu, rate, at.real)
    edge = loss + log_growth(loss, share, rate, mu * at.imag)
    edge_mass = (at.imag**2 - at.real**2 - math.log(2 * math.pi)) / 2
    edge_mass += np.log(both * step * np.abs(along))
    missed = 2 * math.exp(-STRIP_NATS)
    return rule_on(mu, rate, x, step * speed, missed)._replace(
        edge=np.append(edge, _log_ratio(mu, rate, cut)),
        edge_mass=np.append(edge_mass, beyond - math.log(missed)),
        lost=_normal_tail(cut),
    )


def _parameters(
    mu: float,
    rate: float,
    cut: float,
    width: float,
    strip: float,
    power: float,
    nats: float = STRIP_NATS,
) -> tuple[Any, float, float]:
    """Return places, their distance, and a bound on what lies beyond them, over r^s at the cut.

    They end where this is e^-nats at the ``power``.
    """
    step = 2 * math.pi * strip / nats
    first = -(cut + TAIL_DEVIATIONS) / width
    t: Any = first + step * np.arange(math.ceil((LAST_PARAMETER - first) / step) + 1)
    # |dx| <= 2 width dt / (1 + e^t), also on the edges, and Re x is at least this from here on
    left = np.logaddexp(0.0, -t)
    place = np.maximum(cut - width * (left + np.minimum(left, 0.35)), 0.0)
    beyond = np.log(2 * width * left) - place * place / 2 + WIDEST_STRIP**2 / 2
    enough = -nats - power * _log_ratio(mu, rate, cut)
    at = min(int(np.searchsorted(-beyond, -enough)), t.size - 1)
    return t[: at + 1], step, float(beyond[at])


def _log_ratio(mu: float, rate: float, x: float) -> float:
    """Return ``ln r(x)``."""
    return log_mixture_at(mu * x - mu * mu / 2, rate)


def _place(t: Any, cut: float, width: float, height: Any) -> tuple[Complex, Complex]:
    """Return ``x(t) = cut - width ln(1 + e^-t) + i height / (1 + e^t)``, and its derivative."""
    near = np.real(t) > 0
    small = np.exp(np.where(near, -t, t))
    fall = np.where(near, small, 1.0) / (1 + small)
    # ln(1 + e^-t) = -t + ln(1 + e^t)
    log_term = np.where(near, 0.0, -t) + np.log1p(small)
    return cut - width * log_term + 1j * height * fall, fall * (width - 1j * height * (1 - fall))


def _normal_tail(x: float) -> float:
    """Return ``P(N(0, 1) > x)``; a large library's function would cost half a second to load."""
    return math.erfc(x / math.sqrt(2)) / 2
