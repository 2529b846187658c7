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
from typing import Any

import numpy as np

from accountant.amplification.sampled_gaussian.curve_to_cut import CurveToCut
from accountant.amplification.sampled_gaussian.decay_below_cut import log_transforms_below_cut
from accountant.amplification.sampled_gaussian.density_rows import (
    BLOCK_SIZE,
    DensityRows,
    FewRows,
    real_by_complex,
)
from accountant.amplification.sampled_gaussian.merged_members import (
    MergedMembers,
    cells_of_similar,
)
from accountant.amplification.sampled_gaussian.sampled_schedule import product_of_powers
from accountant.amplification.sampled_gaussian.schedule_grid import right_end
from accountant.numerics import Array, Complex
from accountant.numerics.ordered_sums import ordered_dot
from accountant.numerics.rounding import ULP

HIGHEST_CURVE = 1.25  # in deviations
DEVIATIONS = 9.8
CELLS_PER_OCTAVE = 16  # of mu and of m / mu, in a bound on the density of all
MAX_SHARE = 0.5  # of 1, that errors of first order may be
MIN_MERGED = 600  # members that are summed by cells
CELLS_PER_ROOT = 4.0  # cells to a root of the number of members, at first
MEMBERS_PER_CELL = 2.5  # so few are not worth it
MERGED_ERROR = 4e-10  # of the logarithm
MERGED_POINTS, POINTS_EACH = 8, 4  # of a cell, and of a member, in exponentials


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
        self._factored: dict[float, tuple[FewRows, float]] = {}
        self._merged: dict[float, MergedMembers | None] = {}
        self._sums: tuple[Complex, Array] | None = None
        self._kept_edges: dict[float, tuple[Complex, Complex, Array]] = {}

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
        weight, _ = self._column_sums
        odds = self._kept_odds
        least, total = float(np.min(odds)), np.empty(power.shape)
        for i, p in enumerate(power.tolist()):
            value = float(np.sum((weight * self._kernel(np.array([p + 0j]))[:, 0]).real))
            error = self._rule_error(p) + self._round_off(p)
            total[i] = (max(value, 0.0) + error) / (1 + p * least)
            total[i] += float(ordered_dot(np.log1p(p * odds), self.counts)) * (1 + 1e-12)
        return total

    @property
    def _column_sums(self) -> tuple[Complex, Array]:
        """Return the sums of counts times masses on the nodes, and of their absolute values."""
        if self._sums is None:
            weight, absolute = self._densities.column_sums()
            self._sums = weight * self._speed, absolute * np.abs(self._speed)
        return self._sums

    @property
    def _densities(self) -> DensityRows:
        return DensityRows(self.mu, self.mean, self.counts, self.y)

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

    def _edges(self, share: float = 1.0) -> tuple[Complex, Complex, Array]:
        """Return both edges of the strip and the cut, and bounds on what the rule errs by there."""
        if share not in self._kept_edges:
            y, missed = self._curve.edges(share)
            weight = self._density_bound(y) * missed
            self._kept_edges[share] = np.log1p(np.exp(y)), y, weight
        return self._kept_edges[share]

    def _rule_error(self, p: float) -> float:
        """Return the error of the rule for all members, at a real power."""
        loss, y, weight = self._edges()
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

    def _round_off(self, p: float) -> float:
        """Return the round-off of the sums for all members, over ``|p'| / p``."""
        size = p * (np.abs(self.loss) * np.exp(np.maximum(p * self.loss.real, 0.0)))
        size += p * np.abs(np.exp(self.y))
        total = float(ordered_dot(self._density_ulps, size))
        tail = np.abs(self.cut - self.mean) / self.mu + self.mu
        lost, moved = self.tails
        own = (32 + 4 * np.abs(self.log_odds)) * (lost + p * self._kept_odds)
        # chances above the cut are as inexact as their places
        own += (32 + 4 * tail**2) * (lost + p * np.exp(self.log_odds) * moved)
        total += float(ordered_dot(self.counts, own))
        return ULP * total

    @functools.cached_property
    def _density_ulps(self) -> Array:
        """A bound on the ulps of what is summed for all members, on each node, by cells."""
        count, mu, most, low, high = self._cells
        x, height = self.y.real[:, None], self.y.imag[:, None]
        nearest = np.maximum(np.maximum(low - x, x - high), 0.0)
        size = np.exp(height**2 / (2 * mu * mu) - nearest**2 / (2 * most * most))
        far = (np.maximum(np.abs(x - low), np.abs(x - high)) + height) / mu
        place = np.abs(self.y)[:, None] + np.maximum(np.abs(low), np.abs(high))
        each = DensityRows.fixed_ulps(self.mu.size, self.y)[:, None]
        each = each + 4 * far**2 + 8 * far * place / mu
        bound: Array = ordered_dot(size * each, count / mu) * (1.01 / math.sqrt(2 * math.pi))
        return bound * np.abs(self._speed)

    def factored(self, p: float) -> tuple[FewRows, float]:
        """Return the rows by a basis that is made for the real power, and round-off there."""
        if p not in self._factored:
            self._factored = {p: self._factor(p)}
        return self._factored[p]

    def _factor(self, p: float) -> tuple[FewRows, float]:
        found, sums = self._densities.factored(self.scale(p) * np.abs(self._speed), self._tolerance)
        self._sums = sums[0] * self._speed, sums[1] * np.abs(self._speed)
        return found, self._round_off(p)

    def log_mass(self, p: float) -> Array:
        """Return ``ln E[(1 + e^Y)^p; Y <= cut]`` of each member, rounded up."""
        rows, ulps = self.factored(p)
        moment, _, spread = self._at_real(p)
        # errors of one member are at most those of all
        return np.log(moment + ulps + rows.rest + self._rule_error(p) + spread + 1e-12)

    def _at_real(self, p: float) -> tuple[Array, float, float]:
        """Return ``E[(1 + e^Y)^p; Y <= cut]`` of each member, what rows leave, and round-off."""
        power = np.array([p + 0j])
        inner, left, spread = self._inner(p, self._kernel(power), power)
        moment = 1 + real_by_complex(self._columns(p), inner)[:, 0].real
        return moment, float(left[0].real), float(spread[0])

    def _columns(self, p: float) -> Array:
        rows = self.factored(p)[0].coordinates
        return np.concatenate([rows, self._kept_odds[:, None], -self._lost[:, None]], axis=1)

    def _inner(self, p: float, kernel: Complex, power: Complex) -> tuple[Complex, Complex, Array]:
        """Return what columns are multiplied by, what rows leave of first order, and round-off."""
        kernel = kernel * (self._speed / (self.scale(p) * np.abs(self._speed)))[:, None]
        inner, left, spread = self.factored(p)[0].inner(kernel)
        spread += 8 * ULP * float(np.sum(self.counts))  # of 1 + x and what follows
        inner = np.concatenate([inner, power[None, :], np.ones((1, power.size))])
        return inner, left, spread

    def log_decay(self, p: float, u: Array) -> Array:
        """Return a bound on the sum of counts times the logarithms of ratios, for every v >= u.

        Of ``|E[(1+e^Y)^{p+iv}; Y <= cut]| / E[(1+e^Y)^p; Y <= cut]``.
        """
        rows, ulps = self.factored(p)
        moment, _, spread = self._at_real(p)
        away = ulps + rows.rest + self._rule_error(p) + spread + 1e-12
        least: Array = np.log(np.maximum(moment - away, 1e-300))[:, None]
        left = p * float(np.logaddexp(0.0, self.y[0].real))
        left = float(np.sum(self.counts)) * 1e-21 * math.exp(min(left, 700.0))
        found = log_transforms_below_cut(
            (self.mu, self.mean), self._curve, p, u, self._edges, left + self._beyond(p)
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
            ratio = real_by_complex(columns[part], inner)
            most = np.maximum(most, _greatest(ratio.real) + _greatest(ratio.imag))
            ratio += 1
            ratio /= moment[part, None]
            product *= product_of_powers(ratio, self.counts[part])
        return product, most

    def _error(self, p: float, growth: Array, most: Array) -> Array:
        """Return the error of the sum of logarithms; ``most``: the greatest ``|x|`` of the rows."""
        rows, ulps = self.factored(p)
        first_order = ulps * growth + self._rule_error(p) * growth**2
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


def _greatest(rows: Array) -> Array:
    """Return the greatest absolute value of each column."""
    found: Array = np.maximum(np.max(rows, axis=0), -np.min(rows, axis=0))
    return found
