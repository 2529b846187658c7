"""Audit of a function of wide outputs: screen all numbers, learn from few columns, test.

The screening reads runs in blocks and keeps sums, so that memory does not grow with runs.  The
runs that screen, that train and that test are different ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

import numpy as np

from audits.attacks.evaluation import RuleResult, count_correct, most_refutable_point
from audits.claims.findings import ClaimPoint
from audits.classifiers.model_candidates import MAX_DISTINCT_SHARE, reduced_candidates
from audits.classifiers.objective import Objective
from audits.classifiers.output_features import extract_features, unseen_parts
from audits.classifiers.reduction import ReducedDraw, Reduction, fit_reduction
from audits.classifiers.screening import (
    MAX_REFERENCE_ROWS,
    ScreeningSums,
    number_rows,
    reference_of,
    screening_sums,
)
from audits.classifiers.training import best_candidate
from audits.runs.parallel_runs import OutputPair, collect_both, draw_both
from audits.runs.release_functions import Draw, concatenate_outputs

KEPT_NUMBERS = 1 << 22  # numbers of the first runs, which are kept for the covariances
MIN_KEPT_RUNS = 16
MAX_TABLE_WIDTH = 1 << 14  # wider outputs are not compared as a whole
# Shares of the runs that screen, at most and at least, and runs a number: a sum of d numbers with
# weights from n runs reaches 1 / sqrt(1 + 4 d / (n mu^2)) of its best mu.
MIN_SCREENED, MAX_SCREENED, SCREENED_PER_NUMBER = 0.1, 0.3, 20
TRAINED_SHARE, MAX_TRAINED = 0.1, 15_000
MAX_TRAINED_NUMBERS = 1 << 23  # their summaries cost most


def output_width(draw: Draw, value: Any) -> int:
    """The numbers of an output, from one run beside the others; 1 unless it is an array."""
    try:
        output = draw(value, np.random.default_rng(0), 1)
    except Exception:  # the audit itself meets and reports it
        return 1
    return output.size if output.dtype.kind in "biuf" and len(output) == 1 else 1


def split_runs(runs: int, width: int) -> tuple[int, int, int]:
    """Runs that screen, that train, and that test."""
    most = max(MIN_SCREENED * runs, min(SCREENED_PER_NUMBER * width, MAX_SCREENED * runs))
    screened = max(int(most), 4)
    enough = max(MAX_TRAINED_NUMBERS // width, 500)
    trained = max(int(min(TRAINED_SHARE * runs, MAX_TRAINED, enough)), 3)
    return screened, trained, runs - screened - trained


def kept_runs(runs: int, width: int) -> int:
    """Runs whose outputs are kept whole: they are the first of those that screen."""
    return min(max(KEPT_NUMBERS // width, MIN_KEPT_RUNS), split_runs(runs, width)[0])


def few_outputs(known: OutputPair) -> bool:
    """Whether whole outputs repeat so much, or differ so in kind, that a table or a walk is due."""
    both = concatenate_outputs([side[: 1 << 10] for side in known])
    if both.dtype.kind not in "biuf":
        return True
    if both[:1].size > MAX_TABLE_WIDTH:
        return False
    return np.unique(extract_features(both).category).size <= MAX_DISTINCT_SHARE * len(both)


def audit_wide(
    draw: Draw,
    pair: tuple[Any, Any],
    known: OutputPair,
    objective: Objective,
    points: Sequence[tuple[float, float]],
    rng: np.random.Generator,
    executor: Executor | None = None,
) -> RuleResult:
    """Test a rule of a reduction of the outputs; reduction and rule are fixed before the test.

    ``known`` are the first of the runs that screen.
    """
    width = next(side[:1].size for side in known if len(side))
    screened, trained, tested = split_runs(objective.runs, width)
    left = screened - len(known[0]) - len(known[1])
    reduction = _screen(draw, pair, known, width, left, rng, executor)
    rows = collect_both(ReducedDraw(draw, reduction), pair, trained, rng, executor)
    objective = replace(objective, runs=tested)
    found = best_candidate(reduced_candidates(reduction, *rows, lambda _: _same), objective)
    rules = [found.rule(objective)]
    best = most_refutable_point(found, objective, points)
    if best is not None:
        rules.append(found.rule(best))
    last = ReducedDraw(draw, reduction.only(found.candidate.columns))
    guesses = count_correct(last, pair, rules, tested, rng, executor)
    if best is None or best.epsilon is None:
        return RuleResult(pair, rules[0], guesses[0], unseen=unseen_parts(*known))
    point = ClaimPoint(best.epsilon, best.delta, guesses[1])
    return RuleResult(pair, rules[0], guesses[0], point, rules[1], unseen_parts(*known))


def _screen(
    draw: Draw,
    pair: tuple[Any, Any],
    known: OutputPair,
    width: int,
    left: int,
    rng: np.random.Generator,
    executor: Executor | None,
) -> Reduction:
    """The reduction that the known runs and ``left`` more choose."""
    rows = number_rows(known[0], width), number_rows(known[1], width)
    reference = reference_of(np.concatenate([x[: MAX_REFERENCE_ROWS // 2] for x in rows]))
    sums = [screening_sums(x, reference) for x in rows]
    if left > 0:
        reader = ScreeningSums(draw, reference)
        for first, second in draw_both(reader, pair, left, rng, executor):
            sums = [sums[0] + first, sums[1] + second]
    return fit_reduction(sums[0], sums[1], reference, rows)


def _same(rows: Any) -> Any:
    return rows
