"""Selection of features by peeling, then a private sign for each of them, from votes of machines.

Peeling selects the feature of the greatest noisy stability, takes it away, and goes on with the
remaining ones.  The file has the plan, which depends on public numbers only, the counts of votes,
and the run.

References: Liu, Tu, Mao & Chen (2022), Algorithms 1 and 2, equations (4) and (5); constants
recomputed (`audits.papers.sparse_regression`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accountant.numerics import Array
from accountant.planning.calibration import calibrate_near
from accountant.plans.adjacency import Adjacency
from accountant.plans.parallel import Stated
from accountant.plans.plan import Plan, Repeat, Sequential
from algorithms.base.noisy_gradient_rounds import mu_of_budget
from mechanisms.exponential import Exponential
from mechanisms.noisy_max import NoisyMax

VOTE_SENSITIVITY = 2.0  # one machine moves counts by 1, and every stability and utility by 2
SIGNS = np.array([1, -1, 0], dtype=np.int8)  # in the order of the utilities
MACHINES_PER_SUM = 127  # machines whose votes an 8-bit sum can hold


def peeling_stage(scale: float, select: int, noise: str) -> Repeat:
    """Return ``select`` rounds, each of which selects one more feature with a stable majority."""
    return Repeat(NoisyMax(scale, VOTE_SENSITIVITY, noise), select)


def peeling_and_sign_plan(peel: Repeat, scale: float) -> Stated:
    """Return a plan of selection, then a sign for every selected feature, per machine."""
    signs = Repeat(Exponential(scale, VOTE_SENSITIVITY), peel.count)
    return Stated(Sequential([peel, signs]), Adjacency.MACHINE_REPLACE)


def published_plan(epsilon: float, delta: float, select: int) -> Stated:
    """Return the plan with the constants of the paper: Algorithm 1 within Algorithm 2.

    Laplace noise of scale ``8 sqrt(2 s ln(2 / delta)) / epsilon``, and signs with probability
    proportional to ``exp(epsilon' f / 4)``, ``epsilon' = epsilon / (4 sqrt(2 s ln(2 / delta)))``.
    """
    root = math.sqrt(2 * select * math.log(2 / delta))
    return peeling_and_sign_plan(
        peeling_stage(8 * root / epsilon, select, "laplace"), 16 * root / epsilon
    )


@lru_cache(maxsize=256)
def calibrated_plan(epsilon: float, delta: float, select: int) -> Stated:
    """Return a plan with Gumbel noise of one scale, the least that (epsilon, delta) allows."""

    def plan_of(scale: float) -> Plan:
        return peeling_and_sign_plan(peeling_stage(scale, select, "gumbel"), scale)

    # There are 2 s releases, each with log-ratios of range 2 VOTE_SENSITIVITY / scale.  At delta 0
    # the ranges add up; otherwise each release has a mu of about half of its range.
    start = 4 * VOTE_SENSITIVITY * select / epsilon
    if delta > 0:
        moved = VOTE_SENSITIVITY * math.sqrt(2 * select)
        start = min(start, moved / mu_of_budget(epsilon, delta))
    scale = calibrate_near(plan_of, start, epsilon, delta)
    return peeling_and_sign_plan(peeling_stage(scale, select, "gumbel"), scale)


def peeled_signs(ledger: Any) -> NDArray[np.int8]:
    """Return the private signs of all features: 0 where not selected, or where 0 was drawn."""
    peel, signs = ledger.plan.part.parts
    counter, remaining = VoteCounter(), np.arange(ledger.shape[1])
    selected: list[int] = []
    for _ in range(peel.count):
        # The remaining features follow from earlier answers, so the query may depend on them.
        query = RemainingStability(counter, remaining)
        winner = int(ledger.release(peel.part, query, shape=remaining.size))
        selected.append(int(remaining[winner]))
        remaining = np.delete(remaining, winner)
    private_signs = np.zeros(ledger.shape[1], dtype=np.int8)
    for feature in selected:
        utilities = partial(counter.utilities, feature=feature)
        drawn = ledger.release(signs.part, utilities, shape=SIGNS.size)
        private_signs[feature] = SIGNS[int(drawn)]
    return private_signs


@final
@dataclass(frozen=True, slots=True)
class RemainingStability:
    """The query of a round: the stability of the features that are not selected yet."""

    counter: VoteCounter
    features: NDArray[np.intp]

    def __call__(self, votes: Any) -> Any:
        """Return the stability of every remaining feature."""
        return self.counter.stability(votes)[self.features]


def count_votes(votes: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how many machines voted 1, and how many -1, for every feature; the rest are null.

    ``votes`` is (machines, features), 8-bit for speed: it is read once, and never widened.
    """
    totals = np.zeros((2, votes.shape[1]), dtype=np.int64)
    for start in range(0, len(votes), MACHINES_PER_SUM):
        block = votes[start : start + MACHINES_PER_SUM]
        for row, sign in enumerate((1, -1)):
            totals[row] += np.add.reduce((block == sign).view(np.int8), axis=0, dtype=np.int8)
    return totals[0], totals[1]


def majority_signs(votes: Any) -> NDArray[np.int8]:
    """Return the sign that more than half of the machines voted for, else 0; not private."""
    positive, negative = count_votes(votes)
    machines = len(votes)
    return (2 * positive > machines).astype(np.int8) - (2 * negative > machines).astype(np.int8)


@final
class VoteCounter:
    """The queries of one run; votes are counted once, at the first query."""

    def __init__(self) -> None:
        self._counted: tuple[Array, Array, Array] | None = None

    def stability(self, votes: Any) -> Array:
        """Return ``2 max(N+, N-) - m`` of every feature, from -m to m: equation (4).

        It is not the number of votes that would have to flip: at N+ = 4 of m = 5 it is 3, and two
        flips change the majority.
        """
        return self._cached_counts(votes)[2]

    def utilities(self, votes: Any, feature: int) -> Array:
        """Return the utilities of 1, -1, 0: ``2 N+ - m``, ``2 N- - m``, ``m - 2 max`` (5)."""
        positive, negative, stability = (count[feature] for count in self._cached_counts(votes))
        return np.array([2 * positive - len(votes), 2 * negative - len(votes), -stability])

    def _cached_counts(self, votes: Any) -> tuple[Array, Array, Array]:
        if self._counted is None:
            positive, negative = (count.astype(float) for count in count_votes(votes))
            stability = 2 * np.maximum(positive, negative) - len(votes)
            self._counted = positive, negative, stability
        return self._counted
