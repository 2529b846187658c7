"""An engine that replaces losses by finite losses above and below, and composes these exactly.

It serves losses whose cumulant is not known exactly, or takes many terms.  The finite losses come
from straight lines between points of the profile ("connect the dots").
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from accountant.composition.certificate import Certificate
from accountant.composition.composition import Composition, EpsilonProblem, total_rounding
from accountant.composition.engine import Attempt, Engine, certify
from accountant.composition.exact_cgf import with_exact_cgf

MAX_TERMS = 5000  # terms of a cumulant at high frequency: a loss with more terms is replaced
# Estimated costs in complex products of 2 ns: 0.5 s for the composition, and 20 ms for each loss.
COST, COST_OF_ONE = 2.5e8, 1e7
MAX_LOSSES = 200  # losses with exact cumulants: with more it would take seconds and gain little


class FinitePairsEngine(Engine):
    """Finite losses above and below those whose cumulant is not exact, or takes many terms.

    Parameters
    ----------
    engines : tuple of Engine
        The engines that sum finite losses.
    """

    name = "connect-the-dots"
    planning_cost = COST
    least_width = 1e-6  # relative to epsilon: the error of the finite losses themselves

    def __init__(self, engines: tuple[Engine, ...]) -> None:
        self._engines = engines

    def attempts(self, problem: EpsilonProblem) -> Iterator[Attempt[Certificate]]:
        """Yield the sum of the finite losses."""
        composition = problem.composition
        if composition.has_exact_cgf and len(composition.items) > MAX_LOSSES:
            return
        cost = COST + COST_OF_ONE * len(composition.items)
        yield Attempt(cost, lambda: self._certified(problem))

    def _certified(self, problem: EpsilonProblem) -> Certificate:
        items, delta = problem.composition.items, problem.delta
        width = max(problem.width, self.least_width)
        max_terms = MAX_TERMS if problem.composition.has_exact_cgf else math.inf
        losses_above = with_exact_cgf(items, delta, upper=True, max_terms=max_terms)
        above = certify(EpsilonProblem(Composition(losses_above), delta, width), self._engines)
        lower = 0.0
        if not any(loss.numerics.is_numerical for loss, _ in items):
            pairs = [(loss.attained_pair, count) for loss, count in items]
            losses_below = with_exact_cgf(pairs, delta, upper=False, max_terms=max_terms)
            composition_below = Composition(losses_below, total_rounding(pairs))
            lower = certify(EpsilonProblem(composition_below, delta, width), self._engines).lower
        engine = f"{above.engine}, {self.name}"
        return Certificate(min(lower, above.upper), above.upper, engine, above.nodes)
