"""Events of a release: small integer codes of its outputs, the best one chosen on pilot runs.

Any function of an output is as private as the output, so every code can be tested by `audit`.
Runs that chose the code never enter the test.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accountant.domains import DELTA
from accountant.losses.loss import Loss
from accountant.numerics import Array
from accountant.randomness import Rng
from audits.attacks.front import distinguish
from audits.claims.arguments import CONFIDENCE, RUNS, seed_and_generator
from audits.claims.claims import ClaimLike, checked_claim
from audits.claims.findings import Finding

Codes = NDArray[np.int64]
CodedRelease = Callable[[Any, np.random.Generator, int], Codes]
# Codes are grouped by their log-odds: those between two of these edges are one level.
LEVEL_EDGES = np.array([0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0])
MIN_PILOT_COUNT = 5  # a code that the pilot runs show this often is an atom
RUNS_PER_PILOT_RUN = 8  # one in this many runs is a pilot run, which chooses the code


def audit_by_codes(
    coded: CodedRelease,
    names: Sequence[str],
    pair: Any,
    claim: Loss | None,
    runs: int,
    confidence: float,
    delta: float | None = None,
    rng: Rng = None,
) -> Finding:
    """Try to falsify a claim by the most informative of several codes of an output; see `audit`.

    ``coded(value, rng, size)`` returns ``size`` rows of ``len(names)`` codes.  An eighth of the
    runs choose a code and estimate the log-odds of its values; `audit` uses the rest, and its
    ``confidence`` is that of the finding.
    """
    start = time.perf_counter()
    claim = check_arguments(runs, confidence, claim, delta)
    seed, source = seed_and_generator(rng)
    pilot = min(runs // RUNS_PER_PILOT_RUN, runs - RUNS.low)
    first_codes = coded(pair[0], source, pilot // 2)
    second_codes = coded(pair[1], source, pilot - pilot // 2)
    levels, code_name = most_informative_code(first_codes, second_codes, names)

    def leveled(value: Any, noise: np.random.Generator, size: int) -> Codes:
        return levels(coded(value, noise, size))

    finding = distinguish(leveled, pair, claim, runs - pilot, confidence, delta, source)
    return dataclasses.replace(
        finding,
        runs=runs,
        seed=seed,
        seconds=time.perf_counter() - start,
        witness=f"by {code_name}: {finding.witness}",
    )


def check_arguments(
    runs: int, confidence: float, claim: ClaimLike | None = None, delta: float | None = None
) -> Loss | None:
    """The claim as a loss; raises `ParameterError` for arguments out of range, before any draw."""
    RUNS.check("runs", runs)
    CONFIDENCE.check("confidence", confidence)
    if delta is not None:
        DELTA.check("delta", delta)
    return checked_claim(claim)


def most_informative_code(
    first: Codes, second: Codes, names: Sequence[str]
) -> tuple[Callable[[Codes], Codes], str]:
    """The level of an output by its most informative code, or by all together, and the code's name.

    A level is the log-odds of the first value, rounded.
    """
    scores = [_log_odds_of_code(column, first, second) for column in range(len(names))]
    if len(names) > 1:
        single = tuple(scores)
        scores.append(lambda codes: np.sum([score(codes) for score in single], axis=0))
    best = int(np.argmax([_pilot_epsilon_lower(score(first), score(second)) for score in scores]))
    chosen = scores[best]
    code_name = names[best] if best < len(names) else "all events together"
    return lambda codes: _level(chosen(codes)), code_name


def _log_odds_of_code(column: int, first: Codes, second: Codes) -> Callable[[Codes], Array]:
    """The log-odds of one code of an output, with a pseudo-run a side, as a function of all codes.

    Rare and unseen codes are pooled: each alone would seem to reveal its side by chance.
    """
    pooled = np.concatenate([first[:, column], second[:, column]])
    values, at = np.unique(pooled, return_inverse=True)
    ones, zeros = (
        np.bincount(side, minlength=values.size) for side in (at[: len(first)], at[len(first) :])
    )
    often = ones + zeros >= MIN_PILOT_COUNT
    # the last of the counts is that of all rare codes together
    first_counts, second_counts = (
        np.append(side[often], side[~often].sum()) + 1.0 for side in (ones, zeros)
    )
    frequent, odds = values[often], np.log(first_counts / second_counts)

    def score(codes: Codes) -> Array:
        code = codes[:, column]
        at = np.searchsorted(frequent, code)
        is_listed = np.append(frequent, 0)[at] == code
        return np.where(is_listed & (at < frequent.size), odds[at], odds[-1])

    return score


def _level(score: Array) -> Codes:
    level = np.sign(score) * np.searchsorted(LEVEL_EDGES, np.abs(score), side="right")
    return level.astype(np.int64)


def _pilot_epsilon_lower(first: Array, second: Array) -> float:
    """A lower bound on epsilon that the pilot suggests: the best cut of the levels."""
    a, b = _level(first), _level(second)
    best = 0.0
    for cut in range(1, LEVEL_EDGES.size + 1):
        right = np.count_nonzero(a >= cut) + np.count_nonzero(b <= -cut)
        wrong = np.count_nonzero(a <= -cut) + np.count_nonzero(b >= cut)
        share = (right + 1.0) / (right + wrong + 2.0)
        error = 1 / np.sqrt((right + wrong + 2.0) * share * (1 - share))
        best = max(best, float(np.log(share / (1 - share)) - 2 * error))
    return best
