"""Fixed rules on fresh runs: how often they were right, and the finding in words."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from audits.claims.findings import ClaimPoint, GuessCounts
from audits.classifiers.decision_rules import DecisionRule
from audits.classifiers.objective import Objective
from audits.classifiers.training import TrainedScore
from audits.runs.parallel_runs import map_pieces
from audits.runs.release_functions import Draw
from audits.values.descriptions import describe_hidden_pair, describe_value, pair_names


@final
@dataclass(frozen=True, slots=True)
class RuleResult:
    """A rule and its guesses on a pair, and the point of the claim that decides the verdict.

    A pair that a declared mechanism made itself holds no records, and is shown as it is.
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
        rule, guesses, where = self.rule, self.guesses, ""
        if self.point is not None and self.point_rule is not None:
            rule, guesses = self.point_rule, self.point.guesses
            where = f"; tested at epsilon {self.point.epsilon:.3g}, delta {self.point.delta:.3g}"
        if self.made_by_mechanism:
            names, pair = (_array_text(self.pair[0]), _array_text(self.pair[1])), ""
        else:
            names, pair = pair_names(*self.pair), describe_hidden_pair(*self.pair)
        return (
            f"guessing {rule.describe(*names)} was right {guesses.correct:,} times of "
            f"{guesses.made:,} (in {guesses.runs:,} runs{where}){pair and f'; the pair: {pair}'}"
        )


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


def _array_text(value: Any) -> str:
    """A value that a mechanism made, as text: four digits."""
    array = np.asarray(value)
    if array.dtype.kind not in "biufc":
        return describe_value(value)
    return np.array2string(
        array, separator=", ", threshold=8, formatter={"float_kind": lambda x: f"{x:.4g}"}
    )


def guess_counts(rule: DecisionRule, right: int, guesses: int, runs: int) -> GuessCounts:
    """The guesses of a rule, with what was expected of it before the runs."""
    expected = rule.expected.guess_rate * runs, rule.expected.correct_rate
    return GuessCounts(right, guesses, runs, rule.guessed_values, rule.every_run, expected)


def most_refutable_point(
    trained: TrainedScore, objective: Objective, points: Sequence[tuple[float, float]]
) -> Objective | None:
    """The point of the claim that the learned score is expected to refute most surely."""
    objectives = [
        Objective(objective.runs, delta, objective.alpha, epsilon, every_run=epsilon == 0)
        for epsilon, delta in points
    ]
    best = max(objectives, key=trained.z_score, default=None)
    # the bound is already a test at its own delta
    return None if best is None or best.delta == objective.delta else best
