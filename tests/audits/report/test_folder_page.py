"""The index of a folder: what each plan, ledger and audit says first, and links to their pages."""

import pytest

from accountant import Book, Budget, Tight
from accountant.formats.plan_toml import read_plan
from accountant.formatting import format_upper
from audits.__main__ import main
from audits.report.folder_page import folder_page, index_of
from audits.results.result_file import to_json
from dp_attest.__main__ import main as dp_attest
from mechanisms import Gaussian
from tests.accountant.example_files import PLAN, spent_book
from tests.audits.results.report_rows import result, row
from tests.html_checks import Checked


@pytest.fixture
def folder(tmp_path):
    inner = tmp_path / "2026"
    inner.mkdir()
    (tmp_path / "year <b>.toml").write_text(PLAN)
    (inner / "dear.toml").write_text(PLAN.replace("scale = 20.0", "scale = 0.5"))
    (inner / "dear.html").write_text("")
    (tmp_path / "bad.toml").write_text(PLAN.replace("Gaussian", "Gausian"))
    (tmp_path / "pyproject.toml").write_text("[tool.x]\n")
    (tmp_path / "rows.json").write_text("[1, 2]")
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "other.db").write_bytes(b"SQLite format 3\x00 and no book")
    (tmp_path / "audit.json").write_text(to_json(result(row(), row("y", wrong=True))))
    (tmp_path / ".hidden.toml").write_text(PLAN)
    spent_book(tmp_path)
    return tmp_path


def test_the_index_says_of_each_file_what_its_own_page_says(folder):
    found = index_of(folder)
    assert [plan.file.path for plan in found.plans] == ["year <b>.toml", "2026/dear.toml"]
    for plan, fits in zip(found.plans, (True, False), strict=True):
        assert plan.epsilon == Tight().epsilon(read_plan(folder / plan.file.path), 1e-6)
        assert plan.releases == 3
        assert plan.fits is fits
    assert [plan.file.page for plan in found.plans] == [None, "2026/dear.html"]
    ((file, status),) = found.ledgers
    assert (file.path, status.name, status.epsilon) == ("spent.db", "visits <script>", 0.35)
    (audit,) = found.audits
    assert not audit.is_good
    assert "y" in audit.verdict
    unread = dict(found.unread)
    assert sorted(unread) == ["bad.toml", "other.db"]
    assert "did you mean" in unread["bad.toml"]
    assert str(folder) not in unread["bad.toml"]


def test_the_page_escapes_names_and_links_pages_alone(folder):
    html = folder_page(index_of(folder), "work <i>", "python -m x")
    page = Checked(html)
    assert page.asks == [("href", "2026/dear.html")]
    assert not {"script", "img", "iframe", "b", "i"} & (set(page.tags) - {"b"})
    assert "default-src 'none'" in html
    cells = [cell.strip() for cell in page.cells]
    for words in ("year <b>.toml", "fits", "does not fit", "visits <script>", "0.3500", "35.0 %"):
        assert words in cells
    dear = Tight().epsilon(read_plan(folder / "2026" / "dear.toml"), 1e-6)
    assert format_upper(dear) in cells


def test_a_plan_without_budget_and_a_closed_budget_are_said(tmp_path):
    (tmp_path / "p.toml").write_text(PLAN.split("[[release]]", 1)[1].join(["[[release]]", ""]))
    with Book.create(f"sqlite:///{tmp_path}/b.db") as book:
        book.dataset("x", budget=Budget(1.0, 1e-6))
        with book.ledger("x", [1.0]) as ledger:
            ledger.release(Gaussian(scale=20.0), lambda rows: 0.0)
        book.close_dataset("x", reason="done")
    html = folder_page(index_of(tmp_path), "w", "c")
    assert "no budget in the file" in html
    assert "closed 20" in html


def test_claims_and_their_alarms_are_said(tmp_path):
    with Book.create(tmp_path / "b.db") as book:
        for name in ("sum <i>", "count"):
            book.claim(name, Budget(1.0), alpha=0.01)
        book.add_evidence("count", [6.0], [(1.0, 0.0)], runs="0" * 64, version="1.<b>7")
    page = Checked(folder_page(index_of(tmp_path), "w", "c"))
    cells = [cell.strip() for cell in page.cells]
    at = cells.index("count: PureLoss(epsilon=1.0)")
    assert cells[at + 2 : at + 5] == ["1", "202.2", "100"]
    assert cells[at + 5].startswith("ALARM, version 1.<b>7")  # the text after the table follows
    at = cells.index("sum <i>: PureLoss(epsilon=1.0)")
    assert cells[at + 2 : at + 6] == ["0", "1.000", "100", "no alarm"]


def test_the_command_writes_the_page_and_refuses_what_it_must(folder, capsys):
    out = folder / "index.html"
    assert main(["index", str(folder), "--out", str(out)]) == 0
    assert "2026/dear.html" in out.read_text()
    assert main(["index", str(folder), "--out", str(out)]) == 2
    assert "--force" in capsys.readouterr().err
    assert dp_attest(["index", str(folder), "--out", str(out), "--force"]) == 0
    assert main(["index", str(folder / "nowhere"), "--out", str(folder / "x.html")]) == 2
    assert "a folder that exists" in capsys.readouterr().err
    assert not (folder / "x.html").exists()
