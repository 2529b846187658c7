"""The interval of many different losses, few of which are ever great: a contour of the great ones.

Merged members tell about where epsilon, the tilt and the odds of a great loss are.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

from accountant.composition.certificate import Certificate, bracket_epsilon
from accountant.composition.truncated_contour import TruncatedContour, TruncatedLoss

SHARES = (1.5, 2.0, 2.7, 3.6, 5.0, 7.0, 10.0, 14.0)  # the odds of a hit are of epsilon over one
MAX_LOG_LOSS = 2.0
LOG_REST = math.log(3e-9)  # of delta: what the others may cost
POWERS = 3.0  # tilts above which no bound is asked for, over the slope of ln delta
WIDTH = 1e-7  # of epsilon: where it is wider, what was found is an estimate for another
MAX_GROWTH = 4.0  # of an estimate
MAX_ROUGH_TERMS, MAX_TERMS = 2.5e7, 3e8


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
    if not engine.terms <= MAX_ROUGH_TERMS:
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
        if not engine.terms <= MAX_TERMS:
            return found
        engine.integrate()
        ends = bracket_epsilon(engine.bounds, log_delta, 0.8 * epsilon, engine.tilt, math.inf)
        found = Certificate(min(ends), ends[1], engine.name, math.ceil(engine.nodes))
        if found.width <= WIDTH * found.upper or not found.upper < MAX_GROWTH * epsilon:
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
    first, at, last = 0, len(SHARES) - 1, len(SHARES)
    while first < last:
        odds = math.expm1(min(epsilon / SHARES[at], MAX_LOG_LOSS)) / 3
        loss = few.with_a_great_loss(epsilon, odds=odds, highest=highest)
        if loss is not None and loss.log_rest(epsilon) <= LOG_REST + log_delta:
            best, last = (loss, odds, highest), at
        elif best[0] is None:
            break
        else:
            first = at + 1
        at = (first + last) // 2
    return best
