"""Finite pairs on a lattice above and below a loss whose masses between edges are known.

A loss l has masses p under P and q = p e^-l under Q; its profile is ``sum (p - e^epsilon q)_+``.
Above: the mass of a cell is split between its two ends such that its p and its q both stay the
same.  Below: all mass of the cell around a lattice point is moved to this point.  The mean of the
cell, ln(p / q), need not be the point; a share of a neighbouring cell is added to correct it.
Mass beyond a cut, near the last point of the lattice, is counted apart.
The profile is convex as a function of e^epsilon: spreading mass with the same mean e^loss under Q
raises it, and joining mass lowers it (`docs/proofs/grid_pairs.md`, steps 1 and 2).
Masses come with bounds on their errors; each is moved by its error, and results by a few units of
round-off (`ULP`), in the direction that keeps the order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from accountant.composition.tilted_law import GridLaw
from accountant.losses.cell_masses import CellMasses
from accountant.losses.loss import Loss
from accountant.numerics import Array
from accountant.numerics.rounding import ULP

CELLS_TO_CENTRE = 24  # cells above a point whose mass is used when the lattice is centred on it
MAX_SHARE = 0.25  # the share of its mass that a lattice point gives to each neighbour at most


@dataclass(frozen=True, slots=True)
class PairOnGrid:
    """A law on a lattice, below or above a loss up to its cut, and the masses beyond the cut.

    ``p_beyond`` and ``q_beyond`` are these masses under P and Q.  ``edge_error`` bounds, in nats,
    how far the edges of the cells are off.
    """

    law: GridLaw
    p_beyond: float
    q_beyond: float
    edge_error: float


def centred_offset(loss: Loss, near: float, step: float) -> float:
    """Return a place close to ``near`` for a lattice point that equals the mean of its own cell.

    The pair below then keeps all of this cell's mass at the point.
    """
    # Iterate: the cell around the point, with mass that moves down to it from the cells above
    # (`_move_down`), has the mean ln(p / q), and the point moves there.
    for _ in range(4):  # any result is valid: a closer one keeps more mass at its point
        edges: Array = near + step * (np.arange(CELLS_TO_CENTRE + 1.0) - 0.5)
        cells = loss.cell_masses(edges)
        if cells is None or not (cells.p[0] > 1e-200 and cells.q[0] > 1e-200):
            return near  # ln(p / q) of so small masses could be all underflow
        x = np.exp(np.minimum(edges[:-1] + step / 2, 700.0))
        x[0] = x[-1] = 0.0  # no mass leaves the first and the last cell
        p, q = _move_down(cells.p, cells.q, x)
        near += min(max(float(np.log(p[0] / q[0])) - near, -step / 2), step / 2)
        relative_error = float((cells.p_error[0] + cells.q_error[0]) / p[0])
    # A point slightly below the mean surely keeps all mass.
    return near - 2 * relative_error - 16 * ULP


def pairs_on_grid(
    loss: Loss, count: int, offset: float, step: float, ends: tuple[float, float]
) -> tuple[PairOnGrid, PairOnGrid] | None:
    """Return pairs below and above on the lattice ``offset + step * k`` between ``ends``.

    The result is None where the masses of the loss between edges are not known.
    """
    first_index = int(np.floor((ends[0] - offset) / step))
    last_index = max(int(np.ceil((ends[1] - offset) / step)), first_index + 2)
    # The edges of half cells, from half a step below the first point to half a step above the last.
    edges: Array = offset + step / 2 * np.arange(2.0 * first_index - 1, 2.0 * last_index + 2)
    cells = loss.cell_masses(np.concatenate([[-np.inf], edges, [np.inf]]))
    if cells is None:
        return None
    points = edges[1::2]
    lower = _below(_merged(cells, 1), points)
    upper = _above(cells, points, step)
    infinity = loss.infinity
    # Beyond the cut of the pair below is the last cell, more than half a step above the last point;
    # beyond that of the pair above also the half cell before.  A release there adds
    # P - e^epsilon Q: for the pair below P is rounded down and Q up, for the pair above P is
    # rounded up and Q down.
    below = PairOnGrid(
        GridLaw(step, first_index, offset, lower, count),
        p_beyond=(cells.p[-1] - cells.p_error[-1]) + infinity * (1 - 16 * ULP),
        q_beyond=cells.q[-1] + cells.q_error[-1],
        edge_error=cells.edge_error,
    )
    p_top = np.array([cells.p[-1], cells.p_error[-1], cells.p[-2], cells.p_error[-2]])
    above = PairOnGrid(
        GridLaw(step, first_index, offset, upper, count),
        p_beyond=float(np.sum(p_top)) + infinity * (1 + 16 * ULP),
        q_beyond=(cells.q[-1] - cells.q_error[-1]) + (cells.q[-2] - cells.q_error[-2]),
        edge_error=cells.edge_error,
    )
    return below, above


def _merged(cells: CellMasses, start: int) -> tuple[Array, Array, Array, Array]:
    """Return neighbouring half cells added in pairs, from the ``start``-th half cell on."""
    pairs = (cells.p.size - 1 - start) // 2
    p, q, p_error, q_error = (
        masses[start : start + 2 * pairs].reshape(-1, 2).sum(axis=1) for masses in cells[:4]
    )
    return p, q, p_error + 2 * ULP * p, q_error + 2 * ULP * q


def _above(cells: CellMasses, points: Array, step: float) -> Array:
    """Return masses of P on the points of the pair above, from half cells.

    The half cells reach half a step beyond the first and the last point.
    """
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
    """Return masses of P on the points of the pair above: each cell's mass goes to its two ends.

    ``cells`` holds the masses under P and Q, and their errors: below the first point, between the
    points, and above the last.  ``width`` is how far the points are apart.  What lies above the
    last point is left out.
    """
    p, q, p_error, q_error = (masses[1:-1] for masses in cells)
    p = p + p_error
    x_q = np.maximum(q - q_error, 0.0) * np.exp(points[:-1])
    # e^l is inexact by some ulps and by the error of l, which is 4 ulps of its size at most, and
    # the edge may be `edge_error` off: twice that is on the safe side.
    x_q *= 1 - 4 * ULP * (2 + np.abs(points[:-1])) - 2 * edge_error
    # A cell from l to l + h: a + b = p and a e^-l + b e^-(l + h) = q, a at its left end and b at
    # its right end.  Hence b = (p - e^l q) / (1 - e^-h), rounded up here.
    right = np.minimum(np.maximum(p - x_q, 0.0) / -np.expm1(-width) * (1 + 8 * ULP), p)
    mass = np.zeros(points.size)
    mass[:-1] = p - right
    mass[1:] += right
    # The mass of P below all points moves up to the first one; the rest of its mass of Q counts at
    # a loss of minus infinity.
    mass[0] += cells[0][0] + cells[2][0]
    return mass * (1 + 4 * ULP)


def _below(cells: tuple[Array, Array, Array, Array], points: Array) -> Array:
    """Return masses of P on the points of the pair below.

    ``cells`` holds the masses around each point under P and Q, and their errors.  A point's loss is
    at most the mean loss ln(p / q) of the mass that is moved to it.
    """
    p, q, p_error, q_error = cells
    p, q = np.maximum(p - p_error, 0.0), q + q_error
    x = np.exp(points) * (1 + 4 * ULP * (2 + np.abs(points)))
    p, q = _move_down(p, q, x)
    # With x = e^l, the slack p - x q of the mass at a point must not be negative: its mean loss
    # ln(p / q) is then at least l.  Where it is, the point gets the share need / gain of the mass
    # at the next point above; after `_move_down` that is at most MAX_SHARE.
    slack = p - x * q
    gain = np.maximum(p[1:] - x[:-1] * q[1:], 0.0)
    down = np.zeros(p.size)
    need = np.maximum(-slack[:-1], 0.0)
    down[1:] = np.where(need > 0, need / np.maximum(gain, 1e-300) * (1 + 8 * ULP), 0.0)
    # Where the slack is positive, the share slack / cost of the mass at the next point below moves
    # up to the point.  A point that gives away mass itself has less slack: the shares are made
    # first as if none did, and then again with the slack of the mass that stays for sure.
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
    """Move mass to the next point below where it is too low for its own point.

    That is where the next cell above would have to give more than `MAX_SHARE` to correct its mean.
    ``x`` is e^loss of the points.  Mass that is still too low after 12 passes is dropped: a pair
    below may lose mass.
    """
    heaviest = int(np.argmax(p))
    for i in range(12):
        need = np.maximum(x * q - p, 0.0)
        gain = np.append(np.maximum(p[1:] - x[:-1] * q[1:], 0.0), 0.0)
        low = need > MAX_SHARE * gain
        # The heaviest cell waits three passes: mass that arrives from above may correct its mean.
        low[heaviest] &= i >= 3
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
