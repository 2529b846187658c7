"""The pages of a budget: their numbers are `Tight`'s, their words harmless, their files whole."""

import dataclasses
import math
from itertools import pairwise

import pytest
import typer

from accountant import (
    PLD,
    Budget,
    Sequential,
    Tight,
)
from accountant.cli.page import page
from accountant.formatting import (
    format_upper,
)
from accountant.reports.comparison import ALL_ACCOUNTANTS
from accountant.reports.plan_lines import PlanLine, lines_of, plan_of
from accountant.reports.plan_page import plan_page
from accountant.reports.plan_summary import (
    COUNT_FACTORS,
    NOISE_FACTORS,
    SHOWN_DELTA_AXIS,
    summarise,
)
from mechanisms import Gaussian, Laplace, RandomizedResponse
from tests.html_checks import Checked, harmless, saved_tables

HOSTILE = [
    "<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>", "\x1b[31mred\x1b[0m",
    "a\nb\r\tc", "right\u202eleft", "\u00a0nbsp", "=cmd()", "\x00", "]]>", "&lt;", "'\"><b>",
    "<!--", "\u2028",
]  # fmt: skip
BUDGET = Budget(2.0, 1e-6)
app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
app.command("page")(page)
app.command("other")(lambda: None)


@pytest.fixture(scope="module")
def summary():
    lines = [
        PlanLine(Laplace(scale=20.0), 20, "ages"), PlanLine(Gaussian(scale=15.0), 4),
        PlanLine(RandomizedResponse(k=2, keep=0.55), 1),
    ]  # fmt: skip
    return summarise(lines, BUDGET)


def test_the_numbers_of_the_plan_are_tights_own(summary):
    i, j = summary.grid.plan_index
    for delta, found in zip(summary.grid.deltas, summary.grid.epsilon[i][j], strict=True):
        assert found == Tight().epsilon(summary.plan, delta)
    assert summary.epsilon == Tight().epsilon(summary.plan, BUDGET.delta)


def test_every_cell_is_an_upper_bound_close_to_tight(summary):
    grid = summary.grid
    lines = [cost.line for cost in summary.costs]
    assert (grid.noise_factors, grid.count_factors, grid.deltas) == (
        NOISE_FACTORS,
        COUNT_FACTORS,
        SHOWN_DELTA_AXIS,
    )
    for i, j, k in [(0, 0, 0), (0, 6, 11 - 2), (10, 6, 3), (10, 0, 6), (3, 4, 5), (7, 2, 9)]:
        plan = plan_of(lines, grid.noise_factors[i], grid.count_factors[j])
        lower, upper = Tight().bracket(plan, grid.deltas[k])
        assert lower * (1 - 1e-12) <= grid.epsilon[i][j][k] <= upper * (1 + 3e-4)


def test_epsilon_moves_as_the_sliders_promise(summary):
    """Between grid points the page shows the neighbour it takes to be the more cautious one."""
    grid = summary.grid
    for i, row in enumerate(grid.epsilon):
        for j, cell in enumerate(row):
            assert all(a >= b * (1 - 1e-3) for a, b in pairwise(cell))
            for k, value in enumerate(cell):
                if i:
                    assert value <= grid.epsilon[i - 1][j][k] * (1 + 1e-3)
                if j:
                    assert value >= row[j - 1][k] * (1 - 1e-3)


def test_every_accountant_has_its_curve(summary):
    at = summary.budget_delta_index
    for one in ALL_ACCOUNTANTS:
        found = summary.curves[one.name]
        if isinstance(one, PLD):  # one grid for all deltas
            assert found[at] == pytest.approx(one.epsilon(summary.plan, BUDGET.delta), rel=1e-4)
        else:
            assert found[at] == one.epsilon(summary.plan, BUDGET.delta)


def test_the_page_embeds_the_summary(summary):
    found = Checked(plan_page(summary, "plan.toml")).data
    grids = (summary.grid, *summary.line_grids)
    for grid, data in zip(grids, found["grids"], strict=True):
        assert data["epsilon"] == [
            [[format_upper(x) for x in cell] for cell in row] for row in grid.epsilon
        ]
        for i, row in enumerate(grid.epsilon):
            for j, cell in enumerate(row):
                fits = "".join(str(int(x <= BUDGET.epsilon)) for x in cell)
                assert data["fits"][i][j] == fits
    assert found["here"] == [*summary.grid.plan_index, summary.budget_delta_index]


