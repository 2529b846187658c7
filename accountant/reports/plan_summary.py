"""All numbers of a plan's page, computed before the page is written.

A page shows a plan as lines: what each costs, what the plan costs by every accountant, and grids of
its epsilon with other noise, counts and deltas, which are the values behind the page's sliders.

A *cell* of a grid is the plan with its noise multiplied by one factor and its counts by another; it
has an epsilon for each delta.  One grid changes all lines together, others one line alone.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from accountant.accountants.attack_rates import AttackRate, attack_rates
from accountant.accountants.budget import Budget
from accountant.accountants.direction import COARSE_WIDTH, Direction
from accountant.accountants.tight import Tight
from accountant.composition.composed_loss import losses_of_items
from accountant.errors import ParameterError, UnsupportedPlan
from accountant.planning.capacity import capacity_if_known
from accountant.plans.plan import Plan, Repeat, directions
from accountant.proofs.checked_proof import CheckedProof
from accountant.reports.comparison import ALL_ACCOUNTANTS
from accountant.reports.plan_lines import PlanLine, has_noise_scale, plan_of, scaled_count
from accountant.serialisation.plan_json import to_dict
from accountant.verifier.plan_parts import same_plan

# What noise and counts are multiplied by, and the deltas that a page shows.  Each cell of a grid
# takes time, so the factors are close together near 1, where plans are adjusted, and else apart.
NOISE_FACTORS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.5, 2.0, 3.0, 4.0)
COUNT_FACTORS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
SHOWN_DELTA_AXIS = tuple(float(f"1e-{k}") for k in range(12, 2, -1))
# Only the first lines of a long plan show how many more releases fit the budget, and only the first
# few have a grid of their own, because both take long to compute.
MAX_CAPACITY_LINES = 40
MAX_LINE_GRIDS = 8
# What parts of the work cost, in cells of a grid, so that a bar of progress moves evenly: attack
# rates, and the room for one line; choices with all earlier answers make the room a longer search.
CELLS_OF_RATES, CELLS_OF_ROOM, CELLS_OF_CHOICES = 150, 10, 200
# Bounds for upper envelopes that lower no epsilon by more than this share are left out of cells.
ENVELOPE_GAIN = 0.01
ProgressCallback = Callable[[int], object]  # gets how many cells the work was worth


@final
@dataclass(frozen=True, slots=True)
class WhatIf:
    """``epsilon[i][j][k]`` at noise factor i, count factor j and delta k, by the lists of these.

    Every value is an upper bound, NaN where there is no such plan; those at factors of 1 are
    `Tight`'s own.  The factors are of the line at the index ``changed_line`` alone, or of all lines
    where it is None.  ``releases[j]`` is the number of releases of the whole plan at factor j.
    """

    noise_factors: tuple[float, ...]
    count_factors: tuple[float, ...]
    deltas: tuple[float, ...]
    releases: tuple[int, ...]
    epsilon: tuple[tuple[tuple[float, ...], ...], ...]
    changed_line: int | None = None

    @property
    def plan_index(self) -> tuple[int, int]:
        """Return the indices of the plan itself."""
        return self.noise_factors.index(1.0), self.count_factors.index(1.0)

    @property
    def plan_epsilons(self) -> tuple[float, ...]:
        """Return the epsilons of the plan itself, one for each delta."""
        i, j = self.plan_index
        return self.epsilon[i][j]


@final
@dataclass(frozen=True, slots=True)
class LineCost:
    """What one line costs by itself, at the budget's delta, and how many more releases fit."""

    line: PlanLine
    epsilon_of_one: float  # of one release of the line
    epsilon_of_all: float  # of as many releases as are planned
    capacity: int | None  # more releases that fit; None if not requested or not computable


