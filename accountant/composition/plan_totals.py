"""Numbers of a whole plan that add up over its releases, such as the mass at infinity.

A plan is a sequence of items with counts.  An item is the loss of one release, or a `Parallel`,
whose parts see disjoint users: a user pays for one of them, so the maximum over the parts counts.
"""

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
    """Return the sum of ``cost_of`` over all releases, with the maximum over parallel parts.

    A cost that is an array is added, and maximised, entry by entry.
    """
    result: Array = np.zeros(())
    for item, count in plan.losses():
        if isinstance(item, Parallel):
            # All parts see disjoint users, so a user pays for one of them.
            parts = [fold_plan(part, cost_of) for part in item.distinct]
            result = result + count * functools.reduce(np.maximum, parts)
        else:
            result = result + count * np.asarray(cost_of(single_loss(item)), dtype=float)
    return result


def infinity_mass(plan: Plan, *, worse_direction: bool = False) -> float:
    """Return the mass at infinity of a whole plan, ``1 - prod (1 - d_i)``, rounded up.

    d_i is the probability of the outcomes of release i that are impossible on the neighbour.
    ``worse_direction`` takes for every loss the larger one of its two directions.
    """

    def nats(loss: Loss) -> float:
        # -ln(1 - d), which adds up
        worst = max(loss.infinity, loss.reversed.infinity) if worse_direction else loss.infinity
        return -math.log1p(-worst) if worst < 1 else math.inf

    return min(round_up(-math.expm1(-float(fold_plan(plan, nats))), 16), 1.0)
