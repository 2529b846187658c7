"""Early stop: bet against the claim run by run, and stop when the wealth is a proof.

Most of the error is for the bets, the rest for the exact bound after the last run.  The learner
uses every run after it was bet on.  References: Ville (1939); Waudby-Smith & Ramdas (2024).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accountant.domains import DELTA
from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.randomness import Rng
from audits.attacks.declared_mechanism import SCORE_DESCRIPTION
from audits.attacks.evaluation import RuleResult, guess_counts
from audits.attacks.wide_outputs import first_output
from audits.claims.arguments import (
    CONFIDENCE,
    RUNS,
    checked_pair,
    claimed_delta,
    pair_of_one_shape,
    seed_and_generator,
)
from audits.claims.claims import ClaimLike, checked_claim
from audits.claims.findings import Finding, GuessCounts, Outcome
from audits.classifiers.decision_rules import DecisionRule, ScoreFunction, ThresholdRule
from audits.classifiers.feature_schema import Outputs
from audits.classifiers.likelihood_ratio import likelihood_ratio_score
from audits.classifiers.objective import NO_GUESS, Objective
from audits.classifiers.output_features import ReadDraw, unseen_parts
from audits.classifiers.scored_outputs import ScoredDraw
from audits.classifiers.training import train_score
from audits.runs.parallel_runs import collect_both, draw_both
from audits.runs.release_functions import (
    CHUNK,
    Draw,
    concatenate_outputs,
    release_notes,
    vectorised,
)
from audits.statistics.betting import (
    EXPERT_EXCESSES,
    ExpertWealth,
    expert_odds,
    initial_wealth,
    log_growth,
    log_mean_wealth,
)
from audits.statistics.combined_tests import MAX_LEARNING_RUNS
from audits.values.tracebacks import without_values
from mechanisms.base.mechanism import Mechanism

# runs before the first bet; factor by which the learning runs then grow
FIRST_RUNS, LEARNING_GROWTH = 24, 1.2
BETTING_ERROR_SHARE = 0.8  # share of the error for the bets
MAX_KEPT_NUMBERS = 1 << 25  # numbers of all outputs that are learned from: 256 MiB
LEARNING_SHARE = 1 / 3  # share of the horizon after which the last rule is fixed


@final
@dataclass(slots=True)
class _BettingState:
    """The bets on one release: the experts' wealth, and the run at which it was a proof."""

    epsilon: float
    delta: float
    log_threshold: float
    experts: ExpertWealth
    runs: int = 0
    stopped: int | None = None

    def bet(self, log_odds: Array, first: NDArray[np.bool_], *, exact: bool) -> None:
        """Bet on runs in order, given their log-odds and whether the first value was released."""
        excess = expert_odds(log_odds, self.epsilon, exact=exact)
        rates = log_growth(excess, first == (log_odds > 0), self.epsilon, self.delta)
        path = self.experts.log_wealth[:, None] + np.cumsum(rates, axis=1)
        rich = np.flatnonzero(log_mean_wealth(path) >= self.log_threshold)
        if rich.size and self.stopped is None:
            self.stopped = self.runs + int(rich[0]) + 1
        self.experts = ExpertWealth(path[:, -1])
        self.runs += log_odds.size

    def could_stop(self, runs: int, exact: ScoreFunction | None) -> bool:
        """True if ``runs`` right guesses, each as sure as can be, would have been a proof."""
        sure = expert_odds(np.array([np.inf]), self.epsilon, exact=exact is not None)
        growth = log_growth(sure, np.array([True]), self.epsilon, self.delta)
        return float(log_mean_wealth(runs * growth)[0]) >= self.log_threshold


