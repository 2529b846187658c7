"""Facts of a whole plan that add up over its releases."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from accountant.losses.loss import Loss, single_loss
from accountant.numerics import Array, up
from accountant.plans.parallel import Parallel
from accountant.plans.plan import Plan


def total(plan: Plan, fact: Callable[[Loss], Array | float]) -> Array:
    """Sum a fact that adds up over a sequence and is the maximum over parallel parts."""
    result: Array = np.zeros(())
    for item, count in plan.losses():
        if isinstance(item, Parallel):
            # all parts see disjoint users, so a user pays for one of them
            parts = [total(part, fact) for part in item.distinct]
            result = result + count * functools.reduce(np.maximum, parts)
        else:
            result = result + count * np.asarray(fact(single_loss(item)), dtype=float)
    return result


def atoms(plan: Plan, *, both_ways: bool = False) -> float:
    """Mass at infinity of the whole plan, ``1 - prod (1 - d_i)``, which composes apart.

    ``both_ways`` takes the worse direction of every single loss.
    """

    def nats(loss: Loss) -> float:
        worst = max(loss.infinity, loss.reversed.infinity) if both_ways else loss.infinity
        return -math.log1p(-worst) if worst < 1 else math.inf

    return up(-math.expm1(-float(total(plan, nats))), 16)
