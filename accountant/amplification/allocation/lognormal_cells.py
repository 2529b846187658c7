"""A law of finitely many values above a log-normal variable, in convex order.

V = e^{mu x - mu^2/2}, x standard normal.  What is in a cell of x moves to both of its ends, with
the same mean: E f(V) grows for every convex f.  Proof: `docs/proofs/random_allocation.md`.
"""

from __future__ import annotations

import math

import numpy as np

from accountant.numerics import Array

CELL = 0.03125  # of x
LOWEST = -12.0  # what is left of it moves to it


def law_above(mu: float, highest: float, cell: float = CELL) -> tuple[Array, Array]:
    """Return values and weights; what is above the highest x goes to the last value.

    The first value is 0.  For falling convex f that is above E f(V); for rising ones it is above
    E[f(V); x <= highest].
    """
    from scipy.special import ndtr

    end = cell * np.arange(math.floor(LOWEST / cell), math.ceil(highest / cell) + 1.0)
    value = np.exp(mu * end - mu * mu / 2)
    mass, mean = (_differences(end - shift) for shift in (0.0, mu))
    up = np.clip((mean - value[:-1] * mass) / np.diff(value), 0.0, mass)
    weight = np.append(mass - up, ndtr(-end[-1])) + np.append(ndtr(end[0]), up)
    return np.append(0.0, value), np.append(ndtr(end[0]), weight)


def _differences(x: Array) -> Array:
    """Return the normal mass between neighbours, from the side where it is small."""
    from scipy.special import ndtr

    side = np.where(x[1:] + x[:-1] > 0, -1.0, 1.0)
    return np.asarray(side * (ndtr(side * x[1:]) - ndtr(side * x[:-1])))
