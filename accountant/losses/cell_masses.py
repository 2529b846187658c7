"""Masses of a privacy loss in the cells between edges, under both laws of its pair.

The loss L = ln(dP/dQ) of a pair (P, Q) has one law under P and one under Q.  A cell is the losses
between two neighbouring edges.  For composition on a grid both laws are needed with bounds on their
floating-point errors, also where masses are tiny; so narrow cells are not computed as differences
of nearly equal numbers.  This file has the masses of a normal law, of finitely many losses, and of
a pair that is its own mirror image.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from accountant.numerics import Array
from accountant.numerics.rounding import ULP

# The greatest distance from the mean at which Taylor's series is evaluated, in standard deviations.
# A normal mass is 0 in floats long before.
FAR_OUT = 1e6
# Cells whose width times (3 + distance from the mean) is below this, both in standard deviations,
# have their mass from Taylor's series, which then leaves out less than 1e-16 of it.
NARROW = 0.1


class CellMasses(NamedTuple):
    """Masses of ``edges[i] < L <= edges[i + 1]`` under P and under Q, and bounds on their errors.

    ``p_error`` and ``q_error`` bound the distance to the exact masses between edges of which each
    may differ from the given one by up to ``edge_error`` nats, in the same way for P and Q.
    """

    p: Array
    q: Array
    p_error: Array
    q_error: Array
    edge_error: float


def normal_cell_masses(z: Array, mean: float) -> tuple[Array, Array]:
    """Return masses of the normal law N(mean, 1) between increasing ``z``, and their errors.

    The errors are bounds on the distance to exact masses between edges each of which may differ
    from ``z`` by ``4 ULP (|z| + |mean|)``, in the same way for every ``mean``.
    """
    # Beyond 39 standard deviations already the mass is 0 in floats: infinite edges become these.
    far = 1e3 + abs(mean)
    z = np.clip(z, -far, far)
    width = np.diff(z)
    middle = z[:-1] + width / 2 - mean
    with np.errstate(over="ignore"):
        narrow = width * (3 + np.abs(middle)) < NARROW
    if narrow.all():
        return _narrow_masses(middle, width, mean)
    mass, error = np.zeros(width.size), np.zeros(width.size)
    mass[narrow], error[narrow] = _narrow_masses(middle[narrow], width[narrow], mean)
    wide = ~narrow
    mass[wide], error[wide] = _wide_masses(z[:-1][wide] - mean, z[1:][wide] - mean, mean)
    return mass, error


def _narrow_masses(middle: Array, width: Array, mean: float) -> tuple[Array, Array]:
    """Return the masses of narrow cells, exact to ulps of themselves, by Taylor's series.

    ``middle`` is the middle of each cell less ``mean``.  Let phi be the density of N(0, 1) and He_n
    Hermite's polynomials.  For a cell of middle m and width w, the integral of phi(m + t) over
    |t| < w/2 is phi(m) w sum_k He_2k(m) (w/2)^2k / (2k + 1)!, with
    He_6(m) = m^6 - 15 m^4 + 45 m^2 - 15.  The code has m2 = m^2 and h2 = (w/2)^2.
    """
    middle = np.clip(middle, -FAR_OUT, FAR_OUT)
    m2, h2 = middle * middle, width * width / 4
    he_6 = m2 * (m2 * (m2 - 15) + 45) - 15
    series = 1 + h2 * ((m2 - 1) / 6 + h2 * ((m2 * (m2 - 6) + 3) / 120 + h2 * (he_6 / 5040)))
    # Beyond sqrt(1300) = 36 standard deviations the mass is replaced by a bound, which is also its
    # error, since computing with subnormal floats is slow.
    mass = np.exp(-np.minimum(m2, 1300.0) / 2) * width * series / np.sqrt(2 * np.pi)
    # The middle is inexact by some ulps of itself and of the mean, and the derivative of
    # ln phi(m) is -m.
    with np.errstate(over="ignore"):
        ulps = 8 + 4 * m2 + 4 * np.abs(middle * mean)
    error = mass * np.where(m2 > 1300, 1.0, ulps * ULP)
    return mass, error


def _wide_masses(left: Array, right: Array, mean: float) -> tuple[Array, Array]:
    """Return the masses of wide cells as differences of tails of N(0, 1).

    For a cell on one side of 0 they are the tails of that side beyond its two ends.  A cell that
    contains 0 has 1 less the left tail and the right tail.
    """
    from scipy.special import ndtr

    tails = ndtr(-np.abs(left)), ndtr(-np.abs(right))
    mass = np.where(right >= 0, tails[0] - tails[1], tails[1] - tails[0])
    crossing = (left < 0) & (right >= 0)
    mass = np.where(crossing, 1 - tails[0] - tails[1], mass)
    error = 2 * ULP * (mass + crossing)
    for tail, z in zip(tails, (left, right), strict=True):
        with np.errstate(invalid="ignore", over="ignore"):
            ulps = 8 + 4 * z * z + 4 * (1 + np.abs(z)) * abs(mean)
            error += np.where(tail > 0, tail * ulps * ULP, 0.0)
    return np.maximum(mass, 0.0), error


def finite_cell_masses(edges: Array, loss: Array, mass: Array, lost: float) -> CellMasses:
    """Return the masses of a pair with finitely many losses.

    ``mass`` is that of every finite ``loss`` under P; under Q it is ``mass e^-loss``.  ``lost`` is
    the mass of Q where P has none, which is at the loss minus infinity.
    """
    inside = (loss > edges[0]) & (loss <= edges[-1])
    cell = np.searchsorted(edges, loss[inside], side="left") - 1
    p: Array = np.bincount(cell, mass[inside], edges.size - 1).astype(float)
    q: Array = np.bincount(cell, (mass * np.exp(-loss))[inside], edges.size - 1).astype(float)
    infinite_edges = np.flatnonzero(edges == -np.inf)
    if 0 < infinite_edges.size < edges.size:
        q[infinite_edges[-1]] += lost
    largest_loss = float(np.max(np.abs(loss), initial=0.0))
    relative_error = (4 + loss.size) * ULP
    return CellMasses(
        p,
        q,
        relative_error * p,
        (relative_error + 4 * ULP * largest_loss) * q,
        4 * ULP * largest_loss,
    )


def mirrored(masses: Callable[[Array], Any], edges: Array, infinity: float) -> CellMasses:
    """Return the masses of a symmetric pair from ``masses``, which is right for losses above 0.

    Symmetric means that L has under P the law that -L has under Q.  So the mass of P in a cell
    below 0 is that of Q in its mirror image above 0, and the reverse.  The loss plus infinity has
    the mass ``infinity`` under P; all mass that remains is at the loss 0.
    """
    cell_count = edges.size - 1
    above = masses(np.append(0.0, edges[edges > 0]))
    mirror = masses(np.append(0.0, -edges[edges < 0][::-1]))
    edge_error = max(above.edge_error, mirror.edge_error)
    # Below 0 the laws change places, and so do their errors.
    of_upper_cells = above.p, above.q, above.p_error, above.q_error
    of_mirror_cells = mirror.q, mirror.p, mirror.q_error, mirror.p_error
    # The first cell above and the first below start at 0.  Where 0 is no edge but lies between two,
    # both are added to the cell that contains 0; a part that lies outside all edges is left out.
    cells = np.zeros((4, cell_count))
    first_above = cell_count - above.p.size
    for row, upper, lower in zip(cells, of_upper_cells, of_mirror_cells, strict=True):
        row[max(first_above, 0) :] += upper[max(-first_above, 0) :]
        row[: lower.size] += lower[::-1][:cell_count]
    # What neither half has, nor the two infinite losses, is at the loss 0.
    both_halves = masses(np.array([0.0, np.inf]))
    p_above, q_above = float(both_halves.p[0]) + infinity, float(both_halves.q[0])
    zero_cell = int(np.searchsorted(edges, 0.0)) - 1
    if 0 <= zero_cell < cell_count:
        cells[:2, zero_cell] += max(0.0, 1 - p_above - q_above)
        cells[2:, zero_cell] += float(both_halves.p_error[0] + both_halves.q_error[0]) + 4 * ULP
    if edges[0] == -np.inf:  # by symmetry Q has as much at minus infinity
        cells[1, 0] += infinity
    p, q, p_error, q_error = cells
    return CellMasses(p, q, p_error, q_error, edge_error)
