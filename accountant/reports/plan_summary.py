"""All numbers of a plan's page, computed before the page is written.

A page shows a plan as lines: what each costs, what the plan costs by every accountant, and grids of
its epsilon with other noise, counts and deltas.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import final

from accountant.accountants.attack_rates import AttackRate, attack_rates
from accountant.accountants.budget import Budget
from accountant.accountants.tight import Tight
from accountant.errors import ParameterError, UnsupportedPlan
from accountant.planning.capacity import capacity_if_known
from accountant.plans.plan import Plan, Repeat
from accountant.proofs.checked_proof import CheckedProof
from accountant.proofs.plan_parts import same_plan
from accountant.reports.comparison import ALL_ACCOUNTANTS
from accountant.reports.plan_lines import PlanLine, plan_of
from accountant.reports.what_if_grid import (
    ProgressCallback,
    WhatIf,
    cell_count,
    delta_axis,
    what_if,
)
from accountant.serialisation.plan_json import to_dict

MAX_CAPACITY_LINES = 40  # so many lines show how many more releases fit the budget
MAX_TURNED_LINES = 8  # so many lines have a grid of their own, because each grid takes long


@final
@dataclass(frozen=True, slots=True)
class LineCost:
    """Epsilon, at the budget's delta, of one release and of the whole line; and how many more fit.

    ``capacity`` is None where it was not requested or cannot be computed.
    """

    line: PlanLine
    epsilon_of_one: float
    epsilon_of_all: float
    capacity: int | None


@final
@dataclass(frozen=True, slots=True)
class PlanSummary:
    """The numbers of a page; a curve has an epsilon for each of ``grid.deltas``, NaN for none.

    ``grid`` changes all lines together, each of ``line_grids`` one line alone.  Where there is a
    ``proof`` the plan's epsilon is what it proves.
    """

    plan: Plan
    budget: Budget
    grid: WhatIf
    line_grids: tuple[WhatIf, ...]
    costs: tuple[LineCost, ...]
    curves: dict[str, tuple[float, ...]]
    rates: tuple[AttackRate, ...] = ()
    proof: CheckedProof | None = None

    def __post_init__(self) -> None:
        if self.proof is None:
            return
        is_of_plan = same_plan(to_dict(self.proof.plan), to_dict(self.plan))
        if not is_of_plan or self.proof.delta != self.budget.delta:
            raise ParameterError("proof", self.proof, "of this plan, at the budget's delta")
        if self.proof.epsilon != self.epsilon:
            raise ParameterError("proof", self.proof.epsilon, f"of epsilon {self.epsilon!r}")

    @property
    def budget_delta_index(self) -> int:
        """Return the index of the budget's delta in the grid's deltas."""
        return self.grid.deltas.index(self.budget.delta)

    @property
    def epsilon(self) -> float:
        """Return the plan's epsilon at the budget's delta."""
        return self.grid.plan_epsilons[self.budget_delta_index]


def step_count(lines: Sequence[PlanLine]) -> int:
    """Return how often `summarise` will call ``on_step``."""
    grids = 1 + len(_turned_lines(lines))
    return grids * cell_count(lines) + len(lines) + len(ALL_ACCOUNTANTS)


def summarise(
    lines: Sequence[PlanLine],
    budget: Budget,
    on_step: ProgressCallback = lambda: None,
    proof: CheckedProof | None = None,
) -> PlanSummary:
    """Return the numbers of a page; ``on_step`` is called `step_count` times."""
    plan, deltas = plan_of(lines), delta_axis(budget)
    grid = _with_proved(what_if(lines, budget, on_step), budget, proof)
    alone = tuple(
        _with_proved(what_if(lines, budget, on_step, index), budget, proof)
        for index in _turned_lines(lines)
    )
    costs = tuple(_costs(plan, lines, budget, on_step))
    curves = {}
    for accountant in ALL_ACCOUNTANTS:
        if isinstance(accountant, Tight):
            curve = grid.plan_epsilons
        else:
            try:
                curve = tuple(accountant.epsilons(plan, deltas).tolist())
            except UnsupportedPlan:
                curve = (math.nan,) * len(deltas)
        curves[accountant.name] = curve
        on_step()
    rates = attack_rates(plan).rows
    return PlanSummary(plan, budget, grid, alone, costs, curves, rates, proof)


def _with_proved(grid: WhatIf, budget: Budget, proof: CheckedProof | None) -> WhatIf:
    """Return the grid with the proved epsilon in the cell of the plan itself."""
    if proof is None:
        return grid
    (i, j), k = grid.plan_index, grid.deltas.index(budget.delta)
    cells = [[list(cell) for cell in row] for row in grid.epsilon]
    cells[i][j][k] = proof.epsilon
    return replace(grid, epsilon=tuple(tuple(tuple(cell) for cell in row) for row in cells))


def _turned_lines(lines: Sequence[PlanLine]) -> range:
    """Return the lines that have a grid of their own: none where there is one line only."""
    return range(min(len(lines), MAX_TURNED_LINES) if len(lines) > 1 else 0)


def _costs(
    plan: Plan, lines: Sequence[PlanLine], budget: Budget, on_step: ProgressCallback
) -> Iterator[LineCost]:
    for index, line in enumerate(lines):
        epsilon_of_one, epsilon_of_all = (
            float(Tight().epsilons(part, [budget.delta])[0])
            for part in (line.part, Repeat(line.part, line.count))
        )
        has_capacity = index < MAX_CAPACITY_LINES
        # other accountants may lower the cost of many more repetitions, though not of this plan
        room = capacity_if_known(plan, line.part, budget) if has_capacity else None
        yield LineCost(line, epsilon_of_one, epsilon_of_all, room)
        on_step()
