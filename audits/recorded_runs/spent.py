"""The losses that a recorded run and its replay were found to cost (`Spent`), and their epsilon.

A function is run on data, and replayed on neighbouring data with the same noisy outputs.  How far
its private values differ between the runs gives the privacy loss of each noise, and of each call of
a mechanism that declares its loss.  The losses compose: their epsilon is that of all of them.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import final

from accountant.accountants.tight import Tight
from accountant.losses.loss import Loss
from accountant.plans.plan import Sequential


@final
@dataclass(slots=True)
class Spent:
    """Losses of one pair of runs, and what is not known of them."""

    # Losses of noise, coins and selections, and the declared losses of calls, with their counts.
    losses: Counter[Loss] = field(default_factory=Counter)
    calls: Counter[Loss] = field(default_factory=Counter)
    # Like ``calls``, but a pure loss whose value moved by a part of its sensitivity costs that part
    # of its epsilon.
    scaled: Counter[Loss] = field(default_factory=Counter)
    # Places in the code that have an infinite loss, each with the reason.
    infinite: list[tuple[str, str]] = field(default_factory=list)
    # What has a loss that is not known; with any of these the cost is unknown.
    unknown: list[str] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)  # assumptions on laws that the losses rest on
    no_coins: bool = False  # the levels of a coin are in another order in the second run

    def epsilon(self, delta: float, scaled: bool = False) -> float:
        """Return an upper bound on epsilon of the known losses at delta, by `Tight`.

        ``scaled`` says that a call costs only the part of its loss by which its value moved.
        """
        losses = self.losses + self.scaled if scaled else self.losses + self.calls
        if self.infinite:
            return math.inf
        if not losses:
            return 0.0
        plan = Sequential([count * loss for loss, count in losses.items()])
        return Tight().epsilon(plan, delta)
