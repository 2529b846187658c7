"""The interval of many different losses whose greatest outcomes are split off."""

from __future__ import annotations

import math
from typing import Protocol

from accountant.composition.certificate import Certificate, bracket_epsilon
from accountant.composition.contour import Contour
from accountant.composition.saddlepoint import log_interval, saddlepoint
from accountant.composition.schedule_hits_contour import RareSchedule
from accountant.composition.truncated_contour import TruncatedCGF, TruncatedLoss
from accountant.numerics.rounding import ULP

MAX_NODES = 2**16
MAX_TERMS = 6e9  # products of the nodes and the points, of which most are multiplications
MAX_ROUGH_TERMS = 4e7  # of an estimate
ACCURACY, ROUGH_ACCURACY = 1e-10, 1e-4  # relative to delta
MARGIN = 1.03  # of an estimate: up to there the sure events are split off
# a lesser tilt has less weight on several great losses: a shorter period, but more round-off
TILT_SHARE, MAX_TILT_LOSS = 0.7, 4.0
MANY_TERMS = 1e6  # beyond which that is tried
MAX_TRIES = 8
ROUGH_WIDTH = 0.01  # of an estimate
CLOSE = 1.5  # a cut so far above the answer is near enough
# of a swapped pair: what may be left of delta, and the terms of the contour that decides
QUICK_ACCURACY, MAX_SWAPPED_TERMS = 1e-3, 1e8
LEAST_LOG_DELTA = -650.0  # deltas below are not far from what a float can be


class Schedule(RareSchedule, Protocol):
    """Different losses, and how often each is released."""

    @property
    def size(self) -> int:
        """How many are different."""
        ...

    def rough_epsilon(self, delta: float) -> float:
        """Return an estimate of epsilon."""
        ...

    def merged(self) -> Schedule:
        """Return few members that cost about as much: for estimates."""
        ...

    def without_sure_events(self, epsilon: float) -> TruncatedLoss | None:
        """Return all without outcomes that cost more than epsilon; None out of reach."""
        ...


class _ScheduleContour:
    name = "truncated contour"

    def __init__(
        self, loss: TruncatedLoss, log_delta: float, epsilon: float, tilt: float | None
    ) -> None:
        accuracy = ROUGH_ACCURACY if tilt is None else ACCURACY
        self._loss, self.largest = loss, epsilon
        cgf = TruncatedCGF(loss)
        first = tilt or saddlepoint(cgf, log_delta=log_delta, near=epsilon)
        self._contour = Contour(cgf, first, epsilon / MARGIN, 0.0, accuracy)
        self.nodes = self._contour.nodes
        if not self.is_affordable or (tilt is None and self.terms > MANY_TERMS):
            other = Contour(cgf, TILT_SHARE * first, epsilon / MARGIN, 0.0, accuracy)
            most = self._contour.log_height(epsilon) + MAX_TILT_LOSS
            if other.nodes < self.nodes and other.log_height(epsilon) <= most:
                self._contour = other
        self.tilt = self._contour.tilt
        self.nodes, self.next_guess = self._contour.nodes, epsilon

    @property
    def terms(self) -> float:
        return self.nodes * self._loss.points

    @property
    def is_affordable(self) -> bool:
        return self.nodes <= MAX_NODES and self.terms <= MAX_TERMS

    def certify(self, log_delta: tuple[float, float]) -> Certificate:
        """Return the interval; its upper end is infinite if epsilon may be above `largest`."""
        self._contour.integrate()
        excess = self.bounds(self.largest)[1] - log_delta[0]
        if excess > 0:
            before = (1 - 1 / MARGIN) * self.largest
            slope = (self.bounds(self.largest / MARGIN)[1] - log_delta[0] - excess) / before
            self.next_guess += max(1.2 * min(excess, 20.0) / max(slope, 1e-9), before / 2)
            return Certificate(0.0, math.inf, self.name, math.ceil(self.nodes))
        ends = bracket_epsilon(
            self.bounds, log_delta, self.largest / MARGIN, self.tilt, self.largest
        )
        return Certificate(min(ends), ends[1], self.name, math.ceil(self.nodes))

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """Return logarithms of a lower and an upper bound on delta at ``epsilon``."""
        if epsilon > self.largest:
            return -math.inf, math.inf
        low, high = (math.exp(min(one, 700.0)) for one in self._contour.bounds(epsilon))
        sure = self._loss.sure_delta(epsilon)
        return log_interval(low + sure[0], high + sure[1], 0.0)


