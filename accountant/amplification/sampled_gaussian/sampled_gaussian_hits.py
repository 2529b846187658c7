"""Many sampled Gaussians with a great loss among them; the cost of all others is bounded.

With g = rate e^y / (1 - rate), the odds of a hit, phi = (1 - e^{-g/c})^m is about 1 at great
losses and falls as g^m at small ones.  One release is the sum of two measures, P = phi P + R, and

    delta(eps) = delta of P^n - R^n  +  delta of R^n.

Where the odds c are chosen so that R^n hardly reaches eps, Chernoff's bound on the second part is
enough.  The first has a density as smooth as phi: its contour is short.

Proof: `docs/proofs/hits.md`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from accountant.amplification.sampled_gaussian.hit_rules import Hits, log_rest
from accountant.amplification.sampled_gaussian.sampled_gaussian_cgf import (
    SampledGaussian,
    rough_rule,
)
from accountant.amplification.sampled_gaussian.sampled_gaussian_lines import raised_line
from accountant.amplification.sampled_gaussian.sampled_gaussian_moments import (
    log_moment_ratio,
    scaled_moments,
)
from accountant.numerics import Array, Complex
from accountant.numerics.logspace import log1p
from accountant.numerics.ordered_sums import ordered_dot
from accountant.numerics.rounding import ULP

MAX_POINTS = 4000
MAX_MU = 100.0  # where it is greater a rule is long, and rests are no less than delta
SHARES = (4.0, 9.0, 24.0, 64.0, 160.0)  # a great loss is about epsilon over one of them
REST = 1e-12  # of delta: what the others may cost
MAX_EXPONENT = 700.0  # whose exponential a float holds
TILTS = np.geomspace(0.5, 300.0, 30)  # among which a saddle point is looked for, times epsilon


@dataclass(frozen=True, slots=True)
class HitSampledGaussian:
    """``releases`` sampled Gaussians with the record present, with a hit among them."""

    hits: Hits
    releases: int

    @property
    def count(self) -> int:
        """1: the cumulant is that of all releases together."""
        return 1

    @property
    def points(self) -> int:
        """The number of points of its rules."""
        return int(2 * self.hits.line.x.size)  # the rule of the whole moment is about as long

    @property
    def _whole(self) -> SampledGaussian:
        return SampledGaussian(self.hits.mu, self.hits.rate, False)

    def cgf(self, z: Any) -> tuple[Any, Array]:
        """Return ``ln [(E r^s)^n - (E r^s (1 - phi))^n]``, ``s = z + 1``, and its error."""
        a = np.ravel(z).real
        whole, error = self._whole.cgf(a)
        hit, missed = self.hits.log_moments(a + 1)
        share = _log_share(hit - whole, self.releases)
        value = np.where(a + 1 <= self.hits.highest, self.releases * whole + share, np.inf)
        # the share grows no faster than the chance of a hit
        total = (self.releases + 1) * error + missed
        total += 8 * ULP * (np.abs(share) + np.abs(hit) + self.releases * np.abs(whole))
        return value.reshape(np.shape(z)), total.reshape(np.shape(z))

    @property
    def has_short_sum(self) -> bool:
        """True: of every few points of the rules."""
        return True

    def rough_cgf(self, a: Array) -> Array:
        """Return about the cumulant at real ``a``: no bound follows from it."""
        whole = self._whole.rough_cgf(a)
        with np.errstate(over="ignore", invalid="ignore"):
            share = _log_share(self.hits.rough_log_moments(a + 1) - whole, self.releases)
            rough: Array = self.releases * whole + share
        return np.where(a + 1 <= self.hits.highest, rough, np.inf)

    def cf_ratio(self, z: Complex) -> tuple[Complex, Array]:
        """Return the value at z over that at Re z, and a bound on its error."""
        s, n = z + 1, self.releases
        line = raised_line(self.hits.mu, self.hits.rate, float(s[0, 0].real))
        if line is None:
            return np.zeros(z.shape, dtype=complex), np.full(z.shape, np.inf)
        log_ratio, error = log_moment_ratio(line, s)
        found = self._whole.cgf(z[0, :1].real)
        whole, whole_error = (float(one[0]) for one in found)
        # over E r^a: the chance of a hit, and its error
        hit, hit_error, top = scaled_moments(self.hits.line, s, self.hits.mass_ulps)
        scale = math.exp(min(top - whole, 700.0))
        hit, hit_error = hit * scale, hit_error * scale
        hit_error += (whole_error + 8 * ULP * (1 + abs(whole))) * np.abs(hit)
        share = float(np.exp(_log_share(np.log(hit[0, 0].real), n)))
        error = np.abs(np.exp(log_ratio)) * np.expm1(np.minimum(error, 1.0))
        with np.errstate(divide="ignore", over="ignore", invalid="ignore", under="ignore"):
            power, fall = n * log_ratio, n * log1p(-hit * np.exp(-log_ratio))
            kept = np.exp(power)
            near = np.abs(fall) < 1
            value = np.where(near, -kept * np.expm1(fall), kept - np.exp(power + fall))
            sizes = (np.abs(power) + np.abs(power + fall)) * (np.abs(kept) + np.abs(value))
            own = np.where(near, np.abs(power) * np.abs(value), sizes)
            # d(M^n - R^n) = n M^{n-1} d(hit) + n (M^{n-1} - R^{n-1}) dR, a tenth more, and d(share)
            wrong = 3 * n * (hit_error + share * (error + hit_error))
            wrong += ULP * (16 * np.abs(value) + 8 * own + 32 * n * hit[0, 0].real)
        wrong[~(n * (hit_error + error) < 0.05) | ~np.isfinite(value)] = np.inf
        return value / share, wrong / share

    def log_cf_bound(self, a: float, u: Array) -> Array:
        """Return the log of a bound on the ratio for every ``v >= u``."""
        # the terms of the binomial sum hold a hit or more, and fall at least as its transform
        return self.hits.decay(a).log_bound(u)

    def sure_delta(self, epsilon: float) -> tuple[float, float]:
        """Return bounds on the delta of releases without a great loss."""
        part = self.hits
        rest = log_rest(part.mu, part.rate, part.odds, self.releases, epsilon)
        return 0.0, math.exp(min(rest, 0.0))


def with_a_hit(
    sampled: SampledGaussian, count: int, epsilon: float, log_delta: float
) -> HitSampledGaussian | None:
    """Return releases with a great loss where the others cost less than delta at epsilon."""
    mu, rate = sampled.mu, sampled.rate
    if mu > MAX_MU:
        return None
    # a hit costs about mu^2 / 2 + ln rate
    most = max(1.0, (mu * mu / 2 + math.log(rate)) / 2)
    for share in SHARES:
        odds = math.expm1(min(epsilon / share, most, MAX_EXPONENT)) / 3
        if log_rest(mu, rate, odds, count, epsilon) <= math.log(REST) + log_delta:
            break
    else:
        return None
    found = Hits(mu, rate, odds, 1 + 3 * _rough_tilt(sampled, count, epsilon, odds))
    first, last = found.ends
    return HitSampledGaussian(found, count) if last - first <= MAX_POINTS * found.step else None


def _rough_tilt(sampled: SampledGaussian, n: int, epsilon: float, odds: float) -> float:
    """Return about the saddle point of a contour of hits."""
    mass, loss, _, _ = rough_rule(sampled.mu, sampled.rate)
    a = TILTS / epsilon
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        near = np.expm1(np.outer(a + 1, loss))
        whole, great = ordered_dot(near, mass), mass * (loss > math.log1p(odds))
        hit = ordered_dot(near, great) + np.sum(great)
        height = n * np.log1p(whole) + _log_share(np.log(hit) - np.log1p(whole), n)
        height += -a * epsilon - np.log(a) - np.log1p(a)
    return float(a[np.argmin(np.where(np.isfinite(height), height, np.inf))])


def _log_share(log_chance: Any, n: int) -> Any:
    """Return ``ln (1 - (1 - p)^n)``, p given by its logarithm."""
    with np.errstate(divide="ignore", under="ignore", invalid="ignore"):
        return np.log(-np.expm1(n * np.log1p(-np.minimum(np.exp(log_chance), 1.0))))
