"""The tables of a plan's page: they say everything without a script."""

from __future__ import annotations

import math

from accountant.formatting import above, small, text
from accountant.planning.capacity import MOST
from accountant.reports.plan_summary import MOST_ROOMS, Telling

FEW = (1e-12, 1e-9, 1e-6, 1e-3)
FITS = "<span class=mark aria-label='fits'>✓</span>"


def change_table(told: Telling) -> str:
    """Epsilon over noise and number, at one delta; a script moves the delta."""
    grid, budget = told.grid, told.budget
    head = "".join(
        f"<th scope=col class=number>{small(often)} ×<small>{releases:,}</small></th>"
        for often, releases in zip(grid.often, grid.releases, strict=True)
    )
    rows = []
    for i, noise in enumerate(grid.noise):
        cells = []
        for j, values in enumerate(grid.epsilon[i]):
            value, here = values[told.at], (i, j) == grid.here
            mark = FITS if value <= budget.epsilon else ""
            kind = "number fits" if mark else "number"
            kind += " here" if here else ""
            cells.append(f"<td class='{kind}'>{above(value)}{mark}</td>")
        rows.append(f"<tr><th scope=row class=number>{small(noise)} ×</th>{''.join(cells)}</tr>")
    caption = (
        f"Epsilon at delta <span id=table-delta>{small(budget.delta)}</span>, by how much noise "
        "(down) and how many releases (across, in all underneath). "
        f"{FITS} within the budget of {small(budget.epsilon)}; framed: the plan."
    )
    return wide(
        f"<table class=grid id=grid><caption>{caption}</caption><thead><tr>"
        f"<th scope=col>noise</th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>",
        "table of noise and number",
    )


def lines_table(told: Telling) -> str:
    """What is planned, what it costs, and how many more would fit."""
    rows, erring = [], any(cost.line.error is not None for cost in told.costs)
    for cost in told.costs:
        error = f"<td class=number>{_error(cost.line.error)}</td>" if erring else ""
        name = f"<b>{text(cost.line.name)}</b> " if cost.line.name else ""
        rows.append(
            f"<tr><th scope=row>{name}<code>{text(cost.line.part)}</code></th>"
            f"{error}<td class=number>{cost.line.count:,}</td>"
            f"<td class=number>{above(cost.one)}</td>"
            f"<td class=number>{above(cost.alone)}</td>"
            f"<td class=number>{_room(cost.room)}</td></tr>"
        )
    delta = small(told.budget.delta)
    adding = ". They do not add up: together, releases cost less than their sum"
    errors = " Error: of one answer, in the units of its query."
    adding = adding if told.budget.delta else ", where they add up"
    beyond = f" Only the first {MOST_ROOMS} kinds were asked how many more fit."
    caption = (
        f"Epsilons at delta {delta}{adding}. Room for more: releases of that kind alone that "
        f"would still fit beside the whole plan.{errors if erring else ''}"
        f"{beyond if len(told.costs) > MOST_ROOMS else ''}"
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
    return wide(
        f"<table class=lines><caption>{caption}</caption><thead><tr><th scope=col>release</th>"
        f"{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>",
        "table of the plan",
    )


def accountants_table(told: Telling) -> str:
    """Every accountant's epsilon at a few deltas, and how many times the least it is."""
    deltas, budget = told.grid.deltas, told.budget
    some = [i for i, delta in enumerate(deltas) if delta in FEW or i == told.at]
    head = "".join(
        f"<th scope=col class='number{' here' if i == told.at else ''}'>{small(deltas[i])}</th>"
        for i in some
    )
    least = told.epsilon
    rows = []
    for place, (name, curve) in enumerate(told.curves.items()):
        cells = "".join(
            f"<td class='number{' here' if i == told.at else ''}'>{above(curve[i])}</td>"
            for i in some
        )
        rows.append(
            f"<tr><th scope=row><span class='key c{place}'></span>{name}</th>{cells}"
            f"<td class=number>{_ratio(curve[told.at], least)}</td></tr>"
        )
    caption = (
        f"Epsilon at several deltas; the budget's is {small(budget.delta)}. "
        "–: this accountant has no bound for such a plan."
    )
    return wide(
        f"<table class=by><caption>{caption}</caption><thead><tr><th scope=col>delta</th>{head}"
        f"<th scope=col class=number>times Tight</th></tr></thead><tbody>{''.join(rows)}</tbody>"
        "</table>",
        "table of accountants",
    )


def wide(table: str, words: str) -> str:
    """A table that scrolls sideways where it must, also by the keyboard."""
    return f"<div class=wide role=region tabindex=0 aria-label='{words}'>{table}</div>"


def _error(error: float | None) -> str:
    return "–" if error is None else above(error)


def _room(room: int | None) -> str:
    if room is None:
        return "–"
    return f"{room:,}" if room < MOST else f"over {MOST:,}"


def _ratio(value: float, least: float) -> str:
    if not (0 < value < math.inf and 0 < least < math.inf):
        return "–"
    return f"{value / least:.2f}"
