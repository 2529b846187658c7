"""All that a plan's page tells, computed before a word of it is written."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

from accountant.accountants.base import Accountant
from accountant.accountants.budget import Budget
from accountant.accountants.pld import PLD
from accountant.accountants.tight import Tight
from accountant.accountants.tight_curve import epsilons
from accountant.errors import UnsupportedPlan
from accountant.numerics import up
from accountant.planning.capacity import room_or_nothing
from accountant.plans.plan import Plan, Repeat, directions
from accountant.reports.comparison import SOUND
from accountant.reports.plan_lines import Line, plan_of
from accountant.reports.what_if_grid import Tick, WhatIf, axis, steps, what_if

MOST_ROOMS = 40  # lines beyond are not asked how many more fit


@final
@dataclass(frozen=True, slots=True)
class LineCost:
    """Epsilon, at the budget's delta, of one release and of the whole line; and what still fits.

    ``room`` is None where it was not asked or nobody can say.
    """

    line: Line
    one: float
    alone: float
    room: int | None


@final
@dataclass(frozen=True, slots=True)
class Telling:
    """The numbers of a page; ``curves`` has an epsilon for each of ``grid.deltas``."""

    plan: Plan
    budget: Budget
    grid: WhatIf
    costs: tuple[LineCost, ...]
    curves: dict[str, tuple[float, ...]]

    @property
    def at(self) -> int:
        """Where the budget's delta is among the grid's."""
        return self.grid.deltas.index(self.budget.delta)

    @property
    def epsilon(self) -> float:
        """What the plan costs at the budget's delta."""
        i, j = self.grid.here
        return self.grid.epsilon[i][j][self.at]


def work(lines: Sequence[Line]) -> int:
    """How often `tell` will tick."""
    return steps(lines) + len(lines) + len(SOUND)


def tell(lines: Sequence[Line], budget: Budget, tick: Tick = lambda: None) -> Telling:
    """Return the numbers of a page; ``tick`` is called `work` times."""
    plan, deltas = plan_of(lines), axis(budget)
    grid = what_if(lines, budget, tick)
    costs = tuple(_costs(plan, lines, budget, tick))
    curves = {}
    i, j = grid.here
    for one in SOUND:
        known = isinstance(one, Tight)
        curves[one.name] = grid.epsilon[i][j] if known else _curve(one, plan, deltas)
        tick()
    return Telling(plan, budget, grid, costs, curves)


def _costs(plan: Plan, lines: Sequence[Line], budget: Budget, tick: Tick) -> Iterator[LineCost]:
    for place, line in enumerate(lines):
        both = (line.part, Repeat(line.part, line.count))
        one, alone = (epsilons(part, [budget.delta])[0] for part in both)
        asked = place < MOST_ROOMS
        # that others do not help the plan says nothing of the plan with many more
        room = room_or_nothing(plan, line.part, budget) if asked else None
        yield LineCost(line, one, alone, room)
        tick()


def _curve(one: Accountant, plan: Plan, deltas: Sequence[float]) -> tuple[float, ...]:
    """An accountant's epsilons; NaN where it has no answer."""
    try:
        if isinstance(one, PLD):
            return _one_grid(one, plan, deltas)
        return tuple(one.epsilon(plan, delta) for delta in deltas)
    except UnsupportedPlan:
        return (math.nan,) * len(deltas)


def _one_grid(one: PLD, plan: Plan, deltas: Sequence[float]) -> tuple[float, ...]:
    """Those of a grid that is fine enough for the smallest delta, and so for all."""
    least = min(delta for delta in deltas if delta > 0)
    grids = [one._grid(way, least, above=True) for way in directions(plan)]
    return tuple(
        max(up(grid.epsilon(delta - grid.noise)) for grid in grids)
        if delta
        else one.epsilon(plan, 0.0)
        for delta in deltas
    )
