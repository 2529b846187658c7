"""Cumulants of many different Poisson-sampled Gaussians on one grid of points, as one product.

Release i adds N(0, 1 / mu_i^2) to a sum of sensitivity 1 and samples a record at ``rate_i``; the
odds are o_i = rate_i / (1 - rate_i).  Its likelihood ratio is r_i = (1 - rate_i) (1 + e^Y), where
Y = mu_i X - mu_i^2 / 2 + ln o_i is N(m_i, mu_i^2) without the record, m_i = ln o_i - mu_i^2 / 2.
The cumulant K_i(z) = ln E e^{zL} of its privacy loss L is a moment of r_i, at the power p = z + 1
(the record is removed) or p = -z (it is added):

    e^{K_i(z)} = (1 - rate_i)^p G_i(p),    G_i(p) = int n(y; m_i, mu_i^2) (1 + e^y)^p dy.

The factor (1 + e^y)^p is the same for all releases, so that on shared points y_k of the trapezoid
rule all G_i(p_j) are one product of matrices, ``weight[i, k] power[j, k]``.

A contour asks for K on a line Re z = a, at a + i u_j.  At such powers the integrand oscillates;
on the shifted line Im y = ``height`` it falls with the frequency u instead.

Proof, with all bounds on errors: `docs/proofs/schedules.md`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accountant.amplification.sampled_gaussian.sampled_gaussian_cgf import SampledGaussian
from accountant.numerics import Array, Complex
from accountant.numerics.ordered_sums import ordered_dot
from accountant.numerics.quadrature import MAX_POINTS
from accountant.numerics.rounding import MAX_EXPONENT, ULP

Index = NDArray[np.intp]
# The grid ends where a normal density of 9.8 deviations does: e^{-9.8^2 / 2} / 2 is 7e-22.
DEVIATIONS = 9.8
LOG_LEFT_OUT = -48.0  # ln of the share of G that may lie beyond an end of the grid, e^-48 = 1e-21
LOG_QUADRATURE_ERROR = -37.0  # ln of what the trapezoid rule may miss, over G at Re p
QUADRATURE_ERROR = 2e-16  # e^-37 and what lies beyond the ends, over G at Re p
# ln of how much larger the terms of a sum, and with them its round-off, may be on a shifted line
MAX_LOG_GROWTH = 1.2
EDGE_HEIGHT = 3.0  # of the edge of a strip
# Heights of lines on which transforms are bounded: the highest, in mu, and shares of it.
HIGHEST_BOUND_LINE, HEIGHT_SHARES = 8.0, 2.0 ** -np.arange(0.0, 14.0, 0.5)
SAMPLE = 48  # releases by which the best of these heights is chosen
STEP_BITS = 12  # binary digits of the distance of points, so that its multiples are exact floats
BLOCK_SIZE = 2**20  # entries of a matrix that are in memory together: 8 MB
# The most different releases that are treated one by one, which takes about a millisecond each.  Of
# more of them, cumulants at real orders are bounded by those of corners (see `corners`).
MAX_SEPARATE_LOSSES = 500
# Cells to an octave of mu, and to a factor e of the odds: more cells bring the corners nearer to
# the releases, so that the bound is closer, and leave more releases to compute.
CORNERS = 16
MATRIX_SHARE = 0.4  # of the time of a product, where a matrix product makes it
PRODUCT_TERMS = 128  # terms that `products` adds at a time, so that they stay in the cache


class ContourValues(NamedTuple):
    """What a contour asks for of all releases together, with bounds on errors."""

    cumulant: float  # K(a)
    cumulant_error: float
    ratio: Complex  # e^{K(z) - K(a)} at each node z
    ratio_error: Array


class TiltedLaws(NamedTuple):
    """The laws with the masses ``n(y) (1 + e^y)^p / G`` on shared points, one for each release.

    Matrices have a row for each release and a column for each point, vectors an entry for each
    release.
    """

    log_weight: Array  # logarithms of the masses, a matrix
    log_mass: Array  # ln G
    ulps: Array  # of the sum of a law's masses, and of ln G
    mean_log_base: Array  # the mean of ln(1 + e^y)


@dataclass(frozen=True, slots=True)
class SimilarSampledGaussians:
    """Sampled Gaussians of one direction whose mu and odds are alike, so that they share a grid.

    Methods take ``counts``, how often each release occurs.  ``record_added``: the record is only
    in the second data set, p = -z; else p = z + 1.
    """

    mu: Array
    log_odds: Array
    record_added: bool

    @property
    def mean(self) -> Array:
        """The means m of Y without the record."""
        return self.log_odds - self.mu * self.mu / 2

    def powers(self, a: Array | float) -> Any:
        """Return the real part of p at real parts ``a`` of z."""
        return -a if self.record_added else a + 1

    def grid(self, powers: Array, frequency: float) -> tuple[Array, float, float] | None:
        """Return points, their distance and the height of their line; None if they are too many.

        ``powers`` are the real parts of p, and ``frequency`` is the largest imaginary part.
        """
        return shared_grid(self.mu, self.log_odds, powers, frequency)

    def cgf(self, a: Array, counts: Array) -> tuple[Array, Array]:
        """Return ``sum counts K(a)`` at each real ``a >= 0``, and a bound on its error.

        One order alone is that of a contour, and as exact as floats are.  Of many orders, which
        only choose a contour and bound its aliases, bounds by corners are enough.
        """
        if (
            a.size == 1
            and (contour := self.contour(a.reshape(1, 1).astype(complex), counts)) is not None
        ):
            return np.full(a.shape, contour.cumulant), np.full(a.shape, contour.cumulant_error)
        corners, weights, _ = self.corners(counts)
        value, error = np.empty(a.shape), np.empty(a.shape)
        # Orders within a factor of 4 share one grid.
        magnitude = np.ceil(np.log2(np.maximum(a, 1.0)) / 2)
        for common in np.unique(magnitude):
            at = magnitude == common
            bounds = corners.log_moments(a[at], weights) or corners.greatest_bound(a[at], weights)
            value[at], error[at] = bounds
        # A cumulant lies between 0 and that of its corner: the middle of the two, and half of it.
        return (value, error) if corners is self else ((value + error) / 2, (value + error) / 2)

    def corners(self, counts: Array) -> tuple[SimilarSampledGaussians, Array, Index]:
        """Return fewer releases with larger cumulants, their counts, and whose corner is which.

        A cumulant grows with mu and with the rate, so that the upper right corner of a cell in
        (ln mu, ln odds) bounds those of all releases in the cell.
        """
        if self.mu.size <= MAX_SEPARATE_LOSSES:
            return self, counts, np.arange(self.mu.size)
        # Both indices of a cell are packed into one whole number, which `np.unique` sorts; that of
        # the odds is counted from its least value, and below 2^20.
        steps = np.ceil(CORNERS * np.log2(self.mu)), np.ceil(CORNERS * self.log_odds)
        base = float(np.min(steps[1]))
        key, corner_index = np.unique(steps[0] * 2**20 + (steps[1] - base), return_inverse=True)
        mu_step = np.floor(key / 2**20)
        # 1e-12 is above the round-off of the logarithms and powers.
        above = SimilarSampledGaussians(
            2.0 ** (mu_step / CORNERS) * (1 + 1e-12),
            (key - mu_step * 2**20 + base) / CORNERS + 1e-12 * abs(base),
            self.record_added,
        )
        corner_counts: Array = np.bincount(corner_index, counts).astype(float)
        return above, corner_counts, corner_index

    def greatest_bound(self, a: Array, counts: Array) -> tuple[Array, Array]:
        """Return ``sum counts K(a)`` and its error, by the greatest mu and rate of all releases.

        The sum lies between 0 and that bound: both results are half of it.
        """
        rate = float(1 / (1 + np.exp(-np.max(self.log_odds)))) * (1 + 4 * ULP)
        worst = SampledGaussian(float(np.max(self.mu)), min(rate, 1.0), self.record_added)
        value, error = worst.cgf(a)
        half = float(np.sum(counts)) * (value + error) / 2
        return half, half

    def quadrature_terms(self, frequency: float) -> float:
        """Return what a node of a contour up to ``frequency`` takes, in products of 2 ns.

        The real part of the contour is not known when this is asked; 10 stands for it.  A product
        within a matrix product takes 0.85 ns, two fifths of one by itself.
        """
        grid = self.grid(np.array([self.powers(10.0)], dtype=float), frequency)
        points = MAX_POINTS if grid is None else grid[0].size
        return points * (1 + MATRIX_SHARE * self.mu.size)

    def log_moments(self, a: Array, counts: Array) -> tuple[Array, Array] | None:
        """Return ``sum counts K(a)`` at each real ``a``, and a bound on its error.

        None where the grid is too long, or (1 + e^y)^p too large for a float.
        """
        powers = self.powers(a)
        grid = self.grid(powers, 0.0)
        if grid is None:
            return None
        y, step, _ = grid
        log_base = np.logaddexp(0.0, y)  # ln(1 + e^y)
        if np.max(np.abs(powers)) * log_base[-1] > MAX_EXPONENT:
            return None
        power = np.exp(powers[:, None] * log_base)
        log_odds_factor = np.logaddexp(0.0, self.log_odds)  # -ln(1 - rate)
        total = -powers * float(ordered_dot(log_odds_factor, counts))
        farthest = float(np.max(np.abs(y[[0, -1], None] - self.mean) / self.mu))
        for block in blocks_of(self.mu.size, y.size):
            mu = self.mu[block, None]
            deviation = (y - self.mean[block, None]) / mu
            weight = np.exp(-deviation * deviation / 2) * (step / math.sqrt(2 * math.pi) / mu)
            total += np.einsum("i,ia->a", counts[block], np.log(products(weight, power)))
        # A term is inexact by ulps of its exponent, |p| ln(1 + e^y) - deviation^2 / 2.
        exponent = farthest**2 / 2 + np.abs(powers) * log_base[-1]
        member_error = QUADRATURE_ERROR + ULP * (y.size + 16 + 4 * exponent)
        error = float(np.sum(counts)) * member_error
        error += 4 * ULP * np.abs(powers) * float(ordered_dot(log_odds_factor, counts))
        return total, error

    def contour(self, z: Complex, counts: Array) -> ContourValues | None:
        """Return ``K(a)`` and ``e^{K(z) - K(a)}`` at nodes of Re z = a; None if the grid is long.

        K is the sum over all releases, and ``z[r, c] = a + i (rows[r] + columns[c])``, so that the
        phases e^{iu ln(1 + e^y)} are products of one for the row and one for the column.  The last
        node has the largest frequency.
        """
        a, rows, columns = z[0, 0].real, z[:, 0].imag, z[0].imag
        # e^{i u ln r} has the phase +u where the record is removed, -u where it is added.
        power, direction = float(self.powers(a)), -1.0 if self.record_added else 1.0
        grid = self.grid(np.array([power]), z[-1, -1].imag)
        if grid is None:
            return None
        y, step, height = grid
        log_base = np.logaddexp(0.0, y)
        log_base_on_line = direction * log_one_plus_exp(y, direction * height)
        row_phases = np.exp(1j * np.outer(rows, log_base_on_line))
        column_phases = np.exp(1j * np.outer(columns, log_base_on_line))
        log_odds_factor = np.logaddexp(0.0, self.log_odds)  # -ln(1 - rate)
        cumulant = -power * float(ordered_dot(log_odds_factor, counts))
        product = np.exp(-1j * direction * float(ordered_dot(log_odds_factor, counts)) * z.imag)
        # The round-off of the product is at most ULP (fixed + growing u).
        fixed = growing = 0.0
        for block in blocks_of(self.mu.size, max(y.size, columns.size)):
            laws = self.tilted(block, y, step, log_base, power)
            ulps, mean_log_base, count = laws.ulps, laws.mean_log_base, counts[block]
            cumulant += float(ordered_dot(laws.log_mass, count))
            if not height:
                factor: Any = np.exp(laws.log_weight)
            else:
                factor, angle_ulps = self._on_line(
                    block, y, laws.log_weight, power, direction * height
                )
                # Terms on a shifted line are larger, and so is their round-off.
                term_ulps, mean_log_base = self._term_ulps(
                    block, y, log_base, power, np.abs(factor)
                )
                ulps = ulps + term_ulps + angle_ulps
            fixed += float(ordered_dot(ulps, count))
            # The phase u ln(1 + e^y) errs by two ulps of itself, and by those of m in y.
            ulps_per_frequency = (2 + 4 * np.abs(self.mean[block])) * mean_log_base
            ulps_per_frequency = ulps_per_frequency + 2 * log_odds_factor[block]
            growing += float(ordered_dot(ulps_per_frequency, count))
            for row in range(rows.size):
                product[row] *= product_of_powers(
                    complex_products(factor, row_phases[row] * column_phases), count
                )
        fixed += 4 * QUADRATURE_ERROR / ULP * float(np.sum(counts))
        cumulant_ulps = fixed + 4 * abs(power) * float(ordered_dot(log_odds_factor, counts))
        ratio_ulps = fixed + growing * np.abs(z.imag)
        return ContourValues(cumulant, ULP * cumulant_ulps, product, ULP * ratio_ulps)

    def _on_line(
        self, block: slice, y: Array, log_weight: Array, power: float, height: float
    ) -> tuple[Complex, Array]:
        """Return the tilted masses continued to ``y + i height``, and the ulps of this step.

        Far from the mean a mass may be too small for a float where its continuation is not, so
        their logarithms are added.
        """
        # n: -(y + ih - m)^2 / 2 mu^2 = (-(y - m)^2 - 2ih (y - m) + h^2) / 2 mu^2
        mu = self.mu[block, None]
        log_change = power * (log_one_plus_exp(y, height) - np.logaddexp(0.0, y))
        angle = -height * (y - self.mean[block, None]) / (mu * mu) + log_change.imag
        shift = height**2 / (2 * mu * mu)
        factor = np.exp(log_weight + shift + log_change.real + 1j * angle)
        sizes = np.abs(angle) + np.abs(log_change) + np.abs(log_weight) + shift
        return factor, 8 + 2 * np.einsum("ik,ik->i", np.abs(factor), sizes)

    def log_cf_bound(self, a: float, counts: Array, u: Array) -> Array:
        """Return a bound on ``sum counts (Re K(a + iv) - K(a))`` for every ``v >= u``.

        On the line Im y = h of any height h the transform is at most the sum of the sizes of all
        terms, which are e^{-v arg(1 + e^{y + ih})} times those of frequency 0.
        """
        power = float(self.powers(a))
        grid = self.grid(np.array([power]), 0.0)
        if grid is None:
            return np.zeros(u.shape)
        y, step, _ = grid
        log_base, min_mu = np.logaddexp(0.0, y), float(np.min(self.mu))
        max_height = EDGE_HEIGHT if power >= 0 else EDGE_HEIGHT / 2
        heights = min(HIGHEST_BOUND_LINE * min_mu, 0.8 * max_height) * HEIGHT_SHARES
        # The rule errs by 4 M / e^{2 pi d / step}, M on the edges of a strip of half-width d.
        half_widths = np.minimum(min_mu * np.array([0.5, 1.0, 2.0, 4.0, 6.0, 8.7]), max_height)
        half_widths = np.minimum(half_widths, (max_height - heights)[:, None])
        edges = heights[:, None] + half_widths
        log_missed = edges**2 / (2 * min_mu**2) - 2 * math.pi * half_widths / step + math.log(8)
        log_missed += _log_growth(edges, power, float(np.max(self.log_odds)))
        missed = np.exp(np.min(log_missed, axis=1)) + QUADRATURE_ERROR
        logs = [log_one_plus_exp(y, height) for height in heights.tolist()]
        log_growth = power * np.array([log.real - log_base for log in logs])
        # A height at which a term grows beyond floats bounds nothing: its sum counts as 1.
        missed = np.where(np.max(log_growth, axis=1) > MAX_EXPONENT, 1.0, missed)
        growth = np.exp(np.minimum(log_growth, MAX_EXPONENT))
        angle = np.array([log.imag for log in logs])

        def log_sizes(members: Any, index: Any, frequency: Array) -> Array:
            """Return the sum over members, at pairs of a height and a frequency."""
            columns = growth[index] * np.exp(-frequency[:, None] * angle[index])
            laws = self.tilted(members, y, step, log_base, power)
            size = products(np.exp(laws.log_weight), columns)
            size *= np.exp(np.square(heights[index] / self.mu[members, None]) / 2)
            size = size * (1 + ULP * (64 + laws.ulps[:, None])) + missed[index]
            log_size: Array = np.log(np.minimum(size, 1.0))
            total_log_size: Array = np.einsum("i,ij->j", counts[members], log_size)
            return total_log_size

        # A few members tell which height is best at each frequency.
        few = np.unique(np.linspace(0, self.mu.size - 1, SAMPLE).astype(np.intp))
        pairs = np.repeat(np.arange(heights.size), u.size), np.tile(u, heights.size)
        best: Any = np.argmin(log_sizes(few, *pairs).reshape(heights.size, u.size), axis=0)
        total = np.zeros(u.shape)
        for block in blocks_of(self.mu.size, y.size):
            total += log_sizes(block, best, u)
        return total

    def tilted(
        self, block: Any, y: Array, step: float, log_base: Array, power: float
    ) -> TiltedLaws:
        """Return the tilted laws of a block of releases on the points ``y``."""
        exponent, _ = self._exponents(block, y, log_base, power)
        top = np.max(exponent, axis=1, keepdims=True)
        total = np.sum(np.exp(exponent - top), axis=1)
        log_weight = exponent - top - np.log(total)[:, None]
        log_mass = top[:, 0] + np.log(total * (step / math.sqrt(2 * math.pi)) / self.mu[block])
        weight = np.exp(log_weight)
        ulps, mean_log_base = self._term_ulps(block, y, log_base, power, weight)
        # The logarithm of the total is subtracted from each exponent.
        ulps += 8 + np.einsum("ik,ik->i", weight, np.abs(log_weight))
        return TiltedLaws(log_weight, log_mass, ulps, mean_log_base)

    def _exponents(
        self, block: Any, y: Array, log_base: Array, power: float
    ) -> tuple[Array, Array]:
        """Return ``p ln(1 + e^y) - (y - m)^2 / 2 mu^2``, and ``(y - m)^2 / mu^2``."""
        square = (y - self.mean[block, None]) / self.mu[block, None]
        square *= square
        return power * log_base - square / 2, square

    def _term_ulps(
        self, block: Any, y: Array, log_base: Array, power: float, terms: Array
    ) -> tuple[Array, Array]:
        """Return the ulps of the sum of ``terms``, and ``sum terms ln(1 + e^y)``, for each release.

        Terms are sizes of tilted masses, a row for each release and a column for each point.
        """
        exponent, square = self._exponents(block, y, log_base, power)
        top = np.abs(np.max(exponent, axis=1))
        spread = np.einsum("ik,ik->i", terms, np.abs(exponent) + square)
        mean_log_base = ordered_dot(terms, log_base)
        sum_ulps = (y.size / 16 + 16 + top) * np.sum(terms, axis=1) + 2 * spread
        # m is inexact by two ulps, and |d ln G / dm| <= |p| E ln(1 + e^Y).
        sum_ulps += 4 * (abs(power) + 1) * np.abs(self.mean[block]) * mean_log_base
        return sum_ulps, mean_log_base


def shared_grid(
    mu: Array, log_odds: Array, powers: Array, frequency: float
) -> tuple[Array, float, float] | None:
    """Return points for all releases, their distance and the height of their line.

    ``powers``: the real parts of p, all of one sign; ``frequency``: the largest imaginary part.
    None where more than `MAX_POINTS` were needed.
    """
    low, high = _range(mu, log_odds, powers)
    step, height = _step(
        float(np.min(mu)), float(np.min(powers)), frequency, float(np.max(log_odds))
    )
    if not high - low <= MAX_POINTS * step:
        return None
    # The step is rounded down to few bits, so that points, its multiples, are exact.
    bits = STEP_BITS - math.frexp(step)[1]
    step = math.ldexp(math.floor(math.ldexp(step, bits)), -bits)
    points: Array = step * np.arange(math.floor(low / step), math.ceil(high / step) + 1.0)
    return points, step, height


def log_one_plus_exp(y: Array, height: Any) -> Any:
    """Return ``ln(1 + e^{y + i height})``, real on the real line."""
    if not np.any(height):
        return np.logaddexp(0.0, y)
    # |1 + e^w|^2 = (1 + e^y)^2 - 4 e^y sin(h/2)^2, and s = e^y / (1 + e^y)
    share = np.exp(np.minimum(y, 0.0)) / (1 + np.exp(-np.abs(y)))
    log_shrinkage = np.log1p(-4 * share * (1 - share) * np.sin(height / 2) ** 2) / 2
    small = np.exp(-np.abs(y))
    angle = np.where(
        y > 0,
        np.arctan2(np.sin(height), small + np.cos(height)),
        np.arctan2(small * np.sin(height), 1 + small * np.cos(height)),
    )
    return np.logaddexp(0.0, y) + log_shrinkage + 1j * angle


def _range(mu: Array, log_odds: Array, powers: Array) -> tuple[float, float]:
    """Return ends beyond which at most e^-48 of the integrand of any release lies."""
    mean, max_mu = log_odds - mu * mu / 2, float(np.max(mu))
    lowest_mean, highest_mean = float(np.min(mean)), float(np.max(mean))
    if np.min(powers) < 0:
        # (1 + e^y)^-a moves mass to the left, by at most a mu^2; and G >= (1 + o)^-a.
        a = float(np.max(-powers))
        nats = a * float(np.logaddexp(0.0, np.max(log_odds)))
        shift = min(max_mu * a, math.sqrt(DEVIATIONS**2 + 2 * nats) - DEVIATIONS)
        return lowest_mean - max_mu * (DEVIATIONS + shift), highest_mean + max_mu * DEVIATIONS
    return lowest_mean - max_mu * DEVIATIONS, right_end(
        highest_mean, max_mu, float(np.max(powers)), float(np.min(log_odds))
    )


def right_end(mean: float, mu: float, power: float, min_log_odds: float) -> float:
    """Return an end beyond which ``n(y) (1 + e^y)^p``, p > 0, has at most e^-48 of G.

    On a cell of width mu / 4 the normal density falls and the power grows, which bounds the
    integral over it.  Beyond all cells (1 + e^y)^p <= (1 + e^-end)^p e^{py}, and n(y) e^{py} is a
    shifted normal density.  The end of all cells is always far enough.
    """
    width = mu / 4
    if mu * power > MAX_POINTS:
        return math.inf
    cell_starts = mean + mu + width * np.arange(math.ceil(4 * (mu * power + DEVIATIONS + 1)))
    log_cells = (
        -(((cell_starts - mean) / mu) ** 2) / 2
        - math.log(4)
        + power * np.logaddexp(0.0, cell_starts + width)
    )
    end = float(cell_starts[-1] + width)
    beyond = power * (mean + float(np.logaddexp(0.0, -end))) + (mu * power) ** 2 / 2
    beyond += LOG_LEFT_OUT
    log_tail = np.logaddexp.accumulate(np.append(beyond, log_cells[::-1]))[::-1]
    min_log_mass = power * float(np.logaddexp(0.0, min_log_odds))  # G >= (1 + o)^p
    is_negligible = log_tail <= min_log_mass + LOG_LEFT_OUT
    return float(cell_starts[np.argmax(is_negligible[:-1])]) if is_negligible[:-1].any() else end


def _step(mu: float, power: float, frequency: float, log_odds: float) -> tuple[float, float]:
    """Return the longest step of the trapezoid rule, and the height of the line that allows it.

    A step s errs by at most 4 M / (e^{2 pi d / s} - 1), where M bounds the integral of |f| on the
    edges of a strip of half-width d around the line.  With f = n (1 + e^y)^{p + iu},

        |f(y + ih)| <= f(y) e^{h^2 / 2 mu^2} e^{u |h|},   times cos(h / 2)^p where p < 0,

    and without e^{u |h|} on the side where the phase falls.  So the strip lies on both sides of
    the real line, or between it and a line of twice the height.
    """
    # Below pi, where 1 + e^{y + ih} has a zero; for p < 0 below pi / 2, as `_log_growth` demands.
    max_height = EDGE_HEIGHT if power >= 0 else EDGE_HEIGHT / 2
    # Half-widths d that are tried, in units of mu: around the real line, and of shifted strips.
    around = np.minimum(mu * np.array([4.0, 6.0, 8.7]), max_height)
    log_size_around = around**2 / (2 * mu * mu) + frequency * around
    log_size_around = log_size_around + _log_growth(around, power, log_odds)
    shifted = np.minimum(mu * np.array([0.5, 1.0, 1.5]), max_height / 2)
    log_growth = shifted**2 / (2 * mu * mu) + _log_growth(shifted, power, log_odds)
    log_size_above = (2 * shifted) ** 2 / (2 * mu * mu) + _log_growth(2 * shifted, power, log_odds)
    half_width = np.append(around, shifted)
    log_size = np.append(log_size_around, log_size_above)
    # The error is e^{LOG_QUADRATURE_ERROR} where 2 pi / s is this rate.
    rate = (log_size - LOG_QUADRATURE_ERROR + math.log(4)) / half_width
    rate[np.append(0 * around, log_growth) > MAX_LOG_GROWTH] = math.inf
    best = int(np.argmin(rate))
    return 2 * math.pi / float(rate[best]), float(np.append(0 * around, shifted)[best])


def _log_growth(height: Array, power: float, log_odds: float) -> Array:
    """Return a bound on ``p ln |1 + e^{y + ih}|``, less its value at h = 0, or less ``ln G``."""
    if power >= 0:
        return np.zeros(height.shape)
    # |1 + e^{y + ih}| >= cos(h / 2) (1 + e^y); and it is >= 1 for h <= pi / 2, G >= (1 + o)^p
    growth: Array = np.minimum(
        power * np.log(np.cos(height / 2)), -power * float(np.logaddexp(0.0, log_odds))
    )
    return growth


def products(left: Array, right: Array) -> Array:
    """Return ``sum_k left[i, k] right[j, k]``, in parts that stay in the cache."""
    total = np.zeros((left.shape[0], right.shape[0]))
    for start in range(0, left.shape[1], PRODUCT_TERMS):
        part = slice(start, start + PRODUCT_TERMS)
        total += np.einsum("ik,jk->ij", left[:, part], right[:, part])
    return total


def complex_products(left: Any, right: Any) -> Any:
    """Return `products` of matrices that may be complex, by real and imaginary parts."""
    if not np.iscomplexobj(right):
        return products(left, right)
    real, imag = (np.ascontiguousarray(part) for part in (right.real, right.imag))
    result = np.empty((left.shape[0], right.shape[0]), dtype=complex)
    if np.iscomplexobj(left):
        left_real, left_imag = (np.ascontiguousarray(part) for part in (left.real, left.imag))
        result.real = products(left_real, real) - products(left_imag, imag)
        result.imag = products(left_real, imag) + products(left_imag, real)
    else:
        result.real, result.imag = products(left, real), products(left, imag)
    return result


def blocks_of(members: int, width: int) -> list[slice]:
    """Return slices of releases whose matrices of this width have at most `BLOCK_SIZE` entries."""
    step = max(1, BLOCK_SIZE // width)
    return [slice(start, start + step) for start in range(0, members, step)]


def product_of_powers(ratio: Complex, counts: Array) -> Complex:
    """Return ``prod_i ratio[i]^counts[i]``."""
    is_repeated = counts != 1
    if not is_repeated.any():
        plain: Complex = np.multiply.reduce(ratio, axis=0)
        return plain
    product: Complex = np.multiply.reduce(ratio[~is_repeated], axis=0)
    # 1e-300 stands for 0, whose powers are 0 too, so that no logarithm is infinite.
    log_ratio = np.log(np.where(ratio[is_repeated] == 0, 1e-300, ratio[is_repeated]))
    result: Complex = product * np.exp(np.einsum("i,i...->...", counts[is_repeated], log_ratio))
    return result
