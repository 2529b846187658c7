"""The cumulant of a Poisson-sampled Gaussian: one quadrature, its error bounded.

With r(x) = 1 - rate + rate e^{mu x - mu^2/2} and X ~ N(0, 1), the loss with the record present is
ln r(x), and both directions are moments of r:  E_P e^{zL} = E r(X)^{z+1}  (remove),
E_Q e^{-zL} = E r(X)^{-z}  (add).

References: Mironov, Talwar & Zhang (2019); trapezoid rule: Trefethen & Weideman (2014), Thm 5.1.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from accountant.numerics import Array, Complex
from accountant.numerics.exponential_sums import (
    cf_ratio,
    complex_power,
    finite_cgf,
    power_round_off,
)
from accountant.numerics.logspace import log_mixture, logsumexp

TAIL_DEVIATIONS = 9.5  # Phi(-9.5) is 1e-21: what is left out at the sides
MAX_QUADRATURE_POINTS = 2_000  # an order that needs more is out of reach


@dataclass(frozen=True, slots=True)
class SampledGaussian:
    """Quadrature for one (mu, rate) in one direction; ``record_added``: the record is only in Q."""

    mu: float
    rate: float
    record_added: bool

    def cgf(self, z: Any) -> tuple[Any, Array]:
        """Return ``ln E e^{zL}`` and a bound on its error; infinite where Re z is out of reach."""
        shape, z = z.shape, np.atleast_1d(z)
        value, error = np.full(z.shape, np.inf, dtype=z.dtype), np.zeros(z.shape)
        turn = float(np.max(np.abs(z.imag), initial=0.0))
        # one rule for orders of similar size
        size = np.ceil(np.log2(np.maximum(z.real, 1.0)) / 2)
        size[self._point_count(z.real, turn) > MAX_QUADRATURE_POINTS] = np.nan
        for one in np.unique(size[np.isfinite(size)]):
            some = size == one
            loss, log_mass, missed = _quadrature_rule(self, float(np.max(z.real[some])), turn)
            part = z if some.all() else z[some]
            found, near = finite_cgf(loss, log_mass, part)
            # relative to the moment at the real order
            tilted = finite_cgf(loss, log_mass, part.real)[0] if turn else found
            near = near + missed * np.exp(np.minimum(tilted.real - found.real, 700.0))
            value[some], error[some] = found.ravel(), near.ravel()
        return value.reshape(shape), error.reshape(shape)

    def cf_ratio(self, z: Complex, count: int) -> tuple[Complex, Array]:
        """Return ``(E e^{zL} / E e^{aL})^count`` on equidistant nodes, and a bound on its error."""
        loss, log_mass, missed = _quadrature_rule(self, z[0, 0].real, z[-1, -1].imag)
        one, spread, own = cf_ratio(loss, log_mass, z)
        return complex_power(one, count), power_round_off(
            count, spread, z, own
        ) + 2 * count * missed

    def log_cf_bound(self, a: float, u: Array) -> Array:
        """Return the log of a bound on ``|E e^{(a+iv)L}| / E e^{aL}`` for every ``v >= u``."""
        # By parts on x >= y, where L moves at the rate L': |int_{x >= y} f e^{iuL}| is at most
        # (1/u) [(f / L')(y) + total variation of f / L' beyond], f the tilted density.
        if self._point_count(np.array(a), 0.0) > MAX_QUADRATURE_POINTS:
            return np.zeros(u.shape)
        low, high, _ = self._quadrature_range(np.array(a), 0.0)
        x = np.linspace(float(low), float(high), max(1200, math.ceil(50 * float(high - low))))
        power = -a if self.record_added else a + 1
        size = power * self.log_ratio(x) - x * x / 2
        density = np.exp(size - np.max(size))
        density /= density.sum()
        y = self.mu * x - self.mu * self.mu / 2 - self.log_ratio(x)
        with np.errstate(over="ignore"):
            over_speed = density / (x[1] - x[0]) / (self.rate * self.mu * np.exp(y))
        variation = np.append(np.cumsum(np.abs(np.diff(over_speed))[::-1])[::-1], 0.0)
        # a grid misses less than a thousandth of the variation; the sum to the left is too large
        left, jump = np.cumsum(density)[::4], 1.001 * (over_speed + variation)[::4]
        good = np.isfinite(jump)
        bound = np.min(left[good] + jump[good] / u[:, None], axis=1)
        log_bound: Array = np.log(np.minimum(bound + 1e-12, 1.0))
        return log_bound

    def quadrature_losses(self, tilt: float, frequency: float) -> tuple[Array, Array]:
        """Return the points of the rule, and the loss there in this direction."""
        low, high, step = self._quadrature_range(np.array(tilt), frequency)
        x = np.arange(float(low), float(high + step), step)
        ratio = self.log_ratio(x)
        return x, -ratio if self.record_added else ratio

    def log_ratio(self, x: Array) -> Array:
        """Return ``ln r(x)``."""
        return log_mixture(self.mu * x - self.mu * self.mu / 2, self.rate)

    def _quadrature_range(self, tilt: Array, frequency: float) -> tuple[Array, Array, float]:
        # Tilting moves the mass to the right by up to mu (a + 1), since L' < mu; or (add) to the
        # left, where L' < rate mu, by up to a rate mu, and not beyond where r^-a is flat.
        a = np.maximum(tilt, 0.0)
        reach = self.mu * (a + 1)
        with np.errstate(divide="ignore"):
            flat = np.log1p(a * self.rate / np.float64(1 - self.rate)) / self.mu
        left = np.minimum(flat, a * self.rate * self.mu)
        low, high = (
            -TAIL_DEVIATIONS - left * self.record_added,
            TAIL_DEVIATIONS + reach * (not self.record_added),
        )
        # r^z turns by at most turn * mu a unit of x
        step = math.pi / (14 + self.mu * (1 + 0.5 * min(frequency, 1e6)))
        return low, high, step

    def quadrature_terms(self, frequency: float) -> float:
        """Return how many points a contour up to ``frequency`` needs, at a moderate real part."""
        return float(self._point_count(np.array(10.0), frequency))

    def _point_count(self, tilt: Array, frequency: float) -> Array:
        low, high, step = self._quadrature_range(tilt, frequency)
        return (high - low) / step

    def quadrature_error(self, x: Array, tilt: float, frequency: float) -> float:
        """Return the error of the rule, relative to ``int f``; it falls with the real part.

        It is at most ``2 int |f(x +- id)| dx / (e^{2 pi d / h} - 1)``, the best of some d.
        """
        h, power = x[1] - x[0], -tilt if self.record_added else tilt + 1
        widest = min(1.2, math.pi / 2 / self.mu)
        if frequency == 0 and power >= 0:  # |r(x + id)| <= r(x), so f grows by e^{d^2 / 2} at most
            return 4 * math.exp(widest**2 / 2 - 2 * math.pi * widest / h) + 1e-20
        best, real = math.inf, logsumexp(power * self.log_ratio(x) - x * x / 2)
        for d in widest * np.array([1.0] if frequency == 0 else [0.03, 0.1, 0.25, 0.5, 1.0]):
            # ln r off the line; e^w factored out where it is large
            w = self.mu * (x + 1j * d) - self.mu**2 / 2
            large = w.real > 30
            ends = (self.rate, 1 - self.rate)
            inner = np.where(large, *ends) + np.where(large, *ends[::-1]) * np.exp(
                np.where(large, -w, w)
            )
            log_r = np.where(large, w, 0.0) + np.log(inner)
            # the less favourable sign of the turn
            size = (d * d - x * x) / 2 + power * log_r.real + frequency * np.abs(log_r.imag)
            best = min(best, float(logsumexp(size) - real) - 2 * math.pi * d / h)
        return 4 * math.exp(min(best, 700.0)) + 1e-20


@functools.lru_cache(maxsize=64)
def _quadrature_rule(
    sampled: SampledGaussian, tilt: float, frequency: float
) -> tuple[Array, Array, float]:
    """Return losses and log-masses that replace the law, and the error they leave in a moment."""
    x, loss = sampled.quadrature_losses(tilt, frequency)
    log_mass = -x * x / 2 + math.log((x[1] - x[0]) / math.sqrt(2 * math.pi))
    # the law of the moment: Q where the record was added, else P = r Q
    log_mass = log_mass if sampled.record_added else log_mass + loss
    return loss, log_mass, sampled.quadrature_error(x, tilt, frequency)
