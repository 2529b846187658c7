"""Tracing: distinguish the rows that a fit used from rows that it did not.

Every run has a code of its own; each of ``rows`` places in the data is filled with one of two rows
of the same distribution, by a fair coin.  The guess is the row that the estimate correlates with
more.  That is a test of replaced records, valid for any algorithm: see
`audits.statistics.single_run`.  A *code* is a drawn set of column means, from which the rows of a
run are drawn; rows that are in the data are its members.

References: Dwork, Smith, Steinke, Ullman & Vadhan (2015); Talwar, Thakurta & Zhang (2015),
Theorem 3.1, for the data.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from accountant.domains import DELTA, EPSILON, IntegerRange, Interval
from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.plans.adjacency import PRESENCE_RELATIONS, Adjacency
from accountant.randomness import Rng
from audits.adapters.estimators import DataOf, EstimatorAdapter
from audits.adapters.reduced_noise import NOISE_FACTOR, largest_falsified_factor
from audits.claims.arguments import CONFIDENCE, seed_and_generator
from audits.claims.findings import Outcome
from audits.minimax.families.bernoulli_products import BernoulliProducts
from audits.minimax.families.fingerprints import append_ridge, checked_features, tracing_scores
from audits.statistics.single_run import epsilon_lower_one_run

FALSE_POSITIVE_RATE = Interval(0.0, 1.0, "[)")
FALSE_POSITIVE_RATES = (0.01, 0.05, 0.1, 0.25, 0.5)  # at which true-positive rates are shown


@final
@dataclass(frozen=True, slots=True)
class Traced:
    """The result of a tracing audit.

    Parameters
    ----------
    outcome : Outcome
        FALSIFIED if the claimed epsilon is contradicted at ``confidence``.
    epsilon_lower : float
        Lower bound on the epsilon at ``delta`` for a replaced record, rounded down.
    delta : float
        The claimed delta.
    claimed : float or None
        The claimed epsilon; None if there is no claim.
    runs : int
        Number of fits.
    confidence : float
        Probability in (0, 1) with which the bound holds.
    witness : str
        What was seen, in words.
    seconds : float
        Duration of the audit.
    seed : int or None
        The seed that repeats the audit.
    right : int
        Number of right guesses of the member of a pair.
    pairs : int
        Number of pairs of a member and a row that was not used.
    members : array
        Scores of the members, shape (pairs,).
    others : array
        Scores of the rows that were not used, shape (pairs,).
    noise : float
        The noise factor of the runs: additive noise was multiplied by it, the epsilon of a
        randomised response divided by it.  1 is the algorithm as it is, 0 is without noise.
    noise_factor : float, optional
        The largest noise factor below 1 at which a search falsified the claim; None if there was
        none, even at 0, or if no search ran.

    Examples
    --------
    >>> from audits import Traced, audit_tracing
    >>> def follow_the_rows(x, y, rng):
    ...     return x[y == 1].mean(axis=0)
    >>> found = audit_tracing(follow_the_rows, epsilon=1.0, runs=1, features=2048, rng=0)
    >>> found.right, found.pairs, found.true_positives(0.05)
    (22, 24, 0.6666666666666666)
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
        """Compute the true-positive rate of a threshold on scores at a false-positive rate.

        Parameters
        ----------
        rate : float
            False-positive rate in [0, 1): the share of other rows above the threshold.

        Returns
        -------
        float
            True-positive rate, the share of members above the threshold, in [0, 1].

        Raises
        ------
        ParameterError
            If the rate is out of its range.
        """
        falling = np.sort(self.others)[::-1]
        threshold = falling[int(FALSE_POSITIVE_RATE.check("rate", rate) * falling.size)]
        return float(np.mean(self.members > threshold))

    @property
    def curve(self) -> tuple[tuple[float, float], ...]:
        """Pairs (false-positive rate, true-positive rate) at five rates."""
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
    """Run an algorithm on fingerprinted data, guess its members, and bound epsilon from below.

    Each of ``rows`` places in the data holds one of two rows of the same distribution, by a fair
    coin.  The guess is the row that correlates more with the estimate.

    Parameters
    ----------
    algorithm : object
        With ``plan`` and ``run``, or ``fit`` and then ``coef_``, or a function ``(x, y, rng)`` that
        returns the coefficients.
    epsilon : float, optional
        The claimed epsilon for a replaced record; None takes what the plan costs, if there is one.
    delta : float, optional
        The claimed delta, in [0, 1).
    runs : int, optional
        Number of fits, each on a code of its own.
    rows : int, optional
        Number of places with private rows, 2 to 10,000.
    features : int, optional
        Number of columns, a power of two up to 2^14.
    data_of : callable, optional
        ``data_of(x, y)`` returns the data as the algorithm takes them.  One row of x must stay one
        record.
    confidence : float, optional
        Probability in (0, 1) with which the bound holds.
    noise : float, optional
        Noise factor in [0, 1], by which the algorithm's additive noise is multiplied, and the
        epsilon of its randomised responses divided; 1 audits it as it is.
    search : int, optional
        Number of tries, 0 to 60, in a search of the largest noise factor below 1 at which the claim
        is falsified.
    rng : int, numpy.random.Generator or None, optional
        Seed or generator.

    Returns
    -------
    Traced
        The outcome, and a lower bound on epsilon, rounded down.

    Raises
    ------
    ParameterError
        If an argument is out of its range, or the plan's epsilon is not for replaced records.

    References
    ----------
    Dwork, Smith, Steinke, Ullman & Vadhan (2015); Talwar, Thakurta & Zhang (2015), Theorem 3.1.

    Examples
    --------
    >>> from audits import audit_tracing
    >>> def follow_the_rows(x, y, rng):
    ...     return x[y == 1].mean(axis=0)
    >>> found = audit_tracing(follow_the_rows, epsilon=1.0, runs=1, features=2048, rng=0)
    >>> found.outcome.name, round(found.epsilon_lower, 2)
    ('FALSIFIED', 1.15)
    """
    start = time.perf_counter()
    subject, (seed, source) = EstimatorAdapter.of(algorithm, data_of), seed_and_generator(rng)
    runs, rows = IntegerRange(1).check("runs", runs), IntegerRange(2, 10_000).check("rows", rows)
    tries = IntegerRange(0, 60).check("search", search)
    setting = _TracingSetup(subject, BernoulliProducts(checked_features(features)), rows, runs)
    confidence = CONFIDENCE.check("confidence", confidence)
    delta, noise = DELTA.check("delta", delta), NOISE_FACTOR.check("noise", noise)
    claimed = setting.claimed_epsilon(epsilon, delta)
    if tries and claimed is None:
        raise ParameterError("search", search, "0: there is no claim to falsify")
    audit_stream, search_stream = source.spawn(2)

    def trace(factor: float, rng: np.random.Generator) -> tuple[Array, Array, int, float]:
        """Scores of members and of others, right guesses, and the bound, at a noise factor."""
        members, others, right = setting.scores(factor, rng)
        lower = epsilon_lower_one_run(right, members.size, delta, 1 - confidence)
        return members, others, right, lower

    def contradicts_claim(lower: float) -> bool:
        return claimed is not None and lower > claimed

    members, others, right, lower = trace(noise, audit_stream)
    noise_factor, search_result = largest_falsified_factor(
        lambda factor: contradicts_claim(trace(factor, search_stream.spawn(1)[0])[3]), tries
    )
    traced = Traced(
        outcome=Outcome.FALSIFIED if contradicts_claim(lower) else Outcome.SURVIVED,
        epsilon_lower=lower,
        delta=delta,
        claimed=claimed,
        runs=runs,
        confidence=confidence,
        witness="",
        seconds=0.0,
        seed=seed,
        right=right,
        pairs=members.size,
        members=members,
        others=others,
        noise=noise,
        noise_factor=noise_factor,
    )
    witness = setting.witness(traced) + search_result
    return replace(traced, witness=witness, seconds=time.perf_counter() - start)


