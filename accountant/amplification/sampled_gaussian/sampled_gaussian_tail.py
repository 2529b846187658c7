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
    rule_on,
)
from accountant.amplification.sampled_gaussian.sampled_gaussian_moments import (
    log_moments,
    moment_power,
)
from accountant.numerics import Array, Complex
from accountant.numerics.logspace import logsumexp
from accountant.numerics.rounding import ULP

STRIP = 0.97 * math.pi / 4  # of the curve's parameter: curve and strip stay left of the cut
STRIP_NATS = 45.0  # e^{2 pi d / h}
LAST_PARAMETER = 43.0  # e^-43 = 2e-19 of the edge is left out
HIGHEST_CURVE = 1.25
WIDEST_STRIP = 2.5  # e^{2.5^2 / 2} is what it adds to the error of a real line
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
        rule = self.curve if np.iscomplexobj(z) else cut_line(self.mu, self.rate, self.cut)
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
        return moment_power(self.curve, z + 1, self.count)

    def log_cf_bound(self, a: float, u: Array) -> Array:
        """Return the log of a bound on ``|E e^{(a+iv)L}| / E e^{aL}`` for every ``v >= u``."""
        return _curves_of_decay(self, a, self._highest).log_bound(u)

    @property
    def points(self) -> int:
        """The number of points of the rule."""
        return int(self.curve.x.size)

    @property
    def _highest(self) -> float:
        return min(0.45 * math.pi / self.mu, HIGHEST_CURVE)

    @property
    def curve(self) -> Line:
        """The rule on the curve that ends at the cut."""
        return cut_curve(self.mu, self.rate, self.cut, self._highest)

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
def _curves_of_decay(part: TruncatedSampledGaussian, a: float, highest: float) -> Decay:
    """Return curves that bound a transform."""
    t, step = _parameters(part.cut, highest, STRIP)
    x, speed = _place(t, part.cut, highest, 0.0)
    eta, rise = highest * LINE_LADDER, 1 / (1 + np.exp(t))
    height = float(part.cgf(np.array([a]))[0][0]) + math.log(2 * math.pi) / 2
    log_weight = -(x.real**2) / 2 + np.log(speed.real * step) - height
    log_missed = float(part.curve.log_missed(np.array([a + 1.0]))[0]) - height
    missed = np.full(eta.shape, 2 * math.exp(log_missed))
    return Decay(part.mu, part.rate, a + 1, x.real, log_weight, eta, missed, rise, highest)


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
    t = np.geomspace(1e-2, 1e3, 12) / (rate * min(mu, 1.0) * math.sqrt(count))
    value, error = SampledGaussian(mu, rate, True).cgf(t)
    bound = ((count - 1) * (value + error) - math.log(REST_CHANCE)) / t
    return min(most, float(np.min(bound[np.isfinite(bound)], initial=np.inf)))


@functools.lru_cache(maxsize=16)
def cut_line(mu: float, rate: float, cut: float) -> Line:
    """Return the rule on the real line up to the cut, for real powers."""
    # Re x <= cut on a strip twice as wide as that of a curve, whose height is 0
    width = min(WIDEST_STRIP, 0.9 * math.pi / mu) / (2 * STRIP)
    return _up_to(mu, rate, cut, width, 0.0, 2 * STRIP)


@functools.lru_cache(maxsize=4)
def _short_rule(mu: float, rate: float, cut: float) -> tuple[Array, Array]:
    """Return losses and logarithms of masses for estimates: every few points of the line."""
    line = cut_line(mu, rate, cut)
    log_mass = line.log_mass[::ROUGH_STRIDE]
    # that they add up to the mass kept matters more than each: powers of the sum are many
    log_mass = log_mass - logsumexp(log_mass) + math.log1p(-line.lost)
    return line.loss[::ROUGH_STRIDE], log_mass


@functools.lru_cache(maxsize=16)
def cut_curve(mu: float, rate: float, cut: float, height: float) -> Line:
    """Return the rule on a curve that runs at this height and ends at the cut."""
    return _up_to(mu, rate, cut, height, height, STRIP)


def _up_to(mu: float, rate: float, cut: float, width: float, height: float, strip: float) -> Line:
    t, step = _parameters(cut, width, strip)
    missed = 2 * math.exp(-STRIP_NATS) + math.exp(-LAST_PARAMETER)
    x: Any
    speed: Any
    x, speed = _place(t, cut, width, height)
    sides: tuple[int, ...] = (1, -1)
    both = 1.0
    if not height:  # real, and the lower edge is the mirror image of the upper one
        x, speed, sides, both = x.real, speed.real, (1,), 2.0
    edges = []
    for side in sides:
        at, along = _place(t + side * 1j * strip, cut, width, height)
        edges.append(rule_on(mu, rate, at, both * step * along, missed))
    return rule_on(mu, rate, x, step * speed, missed)._replace(
        edge=np.concatenate([one.loss.real for one in edges]),
        edge_mass=np.concatenate([one.log_mass.real for one in edges]),
        lost=_normal_tail(cut),
    )


def _parameters(cut: float, width: float, strip: float) -> tuple[Any, float]:
    step = 2 * math.pi * strip / STRIP_NATS
    first = -(cut + TAIL_DEVIATIONS) / width
    places: Any = first + step * np.arange(math.ceil((LAST_PARAMETER - first) / step) + 1)
    return places, step


def _place(t: Any, cut: float, width: float, height: Any) -> tuple[Complex, Complex]:
    """Return ``x(t) = cut - width ln(1 + e^-t) + i height / (1 + e^t)``, and its derivative."""
    fall = 1 / (1 + np.exp(t))
    # ln(1 + e^-t) = -t + ln(1 + e^t)
    log_term = np.where(np.real(t) > 0, np.log1p(np.exp(-t)), -t + np.log1p(np.exp(t)))
    return cut - width * log_term + 1j * height * fall, fall * (width - 1j * height * (1 - fall))


def _normal_tail(x: float) -> float:
    """Return ``P(N(0, 1) > x)``; a large library's function would cost half a second to load."""
    return math.erfc(x / math.sqrt(2)) / 2
