"""The grid of many different losses: each law has few places, and all share one transform.

In pairs the convolutions of a thousand laws would be longer than memory.  Here the range of the
sum comes from Chernoff's inequality, and what may lie outside of it is added to the error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accountant.composition.loss_outline import LADDER, Outline
from accountant.composition.pld_grid import PLDGrid, grid_of_sum
from accountant.composition.profile_pairs import places_by_weight
from accountant.losses.connect_the_dots import FinitePair, pair_above, pair_below
from accountant.numerics import Array
from accountant.numerics.exponential_sums import complex_power
from accountant.numerics.logspace import logsumexp

MAX_POINTS = 2**21
TILTS = np.geomspace(0.1, 10.0, 13)  # of Chernoff's bounds, times a normal law's
DENSE, SPARSEST = 7.0, 2.5  # every point where a weight is within e^-7 of the greatest
MIDDLES = np.clip((LADDER[1:] + LADDER[:-1]) / 2, LADDER[1], LADDER[-2])


@dataclass(frozen=True, slots=True)
class _Law:
    """Places and masses on the grid, of a loss that is drawn ``count`` times."""

    place: NDArray[np.intp]
    mass: Array
    count: int


def widest_sum(outlines: list[Outline], tail: float) -> float:
    """Return about what the losses add up to where each is as large as it may be."""
    share = tail / sum(one.count for one in outlines)
    return math.fsum(one.count * max(map(abs, _ends(one, share))) for one in outlines)


def grid_of_many(
    outlines: list[Outline], step: float, delta: float, tail: float, *, upper: bool
) -> PLDGrid | None:
    """Return the grid above, or below, the sum of the losses; None where it is too long."""
    tilt, share = _tilt(outlines, delta), tail / sum(one.count for one in outlines)
    laws, kept, nats = [], 0.0, 0.0
    for one in outlines:
        pair = _pair(one, step, tilt, share, upper)
        finite = float(pair.mass.sum())
        if not (pair.infinity < 1 and finite > 0):
            return None
        nats -= one.count * math.log1p(-pair.infinity)
        kept += one.count * math.log(finite)
        place = np.rint(pair.loss / step).astype(int)
        laws.append(_Law(place, pair.mass / finite, one.count))
    ends = _range(laws, step, tail)
    if ends is None:
        return None
    mass = math.exp(kept) * _law_of_sum(laws, *ends)
    return grid_of_sum(mass, ends[0], step, nats, 2 * tail, upper=upper)


def _tilt(outlines: list[Outline], delta: float) -> float:
    """Return about the order that decides epsilon at ``delta``."""
    variance = math.fsum(one.count * one.variance for one in outlines)
    a = TILTS * math.sqrt(max(-2 * math.log(delta), 1.0) / max(variance, 1e-300))
    total = np.zeros(a.size)
    for one in outlines:
        with np.errstate(divide="ignore", over="ignore"):
            log_mass = np.log(np.maximum(-np.diff(one.p_above), 0.0))
            total += one.count * logsumexp(np.outer(a, MIDDLES) + log_mass)
    epsilon = (total - math.log(delta)) / a
    return float(a[np.nanargmin(np.where(np.isfinite(epsilon), epsilon, np.inf))])


def _ends(one: Outline, tail: float) -> tuple[float, float]:
    """Return ends that a loss exceeds with probability ``tail`` at most."""
    high = float(LADDER[np.argmax(one.p_above <= tail)])
    low = float(LADDER[max(int(np.argmax(one.p_below > tail)) - 1, 1)])
    return max(low, one.least, -700.0), min(high, one.loss.max_loss, 700.0)


def _pair(one: Outline, step: float, tilt: float, tail: float, upper: bool) -> FinitePair:
    """Return the finite pair of one loss on some points of the grid."""
    low, high = _ends(one, tail)
    first, last = math.floor(low / step), max(math.ceil(high / step), 1)
    points: Array = step * np.arange(first, last + 1.0)
    some = points[
        places_by_weight(
            points, MIDDLES, _log_density(one, 300 * step) + tilt * MIDDLES, DENSE, SPARSEST
        )
    ]
    if upper:
        return pair_above(one.loss.profile_any_epsilon, some)
    return pair_below(one.loss.profile_any_epsilon, one.loss.infinity, some)


def _log_density(one: Outline, blur: float) -> Array:
    """Return about the logarithm of a loss's density on the ladder, a peak as wide as ``blur``."""
    width = np.diff(np.clip(LADDER, LADDER[1], LADDER[-2]))
    with np.errstate(divide="ignore"):
        density: Array = np.log(-np.diff(one.p_above)) - np.log(np.maximum(width, blur))
    # an atom may be anywhere in its cell
    beside = np.pad(np.maximum(density, -1e6), 1, mode="edge")
    widest: Array = np.maximum.reduce([beside[:-2], beside[1:-1], beside[2:]])
    return widest


def _range(laws: list[_Law], step: float, tail: float) -> tuple[int, int] | None:
    """Return the first place of the sum and the number of places, but for ``tail`` on each side."""
    spread = 0.0
    for one in laws:
        loss = step * one.place
        mean = float(np.sum(one.mass * loss))
        spread += one.count * float(np.sum(one.mass * (loss - mean) ** 2))
    t = TILTS * math.sqrt(-2 * math.log(tail) / max(spread, 1e-300))
    total = np.zeros(2 * t.size)
    both = np.concatenate([t, -t])
    for one in laws:
        with np.errstate(divide="ignore"):
            exponent = np.outer(both, step * one.place) + np.log(one.mass)
        total += one.count * (logsumexp(exponent) + 1e-12)
    ends = (total - math.log(tail)) / np.abs(both)
    top, bottom = float(np.min(ends[: t.size])), -float(np.min(ends[t.size :]))
    first = math.floor(bottom / step) - 1
    size = math.ceil(top / step) + 2 - first
    return (first, size) if size <= MAX_POINTS else None


def _law_of_sum(laws: list[_Law], first: int, size: int) -> Array:
    """Return the masses of the sum at ``first`` and the places after it."""
    from scipy.fft import irfft, next_fast_len, rfft

    length = int(next_fast_len(size, real=True))
    product = np.ones(length // 2 + 1, dtype=complex)
    for one in laws:
        folded = np.bincount(one.place % length, one.mass, length)
        product *= complex_power(rfft(folded), one.count)
    masses: Array = np.roll(irfft(product, length), -(first % length))
    return masses
