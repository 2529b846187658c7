"""What an engine is, and the search that asks the cheapest one first.

An engine proposes attempts at a question, each with what it costs.  `certify` makes the cheapest
attempt of all engines, intersects its interval with what is known, and stops where that is narrow.
"""

from __future__ import annotations

import heapq
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Generic, Protocol, TypeVar

from accountant.composition.certificate import Certificate, bracket_epsilon, intersection
from accountant.composition.cgf import saddlepoint
from accountant.composition.closed_form import ClosedForm, closed_form
from accountant.composition.composition import (
    TILT_FACTORS,
    Composition,
    Neighbourhood,
    Query,
    ignore_overflow,
)
from accountant.numerics.rounding import ULP, round_up

NOTHING_KNOWN = Certificate(0.0, math.inf, "nothing known")

Answer = TypeVar("Answer")


class DeltaBounds(Protocol):
    """Bounds on the delta of finite losses, near the epsilon that they were made for."""

    @property
    def name(self) -> str:
        """The name of the method in a certificate."""
        ...

    @property
    def nodes(self) -> float:
        """The number of terms of its sum."""
        ...

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """Return logarithms of a lower and an upper bound on delta."""
        ...


@dataclass(slots=True)
class Attempt(Generic[Answer]):
    """An answer that is computed when it is asked for.

    ``cost`` is about how many products of complex numbers take as long, of some 2 ns each;
    ``result`` is the answer once it was computed.
    """

    cost: float
    compute: Callable[[], Answer]
    result: Answer | None = None

    def answer(self) -> Answer:
        """Compute the answer, keep and return it."""
        self.result = answer = self.compute()
        return answer


class Engine(ABC):
    """A method that bounds the epsilon of a composition.

    ``planning_cost`` is about what it costs to find out what an attempt costs; it grows by
    ``planning_cost_of_a_loss``, and by the plans of so many contours as ``contours_planned``.
    ``least_width`` is the relative width of its narrowest intervals.
    """

    name: ClassVar[str]
    planning_cost: ClassVar[float]
    planning_cost_of_a_loss: ClassVar[float] = 0.0
    contours_planned: ClassVar[int] = 0
    least_width: ClassVar[float] = 0.0

    def least_cost(self, composition: Composition) -> float:
        """Return what any attempt costs at least: nothing cheaper waits for it."""
        cost = self.planning_cost + self.planning_cost_of_a_loss * len(composition.items)
        if self.contours_planned and composition.has_exact_cgf:
            cost += self.contours_planned * composition.contour_planning_cost
        return cost

    @abstractmethod
    def attempts(self, query: Query) -> Iterator[Attempt[Certificate]]:
        """Yield attempts; each may use what the one before has shown."""


Journal = list[tuple[Engine, Attempt[Certificate]]]


class EngineNearEpsilon(Engine):
    """An engine that bounds delta near an epsilon, from which `certify` comes back to epsilon."""

    @abstractmethod
    def near(self, neighbourhood: Neighbourhood) -> Iterator[Attempt[DeltaBounds]]:
        """Yield attempts to bound delta near an epsilon."""

    def neighbourhoods(self, query: Query) -> Iterator[Neighbourhood]:
        """Yield where the bounds of a query are made."""
        yield query.neighbourhood

    def attempts(self, query: Query) -> Iterator[Attempt[Certificate]]:
        """Yield attempts to bracket the epsilon of a composition with exact cumulants."""
        if not query.composition.has_exact_cgf:
            return
        for neighbourhood in self.neighbourhoods(query):
            for attempt in self.near(neighbourhood):
                yield Attempt(attempt.cost, partial(_bracket, query, neighbourhood, attempt))


def _bracket(
    query: Query, neighbourhood: Neighbourhood, attempt: Attempt[DeltaBounds]
) -> Certificate:
    """Return the interval of epsilon, from bounds on delta."""
    delta_bounds, max_loss = attempt.answer(), query.composition.max_loss
    lower, upper = bracket_epsilon(
        delta_bounds.bounds,
        query.log_delta,
        neighbourhood.epsilon,
        neighbourhood.tilt,
        max_loss,
    )
    upper = min(upper, max_loss)
    nodes = math.ceil(delta_bounds.nodes)
    return query.of_mechanisms(Certificate(min(lower, upper), upper, delta_bounds.name, nodes))


