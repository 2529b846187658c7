"""The page of a ledger: what was spent and what is left."""

import pytest

from accountant import Book, Budget
from accountant.book.limits.windows import window_kind
from accountant.ledger.totals import Spending
from accountant.reports.history_page import LedgerTotals, history_page
from mechanisms import Gaussian, Laplace
from tests.accountant.example_files import spent_book
from tests.html_checks import Checked, harmless, saved_tables

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
    # one family, whatever the scale; 0.65 left: thirteen of the last one's 0.05
    at = cells.index("Laplace")
    assert cells[at + 1 : at + 5] == ["4", "3", "1", "13"]
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
    with Book.create(f"sqlite:///{tmp_path}/b.db") as book:
        book.dataset("x", budget=BUDGET)
        html = history_page(book.status("x"), book.history("x"), "b.db")
    assert "Nothing was spent" in html
    harmless(html, {})


def test_kinds_are_questions_and_room_is_for_more_like_the_last(tmp_path):
    with Book.create(f"sqlite:///{tmp_path}/b.db", author="ann") as book:
        book.dataset("x", Budget(1.0))
        with book.ledger("x", [1.0]) as ledger:
            for scale, question in ((10.0, "mean"), (5.0, "mean"), (20.0, "median")):
                with ledger.answering(question):
                    ledger.release(Laplace(scale=scale), lambda rows: 0.0)
        html = history_page(book.status("x"), book.history("x"), "b.db")
    cells = [cell.strip() for cell in Checked(html).cells]
    at = [cells.index(question) for question in ("mean", "median")]
    rows = [cells[start + 1 : start + 5] for start in at]
    assert rows == [["2", "2", "0", "3"], ["1", "1", "0", "13"]]  # 0.65 left of 0.2 and 0.05
    assert "By author" not in html  # there is one, who spent all


def test_the_room_and_the_price_of_a_question_of_steps_are_those_of_all_steps(tmp_path):
    with Book.create(f"sqlite:///{tmp_path}/b.db", author="ann") as book:
        book.dataset("x", Budget(1.0))
        ledger = book.ledger("x", [1.0])
        with ledger.answering("median"), ledger.reserving(4 * Laplace(scale=20.0)):
            for _ in range(4):
                ledger.release(Laplace(scale=20.0), lambda rows: 0.0)
        html = history_page(book.status("x"), book.history("x"), "b.db")
    cells = [cell.strip() for cell in Checked(html).cells]
    start = cells.index("median")
    assert cells[start + 1 : start + 5] == ["4", "4", "0", "4"]  # 0.8 left of 0.2 for a question
    assert cells[-3:-1] == ["0.2000", "0.2000"]  # the price of the plan, and the total after it


def test_totals_by_run_author_and_month_add_up(tmp_path):
    plan = 10 * Gaussian(scale=40.0)
    with Book.create(f"sqlite:///{tmp_path}/b.db", author="ann") as book:
        book.dataset("x", budget=BUDGET, expires="2999-01-31")
        with book.ledger("x", [1.0], plan, run="survey") as ledger:
            for _ in range(4):
                ledger.release(Gaussian(scale=40.0), lambda rows: 0.0)
        with book.ledger("x", [1.0]) as ledger:
            ledger.release(Gaussian(scale=20.0), lambda rows: 0.0)
        status, lines = book.status("x"), book.history("x")
        html = history_page(status, lines, "b.db")
    harmless(html, {})
    rows = saved_tables(html)["x-totals.csv"][1:]
    for grouping in ("run", "author", "month"):
        some = [float(row[-1]) for row in rows if row[0] == grouping]
        assert sum(some) == pytest.approx(status.epsilon, rel=1e-12)
    # ten at scale 40 have 10/1600, one at 20 has 1/400 = 4/1600 of the sum
    by_run = {row[1]: (int(row[2]), float(row[-1])) for row in rows if row[0] == "run"}
    assert by_run == {
        "survey": (4, pytest.approx(status.epsilon * 10 / 14, rel=1e-9)),
        "outside of runs": (1, pytest.approx(status.epsilon * 4 / 14, rel=1e-9)),
    }
    assert "6 of 10 releases of survey: paid for, not made yet" in html
    assert "2999-01-31 00:00:00" in html
    assert f"<b>{100 * status.epsilon / 2:.1f}"[:6] in html


