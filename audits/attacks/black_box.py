"""Audit of a plain function: learn a rule, test it on fresh runs, learn a better one, test it."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

import numpy as np

from audits.attacks.evaluation import RuleResult, count_correct, guess_counts
from audits.claims.findings import ClaimPoint, GuessCounts, pool
from audits.classifiers.decision_rules import DecisionRule
from audits.classifiers.objective import Objective
from audits.classifiers.output_features import ReadDraw, unseen_parts
from audits.classifiers.training import TrainedScore, train_score
from audits.runs.parallel_runs import collect_both
from audits.runs.release_functions import Draw, concatenate_outputs
from audits.statistics.combined_tests import block_schedule

LearningRuns = tuple[Any, Any]


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
    draw = ReadDraw(draw)
    blocks = block_schedule(objective.runs, objective.delta == 0 and not points)
    known: LearningRuns = collect_both(draw, pair, blocks[0][0], rng, executor)
    done: list[tuple[DecisionRule, GuessCounts]] = []
    point = point_rule = None
    for block, (learned, tested) in enumerate(blocks):
        seen = len(known[0]) + len(known[1])
        if learned > seen:
            known = _append_runs(known, collect_both(draw, pair, learned - seen, rng, executor))
        tested_objective = replace(objective, runs=tested)
        found = train_score(*known, tested_objective)
        rules = [found.rule(tested_objective)]
        best = _most_refutable_point(found, tested_objective, points)
        if best is not None:
            rules.append(found.rule(best))
        last = block == len(blocks) - 1
        if last:
            guesses = count_correct(draw, pair, rules, tested, rng, executor)
        else:  # these runs are kept, to learn the next rule from
            fresh = collect_both(draw, pair, tested, rng, executor)
            rule = rules[0]
            guesses = [guess_counts(rule, *rule.counts(*fresh), tested)]
            known = _append_runs(known, fresh)
        # a rule without an expected bound would only dilute the next one's evidence
        if last or rules[0].expected.bound > 0:
            done.append((rules[0], guesses[0]))
        if best is not None and best.epsilon is not None:
            point, point_rule = ClaimPoint(best.epsilon, best.delta, guesses[1]), rules[1]
    counts, unseen = pool([g for _, g in done]), unseen_parts(*known)
    return RuleResult(pair, done[-1][0], counts, point, point_rule, unseen)


def _append_runs(known: LearningRuns, more: LearningRuns) -> LearningRuns:
    return concatenate_outputs([known[0], more[0]]), concatenate_outputs([known[1], more[1]])


def _most_refutable_point(
    found: TrainedScore, objective: Objective, points: Sequence[tuple[float, float]]
) -> Objective | None:
    """The point of the claim that the learned score is expected to refute most surely."""
    objectives = [
        Objective(objective.runs, delta, objective.alpha, epsilon, every_run=epsilon == 0)
        for epsilon, delta in points
    ]
    best = max(objectives, key=found.z_score, default=None)
    # the bound itself is a test at its own delta
    return None if best is None or best.delta == objective.delta else best
