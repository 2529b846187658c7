"""An audit by codes of the output: whole numbers such as the lowest bit of a float.

Any function of an output is at least as private as the output, so a privacy claim can be tested on
every code.  Pilot runs choose the code that tells the two values of a pair apart best, and group
its values into *levels* by their log-odds, ln(P(code | first value) / P(code | second value)).  The
other runs, which had no part in the choice, test the claim on the levels.
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
# The edges between the levels, in nats of absolute log-odds.  Level 0 is below the first edge.
# Level k or -k, by the sign of the log-odds, is from edge k to edge k + 1, counted from 1.
LEVEL_EDGES = np.array([0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0])
# A code that the pilot runs show at least this often has log-odds of its own; all others share one.
MIN_PILOT_COUNT = 5
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

    ``coded(value, rng, size)`` draws ``size`` outputs for a value and returns their codes: a row
    for each output and a column for each of ``names``.  An eighth of the runs are pilot runs,
    unless that leaves too few; `audit` tests the claim on the rest at ``confidence``.
    """
    start = time.perf_counter()
    claim = check_arguments(runs, confidence, claim, delta)
    seed, source = seed_and_generator(rng)
    pilot_runs = min(runs // RUNS_PER_PILOT_RUN, runs - RUNS.low)
    first_codes = coded(pair[0], source, pilot_runs // 2)
    second_codes = coded(pair[1], source, pilot_runs - pilot_runs // 2)
    level_of, code_name = most_informative_code(first_codes, second_codes, names)

    def leveled(value: Any, noise: np.random.Generator, size: int) -> Codes:
        return level_of(coded(value, noise, size))

    finding = distinguish(leveled, pair, claim, runs - pilot_runs, confidence, delta, source)
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
    """A function from the codes of outputs to levels, and the name of the code it uses.

    It uses the one code with the greatest `_pilot_epsilon_lower`, or the sum of the log-odds of all
    codes where that is greater still.
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
    """A function that returns the log-odds of one code from the rows of all codes.

    They are ln((n_1 + 1) / (n_2 + 1)), with n_1 and n_2 the pilot runs of the first and of the
    second value that show the code.  Rare and unseen codes share one value: each alone would seem
    to reveal its side by chance.
    """
    pooled = np.concatenate([first[:, column], second[:, column]])
    values, code_index = np.unique(pooled, return_inverse=True)
    first_side, second_side = (
        np.bincount(side, minlength=values.size)
        for side in (code_index[: len(first)], code_index[len(first) :])
    )
    is_frequent = first_side + second_side >= MIN_PILOT_COUNT
    # The last of the counts is that of all rare codes together.
    first_counts, second_counts = (
        np.append(side[is_frequent], side[~is_frequent].sum()) + 1.0
        for side in (first_side, second_side)
    )
    frequent, log_odds = values[is_frequent], np.log(first_counts / second_counts)

    def score(codes: Codes) -> Array:
        code = codes[:, column]
        code_index = np.searchsorted(frequent, code)
        is_listed = np.append(frequent, 0)[code_index] == code
        return np.where(
            is_listed & (code_index < frequent.size), log_odds[code_index], log_odds[-1]
        )

    return score


def _level(score: Array) -> Codes:
    level = np.sign(score) * np.searchsorted(LEVEL_EDGES, np.abs(score), side="right")
    return level.astype(np.int64)


def _pilot_epsilon_lower(first: Array, second: Array) -> float:
    """About the lower bound on epsilon that the levels promise, by the pilot runs.

    For each cut c the first value is guessed at levels of at least c, and the second at levels of
    at most -c.  With the share of right guesses s, of two more guesses than there are and one of
    these right, epsilon is at least about ln(s / (1 - s)) less two standard errors.
    """
    first_levels, second_levels = _level(first), _level(second)
    best = 0.0
    for cut in range(1, LEVEL_EDGES.size + 1):
        right = np.count_nonzero(first_levels >= cut) + np.count_nonzero(second_levels <= -cut)
        wrong = np.count_nonzero(first_levels <= -cut) + np.count_nonzero(second_levels >= cut)
        share = (right + 1.0) / (right + wrong + 2.0)
        error = 1 / np.sqrt((right + wrong + 2.0) * share * (1 - share))
        best = max(best, float(np.log(share / (1 - share)) - 2 * error))
    return best
