"""Epsilons of a plan with other noise, counts and deltas: the values behind the sliders of a page.

A *cell* of the grid is the plan with its noise multiplied by one factor and its counts by another;
it has an epsilon for each delta.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from accountant.accountants.budget import Budget
from accountant.accountants.tight import Tight
from accountant.composition.composed_loss import losses_of_items
from accountant.errors import ParameterError, UnsupportedPlan
from accountant.plans.plan import Plan, directions
from accountant.reports.plan_lines import PlanLine, has_noise_scale, plan_of, scaled_count

# what noise and counts are multiplied by, and the deltas that a page shows
NOISE_FACTORS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.5, 2.0, 3.0, 4.0)
COUNT_FACTORS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
SHOWN_DELTA_AXIS = tuple(float(f"1e-{k}") for k in range(12, 2, -1))
ProgressCallback = Callable[[], None]


@final
@dataclass(frozen=True, slots=True)
class WhatIf:
    """``epsilon[i][j][k]`` at factor i of the noise, factor j of the counts, and delta k.

    Every value is an upper bound, NaN where there is no such plan; those at factors of 1 are
    `Tight`'s own.  The factors are of the line at the index ``turned`` alone, or of all lines.
    """

    noise_factors: tuple[float, ...]
    count_factors: tuple[float, ...]
    deltas: tuple[float, ...]
    releases: tuple[int, ...]
    epsilon: tuple[tuple[tuple[float, ...], ...], ...]
    turned: int | None = None

    @property
    def plan_index(self) -> tuple[int, int]:
        """Return the indices of the plan itself."""
        return self.noise_factors.index(1.0), self.count_factors.index(1.0)

    @property
    def plan_epsilons(self) -> tuple[float, ...]:
        """Return the epsilons of the plan itself, one for each delta."""
        i, j = self.plan_index
        return self.epsilon[i][j]


def delta_axis(budget: Budget) -> tuple[float, ...]:
    """Return the deltas of a page, the budget's own among them."""
    return tuple(sorted({*SHOWN_DELTA_AXIS, budget.delta}))


def cell_count(lines: Sequence[PlanLine]) -> int:
    """Return how often `what_if` will call ``on_step``."""
    return len(noise_axis(lines)) * len(COUNT_FACTORS)


def what_if(
    lines: Sequence[PlanLine],
    budget: Budget,
    on_step: ProgressCallback = lambda: None,
    turned: int | None = None,
) -> WhatIf:
    """Return the grid; ``on_step`` is called after every cell."""
    deltas, noise = delta_axis(budget), noise_axis(lines)
    whole_plan = plan_of(lines)
    with_envelopes = _envelopes_help(whole_plan, (deltas[-1], budget.delta or deltas[1]))

    def counts(factor: float) -> tuple[int, ...]:
        scaled = (scaled_count(line.count, factor) for line in lines)
        return tuple(
            count if turned in (None, index) else lines[index].count
            for index, count in enumerate(scaled)
        )

    # Small counts are equal at several factors, because they are rounded up.  Their cells are
    # computed once.
    cells: dict[tuple[object, ...], tuple[float, ...]] = {
        (1.0, counts(1.0)): tuple(Tight().epsilon(whole_plan, delta) for delta in deltas)
    }
    rows = []
    for factor in noise:
        row = []
        for often in COUNT_FACTORS:
            key = (factor, counts(often))
            if key not in cells:
                cells[key] = _cell(lines, (factor, often, turned), deltas, with_envelopes)
            row.append(cells[key])
            on_step()
        rows.append(tuple(row))
    releases = tuple(sum(counts(often)) for often in COUNT_FACTORS)
    return WhatIf(noise, COUNT_FACTORS, deltas, releases, tuple(rows), turned)


def _cell(
    lines: Sequence[PlanLine],
    change: tuple[float, float, int | None],
    deltas: Sequence[float],
    with_envelopes: bool,
) -> tuple[float, ...]:
    """Return the epsilons of one cell, NaN where there is no such plan or no bound."""
    factor, _, turned = change
    if factor != 1 and turned is not None and not has_noise_scale(lines[turned].part):
        return (math.nan,) * len(deltas)
    try:
        plan = plan_of(lines, *change)
    except ParameterError:  # a mechanism that has no such noise
        return (math.nan,) * len(deltas)
    try:
        return tuple(Tight().epsilons(plan, deltas, with_envelopes=with_envelopes).tolist())
    except UnsupportedPlan:
        return (math.nan,) * len(deltas)


def _envelopes_help(plan: Plan, deltas: Sequence[float]) -> bool:
    """Return whether the losses have upper envelopes that lower an epsilon at one of the deltas."""
    both_directions = directions(plan)
    losses = [
        loss for direction in both_directions for loss, _ in losses_of_items([*direction.losses()])
    ]
    if not any(loss.numerics.is_upper_envelope for loss in losses):
        return False
    without = Tight().epsilons(plan, deltas, with_envelopes=False)
    return not np.array_equal(Tight().epsilons(plan, deltas), without)


def noise_axis(lines: Sequence[PlanLine]) -> tuple[float, ...]:
    """Return the factors of the noise: 1 alone where no part has noise to scale."""
    return NOISE_FACTORS if any(has_noise_scale(line.part) for line in lines) else (1.0,)
