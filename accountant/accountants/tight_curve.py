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
from accountant.composition.certified_composition import CertifiedComposition, ignore_overflow
from accountant.composition.closed_form import Engine, closed_form
from accountant.composition.composed_loss import losses_of_items
from accountant.losses.discretised import DiscretisedLoss, discretised, dominating_pair
from accountant.losses.loss import Loss
from accountant.numerics.rounding import ULP
from accountant.numerics.search import falling_root
from accountant.plans.plan import Plan, directions

RELATIVE_WIDTH = 1e-4  # of epsilon: how much too large it may be
THINNING_FACTOR = 8
ENVELOPE_ACCOUNTANTS: tuple[Accountant, ...] = (Basic(), Advanced(), ZCDP(), RDP())


def upper_epsilons(
    plan: Plan, deltas: Sequence[float], *, envelope_accountants: bool = True
) -> list[float]:
    """Upper bounds on the plan's epsilon at each of ``deltas``, in their order.

    ``others=False`` leaves out accountants that know facts of their own: sound, and quicker.
    """
    whole = Basic().epsilon(plan, 0.0) if 0.0 in deltas else 0.0
    asked = sorted({delta for delta in deltas if delta > 0}, reverse=True)
    first, *rest = directions(plan)
    found = dict(zip(asked, _one_direction(first, asked, envelope_accountants), strict=True))
    for way in rest:
        # a direction that real tilts bound below the other needs no engine
        left = [
            delta for delta in asked if not Tight()._chernoff_epsilon(way, delta) <= found[delta]
        ]
        for delta, epsilon in zip(
            left, _one_direction(way, left, envelope_accountants), strict=True
        ):
            found[delta] = max(found[delta], epsilon)
    return [found[delta] if delta else whole for delta in deltas]


def improved_by_envelope_accountants(plan: Plan, deltas: Sequence[float]) -> bool:
    """Whether accountants with facts of their own say less somewhere."""
    if not any(
        loss.is_upper_envelope
        for way in directions(plan)
        for loss, _ in losses_of_items([*way.losses()])
    ):
        return False
    return upper_epsilons(plan, deltas) != upper_epsilons(plan, deltas, envelope_accountants=False)


def _one_direction(way: Plan, deltas: Sequence[float], envelope_accountants: bool) -> list[float]:
    """``deltas`` are positive and descend."""
    items = list(way.losses())
    if len(items) == 1 and items[0][1] == 1:
        return [Tight()._certify_item(items[0][0], delta).upper for delta in deltas]
    losses = losses_of_items(items)
    found, every = [math.inf] * len(deltas), all(loss.determined_by_rdp for loss, _ in losses)
    if not losses or not every:
        dotted = _discretised_losses(losses, deltas[-1]) if deltas else losses
        found = _epsilons_of_composition(CertifiedComposition(dotted, RELATIVE_WIDTH), deltas)
    if any(loss.is_upper_envelope for loss, _ in losses) and (envelope_accountants or every):
        found = [
            min([epsilon, *(one._epsilon(way, delta) for one in ENVELOPE_ACCOUNTANTS)])
            for epsilon, delta in zip(found, deltas, strict=True)
        ]
    return found


def _discretised_losses(losses: list[tuple[Loss, int]], least: float) -> list[tuple[Loss, int]]:
    """The losses, dots above those without a certified cumulant: the same whatever the counts."""
    releases = sum(n for _, n in losses)
    # the next power of ten, so that a few more releases find the dots already made
    tail = least * 1e-7 / 10.0 ** math.ceil(math.log10(max(releases, 1)))
    return [
        (loss if loss.has_exact_cgf else _coarsely_discretised(loss, tail), n) for loss, n in losses
    ]


@functools.lru_cache(maxsize=512)
def _coarsely_discretised(loss: Loss, tail: float) -> DiscretisedLoss:
    """Dots above the loss, and then above those: an eighth of them is near enough."""
    fine = discretised(loss, tail, upper=True)
    kept = np.union1d(fine.loss[::THINNING_FACTOR], fine.loss[[0, -1]])
    return (
        dominating_pair(fine.profile_any_epsilon, kept, fine.infinity_mass)
        if kept.size > 2
        else fine
    )


@ignore_overflow
def _epsilons_of_composition(
    composition: CertifiedComposition, deltas: Sequence[float]
) -> list[float]:
    """Epsilons from one engine made for the middle delta, and another wherever that is too wide."""
    items = composition._items
    if len(items) == 1 and items[0][1] == 1:
        return [closed_form(items[0][0], delta).upper for delta in deltas]
    if composition.max_loss == 0 or not items:
        return [0.0 if delta > composition.infinity else math.inf for delta in deltas]
    # the finite part's share, with the round-off of the mass at infinity
    left = [delta - composition.infinity * (1 + 8 * ULP) for delta in deltas]
    logs = [math.log(one) for one in left if one > 0]
    served = EngineNearDelta(composition, logs[len(logs) // 2]) if logs else None
    found = []
    for log in logs:
        answer = None if served is None else served.epsilon(log)
        if answer is None:
            served = EngineNearDelta(composition, log)
            answer = served.epsilon(log, accept_wide=True)
        found.append(answer or 0.0)
    return found + [math.inf] * (len(deltas) - len(logs))


class EngineNearDelta:
    """An engine aimed at one delta, and what it says about others."""

    def __init__(self, composition: CertifiedComposition, log_delta: float) -> None:
        self._max_loss, self._target_log_delta = composition.max_loss, log_delta
        self._tilt, epsilon = composition._tilt_and_epsilon(log_delta)
        self._start = max(epsilon, 0.0)
        self._engine = _first_narrow_engine(composition, self._tilt, self._start)

    def epsilon(self, log_delta: float, accept_wide: bool = False) -> float | None:
        """The least epsilon found at this delta; None where the engine does not know it well."""
        if self._engine is None:
            return self._max_loss
        start = self._start + (self._target_log_delta - log_delta) / self._tilt
        excess = _excess(self._engine, log_delta)
        upper, _ = falling_root(excess, start, self._tilt, self._max_loss)
        low, high = self._engine.bounds(upper)
        narrow = high - low <= 2 * RELATIVE_WIDTH * self._tilt * upper or upper in {
            0.0,
            self._max_loss,
        }
        return min(upper, self._max_loss) if narrow or accept_wide else None


def _first_narrow_engine(
    composition: CertifiedComposition, a: float, epsilon: float
) -> Engine | None:
    """The first engine whose answer is narrow enough, else the least answer's."""
    best: tuple[float, Engine] | None = None
    for engine in composition._engines(a, max(epsilon, 0.0)):
        low, high = engine.bounds(max(epsilon, 0.0))
        if best is None or high < best[0]:
            best = high, engine
        if high - low <= RELATIVE_WIDTH * a * epsilon:
            break
    return None if best is None else best[1]


def _excess(engine: Engine, log_delta: float) -> Callable[[float], float]:
    return lambda epsilon: engine.bounds(epsilon)[1] - log_delta
