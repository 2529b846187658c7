"""Audit of accuracy: a claim of privacy is refuted if an algorithm is too accurate for it.

A lower bound on the error of private algorithms comes with a hard family of distributions, one for
each of finitely many points.  In each run a point is drawn uniformly, then the data of n users from
its distribution; the algorithm's estimate is decoded to a point, which is the guess.  The
sparse-regression family `audits.minimax.SignedBasis` has features and targets, and its bound
depends on what is private and on the interaction; any other family has a bound of its own.

If the claim is true, the guess is right with probability at most s_max, whatever the algorithm.
With R right guesses in T independent runs the p-value is ``P(Bin(T, s_max) >= R)``, and the claim
is FALSIFIED where it is at most 1 - confidence.  No loss and no class of algorithms is assumed, and
no risk is estimated.

In the local model FALSIFIED refutes the claim together with its interaction model: every user
reports once, all at once or one after another, and delta is 0 if whole records are private.

References: Wang & Xu (2021); proofs: docs/proofs/decoding_records.md for private records,
docs/proofs/audits_by_coins.md for private labels.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, final

import numpy as np

from accountant.domains import DELTA, IntegerRange, Interval, OneOf
from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.numerics.search import greatest_float_that
from accountant.plans.plan import Plan
from accountant.randomness import Rng
from audits.adapters.estimators import EstimatorAdapter
from audits.adapters.reduced_noise import NOISE_FACTOR, largest_falsified_factor
from audits.algorithm_runs.fits import declared_plan
from audits.claims.arguments import CONFIDENCE, seed_and_generator
from audits.claims.findings import Outcome
from audits.minimax.decoding.decoding_rates import most_right, most_right_of_labels
from audits.minimax.families.signed_basis import SignedBasis
from audits.minimax.information.theorem_domains import LOCAL_EPSILON, Interaction, is_sequential
from audits.minimax.performance.algorithm_losses import uniform_index
from audits.statistics.binomial_bounds import clopper_pearson_lower

PRIVATE = OneOf(("records", "labels"))
INTERACTION_TEXT = {"none": "all users at once", "sequential": "one user after another"}
MIN_EPSILON = 1e-12  # stands for 0 in bounds that need a positive epsilon
MAX_ENTRIES = 1 << 29  # largest n * p of one run, whose features are 4 GB of floats
SEPARATION = Interval(0.0, 1.0, "(]")
LABEL_MODEL_TEXT = "labels private, features public, every user once"


class DecodableFamily(Protocol):
    """A hard family of data that are all private, with a bound on the probability of decoding."""

    central: bool  # whether a curator sees all data; else every user reports once, all at once

    @property
    def points(self) -> int:
        """The number of points, of which each run draws one uniformly: 0, 1, ...."""
        ...

    def sample(self, which: int, n: int, rng: np.random.Generator) -> Any:
        """Data of ``n`` users from the distribution of a point, as the algorithm takes them."""
        ...

    def decode(self, estimate: Array) -> int:
        """The point that is closest to an estimate: the audit's guess."""
        ...

    def most_right(self, n: int, epsilon: float) -> float:
        """The largest probability s_max of a right guess under epsilon-DP.

        A central family takes delta as a further argument.
        """
        ...


