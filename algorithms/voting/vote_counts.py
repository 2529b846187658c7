"""Ternary votes of machines: counts, majority, and stability.

References: Liu, Tu, Mao & Chen (2022), equations (4) and (5).
"""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accountant.numerics import Array

VOTE_SENSITIVITY = 2.0  # one machine moves counts by 1, and every stability and utility by 2
SIGNS = np.array([1, -1, 0], dtype=np.int8)  # in the order of the utilities
MACHINES_PER_SUM = 127  # machines whose votes an 8-bit sum can hold


def count_votes(votes: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how many machines voted 1, and how many -1, for every feature; the rest are null.

    ``votes`` is (machines, features), 8-bit for speed: it is read once, and never widened.
    """
    totals = np.zeros((2, votes.shape[1]), dtype=np.int64)
    for start in range(0, len(votes), MACHINES_PER_SUM):
        block = votes[start : start + MACHINES_PER_SUM]
        for row, sign in enumerate((1, -1)):
            totals[row] += np.add.reduce((block == sign).view(np.int8), axis=0, dtype=np.int8)
    return totals[0], totals[1]


def majority_signs(votes: Any) -> NDArray[np.int8]:
    """Return the sign that more than half of the machines voted for, else 0; not private."""
    positive, negative = count_votes(votes)
    machines = len(votes)
    return (2 * positive > machines).astype(np.int8) - (2 * negative > machines).astype(np.int8)


@final
class VoteCounter:
    """The queries of one run; votes are counted once, at the first query."""

    def __init__(self) -> None:
        self._counted: tuple[Array, Array, Array] | None = None

    def stability(self, votes: Any) -> Array:
        """Return ``2 max(N+, N-) - m`` of every feature, from -m to m: equation (4).

        It is not the number of votes that would have to flip: at N+ = 4 of m = 5 it is 3, and two
        flips change the majority.
        """
        return self._cached_counts(votes)[2]

    def utilities(self, votes: Any, feature: int) -> Array:
        """Return the utilities of 1, -1, 0: ``2 N+ - m``, ``2 N- - m``, ``m - 2 max`` (5)."""
        positive, negative, stability = (count[feature] for count in self._cached_counts(votes))
        return np.array([2 * positive - len(votes), 2 * negative - len(votes), -stability])

    def _cached_counts(self, votes: Any) -> tuple[Array, Array, Array]:
        if self._counted is None:
            positive, negative = (count.astype(float) for count in count_votes(votes))
            stability = 2 * np.maximum(positive, negative) - len(votes)
            self._counted = positive, negative, stability
        return self._counted
