"""The specimen of the zoo, and how plain functions become specimens.

The zoo is a set of releases and algorithms whose true privacy is known, broken and honest ones.
The auditor is tested on it: it should falsify the claims of the broken ones, and no others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

from accountant.losses.loss import Loss
from accountant.losses.pure_and_approximate import PureLoss
from accountant.plans.adjacency import Adjacency
from audits.claims.findings import Outcome
from audits.neighbours.value_spaces import Box

PURE_CLAIM = PureLoss(1.0)  # what a specimen claims where nothing else is stated


@final
@dataclass(frozen=True, slots=True)
class Specimen:
    """One subject with known truth: its flaw, its claim, its true epsilon, and what must catch it.

    ``implementation`` is a release function with ``pair`` two values, an algorithm with ``pair``
    two data sets, or a `Query`; ``caught_by`` is "guess test", "bits", "atoms", "timing",
    "sensitivity", "replay" or "privacy losses".  ``true_epsilon`` is that of the pair at the
    claim's delta, None if it is infinite or not an epsilon; an honest specimen is ``expected`` to
    survive.  ``description`` is its flaw, or what an honest one releases.
    """

    name: str
    description: str
    caught_by: str
    claim: Loss
    implementation: Any
    pair: tuple[Any, Any]
    true_epsilon: float | None
    expected: Outcome = Outcome.FALSIFIED

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


def query_specimen(measured_query: Query) -> Specimen:
    """A specimen of the deterministic part alone; its pair is the ends of its space."""
    ends, query = measured_query.space.ends, measured_query.query
    flaw = str(query.__doc__).splitlines()[0]
    return Specimen(query.__name__, flaw, "sensitivity", PURE_CLAIM, measured_query, ends, None)
