"""`Spent`: the privacy losses of a recorded run and its replay, and their epsilon.

A function is run on data, and replayed on neighbouring data with the same noisy outputs.  How far
its private values differ between the runs gives the privacy loss of each noise, and of each call of
a mechanism that declares its loss.  `Spent.epsilon` is that of the composition of all losses.
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
    """Losses of one pair of runs, each with its count, and what is not known of them."""

    losses: Counter[Loss] = field(default_factory=Counter)  # of noise, coins and selections
    calls: Counter[Loss] = field(default_factory=Counter)  # of calls of mechanisms, as declared
    # Like ``calls``, but a pure loss whose value moved by a part of its sensitivity costs that part
    # of its epsilon.
    scaled: Counter[Loss] = field(default_factory=Counter)
    # Places in the code that have an infinite loss, each with the reason.
    infinite: list[tuple[str, str]] = field(default_factory=list)
    # Places in the code whose loss is not known.  Where there is one, `epsilon` is only that of the
    # other losses; the verdict then states no cost.
    unknown: list[str] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)  # assumptions on laws that the losses rest on
    # Whether a uniform number was compared with several levels, which were in another order in the
    # replay: the number is then no coin, whose loss would follow from its levels.
    levels_reordered: bool = False

    def epsilon(self, delta: float, scaled: bool = False) -> float:
        """Return an upper bound on the epsilon of the known losses at delta, by `Tight`.

        ``scaled`` takes the losses in `scaled` in place of those in `calls`.
        """
        losses = self.losses + self.scaled if scaled else self.losses + self.calls
        if self.infinite:
            return math.inf
        if not losses:
            return 0.0
        plan = Sequential([count * loss for loss, count in losses.items()])
        return Tight().epsilon(plan, delta)