AnyEngine = TypeVar("AnyEngine", bound=Engine)


def cheapest_first(
    composition: Composition,
    engines: tuple[AnyEngine, ...],
    attempts_of: Callable[[AnyEngine], Iterator[Attempt[Answer]]],
    journal: list[tuple[Engine, Attempt[Answer]]] | None = None,
) -> Iterator[tuple[Engine, Attempt[Answer]]]:
    """Yield the attempts of several engines, always the cheapest next.

    An engine is asked for its next attempt when nothing cheaper than its least cost, or than its
    last attempt, remains.  Attempts are appended to ``journal`` when they are planned.
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
    query: Query,
    engines: tuple[Engine, ...],
    rival: float = 0.0,
    journal: Journal | None = None,
) -> Certificate:
    """Return the interval that holds the epsilon of a query.

    It may be wide where its upper end is at most ``rival``, what another direction costs, or where
    no engine is narrower.  Every attempt that is planned is appended to ``journal``; those that
    were made have a result.
    """
    if (loss := query.composition.single_loss) is not None:
        return closed_form(loss, query.delta)
    interval = query.outcome_bounds()
    if query.finite_delta[0] <= 0 or query.is_narrow(interval) or interval.upper <= rival:
        return interval
    attempts = cheapest_first(
        query.composition, engines, lambda engine: engine.attempts(query), journal
    )
    for engine, attempt in attempts:
        if query.is_narrow(interval, engine.least_width):
            continue
        interval = intersection(attempt.answer(), interval)
        if query.is_narrow(interval) or interval.upper <= rival:
            break
    return interval


@ignore_overflow
def least_cost(query: Query, engines: tuple[Engine, ...]) -> float:
    """Return what the cheapest attempt costs; 0 where none is needed."""
    if query.composition.single_loss is not None or query.finite_delta[0] <= 0:
        return 0.0
    if query.is_narrow(query.outcome_bounds()):
        return 0.0
    attempts = cheapest_first(query.composition, engines, lambda engine: engine.attempts(query))
    return next((attempt.cost for _, attempt in attempts), math.inf)


def delta_bounds_near(
    neighbourhood: Neighbourhood, engines: tuple[EngineNearEpsilon, ...]
) -> Iterator[DeltaBounds]:
    """Yield bounds on delta near an epsilon, cheapest first, until the caller's are narrow."""
    if (loss := neighbourhood.composition.single_loss) is not None:
        yield ClosedForm(loss)
        return
    for attempt in _attempts_near(neighbourhood, engines):
        yield attempt.answer()


def least_cost_near(neighbourhood: Neighbourhood, engines: tuple[EngineNearEpsilon, ...]) -> float:
    """Return what the cheapest bounds on delta cost; 0 for one loss, infinite where none are."""
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

    They are as wide as Chernoff's bound where no engine is narrower than ``width``, of epsilon.
    """
    infinity, low = composition.infinity, 0.0
    if epsilon >= composition.max_loss or not composition.items or infinity >= 1:
        return infinity * (1 - 8 * ULP), round_up(infinity, 16)
    tilt = saddlepoint(composition.cgf, epsilon=epsilon)
    # real orders alone give a bound already
    orders = tilt * TILT_FACTORS
    exponents = composition.cgf.log_chernoff(orders) - orders * epsilon
    exponent = float(min(exponents[exponents < math.inf], default=0.0))
    high = math.exp(min(exponent + 1e-12 * (1 + abs(exponent)), 0.0))
    neighbourhood = Neighbourhood(composition, tilt, epsilon, width)
    for delta_bounds in delta_bounds_near(neighbourhood, engines):
        log_low, log_high = delta_bounds.bounds(epsilon)
        low, high = max(low, math.exp(log_low)), min(high, math.exp(min(log_high, 0.0)))
        # a width of epsilon is about `tilt` times as much of delta
        if high - low <= 4 * max(1.0, tilt * epsilon) * width * high:
            break
    return infinity * (1 - 8 * ULP) + low, round_up(infinity + high, 16)
