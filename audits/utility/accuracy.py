"""Too accurate to be private: an algorithm that decodes more than privacy lets anybody decode.

A point of a lower bound's family is drawn uniformly, then the data of n users from it; the guess is
the point that the estimate means.  Under the claim it is right with probability at most s_max,
whatever the algorithm: one exact binomial over independent runs.  No loss and no class of
algorithms is assumed, and no risk is estimated.

In the local model a conviction refutes the claim *and* its interaction model: every user reports
once, with delta 0 where whole records are private.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, final

import numpy as np

from accountant.domains import DELTA, IntegerRange
from accountant.errors import ParameterError
from accountant.numerics.search import greatest_float_that
from accountant.randomness import Rng
from audits.adapters.noise_search import describe_factor, largest_convicted_factor
from audits.adapters.reduced_noise import NOISE_FACTOR
from audits.claims.arguments import CONFIDENCE, seed_and_generator
from audits.claims.findings import Outcome
from audits.minimax.information.theorem_domains import LOCAL_EPSILON, Interaction
from audits.statistics.binomial_bounds import clopper_pearson_lower
from audits.utility.decoding import DecodableFamily, DecodingTask, family_task, regression_task


@final
@dataclass(frozen=True, slots=True)
class Decoded:
    """What an accuracy audit found.

    ``right`` of ``runs`` points were decoded; a private algorithm decodes each with probability at
    most ``most_right``.  With probability ``confidence`` the epsilon at ``delta`` is at least
    ``epsilon_lower``, if the interaction model holds.  ``noise`` and ``noise_factor`` as in
    `audits.utility.tracing.Traced`.
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
    """Run an algorithm on a lower bound's hard family; is it better than private ones can be?

    ``algorithm`` as in `audit_tracing`; ``n`` users with ``p`` features each, signs all, and
    ``separation`` in (0, 1], the size of the one coefficient: at 1 the label is the feature.
    ``epsilon`` None takes what the plan states.  ``private`` "labels" takes features as public;
    None goes by the algorithm.  In place of ``p``, ``family`` may be any hard family that bounds
    its decoders, such as `SignMeans`, `PairedShares`, `SignCopies` or `FewVotes`.
    Raises `ParameterError` for a local algorithm that asks all users together, or a user twice:
    of those the bound says nothing.
    """
    start = time.perf_counter()
    seed, source = seed_and_generator(rng)
    n, runs = IntegerRange(1).check("n", n), IntegerRange(1).check("runs", runs)
    confidence = CONFIDENCE.check("confidence", confidence)
    tries = IntegerRange(0, 60).check("search", search)
    delta, noise = DELTA.check("delta", delta), NOISE_FACTOR.check("noise", noise)
    if family is None:
        task = regression_task(algorithm, n, p, delta, private, interaction, separation)
    elif p is not None or private is not None:
        raise ParameterError("p, private", (p, private), "left out where a family is given")
    else:
        task = family_task(algorithm, n, delta, family)
    claimed = task.claimed_epsilon(epsilon)
    most = task.bound(claimed)
    judge, more = source.spawn(2)

    def judged(part: float, rng: np.random.Generator) -> Decoded:
        right = sum(task.decodes_correctly(part, one) for one in rng.spawn(runs))
        tail = _binomial_tail(right, runs, most)
        outcome = Outcome.FALSIFIED if tail <= 1 - confidence else Outcome.SURVIVED
        return Decoded(
            outcome,
            _epsilon_lower(right, runs, 1 - confidence, task.bound),
            claimed,
            delta,
            runs,
            confidence,
            "",
            0.0,
            seed,
            right,
            most,
            tail,
            part,
        )

    found = judged(noise, judge)
    if tries:
        found = replace(found, noise_factor=largest_convicted_factor(
            lambda part: judged(part, more.spawn(1)[0]).outcome is Outcome.FALSIFIED, tries
        ))  # fmt: skip
    words = _witness(found, task)
    if tries:
        words += f"; {describe_factor(found.noise_factor)}"
    return replace(found, witness=words, seconds=time.perf_counter() - start)


def _binomial_tail(right: int, runs: int, chance: float) -> float:
    """``P(Bin(runs, chance) >= right)``."""
    from scipy.stats import binom

    return float(binom.sf(right - 1, runs, chance))


def _epsilon_lower(right: int, runs: int, alpha: float, bound: Callable[[float], float]) -> float:
    """The epsilon below which all are rejected at ``alpha``: s_max grows with epsilon."""
    chance = float(clopper_pearson_lower(np.array(float(right)), np.array(float(runs)), alpha))
    if bound(0.0) >= chance:
        return 0.0
    return greatest_float_that(lambda e: bound(e) < chance, 0.0, LOCAL_EPSILON.high, steps=60)


def _witness(found: Decoded, task: DecodingTask) -> str:
    """The construction, what was decoded, and what a conviction refutes."""
    private = f"({found.epsilon:.6g}, {found.delta:g})-private algorithm ({task.model})"
    return (
        f"{task.adapter.name} (noise times {found.noise:g}) on {task.description}: decoded "
        f"{found.right} of {found.runs}; a {private} decodes each with probability at most "
        f"{found.most_right:.4g}, so as many with probability at most {found.p_value:.2g}"
    )
