"""Upper bounds on the epsilon of one composition at many deltas, by few engines.

`CertifiedComposition.certify` proves each epsilon from both sides; half of that work is the lower
end, which a grid of thousands of epsilons does not need.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from accountant.composition.certified_composition import CertifiedComposition, ignore_overflow
from accountant.composition.closed_form import Engine, closed_form
from accountant.numerics.rounding import ULP
from accountant.numerics.search import falling_root


@ignore_overflow
def upper_epsilons(composition: CertifiedComposition, deltas: Sequence[float]) -> list[float]:
    """Return upper bounds at each of ``deltas``, positive and descending.

    One engine is made for the middle delta, and another wherever that one is too wide.
    """
    items = composition.items
    if len(items) == 1 and items[0][1] == 1:
        return [closed_form(items[0][0], delta).upper for delta in deltas]
    if composition.max_loss == 0 or not items:
        return [0.0 if delta > composition.infinity else math.inf for delta in deltas]
    # the finite part's share, with the round-off of the mass at infinity
    finite_deltas = [delta - composition.infinity * (1 + 8 * ULP) for delta in deltas]
    logs = [math.log(finite_delta) for finite_delta in finite_deltas if finite_delta > 0]
    engine = EngineNearDelta(composition, logs[len(logs) // 2]) if logs else None
    uppers = []
    for log in logs:
        answer = None if engine is None else engine.epsilon(log)
        if answer is None:
            engine = EngineNearDelta(composition, log)
            answer = engine.epsilon(log, accept_wide=True)
        uppers.append(answer or 0.0)
    return uppers + [math.inf] * (len(deltas) - len(logs))


class EngineNearDelta:
    """An engine made for one delta, and its answers at others."""

    def __init__(self, composition: CertifiedComposition, log_delta: float) -> None:
        self._max_loss, self._target_log_delta = composition.max_loss, log_delta
        self._width = composition.width
        self._tilt, epsilon = composition.tilt_and_epsilon(log_delta)
        self._start = max(epsilon, 0.0)
        self._engine = _first_narrow_engine(composition, self._tilt, self._start)

    def epsilon(self, log_delta: float, accept_wide: bool = False) -> float | None:
        """Return the least epsilon found at this delta; None where the answer is too wide."""
        if self._engine is None:
            return self._max_loss
        start = self._start + (self._target_log_delta - log_delta) / self._tilt
        excess = _excess(self._engine, log_delta)
        upper, _ = falling_root(excess, start, self._tilt, self._max_loss)
        low, high = self._engine.bounds(upper)
        narrow = high - low <= 2 * self._width * self._tilt * upper or upper in {
            0.0,
            self._max_loss,
        }
        return min(upper, self._max_loss) if narrow or accept_wide else None


def _first_narrow_engine(
    composition: CertifiedComposition, a: float, epsilon: float
) -> Engine | None:
    """Return the first engine whose answer is narrow enough, else the one of the least answer."""
    best: tuple[float, Engine] | None = None
    for engine in composition.engines(a, epsilon):
        low, high = engine.bounds(epsilon)
        if best is None or high < best[0]:
            best = high, engine
        if high - low <= composition.width * a * epsilon:
            break
    return None if best is None else best[1]


def _excess(engine: Engine, log_delta: float) -> Callable[[float], float]:
    return lambda epsilon: engine.bounds(epsilon)[1] - log_delta
