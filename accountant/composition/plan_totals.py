"""Facts of a whole plan that add up over its releases."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from accountant.losses.loss import Loss, single_loss
from accountant.numerics import Array
from accountant.numerics.rounding import round_up
from accountant.plans.parallel import Parallel
from accountant.plans.plan import Plan


def all_losses(plan: Plan) -> list[tuple[Loss, int]]:
    """Return the losses of a plan and of all its parallel parts, with their counts."""
    losses = []
    for item, count in plan.losses():
        if isinstance(item, Parallel):
            losses += [(loss, n * count) for part in item.distinct for loss, n in all_losses(part)]
        else:
            losses.append((single_loss(item), count))
    return losses


def fold_plan(plan: Plan, cost_of: Callable[[Loss], Array | float]) -> Array:
    """Return a fact of a plan that adds up in sequence and is the maximum over parallel parts."""
    result: Array = np.zeros(())
    for item, count in plan.losses():
        if isinstance(item, Parallel):
            # all parts see disjoint users, so a user pays for one of them
            parts = [fold_plan(part, cost_of) for part in item.distinct]
            result = result + count * functools.reduce(np.maximum, parts)
        else:
            result = result + count * np.asarray(cost_of(single_loss(item)), dtype=float)
    return result


def infinity_mass(plan: Plan, *, worse_direction: bool = False) -> float:
    """Return the mass at infinity of a whole plan, ``1 - prod (1 - d_i)``.

    ``worse_direction`` takes the worse direction of every single loss.
    """

    def nats(loss: Loss) -> float:
        worst = max(loss.infinity, loss.reversed.infinity) if worse_direction else loss.infinity
        return -math.log1p(-worst) if worst < 1 else math.inf

    return round_up(-math.expm1(-float(fold_plan(plan, nats))), 16)