@without_values
def watch(
    release: Mechanism | Callable[..., Any],
    pair: tuple[Any, Any] | None = None,
    claim: ClaimLike | None = None,
    runs: int = 200_000,
    confidence: float = 0.95,
    delta: float | None = None,
    rng: Rng = None,
    executor: Executor | None = None,
) -> Finding:
    """Audit a release run by run, and stop as soon as the claim is falsified.

    The audit bets against the claim.  Under a true claim the wealth of the bets is a martingale, so
    it exceeds ``1 / error`` with probability at most ``error`` at any stopping time.

    Parameters
    ----------
    release : Mechanism or callable
        As for `audit`.
    pair : tuple of two values, optional
        Two neighbouring values that differ; None takes the mechanism's worst pair.
    claim : Loss, Budget, float or (float, float), optional
        What is claimed, as for `audit`, with a finite epsilon at ``delta``; None takes the
        mechanism's own loss.
    runs : int, optional
        The largest number of draws, at least 10.
    confidence : float, optional
        Probability in (0, 1) with which a true claim survives, early stop and last bound together.
    delta : float, optional
        The delta in [0, 1) of the claim; None as for `audit`.
    rng : int, numpy.random.Generator or None, optional
        Seed or generator.
    executor : concurrent.futures.Executor, optional
        Spreads the runs, as for `audit`.

    Returns
    -------
    Finding
        ``stopped`` is the run of the early verdict, None if there was none.  After an early verdict
        ``epsilon_lower`` is the refuted epsilon of the claim, otherwise the bound after the last
        run, rounded down.

    Raises
    ------
    ParameterError
        If no claim is given, its epsilon at ``delta`` is infinite, or the values are equal.

    References
    ----------
    Waudby-Smith & Ramdas (2024), for betting; Ville (1939).

    Examples
    --------
    >>> from accountant import PureLoss
    >>> from audits import watch
    >>> def half_the_noise(value, rng, size):
    ...     return value + rng.laplace(scale=0.5, size=size)
    >>> finding = watch(half_the_noise, (0.0, 1.0), PureLoss(1.0), runs=2000, rng=0)
    >>> finding.outcome.name, finding.stopped < 500
    ('FALSIFIED', True)
    """
    start = time.perf_counter()
    runs, confidence = RUNS.check("runs", runs), CONFIDENCE.check("confidence", confidence)
    seed, source = seed_and_generator(rng)
    if isinstance(release, Mechanism) and claim is None:
        claim = release.loss
    claim = checked_claim(claim)
    if claim is None:
        raise ParameterError("claim", claim, "a loss to bet against, such as PureLoss(1.0)")
    tested_delta = claimed_delta(claim) if delta is None else DELTA.check("delta", delta)
    epsilon, error = claim.epsilon_at(tested_delta), 1 - confidence
    # confidence of the bound at the horizon
    bound_confidence = 1 - (1 - BETTING_ERROR_SHARE) * error
    if not math.isfinite(epsilon):
        raise ParameterError("claim", claim, f"a loss of finite epsilon at delta {tested_delta:g}")
    objective = Objective(runs, tested_delta, 1 - bound_confidence, epsilon)
    own_pair = pair is None and isinstance(release, Mechanism)
    if isinstance(release, Mechanism):
        pair = release.worst_pair(epsilon) if own_pair else pair_of_one_shape(pair)
        draw: Draw = release.release
        exact: ScoreFunction | None = likelihood_ratio_score(release, pair)
    else:
        pair, exact = checked_pair(pair), None
        draw = release if isinstance(release, ScoredDraw) else ReadDraw(vectorised(release))
        if isinstance(draw, ReadDraw):
            draw = draw.bounded(first_output(draw, pair[0]), runs)
    proof = -math.log(BETTING_ERROR_SHARE * error)
    table = _BettingState(
        epsilon, tested_delta, proof, initial_wealth(1 if exact else len(EXPERT_EXCESSES))
    )
    rule, guesses, unseen = _bet_until_stopped(
        table, draw, pair, objective, exact, source, executor
    )
    falsified = table.stopped is not None or guesses.refutes(claim, tested_delta, bound_confidence)
    witness = RuleResult(pair, rule, guesses, made_by_mechanism=own_pair).witness()
    if table.stopped is not None:
        witness = (
            f"bets against the claim had grown {math.exp(proof):.3g}-fold by run {table.stopped:,}"
        )
    could_falsify = guesses.all_right.refutes(
        claim, tested_delta, bound_confidence
    ) or table.could_stop(guesses.runs, exact)
    survived = Outcome.SURVIVED if could_falsify and not unseen else Outcome.INCONCLUSIVE
    return Finding(
        outcome=Outcome.FALSIFIED if falsified else survived,
        epsilon_lower=epsilon
        if table.stopped
        else guesses.epsilon_lower(tested_delta, bound_confidence),
        delta=tested_delta,
        runs=table.runs,
        confidence=confidence,
        witness=witness,
        seconds=time.perf_counter() - start,
        seed=seed,
        claim=claim,
        guesses=guesses,
        stopped=table.stopped,
        unseen=unseen,
        notes=release_notes(getattr(draw, "draw", draw), pair, table.runs),
    )


