"""Too accurate to be private: an algorithm that decodes more than privacy lets anybody decode.

A point of the family of `audits.minimax.SignedBasis` is drawn uniformly, then the data of n users
from it; the guess is the coordinate that the estimate has most of.  Under the claim it is right
with probability at most s_max, whatever the algorithm: one exact binomial over independent runs.
No loss and no class of algorithms is assumed, and no risk is estimated.

A conviction refutes the claim *and* its interaction model: every user reports once, with delta 0
where whole records are private.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, final

import numpy as np

from accountant.domains import DELTA, OneOf, Whole
from accountant.errors import ParameterError
from accountant.randomness import Rng
from audits.arguments import CONFIDENCE, seeded
from audits.bounds import success_lower
from audits.fainter import FACTOR
from audits.finding import Outcome
from audits.minimax.label_testing import most_right_of_labels
from audits.minimax.ranges import LOCAL_EPSILON, Interaction, sequential
from audits.minimax.signed_basis import SignedBasis
from audits.minimax.testing import most_right
from audits.noise_search import in_words, largest_factor
from audits.subjects import Subject

PRIVATE = OneOf(("records", "labels"))
SPEAKING = {"none": "all users at once", "sequential": "one user after another"}


@final
@dataclass(frozen=True, slots=True)
class Decoded:
    """What an accuracy audit found.

    ``right`` of ``runs`` points were decoded; a private algorithm decodes each with probability at
    most ``most_right``.  With probability ``confidence`` the epsilon at ``delta`` is at least
    ``epsilon_lower``, if the interaction model holds.  ``noise`` and ``noise_factor`` as in
    `audits.tracing.Traced`.
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
    p: int,
    epsilon: float | None = None,
    delta: float = 0.0,
    *,
    private: Literal["records", "labels"] | None = None,
    interaction: Interaction = "sequential",
    separation: float = 1.0,
    runs: int = 20,
    confidence: float = 0.99,
    noise: float = 1.0,
    search: int = 0,
    rng: Rng = None,
) -> Decoded:
    """Run a local algorithm on a lower bound's hard family; is it better than private ones can be?

    ``algorithm`` as in `audit_tracing`; ``n`` users with ``p`` features each, signs all, and
    ``separation`` in (0, 1], the size of the one coefficient: at 1 the label is the feature.
    ``epsilon`` None takes what the plan states.  ``private`` "labels" takes features as public;
    None goes by the algorithm.  Raises `ParameterError` for an algorithm that asks all users
    together, or a user twice: of those the bound says nothing.
    """
    start = time.perf_counter()
    subject, (seed, source) = Subject.of(algorithm, local=True), seeded(rng)
    n, p = Whole(1).check("n", n), Whole(1, 1 << 20).check("p", p)
    family, runs = SignedBasis(p, separation), Whole(1).check("runs", runs)
    confidence, tries = (
        CONFIDENCE.check("confidence", confidence),
        Whole(0, 60).check("search", search),
    )
    sequential(interaction)  # checked before anything runs
    labels = subject.labels_alone if private is None else _labels(private)
    delta, noise = DELTA.check("delta", delta), FACTOR.check("noise", noise)
    if delta > 0 and not labels:
        raise ParameterError("delta", delta, "0 where whole records are private")

    def bound(epsilon: float) -> float:
        if labels:
            return most_right_of_labels(family, n, epsilon, delta)
        return most_right(family, n, epsilon, interaction)

    claimed = _claim(subject, family, n, epsilon, delta)
    most = bound(claimed)
    judge, more = source.spawn(2)

    def judged(part: float, rng: np.random.Generator) -> Decoded:
        right = sum(_decoded(subject, family, n, part, one) for one in rng.spawn(runs))
        tail = _tail(right, runs, most)
        outcome = Outcome.FALSIFIED if tail <= 1 - confidence else Outcome.SURVIVED
        return Decoded(outcome, _lower(right, runs, 1 - confidence, bound), claimed, delta, runs,
                       confidence, "", 0.0, seed, right, most, tail, part)  # fmt: skip

    found = judged(noise, judge)
    if tries:
        found = replace(found, noise_factor=largest_factor(
            lambda part: judged(part, more.spawn(1)[0]).outcome is Outcome.FALSIFIED, tries
        ))  # fmt: skip
    words = _witness(found, subject, family, n, "labels" if labels else interaction)
    if tries:
        words += f"; {in_words(found.noise_factor)}"
    return replace(found, witness=words, seconds=time.perf_counter() - start)


def _decoded(
    subject: Subject, family: SignedBasis, n: int, noise: float, rng: np.random.Generator
) -> bool:
    """One run: whether the point was decoded."""
    theirs, ours = rng.spawn(2)
    which = int(ours.integers(family.points))
    x, y = family.sample(which, n, ours, dtype=float)
    return family.decode(subject.estimate(x, y, theirs, noise)) == which


def _tail(right: int, runs: int, chance: float) -> float:
    """``P(Bin(runs, chance) >= right)``."""
    from scipy.stats import binom

    return float(binom.sf(right - 1, runs, chance))


def _lower(right: int, runs: int, alpha: float, bound: Callable[[float], float]) -> float:
    """The epsilon below which all are rejected at ``alpha``: s_max grows with epsilon."""
    chance = float(success_lower(np.array(float(right)), np.array(float(runs)), alpha))
    if bound(0.0) >= chance:
        return 0.0
    low, high = 0.0, LOCAL_EPSILON.high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if bound(middle) < chance else (low, middle)
    return low


def _claim(
    subject: Subject, family: SignedBasis, n: int, epsilon: float | None, delta: float
) -> float:
    """The claimed epsilon of every user: as given, or what the plan costs."""
    if epsilon is None:
        x, y = family.sample(0, n, np.random.default_rng(0), dtype=float)
        plan = subject.plan(x, y)
        if plan is None:
            raise ParameterError("epsilon", None, f"given: {subject.name} has no plan to state it")
        from accountant.tight import Tight

        epsilon = Tight().epsilon(plan, delta)
    return LOCAL_EPSILON.check("epsilon", epsilon)


def _labels(private: str) -> bool:
    return PRIVATE.check("private", private) == "labels"


def _witness(found: Decoded, subject: Subject, family: SignedBasis, n: int, model: str) -> str:
    """The construction, what was decoded, and what a conviction refutes."""
    how = SPEAKING.get(model, "labels private, features public, every user once")
    private = f"({found.epsilon:.6g}, {found.delta:g})-private algorithm ({how})"
    return (
        f"{subject.name} (noise times {found.noise:g}) on the {family.points} points +-"
        f"{family.d:g} e_j, n = {n}, p = {family.p}: decoded {found.right} of {found.runs}; a "
        f"{private} decodes each with probability at most {found.most_right:.4g}, so as many with "
        f"probability at most {found.p_value:.2g}"
    )
