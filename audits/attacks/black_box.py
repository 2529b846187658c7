"""Audit of a plain function: learn a rule, test it on fresh runs, learn a better one, test it."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from audits.attacks.evaluation import RuleResult
from audits.attacks.tested_blocks import guess_in_blocks
from audits.attacks.wide_outputs import (
    audit_wide,
    few_outputs,
    first_output,
    kept_runs,
    output_width,
)
from audits.classifiers.objective import Objective
from audits.classifiers.output_features import RAW_COLUMNS, ReadDraw
from audits.classifiers.scored_outputs import ScoredDraw
from audits.classifiers.training import TrainedScore, train_score
from audits.runs.parallel_runs import OutputPair, collect_both
from audits.runs.release_functions import Draw
from audits.statistics.combined_tests import block_schedule


def audit_black_box(
    draw: Draw,
    pair: tuple[Any, Any],
    objective: Objective,
    points: Sequence[tuple[float, float]],
    rng: np.random.Generator,
    executor: Executor | None = None,
) -> RuleResult:
    """Test rules that are learned from earlier runs, each fixed before its own.

    Outputs are read as they are drawn.  The runs that a first rule is tested on are known when the
    second is learned.
    """
    is_scored = isinstance(draw, ScoredDraw)
    width = 1
    if not is_scored:
        reader = ReadDraw(draw)
        output = first_output(reader, pair[0])
        draw, width = reader.bounded(output, objective.runs), output_width(output)
    if width > RAW_COLUMNS:
        known_outputs = collect_both(draw, pair, kept_runs(objective.runs, width), rng, executor)
        if not few_outputs(known_outputs):
            return audit_wide(draw, pair, known_outputs, objective, points, rng, executor)
        objective = replace(
            objective, runs=objective.runs - len(known_outputs[0]) - len(known_outputs[1])
        )
    blocks = block_schedule(objective.runs, objective.delta == 0 and not points)
    known_outputs = collect_both(draw, pair, blocks[0][0], rng, executor)
    learner = _RowLearner(draw, is_scored)
    return guess_in_blocks(learner, pair, known_outputs, blocks, objective, points, rng, executor)


@final
@dataclass(frozen=True, slots=True)
class _RowLearner:
    """Learns a score from whole outputs, or the cut of a given score."""

    draw: Draw
    is_scored: bool

    def learn(self, known: OutputPair, objective: Objective) -> TrainedScore:
        """The best score of the known runs."""
        return train_score(*known, objective, self.is_scored)
