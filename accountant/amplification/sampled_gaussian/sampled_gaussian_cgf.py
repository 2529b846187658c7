"""The cumulants of one Poisson-sampled Gaussian, with bounds on their errors, for contours.

With r(x) = 1 - rate + rate e^{mu x - mu^2/2} and X ~ N(0, 1), the output without the record, the
privacy loss is ln r where the record is removed and -ln r where it is added.  The cumulants
K(z) = ln E e^{zL} of both directions are moments of r at a power p:

    E_P e^{zL} = E r(X)^{z+1}, p = z + 1 (removed),    E_Q e^{zL} = E r(X)^{-z}, p = -z (added).

`SampledGaussian` chooses a trapezoid rule for them (`sampled_gaussian_lines`) and sums it
(`sampled_gaussian_moments`).  A rule for a real power also serves smaller powers of its sign.

References: Mironov, Talwar & Zhang (2019); proof: `docs/proofs/sampled_gaussian.md`.
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

BISECTIONS = 20  # steps of the search in `rough_epsilon`, which needs only an estimate
SQRT_TWO = math.sqrt(2)
# A rule of at most 700 points serves all smaller powers at once.  A longer one serves only those of
# its class, because shorter rules are enough for the others.
SHORT_RULE = 700
# For a larger mu the points of a rule grow fast with the power, so that classes are narrower.
STEEP_MU = 4.0
# The sum of an estimate has outputs from -13 to mu + 13, but not above 38.6, where n(x) is 0 as a
# float, in steps of 0.45, or 0.9 / mu if that is less.
ROUGH_STEP, ROUGH_REACH, ROUGH_END = 0.45, 13.0, 38.6
# Further outputs of an estimate, as multiples of its last one: a large power has its mass there.
FAR_OUTPUTS = np.geomspace(1.05, 1e3, 40)
SHORTEST_ROUGH_STEP = 1e-3  # the least step of an estimate, for a mu above 900
HIGHEST_BOUND_LINE = 8.0  # eta: the bound on the line Im x = eta falls to e^{-eta^2 / 2} at best


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
        dtype = complex if np.iscomplexobj(z) else float
        value, error = np.full(flat.shape, np.inf, dtype=dtype), np.zeros(flat.shape)
        is_complex = power.imag != 0
        for rule, served in self._real_rules(power.real, ~is_complex):
            log_moment, error[served] = log_moments(rule, power[served])
            value[served] = log_moment.real
        for real_power in np.unique(power.real[is_complex]).tolist():
            line = raised_line(self.mu, self.rate, real_power)
            served = (power.real == real_power) & is_complex
            if line is not None:
                # The line serves one sign of Im s; a moment at the conjugate is the conjugate.
                s = power[served]
                mirrored = s.imag * math.copysign(1, real_power) < 0
                log_moment, error[served] = log_moments(line, np.where(mirrored, np.conj(s), s))
                value[served] = np.where(mirrored, np.conj(log_moment), log_moment)
        return value.reshape(np.shape(z)), error.reshape(np.shape(z))

    def _real_rules(self, power: Array, is_real: Array) -> Iterator[tuple[Line, Array]]:
        """Yield rules and the real powers they serve: all smaller ones of a sign if short."""
        if power.size == 1 and is_real[0]:
            line = raised_line(self.mu, self.rate, float(power[0]))
            if line is not None:  # A contour through this power needs the line, too.
                yield line, is_real
                return
        power_class = self._class_of(power)
        unserved = is_real & np.isfinite(power_class)
        while unserved.any():
            largest = float(power_class[unserved][np.argmax(np.abs(power_class[unserved]))])
            line = self._rule_of_class(largest)
            served = unserved & (power_class == largest)
            if line is not None:
                if line.x.size <= SHORT_RULE:
                    served = unserved & (np.sign(power_class) == math.copysign(1, largest))
                yield line, served
            unserved &= ~served

    @property
    def _octaves(self) -> float:
        """The width of a class of powers in octaves; all powers of a class have one rule."""
        return 2.0 if self.mu < STEEP_MU else 0.25

    def _class_of(self, power: Array) -> Array:
        """Return the class of each real power: 1, 2, ... with the sign of the power."""
        power_class: Array = 1 + np.ceil(np.log2(np.maximum(np.abs(power), 1.0)) / self._octaves)
        return np.copysign(power_class, power)

    def _rule_of_class(self, power_class: float) -> Line | None:
        """Return the rule for the largest power of a class; None where it is too long."""
        power = math.copysign(2.0 ** (self._octaves * (abs(power_class) - 1)), power_class)
        return real_line(self.mu, self.rate, power)

    def rough_cgf(self, a: Array) -> Array:
        """Return about ``ln E e^{aL}`` at real ``a``, from a short sum that proves no bound."""
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
    """Return an estimate of epsilon, from one large loss and a sum that is about normal.

    Of n_i releases, a record is sampled in about sum n_i rate_i, its ``hits``.
    """
    mu = np.array([gaussian.mu for gaussian in gaussians])
    rate = np.array([gaussian.rate for gaussian in gaussians])
    hits = counts * rate
    expected = float(np.sum(hits))
    large = 0.0
    if delta < expected / 2:
        # In a hit the loss is about ln(1 + e^y), y = ln odds + mu x - mu^2 / 2, x ~ N(mu, 1): the
        # y that all hits together exceed with probability delta.
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
    # Every hit costs about mu^2 / 2 less ln(1 / rate); the number of hits is within 6 deviations.
    hit_cost = np.maximum(mu * mu / 2 + np.log(rate), 0.0)
    of_hits = float(np.sum(hits * hit_cost)) + 6 * math.sqrt(float(np.sum(hits * hit_cost**2)))
    return large + max(normal, of_hits)


@functools.lru_cache(maxsize=4)
def rough_rule(mu: float, rate: float) -> tuple[Array, Array, Array, Array]:
    """Return masses and losses of a short rule, and log-masses and losses of outputs far out."""
    step = max(min(ROUGH_STEP, 2 * ROUGH_STEP / mu), SHORTEST_ROUGH_STEP)
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
    heights = highest * LINE_LADDER
    log_weight = -x * x / 2
    log_weight = log_weight - logsumexp(power * loss_and_share(mu, rate, x)[0] + log_weight)
    missed = 4 * rule.missed * np.exp(heights**2 / 2)
    return Decay(mu, rate, power, x, log_weight, heights, missed)
