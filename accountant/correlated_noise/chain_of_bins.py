"""One of many bins with neighbouring bins alike: pairs above and below such mixtures.

A record is in one random bin of t.  Bin b moves the answers by a vector s_b, and under Q, without
the record, P / Q is the mean of the ratios ``V_b = exp(X_b - d / 2)`` of all bins, X_b a Gaussian
vector whose covariances are the inner products of the s_b.  Here these fall geometrically with the
distance of two bins: X is a Markov chain.  Put on a lattice, the law of the sum S of the V_b is
computed bin by bin, from positive terms.

Above: what lies between two points of the lattice is split between them, and keeps its mean, which
raises E f(S) for every convex f.  Below: the chain is split after it was given a little less
variance than the split adds.

Proof: `docs/proofs/bins_in_a_chain.md`.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple, final

import numpy as np

from accountant.correlated_noise.gram_bounds import Places
from accountant.domains import Interval
from accountant.losses.finite_pair import PairLoss
from accountant.numerics import Array

# Distances of lattice points of S: beside its mean, in deviations of one V, how they grow with the
# distance below the mean, and with S at the bottom; and of X in deviations of its innovations.
SUM_STEP, GROWTH_BELOW, GROWTH_FROM_ZERO, INNOVATION_STEP = 0.15, 0.015, 0.04, 0.5
BOTTOM = 1e-6  # between 0 and which S has no point
START_STEP = 0.6  # of the first bin of a cycle, whose value the last bins depend on
DEVIATIONS = 8.5  # of X, up to which the lattice reaches where it must
SPLIT_VARIANCE = 0.4  # of a split, in squared steps, that is enough for a Gaussian to be above it
SAFETY = 1e-8  # relative, for the round-off of all sums of positive terms
TINY = 1e-100  # a mass whose digits may be lost
CHAIN = range(2, 1001)  # numbers of bins of a chain
SQUARES = Interval(1e-3, 30.0)  # the variances of X whose V are neither all alike nor too far apart


class Resolution(NamedTuple):
    """Distances of points of X, in its deviations, and how those of S grow above its mean."""

    point_step: float
    growth_above: float


FINE, COARSE = Resolution(0.15, 0.04), Resolution(0.2, 0.06)


def resolution(bins: int) -> Resolution:
    """Return the finer one where that takes a second or two."""
    return FINE if bins <= CHAIN[-1] // 8 else COARSE


class Cells(NamedTuple):
    """Where sums lie once V of a point is added: for every point and sum, the cell, and how far."""

    cells: Places
    shares: Array
    size: int  # of the sums after

    def added(self, masses: Array) -> Array:
        """Return the masses by point and sum, split to the two ends of their cells."""
        upper = masses * self.shares
        offsets = self.size * np.arange(len(masses))[:, None]
        cells, total = (self.cells + offsets).ravel(), self.size * len(masses)
        flat = np.bincount(cells, (masses - upper).ravel(), minlength=total).astype(float)
        flat += np.bincount(cells + 1, upper.ravel(), minlength=total)
        return flat.reshape(len(masses), self.size)


@final
class SumLattice:
    """The points of X, V at these points, and those of the sum of b times V, less b.

    Where sums near 0 count, their points depend on b.
    """

    def __init__(
        self, variance: float, bins: int, low: float, high: float, step: float, to_zero: bool
    ) -> None:
        self.points = np.linspace(low, high, math.ceil((high - low) / step) + 1)
        self.ratios = np.exp(self.points - variance / 2)
        self._bins, self._to_zero = bins, to_zero
        self._scale = SUM_STEP * min(math.sqrt(math.expm1(min(variance, 2.0))), 2.0)
        self._cells: dict[int, Cells] = {}

    def sums(self, number: int) -> Array:
        """Return the points of a sum of so many V, less their number."""
        growth_above = resolution(self._bins).growth_above
        greatest = self._bins * max(float(self.ratios[-1]), 2.0)
        above = _growing_steps(greatest, self._scale, growth_above)
        if not self._to_zero:
            below = _growing_steps(self._bins + 1.0, self._scale, GROWTH_BELOW)
            return np.concatenate([-below[:0:-1], above])
        if number == 0:
            return np.zeros(1)
        below = _growing_steps(number / 2, self._scale, GROWTH_BELOW)
        below = below[below < number]
        nearest = number - float(below[-1])
        count = math.ceil(math.log(nearest / BOTTOM) / GROWTH_FROM_ZERO)
        near_zero = nearest * np.exp(-GROWTH_FROM_ZERO * np.arange(count, 0, -1))
        return np.concatenate([[-number], near_zero - number, -below[:0:-1], above])

    def first(self, masses: Array) -> Array:
        """Return the masses of points as masses by point and sum: that of one V."""
        start = np.zeros((masses.size, self.sums(0).size))
        start[:, int(np.searchsorted(self.sums(0), 0.0))] = masses
        return self.added(start, 1)

    def added(self, masses: Array, number: int) -> Array:
        """Return the masses after V, which is now the sum's last of so many, was added."""
        before = number - 1 if self._to_zero else 0
        if before not in self._cells:
            if len(self._cells) > CHAIN[-1] // 32:  # those of a cycle are used for each start
                self._cells.clear()
            values = self.sums(before) + (self.ratios - 1)[:, None]
            self._cells[before] = cells_of(values, self.sums(before + 1))
        return self._cells[before].added(masses)