def test_each_line_is_turned_for_itself(summary):
    lines = [cost.line for cost in summary.costs]
    assert [grid.changed_line for grid in summary.line_grids] == [0, 1, 2]
    for grid in summary.line_grids:
        i, j = grid.plan_index
        assert grid.epsilon[i][j] == summary.grid.epsilon[i][j]
        for i, j, k in [(0, 6, 3), (10, 0, 6)]:
            others = [line for index, line in enumerate(lines) if index != grid.changed_line]
            turned = plan_of(
                [lines[grid.changed_line]], grid.noise_factors[i], grid.count_factors[j]
            )
            lower, upper = Tight().bracket(Sequential([plan_of(others), turned]), grid.deltas[k])
            if grid.changed_line == 2:  # randomised response has no noise to scale
                assert math.isnan(grid.epsilon[i][j][k])
            else:
                assert lower * (1 - 1e-12) <= grid.epsilon[i][j][k] <= upper * (1 + 3e-4)
    assert summary.line_grids[1].releases[-1] == 20 + 12 + 1


def test_the_tables_are_saved_as_csv(summary):
    saved = saved_tables(plan_page(summary, "plan.toml"))
    head, *rows = saved["plan-what-if.csv"]
    assert head == ["line", "noise", "number", "releases", "delta", "epsilon", "fits"]
    assert len(rows) == 4 * 11 * 7
    at = next(row for row in rows if row[:3] == ["ages", "2.0", "1.5"])
    known = summary.line_grids[0].epsilon[NOISE_FACTORS.index(2.0)][COUNT_FACTORS.index(1.5)]
    assert float(at[5]) == known[summary.budget_delta_index]
    assert [row[0] for row in saved["plan-accountants.csv"][1:]] == list(summary.curves)
    assert next(row[:4] for row in saved["plan-lines.csv"][1:])[0::3] == ["ages", "20"]


def test_the_tables_say_it_all_without_a_script(summary):
    cells = [cell.strip() for cell in Checked(plan_page(summary, "plan.toml")).cells]
    for row in summary.grid.epsilon:
        for cell in row:
            assert any(c.startswith(format_upper(cell[summary.budget_delta_index])) for c in cells)
    for cost in summary.costs:
        assert format_upper(cost.epsilon_of_all) in cells
        assert f"{cost.capacity:,}" in cells
    for name, curve in summary.curves.items():
        assert name in cells
        assert format_upper(curve[summary.budget_delta_index]) in cells


@pytest.mark.parametrize("words", HOSTILE, ids=ascii)
def test_hostile_names_are_escaped(words, summary):
    costs = tuple(
        type(one)(
            PlanLine(one.line.part, one.line.count, words),
            one.epsilon_of_one,
            one.epsilon_of_all,
            one.capacity,
        )
        for one in summary.costs
    )
    hostile = dataclasses.replace(summary, costs=costs)
    html = plan_page(hostile, words, words)
    harmless(html, {"script": 2})


@pytest.mark.parametrize(
    ("plan", "fits"),
    [pytest.param(8 * Laplace(scale=20.0), True, marks=pytest.mark.slow),
     (2 * Laplace(scale=1.5), False), (2 * Gaussian(scale=9.0), False),
     (2 * RandomizedResponse(k=2, keep=0.52), True), (Sequential([]), True)],
    ids=["fits", "too much", "infinite", "no scale", "nothing"],
)  # fmt: skip
def test_a_pure_budget_has_a_page(plan, fits):
    lines = lines_of(plan)
    summary = summarise(lines, Budget(1.0))
    html = plan_page(summary, "pure")
    harmless(html, {"script": 2})
    assert summary.epsilon == Tight().epsilon(plan, 0.0)
    assert ("Nothing: at delta 0 it is infinite" in html) == math.isinf(summary.epsilon)
    assert ("The plan fits the budget." in html) == fits
    assert len(summary.grid.noise_factors) == (
        1 if not any("scale" in repr(x) for x in lines) else 11
    )
