"""Basic composition: epsilons add, deltas add.

References: Dwork, Kenthapadi, McSherry, Mironov & Naor (2006), Theorem 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_UP, Context, Decimal
from typing import final

from accountant.accountants.base import Accountant
from accountant.composition.plan_totals import atoms
from accountant.losses.loss import single_loss
from accountant.plans.parallel import Parallel
from accountant.plans.plan import Item, Plan

EXACT = Context(prec=700, rounding=ROUND_UP)


@final
@dataclass(frozen=True, slots=True)
class Basic(Accountant):
    """Sum of the epsilons; delta is shared equally among the releases that are not pure.

    Epsilons are added in decimal as they are printed, so ten times 0.1 is 1.0 exactly.
    """

    def _epsilon(self, plan: Plan, delta: float) -> float:
        items = list(plan.losses())
        leaky = sum(count for item, count in items if not math.isfinite(_pure(item)))
        # each keeps its own mass at infinity, the rest is shared
        spare = decimal(delta)
        for item, count in items:
            spare = EXACT.subtract(spare, EXACT.multiply(decimal(_atom(item)), count))
        left = float(spare)
        if leaky and left < 0:
            return math.inf
        exact = Decimal(0)
        for item, count in items:
            if math.isfinite(_pure(item)):
                one = _pure(item)
            else:
                share = min(_atom(item) + left / leaky * (1 - 2.0**-50), math.nextafter(1.0, 0.0))
                one = self._inverse(item, share if left > 0 else _atom(item))
            if math.isinf(one):
                return math.inf
            exact = EXACT.add(exact, EXACT.multiply(decimal(one), count))
        return _ceil(exact)

    def _inverse(self, item: Item, share: float) -> float:
        if isinstance(item, Parallel):
            return max(self._epsilon(part, share) for part in item.distinct)
        loss = single_loss(item)
        return loss._inverse(share) if share > loss.infinity else loss.bound


def _pure(item: Item) -> float:
    if isinstance(item, Parallel):
        return max(Basic()._epsilon(part, 0.0) for part in item.distinct)
    return single_loss(item).pure


def _atom(item: Item) -> float:
    if isinstance(item, Parallel):
        return max(atoms(part) for part in item.distinct)
    return single_loss(item).infinity


def decimal(x: float) -> Decimal:
    """The number as it is printed."""
    return Decimal(repr(x))


def _ceil(exact: Decimal) -> float:
    """The least float whose shortest decimal is not below ``exact``."""
    nearest = float(exact)
    return nearest if decimal(nearest) >= exact else math.nextafter(nearest, math.inf)
