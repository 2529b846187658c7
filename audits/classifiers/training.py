"""Learn a decision rule from runs of a mechanism on two values that an audit tells apart.

A rule guesses from an output which of two audited values, the first or the second, it came from.
It maps the output to a score and guesses only in the two tails of the score, either of which may be
empty.  Two steps learn it:

1. Of several candidate scores, the one with the largest expected bound on epsilon is chosen.  For
   this the runs are cut into folds, and each run is scored by weights learned from the other folds.
2. These scores are cut into cells, each with an estimate of the log-odds that an output in it came
   from the first value.  A tail is a number of cells at either end; the two tails are those with
   the best expected outcome for the audit's objective.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

import numpy as np

from accountant.numerics import Array
from audits.classifiers.decision_rules import (
    DecisionRule,
    IntervalRule,
    ThresholdRule,
    merge_intervals,
)
from audits.classifiers.feature_schema import Outputs
from audits.classifiers.linear_scores import Pipeline
from audits.classifiers.model_candidates import ModelCandidate, model_candidates
from audits.classifiers.objective import NO_GUESS, ExpectedOutcome, Objective
from audits.classifiers.smoothed_log_odds import HistogramCells, StepFunction, histogram_cells

# A candidate's bound, in nats, must exceed the best one before it by so many standard errors, else
# a later, less simple candidate would often be chosen by chance.
CANDIDATE_MARGIN = 1.0
# The log-odds of a share s of right guesses among n have the standard error 1 / sqrt(n s (1 - s)).
# Here n s (1 - s) is taken as this share of the runs, 0.2: all runs are guessed, s is 0.72.
GUESS_VARIANCE = 0.2


@final
@dataclass(frozen=True, slots=True)
class TrainedScore:
    """A score trained on ``learning_runs`` runs, and the cells of its out-of-fold scores.

    Out of fold means that a run is scored by weights that were learned without its fold.
    """

    candidate: ModelCandidate  # how outputs become features, and how a score is trained on them
    score: Any  # the function from features to scores, trained on all runs
    cells: HistogramCells
    learning_runs: int

    def z_score(self, objective: Objective) -> float:
        """The expected z-score of the best rule's right guesses against the objective's claim."""
        return self._tails(objective).expected.z_score

    def rule(self, objective: Objective) -> DecisionRule:
        """The rule whose tails suit the objective best."""
        tails = self._tails(objective)
        if self.candidate.is_number:
            return self._interval_rule(tails)
        # A rule may be sent to other processes, so it holds the score and not the candidate, which
        # has all runs.
        edges, description = self.cells.edges, self.candidate.description
        score = Pipeline((self.candidate.extract, self.score))
        if isinstance(self.score, StepFunction):
            lower_cut, upper_cut = self._cuts_of_steps(self.score.cells, tails)
        else:
            # Cell k is (edges[k-1], edges[k]]: the lower tail has the scores up to an edge, the
            # upper tail those above one, that is from the next float on.
            ends = np.concatenate([[-np.inf], edges, [np.inf]])
            lower_cut, upper_cut = float(ends[tails.low]), float(ends[tails.high])
            if math.isfinite(upper_cut):
                upper_cut = float(np.nextafter(upper_cut, np.inf))
        if tails.up > 0:
            return ThresholdRule(
                score,
                cut=upper_cut,
                expected=tails.expected,
                description=description,
                low=lower_cut,
            )
        # A `ThresholdRule` guesses the first value in the upper tail of its score.  Where that is
        # to be guessed in the lower tail, the score is negated, and the cuts with it.
        return ThresholdRule(
            Pipeline((score, np.negative)),
            cut=-lower_cut,
            expected=tails.expected,
            description=f"minus {description}",
            low=-upper_cut,
        )

    def _tails(self, objective: Objective) -> Tails:
        """The best tails, for an objective that counts the errors of the learning runs."""
        return best_tails(self.cells, replace(objective, learning_runs=self.learning_runs))

    def log_odds(self, outputs: Outputs) -> Array:
        """Estimated log-odds that each output came from the first value."""
        scores = self.score(self.candidate.extract(outputs))
        return self.cells.log_odds[self.cells.cell_of(scores)]

    def _interval_rule(self, tails: Tails) -> IntervalRule:
        """The two tails as intervals of the output itself, which is a number."""
        if isinstance(self.score, StepFunction):
            steps = self.score.cells
            lower_cut, upper_cut = self._cuts_of_steps(steps, tails)
            edges = steps.edges
            is_upper, is_lower = steps.log_odds >= upper_cut, steps.log_odds <= lower_cut
        else:
            edges, cell = self.cells.edges, np.arange(self.cells.edges.size + 1)
            is_upper, is_lower = cell >= tails.high, cell < tails.low
        labels = np.where(is_upper, tails.up, np.where(is_lower, -tails.up, 0)).astype(np.int8)
        return merge_intervals(edges, labels, tails.expected)

    def _cuts_of_steps(self, steps: HistogramCells, tails: Tails) -> tuple[float, float]:
        """(lower cut, upper cut): log-odds up to the first, and from the second on, are the tails.

        The steps learned from all runs have other levels than those learned without a fold, whose
        cells the tails count.  So the cuts are where each tail has about the same share of the
        runs: a step belongs to a tail if the share up to the middle of it does.  A rule guesses
        only once where a step belongs to both.
        """
        lower_share = self.cells.mass[: tails.low].sum()
        upper_share = self.cells.mass[tails.high :].sum()
        cuts = []
        # The steps are taken from the end of their tail: in rising order for the lower tail (sign
        # 1), in falling order for the upper one.
        for share, sign in ((lower_share, 1), (upper_share, -1)):
            order = np.argsort(sign * steps.log_odds, kind="stable")
            mass = steps.mass[order]
            count = int(np.count_nonzero(np.cumsum(mass) - mass / 2 <= share))
            is_empty = share <= 0 or count == 0
            cuts.append(-sign * np.inf if is_empty else float(steps.log_odds[order[count - 1]]))
        return cuts[0], cuts[1]


def train_score(
    first: Outputs, second: Outputs, objective: Objective, cut_only: bool = False
) -> TrainedScore:
    """The candidate with the largest out-of-fold bound, trained on all runs.

    ``first`` and ``second`` are outputs of runs on the two values.  With ``cut_only`` the outputs
    are already scores, and only the cuts are learned.
    """
    return best_candidate(model_candidates(first, second, cut_only), objective)


def best_candidate(candidates: Iterable[ModelCandidate], objective: Objective) -> TrainedScore:
    """The candidate with the largest out-of-fold bound, trained on all its folds.

    Candidates come simplest first; a later one must exceed the best before it by a margin.
    """
    best, largest_bound, runs = None, -math.inf, 0
    for candidate in candidates:
        # All candidates learn from the same runs.
        runs = sum(len(a) + len(b) for a, b in candidate.folds)
        objective = replace(objective, learning_runs=runs)
        margin = CANDIDATE_MARGIN / math.sqrt(GUESS_VARIANCE * runs)
        cells = histogram_cells(*_out_of_fold(candidate))
        bound = best_tails(cells, objective).expected.bound
        if best is None or bound > largest_bound + margin:
            best, largest_bound = (candidate, cells), bound
    if best is None:
        raise AssertionError("there is always a candidate")
    candidate, cells = best
    return TrainedScore(candidate, candidate.train(list(range(len(candidate.folds)))), cells, runs)


class Tails(NamedTuple):
    """Two tails of cells, and the outcome that is expected of guesses in them.

    The lower tail are the cells before ``low``, the upper tail those from ``high`` on.  One value
    is guessed in each: the first value in the upper tail if ``up`` is 1, in the lower one if -1.
    """

    low: int
    high: int
    up: int
    expected: ExpectedOutcome


def best_tails(cells: HistogramCells, objective: Objective) -> Tails:
    """The two tails that suit the objective best.

    All pairs ``low <= high`` are compared, for both ``up``.  A cell of mass m (its share of all
    runs) and log-odds x is expected to have ``m / (1 + e^-x)`` of all runs with the first value and
    ``m / (1 + e^x)`` with the second.  Sums over the tails give the shares of right guesses.
    """
    from scipy.special import expit

    # Element k is the share of all runs that lie in the cells before k: of runs on either value, of
    # those on the first, and of those on the second.
    mass, first_mass, second_mass = (
        np.append(0.0, np.cumsum(cells.mass * weight))
        for weight in (1.0, expit(cells.log_odds), expit(-cells.log_odds))
    )
    size = cells.mass.size
    low, high = np.triu_indices(size + 1)
    guess_rate = mass[low] + mass[-1] - mass[high]
    two_sided = (low > 0) & (high < size)
    # The guesses of all pairs with ``up`` = 1 come first, then those with -1.  Below ``low`` the
    # guesses that are right are those of runs on the second value if ``up`` is 1.
    right = np.concatenate(
        [
            below[low] + above[-1] - above[high]
            for below, above in ((second_mass, first_mass), (first_mass, second_mass))
        ]
    )
    best_index, expected = objective.best_rule(right, np.tile(guess_rate, 2), np.tile(two_sided, 2))
    if not expected.bound > -np.inf:
        return Tails(0, size, 1, NO_GUESS)
    up, tail_pair = (1, best_index) if best_index < low.size else (-1, best_index - low.size)
    return Tails(int(low[tail_pair]), int(high[tail_pair]), up, expected)


def _out_of_fold(candidate: ModelCandidate) -> tuple[Array, Array]:
    """Scores of all runs on both values; each fold is scored by weights learned from the others.

    A single fold is scored by weights learned from itself.
    """
    folds = range(len(candidate.folds))

    def fold_scores() -> Iterator[tuple[Array, Array]]:
        for fold in folds:
            score = candidate.train(
                [fitted_fold for fitted_fold in folds if fitted_fold != fold or len(folds) == 1]
            )
            a, b = candidate.folds[fold]
            yield score(a), score(b)

    first_scores, second_scores = zip(*fold_scores(), strict=True)
    return np.concatenate(first_scores), np.concatenate(second_scores)
