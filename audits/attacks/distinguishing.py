"""The guess test: which of two values was released?  One exact binomial bounds epsilon.

Each run's value is chosen by a fair coin.  Under epsilon-DP no guess is right with probability
above ``e^eps / (1 + e^eps)``, for any mechanism and any earlier outputs (Kairouz, Oh & Viswanath
2015).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

from accountant.domains import DELTA
from accountant.randomness import Rng
from audits.attacks.black_box import audit_black_box
from audits.attacks.declared_mechanism import audit_declared
from audits.claims.arguments import (
    CONFIDENCE,
    RUNS,
    checked_pair,
    claimed_delta,
    pair_of_one_shape,
    seed_and_generator,
)
from audits.claims.claims import ClaimLike, checked_claim, claim_points
from audits.claims.findings import Finding, Outcome, outcome_at
from audits.classifiers.objective import Objective
from audits.classifiers.scored_outputs import ScoredDraw
from audits.runs.release_functions import release_notes, vectorised
from mechanisms.base.mechanism import Mechanism


def distinguish(
    release: Mechanism | Callable[..., Any],
    pair: tuple[Any, Any] | None = None,
    claim: ClaimLike | None = None,
    runs: int = 200_000,
    confidence: float = 0.95,
    delta: float | None = None,
    rng: Rng = None,
    executor: Executor | None = None,
) -> Finding:
    """Audit a release by guessing, in a number of runs fixed in advance: see `audit`."""
    start = time.perf_counter()
    runs = RUNS.check("runs", runs)
    confidence = CONFIDENCE.check("confidence", confidence)
    seed, source = seed_and_generator(rng)
    if isinstance(release, Mechanism) and claim is None:
        claim = release.loss
    claim = checked_claim(claim)
    tested_delta = claimed_delta(claim) if delta is None else DELTA.check("delta", delta)
    epsilon = None if claim is None else claim.epsilon_at(tested_delta)
    objective = Objective(
        runs, tested_delta, 1 - confidence, epsilon if tested_delta == 0 or epsilon else None
    )
    points = [] if claim is None or delta is not None else claim_points(claim)
    if isinstance(release, Mechanism):
        shaped_pair = None if pair is None else pair_of_one_shape(pair)
        result = audit_declared(release, shaped_pair, claim, objective, points, source, executor)
    else:
        result = audit_black_box(
            release if isinstance(release, ScoredDraw) else vectorised(release),
            checked_pair(pair),
            objective,
            points,
            source,
            executor,
        )
    finding = Finding(
        outcome=Outcome.SURVIVED,
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
    )
    return replace(finding, outcome=outcome_at(finding, confidence))


def noted(finding: Finding, release: Any, pair: Any) -> Finding:
    """The finding with notes on its release, which a few more calls show."""
    if isinstance(release, Mechanism):
        return finding
    draw = release.draw if isinstance(release, ScoredDraw) else vectorised(release)
    return replace(finding, notes=release_notes(draw, pair, finding.runs))
