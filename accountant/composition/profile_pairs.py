"""Finite pairs on a lattice above and below a loss of which only bounds on its profile are known.

A finite pair is two laws P and Q with finitely many outcomes; its losses ln(P / Q) lie on a
lattice, so that sums of them are convolutions.  Its profile is delta as a function of epsilon,
``sum (P - e^epsilon Q)_+`` over the outcomes.  The pair above has a profile that is nowhere below
the one of the loss, the pair below one that is nowhere above it; composed, they give the upper and
the lower end of an interval around epsilon.

The profile delta(epsilon) is convex as a function of ``x = e^epsilon``.  Hence straight lines
between upper bounds lie above it.  Lines between lower bounds may cross it; they are lowered by the
largest gap that convexity allows in the neighbouring cells, and then lie below it.  A function of
straight lines is the profile of a finite pair, whose losses are the logarithms of its corners.
Values are moved outwards by a few units of round-off (`ULP`, the distance of 1 to the next float)
where arithmetic in floats could cross the profile.  Proof: `docs/proofs/grid_pairs.md`, steps 7
to 9.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from accountant.composition.grid_pairs import PairOnGrid
from accountant.composition.tilted_law import GridLaw
from accountant.losses.connect_the_dots import lower_hull, pair_above
from accountant.losses.loss import Loss
from accountant.numerics import Array
from accountant.numerics.logspace import logsumexp
from accountant.numerics.rounding import ULP

# Four numbers that only decide how sharp the pairs are:
OUTLINE_POINTS = 120  # evaluations of the profile that tell where the lattice should be dense
# nats: large losses get knots of their own unless they cause at most e^-25 of Chernoff's bound
NOTICEABLE = -25.0
DENSE = 3.0  # nats: all lattice points whose weight is that close to the greatest one are knots
LOG_SPARSEST = 5.0  # ln of the greatest number of lattice points between two knots, about 150
# nats: bounds the error of each loss l = ln x, as x = e^l is exact to about an ulp of itself
EDGE_ERROR = 4 * ULP


def pairs_from_profile(
    loss: Loss,
    count: int,
    offset: float,
    step: float,
    ends: tuple[float, float],
    tilt: float,
    epsilon: float = math.inf,
) -> tuple[PairOnGrid, PairOnGrid]:
    """Return pairs below and above the loss, on the lattice ``offset + step * k``.

    The lattice covers ``ends``, the least and the greatest loss of interest, and ``count`` is the
    number of releases with this loss.  The profile is evaluated at all lattice points where the
    tilted law, that is the law of the loss l times ``e^{tilt l}``, has most of its mass, or where
    one large loss is likely to make the sum of all losses exceed ``epsilon``; elsewhere it is
    evaluated at fewer of them.  The points of evaluation are the knots.
    """
    first_index = int(np.floor((ends[0] - offset) / step))
    last_index = max(int(np.ceil((ends[1] - offset) / step)), first_index + 2)
    points: Array = offset + step * np.arange(first_index, last_index + 1.0)
    lattice = GridLaw(step, first_index, offset, np.zeros(points.size), count)
    knots = _knots(loss, count, points, tilt, epsilon)
    return pairs_at_knots(loss, lattice, knots, *bounds_at_knots(loss, lattice, knots))


def bounds_at_knots(
    loss: Loss, lattice: GridLaw, knots: NDArray[np.intp]
) -> tuple[Array, Array, Array]:
    """Return x = e^epsilon, 0 first, and bounds on the profile there, widened by round-off."""
    points = lattice.points[knots]
    # x = 0, where every profile is 1, is a point too
    x = np.append(0.0, np.exp(points))
    return x, *_padded(loss, points, x)


def pairs_at_knots(
    loss: Loss, lattice: GridLaw, knots: NDArray[np.intp], x: Array, low: Array, high: Array
) -> tuple[PairOnGrid, PairOnGrid]:
    """Return pairs below and above the loss, with mass at some of the points of a lattice."""
    infinity = loss.infinity * (1 - 16 * ULP)
    mass_below, mass_above = np.zeros((2, lattice.mass.size))
    mass_below[knots] = _masses(x, _lowered(x, low, high, infinity), side=-1)
    mass_above[knots] = _masses(x, high, side=1)
    # Mass beyond the cut is at a loss of infinity: Q has none there.
    beyond_below, beyond_above = infinity, float(high[-1])
    return (
        PairOnGrid(replace(lattice, mass=mass_below), beyond_below, 0.0, EDGE_ERROR),
        PairOnGrid(replace(lattice, mass=mass_above), beyond_above, 0.0, EDGE_ERROR),
    )


def pair_above_at_all_points(
    loss: Loss, count: int, step: float, first: int, last: int
) -> PairOnGrid:
    """Return a pair above the loss on ``step * k``, its profile evaluated at all of the points."""
    points: Array = step * np.arange(first, last + 1.0)
    x = np.append(0.0, np.exp(points))
    _, high = _padded(loss, points, x)
    law = GridLaw(step, first, 0.0, _masses(x, high, side=1), count)
    return PairOnGrid(law, p_beyond=float(high[-1]), q_beyond=0.0, edge_error=EDGE_ERROR)


def _knots(loss: Loss, count: int, points: Array, tilt: float, epsilon: float) -> NDArray[np.intp]:
    """Return indices of the knots, dense where the tilted law is; the same for both pairs."""
    coarse = points[np.unique(np.linspace(0, points.size - 1, OUTLINE_POINTS).astype(int))]
    pair = pair_above(lambda e: loss.profile_bounds(e)[1], coarse)
    log_mass = np.log(np.maximum(pair.mass, 1e-300))
    log_weight = log_mass + tilt * pair.loss
    chernoff = count * float(logsumexp(log_weight)) - tilt * epsilon
    log_weight -= np.max(log_weight)
    if count > 1 and epsilon < math.inf:
        # The sum may exceed epsilon by one large loss l and another loss above epsilon - l.  Where
        # the tail is heavy, no single tilt gives weight to both.  ``log_tail`` is the logarithm of
        # count P(loss >= l), at most 0, and ``log_both`` that of the chance of both losses.
        log_tail = np.minimum(np.log(count) + np.logaddexp.accumulate(log_mass[::-1])[::-1], 0.0)
        log_both = log_mass + np.interp(epsilon - pair.loss, pair.loss, log_tail, left=0.0)
        if math.log(count) + float(np.max(log_both)) > chernoff + NOTICEABLE:
            log_weight = np.maximum(log_weight, log_both - np.max(log_both))
    return places_by_weight(points, pair.loss, log_weight, DENSE)


def places_by_weight(
    points: Array,
    at: Array,
    log_weight: Array,
    dense: float = 0.0,
    log_sparsest: float = LOG_SPARSEST,
) -> NDArray[np.intp]:
    """Return indices of points, dense where the weight is large.

    The logarithm of the weight is given at the places ``at`` and interpolated between them.  All
    points are chosen where it is within ``dense`` nats of its maximum, and elsewhere at least one
    in every ``e^log_sparsest`` of them.
    """
    # At a density of r knots for each lattice point the error is about the sum of weight / r^2.
    # For a given number of knots it is least where r is proportional to weight^(1/3).
    log_rate = np.maximum((log_weight - np.max(log_weight) + dense) / 3, -log_sparsest)
    log_rate = np.minimum(log_rate, 0.0)
    rate = np.exp(np.interp(points, at, log_rate))
    cumulative = np.floor(np.cumsum(rate))
    ends = np.array([0, 1, points.size - 2, points.size - 1])
    # a profile often has a corner at a loss of 0: the points around it are always chosen
    corner = np.searchsorted(points, -1e-9) + np.arange(3)  # -1e-9: 0 but for the rounding
    chosen = np.append(np.diff(cumulative) > 0, False)
    chosen[np.clip(np.concatenate([ends, corner]), 0, points.size - 1)] = True
    return np.flatnonzero(chosen)


def _padded(loss: Loss, points: Array, x: Array) -> tuple[Array, Array]:
    """Return lower and upper bounds on the profile at each x, widened by round-off.

    ``points`` are the losses, and ``x`` is 0 followed by their exponentials.
    """
    low, high = loss.profile_bounds(points)
    limit = loss.infinity
    high = np.where(points >= loss.max_loss, np.minimum(high, limit * (1 + 16 * ULP)), high)
    low = np.append(1.0, np.clip(low, limit * (1 - 16 * ULP), 1.0))
    high = np.append(1.0, np.minimum.accumulate(np.minimum(high, 1.0)))
    # x = e^l is exact to about an ulp.  An error of x changes the profile by at most this error
    # times the slope, and the slope at x is at most that of the line from the point to the left.
    slope = np.append(1.0, (high[:-1] - low[1:]) / np.diff(x))
    pad = 16 * ULP * np.append(x[1:], x[-1]) * np.minimum(slope, 1.0)
    pad[0] = 0.0
    return low - pad - 4 * ULP * low * (x > 0), high + pad + 4 * ULP * high * (x > 0)


def _lowered(x: Array, low: Array, high: Array, infinity: float) -> Array:
    """Return values at the points such that straight lines between them are below the profile.

    ``low`` and ``high`` are bounds on the profile at each x, and ``infinity`` is its limit.
    """
    width = np.diff(x)
    chord = np.diff(low) / width
    # Within a cell the convex profile lies above the lines through the two points of either
    # neighbouring cell, prolonged.  Its slope is between -1 and 0.
    before = np.append(-1.0, np.maximum((low[1:-1] - high[:-2]) / width[:-1], -1.0))
    after = np.append(np.minimum((high[2:] - low[1:-1]) / width[1:], 0.0), 0.0)
    left_change, right_change = np.maximum(chord - before, 0.0), np.maximum(after - chord, 0.0)
    total_change = np.maximum(left_change + right_change, 1e-300)
    # how far the chord is above the point where the two lines meet
    gap = width * left_change * right_change / total_change * (1 + 8 * ULP)
    lowered: Array = low - np.maximum(np.append(0.0, gap), np.append(gap, 0.0))
    # the profile is at least its limit, the mass at infinity: from where the lines fall below the
    # limit, and one point before, the values are the limit
    lowered[-1] = infinity
    start = max(int(np.argmax(lowered <= infinity)) - 1, 0)
    lowered[start:] = infinity
    return lowered


def _masses(x: Array, value: Array, side: int) -> Array:
    """Return the masses of P at all x but 0, for a profile above or below the points' lower hull.

    ``side`` is 1 for masses that round-off may only raise, and -1 for masses it may only lower.
    """
    corners = lower_hull(x, value)
    slope = np.append(np.diff(value[corners]) / np.diff(x[corners]), 0.0)
    # the mass of Q at a corner is the change of slope there; that of P is x times it
    change = np.diff(slope)
    if side > 0:
        # differences of slopes are exact to a few ulps of themselves
        exact = np.maximum(x[corners[1:]] * change, 0.0) * (1 + 8 * ULP)
    else:
        size = np.abs(slope[1:]) + np.abs(slope[:-1])
        exact = _without_debts(x[corners[1:]] * (change - 8 * ULP * size))
    mass: Array = np.zeros(x.size - 1)
    mass[corners[1:] - 1] = exact
    return mass * (1 + side * 4 * ULP)


def _without_debts(mass: Array) -> Array:
    """Set negative masses to 0, and subtract what they lacked from larger losses instead.

    Masses near 0 become negative where round-off was subtracted.  Mass at a larger loss
    adds more to delta, so this lowers the profile at every epsilon.
    """
    debt = 0.0
    for index in np.flatnonzero(mass < 0).tolist():
        while index < mass.size and (debt > 0 or mass[index] < 0):
            balance = float(mass[index]) - debt
            debt, mass[index] = max(-balance, 0.0), max(balance, 0.0)
            index += 1  # noqa: PLW2901
    # where the larger losses have too little mass, the pair below is the trivial one, without mass
    return mass if debt == 0 else np.zeros(mass.size)
