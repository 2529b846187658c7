"""The interval of many different losses whose greatest outcomes are split off, or are alone.

Where great losses are rare a contour of them alone is shorter.  Merged members tell about where
epsilon, the tilt and the odds of a great loss are.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

from accountant.composition.certificate import Certificate, bracket_epsilon
from accountant.composition.contour import Contour
from accountant.composition.saddlepoint import log_interval, saddlepoint
from accountant.composition.truncated_contour import TruncatedCGF, TruncatedContour, TruncatedLoss
from accountant.numerics.rounding import ULP

MAX_NODES = 2**16
MAX_TERMS = 6e9  # products of the nodes and the points, of which most are multiplications
MAX_ROUGH_TERMS = 4e7  # of an estimate
ACCURACY, ROUGH_ACCURACY = 1e-10, 1e-4  # relative to delta
MARGIN = 1.03  # of an estimate: up to there the sure events are split off
MANY_MEMBERS, MARGIN_OF_MANY = 20_000, 1.06  # a second contour of so many takes seconds
# a lesser tilt has less weight on several great losses: a shorter period, but more round-off
TILT_SHARE, MAX_TILT_LOSS = 0.7, 4.0
MANY_TERMS = 1e6  # beyond which that is tried
MAX_TRIES = 8
ROUGH_WIDTH = 0.01  # of an estimate
CLOSE = 1.5  # a cut so far above the answer is near enough
# of a swapped pair: what may be left of delta, and the terms of the contour that decides
QUICK_ACCURACY, MAX_SWAPPED_TERMS = 1e-3, 1e8
LEAST_LOG_DELTA = -650.0  # deltas below are not far from what a float can be
# of great losses alone
HIT_SHARES = (1.5, 2.0, 2.7, 3.6, 5.0, 7.0, 10.0, 14.0)  # the odds of a hit are of epsilon over one
MAX_LOG_LOSS = 2.0
LOG_REST = math.log(3e-9)  # of delta: what the others may cost
POWERS = 3.0  # tilts above which no bound is asked for, over the slope of ln delta
HIT_WIDTH = 1e-7  # of epsilon: where it is wider, what was found is an estimate for another
MAX_GROWTH = 4.0  # of an estimate
MAX_ROUGH_HIT_TERMS, MAX_HIT_TERMS = 2.5e7, 3e8


class GreatLosses(TruncatedLoss, Protocol):
    """Losses one of which is great; what the others cost is bounded."""

    def log_rest(self, epsilon: float) -> float:
        """Return the logarithm of a bound on the delta of the others."""
        ...


class RareSchedule(Protocol):
    """Different losses, few of which are ever great."""

    def single_loss(self, delta: float) -> tuple[float, float] | None:
        """Return about epsilon and the slope of ln delta there if one great loss costs it all."""
        ...

    def with_a_great_loss(
        self, epsilon: float, *, odds: float, highest: float
    ) -> GreatLosses | None:
        """Return the losses one of which has greater odds; None out of reach."""
        ...


class HitEstimate(NamedTuple):
    """About epsilon, and what a contour of great losses needs."""

    epsilon: float
    tilt: float
    odds: float
    highest: float
    terms: float  # of a contour of merged members


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
    margin = MARGIN if schedule.size <= MANY_MEMBERS else MARGIN_OF_MANY
    epsilon, tilt = margin * estimate[0], estimate[1]
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


def estimate_hits(few: RareSchedule, log_delta: float, least: float = 0.0) -> HitEstimate | None:
    """Return an estimate by merged members; None where other contours are as short.

    ``least``: the epsilon below which nothing is tried.
    """
    found = few.single_loss(math.exp(log_delta))
    if found is None or found[0] < least:
        return None
    epsilon, slope = found
    loss, odds, highest = _greatest_hits(few, epsilon, slope, log_delta)
    if loss is None:
        return None
    engine = TruncatedContour(loss, log_delta, epsilon, math.inf, "hit contour")
    if not engine.terms <= MAX_ROUGH_HIT_TERMS:
        return None
    return HitEstimate(epsilon, engine.tilt, odds, highest, engine.terms)


def certify_hits(
    schedule: RareSchedule, log_delta: tuple[float, float], estimate: HitEstimate
) -> Certificate | None:
    """Return the interval at a delta, or None where it is out of reach."""
    epsilon, found = estimate.epsilon, None
    for _ in range(2):
        loss = schedule.with_a_great_loss(epsilon, odds=estimate.odds, highest=estimate.highest)
        if loss is None:
            return found
        engine = TruncatedContour(
            loss, log_delta[0], epsilon, math.inf, "hit contour", estimate.tilt
        )
        if not engine.terms <= MAX_HIT_TERMS:
            return found
        engine.integrate()
        ends = bracket_epsilon(engine.bounds, log_delta, 0.8 * epsilon, engine.tilt, math.inf)
        found = Certificate(min(ends), ends[1], engine.name, math.ceil(engine.nodes))
        if found.width <= HIT_WIDTH * found.upper or not found.upper < MAX_GROWTH * epsilon:
            return found
        epsilon = found.upper
    return found


def _greatest_hits(
    few: RareSchedule, epsilon: float, slope: float, log_delta: float
) -> tuple[GreatLosses | None, float, float]:
    """Return the losses with the greatest odds whose others cost next to nothing."""
    highest = 1 + POWERS * slope
    best: tuple[GreatLosses | None, float, float] = None, math.nan, math.nan
    # the others cost less with every share: the last one says whether any serves
    first, at, last = 0, len(HIT_SHARES) - 1, len(HIT_SHARES)
    while first < last:
        odds = math.expm1(min(epsilon / HIT_SHARES[at], MAX_LOG_LOSS)) / 3
        loss = few.with_a_great_loss(epsilon, odds=odds, highest=highest)
        if loss is not None and loss.log_rest(epsilon) <= LOG_REST + log_delta:
            best, last = (loss, odds, highest), at
        elif best[0] is None:
            break
        else:
            first = at + 1
        at = (first + last) // 2
    return best
