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

from accountant.amplification.sampled_gaussian.returned_losses import (
    REST_CHANCE,
    least_return,
)
from accountant.amplification.sampled_gaussian.rules_to_cut import (
    STRIP,
    STRIP_NATS,
    cut_curve,
    cut_line,
    log_ratio,
    most_points,
    normal_tail,
    place_on_curve,
    places_to_cut,
    short_rule,
)
from accountant.amplification.sampled_gaussian.sampled_gaussian_cgf import SampledGaussian
from accountant.amplification.sampled_gaussian.sampled_gaussian_decay import LINE_LADDER, Decay
from accountant.amplification.sampled_gaussian.sampled_gaussian_lines import Line
from accountant.amplification.sampled_gaussian.sampled_gaussian_moments import (
    log_moments,
    moment_power,
)
from accountant.numerics import Array, Complex
from accountant.numerics.logspace import logsumexp
from accountant.numerics.rounding import ULP

HIGHEST_CURVE = 1.25
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
            value, error = _moment(self, float(np.ravel(z)[0]))
            return value.reshape(np.shape(z)), error.reshape(np.shape(z))
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
        loss, log_mass = short_rule(self.mu, self.rate, self.cut)
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
        return most_points(self.cut, self._highest)

    @property
    def _highest(self) -> float:
        return min(0.45 * math.pi / self.mu, HIGHEST_CURVE)

    def curve(self, power: float) -> Line:
        """Return the rule on the curve that ends at the cut, for powers with this real part."""
        return cut_curve(self.mu, self.rate, self.cut, self._highest, power)

    def sure_delta(self, epsilon: float) -> tuple[float, float]:
        """Return ``E[(1 - e^{eps - L})+; A]`` between two bounds."""
        # p - q = rate (N(mu, 1) - N(0, 1))(x > cut);  P(A) - Q(A) = (1-q)^n - (1-p)^n
        q, moved = normal_tail(self.cut), normal_tail(self.cut - self.mu)
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
    t, step, beyond = places_to_cut(mu, rate, cut, highest, STRIP, power, nats)
    x, speed = place_on_curve(t, cut, highest, 0.0)
    eta, rise = highest * LINE_LADDER, 1 / (1 + np.exp(t))
    value, error = part.cgf(np.array([a]))
    moment = float(value[0] - error[0])
    log_weight = -(x.real**2 + math.log(2 * math.pi)) / 2 + np.log(speed.real * step) - moment
    missed = float(part.curve(power).log_missed(np.array([power]))[0]) + STRIP_NATS - nats
    beyond += power * log_ratio(mu, rate, cut)
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
