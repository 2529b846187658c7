"""All numbers of a plan's page, computed before the page is written.

A page shows a plan as lines: what each costs, what the plan costs by every accountant, and grids of
its epsilon with other noise, counts and deltas, which are the values behind the page's sliders.

A *cell* of a grid is the plan with its noise multiplied by one factor and its counts by another; it
has an epsilon for each delta.  One grid changes all lines together, others one line alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from accountant.accountants.attack_rates import AttackRate, attack_rates
from accountant.accountants.budget import Budget
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
ProgressCallback = Callable[[], None]


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
    """Return how often `summarise` will call ``on_step``."""
    grids = 1 + len(_lines_with_grid(lines))
    cells = len(_noise_axis(lines)) * len(COUNT_FACTORS)
    return grids * cells + len(lines) + len(ALL_ACCOUNTANTS)


def summarise(
    lines: Sequence[PlanLine],
    budget: Budget,
    on_step: ProgressCallback = lambda: None,
    proof: CheckedProof | None = None,
) -> PlanSummary:
    """Return the numbers of a page; ``on_step`` is called `step_count` times."""
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


def _lines_with_grid(lines: Sequence[PlanLine]) -> range:
    """Return the lines that have a grid of their own: none where there is one line only."""
    return range(min(len(lines), MAX_LINE_GRIDS) if len(lines) > 1 else 0)


def _costs(
    plan: Plan, lines: Sequence[PlanLine], budget: Budget, on_step: ProgressCallback
) -> Iterator[LineCost]:
    """Yield what each line costs, and call ``on_step`` after it."""
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
        on_step()


def what_if(
    lines: Sequence[PlanLine],
    budget: Budget,
    on_step: ProgressCallback = lambda: None,
    changed_line: int | None = None,
) -> WhatIf:
    """Return the grid; ``on_step`` is called after every cell."""
    deltas, noise_factors = _delta_axis(budget), _noise_axis(lines)
    whole_plan = plan_of(lines)
    # The bounds for upper envelopes make each cell slower, so cells use them only if they lower the
    # plan's own epsilon at two deltas: the largest, and the budget's, or if that is 0 the smallest
    # above it.  Without them a cell may be larger than it could be; it is still an upper bound.
    with_envelopes = _envelopes_help(whole_plan, (deltas[-1], budget.delta or deltas[1]))

    def counts(count_factor: float) -> tuple[int, ...]:
        scaled = (scaled_count(line.count, count_factor) for line in lines)
        return tuple(
            count if changed_line in (None, index) else lines[index].count
            for index, count in enumerate(scaled)
        )

    # Small counts are equal at several factors, because they are rounded up.  Their cells are
    # computed once.
    cells: dict[tuple[object, ...], tuple[float, ...]] = {
        (1.0, counts(1.0)): tuple(Tight().epsilon(whole_plan, delta) for delta in deltas)
    }
    rows = []
    for noise_factor in noise_factors:
        row = []
        for count_factor in COUNT_FACTORS:
            key = (noise_factor, counts(count_factor))
            if key not in cells:
                cells[key] = _cell(
                    lines, noise_factor, count_factor, changed_line, deltas, with_envelopes
                )
            row.append(cells[key])
            on_step()
        rows.append(tuple(row))
    releases = tuple(sum(counts(count_factor)) for count_factor in COUNT_FACTORS)
    return WhatIf(noise_factors, COUNT_FACTORS, deltas, releases, tuple(rows), changed_line)


def _cell(
    lines: Sequence[PlanLine],
    noise_factor: float,
    count_factor: float,
    changed_line: int | None,
    deltas: Sequence[float],
    with_envelopes: bool,
) -> tuple[float, ...]:
    """Return the epsilon of one cell at each delta, NaN where there is no plan or no bound."""
    nothing = (math.nan,) * len(deltas)
    part = None if changed_line is None else lines[changed_line].part
    if noise_factor != 1 and part is not None and not has_noise_scale(part):
        return nothing
    try:
        plan = plan_of(lines, noise_factor, count_factor, changed_line)
    except ParameterError:  # a mechanism that has no such noise
        return nothing
    try:
        return tuple(Tight().epsilons(plan, deltas, with_envelopes=with_envelopes).tolist())
    except UnsupportedPlan:
        return nothing


def _envelopes_help(plan: Plan, deltas: Sequence[float]) -> bool:
    """Return whether the bounds for upper envelopes lower the plan's epsilon at one of the deltas.

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
    return not np.array_equal(Tight().epsilons(plan, deltas), without)


def _noise_axis(lines: Sequence[PlanLine]) -> tuple[float, ...]:
    """Return the factors of the noise: 1 alone where no part has noise to scale."""
    return NOISE_FACTORS if any(has_noise_scale(line.part) for line in lines) else (1.0,)


def _delta_axis(budget: Budget) -> tuple[float, ...]:
    """Return the deltas of a page, the budget's own among them."""
    return tuple(sorted({*SHOWN_DELTA_AXIS, budget.delta}))
