"""Guessing rules: a score for every output, and the cut beyond which a guess is made.

A score is the log-odds that the output came from the first value of the pair.  Rules are fixed
on runs of their own before the test runs are drawn; that is all the exact bound asks of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accountant.numerics import Array
from audits.bounds import epsilon_lower
from mechanisms.mechanism import Mechanism

Score = Callable[[NDArray[Any]], Array]


@final
@dataclass(frozen=True, slots=True)
class Rule:
    """Guess the first value where the score is at least ``cut``, the second where at most -cut."""

    score: Score
    cut: float
    expected: float
    words: str

    def counts(self, first: NDArray[Any], second: NDArray[Any]) -> tuple[int, int]:
        """(right guesses, guesses) on outputs of the first and of the second value."""
        a, b = self.score(first), self.score(second)
        right = np.count_nonzero(a >= self.cut) + np.count_nonzero(b <= -self.cut)
        wrong = np.count_nonzero(a <= -self.cut) + np.count_nonzero(b >= self.cut)
        return int(right), int(right + wrong)


def density_score(mechanism: Mechanism, pair: tuple[Any, Any]) -> Score:
    """The exact log-likelihood ratio of a declared mechanism."""
    first, second = pair
    outcomes = mechanism.support.outcomes(first)

    def ratio(output: NDArray[Any]) -> Array:
        return mechanism.log_density(output, first) - mechanism.log_density(output, second)

    if outcomes is None or np.ndim(first) != mechanism.value_axes:
        return ratio
    table = ratio(outcomes)
    return lambda output: table[output]


def best_cut(
    scores: Array, runs: int, delta: float, alpha: float, penalty: float = 0.0
) -> tuple[float, float]:
    """The cut with the greatest expected bound for ``runs`` test runs, and that bound.

    A guess at score s is right with probability ``1 / (1 + e^-|s|)``, so the expected count of
    right guesses comes from the pooled scores and not from noisy sides.  ``penalty`` is for
    scores that were learned from these very runs: standard errors that selection may have gained.
    """
    size = np.sort(np.abs(scores))[::-1]
    size = size[size > 0]
    if size.size == 0:
        return np.inf, 0.0
    guesses = np.arange(1, size.size + 1, dtype=float)
    correct = np.cumsum(1 / (1 + np.exp(-size)))
    # a cut takes all runs of its size or more; about 500 cuts are enough
    last = np.append(size[1:] < size[:-1], True)
    at = np.flatnonzero(last)
    at = at[np.unique(np.linspace(0, at.size - 1, 500).astype(int))]
    factor = runs / scores.size
    share = np.clip(correct[at] / guesses[at], 1e-9, 1 - 1e-9)
    bound = epsilon_lower(correct[at] * factor, guesses[at] * factor, runs, delta, alpha)
    bound = bound - penalty / np.sqrt(guesses[at] * share * (1 - share))
    best = int(np.argmax(bound))
    # Scores have atoms; a cut exactly on one would read float rounding.
    return float(size[at[best]]) * (1 - 1e-9), float(bound[best])
