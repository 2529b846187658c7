"""Finite losses in place of those whose cumulant is not known, and the engine that sums them.

A finite loss has finitely many values, so that its cumulant is a plain sum, exact to round-off.
Where a loss is known only through its profile, delta as a function of epsilon, straight lines
between points of the profile ("connect the dots") are the profile of a finite loss above it; lines
that are lowered enough are that of a finite loss below it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator

import numpy as np

from accountant.composition.certificate import Certificate
from accountant.composition.composition import (
    Composition,
    EpsilonProblem,
    attained_losses,
    total_rounding,
)
from accountant.composition.engine import Attempt, Engine, certify
from accountant.losses.finite import DiscretisedLoss, discretised, dominating_pair
from accountant.losses.loss import Loss

TAIL_SHARE = 1e-7  # share of delta: the mass that all discretisations may move to infinity
THINNING_FACTOR = 4  # a coarse finite loss keeps every fourth value
# Estimated costs in complex products of 2 ns: 0.5 s for the composition, and 20 ms for each loss.
COST, COST_OF_ONE = 2.5e8, 1e7


def with_exact_cgf(
    items: list[tuple[Loss, int]], delta: float, *, upper: bool
) -> list[tuple[Loss, int]]:
    """Return the losses, with finite ones above or below those without an exact cumulant."""
    releases = sum(n for _, n in items)
    tail = delta * TAIL_SHARE / max(releases, 1)
    return [
        (loss if loss.numerics.has_exact_cgf else discretised(loss, tail, upper=upper), n)
        for loss, n in items
    ]


def with_coarse_cgf(items: list[tuple[Loss, int]], least_delta: float) -> list[tuple[Loss, int]]:
    """Return the losses, with coarse finite ones above those without an exact cumulant.

    They are the same for counts of the same power of ten, so that a plan with a few more releases
    finds them already made.
    """
    releases = sum(n for _, n in items)
    tail = least_delta * TAIL_SHARE / 10.0 ** math.ceil(math.log10(max(releases, 1)))
    return [(loss if loss.numerics.has_exact_cgf else _coarse(loss, tail), n) for loss, n in items]


@functools.lru_cache(maxsize=512)
def _coarse(loss: Loss, tail: float) -> DiscretisedLoss:
    """Return a finite loss above ``loss``, reduced to a quarter of its points, again above."""
    fine = discretised(loss, tail, upper=True)
    points = np.union1d(fine.loss[::THINNING_FACTOR], fine.loss[[0, -1]])
    if points.size <= 2:
        return fine
    return dominating_pair(fine.profile_any_epsilon, points, fine.infinity_mass)


class FinitePairsEngine(Engine):
    """Finite losses above and below those without an exact cumulant.

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
        """Yield the sum of the finite losses, where the losses themselves cannot be summed."""
        composition = problem.composition
        if not composition.has_exact_cgf:
            cost = COST + COST_OF_ONE * len(composition.items)
            yield Attempt(cost, lambda: self._certified(problem))

    def _certified(self, problem: EpsilonProblem) -> Certificate:
        """Return the interval: its upper end from losses above, its lower end from losses below."""
        items, delta = problem.composition.items, problem.delta
        width = max(problem.width, self.least_width)
        losses_above = with_exact_cgf(items, delta, upper=True)
        above = certify(EpsilonProblem(Composition(losses_above), delta, width), self._engines)
        lower = 0.0
        # A numerical profile is an upper bound alone.  Of others a pair is known that attains the
        # profile, or less.
        if not any(loss.numerics.is_numerical for loss, _ in items):
            pairs = attained_losses(items)
            losses_below = with_exact_cgf(pairs, delta, upper=False)
            composition_below = Composition(losses_below, total_rounding(pairs))
            lower = certify(EpsilonProblem(composition_below, delta, width), self._engines).lower
        engine = f"{above.engine}, {self.name}"
        return Certificate(min(lower, above.upper), above.upper, engine, above.nodes)
