"""The pages in headless Chromium: they load, ask for nothing, move, and are accessible.

Needs `playwright` and `axe-playwright-python` (from the package index) and a Chromium of the
system (`apt-get install chromium`); where one is missing the tests are skipped and say so.
"""

import http.server
import math
import os
import shutil
import threading

import pytest

from accountant import Book, Budget, Tight, dp_sgd, make_receipt, training_page
from accountant.formatting import format_upper
from accountant.reports.history_page import history_page
from accountant.reports.plan_lines import PlanLine, plan_of
from accountant.reports.plan_page import plan_page
from accountant.reports.plan_summary import summarise
from accountant.reports.receipt_page import receipt_page
from accountant.verifier import check_receipt
from audits.formats.html import to_html
from audits.report.folder_page import folder_page, index_of
from audits.results.result_file import to_json
from mechanisms import Gaussian, Laplace
from tests.accountant.book.people import write_key
from tests.accountant.example_files import PLAN
from tests.audits.results.report_rows import result, row

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
axe_api = pytest.importorskip(
    "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
)
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium: apt-get install chromium")
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
PAGES = [
    "plan.html", "history.html", "findings.html", "index.html", "training.html", "receipt.html",
]  # fmt: skip
BUDGET = Budget(2.0, 1e-6)
LINES = [PlanLine(Laplace(scale=20.0), 20, "ages <b>"), PlanLine(Gaussian(scale=15.0), 4)]


@pytest.fixture(scope="module")
def summary():
    return summarise(LINES, BUDGET)


@pytest.fixture(scope="module")
def folder(summary, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    (folder / "plan.html").write_text(plan_page(summary, "plan \u202e<i>.toml", "python -m x"))
    with Book.create(f"sqlite:///{folder}/spent.db") as book:
        book.dataset("visits", budget=BUDGET)
        with book.ledger("visits", [1.0]) as ledger:
            for _ in range(3):
                ledger.release(Laplace(scale=20.0), len)
        html = history_page(book.status("visits"), book.history("visits"), "spent.db")
    (folder / "history.html").write_text(html)
    trained = dp_sgd(examples=100, batch=100, epochs=2, noise=200.0, examples_per_user=2)
    (folder / "training.html").write_text(training_page(trained, "python -m x"))
    key = write_key(folder, "ada")
    signed = make_receipt(key, plan=Laplace(2.0), budget=Budget(1.0), author="ada <b>")
    (folder / "receipt.html").write_text(receipt_page(check_receipt(signed)))
    (folder / "plan.toml").write_text(PLAN)
    (folder / "findings.json").write_text(to_json(result(row(), row("y", wrong=True))))
    (folder / "findings.html").write_text(to_html(result(row(), row("y", wrong=True))))
    (folder / "index.html").write_text(folder_page(index_of(folder), "work", "python -m x"))
    return folder


@pytest.fixture(scope="module")
def address(folder):
    """The pages by HTTP, as a web server serves them."""
    asked = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *given):
            super().__init__(*given, directory=str(folder))

        def log_message(self, *words):
            asked.append(self.path)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def opened(browser, address):
    """Opens a page; at the end it must have asked for itself alone and complained of nothing."""
    where, asked = address
    contexts, complaints = [], []

    def open_page(name="plan.html", unfold=True, **options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        asked.clear()
        page.goto(f"{where}/{name}", wait_until="networkidle")
        assert asked == [f"/{name}"]
        if unfold:
            for layer in page.locator("details.layer").all():
                if layer.get_attribute("open") is None:
                    layer.locator("> summary").dispatch_event("click")
        return page

    open_page.complaints = complaints
    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
    assert len(asked) == 1


def test_it_starts_with_the_plan_and_tights_number(opened, summary):
    page = opened()
    assert page.inner_text("#epsilon") == format_upper(Tight().epsilon(summary.plan, BUDGET.delta))
    assert page.inner_text(".tiles div:nth-child(3) b") == page.inner_text("#rest")
    assert "fits the budget" in page.inner_text("#said")
    assert page.locator("#grid td.chosen").inner_text().startswith(page.inner_text("#epsilon"))
    assert page.title() == "plan \\u202e<i>.toml: privacy budget"


def test_meanings_of_an_epsilon_are_rounded_up(opened, summary):
    """A conclusion gains e^eps; the best guess is right (e^eps + delta) / (1 + e^eps) of the time.

    Kairouz, Oh & Viswanath (2015), Theorem 2.1.
    """
    page, (_, j) = opened(), summary.grid.plan_index
    page.focus("#noise")
    page.keyboard.press("Home")
    for cells in summary.grid.epsilon:
        gain = math.exp(cells[j][summary.budget_delta_index])
        likelier = float(page.inner_text("#factor").removesuffix(" ×").replace(",", ""))
        assert gain <= likelier <= 1.02 * gain
        right = 100 * (gain + BUDGET.delta) / (1 + gain)
        assert right <= float(page.inner_text("#guess").removesuffix(" %")) <= right + 0.15
        left = float(page.inner_text("#rest").replace("nothing", "0"))
        spare = max(0.0, BUDGET.epsilon - cells[j][summary.budget_delta_index])
        assert spare * 0.999 - 1e-3 <= left <= spare
        page.keyboard.press("ArrowRight")


def test_the_arrows_of_the_keyboard_move_the_numbers(opened, summary):
    page, grid = opened(), summary.grid
    i, j = grid.plan_index
    page.focus("#noise")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#epsilon") == format_upper(
        grid.epsilon[i + 1][j][summary.budget_delta_index]
    )
    assert page.get_attribute("#noise", "aria-valuetext") == "1.2 times as much noise"
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")  # over the field beside the slider
    page.keyboard.press("End")
    assert page.inner_text("#epsilon") == format_upper(
        grid.epsilon[i + 1][-1][summary.budget_delta_index]
    )
    assert page.inner_text("#releases") == "72"
    page.focus("#delta")
    page.keyboard.press("Home")
    found = grid.epsilon[i + 1][-1][0]
    assert page.inner_text("#epsilon") == format_upper(found)
    lower, upper = Tight().bracket(plan_of(LINES, 1.2, 3.0), 1e-12)
    assert lower <= found <= upper * (1 + 3e-4)
    assert "does not fit" in page.inner_text("#said")
    assert page.inner_text("#table-delta") == "1e-12"
    assert page.locator("#grid td.chosen").inner_text() == format_upper(found)
    page.click("#back")
    assert page.inner_text("#epsilon") == format_upper(summary.epsilon)


