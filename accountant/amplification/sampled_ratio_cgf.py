"""The cumulants of sampled losses whose log-ratio has atoms and an exponential density between.

So are sampled Laplace noise and truncated Laplace noise.  P and Q are the laws of the noise that is
sampled, with and without the record.  Their log-ratio l = ln(P/Q) has under Q a few atoms and the
density scale e^{-l/2} between two ends (`RatioLaw`).  Sampled at a rate q, P becomes (1 - q) Q +
q P, whose ratio to Q is r(l) = 1 - q + q e^l, and the cumulants K(z) = ln E e^{zL} of both
directions are

    ln E_Q r^{z+1} (the record is removed)    and    ln E_Q r^{-z} (it is added):

a sum over the atoms, and an integral by a Gauss-Legendre rule.  Its range is cut into panels, and
each panel into parts with an error bound from an ellipse in the complex plane.  The order z is
a + iv; the largest frequency v that is asked for is called turn.  At high frequencies Filon's rule
is cheaper (`FilonRule`).

References: Trefethen (2013), Approximation Theory and Approximation Practice, Theorem 19.3; the
errors and the decay of the characteristic function: `docs/proofs/sampled_laplace.md`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np

from accountant.amplification.sampled_ratio_filon import FilonRule
from accountant.losses.loss_numerics import ExactCGF, HasCumulant
from accountant.losses.ratio_law import RatioLaw
from accountant.numerics import Array, Complex
from accountant.numerics.exponential_sums import (
    cf_ratio,
    complex_power,
    finite_cgf,
    power_round_off,
)
from accountant.numerics.logspace import log_mixture, logsumexp
from accountant.numerics.ordered_sums import product_with_errors, sum_with_errors
from accountant.numerics.quadrature import gauss_legendre_panels

# The largest half-length of a density in l.  A longer one, of noise with epsilon above 60, has no
# cumulant here.
MAX_SHIFT = 60.0
PANEL = 1.5  # largest half-width of a panel in l, before it is cut into parts
# Ellipses around a part: heights of the upper semi-axis in l, below pi / 2, where r has its zeros.
HEIGHTS = np.array([1.5, 1.0, 0.6, 0.3, 0.1, 0.03, 0.01, 0.003])
# Numbers of points of a part, and of parts of a panel, that are tried: the first is taken whose
# error is at most `GOAL`.
POINTS = (8, 12, 16, 24, 32, 48, 64, 96, 128, 192)
PARTS = tuple(2**k for k in range(9))
# Filon's rule is cheaper where a panel needs more points than this at the largest frequency.
FILON_POINTS = 200
FILON_GOAL = 1e-13  # largest error of Filon's rule, over E e^{aL}; else points are summed
Grid = tuple[int, int]  # the numbers of parts of a panel and of points of a part
GOAL = 1e-17  # largest error of the Gauss-Legendre rule, over E e^{aL}: below an ulp


@final
@dataclass(frozen=True, slots=True)
class SampledRatioLaw:
    """A law sampled at a rate, in one direction; ``record_added``: the record is only in Q."""

    law: RatioLaw
    rate: float
    record_added: bool

    def cgf(self, z: Any) -> tuple[Any, Array]:
        """Return ``ln E e^{zL}`` and a bound on its error; infinite where it is out of reach.

        Orders within a factor of 4 share a grid.  The rule's error is relative to E e^{aL} at the
        real part a of z, hence larger, by ``growth``, relative to E e^{zL}.
        """
        shape, z = z.shape, np.atleast_1d(z)
        turn = float(np.max(np.abs(z.imag), initial=0.0))
        value, error = np.full(z.shape, np.inf, dtype=z.dtype), np.zeros(z.shape)
        magnitudes = np.ceil(np.log2(np.maximum(z.real, 1.0)) / 2)
        for magnitude in np.unique(magnitudes):
            of_magnitude = magnitudes == magnitude
            orders = z[of_magnitude]
            grid = _grid(self, float(np.max(orders.real)), turn)
            if grid is None:
                continue
            loss, log_mass = _rule(self, grid)
            cumulant, round_off = finite_cgf(loss, log_mass, orders)
            tilted = finite_cgf(loss, log_mass, orders.real)[0] if turn else cumulant
            rule_error = self.rule_error(orders.real, turn, grid)
            value[of_magnitude] = cumulant
            growth = np.exp(np.minimum(tilted.real - cumulant.real, 700.0))
            error[of_magnitude] = round_off + rule_error * growth
        return value.reshape(shape), error.reshape(shape)

    def cf_ratio(self, z: Complex, count: int) -> tuple[Complex, Array]:
        """Return ``(E e^{zL} / E e^{aL})^count`` on equidistant nodes, and a bound on its error."""
        a, turn = float(z[0, 0].real), float(z[-1, -1].imag)
        real_grid = _grid(self, a, 0.0)
        if real_grid is not None and turn * self._length > 2 * FILON_POINTS:
            power = -a if self.record_added else a + 1
            rule = FilonRule(self.law, self.rate, power, self.log_moment(a, real_grid))
            if rule.missed < FILON_GOAL:
                ratio, filon_error = rule.ratio(z, -1.0 if self.record_added else 1.0)
                return complex_power(ratio, count), count * filon_error + power_round_off(
                    count, 0.0, z
                )
        grid = _grid(self, a, turn)
        if grid is None:
            return np.zeros(z.shape, dtype=complex), np.ones(z.shape)  # no ratio is larger than 1
        ratio, spread, ratio_error = cf_ratio(*_rule(self, grid), z)
        rule_error = float(self.rule_error(np.array([a]), turn, grid)[0])
        error = power_round_off(count, spread, z, ratio_error) + 2 * count * rule_error
        return complex_power(ratio, count), error

    def log_cf_bound(self, a: float, u: Array) -> Array:
        """Return the log of a bound on ``|E e^{(a+iv)L}| / E e^{aL}`` for every ``v >= u``."""
        # The atoms do not decay.  In y = ln r the density, tilted by r^p, is
        # F = scale e^{-3l/2} r^{p+1} / rate.  By parts its integral is at most (F at both ends +
        # its variation) / u, and the variation is at most F at both ends, as F has at most one
        # valley.
        grid = _grid(self, a, 0.0)
        if grid is None:
            return np.zeros(u.shape)
        power = -a if self.record_added else a + 1
        moment = self.log_moment(a, grid)
        atoms = sum(
            mass * math.exp(power * float(self.log_ratio(np.array(ratio))) - moment)
            for ratio, mass in self.law.atoms
        )
        ends = np.array([self.law.low, self.law.high])
        log_ends = (power + 1) * self.log_ratio(ends) - 1.5 * ends - moment
        jump = 2 * self.law.scale / self.rate * float(np.sum(np.exp(np.minimum(log_ends, 700.0))))
        # 1e-12 is room for round-off.
        bound: Array = np.log(np.minimum(atoms + jump / u + 1e-12, 1.0))
        return bound

    def log_moment(self, a: float, grid: Grid) -> float:
        """Return ``ln E e^{aL}``, to nearest."""
        loss, log_mass = _rule(self, grid)
        return float(logsumexp(a * loss + log_mass))

    def log_ratio(self, x: Array) -> Array:
        """Return ``ln r`` at a log-ratio x of the noise that is sampled."""
        with np.errstate(invalid="ignore"):
            return np.where(np.isneginf(x), _log_unsampled(self.rate), log_mixture(x, self.rate))

    def rule_error(self, a: Array, turn: float, grid: Grid) -> Array:
        """Return a bound on the rule's error at ``a + iv``, ``v <= turn``, over ``E e^{aL}``."""
        parts, points = grid
        log_first, log_rho = self.log_errors(a, turn, parts)
        log_error = np.min(log_first - 2 * (points - 1) * log_rho, axis=2)
        # `GOAL` is room for the round-off of this bound.
        bound: Array = np.sum(np.exp(np.minimum(log_error, 700.0)), axis=1) + GOAL
        return bound

    def log_errors(self, a: Array, turn: float, parts: int) -> tuple[Array, Array]:
        """Return ``ln [64/15 c M / (1 - rho^-2)] - ln E e^{aL}``, and ln rho, of ellipses rho.

        An n-point rule on a part of half-width c errs by at most 64/15 c M rho^{2 - 2n}
        / (1 - rho^-2), M the largest size of the integrand at frequencies up to ``turn`` on an
        ellipse around the part, whose semi-axes in units of c sum to rho.  The first result has the
        axes real order, part and height of the ellipse, the second only the last two.
        """
        edges = _edges(self.law, parts)
        c, centre = (edges[1] - edges[0]) / 2, (edges[1:] + edges[:-1]) / 2
        rho = HEIGHTS / c + np.sqrt((HEIGHTS / c) ** 2 + 1)
        semi_axis = c * (rho + 1 / rho) / 2
        left, right = np.subtract.outer(centre, semi_axis), np.add.outer(centre, semi_axis)
        power = -a if self.record_added else a + 1
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            # On an ellipse of height B, (1 - q) + q e^left cos B <= |r| <= r(right), and |arg r|
            # is at most its value for l = right + iB.
            if self.record_added:
                log_r = np.logaddexp(
                    _log_unsampled(self.rate), math.log(self.rate) + left + np.log(np.cos(HEIGHTS))
                )
            else:
                log_r = self.log_ratio(right)
            unsampled = (1 - self.rate) * np.exp(-right)
            angle = np.arctan2(self.rate * np.sin(HEIGHTS), unsampled + self.rate * np.cos(HEIGHTS))
            log_error = np.multiply.outer(power, log_r) - left / 2 + turn * angle
            log_error = log_error - np.log(-np.expm1(-2 * np.log(rho)))
            log_error = log_error + math.log(64 / 15 * c * self.law.scale)
            return log_error - self._log_moment_below(power)[:, None, None], np.log(rho)

    def _log_moment_below(self, power: Array) -> Array:
        """Return a lower bound on ``ln E_Q r^power``: of one atom, or of a stretch at one end.

        On the stretch, of the density, the least values are that of e^{-l/2} at its right end, and
        that of r^power at its ``inner`` end.
        """
        atoms = [math.log(mass) + power * self.log_ratio(np.array(r)) for r, mass in self.law.atoms]
        length = np.minimum(self.law.high - self.law.low, 1 / np.maximum(np.abs(power), 1e-300))
        end = self.law.low if self.record_added else self.law.high - length
        inner = end + length if self.record_added else end
        log_mass = math.log(self.law.scale) + np.log(length) - (end + length) / 2
        bound: Array = np.maximum.reduce(
            [*atoms, log_mass + power * self.log_ratio(np.asarray(inner))]
        )
        return bound

    def quadrature_terms(self, frequency: float) -> float:
        """Return about how many points a contour up to ``frequency`` needs.

        The estimate, for a moderate real part, decides which method of composition is quickest, and
        no result.
        """
        panels = (self.law.high - self.law.low) / 2
        return min(20.0 * (panels + 1) + 0.75 * frequency * self._length, 60.0 * (panels + 1))

    @property
    def _length(self) -> float:
        """The length of the density in ln r."""
        return float(np.ptp(self.log_ratio(np.array([self.law.low, self.law.high]))))

    @property
    def max_loss_mass(self) -> float:
        """The mass of the largest finite loss where it is an atom, rounded down; else 0."""
        side = -1.0 if self.record_added else 1.0
        ratio, mass = max(self.law.atoms, key=lambda atom: side * atom[0], default=(0.0, 0.0))
        if not self.record_added:
            if ratio < self.law.high:
                return 0.0
            # Its mass under (1 - rate) Q + rate P is r times that under Q.
            mass *= math.exp(float(self.log_ratio(np.array(ratio))))
        elif ratio > self.law.low:
            return 0.0
        return mass * (1 - 1e-14)  # with room for the round-off of a few operations