def cells_of(values: Array, ends: Array) -> Cells:
    """Return the cells between neighbouring ends that values lie in; values beyond are moved."""
    cells = np.clip(np.searchsorted(ends, values, side="right") - 1, 0, ends.size - 2)
    shares = np.clip((values - ends[cells]) / np.diff(ends)[cells], 0.0, 1.0)
    return Cells(cells, shares, ends.size)


def _growing_steps(end: float, scale: float, growth: float) -> Array:
    """Return numbers from 0 to ``end`` or above, in steps that grow with the number."""
    count = math.ceil(math.asinh(end * growth / scale) / growth)
    steps: Array = scale / growth * np.sinh(growth * np.arange(count + 1))
    return steps


def split_normal(
    points: Array, means: Array, deviation: float, by_ratio: bool, keeps_low: bool
) -> Array:
    """Return the masses of N(mean, deviation^2) at the points, a row for each mean.

    What is between two points is split so that the mean of x is kept, or ``by_ratio`` that of e^x.
    Below the first point it joins that point if ``keeps_low``, and above the last one it is left
    out; else it is left out below, and joins above.
    """
    from scipy.special import ndtr

    def cell_masses(z: Array) -> Array:
        below = np.diff(ndtr(z), axis=1)
        masses: Array = np.where(z[:, 1:] <= 0, below, -np.diff(ndtr(-z), axis=1))
        return masses

    z = (points - means[:, None]) / deviation
    mass = cell_masses(z)
    if by_ratio:
        values = np.exp(points)
        moment = np.exp(means[:, None] + deviation**2 / 2) * cell_masses(z - deviation)
    else:
        values = points
        density = np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        moment = means[:, None] * mass - deviation * np.diff(density, axis=1)
    upper = np.clip((moment - values[:-1] * mass) / np.diff(values), 0.0, mass)
    rows = np.zeros(z.shape)
    rows[:, :-1] += mass - upper
    rows[:, 1:] += upper
    if keeps_low:
        rows[:, 0] += ndtr(z[:, 0])
    else:
        rows[:, -1] += ndtr(-z[:, -1])
    return rows


def _point_step(correlation: float, scale: Resolution) -> float:
    """Return the distance of two points of X, in its standard deviations."""
    return min(scale.point_step, INNOVATION_STEP * math.sqrt(1 - correlation**2))


