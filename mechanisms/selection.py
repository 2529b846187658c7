"""What selection mechanisms share: score vectors, the chosen index, pairs of two candidates."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from accountant.errors import ParameterError, PrivateValueError
from accountant.numerics import Array
from mechanisms.mechanism import real_value


def scores_of(value: ArrayLike, size: int | None = None) -> Array:
    """Scores of at least one candidate along the last axis; a second axis in front is a batch."""
    scores = real_value(value)
    if scores.ndim not in (1, 2) or scores.shape[-1] == 0:
        raise PrivateValueError("value", "a vector of scores, or one such row for each user")
    if size is not None and scores.ndim == 2:
        raise ParameterError("size", size, "None for a batch of score vectors")
    return scores


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