class SampledRatio(HasCumulant, Protocol):
    """A sampled loss of noise that has a `RatioLaw`."""

    @property
    def sampled_ratio_law(self) -> SampledRatioLaw | None:
        """The sampled law of the log-ratio; None where the noise has no `RatioLaw`."""
        ...


@final
class SampledRatioCGF(ExactCGF[SampledRatio]):
    """Exact cumulants by quadrature between the atoms."""

    def sum_cgf(self, losses: Sequence[SampledRatio], counts: Array, z: Any) -> tuple[Any, Array]:
        """Return the sum of the cumulants, one loss at a time, and a bound on its error."""
        return sum_with_errors((_law(loss).cgf(z) for loss in losses), counts, z)

    def cf_ratios(
        self, losses: Sequence[SampledRatio], counts: Array, z: Complex
    ) -> tuple[Complex, Array]:
        """Return the product of the ratios, one loss at a time, and a bound on its error."""
        ratios = (
            _law(loss).cf_ratio(z, int(count))
            for loss, count in zip(losses, counts.tolist(), strict=True)
        )
        return product_with_errors(ratios, z)

    def log_cf_bounds(
        self, losses: Sequence[SampledRatio], counts: Array, a: float, u: Array
    ) -> Array:
        """Return the sum of the bounds."""
        total = np.zeros(u.shape)
        for loss, count in zip(losses, counts.tolist(), strict=True):
            total += count * _law(loss).log_cf_bound(a, u)
        return total

    def quadrature_terms(self, loss: SampledRatio, frequency: float) -> float:
        """Return the number of points of the quadrature."""
        return _law(loss).quadrature_terms(frequency)

    def max_loss_mass(self, loss: SampledRatio) -> float:
        """Return the mass of the largest finite loss where that is an atom."""
        return _law(loss).max_loss_mass


