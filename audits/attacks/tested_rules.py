"""The test of an audit: rules that were learned from some runs guess on fresh runs.

A rule guesses from an output which of two neighbouring values was released.  Runs come in blocks:
a rule is learned from all runs so far, then tested on the block, whose runs are known to the next
rule.  A rule is fixed before the runs that test it are drawn; that is all its exact bound requires.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from audits.claims.findings import ClaimPoint, GuessCounts, pool
from audits.classifiers.decision_rules import DecisionRule
from audits.classifiers.objective import Objective
from audits.classifiers.output_features import unseen_parts
from audits.classifiers.training import TrainedScore
from audits.runs.parallel_runs import OutputPair, collect_both, map_pieces
from audits.runs.release_functions import Draw, concatenate_outputs
from audits.values.descriptions import describe_hidden_pair, describe_value, pair_names

# With at least MANY_RUNS runs, the guesses of an early rule count only if its expected lower bound
# on epsilon exceeds PROMISING times the log-odds of its expected share of right guesses, which is
# what the bound would be with endless runs.  Other rules guess too seldom to prove much, and their
# guesses would weaken the evidence of the next rule.
PROMISING, MANY_RUNS = 0.75, 50_000


@final
@dataclass(frozen=True, slots=True)
class RuleResult:
    """A rule and its guesses on a pair, and the point of the claim that decides the verdict.

    ``made_by_mechanism`` says that a declared mechanism made the pair: then it holds no private
    records, and the witness shows it as it is.
    """

    pair: tuple[Any, Any]
    rule: DecisionRule
    guesses: GuessCounts
    point: ClaimPoint | None = None
    point_rule: DecisionRule | None = None
    unseen: tuple[str, ...] = ()
    made_by_mechanism: bool = False

    def witness(self) -> str:
        """What was guessed, and how often that was right, in words."""
        rule, guesses, point_text = self.rule, self.guesses, ""
        if self.point is not None and self.point_rule is not None:
            rule, guesses = self.point_rule, self.point.guesses
            point_text = (
                f"; tested at epsilon {self.point.epsilon:.3g}, delta {self.point.delta:.3g}"
            )
        if self.made_by_mechanism:
            names, pair = (_array_text(self.pair[0]), _array_text(self.pair[1])), ""
        else:
            names, pair = pair_names(*self.pair), describe_hidden_pair(*self.pair)
        return (
            f"guessing {rule.describe(*names)} was right {guesses.correct:,} times of "
            f"{guesses.made:,} (in {guesses.runs:,} runs{point_text})"
            f"{pair and f'; the pair: {pair}'}"
        )


class Learner(Protocol):
    """Learns a score from runs; what it draws may depend on what it has learned."""

    @property
    def draw(self) -> Draw:
        """The draw of the outputs that the score reads.

        It is asked for before every draw: the runs that are learned from, and those of a test.
        """
        ...

    def learn(self, known: OutputPair, objective: Objective) -> TrainedScore:
        """The score that suits the objective best, from the outputs of both values that are known.

        It is called once for each block, with more outputs each time.
        """
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
    known to the next block; a block with 0 tested runs only learns.  ``points`` are the (epsilon,
    delta) of the claim; the most refutable one gets a rule of its own.
    """
    counted: list[tuple[DecisionRule, GuessCounts]] = []  # the rules whose guesses count
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
        else:  # these outputs are kept, because the next rule learns from them
            fresh = collect_both(learner.draw, pair, tested, rng, executor)
            rule = rules[0]
            guesses = [guess_counts(rule, *rule.counts(*fresh), tested)]
            known_outputs = append_runs(known_outputs, fresh)
        expected, least_bound = rules[0].expected, 0.0
        if objective.runs >= MANY_RUNS:
            share = min(max(expected.correct_rate, 0.5), 1 - 1e-9)  # with finite log-odds, >= 0
            least_bound = PROMISING * (math.log(share) - math.log1p(-share))
        if is_last or expected.bound > least_bound:
            counted.append((rules[0], guesses[0]))
        if best is not None and best.epsilon is not None:
            point, point_rule = ClaimPoint(best.epsilon, best.delta, guesses[1]), rules[1]
    counts, unseen = pool([guesses for _, guesses in counted]), unseen_parts(*known_outputs)
    last_rule, _ = counted[-1]
    return RuleResult(pair, last_rule, counts, point, point_rule, unseen)


def most_refutable_point(
    trained: TrainedScore, objective: Objective, points: Sequence[tuple[float, float]]
) -> Objective | None:
    """The point of the claim that the learned score is expected to refute most surely."""
    # At epsilon 0 the rule guesses in every run, so that no leaks need to be counted.
    objectives = [
        Objective(
            objective.runs,
            delta=delta,
            alpha=objective.alpha,
            epsilon=epsilon,
            every_run=epsilon == 0,
        )
        for epsilon, delta in points
    ]
    best = max(objectives, key=trained.z_score, default=None)
    # The bound is already a test at its own delta.
    return None if best is None or best.delta == objective.delta else best


@final
@dataclass(frozen=True, slots=True)
class _RuleCounts:
    """Counts the right guesses and the guesses of each rule on outputs of both values."""

    rules: tuple[DecisionRule, ...]

    def __call__(self, first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.int64]:
        counts = [rule.counts(first, second) for rule in self.rules]
        return np.array(counts, dtype=np.int64)


def count_correct(
    draw: Draw,
    pair: tuple[Any, Any],
    rules: Sequence[DecisionRule],
    runs: int,
    rng: np.random.Generator,
    executor: Executor | None = None,
) -> list[GuessCounts]:
    """Count the right guesses of fixed rules on the same fresh runs, in pieces."""
    counts = np.zeros((len(rules), 2), dtype=np.int64)
    for piece_counts in map_pieces(_RuleCounts(tuple(rules)), draw, pair, runs, rng, executor):
        counts += piece_counts
    return [
        guess_counts(rule, int(right), int(guesses), runs)
        for (right, guesses), rule in zip(counts, rules, strict=True)
    ]


def guess_counts(rule: DecisionRule, right: int, guesses: int, runs: int) -> GuessCounts:
    """The guesses of a rule, with what was expected of it before the runs."""
    expected = rule.expected.guess_rate * runs, rule.expected.correct_rate
    return GuessCounts(right, guesses, runs, rule.guessed_values, rule.every_run, expected)


def append_runs(known_outputs: OutputPair, further_outputs: OutputPair) -> OutputPair:
    """The known outputs of both values, with the further ones after them."""
    return concatenate_outputs([known_outputs[0], further_outputs[0]]), concatenate_outputs(
        [known_outputs[1], further_outputs[1]]
    )


def _array_text(value: Any) -> str:
    """A value that a mechanism made, as text with four digits a number."""
    array = np.asarray(value)
    if array.dtype.kind not in "biufc":
        return describe_value(value)
    return np.array2string(
        array, separator=", ", threshold=8, formatter={"float_kind": lambda x: f"{x:.4g}"}
    )