def test_one_line_alone_can_be_turned(opened, summary):
    page, (_i, j) = opened(), summary.grid.plan_index
    page.select_option("#turned", label="ages <b> alone")
    assert page.inner_text("#epsilon") == format_upper(summary.epsilon)
    page.focus("#noise")
    page.keyboard.press("End")
    found = summary.line_grids[0].epsilon[-1][j][summary.budget_delta_index]
    assert page.inner_text("#epsilon") == format_upper(found)
    assert found > summary.grid.epsilon[-1][j][summary.budget_delta_index]
    page.focus("#often")
    page.keyboard.press("End")
    assert page.inner_text("#releases") == "64"  # three times 20, and 4
    assert page.inner_text("#grid thead th:last-child small") == "64"
    page.click("#back")
    assert page.input_value("#turned") == "0"
    assert page.inner_text("#epsilon") == format_upper(summary.epsilon)


def test_a_table_is_saved_from_the_page(opened):
    page = opened()
    with page.expect_download() as saved:
        page.click("text=Save the lines as CSV")
    assert saved.value.suggested_filename.endswith("-lines.csv")
    with open(saved.value.path(), encoding="utf-8") as file:
        assert file.readline().startswith("name,release,")


@pytest.mark.parametrize("name", ["plan.html", "history.html", "findings.html", "training.html"])
def test_a_page_says_first_what_matters_and_folds_the_rest(opened, name):
    """One sentence, one number and one picture in 700 pixels; on paper all is open."""
    for width in (1280, 390):
        page = opened(name, unfold=False, viewport={"width": width, "height": 700})
        for shown in (".verdict", ".headline b", "main svg"):
            box = page.locator(shown).first.bounding_box()
            assert box["y"] + box["height"] <= 700
            assert box["x"] + box["width"] <= width
        assert page.evaluate("document.documentElement.scrollHeight") <= 2500
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        last = page.locator("details.layer").last.locator("p, tr").last
        assert not last.is_visible()
        page.emulate_media(media="print")
        assert last.is_visible()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_prints_on_a4_without_loss_at_its_sides(opened, name):
    """210 mm less margins of 14 mm are 688 pixels of 1/96 inch."""
    page = opened(name, viewport={"width": 688, "height": 971})
    page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.scrollWidth") <= 688
    tables = "[...document.querySelectorAll('table')].map(one => one.scrollWidth)"
    assert max(page.evaluate(tables), default=0) <= 688