def estimate_schedule(
    schedule: Schedule, log_delta: float, max_terms: float = MAX_ROUGH_TERMS
) -> tuple[float, float] | None:
    """Return about epsilon and the tilt, by merged members; None where they are out of reach."""
    few = schedule.merged()
    epsilon, most = few.rough_epsilon(math.exp(log_delta)), math.inf
    long = 0
    for _ in range(MAX_TRIES):
        engine = _engine(few, log_delta, epsilon, None)
        if engine is None or engine.terms > max_terms:
            most = min(most, epsilon)
            epsilon /= 2
            long += 1
            if long > 1 and max_terms < MAX_ROUGH_TERMS:
                return None
            continue
        found = engine.certify((log_delta, log_delta))
        if math.isinf(found.upper):
            epsilon = engine.next_guess * MARGIN
            if epsilon >= most:
                return None
        elif found.upper == 0:  # the same contour may prove it
            return epsilon / MARGIN, engine.tilt
        elif epsilon <= CLOSE * MARGIN * found.upper:
            return found.upper, engine.tilt
        elif found.width <= ROUGH_WIDTH * found.upper:
            # the tilt is that of a cut near the answer
            engine = _engine(few, log_delta, MARGIN * found.upper, None)
            return None if engine is None else (found.upper, engine.tilt)
        else:
            epsilon = MARGIN * found.upper
    return None


def certify_schedule(
    schedule: Schedule, log_delta: tuple[float, float], estimate: tuple[float, float]
) -> Certificate | None:
    """Return the interval at a delta, ``estimate`` being about epsilon and the tilt; or None."""
    epsilon, tilt = MARGIN * estimate[0], estimate[1]
    for _ in range(MAX_TRIES):
        engine = _engine(schedule, log_delta[0], epsilon, tilt)
        if engine is None:
            return None
        found = engine.certify(log_delta)
        if math.isfinite(found.upper):
            return found
        epsilon = engine.next_guess
    return None


def swapped_is_within(schedule: Schedule, epsilon: float, log_delta: float) -> bool:
    """Return whether the swapped pair, (Q, P) for (P, Q), surely costs at most ``epsilon > 0``.

    Its delta is ``1 - e^eps + e^eps delta(-eps)``, delta being that of the schedule.
    """
    loss = schedule.without_sure_events(epsilon)
    if loss is None:
        return False
    cgf = TruncatedCGF(loss)
    share = math.exp(log_delta) * math.exp(-epsilon)  # of a delta of about epsilon
    contour = Contour(
        cgf, saddlepoint(cgf, epsilon=-epsilon), -epsilon, 0.0, QUICK_ACCURACY * share / epsilon
    )
    if not (contour.nodes <= MAX_NODES and contour.nodes * loss.points <= MAX_SWAPPED_TERMS):
        return False
    contour.integrate()
    high = math.exp(min(contour.bounds(-epsilon)[1], 0.0)) + loss.sure_delta(-epsilon)[1]
    return high + math.expm1(-epsilon) + 16 * ULP * (high + epsilon) <= share * (1 - 16 * ULP)


def _engine(
    schedule: Schedule, log_delta: float, epsilon: float, tilt: float | None
) -> _ScheduleContour | None:
    loss = schedule.without_sure_events(epsilon)
    if loss is None:
        return None
    engine = _ScheduleContour(loss, log_delta, epsilon, tilt)
    return engine if engine.is_affordable else None
