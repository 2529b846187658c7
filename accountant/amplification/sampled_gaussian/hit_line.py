"""The line on which similar sampled Gaussians share integrals of hits, and what it misses.

With o = rate / (1 - rate), Y = mu X - mu^2/2 + ln o, l(y) = ln(1 + e^y) and the odds c,
phi(y) = (1 - e^{-e^y / c})^m is about 1 where Y is a hit, and falls as e^{my} to the left:

    h(p) = E (1 + e^Y)^p phi(Y),   w(p) = E [(1 + e^Y)^p (1 - phi(Y))] - 1,

so that 1 + w + h is the moment over (1 - rate)^p.  Proof: `docs/proofs/schedules.md`, steps 17 to
20.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from accountant.amplification.sampled_gaussian.density_rows import DensityRows
from accountant.numerics import Array, Complex
from accountant.numerics.logspace import log1p
from accountant.numerics.ordered_sums import ordered_dot
from accountant.numerics.rounding import ULP

POWER = 12  # m
ANGLE = 0.165 * math.pi  # the height of the line, and half of its strip's
HIGHEST = 1.25  # the same in deviations
NATS = 40.0
RULE_ERROR = 3 * math.exp(-NATS)  # times the sum of bounds on cells, of both edges
DEVIATIONS, RIGHT_DEVIATIONS = 9.8, 12.5
LEFT_OUT = 1.2e-22  # Phi(-9.8), for the integral and for the sum
LAST_RATIO = math.log(3e4)  # of e^y and c: beyond it phi is 1
MAX_POINTS = 8_000
MAX_EXPONENT = 600.0
MAX_PEAK = 300.0  # ln of what the rule for others sums
SHARES_OF_HEIGHT = np.array([0.3, 0.6, 1.0, 1.5, 2.0, 2.5, 2.85])  # of lines for the decay


def greatest_power(mu: Array, log_odds: Array) -> float:
    """Return the greatest real part of a power whose moments are floats, for one group."""
    # p (m + mu (p mu + 12.5) + 1) <= MAX_EXPONENT
    square = float(np.max(mu)) ** 2
    place = float(np.max(log_odds - mu * mu / 2)) + RIGHT_DEVIATIONS * float(np.max(mu)) + 1
    return (math.sqrt(place**2 + 4 * square * MAX_EXPONENT) - place) / (2 * square) * (1 - 1e-9)


class HitLine:
    """Sampled Gaussians with the record present, mu in one octave; no power above ``highest``."""

    def __init__(
        self,
        mu: Array,
        log_odds: Array,
        counts: Array,
        *,
        odds: float,
        highest: float,
    ) -> None:
        self.mu, self.counts, self.mean = mu, counts, log_odds - mu * mu / 2
        self._odds = odds
        self._least, most = float(np.min(mu)), float(np.max(mu))
        self._height = min(ANGLE, HIGHEST * self._least)
        self._step = 2 * math.pi * self._height / (NATS + math.log(4))
        first = float(np.min(self.mean)) - DEVIATIONS * most
        last = float(np.max(self.mean)) + most * (highest * most + RIGHT_DEVIATIONS)
        last = max(last, math.log(odds) + LAST_RATIO)
        nodes = math.ceil((last - first) / self._step) + 1
        self.is_short = nodes <= MAX_POINTS and highest * (max(last, 0.0) + 1) <= MAX_EXPONENT
        self._x = first + self._step * np.arange(float(nodes if self.is_short else 2))
        self.y: Complex = (self._x + 1j * self._height).astype(complex)
        self.loss: Complex = np.log1p(np.exp(self.y))
        self._ratio = _exp(self.y - math.log(odds))
        none = np.exp(-self._ratio)
        self._phi: Complex = (-np.expm1(-self._ratio)) ** POWER
        # ln(1 - phi), from where that has more digits
        tiny = self._ratio.real > 20
        small = (np.abs(none) < 0.5) & ~tiny
        self._log_other: Complex = np.log(1 - np.where(small | tiny, 0.0, self._phi))
        self._log_other[small] = np.log(-np.expm1(POWER * log1p(-none[small])))
        self._log_other[tiny] = math.log(POWER) - self._ratio[tiny] - (POWER - 1) / 2 * none[tiny]

    @property
    def points(self) -> int:
        """The number of nodes of the line."""
        return self._x.size

    @property
    def _densities(self) -> DensityRows:
        return DensityRows(self.mu, self.mean, self.counts, self.y)

    @functools.cached_property
    def _column_sums(self) -> tuple[Complex, Array]:
        weight, absolute = self._densities.column_sums()
        return weight * self._step, absolute * self._step

    def others(self, p: float) -> float:
        """Return a bound on the sum of counts times w at a real power; inf if it is too great."""
        peak = np.max(p * self._log_size(0.0) + self._fall(2 * self._height))
        if not (p <= self._greatest_of_others and peak <= MAX_PEAK):
            return math.inf
        weight, _ = self._column_sums
        kernel, _ = self._kernels(p)
        return float(np.sum((weight * kernel).real)) + self._others_error(p)

    def hits(self, p: float) -> float:
        """Return a bound on the sum of counts times h at a real power."""
        weight, _ = self._column_sums
        _, kernel = self._kernels(p)
        return float(np.sum((weight * kernel).real)) + self._hits_error(p)

    @property
    def _greatest_of_others(self) -> float:
        # at the end and beyond it (1 + e^y)^p is less than half of what 1 - phi falls by
        end = float(self._x[-1])
        greatest = 0.25 * math.exp(min(end - math.log(self._odds), 600.0))
        return greatest / float(np.logaddexp(0.0, end))

    def _kernels(self, p: float) -> tuple[Complex, Complex]:
        """Return what w and h integrate at a real power, on the nodes."""
        hit = np.exp(np.minimum(p * self.loss.real, MAX_EXPONENT) + 1j * p * self.loss.imag)
        others = np.exp(p * self.loss + self._log_other) - np.exp(self._log_other) - self._phi
        return others, hit * self._phi

    def _scales(self, p: float) -> tuple[Array, Array]:
        """Return bounds on both kernels at powers of real part p; the first over ``|p'| / p``."""
        phi, kept = np.abs(self._phi), self._kept(p)
        near = np.minimum(p * np.abs(self.loss) * kept, kept + np.exp(self._log_other.real))
        # rows are divided by these
        return near + phi + 1e-300, self._power(p) * phi + 1e-300

    def _power(self, p: float) -> Array:
        power: Array = np.exp(np.minimum(p * self.loss.real, MAX_EXPONENT))
        return power

    def _kept(self, p: float) -> Array:
        """Return ``|1 + e^y|^p |1 - phi|``."""
        kept: Array = np.exp(np.minimum(p * self.loss.real + self._log_other.real, 700.0))
        return kept

    @functools.cached_property
    def _ulps(self) -> tuple[Array, Array]:
        """Return the ulps of the densities, and the logarithm of those of phi."""
        # |d phi / d ln zeta| = m |1 - e^-zeta|^(m-1) |zeta e^-zeta|
        slope = np.log(np.abs(self._phi) + 1e-300) * ((POWER - 1) / POWER) + math.log(POWER)
        slope += np.log(np.abs(self._ratio)) - self._ratio.real
        own = 4 * np.abs(self.y) + 4 * abs(math.log(self._odds)) + 16
        return self._densities.ulps + 16, slope + np.log(own)

    def _others_error(self, p: float) -> float:
        """Return a bound on the error of the sum of counts times w, over ``|p'| / p``."""
        _, absolute = self._column_sums
        # bounds on both edges of the strip, on the cells at both sides of a node
        log_right = np.logaddexp(0.0, self._x + self._step)
        bound = 2 * self._near_phi
        for angle in (0.0, 2 * self._height):
            fall = p * self._log_size(angle) + self._fall(angle)
            if np.max(fall) > MAX_PEAK:
                return math.inf
            bound += 1.16 * p * log_right * np.exp(fall)
        first = 2.0**POWER * p * float(log_right[0]) * math.exp(p * float(log_right[0]))
        first += float(self._near_phi[0])
        missed = RULE_ERROR * float(ordered_dot(absolute, bound))
        missed += float(np.sum(self.counts)) * (3 * LEFT_OUT * first + 1e-33)
        rows, slope = self._ulps
        own = 4 * p * np.abs(self.loss) + 4 * np.abs(self._log_other) + 32
        ulps = rows * self._scales(p)[0] + own * (self._kept(p) + 1)
        ulps += 2 * np.exp(np.minimum(p * self.loss.real + slope, 700.0))
        return missed + ULP * float(ordered_dot(absolute, ulps))

    def _fall(self, angle: float) -> Array:
        """Return a bound on ``ln |1 - phi|`` at an angle, on the cells at both sides of a node."""
        down = math.cos(angle) * _exp(self._x - self._step - math.log(self._odds))
        near = np.log(np.expm1(POWER * np.log1p(np.exp(-np.minimum(down, 30.0)))))
        bound: Array = near - np.maximum(down - 30, 0.0)
        return bound

    def _log_size(self, angle: float) -> Array:
        """Return ``ln |1 + e^{y + i angle}|`` a step to the right of the nodes."""
        right = self._x + self._step
        least = np.exp(-np.abs(right))
        size = (1 + 2 * least * math.cos(angle) + least * least) * (1 + 4 * ULP)
        found: Array = np.maximum(right, 0.0) + np.log(size) / 2
        return found

    @functools.cached_property
    def _near_phi(self) -> Array:
        """A bound on ``|phi|`` in the strip, on the cells at both sides of a node."""
        near: Array = np.minimum(_exp(self._x + self._step - math.log(self._odds)), 2.0) ** POWER
        return near

    def _hits_error(self, p: float) -> float:
        """Return a bound on the error of the sum of counts times h."""
        _, absolute = self._column_sums
        bound = np.exp(p * np.logaddexp(0.0, self._x + self._step)) * self._near_phi
        missed = RULE_ERROR * float(ordered_dot(absolute, bound))
        missed += 2.2 * LEFT_OUT * float(np.sum(self.counts) * bound[0]) + self._beyond(p)
        rows, slope = self._ulps
        ulps = (rows + 4 * p * np.abs(self.loss) + 64) * self._scales(p)[1]
        ulps += np.exp(np.minimum(p * self.loss.real + slope, 700.0))
        return missed + ULP * float(ordered_dot(absolute, ulps))

    def _beyond(self, p: float) -> float:
        """Return a bound on what is left out to the right: ``n e^{py} (1 + e^-end)^p``."""
        end = float(self._x[-1])
        far = (end - self.mean) / self.mu - p * self.mu
        size = p * (self.mean + float(np.logaddexp(0.0, -end))) + (p * self.mu) ** 2 / 2
        return 6 * float(np.sum(self.counts * np.exp(np.minimum(size - far * far / 2, 700.0))))

    def decay(self, p: float, u: Array) -> Array:
        """Return a bound on the sum of counts times ``|h(p + iv)|`` for every ``v >= u``."""
        _, absolute = self._column_sums
        low, high = np.exp(self._x - self._step), np.exp(self._x + self._step)
        found = np.full(u.shape, math.inf)
        count, most, beyond = float(np.sum(self.counts)), float(np.max(self.mu)), self._beyond(p)
        left = math.exp(p * float(np.logaddexp(0.0, self._x[0]))) * float(self._near_phi[0])
        for angle in (self._height * SHARES_OF_HEIGHT).tolist():
            change = angle**2 - self._height**2
            grown = math.exp(change / (2 * (self._least if change > 0 else most) ** 2))
            cosine, sine = math.cos(angle), math.sin(angle)
            # |1 - e^{-(a + ib)}|^2 = (1 - e^-a)^2 + 4 e^-a sin(b / 2)^2
            near, far = np.minimum(low / self._odds, 1e300), np.minimum(high / self._odds, 1e300)
            turn = np.sin(np.minimum(far * sine, math.pi) / 2)
            square = np.expm1(-far * cosine) ** 2 + 4 * np.exp(-near * cosine) * turn * turn
            size = np.exp(p * self._log_size(angle)) * square ** (POWER / 2) * absolute
            argument = np.arctan2(low * sine, 1 + low * cosine)
            total = ordered_dot(np.exp(-np.multiply.outer(u, argument)), size)
            ends = math.exp(angle**2 / (2 * self._least**2)) * LEFT_OUT * count * left
            ends += math.exp(max(change, 0.0) / (2 * self._least**2)) * beyond
            found = np.minimum(found, 1.01 * grown * total + ends)
        return found


def _exp(x: Any) -> Any:
    """Return ``e^x``, at most e^600 in absolute value."""
    return np.exp(x - np.maximum(np.real(x) - 600.0, 0.0))
