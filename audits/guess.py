"""The guess test: which of two values was released?  One exact binomial bounds epsilon.

Each run's side is a fair coin; under epsilon-DP no guess is right with probability above
``e^eps / (1 + e^eps)``, whatever the mechanism and whatever the guesser has seen before.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from accountant.domains import DELTA, Interval, Whole
from accountant.errors import ParameterError
from accountant.loss import Loss
from accountant.numerics import Array
from accountant.randomness import Rng, generator
from audits.drawing import Draw, sides, vectorised
from audits.finding import Finding, Guesses, Outcome
from audits.learning import learned_score
from audits.rules import Rule, best_cut, density_score
from mechanisms.mechanism import Mechanism

CONFIDENCE = Interval(0.0, 1.0, "()")
RUNS = Whole(10)
# Where along the claim to look for the pair that reveals most: the shares of its epsilon.
SHARES = (0.0, 0.5, 0.8, 0.9, 0.95, 0.98)


def audit(
    release: Mechanism | Callable[..., Any],
    pair: tuple[Any, Any] | None = None,
    claim: Loss | None = None,
    runs: int = 200_000,
    confidence: float = 0.95,
    delta: float | None = None,
    rng: Rng = None,
) -> Finding:
    """Try to falsify a privacy claim by guessing which value of a pair was released.

    ``release`` is a declared mechanism (pair, claim and score follow from it), or a function
    ``release(value, rng, size)`` of numbers along the first axis; one without ``size`` is called
    in a loop.  A fifth of a bare function's runs learn the score.  ``delta`` is the claim's own,
    else 0 for a pure claim, else 1e-5.  Without a claim only the bound is of interest.
    """
    start = time.perf_counter()
    runs = RUNS.check("runs", runs)
    confidence = CONFIDENCE.check("confidence", confidence)
    seed, source = seeded(rng)
    claim = claim if claim is not None or not isinstance(release, Mechanism) else release.loss
    if claim is not None and not isinstance(claim, Loss):
        raise ParameterError("claim", claim, "a loss, such as PureLoss(1.0)")
    at = claimed_delta(claim) if delta is None else DELTA.check("delta", delta)
    alpha = 1 - confidence
    if isinstance(release, Mechanism):
        pilot = min(runs // 10, 50_000)
        pair, rule = _densities(release, pair, claim, pilot, runs - pilot, at, alpha, source)
        draw: Draw = release.release
    else:
        pilot = runs // 5
        pair, draw = _checked_pair(pair), vectorised(release)
        rule = _learned(draw, pair, pilot, runs - pilot, at, alpha, source)
    guesses = count_guesses(draw, pair, rule, runs - pilot, source)
    falsified = guesses.refutes(claim, at, confidence)
    return Finding(
        outcome=Outcome.FALSIFIED if falsified else Outcome.SURVIVED,
        epsilon_lower=guesses.epsilon_lower(at, confidence),
        delta=at,
        runs=runs,
        confidence=confidence,
        witness=_witness(rule, pair, guesses),
        seconds=time.perf_counter() - start,
        seed=seed,
        claim=claim,
        guesses=guesses,
    )


def count_guesses(
    draw: Draw, pair: tuple[Any, Any], rule: Rule, runs: int, rng: np.random.Generator
) -> Guesses:
    """Count the right guesses of a fixed rule on fresh runs, in chunks."""
    correct = made = 0
    for first, second in sides(draw, pair, runs, rng):
        right, guesses = rule.counts(first, second)
        correct, made = correct + right, made + guesses
    return Guesses(int(correct), int(made), runs)


def claimed_delta(claim: Loss | None) -> float:
    """The delta at which a claim is tested: its own, else 0 if pure, else 1e-5.

    A delta of its own that no runs could ever show counts as none.
    """
    if claim is None:
        return 0.0
    own = max(claim.infinity, claim.reversed.infinity)
    return own if own > 1e-12 or np.isfinite(claim.pure) else 1e-5


def seeded(rng: Rng) -> tuple[int | None, np.random.Generator]:
    """The seed that repeats the work, and its generator; a given generator has no seed to tell."""
    if isinstance(rng, np.random.Generator):
        return None, rng
    seed = int(np.random.SeedSequence().generate_state(1)[0]) if rng is None else rng
    source = generator(seed)
    return int(seed), source


def _densities(
    mechanism: Mechanism,
    pair: tuple[Any, Any] | None,
    claim: Loss | None,
    pilot: int,
    runs: int,
    delta: float,
    alpha: float,
    rng: np.random.Generator,
) -> tuple[tuple[Any, Any], Rule]:
    """The declared pair and cut with the greatest expected bound, judged on pilot runs."""
    if pair is not None:
        pairs = [_checked_pair(pair)]
    else:
        top = (claim or mechanism.loss).epsilon_at(delta)
        candidates = [mechanism.worst_pair(share * min(top, 50.0)) for share in SHARES]
        pairs = list({repr(one): one for one in candidates}.values())
    rules = []
    for one in pairs:
        score = density_score(mechanism, one)
        drawn = sides(mechanism.release, one, max(pilot // len(pairs), 1), rng)
        scores = np.concatenate([score(output) for both in drawn for output in both])
        cut, expected = best_cut(scores, runs, delta, alpha)
        rules.append((one, Rule(score, cut, expected, "the declared log-likelihood ratio")))
    return max(rules, key=lambda found: found[1].expected)


def _learned(
    draw: Draw,
    pair: tuple[Any, Any],
    pilot: int,
    runs: int,
    delta: float,
    alpha: float,
    rng: np.random.Generator,
) -> Rule:
    """A rule learned from runs of its own."""
    drawn = list(sides(draw, pair, pilot, rng))
    first, second = (np.concatenate(side) for side in zip(*drawn, strict=True))
    score = learned_score(first, second)
    scores: Array = np.concatenate([score(first), score(second)])
    cut, expected = best_cut(scores, runs, delta, alpha, penalty=1.2)
    return Rule(score, cut, expected, "log-odds learned from a fifth of the runs")


def _checked_pair(pair: Any) -> tuple[Any, Any]:
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise ParameterError("pair", pair, "two neighbouring values")
    first, second = pair
    if np.shape(first) != np.shape(second):
        shapes = f"shapes {np.shape(first)} and {np.shape(second)}"
        raise ParameterError("pair", shapes, "two neighbouring values of one shape")
    return first, second


def _witness(rule: Rule, pair: tuple[Any, Any], guesses: Guesses) -> str:
    first, second = (_shown(value) for value in pair)
    return (
        f"guessing {first} where {rule.words} is at least {rule.cut:.4g} and {second} where it is "
        f"at most {-rule.cut:.4g} was right {guesses.correct:,} times of {guesses.made:,} "
        f"(in {guesses.runs:,} runs)"
    )


def _shown(value: Any) -> str:
    """A value of the pair, to four digits and not too long."""
    return np.array2string(
        np.asarray(value),
        separator=", ",
        threshold=8,
        formatter={"float_kind": lambda x: f"{x:.4g}"},
    )