def _log_unsampled(rate: float) -> float:
    """Return ``ln(1 - rate)``, which is ln r of an outcome that only Q can have."""
    return math.log1p(-rate) if rate < 1 else -math.inf


def _law(loss: SampledRatio) -> SampledRatioLaw:
    law = loss.sampled_ratio_law
    if law is None:
        raise TypeError(f"no exact cumulant: {type(loss).__name__}")
    return law


def _edges(law: RatioLaw, parts: int) -> Array:
    """Return the edges of the panels between the ends of the density, each cut into parts."""
    panels = parts * max(1, math.ceil((law.high - law.low) / 2 / PANEL))
    return np.linspace(law.low, law.high, panels + 1)


def _grid(sampled: SampledRatioLaw, tilt: float, turn: float) -> Grid | None:
    """Return a grid for real orders up to ``tilt``, rounded up to a power of 2; or None.

    None where frequencies up to ``turn`` take more points or parts than there are.
    """
    return _grid_of_size(sampled, 2.0 ** math.ceil(math.log2(max(tilt, 1.0))), turn)


@functools.lru_cache(maxsize=256)
def _grid_of_size(sampled: SampledRatioLaw, tilt: float, turn: float) -> Grid | None:
    """Return the first grid whose error is at most `GOAL`; None where there is none."""
    for parts in PARTS:
        last_edges = _edges(sampled.law, parts)[-2:]
        # The last part has the steepest ln r: its points must resolve e^{i turn ln r}.
        needed_points = turn * float(np.ptp(sampled.log_ratio(last_edges))) / 2
        if needed_points > POINTS[-1]:
            continue
        log_first, log_rho = sampled.log_errors(np.array([tilt]), turn, parts)
        for points in POINTS:
            log_error = np.min(log_first[0] - 2 * (points - 1) * log_rho, axis=1)
            if np.sum(np.exp(np.minimum(log_error, 700.0))) <= GOAL:
                return parts, points
    return None


@functools.lru_cache(maxsize=64)
def _rule(sampled: SampledRatioLaw, grid: Grid) -> tuple[Array, Array]:
    """Return losses and log-masses whose sum of mass e^{zL} replaces E e^{zL}."""
    law = sampled.law
    x, weight, _ = gauss_legendre_panels(_edges(law, grid[0]), grid[1])
    ratio = np.array([atom_ratio for atom_ratio, _ in law.atoms])
    log_q = np.append(
        np.log([atom_mass for _, atom_mass in law.atoms]), np.log(weight * law.scale) - x / 2
    )
    loss = sampled.log_ratio(np.append(ratio, x))
    if sampled.record_added:
        return -loss, log_q
    is_finite = np.isfinite(loss)
    return loss[is_finite], (log_q + loss)[is_finite]
