"""The site: every page is in its navigation, and a built one reads well in a browser."""

import functools
import http.server
import re
import shutil
import subprocess
import sys
import threading
import tomllib
from pathlib import Path

import pytest

from docs_site.prose import LONG_TOPICS, MOST_OF_BENCHMARKS, MOST_WORDS, readings
from tests.docs.questions import QUESTIONS

ROOT = Path(__file__).parents[2]
NAVIGATION = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
SHOWN = ("index.html", "accounting.html", "notebooks/statistics_of_a_frame.html")
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.py"))


def test_every_page_is_in_the_navigation_once():
    listed = re.findall(r"(?::|-) (\S+\.md)$", NAVIGATION, re.MULTILINE)
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    pages |= {f"notebooks/{path.stem}.md" for path in NOTEBOOKS}
    assert pages - set(listed) == set()
    assert len(listed) == len(set(listed))


def test_the_reference_has_every_package_whose_names_are_promised():
    from tests.test_public_names import PACKAGES

    assert set(re.findall(r"reference/(\S+)\.md", NAVIGATION)) == set(PACKAGES)


def test_what_builds_the_site_is_declared_with_ranges():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extra = project["optional-dependencies"]["docs"]
    assert {re.split("[>=<]", one)[0] for one in extra} >= {"mkdocs-material", "nbclient"}
    assert all(">=" in one for one in extra)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_starts_with_its_title_and_shows_objects(path):
    cells = re.split(r"^# %%.*$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert cells[0].strip().startswith("# # ")
    last = [cell.strip().splitlines()[-1] for cell in cells if cell.strip()]
    assert any(re.fullmatch(r"[a-z]\w+", line) for line in last)


def test_topics_are_short_and_read_easily():
    read = {reading.page.removesuffix(".md"): reading for reading in readings()}
    assert max(read[name].words for name in LONG_TOPICS) <= MOST_WORDS
    assert read["benchmarks"].words <= MOST_OF_BENCHMARKS
    assert [one.page for one in read.values() if one.grade > 9] == []


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return the folder of a site built by `make docs`, in its own environment."""
    folder = tmp_path_factory.mktemp("site")
    words = ["make", "docs", f"ARGS=--site-dir {folder}", f"PYTHON={sys.executable}"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING -" not in done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no chromium: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1000, 390])
@pytest.mark.parametrize("name", SHOWN)
def test_a_page_of_the_site_fits_and_is_accessible(name, width, scheme, site, browser):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is missing")
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
    )
    page, asked = context.new_page(), []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((site / name).as_uri())
    page.wait_for_selector("h1")
    if page.locator("article table:not([class])").count():
        page.wait_for_selector(".md-typeset__scrollwrap[tabindex]")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    found = axe.Axe().run(page).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"]) for one in found
            if one["impact"] in {"serious", "critical"}] == []  # fmt: skip
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    context.close()


@pytest.mark.slow
def test_a_plain_question_finds_a_page_that_answers_it(site, browser):
    """The first result of the search, as a reader types it into the built site."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    page, missed = browser.new_page(), {}
    page.goto(f"http://127.0.0.1:{server.server_port}/index.html", wait_until="networkidle")
    for question, pages in QUESTIONS.items():
        page.click("input.md-search__input")
        page.keyboard.press("Control+A")
        page.keyboard.type(question)
        page.wait_for_timeout(900)  # the site waits for the end of typing, and says no word
        first = page.locator("a.md-search-result__link").first.get_attribute("href")
        found = re.sub(r"^http://[^/]*/|\.html.*$", "", first or "")
        if found not in pages.split():
            missed[question] = found
    server.shutdown()
    server.server_close()
    assert len(QUESTIONS) == 40
    assert len(missed) <= 1, missed
