"""Budgets of windows of time, and of buckets of people: what they admit, and what verify sees."""

import numpy as np
import pytest

from accountant import (
    Book,
    Budget,
    BudgetExceeded,
    LedgerCorrupt,
    OffPlan,
    ParameterError,
    PureLoss,
    UnsupportedPlan,
)
from accountant.book import log
from accountant.book.export import registry_rows
from accountant.reports.history_page import history_page
from mechanisms import Gaussian, Laplace
from tests.accountant.book.throwaway_books import rewritten, unlooked
from tests.html_checks import Checked

DATA = np.arange(20.0)
QUARTER = Laplace(4.0)


@pytest.fixture
def clock(monkeypatch):
    """A clock that is set to noon of a day."""
    times = ["2026-01-10T12:00:00.000000+00:00"]
    monkeypatch.setattr(log, "clock_time", lambda _: times[0])
    return lambda day: times.__setitem__(0, f"{day}T12:00:00.000000+00:00")


def spends(book, mechanism=QUARTER, **options):
    """Spend until it is refused; how often that was possible."""
    with book.ledger("d", DATA, **options) as ledger:
        for count in range(100):
            try:
                ledger.release(mechanism, np.sum)
            except BudgetExceeded:
                return count
    raise AssertionError("no end")


def test_each_month_has_the_budget_whatever_the_clock_says(any_book, clock):
    with Book.create(any_book.url, clock="trusted") as book:
        book.dataset("d", Budget(1.0), unit="one person", window="month")
        made = {}
        for day in ("2026-01-10", "2026-01-31", "2026-02-01", "2026-01-05", "2026-04-30"):
            clock(day)
            made[day] = spends(book)
        assert list(made.values()) == [4, 0, 4, 0, 4]  # set back, the clock opens no budget
        status = book.status("d")
        assert status.protects == "the data of one person in one calendar month (UTC)"
        assert (status.window, status.epsilon, status.limit, status.most) == ("2026-04", 1, 1, 1)
        clock("2026-05-01")
        assert (book.spent("d"), book.remaining("d", QUARTER)) == (0.0, 4)
        before = any_book.hash_rows()
        with book.ledger("d", DATA) as ledger, pytest.raises(BudgetExceeded):
            ledger.release(Laplace(0.9), unlooked)
        assert any_book.hash_rows() == before
        assert [line.total for line in book.history("d", last=2)] == [0.75, 1.0]
        book.verify()


@pytest.mark.parametrize("notion", ["zcdp", "pure-or-rdp", "gdp", "rdp"])
def test_a_window_carries_what_was_left_of_the_one_before_and_no_more(sqlite_book, clock, notion):
    noise = Gaussian(12.0, arithmetic="exact")
    with Book.create(sqlite_book.url, clock="trusted") as book:
        book.dataset("d", Budget(1.0, 1e-6), notion, window="month", carry=1)
        made = []
        for day in ("2026-01-10", "2026-02-10", "2026-04-10", "2026-05-10"):
            clock(day)
            made.append(spends(book, noise))
        first, none_left, carried, after = made
        assert first > 2
        assert first - 1 <= none_left <= first + 1
        assert 2 * first - 1 <= carried <= 2 * first + 1
        assert after == first
        assert book.status("d").most > 1.0  # of one month, by the sums of two
        clock("2026-04-10")
        assert book.status("d").window == "2026-05"
        book.verify()


def test_any_thirty_days_in_a_row_have_one_budget(sqlite_book, clock):
    with Book.create(sqlite_book.url, clock="trusted") as book:
        book.dataset("d", Budget(1.0), window="30 days")
        with book.ledger("d", DATA) as ledger:
            ledger.spend(PureLoss(0.5))
            clock("2026-01-20")
            ledger.spend(PureLoss(0.25))
            for day, left in (("2026-02-08", 0.25), ("2026-02-09", 0.75), ("2026-02-19", 1.0)):
                clock(day)
                assert book.remaining("d", PureLoss(0.25)) == left * 4
            clock("2026-02-10")
            with pytest.raises(BudgetExceeded):
                ledger.spend(PureLoss(1.0))
            ledger.spend(PureLoss(0.75))
        assert book.spent("d") == 1.0 - 0.25 + 0.25
        book.verify()


def test_a_step_is_made_in_the_window_that_paid_for_it(sqlite_book, clock):
    plan = 2 * QUARTER
    with Book.create(sqlite_book.url, clock="trusted") as book:
        book.dataset("d", Budget(1.0), window="month")
        with book.ledger("d", DATA, plan, run="r") as ledger:
            answer = ledger.release(QUARTER, np.sum)
            clock("2026-02-01")
            with pytest.raises(OffPlan, match="paid for in 2026-01"):
                ledger.release(QUARTER, unlooked)
        with book.ledger("d", DATA, plan, run="r") as ledger:
            assert ledger.release(QUARTER, unlooked) == answer
        with book.ledger("d", DATA, plan, run="s") as ledger:
            ledger.release(QUARTER, np.sum)
        assert book.spent("d") == 0.5
        book.verify()


