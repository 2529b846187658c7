"""The site: every page is in its navigation, and a built one reads well in a browser."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

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
