"""Filon's rule for the characteristic function of a sampled loss at high frequencies.

The law is that of y = ln r with r = 1 - q + q e^l, q the sampling rate, where the log-ratio l has
a few atoms and between two ends the density scale e^{-l/2} (`RatioLaw`).  Tilted by r^p, y has the
density

    F(y) = scale sqrt(q) (e^y - 1 + q)^{-3/2} e^{(p + 1) y}    between its ends,

and E r^{p + iu} = int F(y) e^{iuy} dy + the atoms' terms.  A quadrature at fixed points needs more
points the larger u is.  Filon's rule replaces F on each panel by its polynomial through Legendre's
nodes, sum_k c_k P_k, of which the Fourier integral is known for every u (w = u half-width):

    int_-1^1 P_k(s) e^{iws} ds = 2 i^k j_k(w),    j_k the spherical Bessel functions.

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

# Terms of the polynomial on a panel: with more of them it misses less of F, and takes longer at
# every frequency.
TERMS = 28
# From these radians w = u half-width on, the recurrence of j_k, k < TERMS, is stable upwards.  At
# smaller frequencies, and up to half as much again, a panel is summed at `POINTS` points.
STABLE_RADIANS = 2.0 * TERMS
POINTS = 96
PANEL = 0.4  # largest half-width of a panel, in l; wider panels are fewer, and miss more
CACHE_SIZE = 8192  # most angles that are worked on together: 64 kB
# Ellipses around a panel with foci at its ends: sums of their semi-axes, in half-widths.
RADII = np.array([1.3, 1.6, 1.8, 2.0, 2.3, 2.6, 2.9, 3.2, 3.6, 4.0, 4.4, 4.8, 5.4, 7.0, 10.0])


def _series_of_bessel(terms: list[float], turn: Array) -> tuple[Array, Array]:
    """Return the sums over even and odd k of ``+-terms[k] j_k(turn)``, spherical Bessel functions.

    The signs are those of i^k: +, +, -, -.  By j_{k+1} = (2k + 1) / w j_k - j_{k-1}, which is
    stable upwards for k < w; in place, as the arrays are read many times.
    """
    inverse = 1 / turn
    previous, current = np.cos(turn) * inverse, np.sin(turn) * inverse  # j_-1 and j_0
    sums, buffer = (np.zeros(turn.shape), np.zeros(turn.shape)), np.empty(turn.shape)
    for k, term in enumerate(terms):
        parity_sum = sums[k % 2]
        parity_sum += np.multiply(current, term if k % 4 < 2 else -term, out=buffer)
        np.multiply(inverse, 2 * k + 1, out=buffer)
        buffer *= current
        buffer -= previous
        previous, current, buffer = current, buffer, previous
    return sums


class FilonRule:
    """Panels for one law and one real power p; ``missed`` bounds their error over E r^p.

    ``log_moment`` is ln E r^p: everything is divided by it.
    """

    def __init__(self, law: RatioLaw, rate: float, power: float, log_moment: float) -> None:
        self._law, self._rate = law, rate
        self._power, self._log_moment = power, log_moment
        self._log_scale = math.log(law.scale) + math.log(rate) / 2 - log_moment
        panels = max(1, math.ceil((law.high - law.low) / 2 / PANEL))
        edges = np.linspace(law.low, law.high, panels + 1)
        # Where e^l is small, y hardly differs from ln(1 - q), and a difference of two y would lose
        # digits.  So a panel starts at y_0, and its points are at distances d >= 0 from there:
        # e^y - 1 + q = q e^l_0 + e^{y_0} (e^d - 1), a sum of positive numbers.
        start = log_mixture(edges[:-1], rate)
        self._first_r, self._first_sampled = np.exp(start), rate * np.exp(edges[:-1])
        growth = self._first_sampled / self._first_r * np.expm1(np.diff(edges))
        self._half = np.log1p(growth) / 2
        self._centre = start + self._half
        # Bounds on the errors in each panel; rho are the `RADII`, M the largest |F| on an ellipse.
        log_sizes, terms = self._log_sizes(), TERMS - 1
        # Interpolation: 4 half E, where the best polynomial of n terms errs by
        # E <= 2 M rho^{1-n} / (rho - 1).
        log_error = np.min(log_sizes - terms * np.log(RADII) - np.log(RADII - 1), axis=1)
        interpolation_error = 8 * self._half * np.exp(np.minimum(log_error, 700.0))
        # `_summed`, up to 1.5 times `STABLE_RADIANS`:
        # 64/15 half M e^{turns (rho - 1/rho) / 2} rho^{2-2n} / (1 - rho^-2).
        turns = STABLE_RADIANS * 1.5 * (RADII - 1 / RADII) / 2
        log_error = log_sizes + turns - 2 * (POINTS - 1) * np.log(RADII) - np.log1p(-(RADII**-2))
        log_error = np.min(log_error, axis=1)
        sum_error = 64 / 15 * self._half * np.exp(np.minimum(log_error, 700.0))
        self.missed = float(np.sum(interpolation_error + sum_error))

    def ratio(self, z: Complex, sign: float) -> tuple[Complex, Array]:
        """Return ``E r^{p + iu sign} / E r^p`` at frequencies u = Im z, and its error.

        ``z`` are equidistant nodes of a contour: each frequency is that of its row plus that of
        its column, so that phases are outer products.
        """
        # ``size`` adds up the ulps of all terms, each times the term's size: of an atom a few and
        # those of its phase u y and exponent p y; of a panel those of its phase and the TERMS^2 of
        # the series, times the largest density.
        total, size = np.zeros(z.shape, dtype=complex), np.zeros(z.shape)
        u, v = z[:, 0].imag * sign, z[0].imag * sign
        for ratio, mass in self._law.atoms:
            if math.isinf(ratio) and self._rate == 1:  # The loss is infinite there.
                continue
            y = (
                math.log1p(-self._rate)
                if math.isinf(ratio)
                else float(log_mixture(np.array(ratio), self._rate))
            )
            weight = mass * math.exp(self._power * y - self._log_moment)
            total += weight * np.multiply.outer(phases(u * y), phases(v * y))
            size += weight * (4 + abs(y) * np.abs(z.imag) + abs(self._power * y))
        for panel, (centre, half) in enumerate(zip(self._centre, self._half, strict=True)):
            # Over a block of columns the angle grows by half of `STABLE_RADIANS` at most.  So rows
            # whose angle is stable in the first column take Filon's rule in all columns of the
            # block, and the others are summed at points.
            columns = max(
                1, math.floor(STABLE_RADIANS / 2 / max(abs(v[1 % v.size]) * half, 1e-300))
            )
            for first_column in range(0, v.size, columns):
                block = slice(first_column, first_column + columns)
                turns = (np.abs(u) + abs(v[first_column])) * half
                stable_row = int(np.searchsorted(turns, STABLE_RADIANS))
                if stable_row:
                    total[:stable_row, block] += self._summed(u[:stable_row], v[block], panel)
                if stable_row < u.size:
                    total[stable_row:, block] += self._integrated(
                        u[stable_row:], v[block], panel, sign
                    )
            # ln F is convex, so that F is largest at an end.
            ends = self._log_density(panel, np.array([-1.0, 1.0]))
            top = half * math.exp(float(np.max(ends)))
            size += 4 * top * (4 + (abs(centre) + half) * np.abs(z.imag)) + TERMS**2 * top
        return total, 8 * ULP * (size + abs(self._log_moment)) + self.missed

    def _log_density(self, panel: int, x: Array) -> Array:
        """Return ``ln F`` over the moment, at points x of a panel, which is [-1, 1]."""
        y = self._centre[panel] + self._half[panel] * x
        from_start = np.expm1(self._half[panel] * (1 + x))
        log_sampled = np.log(self._first_sampled[panel] + self._first_r[panel] * from_start)
        log_density: Array = self._log_scale - 1.5 * log_sampled + (self._power + 1) * y
        return log_density

    def _summed(self, u: Array, v: Array, panel: int) -> Complex:
        """Return ``int F(y) e^{i (u + v) y} dy`` over a panel by Gauss-Legendre points."""
        x, w = legendre(POINTS)
        y = self._centre[panel] + self._half[panel] * x
        weight = self._half[panel] * w * np.exp(self._log_density(panel, x))
        return ordered_product(phases(np.outer(u, y)), phases(np.outer(v, y)) * weight)

    def _integrated(self, u: Array, v: Array, panel: int, sign: float) -> Complex:
        """Return the same by Filon's rule; ``sign`` is that of the frequencies u + v."""
        centre, half = float(self._centre[panel]), float(self._half[panel])
        x, w = legendre(TERMS)
        density = half * np.exp(self._log_density(panel, x))
        k = np.arange(TERMS)
        # 2 c_k, as c_k = (2k + 1) / 2 int P_k F, and the integral is 2 i^k j_k
        terms = (2 * k + 1) * ordered_dot(legvander(x, TERMS - 1).T, w * density)
        angle = np.add.outer(u, v)
        turn = np.abs(angle) * half
        even, odd = np.empty(turn.shape), np.empty(turn.shape)
        rows = max(1, CACHE_SIZE // max(turn.shape[1], 1))
        for first_row in range(0, turn.shape[0], rows):
            block = slice(first_row, first_row + rows)
            even[block], odd[block] = _series_of_bessel(terms.tolist(), turn[block])
        result: Complex = (even + 1j * sign * odd) * np.multiply.outer(
            phases(u * centre), phases(v * centre)
        )
        return result

    def _log_sizes(self) -> Array:
        """Return bounds on ``ln |F|`` on the ellipses of `RADII` around each panel."""
        a = np.multiply.outer(self._half, (RADII + 1 / RADII) / 2)
        b = np.multiply.outer(self._half, (RADII - 1 / RADII) / 2)
        low, high = self._centre[:, None] - a, self._centre[:, None] + a
        # |e^y - 1 + q| >= e^{Re y} cos b - 1 + q, with cos b = 1 - 2 sin^2(b / 2)
        from_start = np.expm1(self._half[:, None] - a)
        height = 2 * np.exp(self._half[:, None] - a) * np.sin(np.minimum(b, 3.0) / 2) ** 2
        sampled = self._first_sampled[:, None] + self._first_r[:, None] * (from_start - height)
        with np.errstate(divide="ignore", invalid="ignore"):
            size = -1.5 * np.log(np.where((sampled > 0) & (b < 1.5), sampled, np.nan))
        power = self._power + 1
        size = self._log_scale + size + power * (high if power > 0 else low)
        return np.where(np.isnan(size), np.inf, size)
