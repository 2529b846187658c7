"""The tables of a plan's page: they say everything without a script."""

from __future__ import annotations

import math

from accountant.formatting import escape_html, format_short, format_upper
from accountant.planning.capacity import CAPACITY_CAP
from accountant.reports.plan_summary import MAX_CAPACITY_LINES, PlanSummary

SHOWN_DELTAS = (1e-12, 1e-9, 1e-6, 1e-3)
FITS_MARK = "<span class=mark aria-label='fits'>✓</span>"


def change_table(summary: PlanSummary) -> str:
    """Epsilon over noise and number, at one delta; a script moves the delta."""
    grid, budget = summary.grid, summary.budget
    head = "".join(
        f"<th scope=col class=number>{format_short(often)} ×<small>{releases:,}</small></th>"
        for often, releases in zip(grid.count_factors, grid.releases, strict=True)
    )
    rows = []
    for i, noise in enumerate(grid.noise_factors):
        cells = []
        for j, values in enumerate(grid.epsilon[i]):
            value, here = values[summary.budget_delta_index], (i, j) == grid.plan_index
            mark = FITS_MARK if value <= budget.epsilon else ""
            kind = "number fits" if mark else "number"
            kind += " here" if here else ""
            cells.append(f"<td class='{kind}'>{format_upper(value)}{mark}</td>")
        rows.append(
            f"<tr><th scope=row class=number>{format_short(noise)} ×</th>{''.join(cells)}</tr>"
        )
    caption = (
        f"Epsilon at delta <span id=table-delta>{format_short(budget.delta)}</span>, by "
        f"how much noise "
        "(down) and how many releases (across, in all underneath). "
        f"{FITS_MARK} within the budget of {format_short(budget.epsilon)}; framed: the plan."
    )
    return scrollable(
        f"<table class=grid id=grid><caption>{caption}</caption><thead><tr>"
        f"<th scope=col>noise</th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>",
        "table of noise and number",
    )


def lines_table(summary: PlanSummary) -> str:
    """What is planned, what it costs, and how many more would fit."""
    rows, erring = [], any(cost.line.error is not None for cost in summary.costs)
    for cost in summary.costs:
        error = f"<td class=number>{_error(cost.line.error)}</td>" if erring else ""
        name = f"<b>{escape_html(cost.line.name)}</b> " if cost.line.name else ""
        rows.append(
            f"<tr><th scope=row>{name}<code>{escape_html(cost.line.part)}</code></th>"
            f"{error}<td class=number>{cost.line.count:,}</td>"
            f"<td class=number>{format_upper(cost.epsilon_of_one)}</td>"
            f"<td class=number>{format_upper(cost.epsilon_of_all)}</td>"
            f"<td class=number>{_format_capacity(cost.capacity)}</td></tr>"
        )
    delta = format_short(summary.budget.delta)
    adding = ". They do not add up: together, releases cost less than their sum"
    errors = " Error: of one answer, in the units of its query."
    adding = adding if summary.budget.delta else ", where they add up"
    beyond = f" Only the first {MAX_CAPACITY_LINES} kinds were asked how many more fit."
    caption = (
        f"Epsilons at delta {delta}{adding}. Room for more: releases of that kind alone that "
        f"would still fit beside the whole plan.{errors if erring else ''}"
        f"{beyond if len(summary.costs) > MAX_CAPACITY_LINES else ''}"
    )
    head = "".join(
        f"<th scope=col class=number>{words}</th>"
        for words in (
            *(["error"] if erring else []),
            "times",
            "one costs",
            "all of these cost",
            "room for more",
        )
    )
    return scrollable(
        f"<table class=lines><caption>{caption}</caption><thead><tr><th scope=col>release</th>"
        f"{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>",
        "table of the plan",
    )


def accountants_table(summary: PlanSummary) -> str:
    """Every accountant's epsilon at a few deltas, and how many times the least it is."""
    deltas, budget = summary.grid.deltas, summary.budget
    some = [
        i
        for i, delta in enumerate(deltas)
        if delta in SHOWN_DELTAS or i == summary.budget_delta_index
    ]

    def cell_class(i: int) -> str:
        return "number here" if i == summary.budget_delta_index else "number"

    head = "".join(
        f"<th scope=col class='{cell_class(i)}'>{format_short(deltas[i])}</th>" for i in some
    )
    least = summary.epsilon
    rows = []
    for place, (name, curve) in enumerate(summary.curves.items()):
        cells = "".join(f"<td class='{cell_class(i)}'>{format_upper(curve[i])}</td>" for i in some)
        rows.append(
            f"<tr><th scope=row><span class='key c{place}'></span>{name}</th>{cells}"
            f"<td class=number>{_ratio(curve[summary.budget_delta_index], least)}</td></tr>"
        )
    caption = (
        f"Epsilon at several deltas; the budget's is {format_short(budget.delta)}. "
        "–: this accountant has no bound for such a plan."
    )
    return scrollable(
        f"<table class=by><caption>{caption}</caption><thead><tr><th scope=col>delta</th>{head}"
        f"<th scope=col class=number>times Tight</th></tr></thead><tbody>{''.join(rows)}</tbody>"
        "</table>",
        "table of accountants",
    )


def scrollable(table: str, words: str) -> str:
    """A table that scrolls sideways where it must, also by the keyboard."""
    return f"<div class=wide role=region tabindex=0 aria-label='{words}'>{table}</div>"


def _error(error: float | None) -> str:
    return "–" if error is None else format_upper(error)


def _format_capacity(room: int | None) -> str:
    if room is None:
        return "–"
    return f"{room:,}" if room < CAPACITY_CAP else f"over {CAPACITY_CAP:,}"


def _ratio(value: float, least: float) -> str:
    if not (0 < value < math.inf and 0 < least < math.inf):
        return "–"
    return f"{value / least:.2f}"
