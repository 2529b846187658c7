"""Moments and transforms of many sampled Gaussians of similar mu, on one path of integration.

A member is N(m, mu^2) = Y without the record, and its likelihood ratio is (1 + e^Y) (1 - rate).
Wanted are E[(1 + e^Y)^s; Y <= c] for all members at complex s, with and without the factor phi(Y)
of `SimilarParts.phi`.  They are integrals over a `Path` that all members share: a line above the
real one, or a curve that ends at the cut c (`rules_to_cut`).  On it no frequency Im s oscillates.

Proof: `docs/proofs/schedules.md`, the parts of a schedule.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from accountant.amplification.sampled_gaussian.rules_to_cut import (
    LAST_PARAMETER,
    STRIP,
    STRIP_DEPTH,
    place_on_curve,
)
from accountant.amplification.sampled_gaussian.sampled_schedule import (
    DEVIATIONS,
    Index,
    blocks_of,
    complex_products,
    log_one_plus_exp,
    product_of_powers,
    products,
)
from accountant.numerics import Array, Complex
from accountant.numerics.logspace import log1p
from accountant.numerics.ordered_sums import ordered_dot
from accountant.numerics.rounding import MAX_EXPONENT, ULP, UNDERFLOW

NATS = 48.0  # a rule errs by about e^-48 of the integrals on the edges of its strip
POWER_OF_SPLIT = 12  # phi begins as e^{12 y}: greater powers make its transform fall faster
# Heights of a path on which a transform is bounded, as shares of its own.
SHARES = 2.0 ** -np.arange(0.0, 10.0, 0.75)
SAMPLE = 48  # members by which the best of these heights is chosen
# Rows that span the terms of a group: found among so many members, down to a share of the longest
# row, which is about the round-off of the terms.
SAMPLE_ROWS = 200
SHORTEST = 1e-14


@dataclass(frozen=True, slots=True)
class Path:
    """The points of a trapezoid rule: on a line, or on a curve to a cut where that is finite."""

    t: Array
    step: float
    height: float
    cut: float

    @classmethod
    def line(cls, low: float, high: float, height: float) -> Path:
        """Return a rule on the line Im y = height, whose strip ends at the real line."""
        step = 2 * math.pi * height / NATS
        return cls(
            low + step * np.arange(math.ceil((high - low) / step) + 1.0), step, height, math.inf
        )

    @classmethod
    def to_cut(cls, low: float, cut: float, height: float) -> Path:
        """Return a rule on the curve to a cut."""
        step, leftmost = 2 * math.pi * STRIP / NATS, -(cut - low) / height
        count = math.ceil((LAST_PARAMETER - leftmost) / step) + 1.0
        return cls(leftmost + step * np.arange(count), step, height, cut)

    def points(self, share: float = 1.0, turn: float = 0.0) -> tuple[Complex, Complex]:
        """Return the points y at a share of the height, and ``ln(step dy / dt)``.

        With a ``turn``, those at Im t = turn, on a side of the strip.
        """
        y: Any
        speed: Any
        if math.isinf(self.cut):
            y, speed = self.t + 1j * (share * self.height + turn), np.ones(self.t.size, complex)
        else:
            t: Any = self.t + 1j * turn if turn else self.t
            y, speed = place_on_curve(t, self.cut, self.height, share * self.height)
        return y, np.log(self.step * speed)

    def edges(self) -> list[tuple[Complex, Complex]]:
        """Return the points on both edges of the strip, and the logarithms there."""
        strip = self.height if math.isinf(self.cut) else STRIP
        return [self.points(turn=strip), self.points(turn=-strip)]


class FewRows(NamedTuple):
    """A few orthonormal rows, which nearly span the terms of all members of a group."""

    basis: Array  # real and imaginary parts, one after the other

    @classmethod
    def of(cls, terms: Complex) -> FewRows:
        """Return rows that span some terms: in turn, the longest row that is left of them."""
        rows = np.concatenate([terms.real, terms.imag], axis=1)
        basis: list[Array] = []
        longest = 0.0
        while len(basis) < rows.shape[0]:
            square = np.einsum("ik,ik->i", rows, rows)
            index = int(np.argmax(square))
            longest = longest or float(square[index])
            if not square[index] > SHORTEST**2 * longest:
                break
            row = rows[index] / math.sqrt(square[index])
            for earlier_row in basis:  # again, for round-off
                row = row - float(ordered_dot(earlier_row, row)) * earlier_row
            row /= math.sqrt(float(ordered_dot(row, row)))
            basis.append(row)
            rows = rows - np.outer(ordered_dot(rows, row), row)
        return cls(np.array(basis).reshape(len(basis), -1))

    def sums(self, phases: Complex) -> Complex:
        """Return the sums of the rows times phases, as the right factor of `complex_products`."""
        points = self.basis.shape[1] // 2
        complex_rows = self.basis[:, :points] + 1j * self.basis[:, points:]
        return np.ascontiguousarray(complex_products(complex_rows, phases).T)

    def coordinates(self, terms: Complex) -> tuple[Array, Array]:
        """Return coordinates of terms, and what these miss of any sum times phases."""
        rows = np.concatenate([terms.real, terms.imag], axis=1)
        coordinates = products(rows, self.basis)
        rows -= products(coordinates, np.ascontiguousarray(self.basis.T))
        missed = np.sum(np.abs(rows), axis=1)
        # Of coordinates times sums, whose sizes are at most the 1-norms of the rows, and of those.
        rank, width = self.basis.shape
        ulps = (rank + width / 16 + 64) * np.sum(np.abs(self.basis), axis=1)
        return coordinates, missed + ULP * ordered_dot(np.abs(coordinates), ulps)


def log_beyond(t: Any, path: Path, mu: Any, mean: Any) -> Any:
    """Return a bound on ``ln int |n(y) dy|`` on a curve to a cut beyond t, and on its edges."""
    # As in `places_to_cut`, with y = mean + mu x.
    softplus = np.logaddexp(0.0, -t)
    nearest = path.cut - path.height * (softplus + np.minimum(softplus, 0.35))
    distance = np.maximum((nearest - mean) / mu, 0.0)
    return np.log(2 * path.height * softplus / mu) - distance**2 / 2 + STRIP_DEPTH**2 / 2


class Moments(NamedTuple):
    """Moments of all members of a group at real powers s: a row for each member.

    ``log_mass`` is ln E (1 + e^Y)^s, up to a relative error of the mass; ``hit_share`` is the share
    of phi in it, up to ``hit_error``.  ``missed`` is what the rule misses of the mass, or of that
    in phi where there is a split.
    """

    log_mass: Array
    mass_error: Array
    hit_share: Array
    hit_error: Array
    missed: Array


class Nodes(NamedTuple):
    """What the nodes of a contour ask for: over all members, M and H being moments without and
    with phi, over M at the real part.

    ``ratio`` is the product of all M, ``hits`` the sum of -ln(1 - H / M), ``least_kept`` the least
    |M - H|.  An error is a pair (c0, c1) of a bound ``c0 + c1 |Im z|``.
    """

    ratio: Complex
    hits: Complex
    least_kept: float
    ratio_error: Array
    hits_error: Array


@dataclass(frozen=True, eq=False)
class SimilarParts:
    """Members of similar mu and odds, a path for them, and the logarithm of the scale of phi.

    Where ``log_scale`` is -inf there is no split, and phi is 1.  ``without_great_losses``: the part
    with the factor 1 - phi takes the place of all outcomes.
    """

    mu: Array
    log_odds: Array
    counts: Array
    path: Path
    log_scale: float
    without_great_losses: bool = False

    @property
    def mean(self) -> Array:
        """The means m of Y without the record."""
        return self.log_odds - self.mu * self.mu / 2

    @property
    def is_split(self) -> bool:
        """Whether moments with phi are asked for beside those of all outcomes."""
        return self.log_scale > -math.inf and not self.without_great_losses

    def phi(self, y: Complex) -> Complex:
        """Return phi at points, 1 where there is no split."""
        if not self.is_split:
            return np.ones(y.shape, dtype=complex)
        return np.exp(POWER_OF_SPLIT * log_of_split(y, self.log_scale))

    def log_column(self, power: float, y: Complex, log_speed: Complex) -> Complex:
        """Return ``ln((1 + e^y)^power dy)``, and ln(1 - phi) with it where that is a factor."""
        column: Complex = power * log_one_plus(y) + log_speed
        if self.without_great_losses:
            others = -np.expm1(POWER_OF_SPLIT * log_of_split(y, self.log_scale))
            column += np.log(np.where(others == 0, UNDERFLOW, others))
        return column

    def sizes(self, column: Array, y: Complex, members: Index) -> Iterator[tuple[slice, Array]]:
        """Yield ``|n(y)| e^column`` for blocks of members."""
        for block in blocks_of(members.size, y.size):
            mu, mean = self.mu[members[block], None], self.mean[members[block], None]
            square = ((y.real - mean) / mu) ** 2 - (y.imag / mu) ** 2
            yield block, np.exp(column - square / 2 - np.log(mu * math.sqrt(2 * math.pi)))

    def missed(self, base: float, powers: Array, members: Index) -> tuple[Array, Array]:
        """Return what the rule misses of moments, and of those with phi, at real powers."""
        missed = np.zeros((members.size, powers.size))
        missed_hits = np.zeros((members.size, powers.size))
        for y, log_speed in self.path.edges():
            loss = np.maximum(log_one_plus(y).real, 0.0)
            growth = np.exp(np.maximum(powers - base, 0.0)[:, None] * loss)
            growth_of_hits = growth * np.abs(self.phi(y))
            # (1 + e^y)^power at the greater of 0 and its own power bounds all smaller ones.
            column = self.log_column(base, y, log_speed).real
            column += base * (loss - log_one_plus(y).real)
            for block, size in self.sizes(column, y, members):
                missed[block] += products(size, growth)
                missed_hits[block] += products(size, growth_of_hits)
        share = 2 * math.exp(-NATS)
        low = float(self.path.points()[0][0].real)
        before = 64 * np.exp(powers * np.logaddexp(0.0, low) - DEVIATIONS**2 / 2)
        # |phi| is at most |e^y / scale|^12, which grows with Re y.
        log_split = POWER_OF_SPLIT * (low - self.log_scale)
        before_hits = before * math.exp(min(log_split, math.log(2.0) * POWER_OF_SPLIT))
        beyond = self.beyond(powers, members)
        return missed * share + before + beyond, missed_hits * share + before_hits + beyond

    def beyond(self, powers: Array, members: Index) -> Array:
        """Return what lies beyond the last point, of moments."""
        if self.without_great_losses:
            return np.zeros((members.size, powers.size))  # see `Schedule.without_great_losses`
        mu, mean = self.mu[members, None], self.mean[members, None]
        end, cut = float(self.path.t[-1]), self.path.cut
        if math.isinf(cut):
            # (1 + e^y)^s <= (1 + e^-end)^s e^{sy}, and n(y) e^{sy} is a shifted normal density.
            log_size = powers * (mean + float(np.logaddexp(0.0, -end))) + (powers * mu) ** 2 / 2
            distance = np.maximum((end - mean) / mu - powers * mu, 0.0)
            log_size += math.log(16) - distance**2 / 2
        else:
            log_size = log_beyond(end, self.path, mu, mean) + powers * float(np.logaddexp(0.0, cut))
        result: Array = np.exp(np.minimum(log_size, MAX_EXPONENT))
        return result

    def moments(self, base: float, powers: Array) -> Moments:
        """Return moments at real powers; those near ``base`` are the most exact."""
        y, log_speed = self.path.points()
        loss, phi = log_one_plus(y), self.phi(y)
        growth = np.exp((powers - base)[:, None] * loss)
        # A term is inexact by ulps of its exponent, and by those of the point y and of m in it.
        column_ulps = y.size / 16 + 32 + 2 * np.abs(log_speed)
        if self.log_scale > -math.inf:
            column_ulps = column_ulps + 100 + 2 * POWER_OF_SPLIT * np.abs(y)
        column_ulps = column_ulps + np.maximum(powers, base)[:, None] * phase_ulps(y)
        ulps_of_growth = np.abs(growth) * column_ulps
        column = self.log_column(base, y, log_speed)
        shape = self.mu.size, powers.size
        log_mass, mass_error = np.empty(shape), np.empty(shape)
        hit_share, hit_error = np.zeros(shape), np.zeros(shape)
        missed, missed_hits = self.missed(base, powers, np.arange(self.mu.size))
        for block in blocks_of(self.mu.size, y.size):
            mu, mean = self.mu[block, None], self.mean[block, None]
            deviation = (y - mean) / mu
            exponent = column - deviation**2 / 2 - np.log(mu * math.sqrt(2 * math.pi))
            top = np.max(exponent.real, axis=1, keepdims=True)
            term, far = np.exp(exponent - top), np.abs(deviation)
            size, scale = np.abs(term), np.exp(-top)
            magnitude = np.abs(y) + np.abs(self.log_odds[block, None]) + mu * mu + 1
            far_size = size * far * (4 * far + 2 * magnitude / mu)
            mass = complex_products(term, growth).real
            error = ULP * (products(size, ulps_of_growth) + products(far_size, np.abs(growth)))
            error += missed[block] * scale
            log_mass[block], mass_error[block] = np.log(mass) + top, error / mass
            if self.is_split:
                hits = complex_products(term * phi, growth).real
                hits_error = products(size, ulps_of_growth * np.abs(phi))
                hits_error += products(far_size, np.abs(growth * phi))
                hits_error = ULP * hits_error + missed_hits[block] * scale
                hit_share[block] = hits / mass
                hit_error[block] = (hits_error + hits * (error / mass)) / mass
        missed = missed_hits if self.is_split else missed
        return Moments(log_mass, mass_error, hit_share, hit_error, missed)

    def nodes(self, power: float, z: Complex, height: Moments) -> Nodes:
        """Return what a contour asks for on nodes Re z + 1 = power, given the moments there."""
        y, log_speed = self.path.points()
        loss, phi = log_one_plus(y), self.phi(y)
        rows = np.exp(1j * np.outer(z[:, 0].imag, loss))
        columns = np.exp(1j * np.outer(z[0].imag, loss))
        ratio, hits = np.ones(z.shape, dtype=complex), np.zeros(z.shape, dtype=complex)
        column, column_ulps = self.log_column(power, y, log_speed), phase_ulps(y)

        def terms(members: Any) -> Complex:
            """Return the terms of M over M at the real part, on the path."""
            mu = self.mu[members, None]
            exponent = column - ((y - self.mean[members, None]) / mu) ** 2 / 2
            exponent -= np.log(mu * math.sqrt(2 * math.pi)) + height.log_mass[members]
            return np.exp(exponent)

        order = np.lexsort([self.mean, self.mu])
        sample = order[np.unique(np.linspace(0, order.size - 1, SAMPLE_ROWS).astype(np.intp))]
        sample_terms = terms(sample)
        kinds = [FewRows.of(sample_terms)]
        if self.is_split:
            kinds.append(FewRows.of(sample_terms * phi))
        sums = [[few.sums(rows[row] * columns) for few in kinds] for row in range(z.shape[0])]
        growing, growing_hits, least_kept = 0.0, 0.0, 1.0
        error, hits_error = 2 * height.mass_error[:, 0] + 8 * ULP, 2 * height.hit_error[:, 0]
        for block in blocks_of(self.mu.size, max(y.size, z.shape[1])):
            count, term = self.counts[block], terms(block)
            size = np.abs(term)
            growing += float(ordered_dot(ordered_dot(size, column_ulps), count))
            growing_hits += float(ordered_dot(ordered_dot(size, column_ulps * np.abs(phi)), count))
            coordinates, left_out = kinds[0].coordinates(term)
            error[block] += left_out
            if self.is_split:
                hit_coordinates, left_out = kinds[1].coordinates(term * phi)
                hits_error[block] += 2 * left_out
            for row in range(z.shape[0]):
                moment = complex_products(coordinates, sums[row][0])
                ratio[row] *= product_of_powers(moment, count)
                if self.is_split:
                    hit = complex_products(hit_coordinates, sums[row][1])
                    hits[row] -= np.einsum("i,iu->u", count, log1p(-hit / moment))
                    least_kept = min(least_kept, float(np.min(np.abs(moment - hit))))
        # With |M - H| >= 1/2 the logarithm errs by at most twice the error of H / M.
        hits_error += (height.hit_share + height.hit_error)[:, 0] * (4 * error + 64 * ULP)
        fixed, fixed_hits = ordered_dot(error, self.counts), ordered_dot(hits_error, self.counts)
        of_ratio = np.array([fixed, ULP * growing])
        of_hits = np.array([fixed_hits, ULP * (2 * growing_hits + 4 * growing)])
        return Nodes(ratio, hits, least_kept, of_ratio, of_hits)

    @functools.lru_cache(maxsize=64)  # noqa: B019
    def lowered(self, power: float, share: float) -> tuple[Complex, Array, Array]:
        """Return a path of a share of the height: points, ln of the sizes there, and arguments."""
        y, log_speed = self.path.points(share)
        column = self.log_column(power, y, log_speed).real + np.log(np.abs(self.phi(y)))
        return y, column, log_one_plus(y).imag

    def log_transforms(self, power: float, u: Array, height: Moments) -> Array:
        """Return bounds for every frequency ``v >= u``, summed over the members.

        They are those on ln |M| over M at the real part; where there is a split, those on |H| over
        M - H at the real part.
        """
        sample = np.unique(np.linspace(0, self.mu.size - 1, SAMPLE).astype(np.intp))
        at_shares = [
            self.log_transforms_on(power, u, height, sample, share) for share in SHARES.tolist()
        ]
        best, everyone = np.argmin(at_shares, axis=0), np.arange(self.mu.size)
        bound = np.empty(u.shape)
        for index in np.unique(best).tolist():
            share = float(SHARES[index])
            chosen = u[best == index]
            bound[best == index] = self.log_transforms_on(power, chosen, height, everyone, share)
        return bound

    def log_transforms_on(
        self, power: float, u: Array, height: Moments, members: Index, share: float
    ) -> Array:
        """Return `log_transforms` of some members by a path of this share of the height.

        On it |M| is at most ``int |n| |1 + e^y|^power e^{-v arg(1 + e^y)} |dy|``, which falls.
        """
        y, column, angle = self.lowered(power, share)
        phases = np.exp(-np.outer(u, angle))
        missed = height.missed[members, 0]
        share_without_hit = np.maximum(
            1 - height.hit_share[members, 0] - height.hit_error[members, 0], 1e-9
        )
        total = np.zeros(u.shape)
        for block, size in self.sizes(column, y, members):
            scale = np.exp(-height.log_mass[members[block]])
            scale *= 1 + 1e-9 + 2 * height.mass_error[members[block]]
            bound = (products(size, phases) + 2 * missed[block, None]) * scale
            bound = (
                bound / share_without_hit[block, None]
                if self.is_split
                else np.log(np.minimum(bound, 1.0))
            )
            total += np.einsum("i,iu->u", self.counts[members[block]], bound)
        return total


def log_of_split(y: Complex, log_scale: float) -> Complex:
    """Return ``ln(1 - e^{-zeta})``, zeta = e^y / scale: phi is e to twelve times this."""
    zeta = np.exp(np.minimum(y.real, 300.0) - log_scale + 1j * y.imag)
    is_near = zeta.real < 0.5
    log_near_zero = np.log(-np.expm1(-np.where(is_near, zeta, 0.5)))
    result: Complex = np.where(
        is_near, log_near_zero, log1p(-np.exp(-np.where(is_near, 0.5, zeta)))
    )
    return result


def log_one_plus(y: Complex) -> Complex:
    """Return ``ln(1 + e^y)``."""
    result: Complex = log_one_plus_exp(y.real, y.imag).astype(complex)
    return result


def phase_ulps(y: Complex) -> Array:
    """Return the ulps of ln(1 + e^y), those of y in it among them."""
    loss = log_one_plus(y)
    ulps: Array = 4 * np.abs(loss) + 2 * np.exp(y.real - loss.real) * np.abs(y)
    return ulps
