"""The task of an accuracy audit: decode a point of a family from the data of n users.

A family is a finite set of points, each with a distribution of data.  A run draws a point, then
data from its distribution, gives them to the audited algorithm, the *subject*, and decodes the
answer to a point.  Privacy bounds the probability that the decoded point is right.

The sparse-regression family `audits.minimax.SignedBasis` has features and targets, and its bound
depends on what is private and on the interaction; any other family has a bound of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, final

import numpy as np

from accountant.domains import IntegerRange, Interval, OneOf
from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.numerics.search import greatest_float_that
from accountant.plans.plan import Plan
from audits.adapters.estimators import EstimatorAdapter
from audits.algorithm_runs.fits import declared_plan
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

    central: bool

    @property
    def points(self) -> int:
        """The number of points."""
        ...

    def sample(self, which: int, n: int, rng: np.random.Generator) -> Any:
        """Data of ``n`` users from a point."""
        ...

    def decode(self, estimate: Array) -> int:
        """The point that is closest to an estimate."""
        ...

    def most_right(self, n: int, epsilon: float) -> float:
        """Largest probability of a right decode."""
        ...


@final
@dataclass(frozen=True, slots=True)
class DecodingTask:
    """One family and one subject: how a run is decoded, and how often privacy allows that."""

    adapter: EstimatorAdapter  # how the subject is run
    points: int
    # From a point, the noise factor, and generators of the subject and of the data to the decoded
    # point of one run.
    decode: Callable[[int, float, np.random.Generator, np.random.Generator], int]
    plan: Callable[[], Plan | None]  # the subject's plan, whose cost is the claim; None without one
    # From epsilon to the largest probability of a right decode under (epsilon, delta)-DP.
    bound: Callable[[float], float]
    delta: float
    description: str  # the family in words
    model: str  # the privacy model in words

    def decode_runs(
        self, runs: int, noise: float, most_right: float, rng: np.random.Generator
    ) -> tuple[int, float]:
        """How many of the runs decode their point, R, and the p-value ``P(Bin(runs, s_max) >= R)``.

        ``most_right`` is s_max, the largest probability of a right decode under the claim, and
        ``noise`` is the noise factor.
        """
        from scipy.stats import binom

        right = 0
        for stream in rng.spawn(runs):
            theirs, ours = stream.spawn(2)
            which = uniform_index(self.points, ours)
            right += self.decode(which, noise, theirs, ours) == which
        return right, float(binom.sf(right - 1, runs, most_right))

    def epsilon_lower(self, right: int, runs: int, alpha: float) -> float:
        """The lower bound on epsilon at the error ``alpha``.

        All smaller epsilons are rejected: their largest probability of a right decode, which grows
        with epsilon, is below the Clopper-Pearson lower bound on the observed one.
        """
        chance = float(clopper_pearson_lower(np.array(float(right)), np.array(float(runs)), alpha))
        if self.bound(0.0) >= chance:
            return 0.0
        return greatest_float_that(
            lambda epsilon: self.bound(epsilon) < chance, 0.0, LOCAL_EPSILON.high, steps=60
        )

    def claimed_epsilon(self, epsilon: float | None) -> float:
        """The claimed epsilon: as given, or the plan's cost."""
        if epsilon is None:
            plan = self.plan()
            if plan is None:
                name = self.adapter.name
                raise ParameterError("epsilon", None, f"given: {name} has no plan to state it")
            from accountant.accountants.tight import Tight

            epsilon = Tight().epsilon(plan, self.delta)
        return LOCAL_EPSILON.check("epsilon", epsilon)


def decoding_task(
    algorithm: Any,
    n: int,
    p: int | None,
    delta: float,
    family: DecodableFamily | None,
    private: Literal["records", "labels"] | None,
    interaction: Interaction,
    separation: float,
) -> DecodingTask:
    """The task of a family, or of a sparse regression with ``p`` features if none is given."""
    if family is None:
        return regression_task(algorithm, n, p, delta, private, interaction, separation)
    if p is not None or private is not None:
        raise ParameterError("p, private", (p, private), "left out where a family is given")
    return family_task(algorithm, n, delta, family)


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
        which: int, noise: float, theirs: np.random.Generator, ours: np.random.Generator
    ) -> int:
        x, y = family.sample(which, n, ours, dtype=float)
        return family.decode(subject.estimate(x, y, theirs, noise))

    def plan() -> Plan | None:
        return subject.plan(*family.sample(0, n, np.random.default_rng(0), dtype=float))

    description = f"the {family.points} points +-{family.d:g} e_j, n = {n}, p = {family.p}"
    model = LABEL_MODEL_TEXT if labels else INTERACTION_TEXT[interaction]
    return DecodingTask(subject, family.points, decode, plan, bound, delta, description, model)


def family_task(algorithm: Any, n: int, delta: float, family: DecodableFamily) -> DecodingTask:
    """The task of any family of data that are all private."""
    if not hasattr(family, "most_right") or not hasattr(family, "central"):
        allowed = "a family with most_right and central, such as SignMeans or FewVotes"
        raise ParameterError("family", family, allowed)
    if delta > 0 and not family.central:
        raise ParameterError("delta", delta, "0 in the local model")
    subject = EstimatorAdapter.of(algorithm, local=not family.central)
    delta_argument = (delta,) if family.central else ()

    def bound(epsilon: float) -> float:
        # The bound grows with epsilon, and is not defined at 0.
        return family.most_right(n, max(epsilon, MIN_EPSILON), *delta_argument)

    def decode(
        which: int, noise: float, theirs: np.random.Generator, ours: np.random.Generator
    ) -> int:
        return family.decode(subject.release_result(family.sample(which, n, ours), theirs, noise))

    def plan() -> Plan | None:
        if subject.kind != "gate":  # only an algorithm with ``plan`` and ``run`` declares a plan
            return None
        return declared_plan(algorithm, family.sample(0, n, np.random.default_rng(0)), None)

    model = "central" if family.central else INTERACTION_TEXT["none"]
    return DecodingTask(
        subject, family.points, decode, plan, bound, delta, f"{family!r}, n = {n}", model
    )
