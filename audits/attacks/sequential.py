"""Early stop: bet against the claim run by run, and stop when the wealth is a proof.

A bet is on which of the two values a run released.  Under a true claim the wealth does not grow in
expectation, so a large wealth at any time refutes the claim.  Several *experts* bet, each with a
wealth and a strategy of its own, and their mean wealth counts.  Most of the error probability is
for the bets, the rest for the exact bound after the last run.  The learner of guesses uses every
run after it was bet on.  References: Ville (1939); Waudby-Smith & Ramdas (2024).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any, final

import numpy as np

from accountant.domains import DELTA
from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.randomness import Rng
from audits.attacks.declared_mechanism import SCORE_DESCRIPTION, likelihood_ratio_score
from audits.attacks.half_noise import judged
from audits.attacks.not_tested import not_tested
from audits.attacks.tested_rules import RuleResult, append_runs, guess_counts
from audits.claims.arguments import (
    CONFIDENCE,
    RUNS,
    checked_pair,
    claimed_delta,
    pair_of_one_shape,
    seed_and_generator,
    stream_digest,
)
from audits.claims.claims import ClaimLike, checked_claim
from audits.claims.findings import Finding, GuessCounts, Outcome
from audits.classifiers.decision_rules import DecisionRule, ScoreFunction, ThresholdRule
from audits.classifiers.objective import NO_GUESS, Objective
from audits.classifiers.output_features import ReadDraw, unseen_parts
from audits.classifiers.scored_outputs import ScoredDraw
from audits.classifiers.training import train_score
from audits.runs.parallel_runs import OutputPair, collect_both, draw_both
from audits.runs.release_functions import CHUNK, Draw, observed_draw, release_notes, vectorised
from audits.statistics.betting import (
    EXPERT_EXCESSES,
    expert_odds,
    log_growth,
    log_mean_wealth,
)
from audits.statistics.combined_tests import MAX_LEARNING_RUNS
from audits.values.tracebacks import without_values
from mechanisms.base.mechanism import Mechanism

# Runs before the first bet, and the factor by which the runs that are learned from grow after it.
# A smaller factor bets sooner by a better rule, but a rule is learned more often.
FIRST_RUNS, LEARNING_GROWTH = 24, 1.2
# Share of the error probability that the bets may use; the bound after the last run has the rest.
BETTING_ERROR_SHARE = 0.8
MAX_KEPT_NUMBERS = 1 << 25  # most numbers in all outputs that are learned from: 256 MiB
LEARNING_SHARE = 1 / 3  # the last rule is fixed after this share of the largest number of runs
# Then bets are placed after each piece of runs: a share 1 / PIECE_DIVISOR of those before, but at
# least MIN_PIECE.  Larger pieces cost less time, and stop later.
PIECE_DIVISOR, MIN_PIECE = 10, 64


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
    stream = stream_digest(source)
    if isinstance(release, Mechanism) and claim is None:
        claim = release.loss
    claim = checked_claim(claim)
    if claim is None:
        raise ParameterError("claim", claim, "a loss to bet against, such as PureLoss(1.0)")
    tested_delta = claimed_delta(claim) if delta is None else DELTA.check("delta", delta)
    epsilon, error = claim.epsilon_at(tested_delta), 1 - confidence
    # The confidence of the bound after the last run.
    bound_confidence = 1 - (1 - BETTING_ERROR_SHARE) * error
    if not math.isfinite(epsilon):
        raise ParameterError("claim", claim, f"a loss of finite epsilon at delta {tested_delta:g}")
    objective = Objective(runs, tested_delta, 1 - bound_confidence, epsilon)
    bets = _Bets(release, pair, objective, epsilon, BETTING_ERROR_SHARE * error, executor)
    rule, guesses, unseen = bets.place(source, executor)
    if bets.stopped is not None:
        falsified, epsilon_lower = True, epsilon
        growth = math.exp(bets.log_proof)
        witness = f"bets against the claim had grown {growth:.3g}-fold by run {bets.stopped:,}"
    else:
        falsified = guesses.refutes(claim, tested_delta, bound_confidence)
        epsilon_lower = guesses.epsilon_lower(tested_delta, bound_confidence)
        witness = RuleResult(
            bets.pair, rule, guesses, made_by_mechanism=bets.mechanism_made_pair
        ).witness()
    could_falsify = guesses.all_right.refutes(
        claim, tested_delta, bound_confidence
    ) or bets.could_stop(guesses.runs)
    survived = Outcome.SURVIVED if could_falsify and not unseen else Outcome.INCONCLUSIVE
    finding = Finding(
        outcome=Outcome.FALSIFIED if falsified else survived,
        epsilon_lower=epsilon_lower,
        delta=tested_delta,
        runs=bets.runs,
        confidence=confidence,
        witness=witness,
        seconds=time.perf_counter() - start,
        seed=seed,
        claim=claim,
        guesses=guesses,
        stopped=bets.stopped,
        unseen=unseen,
        notes=release_notes(getattr(bets.draw, "draw", bets.draw), bets.pair, bets.runs),
        not_tested=not_tested(release, pair, unseen),
        stream=stream,
        # Each run's factor errs by less than 1e-13 of it.
        log_wealth=float(log_mean_wealth(bets.log_wealth)) - 1e-13 * (1 + bets.runs),
    )
    mechanism = release if isinstance(release, Mechanism) else None
    return judged(finding, mechanism, bound_confidence)


@final
class _Bets:
    """The bets on one release: the experts' wealth, and the run at which it was a proof.

    An expert stakes as if the log-odds of its guesses exceeded the claim's epsilon by a number of
    its own, and the mean of all experts' wealth counts.  ``exact`` are the log-odds of a declared
    mechanism, by which a single expert knows the excess; without them, runs are learned from.
    """

    def __init__(
        self,
        release: Mechanism | Callable[..., Any],
        pair: tuple[Any, Any] | None,
        objective: Objective,
        epsilon: float,
        error: float,
        executor: Executor | None,
    ) -> None:
        self.mechanism_made_pair = pair is None and isinstance(release, Mechanism)
        self.exact: ScoreFunction | None = None
        if isinstance(release, Mechanism):
            self.pair = release.worst_pair(epsilon) if pair is None else pair_of_one_shape(pair)
            self.draw: Draw = release.release
            self.exact = likelihood_ratio_score(release, self.pair)
        else:
            self.pair = checked_pair(pair)
            self.draw = release
            if not isinstance(release, ScoredDraw):
                draw = observed_draw(vectorised(release), self.pair, objective.runs, executor)
                reader = ReadDraw(draw)
                self.draw = reader.bounded(reader.one_output(self.pair[0]), objective.runs)
        self.objective, self.epsilon = objective, epsilon
        # The log-wealth at which the claim is refuted with this error probability: from a wealth of
        # 1 it grows to 1 / error with probability at most ``error`` (Ville's inequality).
        self.log_proof = -math.log(error)
        # One expert for exact log-odds, else one for each excess over epsilon that they may have.
        self.log_wealth: Array = np.zeros(1 if self.exact else len(EXPERT_EXCESSES))
        self.runs = 0
        self.width = 1  # how many numbers one output has
        self.stopped: int | None = None

    def place(
        self, rng: np.random.Generator, executor: Executor | None
    ) -> tuple[DecisionRule, GuessCounts, tuple[str, ...]]:
        """Bet until the wealth is a proof or no runs remain.

        It returns the last rule, its guesses, and the parts of outputs that nothing could read.
        """
        unseen: tuple[str, ...] = ()
        if self.exact is None:
            rule, score, unseen = self._learn(rng, executor)
        else:
            # The claim's epsilon may be rounded up by less than 1e-9 of it; scores that equal it
            # are to be guessed on too.
            lowest_score, score = (1 - 1e-9) * self.epsilon, self.exact
            rule = ThresholdRule(score, lowest_score, NO_GUESS, SCORE_DESCRIPTION)
        # The right guesses of the rule, and its guesses, in the runs that it did not learn from.
        counts, all_runs = np.zeros(2, dtype=np.int64), self.objective.runs
        test_runs = all_runs - self.runs
        while self.runs < all_runs and self.stopped is None:
            most_kept = max(MAX_KEPT_NUMBERS // self.width, 1)
            size = max(self.runs // PIECE_DIVISOR, MIN_PIECE)
            size = min(size, CHUNK, all_runs - self.runs, most_kept)
            for fresh in draw_both(self.draw, self.pair, size, rng, executor):
                counts += rule.counts(*fresh)
                self._bet(score, fresh, rng)
        return rule, guess_counts(rule, int(counts[0]), int(counts[1]), test_runs), unseen

    def _learn(
        self, rng: np.random.Generator, executor: Executor | None
    ) -> tuple[DecisionRule, ScoreFunction, tuple[str, ...]]:
        """Bet on a share of the runs, each by a rule of those before: the last rule and score."""
        all_runs, cut_only = self.objective.runs, isinstance(self.draw, ScoredDraw)
        first_runs = min(FIRST_RUNS, all_runs // 2)
        known_outputs = collect_both(self.draw, self.pair, first_runs, rng, executor)
        self.runs = len(known_outputs[0]) + len(known_outputs[1])
        self.width = max(side[:1].size for side in known_outputs)
        most_runs = min(
            LEARNING_SHARE * all_runs, MAX_LEARNING_RUNS, MAX_KEPT_NUMBERS // self.width
        )
        while self.runs < most_runs and self.stopped is None:
            trained = train_score(*known_outputs, self.objective, cut_only)
            # At least 10 runs, so that few runs are not learned from again and again.
            size = max(int((LEARNING_GROWTH - 1) * self.runs), 10)
            further_outputs = collect_both(self.draw, self.pair, size, rng, executor)
            self._bet(trained.log_odds, further_outputs, rng)
            known_outputs = append_runs(known_outputs, further_outputs)
        test_objective = replace(self.objective, runs=all_runs - self.runs)
        trained = train_score(*known_outputs, test_objective, cut_only)
        return trained.rule(test_objective), trained.log_odds, unseen_parts(*known_outputs)

    def _bet(self, score: ScoreFunction, outputs: OutputPair, rng: np.random.Generator) -> None:
        """Bet on runs one after the other; ``score`` gives the log-odds of their outputs.

        The outputs of the first value come before those of the second, so they are put into a
        random order, as if a coin had chosen the value of each run.
        """
        scores = np.concatenate([score(side) for side in outputs if len(side)])
        order = rng.permutation(scores.size)
        log_odds, is_first = scores[order], order < len(outputs[0])
        # How far each expert takes the log-odds to exceed the claim's, a row for each expert.
        excess = expert_odds(log_odds, self.epsilon, exact=self.exact is not None)
        is_right = is_first == (log_odds > 0)
        rates = log_growth(excess, is_right, self.epsilon, self.objective.delta)
        log_wealth_after = self.log_wealth[:, None] + np.cumsum(rates, axis=1)
        proofs = np.flatnonzero(log_mean_wealth(log_wealth_after) >= self.log_proof)
        if proofs.size and self.stopped is None:
            self.stopped = self.runs + int(proofs[0]) + 1
        self.log_wealth = log_wealth_after[:, -1]
        self.runs += log_odds.size

    def could_stop(self, runs: int) -> bool:
        """True if ``runs`` right guesses, each as sure as can be, would have been a proof."""
        excess = expert_odds(np.array([np.inf]), self.epsilon, exact=self.exact is not None)
        growth = log_growth(excess, np.array([True]), self.epsilon, self.objective.delta)
        return float(log_mean_wealth(runs * growth)[0]) >= self.log_proof
