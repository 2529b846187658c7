"""The engines that integrate a cumulant along a contour: as it is, smoothed, or truncated.

The delta of a composition is an integral of ``e^{K(z) - z epsilon}`` along a line ``z = a + iu``,
the contour.  K(z) = ln E e^{zL} is the cumulant of the summed loss L, and the tilt a > 0 is chosen
near the least Chernoff bound.  The integral is computed as a sum over nodes u (see `Contour`);
where the integrand decays slowly, it takes too many of them.  The smoothed engine then adds a
fictitious Gaussian loss of variance S, which makes the decay fast, and subtracts a bound on what
the Gaussian adds to delta: fewer nodes, but an interval of epsilon wider by about S (a + 1).

The truncated engine is for losses with a heavy tail, such as those of sampled mechanisms.  An
outcome whose loss alone makes the sum exceed a cut above epsilon is a certain violation.  Such
outcomes have a delta that is known in closed form, and they are what makes a contour integral long.
Hence they are removed: delta is the delta of the certain violations plus the contour integral of
the truncated losses that remain.

An engine proposes attempts, each with its estimated cost; the caller makes the cheapest.  Costs are
in products of two complex numbers, about 2 ns each.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from accountant.composition.certificate import Certificate, bracket_epsilon
from accountant.composition.cgf import PlanCGF, saddlepoint
from accountant.composition.composition import EpsilonProblem, Neighbourhood
from accountant.composition.contour import RULE_COST, Contour, quickest_contour
from accountant.composition.engine import (
    MAX_COST,
    NOTHING_KNOWN,
    Attempt,
    DeltaBounds,
    Engine,
    EngineNearEpsilon,
)
from accountant.losses.loss import exact_cgf
from accountant.numerics import Array, Complex
from accountant.numerics.logspace import log_interval

MAX_NODES = 2**20  # nodes of a contour: limits its memory
MAX_OPERATIONS = 4e8  # complex products of a smoothed contour: about a second
# The smoothed and the truncated engine propose at most CONTOURS contours each.  A smoothed one has
# the smoothing of the one before divided by REFINEMENT, and so gives a narrower interval; a cut is
# closer to epsilon than the one before, and soon there is little to gain.
CONTOURS, REFINEMENT = 4, 4.0
# A contour without smoothing is thousands of times more exact: it may take so many times as long.
WORTH_OF_EXACT = 2.0
# A smoothing of 1 or more would make the interval of epsilon wider by more than 1.
USABLE_SMOOTHING = 1.0
# The smoothing of a contour that costs too much is multiplied by a factor between these: a smaller
# one would take many trials, a larger one might smooth far more than is needed.
LOW_FACTOR, HIGH_FACTOR = 2.0, 16.0
# The nodes of a contour are chosen for this multiple of the cut, a little below the epsilon sought.
AIMED_AT = 0.8
ABOVE_EPSILON = 1.02  # the next cut, over the upper end of epsilon that is known
ESTIMATE_WIDTH = 0.01  # of an interval of merged releases: their epsilon is an estimate


class ContourEngine(EngineNearEpsilon):
    """One contour integral of the composition as it is: its only error of note is round-off."""

    name = "contour"
    planning_cost = 5e4  # complex products
    contours_planned = 1  # contours whose nodes are chosen before the cost is known

    def near(self, neighbourhood: Neighbourhood) -> Iterator[Attempt[DeltaBounds]]:
        """Yield the quickest contour, then the one through the saddle point; if affordable."""
        quickest = neighbourhood.contour
        if _is_affordable(quickest, MAX_COST):
            yield Attempt(quickest.operations, quickest.integrate)
        if quickest.tilt < neighbourhood.tilt:
            # It takes more nodes and has less round-off.
            contour = _with_smoothing(neighbourhood, 0.0)
            if _is_affordable(contour, MAX_COST):
                yield Attempt(contour.operations, contour.integrate)


class SmoothedContourEngine(EngineNearEpsilon):
    """A contour integral of the composition and a fictitious Gaussian, corrected afterwards."""

    name = "smoothed contour"
    planning_cost = 4e6  # complex products
    # About so many: the contour without smoothing, and smoothed ones until one is affordable.
    contours_planned = 3

    def near(self, neighbourhood: Neighbourhood) -> Iterator[Attempt[DeltaBounds]]:
        """Yield affordable contours with less and less smoothing."""
        smoothing = neighbourhood.smoothing
        contour = _with_smoothing(neighbourhood, smoothing)
        exact = neighbourhood.contour
        if exact.operations <= WORTH_OF_EXACT * contour.operations and _is_affordable(
            exact, MAX_COST
        ):
            return  # `ContourEngine` has a contour that needs no correction
        for number in range(CONTOURS):
            if number > 0:
                smoothing /= REFINEMENT
                contour = _with_smoothing(neighbourhood, smoothing)
            while not _is_affordable(contour) and contour.smoothing < USABLE_SMOOTHING:
                # Where the smoothing S decides how fast the integrand decays, the number of nodes
                # is proportional to 1 / sqrt(S): to divide it by `excess` takes excess^2 times S.
                excess = max(contour.nodes / MAX_NODES, contour.operations / MAX_OPERATIONS)
                factor = min(max(excess**2, LOW_FACTOR), HIGH_FACTOR)
                contour = _with_smoothing(neighbourhood, factor * contour.smoothing)
            if not _is_affordable(contour):
                return
            yield Attempt(contour.operations, contour.integrate)
            if contour.smoothing > smoothing:
                return  # it was raised to be affordable: a contour with less smoothing is not


def _with_smoothing(neighbourhood: Neighbourhood, smoothing: float) -> Contour:
    """Return the contour of a neighbourhood with a Gaussian of this squared mu."""
    cgf = neighbourhood.composition.cgf
    return Contour(cgf, neighbourhood.tilt, neighbourhood.epsilon, smoothing)


def _is_affordable(contour: Contour, most_operations: float = MAX_OPERATIONS) -> bool:
    """Return whether time and memory suffice for a contour."""
    return contour.nodes <= MAX_NODES and contour.operations <= most_operations


class TruncatedLoss(Protocol):
    """A part of the outcomes of all releases; the delta of the others is known.

    The part has no certain violations, or it is that of great losses (`Partition`).
    """

    @property
    def serves_all_epsilons(self) -> bool:
        """Whether the delta of the others is known at every epsilon, or up to that of the cut."""
        ...

    @property
    def points(self) -> float:
        """The number of quadrature points of the cumulant: a node costs as many exponentials."""
        ...

    @property
    def planning_cost(self) -> float:
        """The cost of choosing the nodes of a contour, in complex products of 2 ns."""
        ...

    def cgf(self, z: Any) -> tuple[Any, Array]:
        """Return the cumulant K of all releases, and a bound on its error, to scale delta by."""
        ...

    def rough_cgf(self, a: Array) -> Array:
        """Return an estimate of the cumulant at real ``a``, from which searches start."""
        ...

    def cf_ratio(self, z: Complex) -> tuple[Complex, Array]:
        """Return ``e^{K(z) - K(a)}`` on equidistant nodes, the terms, and a bound on its error."""
        ...

    def log_cf_bound(self, a: float, u: Array) -> Array:
        """Return a bound on ``Re K(a + iv) - K(a)`` for every ``v >= u``, to end the contour."""
        ...

    def sure_delta(self, epsilon: float) -> tuple[float, float]:
        """Return a lower and an upper bound on the delta of all other outcomes, to be added."""
        ...


class Partition(Protocol):
    """Releases of one family, whose outcomes can be split into parts."""

    @property
    def size(self) -> int:
        """How many different releases there are."""
        ...

    def merged(self) -> Partition:
        """Return fewer releases that cost about as much, or the same ones; for estimates."""
        ...

    def below(self, epsilon: float) -> TruncatedLoss | None:
        """Return all outcomes but the certain violations of ``epsilon``; None out of reach."""
        ...

    def with_great_losses(self, epsilon: float, log_delta: float) -> TruncatedLoss | None:
        """Return the outcomes with a great loss, if the others cost about nothing; else None."""
        ...


class TruncatedCGF(PlanCGF):
    """The cumulant of truncated releases, in the form that a contour takes."""

    def __init__(self, loss: TruncatedLoss) -> None:
        super().__init__([])
        self._loss = loss
        self.has_short_sums = True

    def with_smoothing(self, smoothing: float) -> PlanCGF:
        """Return the same cumulant: it is never smoothed."""
        del smoothing
        return self

    def value_at(self, z: Any) -> tuple[Any, Array]:
        """Return ``K(z)`` and a bound on its round-off."""
        return self._loss.cgf(z)

    def rough_at(self, a: Array) -> Array:
        """Return an estimate of ``K(a)``."""
        return self._loss.rough_cgf(a)

    def cf_ratio(self, z: Complex) -> tuple[Complex, Array]:
        """Return ``e^{K(z) - K(a)}`` on equidistant nodes, and its round-off."""
        return self._loss.cf_ratio(z)

    def quadrature_terms(self, frequency: float) -> tuple[float, float]:
        """Return how many exponentials one node takes: in all, and for one loss."""
        del frequency
        return self._loss.points, self._loss.planning_cost / RULE_COST

    def log_cf_bound(self, a: float, u: Array) -> Array:
        """Return a bound on ``Re K(a + iv) - K(a)`` for every ``v >= u``."""
        bound: Array = np.minimum(self._loss.log_cf_bound(a, u), 0.0)
        return bound


class TruncatedContour:
    """Bounds on delta: that of the certain violations, plus a contour of the truncated losses.

    They hold at epsilons up to ``largest``, the cut above which an outcome is a certain violation.
    """

    name = "truncated contour"

    def __init__(
        self, loss: TruncatedLoss, log_delta: float, epsilon: float, tilt: float | None = None
    ) -> None:
        self._loss, self._near = loss, epsilon
        self.largest = math.inf if loss.serves_all_epsilons else epsilon
        cgf = TruncatedCGF(loss)
        if tilt is not None:  # that of a contour of merged releases
            self.contour = Contour(cgf, tilt, AIMED_AT * epsilon, 0.0)
            return
        # The largest losses that remain are about epsilon, so the saddle point is sought from
        # 1 / epsilon on.
        tilt = saddlepoint(cgf, log_delta=log_delta, near=epsilon)
        self.contour = quickest_contour(cgf, tilt, AIMED_AT * epsilon, loss.planning_cost)

    @property
    def is_affordable(self) -> bool:
        """Whether the contour is within the limits of memory and time."""
        nodes = self.contour.nodes
        return nodes <= MAX_NODES and nodes * self._loss.points <= MAX_COST

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """Return logarithms of a lower and an upper bound on delta at ``epsilon``."""
        if epsilon > self.largest:
            return -math.inf, math.inf
        low, high = (math.exp(min(log_bound, 700.0)) for log_bound in self.contour.bounds(epsilon))
        certain = self._loss.sure_delta(epsilon)
        return log_interval(low + certain[0], high + certain[1], 0.0)

    def bracket(self, problem: EpsilonProblem) -> Certificate:
        """Return the interval of epsilon; nothing is known where epsilon may be above the cut."""
        contour, cut, log_delta = self.contour, self.largest, problem.log_delta
        contour.integrate()
        if math.isfinite(cut) and self.bounds(cut)[1] > log_delta[0]:
            return NOTHING_KNOWN
        lower, upper = bracket_epsilon(
            self.bounds,
            log_delta,
            start=AIMED_AT * self._near,
            tilt=contour.tilt,
            max_epsilon=min(cut, problem.composition.max_loss),
        )
        interval = Certificate(min(lower, upper), upper, self.name, math.ceil(contour.nodes))
        return problem.of_mechanisms(interval)


class TruncatedContourEngine(Engine):
    """The engine: contours of sampled losses without their certain violations."""

    name = "truncated contour"
    planning_cost, planning_cost_of_a_loss = 4e6, 1e5  # complex products, to tabulate the losses

    def attempts(self, problem: EpsilonProblem) -> Iterator[Attempt[Certificate]]:
        """Yield contours whose cuts come closer to epsilon from above."""
        # An estimate of epsilon exists for sampled losses of one family, which can be truncated.
        if not problem.composition.has_exact_cgf or problem.rough_epsilon is None:
            return
        losses, counts = problem.composition.losses_and_counts
        partition = exact_cgf(losses[0]).parts(losses, counts)
        if partition is None:
            return
        cut, few, estimate = problem.rough_epsilon, partition.merged(), None
        if few.size < partition.size:
            # What merged releases cost tells nearly what all of them do.
            for attempt, truncated in self.contours(problem, few, cut, None):
                interval = attempt.answer()
                if interval.width <= ESTIMATE_WIDTH * interval.upper < math.inf:
                    cut, estimate = ABOVE_EPSILON * interval.upper, truncated
                    break
        for attempt, _ in self.contours(problem, partition, cut, estimate):
            yield attempt

    def contours(
        self,
        problem: EpsilonProblem,
        partition: Partition,
        cut: float,
        estimate: TruncatedContour | None,
    ) -> Iterator[tuple[Attempt[Certificate], TruncatedContour]]:
        """Yield contours of great losses alone, or with cuts that come closer to epsilon.

        ``estimate`` is that of merged releases: it tells which of the two, and the tilt.
        """
        # ``floor`` is a cut that was seen to be too low: no later one goes below it.
        floor, last_width, log_delta = 0.0, math.inf, problem.log_delta[0]
        for _ in range(CONTOURS):
            truncated = shortest_contour(partition, log_delta, cut, estimate)
            if truncated is None or not truncated.is_affordable:
                return
            cost = truncated.contour.operations
            attempt = Attempt(cost, functools.partial(truncated.bracket, problem))
            yield attempt, truncated
            if attempt.result is None:
                return  # the attempt was not made: another engine was narrow enough
            if math.isinf(attempt.result.upper):
                cut, floor = 2 * cut, cut  # the true epsilon may be above the cut
                continue
            if estimate is not None or attempt.result.width > last_width / 2:
                return  # a closer cut would gain less than half
            cut = max(ABOVE_EPSILON * attempt.result.upper, floor)
            last_width = attempt.result.width


def shortest_contour(
    partition: Partition, log_delta: float, cut: float, estimate: TruncatedContour | None
) -> TruncatedContour | None:
    """Return the contour of great losses alone, or that below a cut; None if both are too far."""
    tilt = None if estimate is None else estimate.contour.tilt
    great = below = None
    if estimate is None or math.isinf(estimate.largest):
        part = partition.with_great_losses(cut, log_delta)
        great = part and TruncatedContour(part, log_delta, cut, tilt)
        if part and great and (estimate or great.contour.operations <= 2 * part.planning_cost):
            return great  # to plan the other one takes as long
    part = partition.below(cut)
    below = part and TruncatedContour(part, log_delta, cut, tilt)
    contours = [contour for contour in (great, below) if contour]
    return min(contours, key=lambda each: each.contour.operations, default=None)
