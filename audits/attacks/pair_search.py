"""A search for neighbours that a release distinguishes well, starting from structured ones.

The search screens candidates with few runs each, keeps the better ones, varies the best, and
spends the rest of its runs on one fresh test of the chosen pair.

Reference: Karnin, Koren & Somekh (2013) for successive halving.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from accountant.domains import IntegerRange
from accountant.errors import ParameterError
from accountant.losses.loss import Loss
from accountant.plans.adjacency import Adjacency
from accountant.randomness import Rng
from audits.attacks.distinguishing import distinguish, noted
from audits.attacks.output_codes import check_arguments
from audits.claims.arguments import seed_and_generator
from audits.claims.claims import ClaimLike
from audits.claims.findings import Finding
from audits.neighbours.patterns import NeighbourPair, candidate_pairs, distinct_pairs
from audits.neighbours.value_spaces import Box, Relation, checked_relation, random_neighbour
from audits.values.tracebacks import without_values
from mechanisms.base.mechanism import Mechanism
from mechanisms.base.values import Values

Generator = np.random.Generator
MAX_CANDIDATES = 32  # pairs that enter the search
MIN_SCREENING_RUNS = 250  # smallest number of runs of a screening
SEARCH_SHARE = 0.5  # share of the runs that the search may use


@final
@dataclass(frozen=True, slots=True)
class Search:
    """The final test of the chosen pair, and the search that chose it.

    ``screened`` lists every pair of the search with its last screening bound, largest first.  These
    bounds chose the pair and are no evidence.  ``refused`` counts pairs on which the release
    raised.
    """

    finding: Finding
    candidate: NeighbourPair
    screened: tuple[tuple[NeighbourPair, float], ...]
    refused: int
    search_runs: int


@without_values
def search_pairs(
    release: Mechanism | Callable[..., Any],
    space: Box | Values,
    claim: ClaimLike | None,
    runs: int = 200_000,
    rng: Rng = None,
    relation: str = Adjacency.REPLACE_ONE,
    confidence: float = 0.95,
    delta: float | None = None,
) -> Search:
    """Search a space for the neighbours that a release distinguishes best, and test them.

    Half of the runs screen pairs; the better ones are kept and varied.  The finding is one `audit`
    of the chosen pair on runs that the search never saw, so the length of the search does not
    change its error rate.

    Parameters
    ----------
    release : Mechanism or callable
        As for `audit`.
    space : Box or Values
        The possible values: a `Box` of numbers, or a mechanism's ``values``.
    claim : Loss, Budget, float, (float, float) or None
        What is claimed of the release, as for `audit`; None computes the bound alone.
    runs : int, optional
        Number of draws of search and test, at least 1000.
    rng : int, numpy.random.Generator or None, optional
        Seed or generator.
    relation : str, optional
        Neighbours in a `Box`: "replace-one", "add-remove", "each" or "any".
    confidence : float, optional
        Probability in (0, 1) with which the bound of the final test holds.
    delta : float, optional
        The delta in [0, 1) of the bound; None as for `audit`.

    Returns
    -------
    Search
        The final finding, the chosen pair and the bounds of the search.

    Raises
    ------
    ParameterError
        If an argument is out of its range, or the release raises on every pair.

    References
    ----------
    Karnin, Koren & Somekh (2013), for successive halving.

    Examples
    --------
    >>> from accountant import PureLoss
    >>> from audits import Box, search_pairs
    >>> def worse_when_high(value, rng, size):
    ...     return value + rng.laplace(scale=0.5 if value > 2 else 1.0, size=size)
    >>> search = search_pairs(worse_when_high, Box(0.0, 3.0), PureLoss(3.0), runs=3000, rng=0)
    >>> search.finding.outcome.name, search.candidate.kind
    ('FALSIFIED', 'all high against all middle')
    """
    start = time.perf_counter()
    IntegerRange(4 * MIN_SCREENING_RUNS).check("runs", runs)
    claim = check_arguments(runs, confidence, claim, delta)
    seed, source = seed_and_generator(rng)
    by = checked_relation(relation, space)
    field = _candidates(space, by, int(SEARCH_SHARE * runs), source)
    rounds = _rounds(len(field))
    ranking: dict[int, tuple[NeighbourPair, float]] = {}
    spent = refused = 0
    for done in range(rounds):
        runs_per_pair = max(MIN_SCREENING_RUNS, int(SEARCH_SHARE * runs) // (rounds * len(field)))
        bounds = [
            _prescreened(release, candidate, runs_per_pair, delta, source) for candidate in field
        ]
        spent += runs_per_pair * len(field)
        refused += bounds.count(None)
        scored = [
            (candidate, bound)
            for candidate, bound in zip(field, bounds, strict=True)
            if bound is not None
        ]
        if not scored:
            break
        scored.sort(key=lambda row: -row[1])
        ranking.update((id(row[0]), row) for row in scored)
        # the best quarter stays, as many are varied from it, and as many are new
        best = [candidate for candidate, _ in scored[: max(1, len(field) // 4)]]
        field = best
        if done + 2 < rounds:
            parents = [*best, *[None] * len(best)]  # None makes a new random pair
            field = [
                *best,
                *distinct_pairs(_mutated(space, by, candidate, source) for candidate in parents),
            ]
    if not ranking:
        raise ParameterError("release", "an error on every pair", "a function that accepts values")
    finding = _audit_pair(release, best[0], claim, runs - spent, confidence, delta, source)
    finding = dataclasses.replace(
        finding,
        seed=seed,
        runs=runs,
        witness=f"{best[0].kind}: {finding.witness}",
        seconds=time.perf_counter() - start,
    )
    finding = noted(finding, release, best[0].pair)
    ranked = sorted(ranking.values(), key=lambda row: -row[1])
    return Search(finding, best[0], tuple(ranked), refused, spent)


def _rounds(field: int) -> int:
    """The number of rounds that halving ``field`` candidates takes."""
    return max(1, math.ceil(math.log2(field)))


def _candidates(
    space: Box | Values, relation: Relation, budget: int, rng: Generator
) -> list[NeighbourPair]:
    """The pairs that enter the search: as many as the budget can screen, a quarter random."""
    count = MAX_CANDIDATES
    while count > 2 and count * MIN_SCREENING_RUNS * _rounds(count) > budget:
        count //= 2
    candidates = candidate_pairs(space, relation)
    structured = [candidates[i] for i in rng.permutation(len(candidates))[: max(1, 3 * count // 4)]]
    random = (_mutated(space, relation, None, rng) for _ in range(count - len(structured)))
    return distinct_pairs([*structured, *random])


def _audit_pair(
    release: Any,
    candidate: NeighbourPair,
    claim: Loss | None,
    runs: int,
    confidence: float,
    delta: float | None,
    rng: Generator,
) -> Finding:
    """An audit of one pair."""
    return distinguish(release, candidate.pair, claim, runs, confidence, delta, rng)


def _prescreened(
    release: Any, candidate: NeighbourPair, runs: int, delta: float | None, rng: Generator
) -> float | None:
    """A low-confidence bound to rank pairs by; None if the release raises."""
    try:
        finding = _audit_pair(release, candidate, None, runs, 0.7, delta, rng)
    except Exception:  # the user's code; counted, and reported in the result
        return None
    # the share of right guesses ranks pairs whose bounds are both 0
    return finding.epsilon_lower + 1e-3 * finding.guesses.share + 1e-9


def _mutated(
    space: Box | Values, relation: Relation, parent: NeighbourPair | None, rng: Generator
) -> NeighbourPair:
    """A random pair of neighbours, near ``parent`` if there is one."""
    if not isinstance(space, Box):
        value = space.example(rng) if parent is None or rng.random() < 0.5 else parent.first
        return NeighbourPair("found by the search", value, space.neighbour(value, rng))
    value = space.random(rng)
    if parent is not None and np.shape(parent.first) == np.shape(value):
        # every number is the parent's, or with some chance a new one
        fresh = rng.random(space.shape) < rng.choice([0.0, 0.1, 0.5])
        value = space.array(np.where(fresh, value, parent.first))
    return NeighbourPair(
        "found by the search", value, random_neighbour(space, relation, value, rng)
    )