@final
@dataclass(frozen=True, slots=True)
class Decoded:
    """The result of an accuracy audit.

    Parameters
    ----------
    outcome : Outcome
        FALSIFIED if the claim is contradicted at ``confidence``.
    epsilon_lower : float
        Lower bound on the algorithm's epsilon at ``delta``, rounded down; it holds if the
        interaction model does.
    epsilon : float
        The claimed epsilon.
    delta : float
        The claimed delta.
    runs : int
        Number of runs.
    confidence : float
        Probability in (0, 1) with which the lower bound holds, at least.
    witness : str
        What was decoded, in words.
    seconds : float
        Duration of the audit.
    seed : int or None
        The seed that repeats the audit.
    right : int
        Number of runs whose point was decoded correctly.
    most_right : float
        s_max, the largest probability with which an algorithm with the claimed privacy decodes the
        point correctly, rounded up.
    p_value : float
        ``P(Bin(runs, most_right) >= right)``.
    noise : float
        The noise factor of the runs: additive noise was multiplied by it, the epsilon of a
        randomised response divided by it.  1 is the algorithm as it is, 0 is without noise.
    noise_factor : float, optional
        The largest noise factor below 1 at which a search falsified the claim; None if there was
        none, even at 0, or if no search ran.

    Examples
    --------
    >>> from audits import Decoded, audit_accuracy
    >>> from audits.minimax import SignedBasis
    >>> def least_squares(x, y, rng):
    ...     return x.T @ y / len(y)
    >>> found = audit_accuracy(least_squares, n=200, p=16, epsilon=0.1, runs=5, rng=0)
    >>> found.right, found.runs, round(found.most_right, 3)
    (5, 5, 0.072)
    """

    outcome: Outcome
    epsilon_lower: float
    epsilon: float
    delta: float
    runs: int
    confidence: float
    witness: str
    seconds: float
    seed: int | None
    right: int
    most_right: float
    p_value: float
    noise: float
    noise_factor: float | None = None


def audit_accuracy(
    algorithm: Any,
    n: int,
    p: int | None = None,
    epsilon: float | None = None,
    delta: float = 0.0,
    *,
    family: DecodableFamily | None = None,
    private: Literal["records", "labels"] | None = None,
    interaction: Interaction = "sequential",
    separation: float = 1.0,
    runs: int = 20,
    confidence: float = 0.99,
    noise: float = 1.0,
    search: int = 0,
    rng: Rng = None,
) -> Decoded:
    """Run an algorithm on a lower bound's hard family, and test whether it is too accurate.

    A point of the family is drawn uniformly, then the data of n users; the estimate is decoded to a
    point.  Under the claim that point is right with at most a known probability, for any algorithm.

    Parameters
    ----------
    algorithm : object
        With ``plan`` and ``run``, or ``fit`` and then ``coef_``, or a function ``(x, y, rng)`` that
        returns the coefficients.
    n : int
        Number of users.
    p : int, optional
        Number of features, all signs; left out if a family is given.
    epsilon : float, optional
        The claimed epsilon, 0 to 300; None takes what the plan costs.
    delta : float, optional
        The claimed delta; 0 for local algorithms with private records.
    family : object, optional
        A hard family with ``most_right``, such as `SignMeans`, `PairedShares`, `SignCopies` or
        `FewVotes`, in place of the sparse regression with ``p`` features.
    private : {"records", "labels"}, optional
        "labels" takes the features as public; None asks the algorithm.
    interaction : {"none", "sequential"}, optional
        Whether users report at once, or one after another.
    separation : float, optional
        Size of the one coefficient that is not 0, in (0, 1]: the correlation of the label with its
        feature, up to the sign.  At 1 they are equal up to the sign.
    runs : int, optional
        Number of independent runs.
    confidence : float, optional
        Probability in (0, 1) with which a true claim survives, at least.
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
    Decoded
        The outcome, and a lower bound on epsilon, rounded down.

    Raises
    ------
    ParameterError
        If an argument is out of its range, or a local algorithm asks all users together or a user
        twice: the bound does not hold for those.

    References
    ----------
    Wang & Xu (2021), Theorems 1 and 2, for the families; ``docs/proofs/decoding_records.md``.

    Examples
    --------
    >>> from audits import audit_accuracy
    >>> def least_squares(x, y, rng):
    ...     return x.T @ y / len(y)
    >>> found = audit_accuracy(least_squares, n=200, p=16, epsilon=0.1, runs=5, rng=0)
    >>> found.outcome.name, found.right, round(found.epsilon_lower, 2)
    ('FALSIFIED', 5, 0.48)
    """
    start = time.perf_counter()
    seed, source = seed_and_generator(rng)
    n, runs = IntegerRange(1).check("n", n), IntegerRange(1).check("runs", runs)
    confidence = CONFIDENCE.check("confidence", confidence)
    tries = IntegerRange(0, 60).check("search", search)
    delta, noise = DELTA.check("delta", delta), NOISE_FACTOR.check("noise", noise)
    if family is None:
        task = regression_task(algorithm, n, p, delta, private, interaction, separation)
    elif p is None and private is None:
        task = family_task(algorithm, n, delta, family)
    else:
        raise ParameterError("p, private", (p, private), "left out where a family is given")

    claimed = task.claimed_epsilon(epsilon, delta)
    s_max = task.bound(claimed)
    alpha = 1 - confidence
    audit_stream, search_stream = source.spawn(2)
    right, p_value = task.decode_runs(runs, noise, s_max, audit_stream)

    def is_falsified_at(factor: float) -> bool:
        _, p_value_at_factor = task.decode_runs(runs, factor, s_max, search_stream.spawn(1)[0])
        return p_value_at_factor <= alpha

    noise_factor, search_result = largest_falsified_factor(is_falsified_at, tries)
    witness = (
        f"{task.adapter.name} (noise times {noise:g}) on {task.description}: decoded {right} of "
        f"{runs}; a ({claimed:.6g}, {delta:g})-private algorithm ({task.model}) decodes each with "
        f"probability at most {s_max:.4g}, so as many with probability at most {p_value:.2g}"
        f"{search_result}"
    )
    return Decoded(
        outcome=Outcome.FALSIFIED if p_value <= alpha else Outcome.SURVIVED,
        epsilon_lower=task.epsilon_lower(right, runs, alpha),
        epsilon=claimed,
        delta=delta,
        runs=runs,
        confidence=confidence,
        witness=witness,
        seconds=time.perf_counter() - start,
        seed=seed,
        right=right,
        most_right=s_max,
        p_value=p_value,
        noise=noise,
        noise_factor=noise_factor,
    )


