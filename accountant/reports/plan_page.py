"""The page of a plan: what it costs of a budget, what else could be done, what that means."""

from __future__ import annotations

import math
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

from accountant.formats.plan_json import to_json
from accountant.formatting import escape_html, format_remaining, format_short, format_upper
from accountant.planning.interpretation import explanation
from accountant.reports.html_document import html_page
from accountant.reports.html_tables import accountants_table, change_table, lines_table
from accountant.reports.plan_summary import PlanSummary
from accountant.reports.svg_axes import Axes, padded_range
from accountant.reports.svg_figures import budget_bar, change_figure, curves_figure


def plan_page(summary: PlanSummary, title: str, command_line: str = "") -> str:
    """The page as HTML; ``command_line`` is the command line that makes it again."""
    axes = _axes(summary)
    body = [
        *_head(summary, title), *_meaning(summary), *_change(summary, axes), *_lines(summary),
        *_accountants(summary), *_colophon(summary, command_line),
    ]  # fmt: skip
    return html_page(f"{title}: privacy budget", body, _data(summary, axes))


def _head(summary: PlanSummary, title: str) -> Iterator[str]:
    epsilon, budget = summary.epsilon, summary.budget
    fits = epsilon <= budget.epsilon
    left = format_remaining(budget.epsilon, epsilon) if fits else "nothing"
    verdict = "The plan fits the budget" if fits else "The plan does not fit the budget"
    releases = summary.grid.releases[summary.grid.plan_index[1]]
    tiles = [
        (
            "budget",
            f"{format_short(budget.epsilon)}",
            f"epsilon at delta {format_short(budget.delta)}",
        ),
        ("the plan costs", format_upper(epsilon), f"of it, in {releases:,} releases"),
        ("what remains", left, "epsilon" if fits else "it costs too much"),
    ]
    yield f"<header><p class=over-title>Privacy budget</p><h1>{escape_html(title)}</h1>"
    yield f"<p class='verdict {'good' if fits else 'bad'}'>{verdict}.</p></header>"
    yield "<div class=tiles>"
    for name, value, unit in tiles:
        yield f"<div><span>{name}</span><b>{value}</b><span>{unit}</span></div>"
    yield f"</div>{budget_bar(epsilon, budget.epsilon)}"


def _meaning(summary: PlanSummary) -> Iterator[str]:
    delta, words = (
        summary.budget.delta,
        f"Nothing: at delta {format_short(summary.budget.delta)} it is infinite.",
    )
    if math.isfinite(summary.epsilon):
        words = explanation(summary.epsilon, delta, summary.plan.relation)
    yield "<section aria-labelledby=means><h2 id=means>What it means for a person in the data</h2>"
    yield f"<p class=meaning>{escape_html(words)}</p></section>"


def _change(summary: PlanSummary, axes: Axes) -> Iterator[str]:
    grid, budget = summary.grid, summary.budget
    i, j = grid.plan_index
    sliders = [
        ("noise", "noise", grid.noise_factors, i, "times as much noise"),
        ("often", "number", grid.count_factors, j, "times as many releases"),
        ("delta", "delta", grid.deltas, summary.budget_delta_index, "delta"),
    ]
    yield "<section aria-labelledby=change><h2 id=change>What if</h2>"
    yield "<div id=try hidden><div class=sliders role=group aria-label='What to change'>"
    for name, words, values, here, unit in sliders:
        fixed = " disabled" if len(values) == 1 else ""
        yield (
            f"<div class=slider><label for={name}>{words}</label>"
            f"<input type=range id={name} min=0 max={len(values) - 1} step=1 value={here} "
            f"aria-valuetext='{format_short(values[here])} {unit}'{fixed}>"
            f"<input type=text inputmode=decimal id={name}-typed "
            f"value='{format_short(values[here])}' "
            f"aria-label='{unit}, typed' autocomplete=off spellcheck=false{fixed}></div>"
        )
    yield "<p><button type=button id=back>Back to the plan</button></p></div>"
    yield "<div class=outcome><p class=said id=said aria-live=polite></p>"
    yield f"{budget_bar(summary.epsilon, budget.epsilon, 'bar')}<dl>"
    for name, words in (
        ("epsilon", "epsilon"), ("rest", "remains"), ("releases", "releases"),
        ("factor", "likelier, at most"), ("guess", "guessed, at most"),
    ):  # fmt: skip
        yield f"<div><dt>{words}</dt><dd id={name}></dd></div>"
    yield (
        "</dl><p class=note>Likelier: what anybody may conclude about a person, than without that "
        "person's record, delta aside. Guessed: by the best guess, right half of the time before."
        "</p><p class=note id=note role=status></p></div>"
    )
    yield change_figure(grid.deltas, grid.epsilon[i][j], axes, (budget.epsilon, budget.delta))
    yield "</div><p id=still>The sliders need JavaScript; the table does not.</p>"
    yield change_table(summary)
    yield "</section>"


