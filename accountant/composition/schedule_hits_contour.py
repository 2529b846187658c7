"""The interval of many different losses, few of which are ever great: a contour of the great ones.

Merged members tell about where epsilon, the tilt and the odds of a great loss are.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

from accountant.composition.certificate import Certificate, bracket_epsilon
from accountant.composition.truncated_contour import TruncatedContour, TruncatedLoss

SHARES = (1.5, 2.5, 4.0, 7.0, 12.0)  # the odds of a hit are of epsilon over one
MAX_LOG_LOSS = 2.0
LOG_REST = math.log(1e-10)  # of delta: what the others may cost
POWERS = (3.0, 2.0)  # tilts above which no bound is asked for, over the slope of ln delta
MAX_TRIES = 4
CLOSE = 0.02  # of epsilon: an estimate so near is near enough
ROUGH_WIDTH = 1e-3
MAX_ROUGH_TERMS, MAX_TERMS = 2e7, 3e8


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


def estimate_hits(few: RareSchedule, log_delta: float) -> HitEstimate | None:
    """Return an estimate by merged members; None where other contours are as short."""
    found = few.single_loss(math.exp(log_delta))
    if found is None:
        return None
    epsilon, slope = found
    for _ in range(MAX_TRIES):
        loss, odds, highest = _greatest_hits(few, epsilon, slope, log_delta)
        if loss is None:
            return None
        engine = TruncatedContour(loss, log_delta, epsilon, math.inf, "hit contour")
        if not engine.terms <= MAX_ROUGH_TERMS:
            return None
        engine.integrate()
        low, high = bracket_epsilon(
            engine.bounds, (log_delta, log_delta), 0.8 * epsilon, engine.tilt, math.inf
        )
        if not high - low <= ROUGH_WIDTH * high < math.inf:
            return None
        if abs(high - epsilon) <= CLOSE * high:
            return HitEstimate(high, engine.tilt, odds, highest)
        epsilon, slope = high, engine.tilt
    return None


def certify_hits(
    schedule: RareSchedule, log_delta: tuple[float, float], estimate: HitEstimate
) -> Certificate | None:
    """Return the interval at a delta, or None where it is out of reach."""
    loss = schedule.with_a_great_loss(
        estimate.epsilon, odds=estimate.odds, highest=estimate.highest
    )
    if loss is None:
        return None
    engine = TruncatedContour(
        loss, log_delta[0], estimate.epsilon, math.inf, "hit contour", estimate.tilt
    )
    if not engine.terms <= MAX_TERMS:
        return None
    engine.integrate()
    start = 0.8 * estimate.epsilon
    ends = bracket_epsilon(engine.bounds, log_delta, start, engine.tilt, math.inf)
    return Certificate(min(ends), ends[1], engine.name, math.ceil(engine.nodes))


def _greatest_hits(
    few: RareSchedule, epsilon: float, slope: float, log_delta: float
) -> tuple[GreatLosses | None, float, float]:
    """Return the losses with the greatest odds whose others cost next to nothing."""
    for power in POWERS:
        highest = 1 + power * slope
        for share in SHARES:
            odds = math.expm1(min(epsilon / share, MAX_LOG_LOSS)) / 3
            loss = few.with_a_great_loss(epsilon, odds=odds, highest=highest)
            if loss is None:
                break  # its rules are long, or powers too great
            if loss.log_rest(epsilon) <= LOG_REST + log_delta:
                return loss, odds, highest
        else:
            break
    return None, math.nan, math.nan