@pytest.mark.parametrize(
    ("opened", "coming"),
    [({"window": "month"}, "the next month has a budget of its own"),
     ({"window": "30 days"}, "what was spent on the oldest of the 30 days no longer counts"),
     ({"buckets": "region"}, None)],
)  # fmt: skip
def test_a_window_or_a_bucket_is_no_part_of_one_total(tmp_path, opened, coming):
    with Book.create(tmp_path / "b.db") as book:
        book.dataset("x", budget=Budget(1.0), **opened)
        named = {"buckets": ["north"]} if "buckets" in opened else {}
        with book.ledger("x", [1.0], **named) as ledger:
            ledger.release(Laplace(scale=4.0), lambda rows: 0.0)
        status = book.status("x")
        html = history_page(status, book.history("x"), "b.db")
    harmless(html, {})
    assert saved_tables(html) == {}
    assert "<b>25.0 %</b>" in html
    assert "<b>0.7500</b>" in html
    assert status.protects in html
    assert ("paid by\nnorth" in html) == ("buckets" in opened)
    assert (coming is None) == ("What is to come" not in html)
    assert coming is None or coming in html


@pytest.mark.parametrize(
    ("name", "label", "when"),
    [("month", "2026-11", "2026-12-01"), ("month", "2026-12", "2027-01-01"),
     ("30 days", "2028-02-28", "2028-02-29"), ("30 days", "2026-12-31", "2027-01-01"),
     ("day", "2028-02-28", "2028-02-29"), ("week", "2026-W53", "2027-01-04"),
     ("quarter", "2026-Q4", "2027-01-01"), ("year", "2026", "2027-01-01")],
)  # fmt: skip
def test_the_next_window_begins_at_the_first_midnight_of_its_own(name, label, when):
    assert str(window_kind(name).next_day(label)) == when


def test_amounts_that_earlier_windows_left_may_be_spent(tmp_path):
    """Two months before leave their budget: the open one may spend three times as much."""
    with Book.create(tmp_path / "b.db") as book:
        book.dataset("x", budget=Budget(1.0), window="month", carry=2)
        with book.ledger("x", [1.0]) as ledger:
            ledger.release(Laplace(scale=4.0), lambda rows: 0.0)
        status = book.status("x")._replace(limit=3.0)
        html = history_page(status, book.history("x"), "b.db")
    assert "of what this window may spend" in html
    assert "<b>8.34 %</b>" in html
    assert "<b>2.750</b>" in html


def test_a_plan_set_aside_is_not_a_run_that_waits(tmp_path):
    with Book.create(f"sqlite:///{tmp_path}/b.db") as book:
        book.dataset("x", budget=Budget(3.0), plan=3 * Laplace(2.0), runs=2)
        with book.ledger("x", [1.0], 3 * Laplace(2.0), run="May") as ledger:
            ledger.release(Laplace(2.0), lambda rows: 0.0)
        html = history_page(book.status("x"), book.history("x"), "b.db")
    assert "2 of 3 releases of May: paid for, not made yet" in html
    assert "1 of 2 runs of the plan that was set aside" in html
    assert "runs without a name" not in html
    by_run = [row[1:3] + row[-1:] for row in saved_tables(html)["x-totals.csv"] if row[0] == "run"]
    assert by_run == [["set aside for runs of the plan", "0", "3.0"], ["May", "1", "0.0"]]


def test_totals_go_on_where_the_ledger_changes_its_unit(tmp_path):
    """A certified plan at first, then epsilons beside it."""
    with Book.create(f"sqlite:///{tmp_path}/b.db") as book:
        book.dataset("x", budget=BUDGET)
        with book.ledger("x", [1.0]) as ledger:
            ledger.release(Gaussian(scale=20.0), lambda rows: 0.0)
            ledger.release(Laplace(scale=20.0), lambda rows: 0.0)
        status, lines = book.status("x"), book.history("x")
    first, second = lines
    other = Spending("mu squared", 9.0, 10.0)
    first = _Line(first, Spending(first.counts, 3.0, 10.0), 0.2)
    second = _Line(second, other, 0.3)
    totals = LedgerTotals()
    totals.note(first)
    totals.note(second)
    (one,) = totals.shares(status)["author"]
    assert one.epsilon == status.epsilon
    (one,) = totals._groups["author"].values()
    assert one.amount == pytest.approx(9.0)


class _Line:
    """A line with another total than its own."""

    def __init__(self, line, spending, epsilon):
        self._line, self.epsilon = line, epsilon
        self.counts, self.total = spending.unit, spending.amount

    def __getattr__(self, name):
        return getattr(self._line, name)
