"""The pages of a budget: their numbers are `Tight`'s, their words harmless, their files whole."""

import json
import math
import re
from decimal import Decimal
from html.parser import HTMLParser
from itertools import pairwise

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from accountant import (
    PLD,
    ApproxLoss,
    Book,
    Budget,
    GaussianLoss,
    LaplaceLoss,
    PoissonSampled,
    PureLoss,
    Repeat,
    Sequential,
    Tight,
    ZCDPLoss,
)
from accountant.cli.exit_status import run_app
from accountant.cli.page import page
from accountant.formatting import (
    as_displayed,
    format_lower,
    format_remaining,
    format_short,
    format_upper,
)
from accountant.planning.capacity import CAPACITY_CAP, remaining_capacity
from accountant.reports.comparison import ALL_ACCOUNTANTS
from accountant.reports.history_page import history_page
from accountant.reports.plan_lines import PlanLine, lines_of, plan_of, scale_noise
from accountant.reports.plan_page import plan_page
from accountant.reports.plan_summary import step_count, summarise
from accountant.reports.what_if_grid import COUNT_FACTORS, NOISE_FACTORS, SHOWN_DELTA_AXIS
from mechanisms import Gaussian, Laplace, NoisyMax, RandomizedResponse

HOSTILE = [
    "<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>", "\x1b[31mred\x1b[0m",
    "a\nb\r\tc", "right\u202eleft", "\u00a0nbsp", "=cmd()", "\x00", "]]>", "&lt;", "'\"><b>",
    "<!--", "\u2028",
]  # fmt: skip
BUDGET = Budget(2.0, 1e-6)
PLANS = {
    "laplace": 64 * Laplace(scale=20.0),
    "gaussians": 12 * Gaussian(scale=15.0) + 3 * Gaussian(scale=30.0),
    "mixed": 8 * Laplace(scale=20.0) + 6 * Gaussian(scale=15.0) + NoisyMax(scale=9.0),
    "sampled": 500 * PoissonSampled(GaussianLoss(1.0), 0.01),
    "single": Sequential([GaussianLoss(0.3)]),
    "pure": 30 * PureLoss(0.02),
    "atoms": 5 * PureLoss(0.1) + 5 * ApproxLoss(0.1, 1e-9),
    "rho": 20 * ZCDPLoss(0.01),
}
app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
app.command("page")(page)
app.command("other")(lambda: None)


def run(*words):
    return run_app(app, "python -m accountant", ["page", *map(str, words)])


@pytest.fixture(scope="module")
def told():
    lines = [
        PlanLine(Laplace(scale=20.0), 20, "ages"), PlanLine(Gaussian(scale=15.0), 4),
        PlanLine(RandomizedResponse(k=2, keep=0.55), 1),
    ]  # fmt: skip
    return summarise(lines, BUDGET)


