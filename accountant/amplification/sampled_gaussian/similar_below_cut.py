"""Similar sampled Gaussians with Y at most a cut: one rule for all, and few rows for many.

With o = rate / (1 - rate), Y = mu X - mu^2/2 + ln o, l(y) = ln(1 + e^y) and p = z + 1,

    E[(1 + e^Y)^p; Y <= c] = 1 + p E[e^Y; Y <= c] - P(Y > c) + int_{y <= c} n(y) g(y) dy,
    g = e^{p l} - 1 - p e^y,  which is small where e^Y is.

The integral runs along a curve from the line Im y = eta to c, on which no frequency oscillates.
The normal densities on its nodes are rows of nearly the same space: a few of them span it.
Proof: `docs/proofs/schedules.md`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from accountant.amplification.sampled_gaussian.curve_to_cut import CurveToCut
from accountant.amplification.sampled_gaussian.decay_below_cut import log_transforms_below_cut
from accountant.amplification.sampled_gaussian.merged_members import (
    MergedMembers,
    cells_of_similar,
)
from accountant.amplification.sampled_gaussian.sampled_schedule import product_of_powers, products
from accountant.amplification.sampled_gaussian.schedule_grid import right_end
from accountant.numerics import Array, Complex
from accountant.numerics.ordered_sums import ordered_dot
from accountant.numerics.rounding import ULP

HIGHEST_CURVE = 1.25  # in deviations
DEVIATIONS = 9.8
SAMPLE_ROWS = 300  # from which the space is found
MAX_RANK = 64
BLOCK_SIZE = 2**17
CELLS_PER_OCTAVE = 16  # of mu and of m / mu, in a bound on the density of all
MAX_SHARE = 0.5  # of 1, that errors of first order may be
MIN_MERGED = 600  # members that are summed by cells
CELLS_PER_ROOT = 4.0  # cells to a root of the number of members, at first
MEMBERS_PER_CELL = 2.5  # so few are not worth it
MERGED_ERROR = 3e-9  # of the logarithm
MERGED_POINTS, POINTS_EACH = 8, 4  # of a cell, and of a member, in exponentials


class Factored(NamedTuple):
    """Rows ``w_i = coordinates_i basis + rest_i`` of one group for one real part."""

    coordinates: Array
    basis: Array
    column_rest: Array  # sum of counts times rest: of first order it is known
    rest: float  # sum of counts times |rest|, at the real order
    ulps: float  # bound on the round-off at the real order
    sizes: Array  # sum of counts times |coordinates|, and that times |basis|, on the nodes
    spread: Array


class SimilarBelowCut:
    """Sampled Gaussians with the record present, mu in one octave, with ``Y <= cut``."""

    def __init__(
        self,
        mu: Array,
        log_odds: Array,
        counts: Array,
        cut: float,
        *,
        greatest_power: float,
        tolerance: float,
    ) -> None:
        self.mu, self.log_odds, self.counts, self.cut = mu, log_odds, counts, cut
        self.mean, self._tolerance = log_odds - mu * mu / 2, tolerance
        # the rule ends where next to nothing is left
        most, highest = float(np.max(mu)), float(np.max(self.mean))
        end = right_end(highest, most, greatest_power, float(np.min(log_odds)))
        self._end = min(cut, end)
        height = min(0.45 * math.pi, HIGHEST_CURVE * float(np.min(mu)))
        lowest = float(np.min(self.mean)) - DEVIATIONS * float(np.max(mu))
        self._curve = CurveToCut.between(lowest, self._end, height)
        self.is_short = self._curve.is_short
        self.y, self._speed = self._curve.nodes()
        self.loss: Complex = np.log1p(np.exp(self.y))
        lost, moved = self.tails
        # E[e^Y; Y <= c] and P(Y > c)
        self._kept_odds = np.exp(log_odds) * (1 - moved)
        self._lost = lost
        self._factored: dict[float, Factored] = {}
        self._merged: dict[float, MergedMembers | None] = {}
        self._sums: tuple[Complex, Array] | None = None

    @property
    def points(self) -> int:
        """About the number of exponentials that a node costs."""
        own = POINTS_EACH * self.mu.size
        for p in self._factored:
            cells = self.merged(p)
            own = own if cells is None else MERGED_POINTS * cells.counts.size
        return self.y.size + own

    def merged(self, p: float) -> MergedMembers | None:
        """Return cells of members that are alike at the real power; None where no few are."""
        if self.mu.size < MIN_MERGED:
            return None
        if p not in self._merged:
            self._merged = {p: self._cells_at(p)}
        return self._merged[p]

    def _cells_at(self, p: float) -> MergedMembers | None:
        moment, _, _ = self._at_real(p)
        power = np.array([p + 0j])
        inner, _, _ = self._inner(p, self._kernel(power), power)
        features = np.array([moment - 1, p * self._kept_odds])
        places, most = np.array([self.mu, self.log_odds]), self.mu.size / MEMBERS_PER_CELL
        limit = CELLS_PER_ROOT * math.sqrt(self.mu.size)
        while limit <= most:
            place = cells_of_similar(features, places, self.counts, limit)
            found = MergedMembers.of(self._columns(p), self.counts, place)
            if found.log_sum(inner)[2][0] <= MERGED_ERROR:
                return found
            limit *= 2
        return None

    @property
    def tails(self) -> tuple[Array, Array]:
        """Return the chance that Y is above the cut, without the record and with it."""
        far = (self.cut - self.mean) / self.mu
        return normal_tail(far), normal_tail(far - self.mu)

    def upper_sum(self, power: Array) -> Array:
        """Return a bound on ``sum counts ln E[(1 + e^Y)^p; Y <= c]`` at real powers above 1."""
        # the tangent of the logarithm at 1 + p o is above it, and the integral of g is positive
        weight, absolute = self._column_sums
        odds = self._kept_odds
        least, total = float(np.min(odds)), np.empty(power.shape)
        for i, p in enumerate(power.tolist()):
            value = float(np.sum((weight * self._kernel(np.array([p + 0j]))[:, 0]).real))
            error = self._rule_error(p) + self._round_off(p, absolute)
            total[i] = (max(value, 0.0) + error) / (1 + p * least)
            total[i] += float(ordered_dot(np.log1p(p * odds), self.counts)) * (1 + 1e-12)
        return total

    @property
    def _column_sums(self) -> tuple[Complex, Array]:
        """Return the sums of counts times masses on the nodes, and of their absolute values."""
        if self._sums is None:
            weight = np.zeros(self.y.size, dtype=complex)
            absolute = np.zeros(self.y.size)
            for part, real, imag, size in self._rows():
                weight += np.einsum("i,ik->k", self.counts[part], real)
                weight += 1j * np.einsum("i,ik->k", self.counts[part], imag)
                absolute += np.einsum("i,ik->k", self.counts[part], size)
            self._sums = weight * self._speed, absolute * np.abs(self._speed)
        return self._sums

    def _rows(self, some: Array | None = None) -> Iterator[tuple[slice, Array, Array, Array]]:
        """Yield densities on the curve: their real and imaginary parts and absolute values."""
        mu, mean = (self.mu, self.mean) if some is None else (self.mu[some], self.mean[some])
        rows = max(1, BLOCK_SIZE // self.y.size)
        for first in range(0, mu.size, rows):
            part = slice(first, first + rows)
            square = mu[part, None] ** 2
            away = self.y.real - mean[part, None]
            size = np.exp((self.y.imag**2 - away * away) / (2 * square))
            size /= mu[part, None] * math.sqrt(2 * math.pi)
            angle = away * self.y.imag / square
            yield part, size * np.cos(angle), size * -np.sin(angle), size

    def _kernel(self, power: Complex, turns: Complex | None = None) -> Complex:
        """Return ``e^{p l} - 1 - p e^y`` at powers, or at sums of powers and turns."""
        near: Complex = np.expm1(np.outer(self.loss, power))
        if turns is not None:
            # e^{v+w} - 1 = (e^v - 1)(e^w - 1) + (e^v - 1) + (e^w - 1)
            other = np.expm1(np.outer(self.loss, turns))[:, None, :]
            grown = (near + 1)[:, :, None] * other
            grown += near[:, :, None]
            near = grown.reshape(self.y.size, -1)
            power = (power[:, None] + turns).ravel()
        near -= np.outer(np.exp(self.y), power)
        return near

    def scale(self, p: float) -> Array:
        """Return a bound on ``|e^{p' l} - 1 - p' e^y|`` over ``(|p'| / p)^2``, where Re p' = p."""
        return _scale(self.loss, self.y, p)

    @functools.cached_property
    def _edges(self) -> tuple[Complex, Complex, Array]:
        """Return both edges of the strip and the cut, and bounds on what the rule errs by there."""
        y, missed = self._curve.edges()
        return np.log1p(np.exp(y)), y, self._density_bound(y) * missed

    def _rule_error(self, p: float) -> float:
        """Return the error of the rule for all members, at a real power."""
        loss, y, weight = self._edges
        left = float(np.sum(self.counts)) * 1e-21 * float(self.scale(p)[0])
        return float(ordered_dot(_scale(loss, y, p), weight)) + left + self._beyond(p)

    def _beyond(self, p: float) -> float:
        """Return a bound on what the rule leaves out between its end and the cut."""
        if self._end == self.cut:
            return 0.0
        # |g| <= (2 + p) e^{p l}, and l <= y + ln(1 + e^{-end}); greatest for great mu and mean
        mu, mean = float(np.max(self.mu)), float(np.max(self.mean))
        tail = float(normal_tail(np.array([(self._end - mean) / mu - p * mu]))[0])
        size = p * (mean + float(np.logaddexp(0.0, -self._end))) + (p * mu) ** 2 / 2
        size += math.log((2 + p) * 1.01 * max(tail, 1e-300))
        return float(np.sum(self.counts)) * math.exp(size) if size < 700 else math.inf

    def _density_bound(self, y: Complex) -> Array:
        """Return a bound on the sum of counts times ``|n(y)|``."""
        count, mu, most, low, high = self._cells
        away = np.maximum(np.maximum(low - y.real[:, None], y.real[:, None] - high), 0.0)
        size = np.exp(y.imag[:, None] ** 2 / (2 * mu * mu) - away * away / (2 * most * most))
        bound: Array = ordered_dot(size, count / mu) * ((1 + 1e-9) / math.sqrt(2 * math.pi))
        return bound

    @functools.cached_property
    def _cells(self) -> tuple[Array, ...]:
        """Return cells of similar members: counts, and the ends of their mu and means."""
        column = np.floor(CELLS_PER_OCTAVE * np.log2(self.mu))
        width = float(np.min(self.mu)) / CELLS_PER_OCTAVE
        row = np.floor((self.mean - np.min(self.mean)) / width)
        _, place = np.unique(column + 1j * row, return_inverse=True)
        ends = (*_extremes(place, self.mu), *_extremes(place, self.mean))
        return np.bincount(place, self.counts).astype(float), *ends

    def _round_off(self, p: float, absolute: Array) -> float:
        """Return the round-off of the sums for all members, over ``|p'| / p``."""
        low, high = float(np.min(self.mean)), float(np.max(self.mean))
        least = float(np.min(self.mu))
        far = np.maximum(np.abs(self.y - low), np.abs(self.y - high)) / least
        place = np.abs(self.y) + max(abs(low), abs(high))
        ulps = 80 + self.y.size / 8 + 4 * far**2 + 8 * far * place / least + 16 * np.abs(self.y)
        size = p * (np.abs(self.loss) * np.exp(np.maximum(p * self.loss.real, 0.0)))
        size += p * np.abs(np.exp(self.y))
        rows = BLOCK_SIZE // self.y.size
        sums = rows / 16 + self.mu.size / max(rows, 1)
        total = float(ordered_dot((ulps + sums) * absolute, size))
        tail = (self.cut - self.mean) / self.mu
        own = self._lost + p * self._kept_odds
        ulps = 32 + 4 * tail**2 + 4 * np.abs(self.log_odds)
        total += float(ordered_dot(ulps * self.counts, own))
        return ULP * total

    def factored(self, p: float) -> Factored:
        """Return the rows by a basis that is made for the real power."""
        if p not in self._factored:
            self._factored = {p: self._factor(p)}
        return self._factored[p]

    def _factor(self, p: float) -> Factored:
        size = self.scale(p) * np.abs(self._speed)
        scale = np.concatenate([size, size])
        some = np.unique(np.linspace(0, self.mu.size - 1, SAMPLE_ROWS).astype(int))
        order = np.lexsort([self.mean, self.mu])[some]
        sample = np.concatenate(
            [np.concatenate([real, imag], axis=1) for _, real, imag, _ in self._rows(order)]
        )
        basis = _basis(sample * scale, self._tolerance)
        coordinates = np.empty((self.mu.size, basis.shape[0]))
        weight, absolute = np.zeros(self.y.size, dtype=complex), np.zeros(self.y.size)
        column_rest = np.zeros(scale.size)
        rest = 0.0
        for part, real, imag, one in self._rows():
            count = self.counts[part]
            rows = np.concatenate([real, imag], axis=1)
            weight += np.einsum("i,ik->k", count, real) + 1j * np.einsum("i,ik->k", count, imag)
            absolute += np.einsum("i,ik->k", count, one)
            rows *= scale
            coordinates[part] = products(rows, basis)
            left = rows - products(coordinates[part], np.ascontiguousarray(basis.T))
            column_rest += np.einsum("i,ik->k", count, left)
            rest += float(ordered_dot(np.sum(np.abs(left), axis=1), count))
        self._sums = weight * self._speed, absolute * np.abs(self._speed)
        ulps = self._round_off(p, self._sums[1])
        sizes = np.einsum("i,ir->r", self.counts, np.abs(coordinates))
        spread = np.einsum("r,rk->k", sizes, np.abs(basis)).reshape(2, -1).sum(axis=0)
        return Factored(coordinates, basis, column_rest, rest, ulps, sizes, spread)

    def log_mass(self, p: float) -> Array:
        """Return ``ln E[(1 + e^Y)^p; Y <= cut]`` of each member, rounded up."""
        rows = self.factored(p)
        moment, _, spread = self._at_real(p)
        # errors of one member are at most those of all
        return np.log(moment + rows.ulps + rows.rest + self._rule_error(p) + spread + 1e-12)

    def _at_real(self, p: float) -> tuple[Array, float, float]:
        """Return ``E[(1 + e^Y)^p; Y <= cut]`` of each member, what rows leave, and round-off."""
        power = np.array([p + 0j])
        inner, left, spread = self._inner(p, self._kernel(power), power)
        moment = 1 + _real_by_complex(self._columns(p), inner)[:, 0].real
        return moment, float(left[0].real), float(spread[0])

    def _columns(self, p: float) -> Array:
        rows = self.factored(p).coordinates
        return np.concatenate([rows, self._kept_odds[:, None], -self._lost[:, None]], axis=1)

    def _inner(self, p: float, kernel: Complex, power: Complex) -> tuple[Complex, Complex, Array]:
        """Return what columns are multiplied by, what rows leave of first order, and round-off."""
        rows = self.factored(p)
        kernel = kernel * (self._speed / (self.scale(p) * np.abs(self._speed)))[:, None]
        both = np.concatenate([kernel, 1j * kernel])
        inner = _real_by_complex(rows.basis, both)
        rank, terms = rows.basis.shape
        # of the products by the basis, of the coordinates, and of 1 + x and what follows
        spread = (2 * rank + terms / 16 + 64) * np.einsum("k,kj->j", rows.spread, np.abs(kernel))
        spread += (rank + 16) * np.einsum("r,rj->j", rows.sizes, np.abs(inner))
        spread += 8 * float(np.sum(self.counts))
        inner = np.concatenate([inner, power[None, :], np.ones((1, power.size))])
        return inner, np.einsum("k,kj->j", rows.column_rest, both), ULP * spread

    def log_decay(self, p: float, u: Array) -> Array:
        """Return a bound on the sum of counts times the logarithms of ratios, for every v >= u.

        Of ``|E[(1+e^Y)^{p+iv}; Y <= cut]| / E[(1+e^Y)^p; Y <= cut]``.
        """
        rows = self.factored(p)
        moment, _, spread = self._at_real(p)
        away = rows.ulps + rows.rest + self._rule_error(p) + spread + 1e-12
        least: Array = np.log(np.maximum(moment - away, 1e-300))[:, None]
        left = p * float(np.logaddexp(0.0, self.y[0].real))
        left = float(np.sum(self.counts)) * 1e-21 * math.exp(min(left, 700.0))
        found = log_transforms_below_cut(
            (self.mu, self.mean), self._curve, p, u, self._density_bound, left + self._beyond(p)
        )
        decay: Array = np.einsum("i,iu->u", self.counts, np.minimum(found - least, 0.0))
        return decay

    def log_height(self, p: float) -> tuple[float, float]:
        """Return ``sum counts ln E[(1 + e^Y)^p; Y <= cut]`` at a real power, and its error."""
        moment, left, spread = self._at_real(p)
        height = float(ordered_dot(np.log(moment), self.counts)) + left
        error = self._error(p, np.ones(1), np.array([float(np.max(np.abs(moment - 1)))]))
        return height, (float(error[0]) + spread) / min(1.0, float(np.min(moment)))

    def ratios(self, p: float, power: Complex, turns: Complex) -> tuple[Complex, Array, Array]:
        """Return the product of ``E[(1+e^Y)^p'] / E[(1+e^Y)^p]``, p = Re p', and its errors.

        For all sums p' of a power and a turn: of the logarithm where no factor is above 1, and of
        the logarithm of the product returned, besides.
        """
        moment, left_at_real, spread_at_real = self._at_real(p)
        both = (power[:, None] + turns).ravel()
        inner, left, spread = self._inner(p, self._kernel(power, turns), both)
        cells = self.merged(p)
        if cells is not None:
            own, most, besides = cells.log_sum(inner)
            log_moment = np.log(moment)
            at_real = float(ordered_dot(log_moment, self.counts))
            size = float(ordered_dot(np.abs(log_moment), self.counts))
            besides = besides + ULP * (self.mu.size / 8 + 16) * size
            # where that much is unknown, nothing is said, and the bound on the transform is left
            besides = np.where(besides <= MAX_SHARE, besides, math.inf)
            exponent = np.where(besides <= MAX_SHARE, own - at_real + left - left_at_real, -np.inf)
            product: Complex = np.exp(exponent)
        else:
            product, most = self._plain_ratios(p, inner, moment)
            product *= np.exp(left - left_at_real)
            besides = np.zeros(both.size)
        error = self._error(p, np.abs(both) / p, most)
        error += self._error(p, np.ones(1), np.array([float(np.max(np.abs(moment - 1)))]))
        error += spread + spread_at_real
        return product, error / min(1.0, float(np.min(moment))), besides

    def _plain_ratios(self, p: float, inner: Complex, moment: Array) -> tuple[Complex, Array]:
        """Return the product over members, one by one, and a bound on what 1 is added to."""
        product: Complex = np.ones(inner.shape[1], dtype=complex)
        most, columns = np.zeros(inner.shape[1]), self._columns(p)
        block = max(1, BLOCK_SIZE // inner.shape[1])
        for first in range(0, self.mu.size, block):
            part = slice(first, first + block)
            ratio = _real_by_complex(columns[part], inner)
            most = np.maximum(most, _greatest(ratio.real) + _greatest(ratio.imag))
            ratio += 1
            ratio /= moment[part, None]
            product *= product_of_powers(ratio, self.counts[part])
        return product, most

    def _error(self, p: float, growth: Array, most: Array) -> Array:
        """Return the error of the sum of logarithms; ``most``: the greatest ``|x|`` of the rows."""
        rows = self.factored(p)
        first_order = rows.ulps * growth + self._rule_error(p) * growth**2
        rest = rows.rest * (1 + 1e-6) * growth**2
        # first order is corrected: of the rest, ln(1 + x) has |x| / (1 - |x|)
        share = most + rest
        error: Array = first_order + np.where(share < MAX_SHARE, 2 * share, 2.0) * rest
        return error


def _scale(loss: Complex, y: Complex, p: float) -> Array:
    size, grown = np.abs(loss), np.exp(np.clip(p * loss.real, 0.0, 700.0))
    near = (p * size) ** 2 / 2 * grown + p * size**2 / 2 * np.exp(np.maximum(loss.real, 0.0))
    return np.minimum(near, 2 * grown + p * np.exp(y.real))


def normal_tail(x: Array) -> Array:
    """Return ``P(N(0, 1) > x)``; a large library's function would cost half a second to load."""
    return np.array([math.erfc(one) for one in (x / math.sqrt(2)).tolist()]) / 2


def _extremes(place: Any, value: Array) -> tuple[Array, Array]:
    """Return the least and the greatest value at each place."""
    order = np.argsort(place, kind="stable")
    starts = np.flatnonzero(np.diff(place[order], prepend=-1))
    return np.minimum.reduceat(value[order], starts), np.maximum.reduceat(value[order], starts)


def _basis(rows: Array, tolerance: float) -> Array:
    """Return orthonormal rows that nearly span the given ones: the longest that is left, first."""
    rows = rows.copy()
    kept: list[Array] = []
    first = 0.0
    for _ in range(MAX_RANK):
        square = np.einsum("ik,ik->i", rows, rows)
        at = int(np.argmax(square))
        first = first or float(square[at])
        if not square[at] > tolerance**2 * first:
            break
        one = rows[at] / math.sqrt(square[at])
        for other in kept:  # again, for round-off
            one = one - float(ordered_dot(other, one)) * other
        one /= math.sqrt(float(ordered_dot(one, one)))
        kept.append(one)
        rows -= np.outer(ordered_dot(rows, one), one)
    return np.array(kept)


def _greatest(rows: Array) -> Array:
    """Return the greatest absolute value of each column."""
    found: Array = np.maximum(np.max(rows, axis=0), -np.min(rows, axis=0))
    return found


def _real_by_complex(left: Array, right: Complex) -> Complex:
    """Return ``sum_r left[i, r] right[r, j]``."""
    result = np.empty((left.shape[0], right.shape[1]), dtype=complex)
    left = np.ascontiguousarray(left)
    result.real = products(left, np.ascontiguousarray(right.real.T))
    result.imag = products(left, np.ascontiguousarray(right.imag.T))
    return result
