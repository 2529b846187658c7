"""Masses of the privacy loss, between edges, of the pair whose profile is the greatest of several.

A user pays for one of several parts, and it is not known for which.  Part i has the profile

    delta_i(x) = P_i(L > ln x) - x Q_i(L > ln x),    x = e^epsilon,

with P_i and Q_i its laws on two neighbours and L = ln(dP_i / dQ_i) its loss, and it gives its
masses in the cells between increasing edges of the loss.  The profile is convex in x, and the line
P_i(L > l) - x Q_i(L > l), for an edge l, is its tangent at x = e^l.  So the greatest profile, max_i
delta_i, belongs to a pair that has at each edge the tails of the part that is greatest there.  In a
cell this pair has the differences of its tails at the two edges: where the same part is greatest at
both, these are the masses of that part.

Statement 10 of `docs/proofs/grid_pairs.md` proves the errors that are added here.
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
    """Return the masses of the greatest profile between ``edges``, of which the last is infinity.

    ``infinities`` are the parts' masses at infinite losses.  The errors are large enough that an
    upper bound that adds them to the masses is above the profile of every part at every edge.
    """
    with np.errstate(over="ignore"):
        x = np.exp(edges)
    # one row for each part
    p, q, p_error, q_error = (np.array([masses[i] for masses in parts]) for i in range(4))
    p_above, q_above = _tails(p), _tails(q)
    # of a tail of n cells: at most 2 sqrt(n) additions of half an ulp, with room (`_tails`)
    tail_round_off = (4 * math.sqrt(edges.size) + 16) * ULP
    edge_error = max(masses.edge_error for masses in parts)
    error = _errors(p, p_error, q_error, x, tail_round_off, edge_error)
    # The parts' profiles at the edges.  The tolerance is the sum of all errors above an edge.
    with np.errstate(invalid="ignore"):
        values = p_above - np.where(q_above > 0, x * q_above, 0.0)
    values += np.array(infinities)[:, None]
    (tolerance,) = _tails(error[None])
    part_at_edge = _greatest(values, tolerance)
    # A cell belongs to the part at its lower edge.  Where that at its upper edge is another one,
    # its masses are the differences of the two parts' tails.
    part_of_cell, cells = part_at_edge[:-1], np.arange(edges.size - 1)
    envelope_p, envelope_q = p[part_of_cell, cells], q[part_of_cell, cells]
    q_missed = np.zeros(cells.size)
    for j in np.flatnonzero(part_of_cell != part_at_edge[1:]).tolist():
        lower_part, upper_part = part_at_edge[j], part_at_edge[j + 1]
        envelope_p[j] = p_above[lower_part, j] - p_above[upper_part, j + 1]
        envelope_p[j] += infinities[lower_part] - infinities[upper_part]
        envelope_q[j] = q_above[lower_part, j] - q_above[upper_part, j + 1]
        # twice the round-off of both tails
        q_missed[j] = 2 * tail_round_off * (q_above[lower_part, j] + q_above[upper_part, j + 1])
        # Round-off can make a mass of Q negative.  It is set to 0, and P gets x times its size,
        # with x at the upper edge: this raises P - x Q at every x up to there.
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
    p: Array, p_error: Array, q_error: Array, x: Array, tail_round_off: float, edge_error: float
) -> Array:
    """Return errors of P in the cells, whose sum above an edge is more than all errors there.

    They are twice the parts' own errors, those of Q times x at the lower edge, then 8 times the
    round-off of the tails, and 8 times what edges that are off by ``edge_error`` can move between a
    cell and its neighbours.  The proof needs less than these factors.
    """
    total = p.sum(axis=0)
    mass_nearby = total.copy()
    mass_nearby[1:] += total[:-1]
    mass_nearby[:-1] += total[1:]
    edge_errors = p_error.sum(axis=0) + x[:-1] * q_error.sum(axis=0)
    error: Array = 2 * edge_errors + 8 * tail_round_off * total + 8 * edge_error * mass_nearby
    return error


def _greatest(values: Array, tolerance: Array) -> Array:
    """Return the number of the part that is greatest at each edge, up to a tolerance.

    ``values`` has a row for each part.  From the top edge downwards a part is kept as long as it
    falls short of the greatest value by at most the tolerance, because every change of the part
    adds an error.
    """
    best = np.argmax(values, axis=0)
    top, greatest = values.shape[1] - 1, np.max(values, axis=0)
    part = np.full(values.shape[1], best[top])
    while top > 0:
        falls_short = np.flatnonzero(values[part[top], :top] < greatest[:top] - tolerance[:top])
        if falls_short.size == 0:
            break
        top = int(falls_short[-1])
        part[: top + 1] = best[top]
    return part


def _tails(masses: Array) -> Array:
    """Return, for each row, the sums of the masses above each edge.

    Blocks of about sqrt(n) of the n masses are summed first, and then the blocks, so that a sum has
    a round-off of about 2 sqrt(n) additions.
    """
    rows, size = masses.shape
    width = math.isqrt(max(size - 1, 0)) + 1
    blocks = -(-size // width)
    padded = np.zeros((rows, blocks * width))
    padded[:, blocks * width - size :] = masses
    # from the top: the last block first, and in each block the last mass first
    sums_in_block = np.cumsum(padded.reshape(rows, blocks, width)[:, ::-1, ::-1], axis=2)
    blocks_above = np.cumsum(sums_in_block[:, :, -1], axis=1) - sums_in_block[:, :, -1]
    sums = (sums_in_block + blocks_above[:, :, None]).reshape(rows, -1)[:, :size][:, ::-1]
    return np.concatenate([sums, np.zeros((rows, 1))], axis=1)
