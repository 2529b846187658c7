"""Masses between edges of the pair whose profile is the greatest of several.

A user pays for one of several parts, each with a profile delta_i(epsilon) = P_i(L > epsilon) -
e^epsilon Q_i(L > epsilon) and masses in cells of the loss L.  With x = e^epsilon, the tails P_i and
Q_i above an edge are a tangent of the convex curve delta_i(x) there.  So the greatest profile has
at each edge the tails of the part that is greatest there, and in a cell the difference of the tails
at both edges.  Proof: `docs/proofs/grid_pairs.md`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from accountant.losses.cell_masses import CellMasses
from accountant.numerics import Array
from accountant.numerics.rounding import ULP


def greatest_cell_masses(
    parts: Sequence[CellMasses], infinities: Sequence[float], edges: Array
) -> CellMasses:
    """Return masses between edges, of which the last is infinity.

    The errors are so large that an upper bound that adds them is above the profile of every part
    at every edge.
    """
    with np.errstate(over="ignore"):
        x = np.exp(edges)
    p, q, p_error, q_error = (np.array([masses[i] for masses in parts]) for i in range(4))
    p_above, q_above = _tails(p), _tails(q)
    ulps = (4 * math.sqrt(edges.size) + 16) * ULP
    edge_error = max(masses.edge_error for masses in parts)
    error = _errors(p, p_error, q_error, x, ulps, edge_error)
    with np.errstate(invalid="ignore"):
        values = p_above - np.where(q_above > 0, x * q_above, 0.0)
    part = _greatest(values + np.array(infinities)[:, None], _tails(error[None])[0])
    part_of_cell, cells = part[:-1], np.arange(edges.size - 1)
    envelope_p, envelope_q = p[part_of_cell, cells], q[part_of_cell, cells]
    q_missed = np.zeros(cells.size)
    for j in np.flatnonzero(part_of_cell != part[1:]).tolist():
        before, after = part[j], part[j + 1]
        envelope_p[j] = p_above[before, j] - p_above[after, j + 1]
        envelope_p[j] += infinities[before] - infinities[after]
        envelope_q[j] = q_above[before, j] - q_above[after, j + 1]
        q_missed[j] = 2 * ulps * (q_above[before, j] + q_above[after, j + 1])
        # A negative mass of Q, by round-off, is set to 0 and given to P, at the upper end.
        if envelope_q[j] < 0:
            envelope_p[j] -= x[j + 1] * envelope_q[j] * (1 + 4 * ULP)
    return CellMasses(
        np.maximum(envelope_p, 0.0),
        np.maximum(envelope_q, 0.0),
        error,
        q_error.sum(axis=0) + q_missed,
        edge_error,
    )


def _errors(
    p: Array, p_error: Array, q_error: Array, x: Array, ulps: float, edge_error: float
) -> Array:
    """Return masses of P whose sums above an edge are more than the errors of all parts there."""
    total = p.sum(axis=0)
    around = total.copy()
    around[1:] += total[:-1]
    around[:-1] += total[1:]
    edge_errors = p_error.sum(axis=0) + x[:-1] * q_error.sum(axis=0)
    error: Array = 2 * edge_errors + 8 * ulps * total + 8 * edge_error * around
    return error


def _greatest(values: Array, tolerance: Array) -> Array:
    """Return the part that is greatest at each edge, up to a tolerance.

    From the top edge down the part changes only where it falls short by more, as changes cost.
    """
    best = np.argmax(values, axis=0)
    top, greatest = values.shape[1] - 1, np.max(values, axis=0)
    part = np.full(values.shape[1], best[top])
    while top > 0:
        behind = np.flatnonzero(values[part[top], :top] < greatest[:top] - tolerance[:top])
        if behind.size == 0:
            break
        top = int(behind[-1])
        part[: top + 1] = best[top]
    return part


def _tails(masses: Array) -> Array:
    """Return the sums above each edge, row by row; sums of blocks keep the round-off small."""
    rows, size = masses.shape
    width = math.isqrt(max(size - 1, 0)) + 1
    blocks = -(-size // width)
    padded = np.zeros((rows, blocks * width))
    padded[:, blocks * width - size :] = masses
    inner = np.cumsum(padded.reshape(rows, blocks, width)[:, ::-1, ::-1], axis=2)
    before = np.cumsum(inner[:, :, -1], axis=1) - inner[:, :, -1]
    sums = (inner + before[:, :, None]).reshape(rows, -1)[:, :size][:, ::-1]
    return np.concatenate([sums, np.zeros((rows, 1))], axis=1)
