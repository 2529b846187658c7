"""A whole plan as one loss: what is sampled, grouped or run in parallel may be a composition."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from typing import final

import numpy as np

from accountant.additive import GaussianLoss, LaplaceLoss
from accountant.bounded import BoundedRangeLoss, PureLoss
from accountant.loss import Loss
from accountant.numerics import Array, log1mexp, up
from accountant.parallel import Parallel
from accountant.plan import Plan


@functools.lru_cache(maxsize=4096)
def as_loss(plan: Plan) -> Loss:
    """The one loss a plan amounts to: its own, one Gaussian, or its composition."""
    items = list(plan.losses())
    if all(isinstance(item, GaussianLoss) for item, _ in items) and items:
        if len(items) == 1 and items[0][1] == 1:
            return items[0][0]
        return GaussianLoss(up(math.sqrt(math.fsum(n * one.mu**2 for one, n in items))))
    if len(items) == 1 and items[0][1] == 1:
        item = items[0][0]
        return Greatest(item) if isinstance(item, Parallel) else item
    return Composed(plan)
