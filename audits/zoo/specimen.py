"""The specimen of the zoo, and how plain functions become specimens.

The zoo is a set of releases and algorithms whose true privacy is known, broken and honest ones.
The auditor is tested on it: it should falsify the claims of the broken ones, and no others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from accountant.losses.loss import Loss
from accountant.losses.pure_and_approximate import PureLoss
from accountant.plans.adjacency import Adjacency
from audits.claims.findings import Outcome
from audits.neighbours.value_spaces import Box

# A program makes one run a call, and what it returns is read in Python: so many runs are enough.
RUNS_OF_A_PROGRAM = 5_000
PURE_CLAIM = PureLoss(1.0)  # what a specimen claims where nothing else is stated


@final
@dataclass(frozen=True, slots=True)
class Specimen:
    """One subject with known truth: its flaw, its claim, its true epsilon, and what must catch it.

    ``implementation`` is a release function with ``pair`` two values, an algorithm with ``pair``
    two data sets, or a `Query`; ``caught_by`` is "guess test", "bits", "atoms", "timing",
    "sensitivity", "replay" or "privacy losses".  ``true_epsilon`` is that of the pair at the
    claim's delta, None if it is infinite or not an epsilon; an honest specimen is ``expected`` to
    survive.  ``description`` is its flaw, or what an honest one releases.  An audit takes
    ``most_runs`` at most; None sets no limit.
    """

    name: str
    description: str
    caught_by: str
    claim: Loss
    implementation: Any
    pair: tuple[Any, Any]
    true_epsilon: float | None
    expected: Outcome = Outcome.FALSIFIED
    most_runs: int | None = None

    @property
    def honest(self) -> bool:
        """True if the claim is true."""
        return self.expected is Outcome.SURVIVED


@final
@dataclass(frozen=True, slots=True)
class Query:
    """The deterministic part of a release, with its space and its declared sensitivity."""

    query: Callable[[Any], Any]
    space: Box  # the data sets that are tried
    declared: float  # the sensitivity, in the units of the query
    relation: str = Adjacency.REPLACE_ONE  # which data sets are neighbours
    hostile: bool = False  # whether records that are no numbers or infinite are tried too


def specimen(
    implementation: Callable[..., Any],
    pair: tuple[Any, Any],
    true_epsilon: float | None,
    caught_by: str = "guess test",
    claim: Loss = PURE_CLAIM,
) -> Specimen:
    """A specimen named after its function, whose docstring describes the flaw."""
    flaw = str(implementation.__doc__).splitlines()[0]
    return Specimen(
        implementation.__name__, flaw, caught_by, claim, implementation, pair, true_epsilon
    )


def program(
    implementation: Callable[..., Any],
    pair: tuple[Any, Any],
    true_epsilon: float | None = None,
    claim: Loss = PURE_CLAIM,
) -> Specimen:
    """A specimen that makes one run a call; the guess test must catch it."""
    one = specimen(implementation, pair, true_epsilon, "guess test", claim)
    return replace(one, most_runs=RUNS_OF_A_PROGRAM)


def whole_noise(rng: np.random.Generator, epsilon: float = 1.0) -> int:
    """Discrete Laplace noise: a whole number that moves by 1 costs epsilon under it."""
    success = -math.expm1(-epsilon)
    return int(rng.geometric(success)) - int(rng.geometric(success))


def query_specimen(measured_query: Query) -> Specimen:
    """A specimen of the deterministic part alone; its pair is the ends of its space."""
    ends, query = measured_query.space.ends, measured_query.query
    flaw = str(query.__doc__).splitlines()[0]
    return Specimen(query.__name__, flaw, "sensitivity", PURE_CLAIM, measured_query, ends, None)