class Checked(HTMLParser):
    """Collects tags, what could ask for something, cells, and the embedded data."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.asks, self.cells, self._data, self.words = [], [], [], None, []
        self._last = None
        self.feed(html)

    @property
    def data(self):
        return json.loads("".join(self._data))

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self._last = dict(attrs)
        if tag == "section":
            self.cells.append("")
        self.asks += [(k, v) for k, v in attrs if k in {"src", "srcset", "action", "data"}]
        self.asks += [(k, v) for k, v in attrs if k == "href" and v != "data:,"]
        self.asks += [(k, v) for k, v in attrs if k.startswith("on") or k == "style"]
        if tag in {"td", "th"}:
            self.cells.append("")
        if tag == "script" and self._last.get("id") == "data":
            self._data = []

    def handle_data(self, data):
        if self._data is not None and self._last.get("id") == "data":
            self._data.append(data)
        elif self.cells:
            self.cells[-1] += data
        self.words.append(data)


@pytest.mark.parametrize("name", PLANS)
def test_many_deltas_at_once_say_what_tight_says(name):
    plan, deltas = PLANS[name], [0.0, 1e-12, 3e-10, 1e-8, 1e-6, 1e-5, 1e-3]
    for delta, found in zip(deltas, Tight().epsilons(plan, deltas), strict=True):
        lower, upper = Tight().bracket(plan, delta)
        assert found == upper or lower * (1 - 1e-12) <= found <= upper * (1 + 3e-4)


def test_a_number_is_rounded_towards_honesty():
    assert format_upper(1.70031) == "1.701"
    assert format_lower(1.70099) == "1.700"
    assert format_upper(0.1) == format_lower(0.1) == "0.1000"  # decimal, as it is printed
    assert format_upper(math.inf) == "∞"
    assert format_upper(math.nan) == "–"
    assert format_short(1e-6) == "1e-6"
    assert format_short(0.00033) == "3.3e-4"
    assert format_remaining(2.0, 1.70031) == "0.2990"


@given(st.floats(1e-300, 1e300))
def test_rounding_keeps_its_side(x):
    assert Decimal(repr(as_displayed(x))) >= Decimal(repr(x))
    assert Decimal(format_lower(x).replace(",", "")) <= Decimal(repr(x))
    assert as_displayed(x) <= x * 1.00101


def test_noise_is_scaled_where_there_is_a_scale():
    assert scale_noise(Laplace(scale=2.0), 3.0) == Laplace(scale=6.0)
    assert scale_noise(GaussianLoss(0.5), 2.0) == GaussianLoss(0.25)
    assert scale_noise(LaplaceLoss(0.5), 2.0) == LaplaceLoss(0.25)
    sampled = PoissonSampled(Gaussian(scale=2.0), 0.1)
    assert scale_noise(sampled, 2.0) == PoissonSampled(Gaussian(scale=4.0), 0.1)
    # a probability is no scale
    flips = RandomizedResponse(k=2, keep=0.7)
    assert scale_noise(flips, 2.0) is flips


def test_lines_are_the_plan_with_equal_parts_once():
    a, b = Laplace(scale=2.0), Gaussian(scale=3.0)
    lines = lines_of(Sequential([Repeat(a, 3), b, a]))
    assert lines == [PlanLine(a, 4), PlanLine(b, 1)]
    assert dict(plan_of(lines).losses()) == dict((4 * a + b).losses())
    # half of one release is one release
    assert dict(plan_of(lines, count_factor=0.5).losses()) == dict((2 * a + b).losses())


def test_the_numbers_of_the_plan_are_tights_own(told):
    i, j = told.grid.plan_index
    for delta, found in zip(told.grid.deltas, told.grid.epsilon[i][j], strict=True):
        assert found == Tight().epsilon(told.plan, delta)
    assert told.epsilon == Tight().epsilon(told.plan, BUDGET.delta)


def test_every_cell_is_an_upper_bound_close_to_tight(told):
    grid = told.grid
    lines = [cost.line for cost in told.costs]
    assert (grid.noise_factors, grid.count_factors, grid.deltas) == (
        NOISE_FACTORS,
        COUNT_FACTORS,
        SHOWN_DELTA_AXIS,
    )
    for i, j, k in [(0, 0, 0), (0, 6, 11 - 2), (10, 6, 3), (10, 0, 6), (3, 4, 5), (7, 2, 9)]:
        plan = plan_of(lines, grid.noise_factors[i], grid.count_factors[j])
        lower, upper = Tight().bracket(plan, grid.deltas[k])
        assert lower * (1 - 1e-12) <= grid.epsilon[i][j][k] <= upper * (1 + 3e-4)


def test_epsilon_moves_as_the_sliders_promise(told):
    """Between grid points the page shows the neighbour it takes to be the more cautious one."""
    grid = told.grid
    for i, row in enumerate(grid.epsilon):
        for j, cell in enumerate(row):
            assert all(a >= b * (1 - 1e-3) for a, b in pairwise(cell))
            for k, value in enumerate(cell):
                if i:
                    assert value <= grid.epsilon[i - 1][j][k] * (1 + 1e-3)
                if j:
                    assert value >= row[j - 1][k] * (1 - 1e-3)


def test_every_accountant_has_its_curve(told):
    at = told.budget_delta_index
    for one in ALL_ACCOUNTANTS:
        found = told.curves[one.name]
        if isinstance(one, PLD):  # one grid for all deltas
            assert found[at] == pytest.approx(one.epsilon(told.plan, BUDGET.delta), rel=1e-4)
        else:
            assert found[at] == one.epsilon(told.plan, BUDGET.delta)


@pytest.mark.parametrize("budget", [BUDGET, Budget(1.0, 1e-9), Budget(4.0)], ids=str)
@pytest.mark.parametrize("part", [Laplace(scale=20.0), Laplace(scale=3.0)], ids=str)
def test_so_many_more_fit_and_one_more_does_not(budget, part):
    plan = 10 * Laplace(scale=20.0) + 2 * Laplace(scale=30.0)
    found = remaining_capacity(plan, part, budget)
    assert not budget.admits(plan + Repeat(part, found + 1))
    assert found == 0 or budget.admits(plan + Repeat(part, found))


def test_ten_spends_of_a_tenth_fit_exactly():
    assert remaining_capacity(Sequential([PureLoss(0.1)]), PureLoss(0.1), Budget(1.0)) == 9
    assert (
        remaining_capacity(Sequential([PureLoss(0.1)]), PureLoss(1e-9), Budget(1.0)) == CAPACITY_CAP
    )
    assert remaining_capacity(20 * PureLoss(0.1), PureLoss(0.1), Budget(1.0)) == 0


def test_ticks_are_as_many_as_were_said():
    ticks, lines = [], [PlanLine(Gaussian(scale=20.0), 3)]
    summarise(lines, BUDGET, lambda: ticks.append(1))
    assert len(ticks) == step_count(lines)


def test_what_the_page_embeds_is_what_was_told(told):
    found = Checked(plan_page(told, "plan.toml")).data
    grid = told.grid
    assert found["epsilon"] == [
        [[format_upper(x) for x in cell] for cell in row] for row in grid.epsilon
    ]
    for i, row in enumerate(grid.epsilon):
        for j, cell in enumerate(row):
            fits = "".join(str(int(x <= BUDGET.epsilon)) for x in cell)
            assert found["fits"][i][j] == fits
    assert found["here"] == [*grid.plan_index, told.budget_delta_index]


def test_the_tables_say_it_all_without_a_script(told):
    cells = [cell.strip() for cell in Checked(plan_page(told, "plan.toml")).cells]
    for row in told.grid.epsilon:
        for cell in row:
            assert any(c.startswith(format_upper(cell[told.budget_delta_index])) for c in cells)
    for cost in told.costs:
        assert format_upper(cost.epsilon_of_all) in cells
        assert f"{cost.capacity:,}" in cells
    for name, curve in told.curves.items():
        assert name in cells
        assert format_upper(curve[told.budget_delta_index]) in cells


@pytest.mark.parametrize("words", HOSTILE, ids=ascii)
def test_hostile_names_are_escaped(words, told):
    costs = tuple(
        type(one)(
            PlanLine(one.line.part, one.line.count, words),
            one.epsilon_of_one,
            one.epsilon_of_all,
            one.capacity,
        )
        for one in told.costs
    )
    hostile = type(told)(told.plan, told.budget, told.grid, costs, told.curves)
    html = plan_page(hostile, words, words)
    harmless(html, {"script": 2})


@pytest.mark.parametrize(
    ("plan", "fits"),
    [(8 * Laplace(scale=20.0), True), (8 * Laplace(scale=4.0), False),
     (8 * Gaussian(scale=9.0), False), (8 * RandomizedResponse(k=2, keep=0.52), True),
     (Sequential([]), True)],
    ids=["fits", "too much", "infinite", "no scale", "nothing"],
)  # fmt: skip
def test_a_pure_budget_has_a_page(plan, fits):
    lines = lines_of(plan)
    told = summarise(lines, Budget(1.0))
    html = plan_page(told, "pure")
    harmless(html, {"script": 2})
    assert told.epsilon == Tight().epsilon(plan, 0.0)
    assert ("Nothing: at delta 0 it is infinite" in html) == math.isinf(told.epsilon)
    assert ("The plan fits the budget." in html) == fits
    assert len(told.grid.noise_factors) == (1 if not any("scale" in repr(x) for x in lines) else 11)


def harmless(html, scripts):
    page = Checked(html)
    assert not page.asks
    assert page.tags.count("script") == scripts.get("script", 0)
    assert not {"img", "iframe", "object", "embed", "form", "a"} & set(page.tags)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e\u2028\ud800]", html)
    for forbidden in ("http:", "https:", "url(", "@import", "javascript:", "fetch(", "XMLHttp"):
        # the name of SVG is an address that nobody asks, and url(#...) is on the page
        assert forbidden not in html.replace("http://www.w3.org/2000/svg", "").replace("url(#", "")
    assert "default-src 'none'" in html


@pytest.fixture
def book(tmp_path):
    url = f"sqlite:///{tmp_path}/spent.db"
    with Book.open(url, author="<b>ann</b>") as book:
        book.dataset("visits <script>", budget=Budget(1.0))
        with book.ledger("visits <script>", [0.25, 987654.5]) as ledger:
            for _ in range(3):
                ledger.release(Laplace(scale=10.0), lambda rows: 123456.75)
            with pytest.raises(ZeroDivisionError):
                ledger.release(Laplace(scale=20.0), lambda rows: 1 / 0)
    return url


def test_the_history_tells_what_was_spent_and_what_is_left(book):
    with Book.open(book) as opened:
        name = "visits <script>"
        html = history_page(opened.status(name), opened.history(name), "spent.db")
        spent = opened.spent(name)
    harmless(html, {})
    assert spent == 0.35
    cells = [cell.strip() for cell in Checked(html).cells]
    for words in ("0.1000", "0.2000", "0.3000", "0.3500", "failed", "<b>ann</b>"):
        assert words in cells
    assert "<b>0.6500</b>" in html
    # 0.65 left: six of 0.1, thirteen of 0.05
    for scale, told in ((10, ["3", "3", "0", "6"]), (20, ["1", "0", "1", "13"])):
        at = cells.index(f"Laplace(scale={scale}.0, sensitivity=1.0, arithmetic=IDEALISED)")
        assert cells[at + 1 : at + 5] == told
    # neither data nor answers
    assert "987654" not in html
    assert "123456" not in html


def test_an_empty_ledger_has_a_page(tmp_path):
    with Book.open(f"sqlite:///{tmp_path}/b.db") as book:
        book.dataset("x", budget=BUDGET)
        html = history_page(book.status("x"), book.history("x"), "b.db")
    assert "Nothing was spent" in html
    harmless(html, {})


PLAN = """
[budget]
epsilon = 2.0
delta = 1e-6