def _lines(summary: PlanSummary) -> Iterator[str]:
    yield "<section aria-labelledby=plan><h2 id=plan>The plan</h2>"
    yield lines_table(summary)
    yield "</section>"


def _accountants(summary: PlanSummary) -> Iterator[str]:
    budget = summary.budget
    yield "<section aria-labelledby=by><h2 id=by>By every accountant</h2>"
    yield (
        "<p>Each gives an upper bound that holds; the least of them is the one to report. "
        "Tight is exact where one pair of neighbours is the worst of all, and rounded up.</p>"
    )
    yield curves_figure(summary.grid.deltas, summary.curves, (budget.epsilon, budget.delta))
    yield accountants_table(summary)
    yield "</section>"


def _colophon(summary: PlanSummary, command_line: str) -> Iterator[str]:
    yield "<footer><h2>How this was made</h2>"
    yield (
        "<p>Every epsilon is an upper bound, computed before this page was written and rounded up; "
        "the page only looks them up. Between two values of a slider it shows the one with the "
        "larger epsilon. Counts are rounded up to whole releases. The bound holds for a plan that "
        "is fixed before anybody sees an answer. This page was made without looking at data, asks "
        "nothing of any server, and can be kept or passed on as it is.</p>"
    )
    made = f"Made by dp-attest {version('dp-attest')}"
    command = f" with <code>{escape_html(command_line)}</code>" if command_line else ""
    yield f"<p>{escape_html(made)}{command}.</p>"
    # the line breaks of JSON are its layout, and its words hold none
    lines = "\n".join(escape_html(line) for line in to_json(summary.plan).splitlines())
    yield "<details><summary>the plan as JSON</summary>"
    yield f"<pre tabindex=0 aria-label='the plan as JSON'>{lines}</pre></details></footer>"


def _axes(summary: PlanSummary) -> Axes:
    """Axes that hold the budget, the plan, and what is within a factor of 20 of either."""
    i, j = summary.grid.plan_index
    near = [value for value in summary.grid.epsilon[i][j] if 0 < value < math.inf]
    kept = [*near, summary.budget.epsilon]
    low, high = padded_range(kept)
    wide = [
        value
        for row in summary.grid.epsilon
        for cell in row
        for value in cell
        if max(low / 8, 1e-300) <= value <= 8 * high
    ]
    deltas = [delta for delta in summary.grid.deltas if delta > 0]
    return Axes((deltas[0], deltas[-1]), padded_range([*kept, *wide]))


def _data(summary: PlanSummary, axes: Axes) -> dict[str, Any]:
    grid, budget = summary.grid, summary.budget
    cells = [[[format_upper(value) for value in cell] for cell in row] for row in grid.epsilon]
    fits = [
        ["".join("1" if value <= budget.epsilon else "0" for value in cell) for cell in row]
        for row in grid.epsilon
    ]
    return {
        "noise": grid.noise_factors,
        "often": grid.count_factors,
        "delta": grid.deltas,
        "words": {
            "noise": [format_short(x) for x in grid.noise_factors],
            "often": [format_short(x) for x in grid.count_factors],
            "delta": [format_short(x) for x in grid.deltas],
        },
        "releases": grid.releases,
        "epsilon": cells,
        "fits": fits,
        "here": [*grid.plan_index, summary.budget_delta_index],
        "budget": budget.epsilon,
        "axes": axes.as_data(),
    }
