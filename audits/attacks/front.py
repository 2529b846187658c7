"""The audit of one release: choose its kind, then guess which of two values was released.

`audit` is the entry for users.  It sends a mechanism to `audit_declared`, where its own density is
the score of outputs; a function whose outputs are of few numbers to the tests here, of many to
`audit_wide`; a claim on sensitivity to `audit_sensitivity`; and an audit that may stop early to
`watch`.

Each run's value is chosen by a fair coin.  Under epsilon-DP no guess is right with probability
above ``e^eps / (1 + e^eps)``, for any mechanism and any earlier outputs (Kairouz, Oh & Viswanath
2015), so one exact binomial bounds epsilon from below.  With a delta, a share delta of the runs may
reveal their value besides (`audits.statistics.delta_leaks`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from accountant.domains import DELTA
from accountant.errors import ParameterError
from accountant.randomness import Rng
from audits.attacks.declared_mechanism import audit_declared
from audits.attacks.half_noise import judged
from audits.attacks.not_tested import not_tested
from audits.attacks.sensitivity import audit_sensitivity
from audits.attacks.sequential import watch
from audits.attacks.tested_rules import RuleResult, guess_in_blocks
from audits.attacks.wide_outputs import audit_wide, few_outputs, keep_a_part, kept_runs
from audits.claims.arguments import (
    CONFIDENCE,
    RUNS,
    checked_pair,
    claimed_delta,
    pair_of_one_shape,
    seed_and_generator,
    stream_digest,
)
from audits.claims.claims import ClaimLike, Sensitivity, checked_claim, claim_points
from audits.claims.findings import Finding, Outcome, outcome_at
from audits.classifiers.objective import Objective
from audits.classifiers.output_features import RAW_COLUMNS, ReadDraw
from audits.classifiers.scored_outputs import Score, ScoredDraw, scored_draw
from audits.classifiers.training import TrainedScore, train_score
from audits.runs.parallel_runs import OutputPair, collect_both
from audits.runs.release_functions import Draw, observed_draw, release_notes, vectorised
from audits.statistics.combined_tests import block_schedule
from audits.values.tracebacks import without_values
from dp_attest.calls import shows_call
from mechanisms.base.mechanism import Mechanism


@shows_call(
    "audit(release, pair=(value, neighbour), claim=1.0)",
    epsilon="the claim is one argument: claim=1.0, or claim=(1.0, 1e-6) with a delta",
)
@without_values
def audit(
    release: Mechanism | Callable[..., Any],
    pair: tuple[Any, Any] | None = None,
    claim: ClaimLike | Sensitivity | None = None,
    runs: int = 200_000,
    confidence: float = 0.95,
    delta: float | None = None,
    rng: Rng = None,
    early: bool = False,
    executor: Executor | None = None,
    score: Score | None = None,
) -> Finding:
    """Try to falsify a privacy claim by guessing which value of a pair was released.

    In every run a fair coin chooses one of the two values, and a rule guesses it from the output.
    Under (epsilon, 0)-DP no guess is right with probability above ``e^eps / (1 + e^eps)``, so one
    exact binomial bounds epsilon from below.

    Parameters
    ----------
    release : Mechanism or callable
        A declared mechanism, whose own density is then the score, or a function ``release(value,
        rng, size)`` that returns ``size`` outputs of any kind along the first axis.  A function
        without ``size`` is called once per run, one without ``rng`` draws by itself, a coroutine
        function is run to its end.  Each call receives a copy of the value.  An exception counts as
        an output.  The first runs learn a score of the outputs; the test uses other runs.
    pair : tuple of two values, optional
        Two neighbouring values that differ, of any kinds and lengths.  None takes the mechanism's
        worst pair.
    claim : Loss, Budget, float, (float, float) or Sensitivity, optional
        What is claimed of the release: a loss, a number epsilon, or (epsilon, delta).  None takes
        the mechanism's own loss; for a function it computes the bound alone.  A claim that is a
        whole curve, such as a Gaussian's, is tested at its most revealing point.  `Sensitivity`
        claims how far a function without noise moves.
    runs : int, optional
        Number of draws, at least 10, learning included.
    confidence : float, optional
        Probability in (0, 1) with which the bound holds, and with which a true claim survives.
    delta : float, optional
        The delta in [0, 1) of the bound.  None takes the claim's own delta; where it has none, 0
        for a pure claim and 1e-5 otherwise.
    rng : int, numpy.random.Generator or None, optional
        Seed or generator; a seed is reported in the finding and repeats it.
    early : bool, optional
        Stop at the first proof, as `watch` does.
    executor : concurrent.futures.Executor, optional
        Spreads the runs over threads, processes or a cluster, with the same result bit by bit.
        Other processes receive ``release`` pickled.  Between threads a function must not share
        state that it changes.
    score : array-like or callable, optional
        A score of a function's outputs, of which only the cut is learned: a direction, of one
        weight for each number of an output, or a function of an array of outputs that returns one
        number for each.  None learns a score.

    Returns
    -------
    Finding
        The outcome, a lower bound on epsilon at ``delta``, rounded down, and notes on the release.
        What is not FALSIFIED is INCONCLUSIVE if so few runs would not have seen half the noise,
        with ``needed_runs`` that would, or if ``unseen`` names parts of the outputs that cannot be
        looked into.

    Raises
    ------
    ParameterError
        If an argument is out of its range, or the values of the pair are equal.

    References
    ----------
    Kairouz, Oh & Viswanath (2015); Steinke, Nasr & Jagielski (2023).

    Examples
    --------
    >>> from accountant import PureLoss
    >>> from audits import audit
    >>> def half_the_noise(value, rng, size):
    ...     return value + rng.laplace(scale=0.5, size=size)
    >>> found = audit(half_the_noise, (0.0, 1.0), PureLoss(1.0), runs=5000, rng=0)
    >>> found.outcome.name, round(found.epsilon_lower, 2)
    ('FALSIFIED', 1.89)
    """
    if score is not None:
        if isinstance(release, Mechanism) or isinstance(claim, Sensitivity):
            shown = "a score where the release is a mechanism or the claim a sensitivity"
            raise ParameterError("score", shown, "left out; it is for the outputs of a function")
        release = scored_draw(vectorised(release), score)
    if isinstance(claim, Sensitivity):
        if early:
            raise ParameterError("early", early, "left out where the claim is a sensitivity")
        if isinstance(release, Mechanism):
            raise ParameterError("release", release, "a function without noise")
        for name, argument in (("executor", executor), ("delta", delta)):
            if argument is not None:
                raise ParameterError(name, argument, "left out where the claim is a sensitivity")
        return audit_sensitivity(release, pair, claim, runs, confidence, rng=rng)
    if early:
        return watch(release, pair, claim, runs, confidence, delta, rng, executor)
    finding = distinguish(release, pair, claim, runs, confidence, delta, rng, executor)
    mechanism = release if isinstance(release, Mechanism) else None
    return noted(judged(finding, mechanism, confidence), release, pair)


def distinguish(
    release: Mechanism | Callable[..., Any],
    pair: tuple[Any, Any] | None,
    claim: ClaimLike | None,
    runs: int,
    confidence: float,
    delta: float | None = None,
    rng: Rng = None,
    executor: Executor | None = None,
) -> Finding:
    """Audit a release by guessing, in a number of runs fixed in advance.

    Arguments and result are those of `audit`, but the finding has no notes on the release, and is
    not yet judged by half the noise.
    """
    start = time.perf_counter()
    runs = RUNS.check("runs", runs)
    confidence = CONFIDENCE.check("confidence", confidence)
    seed, source = seed_and_generator(rng)
    stream = stream_digest(source)
    if isinstance(release, Mechanism) and claim is None:
        claim = release.loss
    claim = checked_claim(claim)
    tested_delta = claimed_delta(claim) if delta is None else DELTA.check("delta", delta)
    epsilon = None if claim is None else claim.epsilon_at(tested_delta)
    if tested_delta > 0 and epsilon == 0:
        # Any bound above 0 refutes epsilon 0: the rule is chosen for its bound, without the claim.
        epsilon = None
    objective = Objective(runs, tested_delta, alpha=1 - confidence, epsilon=epsilon)
    # A delta that the caller gives is the only one at which the claim is tested.
    points = [] if claim is None or delta is not None else claim_points(claim)
    if isinstance(release, Mechanism):
        shaped_pair = None if pair is None else pair_of_one_shape(pair)
        result = audit_declared(release, shaped_pair, claim, objective, points, source, executor)
    else:
        draw = release if isinstance(release, ScoredDraw) else vectorised(release)
        result = audit_black_box(draw, checked_pair(pair), objective, points, source, executor)
    finding = Finding(
        outcome=Outcome.SURVIVED,  # replaced below, as it is decided by the other fields
        epsilon_lower=result.guesses.epsilon_lower(tested_delta, confidence),
        delta=tested_delta,
        runs=runs,
        confidence=confidence,
        witness=result.witness(),
        seconds=time.perf_counter() - start,
        seed=seed,
        claim=claim,
        guesses=result.guesses,
        point=result.point,
        unseen=result.unseen,
        stream=stream,
    )
    return replace(finding, outcome=outcome_at(finding, confidence))


def noted(
    finding: Finding,
    release: Any,
    pair: Any,
    *,
    pairs_tried: str = "",
    events: str = "",
    bits: bool = False,
) -> Finding:
    """The finding, with notes on its release from a few more calls, and what was not looked at.

    A mechanism has no notes.  What was looked at is said as `not_tested` takes it.
    """
    reasons = not_tested(release, pair, finding.unseen, pairs_tried, events, bits)
    finding = replace(finding, not_tested=reasons)
    if isinstance(release, Mechanism):
        return finding
    draw = release.draw if isinstance(release, ScoredDraw) else vectorised(release)
    return replace(finding, notes=release_notes(draw, pair, finding.runs))


def audit_black_box(
    draw: Draw,
    pair: tuple[Any, Any],
    objective: Objective,
    points: Sequence[tuple[float, float]],
    rng: np.random.Generator,
    executor: Executor | None = None,
) -> RuleResult:
    """Test rules on a function whose density is not known.

    A rule is learned from earlier runs, and fixed before the runs that test it are drawn.  The runs
    that tested a first rule are known when the second one is learned.  ``points`` are points
    (epsilon, delta) of a claim's curve, if it has one.  The point that the learned runs violate
    most is tested too.
    """
    is_scored = isinstance(draw, ScoredDraw)
    width = 1  # how many numbers one output has; 1 also for outputs that are no numbers
    if not is_scored:
        draw = observed_draw(draw, pair, objective.runs, executor)
        reader = ReadDraw(draw)  # turns outputs of any kind into numbers and texts
        output = reader.one_output(pair[0])
        draw = reader.bounded(output, objective.runs)  # reads only a part of endless outputs
        # The length is 0 where the run raised an exception.
        if output.dtype.kind in "biuf" and len(output) == 1:
            width = output.size
    if width > RAW_COLUMNS:
        wide_outputs = collect_both(draw, pair, kept_runs(objective.runs, width), rng, executor)
        if not few_outputs(wide_outputs) and not keep_a_part(wide_outputs, objective.runs):
            return audit_wide(draw, pair, wide_outputs, objective, points, rng, executor)
        # Outputs that repeat often, or keep a part, suit the tests below.  These learn from runs of
        # their own, and those that showed it count as spent.
        runs_left = objective.runs - len(wide_outputs[0]) - len(wide_outputs[1])
        objective = replace(objective, runs=runs_left)
    # For each block the runs that its rule is learned from, and those that it is tested on.
    blocks = block_schedule(objective.runs, pure=objective.delta == 0 and not points)
    first_learned, _ = blocks[0]
    known_outputs = collect_both(draw, pair, first_learned, rng, executor)
    learner = _OutputLearner(draw, is_scored)
    return guess_in_blocks(learner, pair, known_outputs, blocks, objective, points, rng, executor)


@final
@dataclass(frozen=True, slots=True)
class _OutputLearner:
    """Learns a score from whole outputs, or the cut of a given score."""

    draw: Draw
    is_scored: bool

    def learn(self, known: OutputPair, objective: Objective) -> TrainedScore:
        """The score that suits the objective best on the known runs."""
        return train_score(*known, objective, self.is_scored)
