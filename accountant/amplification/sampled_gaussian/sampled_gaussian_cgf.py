"""The cumulant of a Poisson-sampled Gaussian: one quadrature, its error bounded.

With r(x) = 1 - rate + rate e^{mu x - mu^2/2} and X ~ N(0, 1), the loss with the record present is
ln r(x), and both directions are moments of r:  E_P e^{zL} = E r(X)^{z+1}  (remove),
E_Q e^{-zL} = E r(X)^{-z}  (add).

References: Mironov, Talwar & Zhang (2019); trapezoid rule: Trefethen & Weideman (2014), Thm 5.1.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from accountant.amplification.sampled_gaussian.sampled_gaussian_decay import LINE_LADDER, Decay
from accountant.amplification.sampled_gaussian.sampled_gaussian_lines import (
    TAIL_DEVIATIONS,
    Line,
    log_ratio_at,
    loss_and_share,
    raised_line,
    real_line,
    real_step,
)
from accountant.amplification.sampled_gaussian.sampled_gaussian_moments import (
    log_moments,
    moment_power,
)
from accountant.numerics import Array, Complex
from accountant.numerics.logspace import logsumexp
from accountant.numerics.ordered_sums import ordered_dot
from accountant.numerics.rounding import ULP
from accountant.numerics.search import least_float_that

BISECTIONS = 20  # of an estimate
SQRT_TWO = math.sqrt(2)
SHORT_RULE = 700  # points of a rule that serves all smaller powers
STEEP = 4.0  # where mu is greater, rules are long and serve fewer powers
ROUGH_STEP, ROUGH_REACH = 0.45, 13.0  # of a sum that starts searches
FAR_OUTPUTS = np.geomspace(1.05, 1e3, 40)  # where a great power has its mass
ROUGH_END, LEAST_ROUGH_STEP = 38.6, 1e-3
HIGHEST_BOUND_LINE = 8.0  # a bound falls to e^{-eta^2 / 2} at most on the line Im x = eta


@dataclass(frozen=True, slots=True)
class SampledGaussian:
    """Quadrature for one (mu, rate) in one direction; ``record_added``: the record is only in Q."""

    mu: float
    rate: float
    record_added: bool

    def cgf(self, z: Any) -> tuple[Any, Array]:
        """Return ``ln E e^{zL}`` and a bound on its error; infinite where Re z is out of reach."""
        flat = np.ravel(z)
        power = self._power(flat)
        if not np.iscomplexobj(flat):
            rule = self._rule_of_all(power)
            if rule is not None:
                moment, error = log_moments(rule, power)
                return moment.real.reshape(np.shape(z)), error.reshape(np.shape(z))
        value, error = np.full(flat.shape, np.inf, dtype=complex), np.zeros(flat.shape)
        turns = power.imag != 0
        for rule, served in self._real_rules(power.real, ~turns):
            value[served], error[served] = log_moments(rule, power[served] + 0j)
        for real_power in np.unique(power.real[turns]).tolist():
            line = raised_line(self.mu, self.rate, real_power)
            served = (power.real == real_power) & turns
            if line is not None:
                # a moment at the conjugate is the conjugate: one sign has no oscillation
                s = power[served]
                mirrored = s.imag * math.copysign(1, real_power) < 0
                log_moment, error[served] = log_moments(line, np.where(mirrored, np.conj(s), s))
                value[served] = np.where(mirrored, np.conj(log_moment), log_moment)
        result = value if np.iscomplexobj(z) else value.real
        return result.reshape(np.shape(z)), error.reshape(np.shape(z))

    def _rule_of_all(self, power: Array) -> Line | None:
        """Return a short rule for all of some real powers of one sign; None where none is."""
        if power.size == 1:  # a contour through it needs this line, too
            return raised_line(self.mu, self.rate, float(power[0]))
        smallest, greatest = float(power.min(initial=np.inf)), float(power.max(initial=-np.inf))
        if not (math.isfinite(greatest - smallest) and smallest * greatest > 0):
            return None
        size = float(self._octave(np.array(greatest if greatest > 0 else smallest)))
        rule = self._rule_of_octave(size)
        return rule if rule is not None and rule.x.size <= SHORT_RULE else None

    def _real_rules(self, power: Array, is_real: Array) -> Iterator[tuple[Line, Array]]:
        """Yield rules and the real powers they serve: all smaller ones of a sign if short."""
        size = self._octave(power)
        unserved = is_real & np.isfinite(size)
        while unserved.any():
            octave = float(size[unserved][np.argmax(np.abs(size[unserved]))])
            line = self._rule_of_octave(octave)
            served = unserved & (size == octave)
            if line is not None:
                if line.x.size <= SHORT_RULE:
                    served = unserved & (np.sign(size) == math.copysign(1, octave))
                yield line, served
            unserved &= ~served

    @property
    def _octaves(self) -> float:
        return 2.0 if self.mu < STEEP else 0.25

    def _octave(self, power: Array) -> Array:
        size: Array = 1 + np.ceil(np.log2(np.maximum(np.abs(power), 1.0)) / self._octaves)
        return np.copysign(size, power)

    def _rule_of_octave(self, size: float) -> Line | None:
        power = math.copysign(2.0 ** (self._octaves * (abs(size) - 1)), size)
        return real_line(self.mu, self.rate, power)

    def rough_cgf(self, a: Array) -> Array:
        """Return about ``ln E e^{aL}`` at real ``a``, from a short sum: no bound follows."""
        mass, loss, far_mass, far_loss = rough_rule(self.mu, self.rate)
        power = self._power(a)
        with np.errstate(over="ignore", invalid="ignore"):
            moment = ordered_dot(np.expm1(np.outer(power, loss)), mass)
            far = np.sum(np.exp(np.outer(power, far_loss) + far_mass), axis=1)
            cumulant: Array = np.log1p(moment + far)
        return cumulant

    def _power(self, a: Any) -> Any:
        return -a if self.record_added else a + 1

    def cf_ratio(self, z: Complex, count: int) -> tuple[Complex, Array]:
        """Return ``(E e^{zL} / E e^{aL})^count`` on equidistant nodes, and a bound on its error."""
        s = self._power(z)
        line = raised_line(self.mu, self.rate, float(s[0, 0].real))
        if line is None:
            return np.zeros(z.shape, dtype=complex), np.full(z.shape, np.inf)
        return moment_power(line, s, count)

    def log_cf_bound(self, a: float, u: Array) -> Array:
        """Return the log of a bound on ``|E e^{(a+iv)L}| / E e^{aL}`` for every ``v >= u``."""
        decay = _lines_of_decay(self.mu, self.rate, float(self._power(a)))
        return np.zeros(u.shape) if decay is None else decay.log_bound(u)

    def quadrature_terms(self, frequency: float) -> float:
        """Return how many points a contour up to ``frequency`` needs, at a moderate real part."""
        return 2 * TAIL_DEVIATIONS / real_step(2 * self.mu)


def rough_epsilon(gaussians: Sequence[SampledGaussian], counts: Array, delta: float) -> float:
    """Return an estimate of epsilon: one large-loss event and many losses that are about normal."""
    mu = np.array([gaussian.mu for gaussian in gaussians])
    rate = np.array([gaussian.rate for gaussian in gaussians])
    hits = counts * rate
    expected = float(np.sum(hits))
    large = 0.0
    if delta < expected / 2:
        # the loss is about ln(1 + e^y), and y normal in a sampled release
        log_odds = np.log(rate) - np.log1p(-np.minimum(rate, 1 - ULP))
        mean = log_odds + mu * mu / 2

        def is_rare(y: float) -> bool:
            tails = [
                math.erfc(deviation) / 2 for deviation in ((y - mean) / (mu * SQRT_TWO)).tolist()
            ]
            return float(ordered_dot(np.array(tails), hits)) <= delta

        far = math.sqrt(-2 * math.log(delta / expected))
        y_high = float(np.max(mean + mu * far))
        y = least_float_that(is_rare, float(np.min(mean)), y_high, steps=BISECTIONS)
        large = float(np.logaddexp(0.0, y))
    variance = float(np.sum(counts * rate**2 * np.expm1(np.minimum(mu * mu, 2.0))))
    normal = variance / 2 + math.sqrt(-2 * variance * math.log(delta))
    # every hit costs about mu^2 / 2 less ln(1 / rate)
    hit_cost = np.maximum(mu * mu / 2 + np.log(rate), 0.0)
    of_hits = float(np.sum(hits * hit_cost)) + 6 * math.sqrt(float(np.sum(hits * hit_cost**2)))
    return large + max(normal, of_hits)


@functools.lru_cache(maxsize=4)
def rough_rule(mu: float, rate: float) -> tuple[Array, Array, Array, Array]:
    """Return masses and losses of a short rule, and of a few outputs far out, as logarithms."""
    # beyond `ROUGH_END` a mass is 0; there a few logarithms serve
    step = max(min(ROUGH_STEP, 2 * ROUGH_STEP / mu), LEAST_ROUGH_STEP)
    x = np.arange(-ROUGH_REACH, min(ROUGH_REACH + mu, ROUGH_END) + step, step)
    mass = step / math.sqrt(2 * math.pi) * np.exp(-x * x / 2)
    far = x[-1] * FAR_OUTPUTS
    return mass, log_ratio_at(mu, rate, x), -far * far / 2, log_ratio_at(mu, rate, far)


@functools.lru_cache(maxsize=4)
def _lines_of_decay(mu: float, rate: float, power: float) -> Decay | None:
    """Return lines that bound a transform; None where there is no rule."""
    rule = raised_line(mu, rate, power)
    if rule is None:
        return None
    x, highest = rule.x.real, min(0.49 * math.pi / mu, HIGHEST_BOUND_LINE)
    if power < 0:
        highest = min(highest, abs(float(rule.x[0].imag)))
    eta = highest * LINE_LADDER
    log_weight = -x * x / 2
    log_weight = log_weight - logsumexp(power * loss_and_share(mu, rate, x)[0] + log_weight)
    missed = 4 * rule.missed * np.exp(eta**2 / 2)
    return Decay(mu, rate, power, x, log_weight, eta, missed)
