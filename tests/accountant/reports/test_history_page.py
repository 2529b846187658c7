"""The page of a ledger: what was spent and what is left."""

import pytest

from accountant import Book, Budget
from accountant.reports.history_page import history_page
from tests.accountant.example_files import spent_book
from tests.html_checks import Checked, harmless

BUDGET = Budget(2.0, 1e-6)


@pytest.fixture
def book(tmp_path):
    return spent_book(tmp_path)


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
    for scale, expected in ((10, ["3", "3", "0", "6"]), (20, ["1", "0", "1", "13"])):
        at = cells.index(f"Laplace(scale={scale}.0, sensitivity=1.0, arithmetic=EXACT)")
        assert cells[at + 1 : at + 5] == expected
    # neither data nor answers
    assert "987654" not in html
    assert "123456" not in html


def test_a_long_history_is_read_once_and_its_end_is_shown(book):
    with Book.open(book) as opened:
        status, line = opened.status("visits <script>"), opened.history("visits <script>")[0]
    lines = (line._replace(seq=1 + k, seeded=k == 0) for k in range(2500))
    html = history_page(status, lines, "spent.db")
    harmless(html, {})
    assert "The last 1,000 of 2,500, latest first." in html
    cells = [cell.strip() for cell in Checked(html).cells]
    assert "1,501" in cells
    assert "1,500" not in cells
    assert "2,500" in cells[: cells.index("1,501")]  # releases of this kind
    assert 400 < html.split('class="spent" d="')[1].split('"')[0].count("V") <= 802
    assert "made with a seed" in html  # though that line is not shown


def test_an_empty_ledger_has_a_page(tmp_path):
    with Book.open(f"sqlite:///{tmp_path}/b.db") as book:
        book.dataset("x", budget=BUDGET)
        html = history_page(book.status("x"), book.history("x"), "b.db")
    assert "Nothing was spent" in html
    harmless(html, {})
