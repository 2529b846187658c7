"""Trapezoid rules for the hits of a sampled Gaussian, and for releases that hardly hold one.

With g = rate e^y / (1 - rate), the odds of a hit, phi = (1 - e^{-g/c})^m is a smooth step from 0
to 1 about g = 3c; ``int n r^s phi dx`` is the moment of a hit, and that of 1 - phi of the others.

Proof: `docs/proofs/hits.md`.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from accountant.amplification.sampled_gaussian.sampled_gaussian_decay import LINE_LADDER, Decay
from accountant.amplification.sampled_gaussian.sampled_gaussian_lines import (
    Line,
    loss_and_share,
    rule_on,
)
from accountant.numerics import Array
from accountant.numerics.logspace import logsumexp
from accountant.numerics.rounding import ULP

POWER = 12  # m: phi falls as g^m
ANGLE, REAL_ANGLE = 0.165 * math.pi, 0.45 * math.pi  # mu times the height of a line; of a strip
HIGHEST = 1.25  # e^{eta^2 / 2} is what a line may add to the round-off
WIDEST_STRIP = 4.0  # e^{4^2 / 2} is what it adds to the error of a real line
NATS = 40.0  # a rule errs by at most e^-40 of the integrals on the edges of its strip
ROUGH_STRIDE = 3  # of the points of a rule for estimates
LEFT_OUT = -78.0  # ln of what phi or n leaves of the mass to the left of a rule
FIRST = -13.0  # Phi(-13) is e^-87
DEVIATIONS = 8.5
LAST_RATIO = 3e4  # of g and c: 1 - phi is below e^-29990
LOG_DROPPED = -1800.0  # ln of what a rule of others leaves out beyond it
ROUND_OFF = 1e-11  # of the logarithm of a term in a sum that bounds a transform
ORDERS = np.geomspace(0.3, 300.0, 22)  # of Chernoff's bound, times epsilon


@dataclass(frozen=True, slots=True)
class Hits:
    """The hits of one release; no power is answered whose real part is above ``highest``."""

    mu: float
    rate: float
    odds: float
    highest: float

    @property
    def line(self) -> Line:
        """The rule for complex powers, on a line above the real one."""
        return _raised_rule(self)

    @property
    def step(self) -> float:
        """The distance of its places."""
        return 2 * math.pi * self.height / (NATS + math.log(4))

    @property
    def height(self) -> float:
        """The height of the line."""
        return min(ANGLE / self.mu, HIGHEST)

    @property
    def ends(self) -> tuple[float, float]:
        """Between which places the rules lie."""
        centre = _place(self.mu, self.rate, self.odds, 0.0)
        # phi <= (g / c)^m
        first = max(_place(self.mu, self.rate, self.odds, (LEFT_OUT - 2) / POWER), FIRST)
        return first, max(self.mu * self.highest, centre + 1, 0.0) + DEVIATIONS

    def log_moments(self, powers: Array) -> tuple[Array, Array]:
        """Return ``ln E r^p phi`` at real powers, and a bound on its error."""
        line = _real_rule_of_hits(self)
        exponent = powers[:, None] * line.loss + line.log_mass
        value = logsumexp(exponent)
        size = np.exp(exponent - value[:, None])
        ulps = np.abs(exponent) + powers[:, None] * line.loss_error + line.x.size / 16
        ulps += 2 * POWER * _ratio_ulps(self.mu, self.rate, self.odds, line.x)
        error = 2 * ULP * np.sum(size * ulps, axis=1)
        with np.errstate(over="ignore"):
            error += np.exp(np.minimum(line.log_missed(powers) - value, 700.0))
        return value, -np.log1p(-np.minimum(error, 0.999)) + np.where(error > 0.5, np.inf, 0.0)

    def rough_log_moments(self, powers: Array) -> Array:
        """Return about ``ln E r^p phi`` at real powers, by every few points of the rule."""
        line = _real_rule_of_hits(self)
        loss, log_mass = line.loss[::ROUGH_STRIDE], line.log_mass[::ROUGH_STRIDE]
        rough: Array = logsumexp(powers[:, None] * loss + log_mass) + math.log(ROUGH_STRIDE)
        return rough

    @property
    def mass_ulps(self) -> Array:
        """The ulps of phi on the line: those of g / c, by its derivative."""
        x = self.line.x
        ratio = odds_ratio(self.mu, self.rate, self.odds, x)
        down = np.minimum(ratio.real, 600.0)  # beyond it the slope is 0
        slope = np.abs(ratio / np.expm1(down + 1j * ratio.imag))
        ulps: Array = 4 * POWER * (slope * _ratio_ulps(self.mu, self.rate, self.odds, x) + 4)
        return ulps

    def decay(self, a: float) -> Decay:
        """Return lines that bound ``|E r^s phi|`` over its value at ``Re s = a + 1``."""
        return _decay(self, a)


def odds_ratio(mu: float, rate: float, odds: float, x: Any) -> Any:
    """Return ``g / c``, at most e^600."""
    y = mu * x - mu * mu / 2 + (math.log(rate) - math.log1p(-rate) - math.log(odds))
    return np.exp(y - np.maximum(y.real - 600.0, 0.0))


def _place(mu: float, rate: float, odds: float, log_ratio: float) -> float:
    """Return where g / c has this logarithm."""
    y = log_ratio + math.log(odds) + math.log1p(-rate) - math.log(rate)
    return (y + mu * mu / 2) / mu


def _ratio_ulps(mu: float, rate: float, odds: float, x: Any) -> Array:
    ulps: Array = np.abs(mu * x) + mu * mu + 64 + abs(math.log(odds)) + abs(math.log(rate))
    return ulps


@functools.lru_cache(maxsize=4)
def _raised_rule(hits: Hits) -> Line:
    (first, last), step, eta = hits.ends, hits.step, hits.height
    x = first + step * np.arange(math.ceil((last - first) / step) + 1) + 1j * eta
    line = rule_on(hits.mu, hits.rate, x, step, math.exp(-NATS))
    # the strip reaches from the real line to twice the height
    return _of_hits(hits, line, step, 2 * eta * eta)


@functools.lru_cache(maxsize=4)
def _real_rule_of_hits(hits: Hits) -> Line:
    return _of_hits(hits, *_real_rule(hits.mu, hits.rate, *hits.ends))


def _real_rule(mu: float, rate: float, first: float, last: float) -> tuple[Line, float, float]:
    """Return a rule on the real line, its step, and what n grows by on the edges of its strip."""
    width = min(REAL_ANGLE / mu, WIDEST_STRIP)
    step = 2 * math.pi * width / (NATS + math.log(4))
    x = first + step * np.arange(math.ceil((last - first) / step) + 1)
    return rule_on(mu, rate, x, step, math.exp(-NATS)), step, width * width / 2


def _of_hits(hits: Hits, line: Line, step: float, grown: float) -> Line:
    """Return a rule with its masses times phi, and a bound on what it misses."""
    x = line.x.real
    # on the strip |phi| <= min(g / c, 2)^m, |r^s| <= r^p and |n| <= e^{b^2 / 2} n
    log_normal = -x * x / 2 - math.log(2 * math.pi) / 2 + grown
    loss, _ = loss_and_share(hits.mu, hits.rate, x)
    bound = POWER * np.log(np.minimum(odds_ratio(hits.mu, hits.rate, hits.odds, x + 0j).real, 2.0))
    # to the left phi or n is small; to the right ln(n r^p) falls at least as fast as this
    slope = float(x[-1]) - hits.mu * hits.highest
    last = float(log_normal[-1]) + math.log((1 / slope + step) * 2**POWER)
    sides = [LEFT_OUT + grown + NATS, last + NATS]
    ratio = odds_ratio(hits.mu, hits.rate, hits.odds, line.x + 0j)
    with np.errstate(under="ignore"):
        log_phi = POWER * np.log(-np.expm1(-ratio))
    return line._replace(
        log_mass=line.log_mass + (log_phi if np.iscomplexobj(line.x) else log_phi.real),
        edge=np.concatenate([loss, loss[[0, -1]]]),
        edge_mass=np.concatenate([math.log(2 * step) + log_normal + bound, sides]),
    )


@functools.lru_cache(maxsize=4)
def _decay(hits: Hits, a: float) -> Decay:
    eta, line = hits.height, hits.line
    value, error = hits.log_moments(np.array([a + 1.0]))
    height = float(value[0] - error[0])
    x = line.x.real
    log_weight = -x * x / 2 + math.log(hits.step / math.sqrt(2 * math.pi)) - height + ROUND_OFF
    missed = math.exp(min(float(line.log_missed(np.array([a + 1.0]))[0]) - height, 700.0))
    heights = 2 * eta * LINE_LADDER
    errors = np.full(heights.shape, 4 * missed * math.exp(eta * eta / 2))
    ratio = odds_ratio(hits.mu, hits.rate, hits.odds, x + 0j).real

    def log_factor(angle: Array) -> Array:
        # |1 - e^{-(b + id)}|^2 = (1 - e^-b)^2 + 4 e^-b sin(d/2)^2
        down, half = ratio * np.cos(angle), np.sin(ratio * np.sin(angle) / 2)
        square = np.expm1(-down) ** 2 + 4 * np.exp(-down) * half * half
        log_phi: Array = POWER / 2 * np.log(square)
        return log_phi

    return Decay(hits.mu, hits.rate, a + 1, x, log_weight, heights, errors, log_factor=log_factor)


@functools.lru_cache(maxsize=8)
def _rule_of_others(mu: float, rate: float, odds: float) -> tuple[Line, Array, float]:
    """Return the rule for real powers, the ulps of its masses, and the greatest power."""
    last = max(_place(mu, rate, odds, math.log(LAST_RATIO)), FIRST + 1)
    line, step, grown = _real_rule(mu, rate, FIRST, last)
    ratio = odds_ratio(mu, rate, odds, line.x + 0j).real
    # on the strip, a step to the left: what falls is bounded in a cell by its value there
    turned = ratio * (math.cos(min(REAL_ANGLE, mu * WIDEST_STRIP)) * math.exp(-mu * step))
    with np.errstate(divide="ignore", under="ignore"):
        rest = np.log(-np.expm1(POWER * np.log1p(-np.exp(-ratio))))
        # |1 - phi| <= (1 + e^{-Re g / c})^m - 1 on the strip
        edge = np.log(np.expm1(POWER * np.log1p(np.exp(-turned))))
    edge_mass = line.log_mass + math.log(2) + grown + np.maximum(edge, -1e4)
    rule = line._replace(
        log_mass=line.log_mass + np.maximum(rest, -1e4),
        edge=np.append(line.loss, line.loss[0]),
        edge_mass=np.append(edge_mass, LEFT_OUT + NATS),
    )
    ulps = 4 * (POWER + np.minimum(ratio, 1e4)) * _ratio_ulps(mu, rate, odds, line.x)
    # beyond the end r^p e^{-t} falls where p < t, and is below e^{-t/2} where p L < t/2
    return rule, ulps, float(turned[-1]) / (2 * abs(float(line.loss[-1])) + 2)


def log_rest(mu: float, rate: float, odds: float, count: int, epsilon: float) -> float:
    """Return the logarithm of Chernoff's bound on delta of releases without a hit."""
    rule, ulps, highest = _rule_of_others(mu, rate, odds)
    b = ORDERS / max(epsilon, 1e-300)
    b = b[b + 1 < highest]
    exponent = (b + 1)[:, None] * rule.loss + rule.log_mass
    top = logsumexp(exponent)
    size = np.exp(exponent - top[:, None])
    ulps = ulps + np.abs(exponent) + (b + 1)[:, None] * rule.loss_error + rule.x.size / 16
    error = 4 * ULP * np.sum(size * ulps, axis=1)
    # what is missed and what is dropped are amounts, however small the sum is beside them
    rest = np.logaddexp(top + np.log1p(error), np.logaddexp(rule.log_missed(b + 1), LOG_DROPPED))
    bound = count * rest - b * epsilon
    bound += b * np.log(b) - (1 + b) * np.log1p(b) + 1e-9
    return float(np.min(bound[np.isfinite(bound)], initial=np.inf))
