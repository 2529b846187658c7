"""The page of a plan: what it costs of a budget, what else could be done, what that means."""

from __future__ import annotations

import math
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

from accountant.formats.plan_json import to_json
from accountant.formatting import above, rest, small, text
from accountant.planning.interpretation import explanation
from accountant.reports.html_document import document
from accountant.reports.html_tables import accountants_table, change_table, lines_table
from accountant.reports.plan_summary import Telling
from accountant.reports.svg_axes import Axes, surrounding
from accountant.reports.svg_figures import change_figure, curves_figure, meter


def plan_page(told: Telling, title: str, again: str = "") -> str:
    """The page as HTML; ``again`` is the command line that makes it again."""
    axes = _axes(told)
    body = [
        *_head(told, title), *_meaning(told), *_change(told, axes), *_lines(told),
        *_accountants(told), *_colophon(told, again),
    ]  # fmt: skip
    return document(f"{title}: privacy budget", body, _data(told, axes))


def _head(told: Telling, title: str) -> Iterator[str]:
    epsilon, budget = told.epsilon, told.budget
    fits = epsilon <= budget.epsilon
    left = rest(budget.epsilon, epsilon) if fits else "nothing"
    verdict = "The plan fits the budget" if fits else "The plan does not fit the budget"
    releases = told.grid.releases[told.grid.here[1]]
    tiles = [
        ("budget", f"{small(budget.epsilon)}", f"epsilon at delta {small(budget.delta)}"),
        ("the plan costs", above(epsilon), f"of it, in {releases:,} releases"),
        ("what remains", left, "epsilon" if fits else "it costs too much"),
    ]
    yield f"<header><p class=over-title>Privacy budget</p><h1>{text(title)}</h1>"
    yield f"<p class='verdict {'good' if fits else 'bad'}'>{verdict}.</p></header>"
    yield "<div class=tiles>"
    for name, value, unit in tiles:
        yield f"<div><span>{name}</span><b>{value}</b><span>{unit}</span></div>"
    yield f"</div>{meter(epsilon, budget.epsilon)}"


def _meaning(told: Telling) -> Iterator[str]:
    delta, words = (
        told.budget.delta,
        f"Nothing: at delta {small(told.budget.delta)} it is infinite.",
    )
    if math.isfinite(told.epsilon):
        words = explanation(told.epsilon, delta, told.plan.relation)
    yield "<section aria-labelledby=means><h2 id=means>What it means for a person in the data</h2>"
    yield f"<p class=meaning>{text(words)}</p></section>"


def _change(told: Telling, axes: Axes) -> Iterator[str]:
    grid, budget = told.grid, told.budget
    i, j = grid.here
    sliders = [
        ("noise", "noise", grid.noise, i, "times as much noise"),
        ("often", "number", grid.often, j, "times as many releases"),
        ("delta", "delta", grid.deltas, told.at, "delta"),
    ]
    yield "<section aria-labelledby=change><h2 id=change>What if</h2>"
    yield "<div id=try hidden><div class=sliders role=group aria-label='What to change'>"
    for name, words, values, here, unit in sliders:
        fixed = " disabled" if len(values) == 1 else ""
        yield (
            f"<div class=slider><label for={name}>{words}</label>"
            f"<input type=range id={name} min=0 max={len(values) - 1} step=1 value={here} "
            f"aria-valuetext='{small(values[here])} {unit}'{fixed}>"
            f"<input type=text inputmode=decimal id={name}-typed value='{small(values[here])}' "
            f"aria-label='{unit}, typed' autocomplete=off spellcheck=false{fixed}></div>"
        )
    yield "<p><button type=button id=back>Back to the plan</button></p></div>"
    yield "<div class=outcome><p class=said id=said aria-live=polite></p>"
    yield f"{meter(told.epsilon, budget.epsilon, 'bar')}<dl>"
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
    yield change_table(told)
    yield "</section>"


def _lines(told: Telling) -> Iterator[str]:
    yield "<section aria-labelledby=plan><h2 id=plan>The plan</h2>"
    yield lines_table(told)
    yield "</section>"


def _accountants(told: Telling) -> Iterator[str]:
    budget = told.budget
    yield "<section aria-labelledby=by><h2 id=by>By every accountant</h2>"
    yield (
        "<p>Each gives an upper bound that holds; the least of them is the one to report. "
        "Tight is exact where one pair of neighbours is the worst of all, and rounded up.</p>"
    )
    yield curves_figure(told.grid.deltas, told.curves, (budget.epsilon, budget.delta))
    yield accountants_table(told)
    yield "</section>"


def _colophon(told: Telling, again: str) -> Iterator[str]:
    yield "<footer><h2>How this was made</h2>"
    yield (
        "<p>Every epsilon is an upper bound, computed before this page was written and rounded up; "
        "the page only looks them up. Between two values of a slider it shows the one with the "
        "larger epsilon. Counts are rounded up to whole releases. The bound holds for a plan that "
        "is fixed before anybody sees an answer. This page was made without looking at data, asks "
        "nothing of any server, and can be kept or passed on as it is.</p>"
    )
    made = f"Made by dp-attest {version('dp-attest')}"
    yield f"<p>{text(made)}{f' with <code>{text(again)}</code>' if again else ''}.</p>"
    # the line breaks of JSON are its layout, and its words hold none
    lines = "\n".join(text(line) for line in to_json(told.plan).splitlines())
    yield "<details><summary>the plan as JSON</summary>"
    yield f"<pre tabindex=0 aria-label='the plan as JSON'>{lines}</pre></details></footer>"


def _axes(told: Telling) -> Axes:
    """Axes that hold the budget, the plan, and what is within a factor of 20 of either."""
    i, j = told.grid.here
    near = [value for value in told.grid.epsilon[i][j] if 0 < value < math.inf]
    kept = [*near, told.budget.epsilon]
    low, high = surrounding(kept)
    wide = [
        value for row in told.grid.epsilon for cell in row for value in cell
        if max(low / 8, 1e-300) <= value <= 8 * high
    ]  # fmt: skip
    deltas = [delta for delta in told.grid.deltas if delta > 0]
    return Axes((deltas[0], deltas[-1]), surrounding([*kept, *wide]))


def _data(told: Telling, axes: Axes) -> dict[str, Any]:
    grid, budget = told.grid, told.budget
    cells = [[[above(value) for value in cell] for cell in row] for row in grid.epsilon]
    fits = [
        ["".join("1" if value <= budget.epsilon else "0" for value in cell) for cell in row]
        for row in grid.epsilon
    ]
    return {
        "noise": grid.noise, "often": grid.often, "delta": grid.deltas,
        "words": {
            "noise": [small(x) for x in grid.noise], "often": [small(x) for x in grid.often],
            "delta": [small(x) for x in grid.deltas],
        },
        "releases": grid.releases, "epsilon": cells, "fits": fits,
        "here": [*grid.here, told.at], "budget": budget.epsilon, "axes": axes.as_data(),
    }  # fmt: skip
