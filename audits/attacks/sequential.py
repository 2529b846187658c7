"""Early stop: bet against the claim run by run, and stop when the wealth is proof.

Most of the error is for the bets, the rest for the exact bound from the guesses at the horizon; the
learner sees every run once it has been bet on.
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
from audits.attacks.declared_mechanism import WORDS
from audits.attacks.evaluation import Tested, guessed
from audits.claims.arguments import CONFIDENCE, RUNS, checked_pair, claimed_delta, seeded
from audits.claims.claims import checked_claim
from audits.claims.findings import Finding, Guesses, Outcome
from audits.classifiers.decision_rules import Guesser, Rule, Score
from audits.classifiers.feature_schema import Outputs
from audits.classifiers.likelihood_ratio import density_score
from audits.classifiers.objective import NOTHING, Aim
from audits.classifiers.training import learn
from audits.runs.parallel_runs import gathered, sides
from audits.runs.release_functions import CHUNK, Draw, joined, vectorised
from audits.statistics.betting import EXCESS, Bets, growth, opening, opinions, together
from audits.statistics.combined_tests import MOST_LEARNED
from mechanisms.base.mechanism import Mechanism

FIRST, LATER = 24, 1.2  # runs before the first bet; growth of what is learned from after
BETTING = 0.8  # share of the error for the bets
LEARNED = 1 / 3  # share of the horizon after which the last rule is fixed


@final
@dataclass(slots=True)
class _Table:
    """The bets on one release: who has which wealth, and whether that is proof yet."""

    epsilon: float
    delta: float
    proof: float
    bets: Bets
    runs: int = 0
    stopped: int | None = None

    def play(self, log_odds: Array, first: NDArray[np.bool_], *, exact: bool) -> None:
        """Bet on runs in their order: their score, and whether the first value was released."""
        excess = opinions(log_odds, self.epsilon, exact=exact)
        rates = growth(excess, first == (log_odds > 0), self.epsilon, self.delta)
        path = self.bets.wealth[:, None] + np.cumsum(rates, axis=1)
        rich = np.flatnonzero(together(path) >= self.proof)
        if rich.size and self.stopped is None:
            self.stopped = self.runs + int(rich[0]) + 1
        self.bets = Bets(path[:, -1])
        self.runs += log_odds.size


def watch(
    release: Mechanism | Callable[..., Any],
    pair: tuple[Any, Any] | None = None,
    claim: Any = None,
    runs: int = 200_000,
    confidence: float = 0.95,
    delta: float | None = None,
    rng: Rng = None,
    executor: Executor | None = None,
) -> Finding:
    """`audit` that stops at the first proof: see there; ``runs`` is the horizon.

    ``stopped`` is the run at which the wealth of the bets was proof, None where that never came;
    then the verdict is that of the horizon's bound.  An honest claim is called false with
    probability ``1 - confidence`` at most, both ways together.  Where an audit stopped, its
    ``epsilon_lower`` is the claim's epsilon, which is refuted, and no more is said.
    """
    start = time.perf_counter()
    runs, confidence = RUNS.check("runs", runs), CONFIDENCE.check("confidence", confidence)
    seed, source = seeded(rng)
    if isinstance(release, Mechanism) and claim is None:
        claim = release.loss
    claim = checked_claim(claim)
    if claim is None:
        raise ParameterError("claim", claim, "a loss to bet against, such as PureLoss(1.0)")
    at = claimed_delta(claim) if delta is None else DELTA.check("delta", delta)
    epsilon, error = claim.epsilon_at(at), 1 - confidence
    rest = 1 - (1 - BETTING) * error  # confidence of the bound at the horizon
    if not math.isfinite(epsilon):
        raise ParameterError("claim", claim, f"a loss of finite epsilon at delta {at:g}")
    aim = Aim(runs, at, 1 - rest, epsilon)
    if isinstance(release, Mechanism):
        pair = release.worst_pair(epsilon) if pair is None else checked_pair(pair)
        draw: Draw = release.release
        exact: Score | None = density_score(release, pair)
    else:
        pair, draw, exact = checked_pair(pair), vectorised(release), None
    proof = -math.log(BETTING * error)
    table = _Table(epsilon, at, proof, opening(1 if exact else len(EXCESS)))
    rule, guesses = _played(table, draw, pair, aim, exact, source, executor)
    falsified = table.stopped is not None or guesses.refutes(claim, at, rest)
    found = Tested(pair, rule, guesses).witness()
    if table.stopped is not None:
        found = (
            f"bets against the claim had grown {math.exp(proof):.3g}-fold by run {table.stopped:,}"
        )
    return Finding(
        outcome=Outcome.FALSIFIED if falsified else Outcome.SURVIVED,
        epsilon_lower=epsilon if table.stopped else guesses.epsilon_lower(at, rest),
        delta=at,
        runs=table.runs,
        confidence=confidence,
        witness=found,
        seconds=time.perf_counter() - start,
        seed=seed,
        claim=claim,
        guesses=guesses,
        stopped=table.stopped,
    )


def _played(
    table: _Table,
    draw: Draw,
    pair: tuple[Any, Any],
    aim: Aim,
    exact: Score | None,
    rng: np.random.Generator,
    executor: Executor | None,
) -> tuple[Guesser, Guesses]:
    """Bet until the wealth is proof or the horizon is reached; the last rule and its guesses."""
    if exact is None:
        known = gathered(draw, pair, min(FIRST, aim.runs // 2), rng, executor)
        table.runs = len(known[0]) + len(known[1])
        while table.runs < min(LEARNED * aim.runs, MOST_LEARNED) and table.stopped is None:
            found = learn(*known, aim)
            size = max(int((LATER - 1) * table.runs), 10)
            more = gathered(draw, pair, size, rng, executor)
            table.play(*_shuffled(found.log_odds, *more, rng), exact=False)
            known = joined([known[0], more[0]]), joined([known[1], more[1]])
    left = replace(aim, runs=aim.runs - table.runs)
    if exact is None:
        last = learn(*known, left)
        rule: Guesser = last.rule(left)
        score: Score = last.log_odds
    else:
        score, rule = exact, Rule(exact, aim.epsilon or 0.0, NOTHING, WORDS)
    counts = np.zeros(2, dtype=np.int64)
    while table.runs < aim.runs and table.stopped is None:
        size = min(max(table.runs // 10, 64), CHUNK, aim.runs - table.runs)
        for fresh in sides(draw, pair, size, rng, executor):
            counts += rule.counts(*fresh)
            table.play(*_shuffled(score, *fresh, rng), exact=exact is not None)
    return rule, guessed(rule, int(counts[0]), int(counts[1]), left.runs)


def _shuffled(
    score: Score, first: Outputs, second: Outputs, rng: np.random.Generator
) -> tuple[Array, NDArray[np.bool_]]:
    """Scores of runs of both sides in the order of fair coins, and which were of the first."""
    scores = np.concatenate([score(side) for side in (first, second) if len(side)])
    order = rng.permutation(scores.size)
    return scores[order], order < len(first)
