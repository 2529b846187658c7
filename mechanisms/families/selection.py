"""What selection mechanisms share: scores, the chosen index, pairs of two candidates."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.numerics.rounding import round_up_ratio
from mechanisms.base.mechanism import Mechanism
from mechanisms.base.supports import Candidates
from mechanisms.base.values import Scores

LARGEST_GAP = 1e300


@dataclass(frozen=True, slots=True)
class Boolean:
    """A fact that holds or does not."""

    def check(self, argument: str, value: object) -> bool:
        """Return ``value`` as a bool; 0 and 1 are numbers."""
        if not isinstance(value, (bool, np.bool_)):
            raise ParameterError(argument, value, str(self))
        return bool(value)

    def __str__(self) -> str:
        return "True or False"


BOOLEAN = Boolean()
MONOTONE_TEXT = "whether all scores move up, or all down, between neighbours"


class SelectionMechanism(Mechanism):
    """The index of a high score."""

    __slots__ = ()
    releases = "the index of a high score"
    scale: float
    sensitivity: float
    monotone: bool

    @abstractmethod
    def log_probabilities(self, scores: Array) -> Array:
        """Log-probability of every candidate, for one or more rows of checked scores."""

    def log_density(self, output: ArrayLike, value: ArrayLike, each: bool = False) -> Array:
        """Log-probability of the winner; see `Mechanism.log_density`."""
        return log_probability_of_output(
            self.log_probabilities(self.values.check(value)), output, each
        )

    @property
    def values(self) -> Scores:
        """Scores."""
        return Scores(self.sensitivity, self.monotone)

    @property
    def support(self) -> Candidates:
        """The candidates."""
        return Candidates()

    @property
    def _score_range(self) -> float:
        # how far neighbours can move the gap of two scores, over the scale
        return round_up_ratio((1 if self.monotone else 2) * self.sensitivity, self.scale)

    def _pair_with_gap(self, gap: float) -> tuple[Array, Array]:
        # two candidates whose gap, over the scale, shrinks by the range
        return two_candidate_pair(gap * self.scale, self.sensitivity, self.monotone)


def scaled_difference(scores: Array, origin: ArrayLike, scale: float) -> Array:
    """``(scores - level) / scale`` of any floats, kept within ``+-FAR``."""
    with np.errstate(over="ignore"):  # halves can be subtracted; the quotient may still be inf
        height = (scores / 2 - np.asarray(origin) / 2) / (scale / 2)
    kept: Array = np.minimum(np.maximum(height, -LARGEST_GAP), LARGEST_GAP)
    return kept


def scaled_gap_to_best(scores: Array, scale: float) -> Array:
    """Scores over the scale, the greatest of every row moved to 0."""
    return scaled_difference(scores, scores.max(axis=-1, keepdims=True), scale)


def recentred_large_scores(scores: Array, scale: float) -> Array:
    """The scores, moved along where they are so great that floats would lose noise of a scale."""
    if max(scores.max(initial=0.0), -scores.min(initial=0.0)) < 1e6 * scale:
        return scores
    with np.errstate(over="ignore"):  # minus infinity never wins, as it should
        moved: Array = scores - scores.max(axis=-1, keepdims=True)
    return moved


def entries_at(table: Array, index: NDArray[np.intp]) -> Array:
    """Entries of a row, or of every row of a table, at each index."""
    if table.ndim == 1:
        return table[index]
    return table[np.arange(len(table)), index]


def log_probability_of_output(log_probabilities: Array, output: ArrayLike, each: bool) -> Array:
    """Log-probability of each output; a batch of score vectors is summed over unless ``each``."""
    told, count = np.asarray(output), log_probabilities.shape[-1]
    possible = (told >= 0) & (told < count) & (told == np.floor(told))
    found = entries_at(log_probabilities, np.where(possible, told, 0).astype(np.intp))
    rows: Array = np.where(possible, found, -np.inf)
    total: Array = rows if each or log_probabilities.ndim == 1 else rows.sum(axis=-1)
    return total


def worst_gap(range_: float, epsilon: float) -> float:
    """Gap of two candidates' scores over the scale at which ``epsilon`` costs the most.

    The odds then have log-ratios t and t - range with t = (epsilon + range) / 2.
    """
    t = (epsilon + range_) / 2
    return math.log(math.expm1(range_ - t) / -math.expm1(-t)) if range_ < 700 else range_ - t


def two_candidate_pair(
    gap: float, sensitivity: float, monotone: bool = False
) -> tuple[Array, Array]:
    """Scores of two candidates ``gap`` apart, and a neighbour where the gap is least.

    Both move, towards each other; monotone ones cannot, and the first moves alone.
    """
    rise = 0.0 if monotone else sensitivity
    return np.array([gap, 0.0]), np.array([gap - sensitivity, rise])