@final
@dataclass(frozen=True, slots=True)
class DecodingTask:
    """One family and one subject: how a run is decoded, and how often privacy allows that."""

    adapter: EstimatorAdapter  # how the subject is run
    points: int  # of the family
    # From a point, the noise factor, and generators of the subject and of the data to the decoded
    # point of one run.
    decode: Callable[[int, float, np.random.Generator, np.random.Generator], int]
    plan: Callable[[], Plan | None]  # the subject's plan, whose cost is the claim; None without one
    # From epsilon to the largest probability of a right decode under (epsilon, delta)-DP.
    bound: Callable[[float], float]
    description: str  # the family in words
    model: str  # the privacy model in words

    def decode_runs(
        self, runs: int, noise: float, s_max: float, rng: np.random.Generator
    ) -> tuple[int, float]:
        """How many of the runs decode their point, R, and the p-value ``P(Bin(runs, s_max) >= R)``.

        ``s_max`` is the largest probability of a right decode under the claim, and ``noise`` is the
        noise factor.
        """
        from scipy.stats import binom

        right = 0
        for stream in rng.spawn(runs):
            # The subject gets a generator of its own, from which it cannot learn the point.
            subject_rng, data_rng = stream.spawn(2)
            which = uniform_index(self.points, data_rng)
            right += self.decode(which, noise, subject_rng, data_rng) == which
        return right, float(binom.sf(right - 1, runs, s_max))

    def epsilon_lower(self, right: int, runs: int, alpha: float) -> float:
        """The lower bound on epsilon at the error ``alpha``.

        All smaller epsilons are rejected: their largest probability of a right decode, which grows
        with epsilon, is below the Clopper-Pearson lower bound on the observed one.
        """
        observed_lower = float(
            clopper_pearson_lower(np.array(float(right)), np.array(float(runs)), alpha)
        )
        if self.bound(0.0) >= observed_lower:
            return 0.0
        return greatest_float_that(
            lambda epsilon: self.bound(epsilon) < observed_lower, 0.0, LOCAL_EPSILON.high, steps=60
        )

    def claimed_epsilon(self, epsilon: float | None, delta: float) -> float:
        """The claimed epsilon: as given, or the plan's cost."""
        if epsilon is None:
            plan = self.plan()
            if plan is None:
                name = self.adapter.name
                raise ParameterError("epsilon", None, f"given: {name} has no plan to state it")
            from accountant.accountants.tight import Tight

            epsilon = Tight().epsilon(plan, delta)
        return LOCAL_EPSILON.check("epsilon", epsilon)


