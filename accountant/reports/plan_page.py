"""The page of a plan: its cost against a budget, alternatives, and what they mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, final

from accountant.formats.plan_json import to_json
from accountant.formatting import format_remaining, format_short, format_upper
from accountant.planning.capacity import CAPACITY_CAP
from accountant.planning.interpretation import explanation
from accountant.reports.html_document import render
from accountant.reports.plan_summary import MAX_CAPACITY_LINES, PlanSummary
from accountant.reports.svg_axes import Axes, padded_range
from accountant.reports.svg_figures import change_figure, curves_figure, epsilon_axes

SHOWN_DELTAS = (1e-12, 1e-9, 1e-6, 1e-3)


@final
@dataclass(frozen=True, slots=True)
class Slider:
    """A value that a reader can change: all values in order, and the index of the plan's own."""

    id: str
    label: str
    values: Sequence[float]
    index: int
    unit: str


def plan_page(summary: PlanSummary, title: str, command_line: str = "") -> str:
    """Return the page as HTML; ``command_line`` is the command that makes it again."""
    grid, budget = summary.grid, summary.budget
    (i, j), here = grid.plan_index, summary.budget_delta_index
    axes = _axes(summary)
    sliders = (
        Slider("noise", "noise", grid.noise_factors, i, "times as much noise"),
        Slider("often", "number", grid.count_factors, j, "times as many releases"),
        Slider("delta", "delta", grid.deltas, here, "delta"),
    )
    shown = [k for k, delta in enumerate(grid.deltas) if delta in SHOWN_DELTAS or k == here]
    return render(
        "plan.html", summary=summary, title=title, command_line=command_line, sliders=sliders,
        left=format_remaining(budget.epsilon, summary.epsilon), meaning=_meaning(summary),
        curves=curves_figure(grid.deltas, summary.curves, budget), shown_deltas=shown,
        change=change_figure(grid.deltas, grid.epsilon[i][j], axes, budget),
        max_lines=MAX_CAPACITY_LINES, capacity=_format_capacity, ratio=_format_ratio,
        version=version("dp-attest"), json_lines=to_json(summary.plan).splitlines(),
        data=_data(summary, sliders, axes),
    )  # fmt: skip


def _meaning(summary: PlanSummary) -> str:
    if math.isfinite(summary.epsilon):
        return explanation(summary.epsilon, summary.budget.delta, summary.plan.relation)
    return f"Nothing: at delta {format_short(summary.budget.delta)} it is infinite."


def _format_capacity(capacity: int | None) -> str:
    if capacity is None:
        return "–"
    return f"{capacity:,}" if capacity < CAPACITY_CAP else f"over {CAPACITY_CAP:,}"


def _format_ratio(value: float, least: float) -> str:
    known = 0 < value < math.inf and 0 < least < math.inf
    return f"{value / least:.2f}" if known else "–"


def _axes(summary: PlanSummary) -> Axes[float]:
    """Return axes that include the budget, the plan, and a factor of 20 around either."""
    i, j = summary.grid.plan_index
    near = [value for value in summary.grid.epsilon[i][j] if 0 < value < math.inf]
    kept = [*near, summary.budget.epsilon]
    low, high = padded_range(kept)
    every = (value for row in summary.grid.epsilon for cell in row for value in cell)
    wide = [value for value in every if max(low / 8, 1e-300) <= value <= 8 * high]
    return epsilon_axes(summary.grid.deltas, [*kept, *wide])


def _data(summary: PlanSummary, sliders: Sequence[Slider], axes: Axes[float]) -> dict[str, Any]:
    """Return the values for the script, by the ids of the sliders."""
    grid, budget = summary.grid, summary.budget
    fits = [
        ["".join("1" if value <= budget.epsilon else "0" for value in cell) for cell in row]
        for row in grid.epsilon
    ]
    return {
        **{one.id: one.values for one in sliders},
        "words": {one.id: [format_short(x) for x in one.values] for one in sliders},
        "releases": grid.releases,
        "epsilon": [[[format_upper(x) for x in cell] for cell in row] for row in grid.epsilon],
        "fits": fits,
        "here": [one.index for one in sliders],
        "budget": budget.epsilon,
        "axes": axes.as_data(),
    }
