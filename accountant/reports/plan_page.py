"""The HTML page of a plan: its cost against a budget, alternatives, and what they mean.

`PlanSummary` has all numbers.  This file makes of them what the template `plan.html` shows: curves,
sliders with which a reader changes noise, counts and delta, and tables to save.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, final

from accountant.formatting import format_remaining, format_short, format_upper
from accountant.planning.capacity import CAPACITY_CAP
from accountant.planning.interpretation import explanation
from accountant.reports.html_document import csv_address, render
from accountant.reports.people_picture import Guesses
from accountant.reports.plan_summary import MAX_CAPACITY_LINES, PlanSummary
from accountant.reports.svg_axes import Axes, padded_range
from accountant.reports.svg_figures import change_figure, curves_figure, epsilon_axes
from accountant.serialisation.plan_json import to_json

# Deltas that have a column in the table of curves, next to the budget's own.  They are compared
# with the deltas of a page as floats, which are read from the same decimal texts.
SHOWN_DELTAS = (1e-12, 1e-9, 1e-6, 1e-3)


@final
@dataclass(frozen=True, slots=True)
class Slider:
    """A value that a reader of the page can change."""

    id: str  # the name by which the script of the page knows it
    label: str
    values: Sequence[float]  # all positions, in order
    index: int  # the position of the plan itself
    unit: str  # what is written behind the value


def plan_page(summary: PlanSummary, title: str, command_line: str = "") -> str:
    """Return the page as HTML; ``command_line`` is the command that makes it again.

    The template gets numbers, finished figures, and two functions to write numbers with:
    ``capacity`` and ``ratio``.
    """
    grid, budget = summary.grid, summary.budget
    (i, j), here = grid.plan_index, summary.budget_delta_index
    axes = _axes(summary)
    sliders = (
        Slider("noise", "noise", grid.noise_factors, i, "times as much noise"),
        Slider("often", "number", grid.count_factors, j, "times as many releases"),
        Slider("delta", "delta", grid.deltas, here, "delta"),
    )
    shown = [k for k, delta in enumerate(grid.deltas) if delta in SHOWN_DELTAS or k == here]
    if math.isfinite(summary.epsilon):
        plan = summary.plan
        meaning = explanation(summary.epsilon, budget.delta, plan.relation, plan=plan)
    else:
        meaning = f"Nothing: at delta {format_short(budget.delta)} it is infinite."

    # Both write a dash where there is no number.
    def capacity(releases: int | None) -> str:
        if releases is None:
            return "–"
        return f"{releases:,}" if releases < CAPACITY_CAP else f"over {CAPACITY_CAP:,}"

    def ratio(value: float, smallest: float) -> str:
        is_finite = 0 < value < math.inf and 0 < smallest < math.inf
        return f"{value / smallest:.2f}" if is_finite else "–"

    return render(
        "plan.html", summary=summary, title=title, command_line=command_line, sliders=sliders,
        left=format_remaining(budget.epsilon, summary.epsilon), meaning=meaning,
        guesses=Guesses(summary.rates[0].upper), shown_deltas=shown,
        curves=curves_figure(grid.deltas, summary.curves, budget),
        change=change_figure(grid.deltas, grid.plan_epsilons, axes, budget),
        max_lines=MAX_CAPACITY_LINES, capacity=capacity, ratio=ratio,
        version=version("dp-attest"), json_lines=to_json(summary.plan).splitlines(),
        data=_data(summary, sliders, axes), stem=Path(title).stem,
        **_saved_tables(summary),
    )  # fmt: skip


def _saved_tables(summary: PlanSummary) -> dict[str, str]:
    """Return the addresses of tables that a reader can save as CSV."""
    line_rows: list[list[object]] = [
        ["name", "release", "error", "times", "one costs", "all cost", "room for more"]
    ]
    for cost in summary.costs:
        line, costs = cost.line, (cost.epsilon_of_one, cost.epsilon_of_all, cost.capacity)
        line_rows.append([line.name, repr(line.part), line.error, line.count, *costs])
    # The cells of every grid at the budget's delta: the first grid changes all lines, each of the
    # others one line, which gives it its name.
    grid_rows: list[list[object]] = [
        ["line", "noise", "number", "releases", "delta", "epsilon", "fits"]
    ]
    budget, delta_index = summary.budget, summary.budget_delta_index
    for grid in (summary.grid, *summary.line_grids):
        changed = None if grid.changed_line is None else summary.costs[grid.changed_line].line
        name = "all" if changed is None else changed.name or repr(changed.part)
        for noise, row in zip(grid.noise_factors, grid.epsilon, strict=True):
            for number, releases, cell in zip(grid.count_factors, grid.releases, row, strict=True):
                cost_and_fit = (cell[delta_index], cell[delta_index] <= budget.epsilon)
                grid_rows.append([name, noise, number, releases, budget.delta, *cost_and_fit])
    curve_rows: list[list[object]] = [["accountant", *summary.grid.deltas]]
    curve_rows += [[name, *curve] for name, curve in summary.curves.items()]
    return {
        "saved_lines": csv_address(line_rows),
        "saved_grid": csv_address(grid_rows),
        "saved_curves": csv_address(curve_rows),
    }


def _axes(summary: PlanSummary) -> Axes[float]:
    """Return axes that include the budget, the plan's epsilons, and values of grids near them.

    A value of a grid is near if it is at most a factor of 8 outside the range of the budget and the
    plan's epsilons.  A larger factor would show more what-ifs, and flatten the plan's own curve.
    """
    plan_epsilons = [value for value in summary.grid.plan_epsilons if 0 < value < math.inf]
    shown = [*plan_epsilons, summary.budget.epsilon]
    low, high = padded_range(shown)
    grids = (summary.grid, *summary.line_grids)
    grid_values = (
        value for grid in grids for row in grid.epsilon for cell in row for value in cell
    )
    # values of 0, and those too small for a logarithm, have no place on the axis
    near = [value for value in grid_values if max(low / 8, 1e-300) <= value <= 8 * high]
    return epsilon_axes(summary.grid.deltas, [*shown, *near])


def _data(summary: PlanSummary, sliders: Sequence[Slider], axes: Axes[float]) -> dict[str, Any]:
    """Return the values for the script of the page, by the ids of the sliders.

    Of each grid these are the printed epsilons, and for each of these a digit: 1 if the budget
    admits it, else 0.
    """
    grids = [
        {
            "releases": grid.releases,
            "epsilon": [[[format_upper(x) for x in cell] for cell in row] for row in grid.epsilon],
            "fits": [
                ["".join(str(int(x <= summary.budget.epsilon)) for x in cell) for cell in row]
                for row in grid.epsilon
            ],
        }
        for grid in (summary.grid, *summary.line_grids)
    ]
    return {
        **{slider.id: slider.values for slider in sliders},
        "words": {slider.id: [format_short(x) for x in slider.values] for slider in sliders},
        "grids": grids,
        "here": [slider.index for slider in sliders],
        "budget": summary.budget.epsilon,
        "axes": axes.as_data(),
    }
