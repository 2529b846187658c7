"""What selection mechanisms share: the chosen index, pairs of two candidates."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from accountant.numerics import Array


def picked(log_probabilities: Array, output: ArrayLike, each: bool) -> Array:
    """Log-probability of each output; a batch of score vectors is summed over unless ``each``."""
    told, count = np.asarray(output), log_probabilities.shape[-1]
    possible = (told >= 0) & (told < count)
    chosen = np.where(possible, told, 0)
    if log_probabilities.ndim == 1:
        return np.where(possible, log_probabilities[chosen], -np.inf)
    found = log_probabilities[np.arange(len(log_probabilities)), chosen]
    rows: Array = np.where(possible, found, -np.inf)
    total: Array = rows if each else rows.sum(axis=-1)
    return total


def gap_of_range(range_: float, epsilon: float) -> float:
    """Gap of two candidates' scores over the scale at which ``epsilon`` costs the most.

    The odds then have log-ratios t and t - range with t = (epsilon + range) / 2.
    """
    t = (epsilon + range_) / 2
    return math.log(math.expm1(range_ - t) / -math.expm1(-t)) if range_ < 700 else range_ - t


def two_candidates(gap: float, sensitivity: float) -> tuple[Array, Array]:
    """Scores of two candidates ``gap`` apart, and a neighbour where the gap is two less."""
    return np.array([gap, 0.0]), np.array([gap - sensitivity, sensitivity])
