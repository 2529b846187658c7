"""How far one person can move a statistic: from the schema alone (docs/proofs/frames.md).

References: McSherry (2009); Kifer & Machanavajjhala (2011), for the neighbours.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

from accountant.numerics.rounding import round_up
from accountant.plans.adjacency import Adjacency
from algorithms.frames.bases import Basis
from algorithms.frames.schema import Schema


class Sensitivities(NamedTuple):
    """The largest move of a released vector, as the sum of moves and as their root of squares."""

    l1: int
    l2: float


def sensitivities(basis: Basis, schema: Schema, cells: int) -> Sensitivities:
    """Return how far one person moves the sums of ``cells`` cells.

    What a person adds lies in m times the convex hull of zero and the vertices, each in any cell,
    for m rows a person.  A norm is convex, so it is largest at vertices.
    """
    rows, vertices = schema.rows_per_person, [*basis.vertices, (0,) * basis.size]
    l1 = max(sum(map(abs, v)) for v in vertices)
    square = max(sum(x * x for x in v) for v in vertices)
    if schema.relation is Adjacency.REPLACE_ONE:
        for before, after in itertools.combinations(vertices, 2):
            moves = [a - b for a, b in zip(before, after, strict=True)]
            l1 = max(l1, sum(map(abs, moves)))
            square = max(square, sum(x * x for x in moves))
        if cells > 1:  # an exchanged row may move from one cell to another
            l1 = max(l1, 2 * max(sum(map(abs, v)) for v in vertices))
            square = max(square, 2 * max(sum(x * x for x in v) for v in vertices))
    root = math.isqrt(square)
    exact = root * root == square
    return Sensitivities(rows * l1, float(rows * root) if exact else round_up(rows * square**0.5))
