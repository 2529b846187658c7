"""The grid of many different losses: each law has few places, and all share one transform.

The accountant `PLD` replaces each loss by one on a grid and convolves these laws, mostly in pairs;
with a thousand different losses that would take more memory than there is.  Here the range of the
sum comes from Chernoff's inequality, one Fourier transform of that length serves all laws, and
what may lie outside of the range is added to the error.

An `Outline` is a rough law of a loss: its masses between the points of `LADDER`.
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

MAX_POINTS = 2**21  # points of the grid of the sum; no longer grid is made
# Tilts that are tried in Chernoff's bounds, over the best one of a normal law.
TILTS = np.geomspace(1e-3, 10.0, 25)
# Points of a law: all where the weight is within e^-7 of the greatest, elsewhere at least one in
# e^2.5 (`places_by_weight`).
DENSE, SPARSEST = 7.0, 2.5
SHARE = 16  # one in so many laws is used to choose good tilts
# the middles of the cells of the ladder
MIDDLES = np.clip((LADDER[1:] + LADDER[:-1]) / 2, LADDER[1], LADDER[-2])


@dataclass(frozen=True, slots=True)
class _Law:
    """The law of a loss that is drawn ``count`` times: places on the grid, and their masses.

    Place k is the loss k times the step of the grid.
    """

    place: NDArray[np.intp]
    mass: Array
    count: int


def widest_sum(outlines: list[Outline], tail: float) -> float:
    """Return about the greatest size of the sum of all losses, but for ``tail`` of its mass."""
    share = tail / sum(outline.count for outline in outlines)
    widest = math.fsum(outline.count * max(map(abs, _ends(outline, share))) for outline in outlines)
    return min(widest, max(_about_chernoff(outlines, tail, side)[1] for side in (1, -1)))


def grid_of_many(
    outlines: list[Outline], step: float, delta: float, tail: float, *, upper: bool
) -> PLDGrid | None:
    """Return the grid law above, or below, the sum of the losses; None where it is too long.

    ``step`` is the grid's, and ``delta`` says where the laws are to be accurate.  Mass of about
    ``tail`` may be left out on each side of the sum, and is counted in the grid's error.
    """
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
    """Return about the order of the moment that gives the best Chernoff bound at ``delta``."""
    return _about_chernoff(outlines, delta, 1)[0]


def _about_chernoff(outlines: list[Outline], delta: float, side: int) -> tuple[float, float]:
    """Return about the best tilt, and what the sum exceeds with chance ``delta`` at most.

    With ``side`` -1 the second is for minus the sum.
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
    """Return ends, low and high, beyond each of which a loss lies with chance ``tail`` at most."""
    high = float(LADDER[np.argmax(outline.p_above <= tail)])
    low = float(LADDER[max(int(np.argmax(outline.p_below > tail)) - 1, 1)])
    return max(low, outline.least, -700.0), min(high, outline.loss.max_loss, 700.0)


def _pair(
    outline: Outline, step: float, tilt: float, tail: float, upper: bool
) -> tuple[FinitePair, float]:
    """Return a pair above or below one loss, on some points of the grid, and a shift.

    The shift is to be added to all points of the sum.
    """
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
    """Return about the logarithm of a loss's density in each cell of the ladder.

    A cell narrower than ``blur`` counts as wide as it.
    """
    width = np.diff(np.clip(LADDER, LADDER[1], LADDER[-2]))
    with np.errstate(divide="ignore"):
        density: Array = np.log(-np.diff(outline.p_above)) - np.log(np.maximum(width, blur))
    # An atom may be anywhere in its cell, so each cell gets the greatest of its neighbours, too.
    padded = np.pad(np.maximum(density, -1e6), 1, mode="edge")
    widest: Array = np.maximum.reduce([padded[:-2], padded[1:-1], padded[2:]])
    return widest


def _range(laws: list[_Law], step: float, tail: float) -> tuple[int, int] | None:
    """Return the first place of the sum, and how many places it needs; None if too many.

    Mass of at most ``tail`` lies beyond each end.
    """
    spread = 0.0
    for law in laws:
        loss = step * law.place
        mean = float(np.sum(law.mass * loss))
        spread += law.count * float(np.sum(law.mass * (loss - mean) ** 2))
    t = TILTS * math.sqrt(-2 * math.log(tail) / max(spread, 1e-300))
    sample = laws[::SHARE]  # a part of the laws is enough, as the bound holds for any tilt
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
    """Return, for each tilt, what the sum exceeds with chance e^log_tail at most.

    For a negative tilt it is for minus the sum.
    """
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
