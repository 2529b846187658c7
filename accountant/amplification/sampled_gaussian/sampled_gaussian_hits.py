"""Many sampled Gaussians with a great loss among them; the cost of all others is bounded.

With g = rate e^y / (1 - rate), the odds of a hit, phi = (1 - e^{-g/c})^m is about 1 at great
losses and falls as g^m at small ones.  One release is the sum of two measures, P = phi P + R, and

    delta(eps) = delta of P^n - R^n  +  delta of R^n.

Where the odds c are chosen so that R^n hardly reaches eps, Chernoff's bound on the second part is
enough.  The first has a density as smooth as phi: its contour is short.

Proof: `docs/proofs/sampled_gaussian.md`.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from accountant.amplification.sampled_gaussian.sampled_gaussian_cgf import (
    SampledGaussian,
    rough_rule,
)
from accountant.amplification.sampled_gaussian.sampled_gaussian_decay import LINE_LADDER, Decay
from accountant.amplification.sampled_gaussian.sampled_gaussian_lines import (
    Line,
    loss_and_share,
    raised_line,
    rule_on,
)
from accountant.amplification.sampled_gaussian.sampled_gaussian_moments import (
    log_moment_ratio,
    scaled_moments,
)
from accountant.numerics import Array, Complex
from accountant.numerics.logspace import log1p, logsumexp
from accountant.numerics.ordered_sums import ordered_dot
from accountant.numerics.rounding import ULP

POWER = 12  # m: phi falls as g^m
ANGLE, REAL_ANGLE = 0.165 * math.pi, 0.45 * math.pi  # mu times the height of a line; of a strip
HIGHEST = 1.25  # e^{eta^2 / 2} is what a line may add to the round-off
NATS = 40.0  # a rule errs by at most e^-40 of the integrals on the edges of its strip
LEFT_OUT = -78.0  # ln of what phi and n leave of the mass to the left of a rule
FIRST = -13.0  # Phi(-13) is e^-87
DEVIATIONS = 8.5
WIDEST_STRIP = 4.0  # e^{4^2 / 2} is what it adds to the error of a real line
ROUND_OFF = 1e-11  # of the logarithm of a term in a sum that bounds a transform
LAST_RATIO = 3000.0  # of g and c: 1 - phi is below e^-3000
MAX_POINTS = 4000
SHARES = (4.0, 9.0, 24.0, 64.0, 160.0)  # a great loss is about epsilon over one of them
REST = 1e-12  # of delta: what the others may cost
ORDERS = np.geomspace(0.3, 300.0, 22)  # of Chernoff's bound, times epsilon
TILTS = np.geomspace(0.5, 300.0, 30)  # among which a saddle point is looked for, times epsilon


@dataclass(frozen=True, slots=True)
class HitSampledGaussian:
    """``releases`` sampled Gaussians with the record present, one of them or more a great loss.

    ``odds``: c above; ``highest``: no order is answered above it.
    """

    mu: float
    rate: float
    releases: int
    odds: float
    highest: float

    @property
    def count(self) -> int:
        """1: the cumulant is that of all releases together."""
        return 1

    @property
    def points(self) -> int:
        """The number of points of its rules."""
        return 2 * self.line.x.size  # the rule of the whole moment is about as long

    @property
    def line(self) -> Line:
        """The rule for complex powers of hits."""
        return _line_of_hits(self)

    def cgf(self, z: Any) -> tuple[Any, Array]:
        """Return ``ln [(E r^s)^n - (E r^s (1 - phi))^n]``, ``s = z + 1``, and its error."""
        a = np.ravel(z).real
        whole, error = SampledGaussian(self.mu, self.rate, False).cgf(a)
        hits, missed = _log_real_hits(self, a + 1)
        share = _log_share(hits - whole, self.releases)
        value = np.where(a + 1 <= self.highest, self.releases * whole + share, np.inf)
        # the share grows no faster than the chance of a hit
        total = (self.releases + 1) * error + missed
        total += 8 * ULP * (np.abs(share) + np.abs(hits) + self.releases * np.abs(whole))
        return value.reshape(np.shape(z)), total.reshape(np.shape(z))

    def cf_ratio(self, z: Complex) -> tuple[Complex, Array]:
        """Return the value at z over that at Re z, and a bound on its error."""
        s, n = z + 1, self.releases
        line = raised_line(self.mu, self.rate, float(s[0, 0].real))
        if line is None:
            return np.zeros(z.shape, dtype=complex), np.full(z.shape, np.inf)
        log_ratio, error = log_moment_ratio(line, s)
        found = SampledGaussian(self.mu, self.rate, False).cgf(z[0, :1].real)
        whole, whole_error = (float(one[0]) for one in found)
        # over E r^a: the chance of a hit, and its error
        hit, hit_error, top = scaled_moments(self.line, s, _mass_ulps(self))
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
        return _decay(self, a).log_bound(u)

    def sure_delta(self, epsilon: float) -> tuple[float, float]:
        """Return bounds on the delta of releases without a great loss."""
        rest = _log_rest(self.mu, self.rate, self.odds, self.releases, epsilon)
        return 0.0, math.exp(min(rest, 0.0))


def hits(
    sampled: SampledGaussian, count: int, epsilon: float, log_delta: float
) -> HitSampledGaussian | None:
    """Return releases with a great loss where the others cost less than delta at epsilon."""
    mu, rate = sampled.mu, sampled.rate
    # a hit costs about mu^2 / 2 + ln rate
    most = max(1.0, (mu * mu / 2 + math.log(rate)) / 2)
    for share in SHARES:
        odds = math.expm1(min(epsilon / share, most)) / 3
        if _log_rest(mu, rate, odds, count, epsilon) <= math.log(REST) + log_delta:
            break
    else:
        return None
    found = HitSampledGaussian(
        mu, rate, count, odds, 1 + 3 * _rough_tilt(sampled, count, epsilon, odds)
    )
    first, last = _ends(found)
    return found if last - first <= MAX_POINTS * _heights(mu)[1] else None


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


def _heights(mu: float) -> tuple[float, float]:
    """Return the height of the line, and its step."""
    eta = min(ANGLE / mu, HIGHEST)
    return eta, 2 * math.pi * eta / (NATS + math.log(4))


def _ends(part: HitSampledGaussian) -> tuple[float, float]:
    mu, odds = part.mu, math.log(part.odds) + math.log1p(-part.rate) - math.log(part.rate)
    # phi <= (g / c)^m
    first = max((odds + (LEFT_OUT - 2) / POWER + mu * mu / 2) / mu, FIRST)
    centre = (odds + mu * mu / 2) / mu
    return first, max(mu * part.highest, centre + 1, 0.0) + DEVIATIONS


def _log_phi(ratio: Any) -> Any:
    """Return ``ln phi`` at ``g / c``, which may be complex."""
    with np.errstate(under="ignore"):
        return POWER * np.log(-np.expm1(-ratio))


def _ratio(mu: float, rate: float, odds: float, x: Any) -> Any:
    """Return ``g / c``, at most e^600."""
    y = mu * x - mu * mu / 2 + (math.log(rate) - math.log1p(-rate) - math.log(odds))
    return np.exp(y - np.maximum(y.real - 600.0, 0.0))


def _with_edges(part: HitSampledGaussian, line: Line, step: float, grown: float) -> Line:
    """Return the rule of hits: its masses times phi, and a bound on what it misses."""
    x, ends = line.x.real, (float(line.x[0].real), float(line.x[-1].real))
    # on the strip |phi| <= min(g / c, 2)^m, |r^s| <= r^p and |n| <= e^{b^2 / 2} n
    log_normal = -x * x / 2 - math.log(2 * math.pi) / 2 + grown
    loss, _ = loss_and_share(part.mu, part.rate, x)
    bound = POWER * np.log(np.minimum(np.abs(_ratio(part.mu, part.rate, part.odds, x + 0j)), 2.0))
    # to the left phi or n is small; to the right ln(n r^p) falls at least as fast as this
    slope = ends[1] - part.mu * part.highest
    last = log_normal[-1] + math.log((1 / slope + step) * 2**POWER)
    return line._replace(
        log_mass=line.log_mass + _log_phi(_ratio(part.mu, part.rate, part.odds, line.x)),
        edge=np.concatenate([loss, loss[[0, -1]]]),
        edge_mass=np.concatenate(
            [math.log(2 * step) + log_normal + bound, [LEFT_OUT + grown + NATS, last + NATS]]
        ),
    )


@functools.lru_cache(maxsize=4)
def _line_of_hits(part: HitSampledGaussian) -> Line:
    """Return the rule for complex powers, on a line above the real one."""
    (eta, step), (first, last) = _heights(part.mu), _ends(part)
    x = first + step * np.arange(math.ceil((last - first) / step) + 1) + 1j * eta
    line = rule_on(part.mu, part.rate, x, step, math.exp(-NATS))
    return _with_edges(part, line, step, 2 * eta * eta)


@functools.lru_cache(maxsize=4)
def _real_line_of_hits(part: HitSampledGaussian) -> Line:
    """Return the rule for real powers."""
    first, last = _ends(part)
    line, step, grown = _real_rule(part.mu, part.rate, first, last)
    return _with_edges(part, line, step, grown)


def _real_rule(mu: float, rate: float, first: float, last: float) -> tuple[Line, float, float]:
    """Return a rule on the real line, its step, and what n grows by on the edges of its strip."""
    width = min(REAL_ANGLE / mu, WIDEST_STRIP)
    step = 2 * math.pi * width / (NATS + math.log(4))
    x = first + step * np.arange(math.ceil((last - first) / step) + 1)
    return rule_on(mu, rate, x, step, math.exp(-NATS)), step, width * width / 2


@functools.lru_cache(maxsize=8)
def _rule_of_others(mu: float, rate: float, odds: float) -> tuple[Line, float]:
    """Return the rule for real powers without great losses, and the greatest of these powers."""
    last = (math.log(odds) + math.log1p(-rate) - math.log(rate) + mu * mu / 2) / mu
    last += math.log(LAST_RATIO) / mu
    line, _, grown = _real_rule(mu, rate, FIRST, max(last, FIRST + 1))
    ratio = _ratio(mu, rate, odds, line.x)
    turned = ratio * math.cos(min(REAL_ANGLE, mu * WIDEST_STRIP))
    with np.errstate(divide="ignore", under="ignore"):
        # |1 - phi| <= (1 + e^{-Re g / c})^m - 1 on the strip
        rest = np.log(-np.expm1(POWER * np.log1p(-np.exp(-ratio))))
        edge = np.log(np.expm1(POWER * np.log1p(np.exp(-turned))))
    # beyond the end n r^p (1 - phi) <= m r^p e^{-g/c}, which falls, and is below e^{-g/2c}
    edge_mass = line.log_mass + math.log(2) + grown + np.maximum(edge, -1e4)
    return line._replace(
        log_mass=line.log_mass + np.maximum(rest, -1e4),
        edge=np.append(line.loss, line.loss[0]),
        edge_mass=np.append(edge_mass, LEFT_OUT + NATS),
    ), float(ratio[-1] / (2 * abs(line.loss[-1]) + 2))


def _mass_ulps(part: HitSampledGaussian) -> Array:
    """Return the ulps of phi: those of its exponent, by its derivative."""
    x = part.line.x
    ratio = _ratio(part.mu, part.rate, part.odds, x)
    y = np.abs(part.mu * x) + part.mu**2 + 64 + abs(math.log(part.odds * part.rate))
    down = np.minimum(ratio.real, 600.0)  # beyond it the slope is 0
    slope = np.abs(ratio / np.expm1(down + 1j * ratio.imag))
    found: Array = 4 * POWER * (slope * y + 4)
    return found


def _log_real_hits(part: HitSampledGaussian, powers: Array) -> tuple[Array, Array]:
    """Return ``ln E r^p phi`` at real powers, and a bound on its error."""
    line = _real_line_of_hits(part)
    exponent = powers[:, None] * line.loss + line.log_mass
    value = logsumexp(exponent)
    size = np.exp(exponent - value[:, None])
    y = np.abs(part.mu * line.x) + part.mu**2 + 64 + abs(math.log(part.odds * part.rate))
    ulps = np.abs(exponent) + powers[:, None] * line.loss_error + line.x.size / 16
    error = 2 * ULP * np.sum(size * (ulps + 2 * POWER * y), axis=1)
    with np.errstate(over="ignore"):
        error += np.exp(np.minimum(line.log_missed(powers) - value, 700.0))
    return value, -np.log1p(-np.minimum(error, 0.999)) + np.where(error > 0.5, np.inf, 0.0)


def _log_rest(mu: float, rate: float, odds: float, count: int, epsilon: float) -> float:
    """Return the logarithm of Chernoff's bound on delta without a great loss."""
    rule, highest = _rule_of_others(mu, rate, odds)
    b = ORDERS / epsilon
    b = b[b + 1 < highest]
    exponent = (b + 1)[:, None] * rule.loss + rule.log_mass
    top = logsumexp(exponent)
    size = np.exp(exponent - top[:, None])
    y = np.abs(mu * rule.x) + mu * mu + 64 + abs(math.log(odds * rate))
    ulps = np.abs(exponent) + (b + 1)[:, None] * rule.loss_error + rule.x.size / 16
    ulps += 4 * (POWER + np.minimum(_ratio(mu, rate, odds, rule.x), 2 * LAST_RATIO)) * y
    with np.errstate(over="ignore"):
        error = 4 * ULP * np.sum(size * ulps, axis=1)
        error += np.exp(np.minimum(rule.log_missed(b + 1) - top, 700.0))
    each = top + np.log1p(error)
    bound = count * each - b * epsilon + b * np.log(b) - (1 + b) * np.log1p(b)
    return float(np.min(bound[np.isfinite(bound)], initial=np.inf))


