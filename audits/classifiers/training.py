"""A rule learned from runs: the score with the greatest out-of-fold bound, cut at two tails.

One number is its own score, or smoothed log-odds of it; of any other output, features are.  A
score is calibrated on cells by runs that its weights were not learned from, and a guess is made
in its two tails, either of which may be empty.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from accountant.numerics import Array
from audits.classifiers.decision_rules import Bands, Guesser, Rule, merged
from audits.classifiers.feature_schema import Outputs, as_numbers
from audits.classifiers.linear_scores import Chain
from audits.classifiers.model_candidates import Candidate, candidates
from audits.classifiers.objective import NOTHING, Aim, Prospect
from audits.classifiers.smoothed_log_odds import Cells, Steps, cells_of

LONGER = 0.3  # standard errors by which a candidate must beat those before it


@final
@dataclass(frozen=True, slots=True)
class Learned:
    """A trained score and its calibrated cells; ``learned`` runs went into it."""

    candidate: Candidate
    score: Any
    cells: Cells
    learned: int

    def sureness(self, aim: Aim) -> float:
        """By how many standard errors the best rule is expected to refute the aim's claim."""
        return tails(self.cells, replace(aim, learned=self.learned))[3].sureness

    def rule(self, aim: Aim) -> Guesser:
        """The tails that serve the aim best."""
        low, high, up, expected = tails(self.cells, replace(aim, learned=self.learned))
        if self.candidate.number:
            return Numbers(self._bands(low, high, up, expected))
        # what travels to other processes: the score, not the runs that it was learned from
        edges, words = self.cells.edges, self.candidate.words
        score = Chain((self.candidate.extract, self.score))
        # the lower tail is at most, the upper tail above, an edge
        least = -np.inf if low == 0 else np.inf if low > edges.size else float(edges[low - 1])
        cut = np.inf if high > edges.size else -np.inf if high == 0 else float(edges[high - 1])
        cut = float(np.nextafter(cut, np.inf)) if math.isfinite(cut) else cut
        if up < 0:
            return Rule(Chain((score, np.negative)), -least, expected, f"minus {words}", -cut)
        return Rule(score, cut, expected, words, least)

    def log_odds(self, outputs: Outputs) -> Array:
        """Calibrated log-odds of the first value."""
        return self.cells.log_odds[self.cells.at(self._of_outputs(outputs))]

    def _of_outputs(self, outputs: Outputs) -> Array:
        result: Array = self.score(self.candidate.extract(outputs))
        return result

    def _bands(self, low: int, high: int, up: int, expected: Prospect) -> Bands:
        """The two tails as bands of the number itself."""
        edges, at = self.cells.edges, np.arange(self.cells.edges.size + 1)
        if isinstance(self.score, Steps):
            edges, at = self.score.cells.edges, self.cells.at(self.score.cells.log_odds)
        labels = np.where(at >= high, up, np.where(at < low, -up, 0)).astype(np.int8)
        return merged(edges, labels, expected)


@final
@dataclass(frozen=True, slots=True)
class Numbers:
    """Bands of outputs that were all numbers when the bands were learned."""

    bands: Bands

    @property
    def expected(self) -> Prospect:
        """What was expected when the rule was chosen."""
        return self.bands.expected

    @property
    def sides(self) -> int:
        """How many of the two values it ever guesses."""
        return self.bands.sides

    @property
    def whole(self) -> bool:
        """Whether it guesses in every run."""
        return self.bands.whole

    def counts(self, first: Outputs, second: Outputs) -> tuple[int, int]:
        """(right guesses, guesses) on outputs of the first and of the second value."""
        return self.bands.counts(as_numbers(first), as_numbers(second))

    def told(self, first: str, second: str) -> str:
        """Which value it guesses where."""
        return self.bands.told(first, second)


def learn(first: Outputs, second: Outputs, aim: Aim) -> Learned:
    """The candidate with the greatest out-of-fold bound, trained on all runs."""
    runs = len(first) + len(second)
    aim = replace(aim, learned=runs)
    margin = LONGER / math.sqrt(0.2 * runs)
    best, most = None, -math.inf
    for one in candidates(first, second):
        cells = cells_of(*_out_of_fold(one))
        expected = tails(cells, aim)[3].bound
        if best is None or expected > most + margin:
            best, most = (one, cells), expected
    if best is None:
        raise AssertionError("there is always a candidate")
    one, cells = best
    return Learned(one, one.train(list(range(len(one.parts)))), cells, runs)


def tails(cells: Cells, aim: Aim) -> tuple[int, int, int, Prospect]:
    """(low, high, up, what to expect) of the best two tails.

    One side is guessed below cell ``low``, the other from ``high`` on; ``up`` is 1 where the upper
    tail is the first value's, else -1.
    """
    from scipy.special import expit

    mass, first, second = (
        np.append(0.0, np.cumsum(cells.mass * weight))
        for weight in (1.0, expit(cells.log_odds), expit(-cells.log_odds))
    )
    size = cells.mass.size
    low, high = np.triu_indices(size + 1)
    made = mass[low] + mass[-1] - mass[high]
    both = (low > 0) & (high < size)
    best = (0, size, 1, NOTHING)
    for up, below, above in ((1, second, first), (-1, first, second)):
        right = below[low] + above[-1] - above[high]
        at, expected = aim.best(right, made, both)
        if expected.bound > best[3].bound:
            best = int(low[at]), int(high[at]), up, expected
    return best


def _out_of_fold(one: Candidate) -> tuple[Array, Array]:
    """Scores of both sides, each run's by weights that were learned from the other folds."""
    folds = range(len(one.parts))

    def each() -> Iterator[tuple[Array, Array]]:
        for fold in folds:
            score = one.train([other for other in folds if other != fold or len(folds) == 1])
            a, b = one.parts[fold]
            yield score(a), score(b)

    first, second = zip(*each(), strict=True)
    return np.concatenate(first), np.concatenate(second)
