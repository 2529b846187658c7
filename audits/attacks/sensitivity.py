"""The deterministic part of a release: how far one record can move the query in floating point.

It tries neighbours at which arithmetic fails: extreme scales, chains of data sets that differ by
one record a step, every order of summation, integers that wrap, NaN and infinity, ties.  A
distance that it finds is certain and has a witness; survival is no proof.

References: Casacuberta, Shoemate, Vadhan & Wagaman (2022), for sums of floats and integers.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from accountant.domains import NON_NEGATIVE, IntegerRange, Interval
from accountant.errors import ParameterError
from accountant.plans.adjacency import Adjacency
from accountant.randomness import Rng
from audits.attacks.not_tested import fixed_arguments
from audits.claims.arguments import CONFIDENCE, checked_pair, seed_and_generator
from audits.claims.claims import Sensitivity
from audits.claims.findings import (
    ARGUMENTS,
    OTHER_EVENTS,
    OTHER_PAIRS,
    SIDE_EFFECTS,
    TIMING,
    Finding,
    GuessCounts,
    NotTested,
    Outcome,
)
from audits.neighbours.adjacent_chains import Step, adjacent_chains, bounding_box, neighbours_near
from audits.neighbours.patterns import candidate_pairs
from audits.neighbours.value_spaces import Box, checked_relation
from audits.values.copies import own_copy
from audits.values.tracebacks import without_values
from mechanisms.base.values import Values

TOLERANCE = 1e-9  # a distance above the declared one by this share counts as rounding
NORM = Interval(1.0, np.inf)
BUDGET = IntegerRange(1)
# The share of the evaluations for structured neighbours; the others search near the best of these.
STRUCTURED_SHARE = 0.7
MAX_AUDIT_EVALUATIONS = 20_000  # of the query in `audit_sensitivity`, whatever its runs


@final
@dataclass(frozen=True, slots=True)
class Probe:
    """The largest distance found between the answers on two neighbours, and those neighbours.

    ``found``, the distance, is infinite if an answer is NaN, infinite or of another shape than its
    neighbour's.  ``outcome`` is FALSIFIED if it exceeds ``declared`` by more than rounding.
    ``kind`` says in words how the neighbours were made.  ``refused`` counts data sets on which the
    query raised: they give no distance.
    """

    outcome: Outcome
    found: float
    declared: float
    norm: float
    kind: str
    pair: tuple[Any, Any]
    answers: tuple[Any, Any]
    evaluations: int
    refused: int
    seed: int | None

    @property
    def witness(self) -> str:
        """The distance, the two answers and the number of evaluations; never the data."""
        return (
            f"{self.kind}: answers {_format_answer(self.answers[0])} and "
            f"{_format_answer(self.answers[1])} "
            f"are {self.found:.6g} apart, {self.declared:.6g} is declared "
            f"({self.evaluations:,} evaluations)"
        )


@without_values
def probe_sensitivity(
    query: Callable[[Any], Any],
    space: Box | Values | Any,
    relation: str = Adjacency.REPLACE_ONE,
    declared: float = 1.0,
    norm: float = 1,
    budget: int = 5000,
    rng: Rng = None,
    hostile: bool = False,
    ordered: bool = False,
) -> Probe:
    """Search for neighbours whose answers are further apart than the declared sensitivity.

    Parameters
    ----------
    query : callable
        The deterministic function of the data; it receives a copy.
    space : Box, Values or array
        The possible data, or one data set as an array with a row per record: then its own
        neighbours are tried, with records between its extremes.
    relation : str, optional
        Neighbours: "replace-one", "add-remove", "each" or "any".
    declared : float, optional
        The declared sensitivity, at least 0, in the units of the answer.
    norm : float, optional
        Order of the norm, at least 1: 1, 2 or infinity.
    budget : int, optional
        Number of evaluations of the query.
    rng : int, numpy.random.Generator or None, optional
        Seed or generator.
    hostile : bool, optional
        Also try records that are NaN, infinite or far out of bounds, for a query that clips.
    ordered : bool, optional
        Data in another order are other data.  By default data are sets, and the same records in
        another order must give the same answer.

    Returns
    -------
    Probe
        The largest distance found, which is exact up to the rounding of the query, and its two
        neighbours.  FALSIFIED if it exceeds ``declared`` by more than a relative 1e-9.

    Raises
    ------
    ParameterError
        If an argument is out of its range.

    References
    ----------
    Casacuberta, Shoemate, Vadhan & Wagaman (2022).

    Examples
    --------
    >>> from audits import Box, probe_sensitivity
    >>> probe = probe_sensitivity(lambda data: data.sum(), Box(0.0, 2.0, (5,)), budget=200, rng=0)
    >>> probe.outcome.name, probe.found
    ('FALSIFIED', 2.0)
    """
    if not callable(query):
        raise ParameterError("query", query, "a function of the data")
    declared = NON_NEGATIVE.check("declared", declared)
    budget = BUDGET.check("budget", budget)
    norm = NORM.check("norm", norm)
    checked = checked_relation(relation, space)
    seed, source = seed_and_generator(rng)
    search = _DistanceSearch(query, norm, budget)
    if isinstance(space, (Box, np.ndarray)):
        data, box = (None, space) if isinstance(space, Box) else (space, bounding_box(space))
        # First chains of structured data sets, then pairs near the best pair so far.
        for chain in adjacent_chains(box, checked, data, hostile, ordered, source):
            search.compare_chain(chain, int(STRUCTURED_SHARE * budget))
        while search.pair[0] is not None and search.has_budget(budget):
            search.compare_chain(neighbours_near(box, checked, search.pair, source), budget)
    else:
        # The values of a mechanism have neighbours of their own: structured pairs, then random
        # ones, each a chain of two.
        for candidate in candidate_pairs(space):
            chain = [(candidate.kind, candidate.first), (candidate.kind, candidate.second)]
            search.compare_chain(chain, budget)
        while search.has_budget(budget):
            value = space.example(source)
            neighbour = space.neighbour(value, source)
            chain = [("drawn at random", value), ("drawn at random", neighbour)]
            search.compare_chain(chain, budget)
    return search.probe(declared, seed)


def audit_sensitivity(
    query: Callable[[Any], Any],
    space: Box | Values | Any,
    claim: Sensitivity,
    runs: int,
    confidence: float,
    rng: Rng,
) -> Finding:
    """`probe_sensitivity` as a finding, of at most 20,000 evaluations; a pair is tested as it is.

    The finding is certain at any ``confidence``.  A distance is no epsilon, so the bound is 0; the
    witness has the distance.
    """
    start = time.perf_counter()
    level = CONFIDENCE.check("confidence", confidence)
    budget = min(BUDGET.check("runs", runs), MAX_AUDIT_EVALUATIONS)
    if isinstance(space, tuple):
        space = checked_pair(space)
        seed, _ = seed_and_generator(rng)
        search = _DistanceSearch(query, claim.norm, budget=2)
        search.compare_chain([("the pair", value) for value in space], limit=2)
        probe = search.probe(claim.value, seed)
    else:
        probe = probe_sensitivity(
            query,
            space,
            relation=Adjacency.REPLACE_ONE,
            declared=claim.value,
            norm=claim.norm,
            budget=budget,
            rng=rng,
        )
    fixed = fixed_arguments(query)
    return Finding(
        outcome=probe.outcome,
        epsilon_lower=0.0,
        delta=0.0,
        runs=probe.evaluations,
        confidence=level,
        witness=probe.witness,
        seconds=time.perf_counter() - start,
        seed=probe.seed,
        claim=None,
        guesses=GuessCounts(0, 0, 0),
        not_tested=(
            NotTested(TIMING, "audit_timing looks at it"),
            NotTested(OTHER_PAIRS, f"{probe.evaluations:,} data sets were tried"),
            NotTested(SIDE_EFFECTS, "files, network, globals"),
            *([NotTested(ARGUMENTS, ", ".join(fixed))] if fixed else []),
            NotTested(OTHER_EVENTS, "noise is not looked at; audit does"),
        ),
    )


class _DistanceSearch:
    """Evaluates the query, and keeps the two neighbours whose answers are furthest apart."""

    def __init__(self, query: Callable[[Any], Any], norm: float, budget: int) -> None:
        self.query, self.norm, self.budget = query, norm, budget
        self.greatest_distance, self.kind = -1.0, "no two answers"
        self.pair: tuple[Any, Any] = (None, None)
        self.answers: tuple[Any, Any] = (None, None)
        self.evaluations = self.refused = 0

    def has_budget(self, limit: int) -> bool:
        """True if two more evaluations are within the first ``limit``.

        An infinite distance ends the search, as none is larger.
        """
        return self.evaluations + 2 <= limit and np.isfinite(self.greatest_distance)

    def compare_chain(self, chain: Iterable[Step], limit: int) -> None:
        """Compare the answers on each data set of a chain and on the next, its neighbour.

        A step of the chain is a data set, and in words how the chain was made.  Beyond ``limit``
        evaluations no chain is begun; one that was begun goes on up to the whole budget.
        """
        is_first, earlier_data, earlier_answer = True, None, None
        for kind, data in chain:
            may_go_on = not is_first and self.evaluations < self.budget
            if not (self.has_budget(limit) or may_go_on):
                return
            answer = self.evaluate(data)
            if earlier_answer is not None and answer is not None:
                distance = answer_distance(earlier_answer, answer, self.norm)
                if distance > self.greatest_distance:
                    self.greatest_distance, self.kind = distance, kind
                    self.pair = earlier_data, data
                    self.answers = earlier_answer, answer
            is_first, earlier_data, earlier_answer = False, data, answer

    def evaluate(self, data: Any) -> Any:
        """The answer on a copy of the data, or None if the query raises."""
        self.evaluations += 1
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                return self.query(own_copy(data))
        except Exception:  # a refusal gives no distance; it is counted
            self.refused += 1
            return None

    def probe(self, declared: float, seed: int | None) -> Probe:
        """The distance that was found, compared with the declared one."""
        is_false = self.greatest_distance > declared * (1 + TOLERANCE)
        has_compared = self.greatest_distance >= 0  # else there were no two answers to compare
        survived = Outcome.SURVIVED if has_compared else Outcome.INCONCLUSIVE
        return Probe(
            outcome=Outcome.FALSIFIED if is_false else survived,
            found=max(self.greatest_distance, 0.0),
            declared=declared,
            norm=self.norm,
            kind=self.kind,
            pair=self.pair,
            answers=self.answers,
            evaluations=self.evaluations,
            refused=self.refused,
            seed=seed,
        )


def answer_distance(first: Any, second: Any, norm: float) -> float:
    """The norm of the difference of two answers; infinite if it is not a number.

    Integers are subtracted as integers: their floats could be equal.
    """
    first_answer, second_answer = np.asarray(first), np.asarray(second)
    if first_answer.shape != second_answer.shape:
        return np.inf
    numbers = [*first_answer.flat, *second_answer.flat]
    if all(isinstance(number, (int, np.integer, np.bool_)) for number in numbers):
        gaps = [
            abs(int(a) - int(b)) for a, b in zip(first_answer.flat, second_answer.flat, strict=True)
        ]
        size = np.array(gaps, dtype=float)
    else:
        a, b = first_answer.astype(float).ravel(), second_answer.astype(float).ravel()
        if not (np.isfinite(a).all() and np.isfinite(b).all()):
            return np.inf
        with np.errstate(over="ignore"):
            size = np.abs(a - b)
    return float(np.linalg.norm(size, norm)) if size.size else 0.0


def _format_answer(answer: Any) -> str:
    return np.array2string(np.asarray(answer), threshold=6, precision=17)
