"""The cumulants of many different sampled Gaussians: one grid for all of similar parameters.

With o = rate / (1 - rate) the ratio of the densities is r = (1 - rate) (1 + e^Y), and Y = mu X -
mu^2/2 + ln o is normal under Q.  Hence, p = z + 1 (record removed) or p = -z (added),

    E e^{zL} = E_Q r^p = (1 - rate)^p int n(y; m, mu^2) (1 + e^y)^p dy,   m = ln o - mu^2/2:

the power of ``1 + e^y`` is the same for all losses, and many integrals are one matrix product.
Proof: `docs/proofs/schedules.md`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accountant.amplification.sampled_gaussian.sampled_gaussian_cgf import SampledGaussian
from accountant.amplification.sampled_gaussian.schedule_grid import (
    MAX_GRID_POINTS,
    QUADRATURE_ERROR,
    log_one_plus_exp,
    shared_grid,
)
from accountant.numerics import Array, Complex
from accountant.numerics.ordered_sums import ordered_dot
from accountant.numerics.rounding import ULP

Index = NDArray[np.intp]
MAX_LOG_POWER = 600.0  # (1 + e^y)^p stays a float
BLOCK_SIZE = 2**20
MAX_EXACT_ORDERS = 500  # members; real orders of more are bounded by corners
CORNERS = 16  # in an octave of mu, and where the odds grow by e
PRODUCT_TERMS = 128  # of a matrix product at a time


@dataclass(frozen=True, slots=True)
class SimilarSampledGaussians:
    """Sampled Gaussians of one direction whose mu and odds are alike, with weights."""

    mu: Array
    log_odds: Array
    record_added: bool

    @property
    def mean(self) -> Array:
        """The mean of Y under Q."""
        return self.log_odds - self.mu * self.mu / 2

    def powers(self, a: Array | float) -> Any:
        """Return the real part of p."""
        return -a if self.record_added else a + 1

    def grid(self, powers: Array, frequency: float) -> tuple[Array, float, float] | None:
        """Return nodes, their distance and the height of their line; None out of reach."""
        return shared_grid(self.mu, self.log_odds, powers, frequency)

    def cgf(self, a: Array, counts: Array) -> tuple[Array, Array]:
        """Return ``sum counts K(a)`` at each real ``a >= 0``, and a bound on its error."""
        if (
            a.size == 1
            and (contour := self.contour(a.reshape(1, 1).astype(complex), counts)) is not None
        ):
            return np.full(a.shape, contour[0]), np.full(a.shape, contour[1])
        corners, weights, _ = self.corners(counts)
        value, error = np.empty(a.shape), np.empty(a.shape)
        # one grid for orders of similar size
        octaves = np.ceil(np.log2(np.maximum(a, 1.0)) / 2)
        for octave in np.unique(octaves):
            at = octaves == octave
            part = corners.log_moments(a[at], weights) or corners.greatest_bound(a[at], weights)
            value[at], error[at] = part
        # all cumulants of a cell are between 0 and that of its corner
        return (value, error) if corners is self else ((value + error) / 2, (value + error) / 2)

    def corners(self, counts: Array) -> tuple[SimilarSampledGaussians, Array, Index]:
        """Return few members above all, with the counts of those below, and who is below which.

        Both moments grow with mu and with the rate.
        """
        if self.mu.size <= MAX_EXACT_ORDERS:
            return self, counts, np.arange(self.mu.size)
        steps = np.ceil(CORNERS * np.log2(self.mu)), np.ceil(CORNERS * self.log_odds)
        base = float(np.min(steps[1]))
        key, corner_index = np.unique(steps[0] * 2**20 + (steps[1] - base), return_inverse=True)
        mu_step = np.floor(key / 2**20)
        above = SimilarSampledGaussians(
            2.0 ** (mu_step / CORNERS) * (1 + 1e-12),
            (key - mu_step * 2**20 + base) / CORNERS + 1e-12 * abs(base),
            self.record_added,
        )
        corner_counts: Array = np.bincount(corner_index, counts).astype(float)
        return above, corner_counts, corner_index

    def greatest_bound(self, a: Array, counts: Array) -> tuple[Array, Array]:
        """Return the middle between 0 and a bound by the greatest mu and rate, and its distance."""
        rate = float(1 / (1 + np.exp(-np.max(self.log_odds)))) * (1 + 4 * ULP)
        worst = SampledGaussian(float(np.max(self.mu)), min(rate, 1.0), self.record_added)
        value, error = worst.cgf(a)
        half = float(np.sum(counts)) * (value + error) / 2
        return half, half

    def quadrature_terms(self, frequency: float) -> float:
        """Return how many products of a matrix a node of a contour up to ``frequency`` takes."""
        grid = self.grid(np.array([self.powers(10.0)], dtype=float), frequency)
        points = MAX_GRID_POINTS if grid is None else grid[0].size
        return float(points * (1 + self.mu.size))

    def log_moments(self, a: Array, counts: Array) -> tuple[Array, Array] | None:
        """Return ``sum counts K(a)`` at each real ``a``, and a bound on its error; None too far."""
        powers = self.powers(a)
        grid = self.grid(powers, 0.0)
        if grid is None:
            return None
        y, step, _ = grid
        size = np.logaddexp(0.0, y)
        if np.max(np.abs(powers)) * size[-1] > MAX_LOG_POWER:
            return None
        power = np.exp(powers[:, None] * size)
        nats = np.logaddexp(0.0, self.log_odds)  # -ln(1 - rate)
        total = -powers * float(ordered_dot(nats, counts))
        furthest = float(np.max(np.abs(y[[0, -1], None] - self.mean) / self.mu))
        for part in _blocks(self.mu.size, y.size):
            mu = self.mu[part, None]
            t = (y - self.mean[part, None]) / mu
            weight = np.exp(-t * t / 2) * (step / math.sqrt(2 * math.pi) / mu)
            total += np.einsum("i,ia->a", counts[part], np.log(products(weight, power)))
        # every exponent is below t^2 / 2 + p size
        exponent = furthest**2 / 2 + np.abs(powers) * size[-1]
        member_error = QUADRATURE_ERROR + ULP * (y.size + 16 + 4 * exponent)
        error = float(np.sum(counts)) * member_error
        error += 4 * ULP * np.abs(powers) * float(ordered_dot(nats, counts))
        return total, error

    def contour(self, z: Complex, counts: Array) -> tuple[float, float, Complex, Array] | None:
        """Return ``K(a)``, its error, the product of ``E e^{zL} / E e^{aL}`` and its error."""
        a, rows, columns = z[0, 0].real, z[:, 0].imag, z[0].imag
        power, turn = float(self.powers(a)), -1.0 if self.record_added else 1.0
        grid = self.grid(np.array([power]), z[-1, -1].imag)
        if grid is None:
            return None
        y, step, raised = grid
        size, line = np.logaddexp(0.0, y), turn * log_one_plus_exp(y, turn * raised)
        row_phases = np.exp(1j * np.outer(rows, line))
        column_phases = np.exp(1j * np.outer(columns, line))
        nats = np.logaddexp(0.0, self.log_odds)
        height = -power * float(ordered_dot(nats, counts))
        product = np.exp(-1j * turn * float(ordered_dot(nats, counts)) * z.imag)
        fixed = growing = 0.0
        for part in _blocks(self.mu.size, max(y.size, columns.size)):
            weight, log_mass, mass_ulps, mean = self.tilted(part, y, step, size, power)
            count = counts[part]
            height += float(ordered_dot(log_mass, count))
            factor: Any = weight
            if raised:
                factor, extra = self._raised(part, y, weight, power, turn * raised)
                # terms on a raised line are larger, and so is their round-off
                above, mean = self._term_ulps(part, y, size, power, np.abs(factor))
                mass_ulps = mass_ulps + above + extra
            fixed += float(ordered_dot(mass_ulps, count))
            ulps_per_frequency = (2 + 4 * np.abs(self.mean[part])) * mean + 2 * nats[part]
            growing += float(ordered_dot(ulps_per_frequency, count))
            for row in range(rows.size):
                product[row] *= product_of_powers(
                    _products(factor, row_phases[row] * column_phases), count
                )
        fixed += 4 * QUADRATURE_ERROR / ULP * float(np.sum(counts))
        height_error = ULP * (fixed + 4 * abs(power) * float(ordered_dot(nats, counts)))
        return height, height_error, product, ULP * (fixed + growing * np.abs(z.imag))

    def _raised(
        self, part: slice, y: Array, weight: Array, power: float, height: float
    ) -> tuple[Complex, Array]:
        """Return tilted masses at ``y + i height``, and the ulps of their angles."""
        # (y + ih - m)^2 = (y - m)^2 + 2ih (y - m) - h^2
        mu = self.mu[part, None]
        change = power * (log_one_plus_exp(y, height) - np.logaddexp(0.0, y))
        angle = -height * (y - self.mean[part, None]) / (mu * mu) + change.imag
        factor = weight * np.exp(height**2 / (2 * mu * mu) + change.real + 1j * angle)
        ulps = 8 + 2 * np.einsum("ik,ik->i", np.abs(factor), np.abs(angle) + np.abs(change))
        return factor, ulps

    def log_mass(self, a: float) -> Array | None:
        """Return ``ln E (1 + e^Y)^p`` of each member, rounded up; None out of reach."""
        corners, _, corner_index = self.corners(np.ones(self.mu.size))
        power = float(self.powers(a))
        grid = corners.grid(np.array([power]), 0.0)
        if grid is None:
            return None
        y, step, _ = grid
        _, log_mass, mass_ulps, _ = corners.tilted(
            slice(None), y, step, np.logaddexp(0.0, y), power
        )
        # K of the corner is above K: K = ln E (1 + e^Y)^p - p ln(1 + odds)
        nats = power * np.logaddexp(0.0, corners.log_odds)
        log_upper = log_mass - nats + ULP * (mass_ulps + np.abs(nats)) + 2 * QUADRATURE_ERROR
        above: Array = log_upper[corner_index]
        return above + power * np.logaddexp(0.0, self.log_odds)

    def tilted(
        self, part: slice, y: Array, step: float, size: Array, power: float
    ) -> tuple[Array, Array, Array, Array]:
        """Return tilted masses, ``ln G``, their error in ulps, and the mean of ``ln(1 + e^y)``."""
        exponent, _ = self._exponents(part, y, size, power)
        top = np.max(exponent, axis=1, keepdims=True)
        weight = np.exp(exponent - top)
        total = np.sum(weight, axis=1)
        weight /= total[:, None]
        log_mass = top[:, 0] + np.log(total * (step / math.sqrt(2 * math.pi)) / self.mu[part])
        mass_ulps, length = self._term_ulps(part, y, size, power, weight)
        return weight, log_mass, mass_ulps, length

    def _exponents(self, part: slice, y: Array, size: Array, power: float) -> tuple[Array, Array]:
        t = (y - self.mean[part, None]) / self.mu[part, None]
        t *= t
        return power * size - t / 2, t

    def _term_ulps(
        self, part: slice, y: Array, size: Array, power: float, terms: Array
    ) -> tuple[Array, Array]:
        """Return the ulps of a sum of such tilted masses, and that of these times ``size``."""
        exponent, square = self._exponents(part, y, size, power)
        top = np.abs(np.max(exponent, axis=1))
        spread = np.einsum("ik,ik->i", terms, np.abs(exponent) + square)
        length = ordered_dot(terms, size)
        # m is inexact by two ulps, and |d ln G / dm| <= |p| E ln(1 + e^Y)
        sum_ulps = (y.size / 16 + 16 + top) * np.sum(terms, axis=1) + 2 * spread
        sum_ulps += 4 * (abs(power) + 1) * np.abs(self.mean[part]) * length
        return sum_ulps, length


def products(left: Array, right: Array) -> Array:
    """Return ``sum_k left[i, k] right[j, k]``, in parts that stay in the cache."""
    total = np.zeros((left.shape[0], right.shape[0]))
    for start in range(0, left.shape[1], PRODUCT_TERMS):
        part = slice(start, start + PRODUCT_TERMS)
        total += np.einsum("ik,jk->ij", left[:, part], right[:, part])
    return total


def _products(left: Any, right: Any) -> Any:
    """Return ``sum_k left[i, k] right[j, k]``, real and imaginary parts apart."""
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


def _blocks(members: int, width: int) -> list[slice]:
    step = max(1, BLOCK_SIZE // width)
    return [slice(start, start + step) for start in range(0, members, step)]


def product_of_powers(ratio: Complex, counts: Array) -> Complex:
    """Return ``prod_i ratio[i]^counts[i]``."""
    many = counts != 1
    if not many.any():
        plain: Complex = np.multiply.reduce(ratio, axis=0)
        return plain
    product: Complex = np.multiply.reduce(ratio[~many], axis=0)
    log_ratio = np.log(np.where(ratio[many] == 0, 1e-300, ratio[many]))
    result: Complex = product * np.exp(np.einsum("i,i...->...", counts[many], log_ratio))
    return result
