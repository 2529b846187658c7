"""Losses that a pair of runs spent."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import final

from accountant.accountants.tight import Tight
from accountant.losses.loss import Loss
from accountant.plans.plan import Sequential
from audits.recorded_runs.events import Event


@final
@dataclass(slots=True)
class Spent:
    """Losses of one pair of runs, and what is not known of them."""

    losses: Counter[Loss] = field(default_factory=Counter)
    calls: Counter[Loss] = field(default_factory=Counter)
    # as losses, but a call whose value moved by a part of its sensitivity costs that part
    scaled: Counter[Loss] = field(default_factory=Counter)
    infinite: list[tuple[Event, str]] = field(default_factory=list)
    # losses that are not known: with any of them the cost is unknown
    unknown: list[str] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)  # assumptions on laws that the losses rest on
    no_coins: bool = False  # uniform numbers were compared with others, and are no coins

    def epsilon(self, delta: float, scaled: bool = False) -> float:
        """Upper bound of epsilon of the known losses at delta, by `Tight`.

        ``scaled`` charges parts of calls.
        """
        losses = self.losses + self.scaled if scaled else self.losses + self.calls
        if self.infinite:
            return math.inf
        if not losses:
            return 0.0
        plan = Sequential([count * loss for loss, count in losses.items()])
        return Tight().epsilon(plan, delta)