def test_between_grid_points_the_more_cautious_one_is_shown(opened, summary):
    page = opened()
    axes = {
        "noise": summary.grid.noise_factors,
        "often": summary.grid.count_factors,
        "delta": summary.grid.deltas,
    }
    for name, typed, taken in (
        ("noise", "1.3", "1.2"), ("noise", "0.99", "0.9"), ("often", "1.01", "1.5"),
        ("often", "1.5", "1.5"), ("delta", "5e-7", "1e-7"), ("delta", "1e-3", "1e-3"),
    ):  # fmt: skip
        page.click("#back")
        page.fill(f"#{name}-typed", typed)
        page.keyboard.press("Enter")
        assert page.input_value(f"#{name}-typed") == taken
        at = {
            "noise": summary.grid.plan_index[0],
            "often": summary.grid.plan_index[1],
            "delta": summary.budget_delta_index,
        }
        at[name] = axes[name].index(float(taken))
        expected = summary.grid.epsilon[at["noise"]][at["often"]][at["delta"]]
        assert page.inner_text("#epsilon") == format_upper(expected)
        assert (page.inner_text("#note") != "") == (float(typed) != float(taken))


def test_typed_values_beyond_the_grid_are_noted(opened, summary):
    page = opened()
    for typed in ("0.1", "", "x", "-1", "<b>", "Infinity"):
        page.click("#back")
        page.fill("#noise-typed", typed)
        page.keyboard.press("Enter")
        page.locator("#back").focus()
        if typed == "Infinity":  # no less noise than any
            assert page.input_value("#noise-typed") == "4"
        else:
            assert "nothing on the safe side" in page.inner_text("#note")
            assert page.inner_text("#epsilon") == format_upper(summary.epsilon)


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_no_violation(opened, name):
    """Wide and light, and narrow and dark; colours and widths do not depend on each other."""
    page = opened(name)
    for scheme, width in (("light", 1100), ("dark", 360)):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 800})
        found = axe_api.Axe().run(page)
        assert found.violations_count == 0, found.generate_report()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        # the colours really are the other ones
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(13, 17, 23)"
        assert dark == (scheme == "dark")


@pytest.mark.parametrize("name", ["plan.html", "history.html"])
def test_without_a_script_the_tables_are_there(opened, summary, name):
    page = opened(name, java_script_enabled=False)
    tables = page.locator("table")
    assert tables.count() == (4 if name == "plan.html" else 2)
    for k in range(tables.count()):
        assert tables.nth(k).is_visible()
    if name == "plan.html":
        assert not page.locator("#try").is_visible()
        assert page.get_by_text("The sliders need JavaScript").is_visible()
        assert format_upper(summary.epsilon) in page.inner_text("#grid td.here")


def test_the_policy_of_a_page_forbids_requests_and_other_scripts(opened):
    """The policy in the page forbids what a later mistake in it could ask for."""
    page = opened()
    refused = page.evaluate("() => fetch('/spent.db').then(() => 'answered', () => 'refused')")
    assert refused == "refused"
    ran = page.evaluate(
        "() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1';"
        " document.body.append(s); return window.ran === 1 }"
    )
    assert not ran
    # the browser said so, of both
    assert len(opened.complaints) >= 2
    assert all("Content Security Policy" in one for one in opened.complaints)
    opened.complaints.clear()


def test_the_whole_page_can_be_reached_by_tab(opened):
    page = opened()
    reached = set()
    for _ in range(20):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
    sliders = {"noise", "noise-typed", "often", "often-typed", "delta", "delta-typed", "back"}
    assert sliders <= reached
    assert "SUMMARY" in reached