@functools.lru_cache(maxsize=4)
def _decay(part: HitSampledGaussian, a: float) -> Decay:
    """Return lines that bound the transform of a hit."""
    (eta, step), line = _heights(part.mu), part.line
    x = line.x.real
    value, error = _log_real_hits(part, np.array([a + 1.0]))
    height = float(value[0] - error[0])
    log_weight = -x * x / 2 + math.log(step / math.sqrt(2 * math.pi)) - height + ROUND_OFF
    missed = math.exp(min(float(line.log_missed(np.array([a + 1.0]))[0]) - height, 700.0))
    heights = 2 * eta * LINE_LADDER
    errors = np.full(heights.shape, 4 * missed * math.exp(eta * eta / 2))
    ratio = _ratio(part.mu, part.rate, part.odds, x)

    def log_factor(angle: Array) -> Array:
        # |1 - e^{-(b + id)}|^2 = (1 - e^-b)^2 + 4 e^-b sin(d/2)^2
        down, half = ratio * np.cos(angle), np.sin(ratio * np.sin(angle) / 2)
        square = np.expm1(-down) ** 2 + 4 * np.exp(-down) * half * half
        bound: Array = POWER / 2 * np.log(square)
        return bound

    return Decay(part.mu, part.rate, a + 1, x, log_weight, heights, errors, log_factor=log_factor)