@final
@dataclass(frozen=True, slots=True)
class PlanSummary:
    """The numbers of a page; a curve has an epsilon for each of ``grid.deltas``, NaN for none.

    ``grid`` changes all lines together, each of ``line_grids`` one line alone.  ``costs`` has one
    element for each line, ``rates`` are bounds on attacks.  Where there is a ``proof`` the plan's
    epsilon is what it proves.
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
    """Return how many steps `summarise` reports in all."""
    grids = (None, *_lines_with_grid(lines))
    cells = sum(len(_distinct_cells(lines, changed_line)) for changed_line in grids)
    rooms = _cells_of_room(plan_of(lines)) * min(len(lines), MAX_CAPACITY_LINES)
    return cells + rooms + CELLS_OF_RATES


def _cells_of_room(plan: Plan) -> int:
    """Return what the search for the room of one line costs, in cells."""
    has_choices = any(Direction(each, COARSE_WIDTH).has_choices for each in directions(plan))
    return CELLS_OF_CHOICES if has_choices else CELLS_OF_ROOM


def summarise(
    lines: Sequence[PlanLine],
    budget: Budget,
    on_step: ProgressCallback = lambda steps: None,
    proof: CheckedProof | None = None,
) -> PlanSummary:
    """Return the numbers of a page; ``on_step`` gets `step_count` steps in all."""
    plan, deltas = plan_of(lines), _delta_axis(budget)
    grid = _with_proved(what_if(lines, budget, on_step), budget, proof)
    alone = tuple(
        _with_proved(what_if(lines, budget, on_step, index), budget, proof)
        for index in _lines_with_grid(lines)
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
    rates = attack_rates(plan).rows
    on_step(CELLS_OF_RATES)
    return PlanSummary(plan, budget, grid, alone, costs, curves, rates, proof)


def _with_proved(grid: WhatIf, budget: Budget, proof: CheckedProof | None) -> WhatIf:
    """Return the grid with the proved epsilon in the cell of the plan itself."""
    if proof is None:
        return grid
    (i, j), k = grid.plan_index, grid.deltas.index(budget.delta)
    cells = [[list(cell) for cell in row] for row in grid.epsilon]
    cells[i][j][k] = proof.epsilon
    return replace(grid, epsilon=tuple(tuple(tuple(cell) for cell in row) for row in cells))


def _lines_with_grid(lines: Sequence[PlanLine]) -> range:
    """Return the lines that have a grid of their own: none where there is one line only."""
    return range(min(len(lines), MAX_LINE_GRIDS) if len(lines) > 1 else 0)


def _costs(
    plan: Plan, lines: Sequence[PlanLine], budget: Budget, on_step: ProgressCallback
) -> Iterator[LineCost]:
    """Yield what each line costs, and call ``on_step`` where its room was searched."""
    cells_of_room = _cells_of_room(plan)
    for index, line in enumerate(lines):
        epsilon_of_one, epsilon_of_all = (
            float(Tight().epsilons(part, [budget.delta])[0])
            for part in (line.part, Repeat(line.part, line.count))
        )
        has_capacity = index < MAX_CAPACITY_LINES
        # Unlike some grids, the capacity is always computed with the bounds for upper envelopes:
        # they may lower the cost of many more releases where they do not lower that of the plan.
        room = capacity_if_known(plan, line.part, budget) if has_capacity else None
        yield LineCost(line, epsilon_of_one, epsilon_of_all, room)
        on_step(cells_of_room if has_capacity else 0)


def what_if(
    lines: Sequence[PlanLine],
    budget: Budget,
    on_step: ProgressCallback = lambda steps: None,
    changed_line: int | None = None,
) -> WhatIf:
    """Return the grid; ``on_step`` is called after every different cell."""
    deltas, noise_factors = _delta_axis(budget), _noise_axis(lines)
    # The bounds for upper envelopes make each cell slower, so cells use them only if they lower the
    # plan's own epsilon at two deltas: the largest, and the budget's, or if that is 0 the smallest
    # above it.  Without them a cell may be larger than it could be; it is still an upper bound.
    with_envelopes = _envelopes_help(plan_of(lines), (deltas[-1], budget.delta or deltas[1]))
    cells = {_cell_key(lines, 1.0, 1.0, changed_line): _exact_cell(plan_of(lines), deltas)}
    for key, factors in _distinct_cells(lines, changed_line).items():
        if key not in cells:
            cells[key] = _cell(lines, *factors, changed_line, deltas, with_envelopes)
        on_step(1)
    nothing = (math.nan,) * len(deltas)
    rows = tuple(
        tuple(
            cells.get(_cell_key(lines, noise_factor, count_factor, changed_line), nothing)
            for count_factor in COUNT_FACTORS
        )
        for noise_factor in noise_factors
    )
    releases = tuple(
        sum(_cell_key(lines, 1.0, count_factor, changed_line)[1]) for count_factor in COUNT_FACTORS
    )
    return WhatIf(noise_factors, COUNT_FACTORS, deltas, releases, rows, changed_line)


def _cell_key(
    lines: Sequence[PlanLine], noise_factor: float, count_factor: float, changed_line: int | None
) -> tuple[float, tuple[int, ...]]:
    """Return the noise factor of a cell, and the counts of its lines."""
    return noise_factor, tuple(
        scaled_count(line.count, count_factor) if changed_line in (None, index) else line.count
        for index, line in enumerate(lines)
    )


def _distinct_cells(
    lines: Sequence[PlanLine], changed_line: int | None
) -> dict[tuple[float, tuple[int, ...]], tuple[float, float]]:
    """Return the factors of each different cell: small counts, rounded up, are equal at several.

    Noise that the line does not have is changed in no cell.
    """
    part = None if changed_line is None else lines[changed_line].part
    is_fixed = part is not None and not has_noise_scale(part)
    noise_factors = (1.0,) if is_fixed else _noise_axis(lines)
    return {
        _cell_key(lines, noise_factor, count_factor, changed_line): (noise_factor, count_factor)
        for noise_factor in noise_factors
        for count_factor in COUNT_FACTORS
    }


def _cell(
    lines: Sequence[PlanLine],
    noise_factor: float,
    count_factor: float,
    changed_line: int | None,
    deltas: Sequence[float],
    with_envelopes: bool,
) -> tuple[float, ...]:
    """Return the epsilon of one cell at each delta, NaN where there is no plan or no bound."""
    try:
        plan = plan_of(lines, noise_factor, count_factor, changed_line)
        return tuple(Tight().epsilons(plan, deltas, with_envelopes=with_envelopes).tolist())
    except (ParameterError, UnsupportedPlan):  # a mechanism that has no such noise, or no bound
        return (math.nan,) * len(deltas)


@functools.lru_cache(maxsize=1)  # every grid of a page holds it
def _exact_cell(plan: Plan, deltas: tuple[float, ...]) -> tuple[float, ...]:
    """Return the epsilon of the plan itself at each delta."""
    return tuple(Tight().epsilon(plan, delta) for delta in deltas)


@functools.lru_cache(maxsize=1)
def _envelopes_help(plan: Plan, deltas: tuple[float, ...]) -> bool:
    """Return whether the bounds for upper envelopes are worth their time at one of the deltas.

    An upper envelope is a loss above those of many neighbouring pairs, which no pair need attain;
    `Tight` has more bounds for such a loss.
    """
    both_directions = directions(plan)
    losses = [
        loss for direction in both_directions for loss, _ in losses_of_items([*direction.losses()])
    ]
    if not any(loss.numerics.is_upper_envelope for loss in losses):
        return False
    without = Tight().epsilons(plan, deltas, with_envelopes=False)
    return bool(np.any(Tight().epsilons(plan, deltas) < (1 - ENVELOPE_GAIN) * without))


def _noise_axis(lines: Sequence[PlanLine]) -> tuple[float, ...]:
    """Return the factors of the noise: 1 alone where no part has noise to scale."""
    return NOISE_FACTORS if any(has_noise_scale(line.part) for line in lines) else (1.0,)


def _delta_axis(budget: Budget) -> tuple[float, ...]:
    """Return the deltas of a page, the budget's own among them."""
    return tuple(sorted({*SHOWN_DELTA_AXIS, budget.delta}))