def test_quotas_and_changes_of_a_budget_count_the_window_that_is_open(sqlite_book, clock):
    with Book.create(sqlite_book.url, author="ada", clock="trusted") as book:
        book.dataset("d", Budget(1.0), window="month")
        assert spends(book) == 4
        book.set_quota("d", "ada", 0.5, "half of each month")
        clock("2026-02-01")
        assert book.quotas("d") == [("ada", 0.0, 0.5)]
        assert spends(book) == 2
        with pytest.raises(ParameterError, match=r"holds what was spent, epsilon 0\.5"):
            book.raise_budget("d", Budget(0.4), "less")
        book.raise_budget("d", Budget(0.5), "half")
        clock("2026-03-01")
        assert spends(book) == 2
        assert book.quotas("d") == [("ada", 0.5, 0.5)]
        book.verify()


def test_a_window_keeps_what_a_larger_budget_gave_it(sqlite_book, clock):
    with Book.create(sqlite_book.url, clock="trusted") as book:
        book.dataset("d", Budget(1.0), window="month", carry=1, people="staff")
        assert spends(book) == 4
        registered = registry_rows(book.status("d"), book.history("d"), None)
        assert registered[0]["epsilon"] == book.status("d").most == 2.0
        clock("2026-02-01")
        book.raise_budget("d", Budget(0.5), "half")
        status = book.status("d")
        # the data of January have lost 1.0, and could have lost 2.0 with what came before
        assert (status.budget.epsilon, status.limit, status.most) == (0.5, 0.5, 2.0)
        assert book.people()[0].epsilon == 2.0
        assert [line.epsilon for line in book.history("d", last=2)] == [1.0, 0.0]
        page = history_page(status, book.history("d"), "b.db")
        rows = Checked(page).cells
        at = next(i for i, cell in enumerate(rows) if cell.strip() == "Laplace")
        assert rows[at + 4].strip() == "2"  # of half an epsilon, none carried over
        heights = page.split('class="spent" d="')[1].split('"')[0].split("V")[1:]
        assert min(float(one.split("H")[0]) for one in heights) >= 14  # none is cut off at the top
        book.set_quota("d", "ada", 0.25, "some")
        assert book.status("d").most == 2.0
        clock("2026-03-01")
        carried = Checked(history_page(book.status("d"), book.history("d"), "b.db")).cells
        assert carried[at + 4].strip() == "–"  # four fit; two would be too few to say
        book.verify()
        last = book.history("d")[-1].seq
        book.close_dataset("d", "the end")
        closed = Checked(history_page(book.status("d"), book.history("d"), "b.db")).cells
        assert closed[closed.index(rows[at]) + 4].strip() == "0"
    sqlite_book.tamper(*rewritten(sqlite_book, last, lambda facts: facts.pop("largest", None)))
    with Book.open(sqlite_book.url) as book, pytest.raises(LedgerCorrupt, match="largest budget"):
        book.verify()


@pytest.mark.parametrize(
    "change", ["parts", "forgotten", "a day before", "own", "bucket", "no bucket", "over"]
)
def test_what_charges_say_of_windows_and_buckets_is_verified(sqlite_book, clock, change):
    buckets = change in {"bucket", "no bucket", "over"}
    with Book.create(sqlite_book.url, author="ada", clock="trusted") as book:
        options = {"buckets": "region"} if buckets else {"window": "30 days"}
        book.dataset("d", Budget(1.0), **options)
        if not buckets:
            book.set_quota("d", "ada", 0.9, "most")
        with book.ledger("d", DATA, buckets=["a", "b"] if buckets else None) as ledger:
            for day in ("2026-01-10", "2026-01-12"):
                clock(day)
                ledger.spend(PureLoss(0.375))
        book.verify()
        last = book.history("d")[-1].seq

    def change_facts(facts):
        if facts["seq"] != last:
            return
        if change == "parts":
            facts["parts"]["2026-01-10"] = ["0.1", "0"]
        elif change == "forgotten":
            del facts["parts"]["2026-01-10"]
        elif change == "a day before":
            facts["parts"]["2025-12-01"] = facts["parts"].pop("2026-01-10")
        elif change == "own":
            facts["own"] = {"2026-01-12": facts["own"]["2026-01-12"]}
        elif change == "bucket":
            facts["buckets"]["a"] = ["0.5", "0"]
        elif change == "no bucket":
            facts["buckets"] = {}

    def lower(facts):
        facts["epsilon"] = 0.7 if facts["kind"] == "dataset" else facts.get("epsilon")

    over = change == "over"
    words = rewritten(sqlite_book, 2 if over else last, lower if over else change_facts)
    sqlite_book.tamper(*words)
    with Book.open(sqlite_book.url) as book, pytest.raises(LedgerCorrupt):
        book.verify()


