"""What an engine is, and the search that tries the cheapest engine first.

An engine is a method that bounds the epsilon, or the delta, of a composition of privacy losses.  It
proposes attempts, each with its estimated cost.  `certify` makes the cheapest attempt among all
engines, intersects its interval with the interval known so far, and stops when that is as narrow as
the caller wants.  `delta_interval` does the same for delta at a given epsilon.

The problem, its neighbourhoods (epsilons near a given one) and the tilt a, at which Chernoff's
bound ``delta(e) <= c(a) e^{-a e}`` is least, are those of `composition.py`.
"""

from __future__ import annotations

import heapq
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Generic, Protocol, TypeVar

import numpy as np

from accountant.composition.certificate import Certificate, bracket_epsilon, intersection
from accountant.composition.cgf import saddlepoint
from accountant.composition.closed_form import ClosedForm, closed_form
from accountant.composition.composition import (
    TILT_FACTORS,
    Composition,
    EpsilonProblem,
    Neighbourhood,
    ignore_overflow,
)
from accountant.numerics.rounding import ULP, round_up

# In complex products of about 2 ns: ten seconds.  A contour that costs more is not tried, and an
# interval that is at most USABLE times as wide as wanted is not narrowed at a higher cost.
MAX_COST, USABLE = 5e9, 100.0
NOTHING_KNOWN = Certificate(0.0, math.inf, "nothing known")

Answer = TypeVar("Answer")


class DeltaBounds(Protocol):
    """Bounds on the delta that finite losses cause, sharp near the epsilon they were made for.

    Root finding on the upper one gives the upper end of epsilon, on the lower one the lower end.
    """

    @property
    def name(self) -> str:
        """The name of the method, as a certificate shows it."""
        ...

    @property
    def nodes(self) -> float:
        """The number of terms of the sum that gives the bounds; a certificate shows it."""
        ...

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """Return logarithms of a lower and an upper bound on delta."""
        ...


@dataclass(slots=True)
class Attempt(Generic[Answer]):
    """An answer that is computed only on demand.

    ``cost`` estimates the time, in products of two complex numbers (about 2 ns each); ``result`` is
    None until the answer has been computed.
    """

    cost: float
    compute: Callable[[], Answer]
    result: Answer | None = None

    def answer(self) -> Answer:
        """Compute the answer, store it as ``result`` and return it."""
        self.result = answer = self.compute()
        return answer


class Engine(ABC):
    """A method that bounds the epsilon of a composition.

    Before an attempt is made its cost must be found, and that takes time as well, in the unit of
    `Attempt`: ``planning_cost``, plus ``planning_cost_of_a_loss`` for each loss, plus the planning
    of ``contours_planned`` contour integrals.  ``least_width`` is the relative width of the
    narrowest interval that the method can reach.
    """

    name: ClassVar[str]
    planning_cost: ClassVar[float]
    planning_cost_of_a_loss: ClassVar[float] = 0.0
    contours_planned: ClassVar[int] = 0
    least_width: ClassVar[float] = 0.0

    def least_cost(self, composition: Composition) -> float:
        """Return a lower bound on the cost of any attempt, before one is planned."""
        cost = self.planning_cost + self.planning_cost_of_a_loss * len(composition.items)
        if self.contours_planned and composition.has_exact_cgf:
            cost += self.contours_planned * composition.contour_planning_cost
        return cost

    @abstractmethod
    def attempts(self, problem: EpsilonProblem) -> Iterator[Attempt[Certificate]]:
        """Yield attempts; each may use the result of the one before."""


Journal = list[tuple[Engine, Attempt[Certificate]]]  # attempts in the order of planning


class EngineNearEpsilon(Engine):
    """An engine that bounds delta near a given epsilon; root finding turns this into epsilon."""

    @abstractmethod
    def near(self, neighbourhood: Neighbourhood) -> Iterator[Attempt[DeltaBounds]]:
        """Yield attempts to bound delta near an epsilon."""

    def attempts(self, problem: EpsilonProblem) -> Iterator[Attempt[Certificate]]:
        """Yield attempts to bracket the epsilon of a composition with exact cumulants."""
        if problem.composition.has_exact_cgf:
            for attempt in self.near(problem.neighbourhood):
                yield Attempt(attempt.cost, partial(_bracket, problem, attempt))


def _bracket(problem: EpsilonProblem, attempt: Attempt[DeltaBounds]) -> Certificate:
    """Return the interval of epsilon where bounds on delta cross the delta of the problem."""
    delta_bounds, max_loss = attempt.answer(), problem.composition.max_loss
    neighbourhood = problem.neighbourhood
    lower, upper = bracket_epsilon(
        delta_bounds.bounds,
        problem.log_delta,
        start=neighbourhood.epsilon,
        tilt=neighbourhood.tilt,
        max_epsilon=max_loss,
    )
    upper = min(upper, max_loss)
    nodes = math.ceil(delta_bounds.nodes)
    return problem.of_mechanisms(Certificate(min(lower, upper), upper, delta_bounds.name, nodes))


AnyEngine = TypeVar("AnyEngine", bound=Engine)


def cheapest_first(
    composition: Composition,
    engines: tuple[AnyEngine, ...],
    attempts_of: Callable[[AnyEngine], Iterator[Attempt[Answer]]],
    journal: list[tuple[Engine, Attempt[Answer]]] | None = None,
) -> Iterator[tuple[Engine, Attempt[Answer]]]:
    """Yield the attempts of several engines, always the cheapest next.

    An engine enters the queue with the lower bound on its cost.  Once it is the cheapest entry its
    attempt is planned, and enters the queue with the cost of that attempt.  Attempts are appended
    to ``journal`` when they are planned.
    """
    queue = [(engine.least_cost(composition), index) for index, engine in enumerate(engines)]
    heapq.heapify(queue)
    planned: dict[int, Iterator[Attempt[Answer]]] = {}
    pending: dict[int, Attempt[Answer]] = {}
    while queue:
        _, index = heapq.heappop(queue)
        engine = engines[index]
        if index in pending:
            yield engine, pending.pop(index)
        if index not in planned:
            planned[index] = attempts_of(engine)
        attempt = next(planned[index], None)
        if attempt is not None:
            if journal is not None:
                journal.append((engine, attempt))
            pending[index] = attempt
            heapq.heappush(queue, (attempt.cost, index))