@final
@dataclass(frozen=True, slots=True)
class _TracingSetup:
    """The fits of one subject: the data of a run, the scores of its rows, the claim."""

    subject: EstimatorAdapter  # the audited algorithm
    family: BernoulliProducts  # from which rows are drawn
    rows: int  # places of the data, each with one of two rows
    runs: int

    def scores(self, noise: float, rng: np.random.Generator) -> tuple[Array, Array, int]:
        """Scores of members and of the rows that they replaced, and the right guesses, of all runs.

        Where scores are equal, such as for an estimate of zeros, a coin decides the guess.
        """
        member_scores, other_scores = [], []
        for stream in rng.spawn(self.runs):
            # The subject draws from a generator of its own, so its noise does not depend on the
            # coins.  (That generator's seed sequence would tell the coins to code that asks for it,
            # and such code could only make its own claim fall.)
            subject_rng, data_rng = stream.spawn(2)
            x, y, inside, outside, means = self.data(data_rng)
            estimate = self.subject.estimate(x, y, subject_rng, noise)
            if estimate.shape != means.shape:
                got = f"a result of shape {estimate.shape}"
                raise ParameterError("algorithm", got, f"one of {means.size} coefficients")
            member_scores.append(tracing_scores(estimate, inside, means))
            other_scores.append(tracing_scores(estimate, outside, means))
        members, others = np.concatenate(member_scores), np.concatenate(other_scores)
        ties = (members == others) & (rng.random(members.size) < 0.5)
        return members, others, int(np.count_nonzero((members > others) | ties))

    def data(self, rng: np.random.Generator) -> tuple[Array, Array, Array, Array, Array]:
        """The data x and y, the rows that are in them, those that are not, and the columns' means.

        The data also have the rows of a ridge, which makes large coefficients expensive.
        """
        means = self.family.means(rng)
        candidates = self.family.sample(means, 2 * self.rows, rng).reshape(2, self.rows, -1)
        coins, places = rng.integers(2, size=self.rows), np.arange(self.rows)
        inside, outside = candidates[coins, places], candidates[1 - coins, places]
        x, y = append_ridge(inside)
        return x, y, inside, outside, means

    def claimed_epsilon(self, epsilon: float | None, delta: float) -> float | None:
        """The claimed epsilon for replaced records: as given, or the plan's cost."""
        if epsilon is not None:
            return EPSILON.check("epsilon", epsilon)
        x, y, *_ = self.data(np.random.default_rng(0))  # only their shape is used
        plan = self.subject.plan(x, y)
        if plan is None:
            return None
        relations = plan.relation, getattr(self.subject.algorithm, "relation", "")
        for_other_changes = {*PRESENCE_RELATIONS, Adjacency.LABEL_REPLACE}
        if for_other_changes & {*relations} or self.subject.labels_only:
            raise ParameterError("epsilon", None, "given: the plan's is not for replaced records")
        from accountant.accountants.tight import Tight

        return Tight().epsilon(plan, delta)

    def witness(self, traced: Traced) -> str:
        """What was seen, in words."""
        return (
            f"{self.subject.name} on fingerprinted data ({self.rows} rows, "
            f"{self.family.features} features, noise times {traced.noise:g}): members score "
            f"{traced.members.mean():.2f} +- {traced.members.std():.2f}, rows it never saw "
            f"{traced.others.mean():.2f} +- {traced.others.std():.2f}; true positives "
            f"{traced.true_positives(0.05):.0%} at 5 % false ones; {traced.right} of "
            f"{traced.pairs} pairs distinguished"
        )
