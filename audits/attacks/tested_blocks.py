"""Blocks of runs: learn a rule, test it on fresh runs, learn a better one, test it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from audits.attacks.evaluation import (
    RuleResult,
    count_correct,
    guess_counts,
    most_refutable_point,
)
from audits.claims.findings import ClaimPoint, GuessCounts, pool
from audits.classifiers.decision_rules import DecisionRule
from audits.classifiers.objective import Objective
from audits.classifiers.output_features import unseen_parts
from audits.classifiers.training import TrainedScore
from audits.runs.parallel_runs import OutputPair, collect_both
from audits.runs.release_functions import Draw, concatenate_outputs

# a first rule is tested if its expected bound is this share of its rule's epsilon, in many runs
PROMISING, MANY_RUNS = 0.75, 50_000


class Learner(Protocol):
    """Learns a score from runs; what it draws may depend on what it has learned."""

    @property
    def draw(self) -> Draw:
        """The draw of the outputs that the score reads."""
        ...

    def learn(self, known: OutputPair, objective: Objective) -> TrainedScore:
        """The score that suits the objective best."""
        ...


def guess_in_blocks(
    learner: Learner,
    pair: tuple[Any, Any],
    known_outputs: OutputPair,
    blocks: Sequence[tuple[int, int]],
    objective: Objective,
    points: Sequence[tuple[float, float]],
    rng: np.random.Generator,
    executor: Executor | None = None,
) -> RuleResult:
    """Test rules that are learned from earlier runs, each fixed before its own.

    A block is (runs known when a rule is learned, runs that it is tested on).  Tested runs are
    known to the next block; one without tests only learns.
    """
    done: list[tuple[DecisionRule, GuessCounts]] = []
    point = point_rule = None
    for block, (learned, tested) in enumerate(blocks):
        known_count = len(known_outputs[0]) + len(known_outputs[1])
        if learned > known_count:
            further_outputs = collect_both(learner.draw, pair, learned - known_count, rng, executor)
            known_outputs = append_runs(known_outputs, further_outputs)
        tested_objective = replace(objective, runs=tested or blocks[-1][1])
        trained = learner.learn(known_outputs, tested_objective)
        if tested == 0:
            continue
        rules = [trained.rule(tested_objective)]
        best = most_refutable_point(trained, tested_objective, points)
        if best is not None:
            rules.append(trained.rule(best))
        is_last = block == len(blocks) - 1
        if is_last:
            guesses = count_correct(learner.draw, pair, rules, tested, rng, executor)
        else:  # these runs are kept, to learn the next rule from
            fresh = collect_both(learner.draw, pair, tested, rng, executor)
            rule = rules[0]
            guesses = [guess_counts(rule, *rule.counts(*fresh), tested)]
            known_outputs = append_runs(known_outputs, fresh)
        # a rule whose expected bound is low would only dilute the next one's evidence
        if is_last or _is_promising(rules[0], objective.runs):
            done.append((rules[0], guesses[0]))
        if best is not None and best.epsilon is not None:
            point, point_rule = ClaimPoint(best.epsilon, best.delta, guesses[1]), rules[1]
    counts, unseen = pool([g for _, g in done]), unseen_parts(*known_outputs)
    return RuleResult(pair, done[-1][0], counts, point, point_rule, unseen)


def append_runs(known_outputs: OutputPair, further_outputs: OutputPair) -> OutputPair:
    """Outputs of both values, more after those known."""
    return concatenate_outputs([known_outputs[0], further_outputs[0]]), concatenate_outputs(
        [known_outputs[1], further_outputs[1]]
    )


def _is_promising(rule: DecisionRule, runs: int) -> bool:
    """Whether a rule is expected to prove something; in many runs most of its share's epsilon."""
    if runs < MANY_RUNS:
        return rule.expected.bound > 0
    share = min(max(rule.expected.correct_rate, 0.5), 1 - 1e-9)
    return rule.expected.bound > PROMISING * (math.log(share) - math.log1p(-share))
