"""The grid of many different losses: each law has few places.

The accountant `PLD` replaces each loss by one on a grid, from its profile at all grid points.  With
a thousand different losses that would take too long.  Here each law has few places, dense where
they matter for the wanted delta: where the tilted law has its mass, that is the law times
e^{tilt loss}.  The tilt is that of the least Chernoff bound on the sum S of all losses,
P(S >= x) <= e^{-tilt x} E e^{tilt S}.

An `Outline` is a rough law of a loss: its masses between the points of `LADDER`.  It only decides
where the places are; the masses there come from the loss itself, and give an upper or a lower bound
wherever the places are.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from accountant.composition.grid_pairs import masses_above
from accountant.composition.loss_outline import LADDER, Outline
from accountant.composition.pld_grid import TILTS, LawOnGrid, PLDGrid, convolve
from accountant.composition.profile_pairs import places_by_weight
from accountant.losses.connect_the_dots import FinitePair, pair_above, pair_below
from accountant.numerics import Array
from accountant.numerics.logspace import logsumexp
from accountant.numerics.rounding import ULP

# Nats, for `places_by_weight`: a law has all grid points where its weight is above e^-7 of the
# greatest, elsewhere at least one in e^2.5 = 12.
DENSE, LOG_SPARSEST = 7.0, 2.5
BLUR = 300  # steps of the grid: an atom counts as if its mass were spread over them
# the middles of the cells of the ladder
MIDDLES = np.clip((LADDER[1:] + LADDER[:-1]) / 2, LADDER[1], LADDER[-2])


def widest_sum(outlines: list[Outline], tail: float) -> float:
    """Return about the greatest size of the sum of all losses, but for ``tail`` of its mass."""
    share = tail / sum(outline.count for outline in outlines)
    widest = math.fsum(outline.count * max(map(abs, _ends(outline, share))) for outline in outlines)
    _, top = _about_chernoff(outlines, tail, side=1)
    _, minus_bottom = _about_chernoff(outlines, tail, side=-1)
    return min(widest, max(top, minus_bottom))


def grid_of_many(
    outlines: list[Outline], step: float, delta: float, tail: float, *, upper: bool
) -> PLDGrid:
    """Return the grid law above, or below, the sum of the losses.

    ``step`` is the grid's, and ``delta`` says where the laws are to be accurate.  Mass of about
    ``tail`` may be left out on each side of the sum, and is counted in the grid's error.
    """
    tilt, _ = _about_chernoff(outlines, delta, side=1)
    share = tail / sum(outline.count for outline in outlines)
    laws, shift = [], 0.0  # the shift is how far the sum's points may be too low
    for outline in outlines:
        (loss, mass, infinity), edge_error = _pair(outline, step, tilt, share, upper)
        shift += outline.count * edge_error
        laws.append(LawOnGrid(np.rint(loss / step).astype(int), mass, outline.count, infinity))
    grid = convolve(laws, step, tail, upper=upper)
    return replace(grid, loss=grid.loss + shift)


def _about_chernoff(outlines: list[Outline], delta: float, side: int) -> tuple[float, float]:
    """Return about the best tilt, and what the sum exceeds with chance ``delta`` at most.

    With ``side`` -1 both are for minus the sum.  Tilts are tried as multiples of the best one of a
    normal law, sqrt(-2 ln delta / variance).
    """
    variance = math.fsum(outline.count * outline.variance for outline in outlines)
    tilts = TILTS * math.sqrt(max(-2 * math.log(delta), 1.0) / max(variance, 1e-300))
    log_moments, exponent = np.zeros(tilts.size), np.outer(tilts, side * MIDDLES)
    for outline in outlines:
        with np.errstate(divide="ignore", over="ignore"):
            log_mass = np.log(np.maximum(-np.diff(outline.p_above), 0.0))
            log_moments += outline.count * logsumexp(exponent + log_mass)
    # delta = e^{-a x} E e^{a S}, solved for x
    ends = (log_moments - math.log(delta)) / tilts
    best = int(np.nanargmin(np.where(np.isfinite(ends), ends, np.inf)))
    return float(tilts[best]), float(ends[best])


def _ends(outline: Outline, tail: float) -> tuple[float, float]:
    """Return ends, low and high, beyond each of which a loss lies with chance ``tail`` at most."""
    high = float(LADDER[np.argmax(outline.p_above <= tail)])
    low = float(LADDER[max(int(np.argmax(outline.p_below > tail)) - 1, 1)])
    return max(low, outline.least, -700.0), min(high, outline.loss.max_loss, 700.0)


def _pair(
    outline: Outline, step: float, tilt: float, tail: float, upper: bool
) -> tuple[FinitePair, float]:
    """Return a pair above or below one loss, on some points of the grid, and a shift.

    The shift is how far the edges of the cells may be too low; it is to be added, once for each
    release, to all points of the sum.  It is 0 where the pair comes from the profile, which has
    no cells.
    """
    low, high = _ends(outline, tail)
    first_index, last_index = math.floor(low / step), max(math.ceil(high / step), 1)
    points: Array = step * np.arange(first_index, last_index + 1.0)
    log_weight = _log_density(outline, BLUR * step) + tilt * MIDDLES
    chosen = places_by_weight(points, MIDDLES, log_weight, dense=DENSE, log_sparsest=LOG_SPARSEST)
    knots = points[chosen]
    if not upper:
        return pair_below(outline.loss.profile_any_epsilon, outline.loss.infinity, knots), 0.0
    cells = outline.loss.cell_masses(np.concatenate([[-np.inf], knots, [np.inf]]))
    if cells is None:
        return pair_above(outline.loss.profile_any_epsilon, knots), 0.0
    masses_with_errors = cells.p, cells.q, cells.p_error, cells.q_error
    edge_error = cells.edge_error
    mass = masses_above(
        masses_with_errors, knots, width=step * np.diff(chosen), edge_error=edge_error
    )
    # Mass above the last knot counts as mass at infinity.
    infinity = float(cells.p[-1] + cells.p_error[-1]) + outline.loss.infinity * (1 + 16 * ULP)
    return FinitePair(knots, mass, infinity), edge_error


def _log_density(outline: Outline, blur: float) -> Array:
    """Return about the logarithm of a loss's density in each cell of the ladder.

    A cell narrower than ``blur`` (nats) counts as wide as it.
    """
    width = np.diff(np.clip(LADDER, LADDER[1], LADDER[-2]))
    with np.errstate(divide="ignore"):
        density: Array = np.log(-np.diff(outline.p_above)) - np.log(np.maximum(width, blur))
    # An atom may be anywhere in its cell, so each cell gets the greatest of its neighbours, too.
    padded = np.pad(np.maximum(density, -1e6), 1, mode="edge")
    widest: Array = np.maximum.reduce([padded[:-2], padded[1:-1], padded[2:]])
    return widest