def _bet_until_stopped(
    table: _BettingState,
    draw: Draw,
    pair: tuple[Any, Any],
    objective: Objective,
    exact: ScoreFunction | None,
    rng: np.random.Generator,
    executor: Executor | None,
) -> tuple[DecisionRule, GuessCounts, tuple[str, ...]]:
    """Bet until the wealth is a proof or the runs are used: the last rule, its guesses, unseen."""
    unseen: tuple[str, ...] = ()
    width = 1
    if exact is None:
        known_outputs = collect_both(
            draw, pair, min(FIRST_RUNS, objective.runs // 2), rng, executor
        )
        table.runs = len(known_outputs[0]) + len(known_outputs[1])
        cut_only = isinstance(draw, ScoredDraw)
        width = max(side[:1].size for side in known_outputs)
        most_learning_runs = min(
            LEARNING_SHARE * objective.runs, MAX_LEARNING_RUNS, MAX_KEPT_NUMBERS // width
        )
        while table.runs < most_learning_runs and table.stopped is None:
            trained = train_score(*known_outputs, objective, cut_only)
            size = max(int((LEARNING_GROWTH - 1) * table.runs), 10)
            further_outputs = collect_both(draw, pair, size, rng, executor)
            table.bet(*_shuffle_scores(trained.log_odds, *further_outputs, rng), exact=False)
            known_outputs = (
                concatenate_outputs([known_outputs[0], further_outputs[0]]),
                concatenate_outputs([known_outputs[1], further_outputs[1]]),
            )
    test_objective = replace(objective, runs=objective.runs - table.runs)
    if exact is None:
        final_score = train_score(*known_outputs, test_objective, isinstance(draw, ScoredDraw))
        unseen = unseen_parts(*known_outputs)
        rule: DecisionRule = final_score.rule(test_objective)
        score: ScoreFunction = final_score.log_odds
    else:
        # the claim's epsilon was rounded up: scores that equal it are to be guessed on too
        lowest_score = (1 - 1e-9) * (objective.epsilon or 0.0)
        score, rule = exact, ThresholdRule(exact, lowest_score, NO_GUESS, SCORE_DESCRIPTION)
    counts = np.zeros(2, dtype=np.int64)
    while table.runs < objective.runs and table.stopped is None:
        most_kept = max(MAX_KEPT_NUMBERS // width, 1)
        size = min(max(table.runs // 10, 64), CHUNK, objective.runs - table.runs, most_kept)
        for fresh in draw_both(draw, pair, size, rng, executor):
            counts += rule.counts(*fresh)
            table.bet(*_shuffle_scores(score, *fresh, rng), exact=exact is not None)
    return rule, guess_counts(rule, int(counts[0]), int(counts[1]), test_objective.runs), unseen


def _shuffle_scores(
    score: ScoreFunction, first: Outputs, second: Outputs, rng: np.random.Generator
) -> tuple[Array, NDArray[np.bool_]]:
    """Scores of runs of both values in the order of fair coins, and which are of the first."""
    scores = np.concatenate([score(side) for side in (first, second) if len(side)])
    order = rng.permutation(scores.size)
    return scores[order], order < len(first)
