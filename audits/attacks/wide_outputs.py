"""The audit of a function whose outputs have many numbers, such as the weights of a model.

In each run a coin chooses one of two values, and the audit guesses from the output which one it
was.  It has three phases, each with runs of its own.  Screening estimates which numbers depend on
the value; it keeps only sums over runs, so that memory does not grow with runs.  Training learns,
from few columns that the screening made (a `Reduction`), a rule that guesses the value.  The test
counts how often the rule is right.

Only one rule is tested: in trials a second rule, learned from the tests of the first, proved no
more.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Any, final

import numpy as np

from audits.attacks.tested_rules import RuleResult, guess_in_blocks
from audits.classifiers.model_candidates import MAX_DISTINCT_SHARE, reduced_candidates
from audits.classifiers.number_parts import differing_parts
from audits.classifiers.objective import Objective
from audits.classifiers.output_features import extract_features
from audits.classifiers.reduction import ReducedDraw, Reduction, fit_reduction
from audits.classifiers.screening import (
    MAX_REFERENCE_ROWS,
    ScreeningSums,
    number_rows,
    reference_of,
    screening_sums,
    worthwhile_runs,
)
from audits.classifiers.training import TrainedScore, best_candidate
from audits.runs.parallel_runs import OutputPair, collect_both, draw_both
from audits.runs.release_functions import Draw, concatenate_outputs

# The outputs of the first runs are kept whole, for the covariances: KEPT_NUMBERS numbers together,
# or MIN_KEPT_RUNS runs if that is more, but no more runs than the least that may screen.
KEPT_NUMBERS = 1 << 22
MIN_KEPT_RUNS = 16
MAX_KEPT_NUMBERS = 1 << 27  # numbers of whole outputs that an audit keeps at most: 1 GiB
FEW_LOOKED = 1 << 10  # runs of each value whose whole outputs are compared with each other
MAX_TABLE_WIDTH = 1 << 14  # outputs with more numbers are not compared as a whole
# Least and largest share of the runs that screen, and least share that test.  `worthwhile_runs`
# chooses between them: more runs that screen give a better rule, and fewer runs to test it.
MIN_SCREENED, MAX_SCREENED, MIN_TESTED = 0.1, 0.5, 0.3
TRAINED_SHARE, MAX_TRAINED = 0.1, 15_000  # share of the runs that train, and the most that do
# All candidates learn from MIN_FULL_RUNS runs, or from runs that have MAX_FULL_NUMBERS numbers
# together if these are more, but from no more runs than train.  The summaries of these runs cost
# most of the time.
MIN_FULL_RUNS, MAX_FULL_NUMBERS = 500, 1 << 21


def screening_limits(runs: int) -> tuple[int, int]:
    """The least and the most runs that screen."""
    lower = max(int(MIN_SCREENED * runs), 4)
    upper = min(int(MAX_SCREENED * runs), runs - trained_runs(runs) - int(MIN_TESTED * runs))
    return lower, max(upper, lower)


def trained_runs(runs: int) -> int:
    """Runs that train before any test."""
    return max(int(min(TRAINED_SHARE * runs, MAX_TRAINED)), 3)


def wide_schedule(runs: int, width: int, screened: int) -> list[tuple[int, int]]:
    """(runs known when a rule is learned, runs it is tested on), in order.

    All candidates learn from the runs of the first block; the best one learns again from more
    runs, because it needs only some of the columns.
    """
    trained = trained_runs(runs)
    choosing = min(trained, max(MAX_FULL_NUMBERS // width, MIN_FULL_RUNS))
    first_blocks = [(choosing, 0)] if choosing < trained else []
    return [*first_blocks, (trained, runs - screened - trained)]


def kept_runs(runs: int, width: int) -> int:
    """Runs whose outputs are kept whole: they are the first of those that screen."""
    return min(max(KEPT_NUMBERS // width, MIN_KEPT_RUNS), screening_limits(runs)[0])


def few_outputs(known_outputs: OutputPair) -> bool:
    """Whether outputs repeat so often, or differ so in kind, that other classifiers suit better.

    A table of whole outputs suits outputs that repeat; a walk through their parts, mixed kinds.
    """
    sides = [side[:FEW_LOOKED] for side in known_outputs if len(side)]
    if len({side.dtype.kind for side in sides}) > 1 or sides[0].dtype.kind not in "biuf":
        return True
    if sides[0][:1].size > MAX_TABLE_WIDTH:
        return False
    few = MAX_DISTINCT_SHARE * sum(map(len, sides))
    with np.errstate(invalid="ignore", over="ignore"):
        # Outputs with different sums differ, and sums cost less than comparisons.
        sums = np.concatenate([side.reshape(len(side), -1).sum(axis=1) for side in sides])
    if np.unique(sums).size > few:
        return False
    pooled = concatenate_outputs(sides)
    return np.unique(extract_features(pooled).category).size <= few


def keep_a_part(known_outputs: OutputPair, runs: int) -> bool:
    """Whether a part of a number, such as its last digit, shows the value: see `differing_parts`.

    Sums over numbers do not see it.  The audit that does keeps whole outputs, so ``runs`` of them
    must fit in memory.
    """
    rows = [side.reshape(len(side), -1) for side in known_outputs]
    if runs * max(side.shape[1] for side in rows) > MAX_KEPT_NUMBERS or not all(map(len, rows)):
        return False
    return bool(differing_parts(rows[0], rows[1]))


def audit_wide(
    draw: Draw,
    pair: tuple[Any, Any],
    known_outputs: OutputPair,
    objective: Objective,
    points: Sequence[tuple[float, float]],
    rng: np.random.Generator,
    executor: Executor | None = None,
) -> RuleResult:
    """Test a rule of a reduction of the outputs; reduction and rule are fixed before the test.

    ``known_outputs`` are the first of the runs that screen; how many more do depends on what the
    first of them show.
    """
    runs, width = objective.runs, next(side[:1].size for side in known_outputs if len(side))
    rows = number_rows(known_outputs[0], width), number_rows(known_outputs[1], width)
    reference = reference_of(np.concatenate([x[: MAX_REFERENCE_ROWS // 2] for x in rows]))
    sums = [screening_sums(x, reference) for x in rows]
    reader, screened = ScreeningSums(draw, reference), sum(map(len, rows))

    def screen_up_to(target: int) -> None:
        """Screen more runs until ``target`` are screened in all."""
        nonlocal sums, screened
        if target > screened:
            for first_sums, second_sums in draw_both(
                reader, pair, target - screened, rng, executor
            ):
                sums = [sums[0] + first_sums, sums[1] + second_sums]
            screened = target

    lower_limit, upper_limit = screening_limits(runs)
    screen_up_to(lower_limit)
    screen_up_to(worthwhile_runs(sums[0], sums[1], upper_limit, runs - trained_runs(runs)))
    reduction = fit_reduction(sums[0], sums[1], reference, rows)
    blocks = wide_schedule(runs, width, screened)
    learner = _ReducedLearner(draw, reduction)
    first_learned, _ = blocks[0]
    known_rows = collect_both(learner.draw, pair, first_learned, rng, executor)
    return guess_in_blocks(learner, pair, known_rows, blocks, objective, points, rng, executor)


@final
class _ReducedLearner:
    """Learns from all columns of a reduction, then from those that the best score uses."""

    def __init__(self, release: Draw, reduction: Reduction) -> None:
        self.release, self.reduction = release, reduction
        # The columns that the chosen score uses; None before a choice, and for all columns.
        self.known: frozenset[int] | None = None

    @property
    def draw(self) -> Draw:
        """The draw of rows, in which the columns that are known to be of use are filled."""
        return ReducedDraw(self.release, self.reduction.only(self.known))

    def learn(self, known: OutputPair, objective: Objective) -> TrainedScore:
        """The best score of the columns that are filled."""
        first_rows, second_rows = known
        # What is drawn are rows already, whatever columns are needed.
        candidates = reduced_candidates(
            self.reduction,
            first_rows,
            second_rows,
            read=lambda _: np.asarray,
            known=self.known,
        )
        trained = best_candidate(candidates, objective)
        self.known = trained.candidate.columns
        return trained
