"""The least sound epsilon at many deltas: a few engines, each asked for the deltas around it.

A grid of what-ifs has thousands of epsilons; `Tight` proves each from both sides, and half of
that work is the lower end, which no budget needs.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np

from accountant.accountants.advanced import Advanced
from accountant.accountants.base import Accountant
from accountant.accountants.basic import Basic
from accountant.accountants.rdp import RDP
from accountant.accountants.tight import Tight
from accountant.accountants.zcdp import ZCDP
from accountant.composition.certificate import falling_root
from accountant.composition.certified_composition import Composition, quiet
from accountant.composition.closed_form import Engine, closed_form
from accountant.composition.composed_loss import as_losses
from accountant.losses.discretised import Dots, above, dots
from accountant.losses.loss import Loss
from accountant.numerics import ULP
from accountant.plans.plan import Plan, directions

WIDTH = 1e-4  # of epsilon: how much too large it may be
THINNED = 8
OTHERS: tuple[Accountant, ...] = (Basic(), Advanced(), ZCDP(), RDP())


def epsilons(plan: Plan, deltas: Sequence[float], *, others: bool = True) -> list[float]:
    """Upper bounds on the plan's epsilon at each of ``deltas``, in their order.

    ``others=False`` leaves out accountants that know facts of their own: sound, and quicker.
    """
    whole = Basic().epsilon(plan, 0.0) if 0.0 in deltas else 0.0
    asked = sorted({delta for delta in deltas if delta > 0}, reverse=True)
    first, *rest = directions(plan)
    found = dict(zip(asked, _one_way(first, asked, others), strict=True))
    for way in rest:
        # a direction that real tilts bound below the other needs no engine
        left = [delta for delta in asked if not Tight()._quick(way, delta) <= found[delta]]
        for delta, epsilon in zip(left, _one_way(way, left, others), strict=True):
            found[delta] = max(found[delta], epsilon)
    return [found[delta] if delta else whole for delta in deltas]


def helped(plan: Plan, deltas: Sequence[float]) -> bool:
    """Whether accountants with facts of their own say less somewhere."""
    if not any(loss.envelope for way in directions(plan) for loss, _ in as_losses([*way.losses()])):
        return False
    return epsilons(plan, deltas) != epsilons(plan, deltas, others=False)


def _one_way(way: Plan, deltas: Sequence[float], others: bool) -> list[float]:
    """``deltas`` are positive and descend."""
    items = list(way.losses())
    if len(items) == 1 and items[0][1] == 1:
        return [Tight()._single(items[0][0], delta).upper for delta in deltas]
    losses = as_losses(items)
    found, every = [math.inf] * len(deltas), all(loss.by_renyi for loss, _ in losses)
    if not losses or not every:
        dotted = _dotted(losses, deltas[-1]) if deltas else losses
        found = _inverted(Composition(dotted, WIDTH), deltas)
    if any(loss.envelope for loss, _ in losses) and (others or every):
        found = [
            min([epsilon, *(one._epsilon(way, delta) for one in OTHERS)])
            for epsilon, delta in zip(found, deltas, strict=True)
        ]
    return found


def _dotted(losses: list[tuple[Loss, int]], least: float) -> list[tuple[Loss, int]]:
    """The losses, dots above those without a certified cumulant: the same whatever the counts."""
    releases = sum(n for _, n in losses)
    # the next power of ten, so that a few more releases find the dots already made
    tail = least * 1e-7 / 10.0 ** math.ceil(math.log10(max(releases, 1)))
    return [(loss if loss.certified else _dots(loss, tail), n) for loss, n in losses]


@functools.lru_cache(maxsize=512)
def _dots(loss: Loss, tail: float) -> Dots:
    """Dots above the loss, and then above those: an eighth of them is near enough."""
    fine = dots(loss, tail, upper=True)
    kept = np.union1d(fine.loss[::THINNED], fine.loss[[0, -1]])
    return above(fine.signed_profile, kept, fine.beyond) if kept.size > 2 else fine


@quiet
def _inverted(whole: Composition, deltas: Sequence[float]) -> list[float]:
    """Epsilons from one engine made for the middle delta, and another wherever that is too wide."""
    items = whole._items
    if len(items) == 1 and items[0][1] == 1:
        return [closed_form(items[0][0], delta).upper for delta in deltas]
    if whole.top == 0 or not items:
        return [0.0 if delta > whole.infinity else math.inf for delta in deltas]
    # the finite part's share, with the round-off of the mass at infinity
    left = [delta - whole.infinity * (1 + 8 * ULP) for delta in deltas]
    logs = [math.log(one) for one in left if one > 0]
    served = Served(whole, logs[len(logs) // 2]) if logs else None
    found = []
    for log in logs:
        answer = None if served is None else served.epsilon(log)
        if answer is None:
            served = Served(whole, log)
            answer = served.epsilon(log, however_wide=True)
        found.append(answer or 0.0)
    return found + [math.inf] * (len(deltas) - len(logs))


class Served:
    """An engine aimed at one delta, and what it says about others."""

    def __init__(self, whole: Composition, log_delta: float) -> None:
        self._top, self._log = whole.top, log_delta
        self._tilt, epsilon = whole._aim(log_delta)
        self._start = max(epsilon, 0.0)
        self._engine = _narrow(whole, self._tilt, self._start)

    def epsilon(self, log_delta: float, however_wide: bool = False) -> float | None:
        """The least epsilon found at this delta; None where the engine does not know it well."""
        if self._engine is None:
            return self._top
        start = self._start + (self._log - log_delta) / self._tilt
        excess = _excess(self._engine, log_delta)
        upper, _ = falling_root(excess, start, self._tilt, self._top)
        low, high = self._engine.bounds(upper)
        narrow = high - low <= 2 * WIDTH * self._tilt * upper or upper in {0.0, self._top}
        return min(upper, self._top) if narrow or however_wide else None


def _narrow(whole: Composition, a: float, epsilon: float) -> Engine | None:
    """The first engine whose answer is narrow enough, else the least answer's."""
    best: tuple[float, Engine] | None = None
    for engine in whole._engines(a, max(epsilon, 0.0)):
        low, high = engine.bounds(max(epsilon, 0.0))
        if best is None or high < best[0]:
            best = high, engine
        if high - low <= WIDTH * a * epsilon:
            break
    return None if best is None else best[1]


def _excess(engine: Engine, log_delta: float) -> Callable[[float], float]:
    return lambda epsilon: engine.bounds(epsilon)[1] - log_delta