def test_a_release_is_paid_by_each_bucket_that_it_touches_or_by_none(any_book):
    with Book.create(any_book.url) as book, Book.open(any_book.url) as other:
        book.dataset("d", Budget(1.0), unit="one person", buckets="region")
        assert book.status("d").protects == "one person in one region"
        with book.ledger("d", DATA, buckets=["south", "north"]) as ledger:
            ledger.release(QUARTER, np.sum)
        assert spends(other, buckets=["south"]) == 3
        before = any_book.hash_rows()
        assert spends(book, buckets=["south", "west"]) == 0  # and the west has paid nothing
        assert any_book.hash_rows() == before
        assert spends(other, buckets={"west"}) == 4
        assert book.buckets("d") == [("north", 0.25, 0.75), ("south", 1, 0), ("west", 1, 0)]
        assert book.spent("d") == 1.0  # the largest, not the sum
        with pytest.raises(ParameterError, match="budget must be"):
            book.raise_budget("d", Budget(0.5), "less")
        book.raise_budget("d", Budget(1.25), "one more")
        assert spends(book, buckets=["south", "west", "north"]) == 1
        book.verify()


def test_labels_and_runs_belong_to_their_buckets(sqlite_book):
    plan = 2 * QUARTER
    with Book.create(sqlite_book.url) as book:
        book.dataset("d", Budget(2.0), buckets="region")
        answers = []
        for name in ("north", "south", "north"):
            with book.ledger("d", DATA, buckets=[name]) as ledger:
                answers.append(ledger.release(QUARTER, np.sum, label="sum"))
        assert answers[0] == answers[2] != answers[1]
        with book.ledger("d", DATA, plan, run="r", buckets=["north"]) as ledger:
            ledger.release(QUARTER, np.sum)
        with pytest.raises(ParameterError, match="run must be a run that these buckets paid for"):
            book.ledger("d", DATA, plan, run="r", buckets=["south"])
        assert book.buckets("d") == [("north", 0.75, 1.25), ("south", 0.25, 1.75)]
        book.verify()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"window": "fortnight"},
            "window must be 'day', 'week', 'month', 'quarter', 'year', a number",
        ),
        ({"carry": 1}, "carry must be given with window="),
        ({"window": "month", "carry": True}, "carry must be"),
        ({"window": "month", "carry": 13}, "carry must be"),
        ({"window": "month", "users": 20}, "window must be given without users="),
        ({"window": "month", "buckets": "day"}, "buckets must be given without window="),
        ({"buckets": " day"}, "buckets must be"),
        ({"runs": 2}, "runs must be given with plan="),
        ({"plan": QUARTER, "window": "month"}, "plan must be absent"),
        ({"plan": QUARTER, "runs": 0}, "runs must be"),
    ],
)
def test_limits_that_do_not_go_together_are_refused(sqlite_book, options, words):
    with Book.create(sqlite_book.url) as book:
        with pytest.raises(ParameterError, match=words):
            book.dataset("d", Budget(1.0), **options)
        assert book.names == []


def test_buckets_are_named_where_there_are_some_and_nowhere_else(sqlite_book):
    with Book.create(sqlite_book.url) as book:
        book.dataset("d", Budget(1.0), buckets="region")
        book.dataset("plain", Budget(1.0))
        for name, buckets in (
            ("d", None), ("d", "north"), ("d", []), ("d", [""]), ("plain", ["north"])
        ):  # fmt: skip
            with pytest.raises(ParameterError, match="buckets must be"):
                book.ledger(name, DATA, buckets=buckets)
        with pytest.raises(ParameterError, match="opened with buckets="):
            book.buckets("plain")
        for other in ({"buckets": "day"}, {"window": "month"}, {"plan": QUARTER}):
            with pytest.raises(ParameterError):
                book.dataset("d", **other)
        assert book.dataset("d", buckets="region").buckets == "region"


def test_in_windows_and_buckets_plans_are_added_up(sqlite_book):
    plan = 40 * Laplace(25.0)
    with Book.create(sqlite_book.url) as book:
        for name, options in (("d", {"window": "month"}), ("e", {"buckets": "region"})):
            book.dataset(name, Budget(1.0, 1e-6), "pure", **options)
            given = ["a"] if name == "e" else None
            with pytest.raises((BudgetExceeded, UnsupportedPlan)):
                book.ledger(name, DATA, plan, buckets=given)
        assert len(book.history("d") + book.history("e")) == 0
