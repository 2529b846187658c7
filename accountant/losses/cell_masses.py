"""Masses of a loss between edges, under both of its distributions, free of cancellation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from accountant.numerics import Array
from accountant.numerics.rounding import ULP

FAR_OUT = 1e6  # deviations, beyond which a normal mass is 0
NARROW = 0.1  # width times (3 + distance from the mean): the series leaves out less than 1e-16


class CellMasses(NamedTuple):
    """Masses of ``edges[i] < L <= edges[i + 1]`` under P and under Q, and bounds on their errors.

    Each edge may be wrong by ``edge_error`` nats.
    """

    p: Array
    q: Array
    p_error: Array
    q_error: Array
    edge_error: float


def normal_cell_masses(z: Array, mean: float) -> tuple[Array, Array]:
    """Return masses of a normal law between increasing ``z``, and bounds on their errors.

    They are errors of masses between edges that are each wrong by ``4 ULP (|z| + |mean|)``, the
    same for every ``mean``.
    """
    far = 1e3 + abs(mean)
    z = np.clip(z, -far, far)  # No mass lies beyond.
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

    The integral of phi(m + t) over |t| < w/2 is phi(m) w sum_k He_2k(m) (w/2)^2k / (2k + 1)!, with
    He_6(m) = m^6 - 15 m^4 + 45 m^2 - 15.
    """
    middle = np.clip(middle, -FAR_OUT, FAR_OUT)
    m, v = middle * middle, width * width / 4
    he_6 = m * (m * (m - 15) + 45) - 15
    series = 1 + v * ((m - 1) / 6 + v * ((m * (m - 6) + 3) / 120 + v * (he_6 / 5040)))
    # Far out the mass is replaced by a bound, since computing with subnormal floats is slow.
    mass = np.exp(-np.minimum(m, 1300.0) / 2) * width * series / np.sqrt(2 * np.pi)
    # The middle is inexact by an ulp of itself and of the mean.
    with np.errstate(over="ignore"):
        ulps = 8 + 4 * m + 4 * np.abs(middle * mean)
    error = mass * np.where(m > 1300, 1.0, ulps * ULP)
    return mass, error


def _wide_masses(left: Array, right: Array, mean: float) -> tuple[Array, Array]:
    """Return the masses of wide cells: differences of the tail on the nearer side."""
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
    """Return the masses of a finite pair; ``lost`` is what only Q has, at minus infinity."""
    inside = (loss > edges[0]) & (loss <= edges[-1])
    cell = np.searchsorted(edges, loss[inside], side="left") - 1
    p: Array = np.bincount(cell, mass[inside], edges.size - 1).astype(float)
    q: Array = np.bincount(cell, (mass * np.exp(-loss))[inside], edges.size - 1).astype(float)
    start = np.flatnonzero(edges == -np.inf)
    if 0 < start.size < edges.size:
        q[start[-1]] += lost
    size = float(np.max(np.abs(loss), initial=0.0))
    rounded = (4 + loss.size) * ULP
    return CellMasses(p, q, rounded * p, (rounded + 4 * ULP * size) * q, 4 * ULP * size)


def mirrored(masses: Callable[[Array], Any], edges: Array, infinity: float) -> CellMasses:
    """Return the masses of a symmetric pair from those above 0: the others are their mirror.

    The remaining mass has the loss 0.
    """
    size, cells = edges.size, np.zeros((4, edges.size - 1))
    above = masses(np.append(0.0, edges[edges > 0]))
    below = masses(np.append(0.0, -edges[edges < 0][::-1]))
    positive, negative = above.p.size, below.p.size
    # The first cell above and the first below start at 0, which need not be an edge.
    error = max(above.edge_error, below.edge_error)
    for i, (above_cells, below_cells) in enumerate(
        zip(above[:4], np.array(below[:4])[[1, 0, 3, 2]], strict=True)
    ):
        upper, lower = above_cells, below_cells[::-1]
        start = size - 1 - positive
        cells[i, max(start, 0) :] += upper[max(-start, 0) :]
        cells[i, :negative] += lower[: size - 1]
    both_halves = masses(np.array([0.0, np.inf]))
    p, q = float(both_halves.p[0]) + infinity, float(both_halves.q[0])
    zero_cell = int(np.searchsorted(edges, 0.0)) - 1
    if 0 <= zero_cell < size - 1:
        cells[:2, zero_cell] += max(0.0, 1 - p - q)
        cells[2:, zero_cell] += float(both_halves.p_error[0] + both_halves.q_error[0]) + 4 * ULP
    if edges[0] == -np.inf:
        cells[1, 0] += infinity
    return CellMasses(cells[0], cells[1], cells[2], cells[3], error)