@functools.lru_cache(maxsize=64)
def chain_above(
    variance: float, correlation: float, bins: int, is_cycle: bool
) -> tuple[PairLoss, PairLoss]:
    """Return a pair for the removed record, and one for the added, each above a chain of bins.

    The inner product of two bins at distance k is ``variance`` times ``correlation**k``; of a cycle
    at least that for both ways round.  Both are pairs (P, Q), above the chain in both directions;
    the first is near it for the loss ln P / Q, the second for ln Q / P.
    """
    deviation = math.sqrt(variance)
    step = _point_step(correlation, resolution(bins)) * deviation
    # The variance of X, and what splits can add to it: at most a squared step over 4 each.
    added_variance = step**2 / 4 / (1 - correlation**2)
    added_variance += (START_STEP * deviation) ** 2 / 4 if is_cycle else 0.0
    total_variance = variance + added_variance
    high = total_variance + DEVIATIONS * math.sqrt(total_variance)
    # The mean of S where some X is above `high`, by Chernoff's bound.
    beyond = bins * math.exp((added_variance - DEVIATIONS**2) / 2)
    removed = SumLattice(variance, bins, -5 * deviation, high, step, to_zero=False)
    masses, ratios = _law_above(removed, variance, correlation, bins, is_cycle, by_ratio=False)
    for_removed = pair_above(masses * ratios, masses, beyond)
    step = _point_step(correlation, COARSE) * deviation
    added = SumLattice(variance, bins, -DEVIATIONS * deviation, 7 * deviation, step, to_zero=True)
    masses, ratios = _law_above(added, variance, correlation, bins, is_cycle, by_ratio=True)
    left_out = max(1 - float(masses.sum()), 0.0)
    for_added = pair_above(masses[::-1], (masses * ratios)[::-1], left_out).reversed
    return for_removed, for_added


def _law_above(
    lattice: SumLattice,
    variance: float,
    correlation: float,
    bins: int,
    is_cycle: bool,
    by_ratio: bool,
) -> tuple[Array, Array]:
    """Return the masses of S, all splits with means kept, and S / t at these."""
    points, deviation = lattice.points, math.sqrt(variance)
    ends = {"by_ratio": by_ratio, "keeps_low": not by_ratio}
    sums = lattice.sums(bins)
    ratios = np.maximum(1 + sums / bins, 0.0)
    if not is_cycle:
        innovation = deviation * math.sqrt(1 - correlation**2)
        kernel = split_normal(points, correlation * points, innovation, **ends)
        masses = lattice.first(split_normal(points, np.zeros(1), deviation, **ends)[0])
        for number in range(2, bins + 1):
            masses = lattice.added(np.einsum("ij,is->js", kernel, masses), number)
        return masses.sum(axis=0), ratios
    # Of a cycle the first X is drawn on a coarse lattice; given it, the others are a Markov chain.
    covariance = correlation ** np.arange(bins + 1)
    covariance = variance * (covariance + covariance[::-1]) / (1 + correlation**bins)
    count = math.ceil((points[-1] - points[0]) / (START_STEP * deviation)) + 1
    starts = np.linspace(points[0], points[-1], count)
    weights = split_normal(starts, np.zeros(1), deviation, **ends)[0]
    # Masses by start and sum: each is a point of its own.
    by_start = cells_of((np.exp(starts - variance / 2) - 1)[:, None], lattice.sums(1))
    after_first = by_start.added(weights[:, None])
    total = np.zeros(sums.size)
    for start, of_start in zip(starts.tolist(), after_first, strict=True):
        masses = np.zeros((1, of_start.size))
        masses[0], means = of_start, np.zeros(1)
        for b in range(1, bins):  # X_b, given the one before and the first one
            joint = np.array([[variance, covariance[b - 1]], [covariance[b - 1], variance]])
            products = covariance[[1, b]]
            if b == 1:
                slopes = np.array([0.0, covariance[1] / variance])
            else:
                slopes, means = np.linalg.solve(joint, products), points
            innovation = math.sqrt(variance - float((slopes * products).sum()))
            kernel = split_normal(points, slopes[0] * means + slopes[1] * start, innovation, **ends)
            masses = lattice.added(np.einsum("ij,is->js", kernel, masses), b + 1)
        total += masses.sum(axis=0)
    return total, ratios


