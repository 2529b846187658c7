"""The page of a claim: its wealth over audits, and its alarm."""

import pytest

from accountant import Book, Budget
from accountant.reports.evidence_page import evidence_page
from tests.html_checks import Checked, harmless, saved_tables


@pytest.fixture
def book(tmp_path):
    with Book.create(tmp_path / "book.db", author="<b>ann</b>") as opened_book:
        opened_book.claim("visits <script>", Budget(1.0), alpha=0.1, relation="replace-one")
        yield opened_book


def page_after(book, *log_e_values):
    for number, log_e_value in enumerate(log_e_values):
        book.add_evidence("visits <script>", [log_e_value], [(1.0, 0.0)], runs=f"{number:064x}",
                          version=f"1.{number}", seen="3 of 4 <i>guesses</i>")  # fmt: skip
    html = evidence_page(book.evidence("visits <script>"), "book.db")
    harmless(html, {})
    return html


def curve(html):
    points = html.split('class="curve c6" points="')[1].split('"')[0].split()
    return [tuple(map(float, point.split(","))) for point in points]


def test_a_claim_without_evidence_has_a_page(book):
    html = page_after(book)
    assert "No version was audited" in html
    assert "No alarm. That is no proof of the claim." in html
    assert "one record exchanged for another" in html
    assert len(curve(html)) == 1


def test_the_page_shows_each_audit_and_the_alarm(book):
    html = page_after(book, 1.0, 2.0, -4.0)
    assert "The claim is false: entry 4, version 1.1, brought" in " ".join(html.split())
    cells = [cell.strip() for cell in Checked(html).cells]
    for words in ("2.718", "1.859", "7.389", "11.60", "0.01831", "0.4580", "1.2", "<b>ann</b>"):
        assert words in cells
    (rows,) = saved_tables(html).values()
    assert [row[3] for row in rows] == ["version", "1.0", "1.1", "1.2"]
    (_, start), (_, first), (_, second), (_, third) = curve(html)
    assert second < first < start < third  # larger wealth is further up
    alarm = float(html.split('class="budgetline" d="M')[1].split("H")[0].split()[1])
    assert second < alarm < first


def test_wealth_beyond_all_bounds_stays_in_the_frame(book):
    html = page_after(book, 1e5, -2e5)
    assert all(0 <= down <= 300 for _, down in curve(html))
    assert "No alarm" not in html


def test_a_tiny_alpha_has_a_page_too(book):
    html = evidence_page(book.claim("tiny", Budget(1.0), alpha=1e-300), "book.db")
    harmless(html, {})
    assert 5 < html.count('class="tick"') < 40