@ignore_overflow
def certify(
    problem: EpsilonProblem,
    engines: tuple[Engine, ...],
    rival: float = 0.0,
    journal: Journal | None = None,
) -> Certificate:
    """Return an interval that contains the epsilon of a problem.

    The search ends early, with a wide interval, when the upper end is at most ``rival``: another
    direction of the plan is then known to need at least as large an epsilon.  The interval is also
    wide where no engine can do better.  Every attempt that was planned is appended to ``journal``;
    those that were made have a result.
    """
    if (loss := problem.composition.single_loss) is not None:
        return closed_form(loss, problem.delta)
    interval = problem.outcome_bounds()
    least_finite_delta, _ = problem.finite_delta  # what the mass at infinity leaves of delta
    if least_finite_delta <= 0 or problem.is_narrow(interval) or interval.upper <= rival:
        return interval
    attempts = cheapest_first(
        problem.composition, engines, lambda engine: engine.attempts(problem), journal
    )
    # A bound that no pair need attain is worth a hundredth of the time.
    most_cost = MAX_COST / USABLE if problem.is_bound else MAX_COST
    for engine, attempt in attempts:
        if problem.is_narrow(interval, engine.least_width):
            continue  # the narrowest interval of this engine is no narrower
        if attempt.cost > most_cost and problem.is_narrow(interval, USABLE * problem.width):
            break  # all that remain cost as much or more
        interval = intersection(attempt.answer(), interval)
        if problem.is_narrow(interval) or interval.upper <= rival:
            break
    return interval


@ignore_overflow
def least_cost(problem: EpsilonProblem, engines: tuple[Engine, ...]) -> float:
    """Return the cost of the cheapest attempt; 0 where no attempt is needed."""
    least_finite_delta, _ = problem.finite_delta
    if problem.composition.single_loss is not None or least_finite_delta <= 0:
        return 0.0
    if problem.is_narrow(problem.outcome_bounds()):
        return 0.0
    attempts = cheapest_first(problem.composition, engines, lambda engine: engine.attempts(problem))
    return next((attempt.cost for _, attempt in attempts), math.inf)


def delta_bounds_near(
    neighbourhood: Neighbourhood, engines: tuple[EngineNearEpsilon, ...]
) -> Iterator[DeltaBounds]:
    """Yield bounds on delta near an epsilon, cheapest first; the caller stops when it has enough.

    A single loss has a closed form, which is the only bound then.
    """
    if (loss := neighbourhood.composition.single_loss) is not None:
        yield ClosedForm(loss)
        return
    for attempt in _attempts_near(neighbourhood, engines):
        yield attempt.answer()


def least_cost_near(neighbourhood: Neighbourhood, engines: tuple[EngineNearEpsilon, ...]) -> float:
    """Return the cost of the cheapest bounds on delta; 0 for a single loss, infinite if none."""
    if neighbourhood.composition.single_loss is not None:
        return 0.0
    return next((attempt.cost for attempt in _attempts_near(neighbourhood, engines)), math.inf)


def _attempts_near(
    neighbourhood: Neighbourhood, engines: tuple[EngineNearEpsilon, ...]
) -> Iterator[Attempt[DeltaBounds]]:
    attempts = cheapest_first(
        neighbourhood.composition, engines, lambda engine: engine.near(neighbourhood)
    )
    for _, attempt in attempts:
        yield attempt


@ignore_overflow
def delta_interval(
    composition: Composition,
    epsilon: float,
    width: float,
    engines: tuple[EngineNearEpsilon, ...],
) -> tuple[float, float]:
    """Return a lower and an upper bound on delta at ``epsilon``, of losses with exact cumulants.

    ``width`` is how wide the answer may be, as a share of epsilon.  Where no engine applies, the
    interval is that between 0 and Chernoff's bound.
    """
    infinity, low = composition.infinity, 0.0
    if epsilon >= composition.max_loss or not composition.items or infinity >= 1:
        return infinity * (1 - 8 * ULP), round_up(infinity, 16)
    tilt = saddlepoint(composition.cgf, epsilon=epsilon)
    # Chernoff's bound, which needs no integral: delta <= min over real orders a of c(a) e^{-a e}
    orders = tilt * TILT_FACTORS
    exponents = composition.cgf.log_chernoff(orders) - orders * epsilon * (1 - 2 * ULP)
    exponent = float(min(exponents[np.isfinite(exponents)], default=0.0))
    high = math.exp(min(exponent + 1e-12 * (1 + abs(exponent)), 0.0))  # 1e-12: for round-off
    neighbourhood = Neighbourhood(composition, tilt, epsilon, width)
    for delta_bounds in delta_bounds_near(neighbourhood, engines):
        log_low, log_high = delta_bounds.bounds(epsilon)
        low, high = max(low, math.exp(log_low)), min(high, math.exp(min(log_high, 0.0)))
        # ln delta falls with slope -tilt: a relative width w of epsilon is about tilt e w of delta.
        # Four times that is accepted.
        if high - low <= 4 * max(1.0, tilt * epsilon) * width * high:
            break
    return infinity * (1 - 8 * ULP) + low, round_up(infinity + high, 16)
