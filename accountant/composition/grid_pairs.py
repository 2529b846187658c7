"""Finite pairs on a lattice above and below a loss whose masses between edges are known.

Above: the mass of a cell goes to its two ends, so that its masses under P and Q both stay.
Below: the mass around a lattice point is contracted to it; what its mean is off is made up for by
a share of a neighbour.  Convexity gives the order of the profiles (`docs/proofs/grid_pairs.md`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from accountant.composition.tilted_law import GridLaw
from accountant.losses.cell_masses import CellMasses
from accountant.losses.loss import Loss
from accountant.numerics import Array
from accountant.numerics.rounding import ULP

CELLS_TO_CENTRE = 24
MAX_SHARE = 0.25  # of its mass, that a lattice point gives to each neighbour


@dataclass(frozen=True, slots=True)
class PairOnGrid:
    """A law below or above a loss up to its cut, and what lies beyond: masses under P and Q."""

    law: GridLaw
    p_beyond: float
    q_beyond: float
    edge_error: float


def centred_offset(loss: Loss, near: float, step: float) -> float:
    """Return the place of a point close to ``near`` that loses nothing of its mean, below."""
    # narrow mass stays whole there, with what the next points cannot hold
    for _ in range(4):
        edges: Array = near + step * (np.arange(CELLS_TO_CENTRE + 1.0) - 0.5)
        cells = loss.cell_masses(edges)
        if cells is None or not (cells.p[0] > 1e-200 and cells.q[0] > 1e-200):
            return near
        x = np.exp(np.minimum(edges[:-1] + step / 2, 700.0))
        x[0] = x[-1] = 0.0  # nothing leaves the first and the last
        p, q = _move_down(cells.p, cells.q, x)
        near += min(max(float(np.log(p[0] / q[0])) - near, -step / 2), step / 2)
        missed = float((cells.p_error[0] + cells.q_error[0]) / p[0])
    return near - 2 * missed - 16 * ULP


def pairs_on_grid(
    loss: Loss, count: int, offset: float, step: float, ends: tuple[float, float]
) -> tuple[PairOnGrid, PairOnGrid] | None:
    """Return pairs below and above on the lattice ``offset + step * k`` between ``ends``."""
    first_index = int(np.floor((ends[0] - offset) / step))
    last_index = max(int(np.ceil((ends[1] - offset) / step)), first_index + 2)
    # half cells, from half a step below the first point to half a step above the last
    edges: Array = offset + step / 2 * np.arange(2.0 * first_index - 1, 2 * last_index + 2)
    cells = loss.cell_masses(np.concatenate([[-np.inf], edges, [np.inf]]))
    if cells is None:
        return None
    points = edges[1::2]
    lower = _below(_merged(cells, 1), points)
    upper = _above(cells, points, step)
    infinity = loss.infinity
    p_top = np.array([cells.p[-1], cells.p_error[-1], cells.p[-2], cells.p_error[-2]])
    q_top = np.array([cells.q[-1], cells.q_error[-1], cells.q[-2], cells.q_error[-2]])
    below = PairOnGrid(
        GridLaw(step, first_index, offset, lower, count),
        (p_top[0] - p_top[1]) + infinity * (1 - 16 * ULP),
        q_top[0] + q_top[1],
        cells.edge_error,
    )
    above = PairOnGrid(
        GridLaw(step, first_index, offset, upper, count),
        float(np.sum(p_top)) + infinity * (1 + 16 * ULP),
        (q_top[0] - q_top[1]) + (q_top[2] - q_top[3]),
        cells.edge_error,
    )
    return below, above


def _merged(cells: CellMasses, start: int) -> tuple[Array, Array, Array, Array]:
    """Return neighbouring half cells as one, from the ``start``-th on."""
    pairs = (cells.p.size - 1 - start) // 2
    p, q, p_error, q_error = (
        masses[start : start + 2 * pairs].reshape(-1, 2).sum(axis=1) for masses in cells[:4]
    )
    return p, q, p_error + 2 * ULP * p, q_error + 2 * ULP * q


def _above(cells: CellMasses, points: Array, step: float) -> Array:
    """Return masses of P on the points, above, of half cells that end half a step beyond."""
    lowest = (masses[:1] + masses[1:2] for masses in cells[:4])
    highest = (masses[-2:-1] + masses[-1:] for masses in cells[:4])
    joined = zip(lowest, _merged(cells, 2), highest, strict=True)
    p, q, p_error, q_error = (np.concatenate(parts) for parts in joined)
    return masses_above((p, q, p_error, q_error), points, step, cells.edge_error)


def masses_above(
    cells: tuple[Array, Array, Array, Array],
    points: Array,
    width: Array | float,
    edge_error: float,
) -> Array:
    """Return masses of P on the points, above: each cell's at its two ends.

    ``cells``: masses under P and Q below the first point, between the points and above the last,
    and their errors; ``width`` is how far the points are apart.  What lies above the last point is
    left out.
    """
    p, q, p_error, q_error = (masses[1:-1] for masses in cells)
    p = p + p_error
    x_q = np.maximum(q - q_error, 0.0) * np.exp(points[:-1])
    x_q *= 1 - 4 * ULP * (2 + np.abs(points[:-1])) - 2 * edge_error
    # a + b = p and a e^-l + b e^-(l + h) = q
    right = np.minimum(np.maximum(p - x_q, 0.0) / -np.expm1(-width) * (1 + 8 * ULP), p)
    mass = np.zeros(points.size)
    mass[:-1] = p - right
    mass[1:] += right
    # what lies to the left of all points: its outcomes of Q alone go to minus infinity
    mass[0] += cells[0][0] + cells[2][0]
    return mass * (1 + 4 * ULP)


def _below(cells: tuple[Array, Array, Array, Array], points: Array) -> Array:
    """Return masses of P on the points, below: each is the mean, or less, of what goes there."""
    p, q, p_error, q_error = cells
    p, q = np.maximum(p - p_error, 0.0), q + q_error
    x = np.exp(points) * (1 + 4 * ULP * (2 + np.abs(points)))
    p, q = _move_down(p, q, x)
    # slack: p - x q of what is at a point; where it is negative, a share from above makes up
    slack = p - x * q
    gain = np.maximum(p[1:] - x[:-1] * q[1:], 0.0)
    down = np.zeros(p.size)
    need = np.maximum(-slack[:-1], 0.0)
    down[1:] = np.where(need > 0, need / np.maximum(gain, 1e-300) * (1 + 8 * ULP), 0.0)
    # where it is positive, a share from below is pulled up
    cost = np.maximum(x[1:] * q[:-1] - p[:-1], 0.0)
    up = np.zeros(p.size)
    spare = np.maximum(slack[1:], 0.0) / np.maximum(cost, 1e-300) * (1 - 8 * ULP)
    up[:-1] = np.minimum(spare, MAX_SHARE)
    spare *= (1 - down - up)[1:]
    up[:-1] = np.minimum(spare, MAX_SHARE)
    mass = p * (1 - down - up)
    mass[:-1] += p[1:] * down[1:]
    mass[1:] += p[:-1] * up[:-1]
    return np.maximum(mass * (1 - 16 * ULP), 0.0)


def _move_down(p: Array, q: Array, x: Array) -> tuple[Array, Array]:
    """Move a cell to the point below where its mean is too low for its neighbour to make up."""
    heaviest = int(np.argmax(p))
    for i in range(12):
        need = np.maximum(x * q - p, 0.0)
        gain = np.append(np.maximum(p[1:] - x[:-1] * q[1:], 0.0), 0.0)
        low = need > MAX_SHARE * gain
        low[heaviest] &= i >= 3  # what comes from above may be what it needs
        if i >= 3 and not low.any():
            break
        keep = np.where(low, 0.0, 1.0)
        moved_p, moved_q = p * (1 - keep), q * (1 - keep)
        p, q = p * keep, q * keep
        p[:-1] += moved_p[1:]
        q[:-1] += moved_q[1:]
    else:
        low = np.maximum(x * q - p, 0.0) > 0
        p, q = np.where(low, 0.0, p), np.where(low, 0.0, q)
    return p, q