@functools.lru_cache(maxsize=64)
def chain_below(
    variance: float, correlation: float, bins: int, block: int, idle: int = 0
) -> PairLoss:
    """Return a pair below that of bins in blocks, between which inner products are 0.

    The inner product of two bins of a block at distance k is at least ``variance`` times
    ``correlation**k``.  In ``idle`` more bins a record moves nothing.
    """
    deviation = math.sqrt(variance)
    step = _point_step(correlation, resolution(bins)) * deviation
    high = variance + DEVIATIONS * deviation
    lattice = SumLattice(variance, bins, -5.5 * deviation, high, step, to_zero=False)
    points, spared = lattice.points, SPLIT_VARIANCE * step**2
    innovation = math.sqrt(variance * (1 - correlation**2) - spared)
    kernel = split_normal(points, correlation * points, innovation, False, False)
    alone = split_normal(points, np.zeros(1), math.sqrt(variance - spared), False, False)[0]
    # By point and sum: the masses, and the means of all V so far on them.
    masses = lattice.first(alone)
    means = lattice.first(alone * lattice.ratios)
    for b in range(1, bins):
        if b % block:
            masses, means = (np.einsum("ij,is->js", kernel, m) for m in (masses, means))
        else:
            masses, means = (alone[:, None] * m.sum(axis=0) for m in (masses, means))
        means = lattice.added(means + masses * lattice.ratios[:, None], b + 1)
        masses = lattice.added(masses, b + 1)
    q = masses.sum(axis=0)
    p = (means.sum(axis=0) + idle * q) / (bins + idle)
    return pair_below(p * (1 - SAFETY), q * (1 + SAFETY))


def pair_above(p: Array, q: Array, infinity: float) -> PairLoss:
    """Return a pair above ``sum (p_i - k q_i)_+ + infinity`` at all k, p / q in ascending order.

    The true profile is a convex function of k, and 1 at k = 0.  So it is below the tangent from
    there: the outcomes of the least ratios give up what p has too much.
    """
    p, q = p * (1 + SAFETY), q * (1 - SAFETY)
    is_tiny = np.minimum(p, q) < TINY  # its digits may be lost
    infinity += float(p[is_tiny].sum())
    p, q = p[~is_tiny], q[~is_tiny]
    excess = max(float(p.sum()) + infinity - 1, 0.0)
    taken = np.minimum(np.maximum(excess - (np.cumsum(p) - p), 0.0), p)
    p = p - taken
    infinity += max(1 - infinity - float(p.sum()), 0.0)
    p = np.concatenate([[0.0], p, [infinity]])
    q = np.concatenate([[max(1 - float(q.sum()), 0.0)], q, [0.0]])
    is_seen = (p > 0) | (q > 0)
    p, q = p[is_seen], q[is_seen]
    return PairLoss((p / p.sum()).tolist(), (q / q.sum()).tolist())


def pair_below(p: Array, q: Array) -> PairLoss:
    """Return a pair below ``sum (p_i - k q_i)_+`` at all k.

    All outcomes of the least ratios become one, with what is missing of 1 in p and in q, as many
    as keep its ratio below the others'.  Its line is a tangent of the given function.
    """
    is_seen = np.minimum(p, q) >= TINY
    p, q = p[is_seen], q[is_seen]
    order = np.argsort(p / q)
    p, q = p[order], q[order]
    below_p, below_q = 1 - p[::-1].cumsum()[::-1], 1 - q[::-1].cumsum()[::-1]
    fits = (below_q > 0) & (below_p >= 0) & (below_p * q <= p * np.maximum(below_q, 0.0))
    start = int(np.flatnonzero(fits)[0])
    p, q = np.append(below_p[start], p[start:]), np.append(below_q[start], q[start:])
    return PairLoss((p / p.sum()).tolist(), (q / q.sum()).tolist())
