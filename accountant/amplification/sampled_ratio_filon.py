"""The characteristic function of a `SampledRatioLaw` far up a contour, at a fixed cost a node.

Between the atoms the law has, in y = ln r, the density F(y) = scale sqrt(q) (e^y - 1 + q)^{-3/2}
e^{(p+1) y}, tilted.  On a panel F is replaced by its polynomial through Legendre's nodes, of which
every Fourier integral is known: int_-1^1 P_k(s) e^{iws} ds = 2 i^k j_k(w) (Filon's rule).

References: Iserles & Norsett (2005); the errors are bounded in `docs/proofs/sampled_laplace.md`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.polynomial.legendre import legvander

from accountant.losses.ratio_law import RatioLaw
from accountant.numerics import Array, Complex
from accountant.numerics.exponential_sums import phases
from accountant.numerics.logspace import log_mixture
from accountant.numerics.ordered_sums import ordered_dot, ordered_product
from accountant.numerics.quadrature import legendre
from accountant.numerics.rounding import ULP

DEGREE = 28  # terms of the polynomial
FEW_TURNS = 2.0 * DEGREE  # below so many radians a panel is summed at its points
POINTS = 96  # of such a sum
PANEL = 0.4  # half-width in the log-ratio
BLOCK = 8192  # angles at a time: about what a cache holds


def _series_of_bessel(terms: list[float], turn: Array) -> tuple[Array, Array]:
    """Return the sums over even and odd k of ``+-terms[k] j_k(turn)``, spherical Bessel functions.

    In place, for the arrays are read many times.
    """
    # j_{k+1} = (2k+1)/w j_k - j_{k-1}, stable upwards for k < w
    over = 1 / turn
    before, now = np.cos(turn) * over, np.sin(turn) * over
    sums, spare = (np.zeros(turn.shape), np.zeros(turn.shape)), np.empty(turn.shape)
    for i, term in enumerate(terms):
        part = sums[i % 2]
        part += np.multiply(now, term if i % 4 < 2 else -term, out=spare)
        np.multiply(over, 2 * i + 1, out=spare)
        spare *= now
        spare -= before
        before, now, spare = now, spare, before
    return sums


class FilonRule:
    """Panels for one law and one tilt; ``missed`` bounds their error over E e^{aL}."""

    def __init__(self, law: RatioLaw, rate: float, power: float, log_moment: float) -> None:
        self._law, self._rate = law, rate
        self._power, self._log_moment = power, log_moment
        self._log_scale = math.log(law.scale) + math.log(rate) / 2 - log_moment
        panels = max(1, math.ceil((law.high - law.low) / 2 / PANEL))
        edges = log_mixture(np.linspace(law.low, law.high, panels + 1), rate)
        self._centre, self._half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
        self.missed = float(np.sum(self._interpolation_error() + self._sum_error()))

    def ratio(self, z: Complex, sign: float) -> tuple[Complex, Array]:
        """Return ``E r^{p + iu sign} / E r^p`` on equidistant nodes ``u``, and its error."""
        total, size = np.zeros(z.shape, dtype=complex), np.zeros(z.shape)
        u, v = z[:, 0].imag * sign, z[0].imag * sign
        for ratio, mass in self._law.atoms:
            if math.isinf(ratio) and self._rate == 1:
                continue
            one_sided = math.isinf(ratio)
            y = (
                math.log1p(-self._rate)
                if one_sided
                else float(log_mixture(np.array(ratio), self._rate))
            )
            weight = mass * math.exp(self._power * y - self._log_moment)
            total += weight * np.multiply.outer(phases(u * y), phases(v * y))
            size += weight * (4 + abs(y) * np.abs(z.imag) + abs(self._power * y))
        for centre, half in zip(self._centre, self._half, strict=True):
            # in blocks of columns over which a panel makes few turns
            columns = max(1, math.floor(FEW_TURNS / 2 / max(abs(v[1 % v.size]) * half, 1e-300)))
            for first_column in range(0, v.size, columns):
                block = slice(first_column, first_column + columns)
                turns = (np.abs(u) + abs(v[first_column])) * half
                summed = int(np.searchsorted(turns, FEW_TURNS))
                if summed:
                    total[:summed, block] += self._summed(u[:summed], v[block], centre, half)
                if summed < u.size:
                    total[summed:, block] += self._integrated(
                        u[summed:], v[block], centre, half, sign
                    )
            ends = self._log_density(centre + half * np.array([-1.0, 1.0]))
            top = half * math.exp(float(np.max(ends)))
            size += 4 * top * (4 + (abs(centre) + half) * np.abs(z.imag)) + DEGREE**2 * top
        return total, 8 * ULP * (size + abs(self._log_moment)) + self.missed

    def _log_density(self, y: Array) -> Array:
        # e^y - 1 + q without cancellation
        log_hit_term = np.log(np.expm1(y) + self._rate)
        return self._log_scale - 1.5 * log_hit_term + (self._power + 1) * y

    def _summed(self, u: Array, v: Array, centre: float, half: float) -> Complex:
        x, w = legendre(POINTS)
        y = centre + half * x
        weight = half * w * np.exp(self._log_density(y))
        return ordered_product(phases(np.outer(u, y)), phases(np.outer(v, y)) * weight)

    def _integrated(self, u: Array, v: Array, centre: float, half: float, sign: float) -> Complex:
        x, w = legendre(DEGREE)
        density = half * np.exp(self._log_density(centre + half * x))
        k = np.arange(DEGREE)
        terms = (2 * k + 1) * ordered_dot(legvander(x, DEGREE - 1).T, w * density)
        angle = np.add.outer(u, v)
        turn = np.abs(angle) * half
        even, odd = np.empty(turn.shape), np.empty(turn.shape)
        rows = max(1, BLOCK // max(turn.shape[1], 1))
        for first_row in range(0, turn.shape[0], rows):
            block = slice(first_row, first_row + rows)
            even[block], odd[block] = _series_of_bessel(terms.tolist(), turn[block])
        result: Complex = (even + 1j * sign * odd) * np.multiply.outer(
            phases(u * centre), phases(v * centre)
        )
        return result

    def _ellipses(self) -> tuple[Array, Array]:
        """Return radii of ellipses, and the largest log-density on those of each panel."""
        rho = np.array([1.3, 1.6, 1.8, 2.0, 2.3, 2.6, 2.9, 3.2, 3.6, 4.0, 4.4, 4.8, 5.4, 7.0, 10.0])
        a = np.multiply.outer(self._half, (rho + 1 / rho) / 2)
        b = np.multiply.outer(self._half, (rho - 1 / rho) / 2)
        low, high = self._centre[:, None] - a, self._centre[:, None] + a
        # |e^y - 1 + q| >= e^Re y cos b - 1 + q
        hit_term = (
            np.expm1(low) + self._rate - 2 * np.exp(low) * np.sin(np.minimum(b, 3.0) / 2) ** 2
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            size = -1.5 * np.log(np.where((hit_term > 0) & (b < 1.5), hit_term, np.nan))
        power = self._power + 1
        size = self._log_scale + size + power * (high if power > 0 else low)
        return rho, np.where(np.isnan(size), np.inf, size)

    def _interpolation_error(self) -> Array:
        # int |F - polynomial| <= 4 half * 2 M rho^{1-n} / (rho - 1)
        rho, size = self._ellipses()
        size = np.min(size - (DEGREE - 1) * np.log(rho) - np.log(rho - 1), axis=1)
        result: Array = 8 * self._half * np.exp(np.minimum(size, 700.0))
        return result

    def _sum_error(self) -> Array:
        # 64/15 half M e^{turns (rho - 1/rho) / 2} rho^{2-2n} / (1 - rho^-2)
        rho, size = self._ellipses()
        turns = FEW_TURNS * 1.5 * (rho - 1 / rho) / 2
        size = size + turns - 2 * (POINTS - 1) * np.log(rho) - np.log1p(-(rho**-2))
        result: Array = 64 / 15 * self._half * np.exp(np.minimum(np.min(size, axis=1), 700.0))
        return result
