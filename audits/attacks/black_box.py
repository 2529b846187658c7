"""Audit of a plain function: learn a rule, test it on fresh runs, learn a better one, test it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

import numpy as np

from audits.attacks.evaluation import (
    RuleResult,
    count_correct,
    guess_counts,
    most_refutable_point,
)
from audits.attacks.wide_outputs import audit_wide, few_outputs, kept_runs, output_width
from audits.claims.findings import ClaimPoint, GuessCounts, pool
from audits.classifiers.decision_rules import DecisionRule
from audits.classifiers.objective import Objective
from audits.classifiers.output_features import RAW_COLUMNS, ReadDraw, unseen_parts
from audits.classifiers.scored_outputs import ScoredDraw
from audits.classifiers.training import train_score
from audits.runs.parallel_runs import collect_both
from audits.runs.release_functions import Draw, concatenate_outputs
from audits.statistics.combined_tests import block_schedule

# least share of its rule's own epsilon that a first bound is expected to prove, in so many runs
PROMISING, MANY_RUNS = 0.75, 50_000
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
    is_scored = isinstance(draw, ScoredDraw)
    draw = draw if is_scored else ReadDraw(draw)
    width = 1 if is_scored else output_width(draw, pair[0])
    if width > RAW_COLUMNS:
        known = collect_both(draw, pair, kept_runs(objective.runs, width), rng, executor)
        if not few_outputs(known):
            return audit_wide(draw, pair, known, objective, points, rng, executor)
        objective = replace(objective, runs=objective.runs - len(known[0]) - len(known[1]))
    blocks = block_schedule(objective.runs, objective.delta == 0 and not points)
    known = collect_both(draw, pair, blocks[0][0], rng, executor)
    done: list[tuple[DecisionRule, GuessCounts]] = []
    point = point_rule = None
    for block, (learned, tested) in enumerate(blocks):
        seen = len(known[0]) + len(known[1])
        if learned > seen:
            known = _append_runs(known, collect_both(draw, pair, learned - seen, rng, executor))
        tested_objective = replace(objective, runs=tested)
        found = train_score(*known, tested_objective, is_scored)
        rules = [found.rule(tested_objective)]
        best = most_refutable_point(found, tested_objective, points)
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
        # a rule whose expected bound is low would only dilute the next one's evidence
        if last or _is_promising(rules[0], objective.runs):
            done.append((rules[0], guesses[0]))
        if best is not None and best.epsilon is not None:
            point, point_rule = ClaimPoint(best.epsilon, best.delta, guesses[1]), rules[1]
    counts, unseen = pool([g for _, g in done]), unseen_parts(*known)
    return RuleResult(pair, done[-1][0], counts, point, point_rule, unseen)


def _is_promising(rule: DecisionRule, runs: int) -> bool:
    """Whether a rule is expected to prove something; in many runs most of its share's epsilon."""
    if runs < MANY_RUNS:
        return rule.expected.bound > 0
    share = min(max(rule.expected.correct_rate, 0.5), 1 - 1e-9)
    return rule.expected.bound > PROMISING * (math.log(share) - math.log1p(-share))


def _append_runs(known: LearningRuns, more: LearningRuns) -> LearningRuns:
    return concatenate_outputs([known[0], more[0]]), concatenate_outputs([known[1], more[1]])
