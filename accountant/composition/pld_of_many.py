"""The grid of the accountant `PLD` for many different losses, composed by one transform.

`PLD` puts losses on a grid and convolves them.  One after another the convolutions of a thousand
laws would be longer than memory.  Here each law has few places of the grid, and all share one
Fourier transform.  The range of the sum comes from Chernoff's inequality, and what may lie outside
of it is added to the error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from accountant.composition.grid_pairs import masses_above
from accountant.composition.loss_outline import LADDER, Outline
from accountant.composition.pld_grid import PLDGrid, grid_of_sum
from accountant.composition.profile_pairs import places_by_weight
from accountant.losses.connect_the_dots import FinitePair, pair_above, pair_below
from accountant.numerics import Array
from accountant.numerics.exponential_sums import complex_power
from accountant.numerics.fast_length import fast_length
from accountant.numerics.logspace import logsumexp
from accountant.numerics.rounding import ULP

MAX_POINTS = 2**21  # the most places of the grid of the sum
# Tilts that are tried for Chernoff's bounds, as multiples of the best one for a normal law.
TILTS = np.geomspace(1e-3, 10.0, 25)
# A law has every place of the grid where its weight is at least e^-DENSE of the greatest, and
# elsewhere at least one in e^SPARSEST of them.
DENSE, SPARSEST = 7.0, 2.5
SHARE = 16  # one law of so many is used to choose the tilts
# The middles of the cells of the ladder of losses, those of the outermost at their finite ends.
MIDDLES = np.clip((LADDER[1:] + LADDER[:-1]) / 2, LADDER[1], LADDER[-2])


@dataclass(frozen=True, slots=True)
class _Law:
    """Places and masses on the grid, of a loss that is drawn ``count`` times."""

    place: NDArray[np.intp]
    mass: Array
    count: int


def widest_sum(outlines: list[Outline], tail: float) -> float:
    """Return about the greatest size of the sum of the losses, but for a mass of ``tail``."""
    share = tail / sum(outline.count for outline in outlines)
    widest = math.fsum(outline.count * max(map(abs, _ends(outline, share))) for outline in outlines)
    return min(widest, max(_about_chernoff(outlines, tail, side)[1] for side in (1, -1)))


def grid_of_many(
    outlines: list[Outline], step: float, delta: float, tail: float, *, upper: bool
) -> PLDGrid | None:
    """Return the grid above, or below, the sum of the losses; None where it is too long."""
    tilt, share = _tilt(outlines, delta), tail / sum(outline.count for outline in outlines)
    laws, log_mass, nats, shift = [], 0.0, 0.0, 0.0
    for outline in outlines:
        (loss, masses, infinity), edge_error = _pair(outline, step, tilt, share, upper)
        finite = float(masses.sum())
        if not (infinity < 1 and finite > 0):
            return None
        nats -= outline.count * math.log1p(-infinity)
        log_mass += outline.count * math.log(finite)
        shift += outline.count * edge_error
        indices = np.rint(loss / step).astype(int)
        laws.append(_Law(indices, masses / finite, outline.count))
    ends = _range(laws, step, tail)
    if ends is None:
        return None
    mass = math.exp(log_mass) * _law_of_sum(laws, *ends)
    grid = grid_of_sum(mass, ends[0], step, nats, 2 * tail, upper=upper)
    return replace(grid, loss=grid.loss + shift)


def _tilt(outlines: list[Outline], delta: float) -> float:
    """Return about the order that decides epsilon at ``delta``."""
    return _about_chernoff(outlines, delta, 1)[0]


def _about_chernoff(outlines: list[Outline], delta: float, side: int) -> tuple[float, float]:
    """Return about the best tilt, and what the sum exceeds with a chance of about ``delta``.

    With ``side`` -1 it is what minus the sum exceeds.
    """
    variance = math.fsum(outline.count * outline.variance for outline in outlines)
    a = TILTS * math.sqrt(max(-2 * math.log(delta), 1.0) / max(variance, 1e-300))
    total, exponent = np.zeros(a.size), np.outer(a, side * MIDDLES)
    for outline in outlines:
        with np.errstate(divide="ignore", over="ignore"):
            log_mass = np.log(np.maximum(-np.diff(outline.p_above), 0.0))
            total += outline.count * logsumexp(exponent + log_mass)
    epsilon = (total - math.log(delta)) / a
    best = int(np.nanargmin(np.where(np.isfinite(epsilon), epsilon, np.inf)))
    return float(a[best]), float(epsilon[best])


def _ends(outline: Outline, tail: float) -> tuple[float, float]:
    """Return ends that a loss exceeds with probability ``tail`` at most."""
    high = float(LADDER[np.argmax(outline.p_above <= tail)])
    low = float(LADDER[max(int(np.argmax(outline.p_below > tail)) - 1, 1)])
    return max(low, outline.least, -700.0), min(high, outline.loss.max_loss, 700.0)


def _pair(
    outline: Outline, step: float, tilt: float, tail: float, upper: bool
) -> tuple[FinitePair, float]:
    """Return the finite pair of one loss on some points of the grid, and by how much to shift."""
    low, high = _ends(outline, tail)
    first_index, last_index = math.floor(low / step), max(math.ceil(high / step), 1)
    points: Array = step * np.arange(first_index, last_index + 1.0)
    weight = _log_density(outline, 300 * step) + tilt * MIDDLES
    chosen = places_by_weight(points, MIDDLES, weight, DENSE, SPARSEST)
    knots = points[chosen]
    if not upper:
        return pair_below(outline.loss.profile_any_epsilon, outline.loss.infinity, knots), 0.0
    cells = outline.loss.cell_masses(np.concatenate([[-np.inf], knots, [np.inf]]))
    if cells is None:
        return pair_above(outline.loss.profile_any_epsilon, knots), 0.0
    masses_with_errors = cells.p, cells.q, cells.p_error, cells.q_error
    edge_error = cells.edge_error
    mass = masses_above(masses_with_errors, knots, step * np.diff(chosen), edge_error)
    infinity = float(cells.p[-1] + cells.p_error[-1]) + outline.loss.infinity * (1 + 16 * ULP)
    return FinitePair(knots, mass, infinity), edge_error


def _log_density(outline: Outline, blur: float) -> Array:
    """Return about the logarithm of a loss's density on the ladder.

    A cell narrower than ``blur``, in nats, counts as that wide.
    """
    width = np.diff(np.clip(LADDER, LADDER[1], LADDER[-2]))
    with np.errstate(divide="ignore"):
        density: Array = np.log(-np.diff(outline.p_above)) - np.log(np.maximum(width, blur))
    # An atom may be anywhere in its cell, so a cell has the greatest density of its neighbours too.
    padded = np.pad(np.maximum(density, -1e6), 1, mode="edge")
    widest: Array = np.maximum.reduce([padded[:-2], padded[1:-1], padded[2:]])
    return widest


def _range(laws: list[_Law], step: float, tail: float) -> tuple[int, int] | None:
    """Return the first place of the sum and the number of places, but for ``tail`` on each side."""
    spread = 0.0
    for law in laws:
        loss = step * law.place
        mean = float(np.sum(law.mass * loss))
        spread += law.count * float(np.sum(law.mass * (loss - mean) ** 2))
    t = TILTS * math.sqrt(-2 * math.log(tail) / max(spread, 1e-300))
    sample = laws[::SHARE]  # Few laws suffice to choose the tilts, because any tilt is sound.
    best_tilts = [
        float(np.nanargmin(_chernoff_ends(sample, step, math.log(tail) / SHARE, side * t)))
        for side in (1, -1)
    ]
    tilts = np.array([t[int(best_tilts[0])], -t[int(best_tilts[1])]])
    top, bottom = _chernoff_ends(laws, step, math.log(tail), tilts).tolist()
    bottom = -bottom
    first_index = math.floor(bottom / step) - 1
    size = math.ceil(top / step) + 2 - first_index
    return (first_index, size) if size <= MAX_POINTS else None


def _chernoff_ends(laws: list[_Law], step: float, log_tail: float, tilts: Array) -> Array:
    """Return what the sum times each tilt's sign exceeds with this chance at most."""
    total = np.zeros(tilts.size)
    for law in laws:
        with np.errstate(divide="ignore"):
            exponent = np.outer(tilts, step * law.place) + np.log(law.mass)
        total += law.count * (logsumexp(exponent) + 1e-12)
    ends: Array = (total - log_tail) / np.abs(tilts)
    return ends


def _law_of_sum(laws: list[_Law], first: int, size: int) -> Array:
    """Return the masses of the sum at ``first`` and the places after it."""
    length = fast_length(size)
    product = np.ones(length // 2 + 1, dtype=complex)
    for law in laws:
        folded = np.bincount(law.place % length, law.mass, length)
        product *= complex_power(np.fft.rfft(folded), law.count)
    masses: Array = np.roll(np.fft.irfft(product, length), -(first % length))
    return masses
