"""Whether the runs of an audit would have seen half the noise: if not, it is INCONCLUSIVE.

Half the noise is a release that costs twice what is claimed.  Of a declared mechanism it is its own
density with half the noise.  Of a function only the claim is known, so Laplace noise stands for a
pure claim, and Gaussian noise for any other one.
"""

from __future__ import annotations

import bisect
import functools
import math
from dataclasses import replace

from accountant.losses.loss import Loss
from audits.claims.findings import Finding, Outcome
from audits.known_densities.outcome_models import less_noise, noise_kind
from audits.known_densities.sample_size import (
    POWER,
    best_guess_test_runs,
    every_run_test_runs,
    neyman_pearson_runs,
)
from mechanisms.base.mechanism import Mechanism

# The share of the runs that is taken to test, where more runs are asked for, unless a smaller one
# did here.  An audit of other runs may learn from more of them: from 30 % at most, if outputs have
# few numbers.
TESTED_SHARE = 0.7
# How much less noise than is claimed is tried, to find the smallest violation that runs detect.
FACTORS = (1.05, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 2.5, 3.0)


def judged(finding: Finding, mechanism: Mechanism | None, confidence: float) -> Finding:
    """The finding, INCONCLUSIVE if it survived but would have survived with half the noise too.

    ``mechanism`` is None for a function; the verdict holds at ``confidence``.
    """
    claim, point = finding.claim, finding.point
    if claim is None or not claim.epsilon_at(finding.delta) > 0:
        return finding
    finding = replace(finding, noise=noise_kind(mechanism, claim))
    if finding.outcome is Outcome.FALSIFIED:
        return finding
    decides_alone = None if point is None else point.decides_alone
    needed = least_test_runs(mechanism, claim, finding.delta, 1 - confidence, 2.0, decides_alone)
    tested = finding.guesses.runs
    if tested >= needed:
        return finding
    needed_runs = all_runs(needed, min(tested / finding.runs, TESTED_SHARE))
    return replace(finding, outcome=Outcome.INCONCLUSIVE, needed_runs=needed_runs)


def all_runs(tested: float, share: float = TESTED_SHARE) -> int | None:
    """Runs of an audit of which ``tested`` test, rounded up to two digits; None if infinite."""
    if not (tested < math.inf and share > 0):
        return None
    step: int = 10 ** max(math.floor(math.log10(tested / share)) - 1, 0)
    return math.ceil(tested / share / step) * step


@functools.lru_cache(maxsize=256)
def least_test_runs(
    mechanism: Mechanism | None,
    claim: Loss,
    delta: float,
    alpha: float,
    factor: float,
    point_decides_alone: bool | None,
) -> float:
    """Runs of a test that see a release of ``factor`` times the claimed cost; maybe infinite.

    ``point_decides_alone`` is None if the bound at ``delta`` is the test, True if a point of the
    claim's curve is, False if both are.  The point that stands for all is that at epsilon 0.
    """
    pair, epsilon = less_noise(mechanism, claim, delta, factor), claim.epsilon_at(delta)
    if pair is None:
        return math.inf
    if point_decides_alone is None:
        return best_guess_test_runs(pair, epsilon, delta, alpha, POWER)
    if point_decides_alone:
        return every_run_test_runs(pair, claim.delta_at(0.0), alpha, POWER)
    return min(  # each of the two tests has half of the error
        best_guess_test_runs(pair, epsilon, delta, alpha / 2, POWER),
        every_run_test_runs(pair, claim.delta_at(0.0), alpha / 2, POWER),
    )


def least_factor_seen(
    mechanism: Mechanism | None,
    claim: Loss,
    delta: float,
    alpha: float,
    tested: int,
    point_decides_alone: bool | None = None,
) -> float | None:
    """The smallest of `FACTORS` that ``tested`` runs of a test see; None if they see none."""

    def is_seen(factor: float) -> bool:
        needed = least_test_runs(mechanism, claim, delta, alpha, factor, point_decides_alone)
        return tested >= needed

    index = bisect.bisect_left(FACTORS, True, key=is_seen)
    return FACTORS[index] if index < len(FACTORS) else None


@functools.lru_cache(maxsize=256)
def limit_of_any_test(
    mechanism: Mechanism | None, claim: Loss, delta: float, alpha: float, factor: float
) -> float:
    """Runs that the best possible test needs to see a release of ``factor`` times the cost."""
    pair = less_noise(mechanism, claim, delta, factor)
    if pair is None:
        return math.inf
    return neyman_pearson_runs(pair, claim.epsilon_at(delta), delta, alpha, POWER)