def regression_task(
    algorithm: Any,
    n: int,
    p: int | None,
    delta: float,
    private: Literal["records", "labels"] | None,
    interaction: Interaction,
    separation: float,
) -> DecodingTask:
    """The task of a sparse regression: n users with p features that are signs, one coefficient."""
    # The bound is for the local model, so users that are asked together or twice are refused.
    subject = EstimatorAdapter.of(algorithm, local=True)
    separation = SEPARATION.check("separation", separation)
    p = IntegerRange(1, 1 << 20).check("p", p)
    if n * p > MAX_ENTRIES:
        raise ParameterError("n * p", n * p, f"at most {MAX_ENTRIES:,} numbers, which a run holds")
    family = SignedBasis(p, separation)
    is_sequential(interaction)  # checked before anything runs
    labels = subject.labels_only
    if private is not None:
        labels = PRIVATE.check("private", private) == "labels"
    if delta > 0 and not labels:
        raise ParameterError("delta", delta, "0 where whole records are private")

    def bound(epsilon: float) -> float:
        if labels:
            return most_right_of_labels(family, n, epsilon, delta)
        return most_right(family, n, epsilon, interaction)

    def decode(
        which: int, noise: float, subject_rng: np.random.Generator, data_rng: np.random.Generator
    ) -> int:
        x, y = family.sample(which, n, data_rng, dtype=float)
        return family.decode(subject.estimate(x, y, subject_rng, noise))

    def plan() -> Plan | None:
        # A plan depends on the shape of the data alone: any data will do.
        return subject.plan(*family.sample(0, n, np.random.default_rng(0), dtype=float))

    description = f"the {family.points} points +-{family.d:g} e_j, n = {n}, p = {family.p}"
    model = LABEL_MODEL_TEXT if labels else INTERACTION_TEXT[interaction]
    return DecodingTask(subject, family.points, decode, plan, bound, description, model)


def family_task(algorithm: Any, n: int, delta: float, family: DecodableFamily) -> DecodingTask:
    """The task of any family of data that are all private."""
    if not hasattr(family, "most_right") or not hasattr(family, "central"):
        allowed = "a family with most_right and central, such as SignMeans or FewVotes"
        raise ParameterError("family", family, allowed)
    if delta > 0 and not family.central:
        raise ParameterError("delta", delta, "0 in the local model")
    subject = EstimatorAdapter.of(algorithm, local=not family.central)
    further_arguments = (delta,) if family.central else ()

    def bound(epsilon: float) -> float:
        # The bound grows with epsilon, and is not defined at 0.
        return family.most_right(n, max(epsilon, MIN_EPSILON), *further_arguments)

    def decode(
        which: int, noise: float, subject_rng: np.random.Generator, data_rng: np.random.Generator
    ) -> int:
        data = family.sample(which, n, data_rng)
        return family.decode(subject.release_result(data, subject_rng, noise))

    def plan() -> Plan | None:
        if subject.kind != "gate":  # only an algorithm with ``plan`` and ``run`` declares a plan
            return None
        return declared_plan(algorithm, family.sample(0, n, np.random.default_rng(0)), None)

    model = "central" if family.central else INTERACTION_TEXT["none"]
    description = f"{family!r}, n = {n}"
    return DecodingTask(subject, family.points, decode, plan, bound, description, model)
