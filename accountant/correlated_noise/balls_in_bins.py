"""Balls in bins for a matrix mechanism: a record is used in every B-th step from a random one on.

Bin b moves the rows by s_b, the sum of the columns b, b + B, b + 2 B, ... of C.  The inner products
of the s_b decide what the run costs, and greater ones cost more.  Bounds come from inner products
that are nowhere below, or nowhere above, and of a form that can be computed:

- all pairs of bins alike: one Gaussian for what bins share, and a random allocation of the rest;
- falling geometrically with the distance of two bins (`chain_of_bins`).

The pair of a random rotation of some of the bins is above that of all bins: they may be chosen far
apart, or without a gap's worth of neighbours.

References: Chua et al. (2024), arXiv 2412.16802; Choquette-Choo, Ganesh, Haque, Steinke & Thakurta
(2024), arXiv 2410.06266, for the pair.  Proof: `docs/proofs/bins_in_a_chain.md`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from accountant.amplification.exchanged_record import NO_LOSS
from accountant.amplification.random_allocation import RandomAllocation
from accountant.composition.composed_loss import loss_of_plan
from accountant.correlated_noise.chain_of_bins import CHAIN, SQUARES, chain_above, chain_below
from accountant.correlated_noise.sampled_steps import (
    PRODUCT_ERROR,
    Bounds,
    SampledSteps,
    WithGaussian,
    column_products,
    greatest_of,
    least_of,
    mixture_of_shifts,
)
from accountant.correlated_noise.strategy import MAX_ENTRIES, STEPS, Strategy
from accountant.errors import ParameterError
from accountant.losses.finite_pair import PairLoss
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.loss import Loss
from accountant.numerics import Array
from accountant.plans.declared_releases import plan_field
from accountant.plans.plan import Sequential

GREATEST_CORRELATION = 0.97  # of neighbours in a chain
WIDEST_SHARES = (1, 4, 16, 64)  # distances whose inner product all farther bins are taken to share


@plan_field
@final
@dataclass(frozen=True, slots=True)
class BallsInBins(SampledSteps):
    """Each record is in one random bin b of ``bins``, and used in steps b, b + bins, and so on.

    The record's bin is secret, drawn alone and once for the run.  With as many bins as steps it is
    used once.

    Parameters
    ----------
    bins : int
        The number of bins, from 1 to the steps: the steps of an epoch.

    References
    ----------
    Chua et al. (2024); Choquette-Choo et al. (2024), Definition 3.1.

    Examples
    --------
    >>> from accountant import AmplifiedMatrix, BallsInBins, Tight, Toeplitz
    >>> strategy = Toeplitz((1.0, 0.5, 0.25), steps=40)
    >>> plan = AmplifiedMatrix(strategy, scale=3.0, sampling=BallsInBins(10))
    >>> certificate = Tight().certify(plan, delta=1e-5)
    >>> round(certificate.lower, 1), round(certificate.upper, 1)
    (1.4, 1.7)
    """

    bins: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", STEPS.check("bins", self.bins))

    def check_fit(self, strategy: Strategy) -> None:
        """Refuse more bins than steps, and more pairs of bins than are kept."""
        pairs = self.bins * min(self.bins, 2 * (strategy.bands or self.bins))
        if self.bins > strategy.columns or pairs > MAX_ENTRIES:
            allowed = f"at most the {strategy.columns} steps, and few for many bands"
            raise ParameterError("bins", self.bins, allowed)

    def bounds(self, strategy: Strategy, mu: float) -> Bounds:
        """Return pairs above: the least of an allocation and of chains."""
        return bounds_of_bins(strategy, self.bins, mu)

    def attained(self, strategy: Strategy, mu: float) -> Bounds:
        """Return pairs below: of a chain in blocks, of an allocation, and of one direction."""
        return attained_by_bins(strategy, self.bins, mu)


class BinProducts(NamedTuple):
    """Inner products of the bins' shifts of a record that moves each step by 1 at most.

    ``table[i, p]`` is that of bins p and p + offsets[i], modulo the number of bins; the others are
    0.  ``line`` and ``circle`` hold bounds by the distance of two bins, as numbers and around the
    circle: the greatest of all pairs at least so far apart.
    """

    offsets: Array
    signed: Array
    line: Array
    circle: Array
    floor: Array  # the least of the pairs of full bins at each distance as numbers


@functools.lru_cache(maxsize=16)
def bin_products(strategy: Strategy, bins: int) -> BinProducts:
    """Return the inner products of the bins."""
    columns = column_products(strategy)
    bands, steps = columns.signed.shape
    offsets = np.unique(np.concatenate([np.arange(bands) % bins, -np.arange(bands) % bins]))
    row_of = {offset: row for row, offset in enumerate(offsets.tolist())}
    tables = np.zeros((2, offsets.size, bins))
    bin_of = np.arange(steps) % bins
    for d in range(bands):
        for table, products in zip(tables, columns, strict=True):
            at = bin_of[: steps - d]
            met = np.bincount(at, products[d, : steps - d], minlength=bins)
            table[row_of[d % bins]] += met
            if d:
                table[row_of[-d % bins]] += np.roll(met, d)
    signed, absolute = tables
    start, offset = np.arange(bins), offsets[:, None]
    distance = np.where(start + offset < bins, offset, bins - offset)
    around = np.minimum(offset, bins - offset) + 0 * start
    line, circle = np.zeros(bins), np.zeros(bins // 2 + 1)
    error = PRODUCT_ERROR * float(absolute[0].max())
    absolute = np.where(absolute > 0, absolute + error, 0.0)
    np.maximum.at(line, distance, absolute)
    np.maximum.at(circle, around, absolute)
    # The columns of the last steps are cut off at the end; they may be in the last bins alone.
    idle = bands - 1 if steps % bins == 0 and 2 * (bands - 1) <= bins else 0
    floor = np.zeros(bins - idle)
    for row, k in enumerate(offsets.tolist()):
        if k < floor.size:
            floor[k] = max(float(signed[row, : floor.size - k].min()) - error, 0.0)
    line, circle = (np.maximum.accumulate(x[::-1])[::-1] for x in (line, circle))
    return BinProducts(offsets, signed, line, circle, floor)


@functools.lru_cache(maxsize=64)
def bounds_of_bins(strategy: Strategy, bins: int, mu: float) -> Bounds:
    """Return pairs above a run: the best of `bounds_by_distance`."""
    products = bin_products(strategy, bins)
    line, circle = products.line * mu * mu, products.circle * mu * mu
    return least_of(bounds_by_distance(line, circle, bins))


def bounds_by_distance(line: Array, circle: Array, bins: int) -> Iterator[Bounds]:
    """Yield bounds of several choices of bins, and of what far ones share."""
    square = float(circle[0])
    yield Bounds(GaussianLoss(math.sqrt(square)), GaussianLoss(math.sqrt(square)))
    # From distance `far` on, inner products are what is shared, or less.
    reach = int(np.count_nonzero(circle > circle[-1] + PRODUCT_ERROR * square))
    is_banded = float(circle[-1]) == 0
    is_in_chain = is_banded and square in SQUARES
    far_distances = {max(reach, 1)}
    if not is_in_chain:
        far_distances |= {k for k in WIDEST_SHARES if k < reach}
    for far in sorted(k for k in far_distances if k < circle.size):
        shared = float(circle[far])
        unshared = max(square - shared, 0.0)
        if unshared <= PRODUCT_ERROR * square:  # all bins move the rows alike
            continue
        apart_count = bins // far
        if shared > 0 and unshared in SQUARES and apart_count in CHAIN:
            removed, added = chain_above(unshared, 0.0, apart_count, is_cycle=False)
            yield _with_shared(shared, removed, added.reversed)
        elif apart_count > 1:
            allocated = RandomAllocation(GaussianLoss(math.sqrt(unshared)), apart_count)
            yield _with_shared(shared, loss_of_plan(allocated), loss_of_plan(allocated.reversed))
        if far == 1 or unshared not in SQUARES:
            continue
        # Every `stride`-th bin; they are a cycle if the last ones meet the first.
        stride = -(-bins // CHAIN[-1])
        is_cycle = far < line.size and float(line[far]) > shared
        by_distance = circle if is_cycle else line
        distances = np.arange(stride, far, stride)
        if distances.size == 0:
            continue
        shares = np.maximum(by_distance[distances] - shared, 0.0) / unshared
        correlation = float((shares ** (1 / np.arange(1, distances.size + 1))).max())
        if correlation > GREATEST_CORRELATION:
            continue
        count = bins // stride
        is_closed = is_cycle and stride == 1 and 3 <= count <= CHAIN[-1] // 32
        if is_cycle and not is_closed:  # leave out so many that the last do not meet the first
            count = (bins - far) // stride + 1
        if count > 1:
            removed, added = chain_above(unshared, correlation, count, is_closed)
            yield _with_shared(shared, removed, added.reversed)


def _with_shared(shared: float, removed: Loss, added: Loss) -> Bounds:
    """Return the losses with a Gaussian for what all bins share, whose squared shift is given."""
    return Bounds(*(_sum(shared, loss) for loss in (removed, added)))


def _sum(shared: float, loss: Loss) -> Loss:
    if shared == 0:
        return loss
    gaussian = GaussianLoss(math.sqrt(shared))
    if isinstance(loss, PairLoss):
        return WithGaussian(loss, gaussian)
    return loss_of_plan(Sequential([gaussian, loss]))


@functools.lru_cache(maxsize=64)
def attained_by_bins(strategy: Strategy, bins: int, mu: float) -> Bounds:
    """Return pairs below that of records that move all steps by one vector."""
    products = bin_products(strategy, bins)
    pairs: list[Loss] = []
    # All steps move by one vector: the mean shift is the direction of a test of one number.
    means = products.signed.sum(axis=0) / bins
    length = math.sqrt(max(float(means.mean()), 0.0))
    if length > 0:
        shifts = mu * means / length * (1 - PRODUCT_ERROR)
        if bins > CHAIN[-1]:
            shifts = np.array([max(float(shifts.min()), 0.0)])
        pairs.append(mixture_of_shifts(shifts, np.full(shifts.size, 1 / shifts.size)))
    if products.signed.min() >= 0:
        floor = products.floor * mu * mu
        idle = bins - floor.size
        shared = 0.0 if idle else float(floor.min())
        unshared = float(floor[0]) - shared
        if unshared > PRODUCT_ERROR * float(products.line[0]) * mu * mu and bins > 1:
            is_chain = unshared in SQUARES and bins in CHAIN
            if not idle and not (is_chain and shared > 0):
                allocated = loss_of_plan(RandomAllocation(GaussianLoss(math.sqrt(unshared)), bins))
                pairs.append(_sum(shared, allocated))
            if is_chain:
                correlation, block = best_block((floor - shared) / unshared)
                below = chain_below(unshared, correlation, floor.size, block, idle)
                pairs.append(_sum(shared, below))
    return greatest_of(pairs or [NO_LOSS])


def best_block(shares: Array) -> tuple[float, int]:
    """Return the correlation and size of blocks whose bins share most: 0 and 1 if none do."""
    best, greatest = (0.0, 1), 1.0
    correlation = GREATEST_CORRELATION
    for block in range(2, shares.size + 1):
        share = float(shares[block - 1])
        if share <= 0:
            break
        correlation = min(correlation, share ** (1 / (block - 1)))
        distances = np.arange(1, block)
        total = 1 + 2 * float(((block - distances) * correlation**distances).sum()) / block
        if total > greatest:
            best, greatest = (correlation, block), total
    return best
