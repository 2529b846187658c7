"""A search for neighbours that a release distinguishes well, starting from structured ones.

The search screens candidates with few runs each, keeps the better ones, varies the best, and
spends the rest of its runs on one fresh test of the chosen pair.

Reference: Karnin, Koren & Somekh (2013) for successive halving, which this search resembles: it
keeps a quarter, and adds new pairs.
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
from accountant.plans.adjacency import Adjacency
from accountant.randomness import Rng
from audits.attacks.front import distinguish, noted
from audits.attacks.half_noise import judged
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
MAX_CANDIDATES = 32  # most pairs that enter the search; more of them get fewer runs each
MIN_SCREENING_RUNS = 250  # smallest number of runs on a pair in a round of the search
SEARCH_SHARE = 0.5  # share of the runs that the search may use; the test has the rest
SCREENING_CONFIDENCE = 0.7  # of the bounds that rank pairs, which are no evidence


@final
@dataclass(frozen=True, slots=True)
class Search:
    """The final test of the chosen pair, and the search that chose it.

    ``screened`` lists every pair of the search with its last score, largest first.  A score is the
    bound of a screening, with a thousandth of its share of right guesses added.  Scores chose the
    pair and are no evidence.  ``refused`` counts pairs on which the release raised.
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
    pairs = _PairSearch(release, space, checked_relation(relation, space), delta, source)
    pairs.narrow_down(int(SEARCH_SHARE * runs))
    if not pairs.ranking:
        raise ParameterError("release", "an error on every pair", "a function that accepts values")
    best = pairs.kept[0]
    finding = distinguish(release, best.pair, claim, runs - pairs.runs, confidence, delta, source)
    finding = dataclasses.replace(
        finding,
        seed=seed,
        runs=runs,
        witness=f"{best.kind}: {finding.witness}",
        seconds=time.perf_counter() - start,
    )
    ranked = sorted(pairs.ranking.values(), key=lambda row: -row[1])
    mechanism = release if isinstance(release, Mechanism) else None
    pairs_tried = f"{len(ranked)} pairs were tried, and the best one tested"
    finding = judged(finding, mechanism, confidence)
    finding = noted(finding, release, best.pair, pairs_tried=pairs_tried)
    return Search(finding, best, tuple(ranked), pairs.refused, pairs.runs)


@final
class _PairSearch:
    """The pairs that the search has not given up, and the scores of all that it has screened.

    A screening is a short audit of a pair, whose bound on epsilon only ranks it.
    """

    def __init__(
        self,
        release: Any,
        space: Box | Values,
        relation: Relation,
        delta: float | None,
        rng: Generator,
    ) -> None:
        self.release, self.space, self.relation = release, space, relation
        self.delta, self.rng = delta, rng
        self.kept: list[NeighbourPair] = []  # best first
        # the last score of each pair, by the id of the pair
        self.ranking: dict[int, tuple[NeighbourPair, float]] = {}
        self.runs = self.refused = 0  # runs so far, and pairs on which the release raised

    def narrow_down(self, budget: int) -> None:
        """Screen pairs in rounds of equally many runs, and keep and vary the better ones."""
        candidates = self.first_candidates(budget)
        rounds = round_count(len(candidates))
        for rounds_left in range(rounds - 1, -1, -1):
            runs_per_pair = max(MIN_SCREENING_RUNS, budget // (rounds * len(candidates)))
            scored = self.screen(candidates, runs_per_pair)
            if not scored:
                return
            # The best quarter stays, as many pairs are varied from it, and as many are new.  So a
            # round has three quarters as many pairs as the one before: 32, 24, 18.  The last round
            # has the best alone, and only chooses among them.
            self.kept = candidates = [pair for pair, _ in scored[: max(1, len(candidates) // 4)]]
            if rounds_left > 1:
                parents = [*self.kept, *[None] * len(self.kept)]  # None makes a new random pair
                candidates = [*self.kept, *distinct_pairs(map(self.varied, parents))]

    def first_candidates(self, budget: int) -> list[NeighbourPair]:
        """The pairs that enter the search: as many as the budget can screen, a quarter random."""
        count = MAX_CANDIDATES
        while count > 2 and count * MIN_SCREENING_RUNS * round_count(count) > budget:
            count //= 2
        structured = candidate_pairs(self.space, self.relation)
        order = self.rng.permutation(len(structured))[: max(1, 3 * count // 4)]
        chosen = [structured[i] for i in order]
        random = (self.varied(None) for _ in range(count - len(chosen)))
        return distinct_pairs([*chosen, *random])

    def screen(
        self, candidates: list[NeighbourPair], runs: int
    ) -> list[tuple[NeighbourPair, float]]:
        """The pairs on which the release does not raise, with scores (see `Search`); best first."""
        scored = []
        for pair in candidates:
            self.runs += runs
            try:
                finding = distinguish(
                    self.release, pair.pair, None, runs, SCREENING_CONFIDENCE, self.delta, self.rng
                )
            except Exception:  # the user's code; counted, and reported in the result
                self.refused += 1
                continue
            # The share of right guesses ranks pairs whose bounds are both 0.  A thousandth of it is
            # below any difference of bounds that matters.
            scored.append((pair, finding.epsilon_lower + 1e-3 * finding.guesses.share))
        scored.sort(key=lambda row: -row[1])
        self.ranking.update((id(row[0]), row) for row in scored)
        return scored

    def varied(self, parent: NeighbourPair | None) -> NeighbourPair:
        """A random pair of neighbours, near ``parent`` if there is one."""
        space, rng = self.space, self.rng
        if not isinstance(space, Box):
            value = space.example(rng) if parent is None or rng.random() < 0.5 else parent.first
            return NeighbourPair("found by the search", value, space.neighbour(value, rng))
        value = space.random(rng)
        if parent is not None and np.shape(parent.first) == np.shape(value):
            # Every number is the parent's, or with some chance, the same for all, a new one.  With
            # the chance 0 the parent's first value gets another neighbour.
            is_new = rng.random(space.shape) < rng.choice([0.0, 0.1, 0.5])
            value = space.array(np.where(is_new, value, parent.first))
        neighbour = random_neighbour(space, self.relation, value, rng)
        return NeighbourPair("found by the search", value, neighbour)


def round_count(pairs: int) -> int:
    """The number of rounds of a search: as many as halving would take to come to one pair."""
    return max(1, math.ceil(math.log2(pairs)))
