"""The cost of finite losses by enumeration of every outcome."""

import math

import numpy as np

from accountant import (
    PairLoss,
)


def stick(p, q, epsilon):
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def atoms_of(loss):
    """Every loss here as a finite pair (p, q)."""
    if isinstance(loss, PairLoss):
        return loss.p, loss.q
    high = 1 / (1 + math.exp(-loss.epsilon))
    d = getattr(loss, "delta", 0.0)
    p = (d, (1 - d) * high, (1 - d) * (1 - high), 0.0)
    return p, p[::-1]


def delta_by_enumeration(losses, epsilon):
    """Hockey stick of the product by enumeration of all atoms: the independent road."""
    p, q = np.ones(1), np.ones(1)
    for loss in losses:
        a, b = atoms_of(loss)
        p, q = np.outer(p, a).ravel(), np.outer(q, b).ravel()
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())
