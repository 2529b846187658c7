"""Tracing: which rows did a fit see?  Members of the data are told from rows that it never saw.

Every run has a code of its own; each of ``rows`` places in the data is filled with one of two rows
of the same law, by a fair coin.  The guess is the row that the estimate correlates with more.
That is a test of records that are replaced, valid for any algorithm: see
`audits.statistics.single_run`.

References: Dwork, Smith, Steinke, Ullman & Vadhan (2015); Talwar, Thakurta & Zhang (2015),
Theorem 3.1, for the data.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from accountant.domains import DELTA, EPSILON, IntegerRange
from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.plans.adjacency import Adjacency
from accountant.randomness import Rng
from audits.adapters.estimators import DataOf, EstimatorAdapter
from audits.adapters.noise_search import describe_factor, largest_convicted_factor
from audits.adapters.reduced_noise import NOISE_FACTOR
from audits.claims.arguments import CONFIDENCE, seed_and_generator
from audits.claims.findings import Outcome
from audits.minimax.families.bernoulli_products import BernoulliProducts
from audits.minimax.families.fingerprints import append_ridge, checked_features, tracing_scores
from audits.statistics.single_run import epsilon_lower_one_run

FALSE_POSITIVE_RATES = (0.01, 0.05, 0.1, 0.25, 0.5)


@final
@dataclass(frozen=True, slots=True)
class Traced:
    """What a tracing audit found.

    ``right`` of ``pairs`` guesses (a member, a row that was not used) were right; with probability
    ``confidence`` the algorithm's epsilon at ``delta``, for a replaced record, is at least
    ``epsilon_lower``.  ``claimed`` is what it was held against, None if nothing.  ``noise`` is
    the part of its noise that was drawn, ``noise_factor`` the largest part that was convicted in
    a search, if any.
    """

    outcome: Outcome
    epsilon_lower: float
    delta: float
    claimed: float | None
    runs: int
    confidence: float
    witness: str
    seconds: float
    seed: int | None
    right: int
    pairs: int
    members: Array
    others: Array
    noise: float
    noise_factor: float | None = None

    def true_positives(self, rate: float) -> float:
        """Share of members above the score that at most ``rate`` of the others exceed."""
        ordered = np.sort(self.others)[::-1]
        return float(np.mean(self.members > ordered[int(rate * ordered.size)]))

    @property
    def curve(self) -> tuple[tuple[float, float], ...]:
        """(false-positive rate, true-positive rate) at a few rates."""
        return tuple((rate, self.true_positives(rate)) for rate in FALSE_POSITIVE_RATES)


def audit_tracing(
    algorithm: Any,
    epsilon: float | None = None,
    delta: float = 0.0,
    *,
    runs: int = 2,
    rows: int = 24,
    features: int = 2048,
    data_of: DataOf | None = None,
    confidence: float = 0.95,
    noise: float = 1.0,
    search: int = 0,
    rng: Rng = None,
) -> Traced:
    """Run an algorithm on fingerprinted data and guess its members; a lower bound on epsilon.

    ``algorithm`` has ``plan`` and ``run``, or ``fit`` and then ``coef_``, or is a function
    ``(x, y, rng)`` of the coefficients.  ``epsilon`` is the claim at ``delta``, for replaced
    records; None takes what the plan states, if there is one.  ``data_of(x, y)`` makes of ridge and
    rows (targets 0 and 1) the data as the algorithm takes them, such as `both_ways`; it must keep
    one record one.  ``noise`` draws a part of the noise; ``search`` tries look for the largest part
    below 1 that is convicted.
    """
    start = time.perf_counter()
    subject, (seed, source) = EstimatorAdapter.of(algorithm, data_of), seed_and_generator(rng)
    runs, rows = IntegerRange(1).check("runs", runs), IntegerRange(2, 10_000).check("rows", rows)
    tries = IntegerRange(0, 60).check("search", search)
    family = BernoulliProducts(checked_features(features))
    setting = _TracingSetup(family, rows, runs)
    confidence = CONFIDENCE.check("confidence", confidence)
    delta, noise = DELTA.check("delta", delta), NOISE_FACTOR.check("noise", noise)
    claimed = _claimed_epsilon(subject, setting, epsilon, delta)
    judge, more = source.spawn(2)

    def judged(part: float, rng: np.random.Generator) -> Traced:
        members, others = setting.scores(subject, part, rng)
        # equal scores, such as of an estimate of zeros, are guessed by a coin
        ties = (members == others) & (rng.random(members.size) < 0.5)
        right = int(np.count_nonzero((members > others) | ties))
        lower = epsilon_lower_one_run(right, members.size, delta, 1 - confidence)
        outcome = Outcome.SURVIVED
        if claimed is not None and lower > claimed:
            outcome = Outcome.FALSIFIED
        return Traced(outcome, lower, delta, claimed, runs, confidence, "", 0.0, seed, right,
                      members.size, members, others, part)  # fmt: skip

    found = judged(noise, judge)
    if tries:
        if claimed is None:
            raise ParameterError("search", search, "0 where there is no claim to convict of")
        factor = largest_convicted_factor(
            lambda part: judged(part, more.spawn(1)[0]).outcome is Outcome.FALSIFIED, tries
        )
        found = replace(found, noise_factor=factor)
    words = _witness(found, subject, setting)
    if tries:
        words += f"; {describe_factor(found.noise_factor)}"
    return replace(found, witness=words, seconds=time.perf_counter() - start)


@final
@dataclass(frozen=True, slots=True)
class _TracingSetup:
    family: BernoulliProducts
    rows: int
    runs: int

    def scores(
        self, subject: EstimatorAdapter, noise: float, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        """Scores of members and of the rows in whose place they came, of all runs."""
        pairs = [self._run(subject, noise, one) for one in rng.spawn(self.runs)]
        members, others = (np.concatenate(side) for side in zip(*pairs, strict=True))
        return members, others

    def data(self, rng: np.random.Generator) -> tuple[Array, Array, Array, Array, Array]:
        """x, y, the rows that are in, those that are not, and the columns' means."""
        means = self.family.means(rng)
        both = self.family.sample(means, 2 * self.rows, rng).reshape(2, self.rows, -1)
        coins, places = rng.integers(2, size=self.rows), np.arange(self.rows)
        inside, outside = both[coins, places], both[1 - coins, places]
        x, y = append_ridge(inside)
        return x, y, inside, outside, means

    def _run(
        self, subject: EstimatorAdapter, noise: float, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        theirs, ours = rng.spawn(2)
        x, y, inside, outside, means = self.data(ours)
        estimate = subject.estimate(x, y, theirs, noise)
        if estimate.shape != means.shape:
            got = f"a result of shape {estimate.shape}"
            raise ParameterError("algorithm", got, f"one of {means.size} coefficients")
        return tracing_scores(estimate, inside, means), tracing_scores(estimate, outside, means)


def _claimed_epsilon(
    subject: EstimatorAdapter, setting: _TracingSetup, epsilon: float | None, delta: float
) -> float | None:
    """The claimed epsilon for replaced records: as given, or what the plan costs."""
    if epsilon is not None:
        return EPSILON.check("epsilon", epsilon)
    x, y, *_ = setting.data(np.random.default_rng(0))
    plan = subject.plan(x, y)
    if plan is None:
        return None
    other = Adjacency.ADD_REMOVE in (plan.relation, getattr(subject.algorithm, "relation", ""))
    if other or subject.labels_only:
        raise ParameterError("epsilon", None, "given: the plan's is not for replaced records")
    from accountant.accountants.tight import Tight

    return Tight().epsilon(plan, delta)


def _witness(found: Traced, subject: EstimatorAdapter, setting: _TracingSetup) -> str:
    """What was seen, in words."""
    return (
        f"{subject.name} on fingerprinted data ({setting.rows} rows, {setting.family.features} "
        f"features, noise times {found.noise:g}): members score {found.members.mean():.2f} +- "
        f"{found.members.std():.2f}, rows it never saw {found.others.mean():.2f} +- "
        f"{found.others.std():.2f}; true positives {found.true_positives(0.05):.0%} at 5 % false "
        f"ones; {found.right} of {found.pairs} pairs told apart"
    )