[[release]]
name = "ages"
kind = "Laplace"
scale = 20.0
count = 8

[[release]]
kind = "Gaussian"
scale = 15.0
"""


@pytest.fixture
def plan(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    return path


def test_the_command_writes_a_page_and_never_over_one(plan, tmp_path, capsys):
    out = tmp_path / "budget.html"
    assert run(plan, "--out", out) == 0
    first = out.read_bytes()
    assert b"ages" in first
    assert run(plan, "--out", out) == 2
    assert "--force" in capsys.readouterr().err
    assert out.read_bytes() == first
    assert run(plan, "--out", out, "--force", "--epsilon", "3", "--delta", "1e-7") == 0
    assert b"epsilon at delta 1e-7" in out.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["budget.html", "plan.toml"]


def test_noise_left_open_is_found_first(tmp_path):
    path, out = tmp_path / "plan.toml", tmp_path / "p.html"
    path.write_text(PLAN.replace("scale = 20.0", "weight = 1.0"))
    assert run(path, "--out", out) == 0
    assert "The plan fits the budget" in out.read_text()


def test_the_command_shows_a_ledger(book, tmp_path):
    out = tmp_path / "h.html"
    assert run("--ledger", book, "--dataset", "visits <script>", "--out", out) == 0
    assert "Spent over time" in out.read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--out", "no/such/folder.html"], "--out"),
        (["--out", "x.html"], "one of the two"),
        (["plan.toml", "--ledger", "sqlite:///x", "--out", "x.html"], "one of the two"),
        (["--ledger", "sqlite:///x.db", "--out", "x.html"], "--dataset"),
        (["plan.toml", "--dataset", "d", "--out", "x.html"], "--ledger"),
        (["plan.toml", "--epsilon", "nan", "--out", "x.html"], "--epsilon"),
        (["plan.toml", "--epsilon", "1", "--delta", "1.5", "--out", "x.html"], "--delta"),
        (["bare.toml", "--delta", "1e-6", "--out", "x.html"], "--epsilon"),
        (["tight.toml", "--out", "x.html"], "something to share"),
        (["none.toml", "--out", "x.html"], "none.toml"),
        (["--ledger", "sqlite:///none.db", "--dataset", "d", "--out", "x.html"], "none.db"),
        (["plan.toml"], "--out"),
    ],
)
def test_bad_words_are_refused_before_anything_is_written(words, said, plan, monkeypatch, capsys):
    monkeypatch.chdir(plan.parent)
    (plan.parent / "bare.toml").write_text(PLAN[PLAN.index("[[") :])
    shared = PLAN.replace("scale = 20.0", "scale = 0.1").replace("scale = 15.0", "weight = 1.0")
    (plan.parent / "tight.toml").write_text(shared)
    assert run(*words) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.err.count("\n") == 1
    kept = {"plan.toml", "bare.toml", "tight.toml"}
    assert {path.name for path in plan.parent.iterdir()} == kept
