"""Clocks that are wrong: what they open, what they refuse, and how a log's time is corrected."""

import datetime

import numpy as np
import pytest

from accountant import (
    Book,
    Budget,
    BudgetExceeded,
    DatasetClosed,
    LedgerClockAhead,
    OffPlan,
    ParameterError,
    PureLoss,
)
from accountant.book import log
from accountant.book.chain.entries import author_key
from accountant.book.limits.windows import Window, window_kind
from mechanisms import Laplace
from tests.accountant.book.throwaway_books import rewritten, unlooked

DATA = np.arange(20.0)
HALF, QUARTER = PureLoss(0.5), Laplace(4.0)


def noon(day):
    """A time as entries state it: of noon, unless the day has a time."""
    return f"{day}:00:00.000000+00:00" if "T" in day else f"{day}T12:00:00.000000+00:00"


@pytest.fixture
def clock(monkeypatch):
    """A clock that is set to noon of a day, or to an hour."""
    times = [noon("2026-11-10")]
    monkeypatch.setattr(log, "clock_time", lambda _: times[0])
    return lambda day: times.__setitem__(0, noon(day))


def spend(book, name="d", loss=HALF):
    book.ledger(name, DATA).spend(loss)


def facts_of(book, entry=None):
    """The facts of an entry, by default of the last one."""
    with book._log.reading():
        return book._log.head.facts if entry is None else book._log.entry(entry).facts


# --- kinds of windows


@pytest.mark.parametrize(
    ("name", "label", "last", "first"),
    [
        ("day", "2026-11-10", "2026-11-10", "2026-11-11"),
        ("week", "2026-W46", "2026-11-15", "2026-11-16"),
        ("week", "2026-W53", "2027-01-03", "2027-01-04"),
        ("month", "2026-11", "2026-11-30", "2026-12-01"),
        ("quarter", "2026-Q4", "2026-12-31", "2027-01-01"),
        ("quarter", "2028-Q1", "2028-03-31", "2028-04-01"),
        ("year", "2026", "2026-12-31", "2027-01-01"),
    ],
)
def test_windows_of_the_calendar_begin_where_it_says(name, label, last, first):
    window, kind = Window(name, 2, noon("2020-01-01")), window_kind(name)
    assert window.label(noon(last)) == label
    assert window.label(noon(first)) > label
    assert [window.age(label, noon(day)) for day in (last, first)] == [0, 1]
    begun = kind.first_day(label)
    assert kind.label(begun) == label == kind.label(kind.next_day(label) - datetime.timedelta(1))
    before = begun - datetime.timedelta(1)
    assert window.age(label, noon(str(before))) == -1
    assert kind.next_day(kind.label(before)) == begun


@pytest.mark.parametrize("day", range(0, 4000, 37))
def test_labels_are_in_the_order_of_time_and_lead_back(day):
    date = datetime.date(2024, 12, 25) + datetime.timedelta(day)
    for name in ("day", "week", "month", "quarter", "year", "30 days"):
        kind = window_kind(name)
        label = kind.label(date)
        assert kind.number(kind.first_day(label)) == kind.number(date)
        assert kind.first_day(label) <= date < kind.next_day(label)
        assert kind.label(kind.next_day(label)) > label


@pytest.mark.parametrize(
    "name", ["0 days", "3661 days", "030 days", "30 Days", "1 day", "٣ days", "weeks", 30, "", []]
)
def test_other_windows_are_refused(sqlite_book, name):
    with Book.create(sqlite_book.url) as book:
        with pytest.raises(ParameterError, match=r"such as '30 days' \(1 to 3660\), or None"):
            book.dataset("d", Budget(1.0), window=name)
        assert book.names == []


@pytest.mark.parametrize(
    ("name", "words", "days"),
    [
        ("day", "one day", ["2026-11-10", "2026-11-11", "2026-11-12"]),
        ("week", "one calendar week", ["2026-11-15", "2026-11-16", "2026-11-23"]),
        ("quarter", "one calendar quarter", ["2026-12-31", "2027-01-01", "2027-04-01"]),
        ("year", "one calendar year", ["2026-12-31", "2027-01-01", "2028-01-01"]),
        ("7 days", "7 days in a row", ["2026-11-10", "2026-11-17", "2026-11-24"]),
        ("3660 days", "3660 days in a row", ["2026-11-10", "2036-11-17", "2046-11-25"]),
    ],
)
def test_each_window_has_the_budget_and_carries_what_was_left(
    sqlite_book, clock, name, words, days
):
    with Book.create(sqlite_book.url, clock="trusted") as book:
        book.dataset("d", Budget(1.0), unit="one person", window=name)
        clock("2026-11-10")
        book.dataset("carried", Budget(1.0), window=name, carry=1)
        for day in days[:2]:
            clock(day)
            spend(book)
            spend(book)
            with pytest.raises(BudgetExceeded):
                spend(book)
        status = book.status("d")
        assert status.protects == f"the data of one person in {words} (UTC)"
        assert (status.windows, status.log_time, status.clock) == (name, None, None)
        clock(days[2])
        assert book.remaining("d", HALF) == 2
        assert book.remaining("carried", HALF) == 4
        assert book.dataset("d", window=name).windows == name
        book.verify()


def test_old_books_keep_their_labels(sqlite_book, clock):
    with Book.create(sqlite_book.url) as book:
        for name, label in (("month", "2026-11"), ("30 days", "2026-11-10")):
            book.dataset(name, Budget(1.0), window=name)
            spend(book, name)
            assert facts_of(book)["parts"] == {label: ["0.5", "0.0"]}
            assert not {"latest", "window_time"} & set(facts_of(book))


# --- a clock that is ahead


def test_no_window_opens_by_a_clock_that_was_not_confirmed(any_book, clock):
    with Book.create(any_book.url) as book:
        book.dataset("d", Budget(1.25), window="month")
        book.dataset("plain", Budget(10.0))
        with book.ledger("d", DATA, 2 * QUARTER, run="r") as ledger:
            ledger.release(QUARTER, np.sum)
            clock("2026-11-11T13")  # one day and one hour later
            before = any_book.hash_rows()
            for asked in (
                lambda: ledger.release(QUARTER, unlooked),
                lambda: spend(book),
                lambda: book.ledger("d", DATA, 1 * QUARTER),
                lambda: book.dataset("e", Budget(1.0), window="day"),
            ):
                with pytest.raises(LedgerClockAhead) as refused:
                    asked()
        assert str(refused.value) == (
            f"{book._log.name}: the clock says 2026-11-11T13:00:00, more than one day after the "
            "log's time, 2026-11-10T12:00:00 (UTC); nothing was spent, read or drawn; if the clock "
            "is right, open the book with clock='2026-11-11', or with clock='trusted' where the "
            "clock is always kept right"
        )
        assert any_book.hash_rows() == before
        status = book.status("d")
        assert (status.log_time, status.clock) == (noon("2026-11-10"), noon("2026-11-11T13"))
        spend(book, "plain")  # without windows no clock matters
        assert facts_of(book)["window_time"] == noon("2026-11-10")
        with pytest.raises(LedgerClockAhead):  # one entry more of the same clock proves nothing
            spend(book)
        with Book.open(any_book.url, clock="2026-11-11") as confirmed:
            spend(confirmed)
            assert "window_time" not in facts_of(confirmed)
        clock("2026-11-12T13")
        spend(book, loss=PureLoss(1e-3))  # within a day of what was confirmed
        book.verify()


@pytest.mark.parametrize(
    ("confirmed", "fits"),
    [("trusted", True), ("2026-12-24", True), ("2026-12-23", False), ("2026-12-24T11:59", False),
     ("2026-12-24T13:00+01:00", True), ("2027-12-24", True),
     (datetime.datetime(2026, 12, 24, 12), True), (datetime.datetime(2026, 12, 24), False)],
)  # fmt: skip
def test_a_clock_is_confirmed_up_to_a_time(sqlite_book, clock, confirmed, fits):
    with Book.create(sqlite_book.url, clock=confirmed) as book:
        book.dataset("d", Budget(1.0), window="month")
        clock("2026-12-24")
        if fits:
            spend(book)
        else:
            with pytest.raises(LedgerClockAhead):
                spend(book)
        book.verify()


@pytest.mark.parametrize("wrong", ["soon", 3, "trust", ""])
def test_a_clock_is_no_word(sqlite_book, wrong):
    with pytest.raises(ParameterError, match="clock must be 'trusted', or a day, or a time such"):
        Book.open(sqlite_book.url, clock=wrong)
    assert not sqlite_book.path.exists()


def test_an_entry_of_the_far_future_freezes_no_window(sqlite_book, clock):
    with Book.create(sqlite_book.url) as book:
        book.dataset("d", Budget(1.0), window="month")
        book.dataset("plain", Budget(1.0))
        book.dataset("ends", Budget(1.0), expires="2027-01-01")
        spend(book)
        clock("2099-01-01")
        spend(book, "plain")
        clock("2026-11-11")
        spend(book)
        with pytest.raises(BudgetExceeded):  # of November
            spend(book)
        assert facts_of(book)["latest"] == noon("2099-01-01")
        assert "window_time" in facts_of(book)
        with pytest.raises(DatasetClosed, match="the log's time is 2099-01-01T12:00:00, the clock"):
            spend(book, "ends")
        assert book.status("d").log_time is None
        status = book.status("ends")
        assert (status.log_time, status.clock) == (noon("2099-01-01"), noon("2026-11-11"))
        book.verify()


def test_a_clock_that_runs_back_is_named(sqlite_book, clock):
    with Book.create(sqlite_book.url, author="ada") as book:
        book.dataset("d", Budget(1.0), window="month")
        spend(book)
        clock("2026-11-09")
        times = "the log's time is 2026-11-10T12:00:00, the clock says 2026-11-09T12:00:00"
        with pytest.raises(BudgetExceeded, match=times):
            spend(book, loss=PureLoss(0.75))
        book.set_quota("d", "ada", 0.6, "some")
        with pytest.raises(BudgetExceeded, match=f"quota of 'ada'.*{times}"):
            spend(book, loss=PureLoss(0.25))
        clock("2026-11-10T11:59")
        book.verify()


# --- corrections


def test_what_a_wrong_clock_spent_counts_in_the_window_that_is_open(any_book, clock):
    with Book.create(any_book.url, author="ada", clock="trusted") as book:
        book.dataset("d", Budget(1.0), window="month", carry=1)
        book.dataset("unspent", Budget(1.0), window="30 days")
        book.set_quota("d", "ada", 5.0, "much")
        spend(book)
        clock("2027-03-01")  # wrong: four months early
        spend(book)
        spend(book)
        assert facts_of(book)["parts"].keys() == {"2027-03"}  # November was dropped
        clock("2026-11-12")
        with pytest.raises(BudgetExceeded, match=r"Book\.correct_clock"):
            spend(book, loss=PureLoss(1.5))
        made = book.correct_clock("NTP was off")
        assert made == (noon("2027-03-01"), noon("2026-11-12"), ("d",), ())
        with book._log.reading():
            facts = book._log.last_charge("d").facts
            stated = book._log.entry_with_key(author_key("d", "ada")).facts
        assert facts["parts"] == {"2026-11": ["1.5", "0.0"]}
        assert (stated["own"], stated["quota"]) == ({"2026-11": ["1.5", "0.0"]}, 5.0)
        assert not {"latest", "window_time"} & facts.keys()
        status = book.status("d")
        assert (status.epsilon, status.total, status.limit) == (1.5, 1.5, 1.0)
        assert (status.window, status.log_time) == ("2026-11", None)
        assert book.remaining("d", HALF) == book.remaining("d", PureLoss(1e-6)) == 0
        with pytest.raises(BudgetExceeded):
            spend(book, loss=PureLoss(1e-6))
        corrected, quota = book.history("d", last=2)
        assert (corrected.outcome, quota.outcome) == ("clock", "quota")
        assert "by the corrected clock" in corrected.what
        assert quota.what == "quota of ada: epsilon 5 (NTP was off)"
        assert corrected.spent == quota.spent == ["1.5", "0.0"]
        book.close_dataset("unspent", "never used")
        book.set_quota("d", "ada", 4.0, "less")  # other terms may still change
        with pytest.raises(ParameterError, match="holds what was spent"):
            book.raise_budget("d", Budget(1.25), "not enough")
        book.verify()
        clock("2026-12-01")
        assert book.remaining("d", HALF) == 2  # November left nothing
        spend(book)
        assert book.quotas("d") == [("ada", 0.5, 4.0)]
        assert [line.total for line in book.history("d", since=facts["seq"])] == [1.5, 1.5, 0.5]
        with pytest.raises(ParameterError, match="one whose time is ahead of the clock's"):
            book.correct_clock("once more")
        book.verify()


def test_an_old_book_with_an_entry_of_2099_is_opened_again(sqlite_book, clock):
    with Book.create(sqlite_book.url) as book:
        book.dataset("d", Budget(1.0), window="month")
        book.dataset("plain", Budget(1.0))
        spend(book)
        clock("2099-01-01")
        spend(book, "plain")

    def as_it_was(facts):
        facts.pop("window_time", None)

    sqlite_book.tamper(*rewritten(sqlite_book, 1, as_it_was))
    clock("2026-11-12")
    with Book.open(sqlite_book.url) as book:
        spend(book, loss=PureLoss(1.0))  # in January 2099
        assert book.status("d").window == "2099-01"
        before = sqlite_book.hash_rows()
        with pytest.raises(LedgerClockAhead, match=r"2026-11-12T12.* time, 2026-11-10T12"):
            book.correct_clock("an entry of 2099")
        assert sqlite_book.hash_rows() == before
    with Book.open(sqlite_book.url, clock="2026-11-12") as book:
        book.correct_clock("an entry of 2099")
        assert facts_of(book)["parts"] == {"2026-11": ["1.5", "0.0"]}
        book.verify()


def test_corrections_follow_each_other(sqlite_book, clock):
    with Book.create(sqlite_book.url, clock="trusted") as book:
        book.dataset("d", Budget(1.0), window="day", carry=2)
        spend(book)
        for wrong, right in (("2090-01-01", "2050-01-01"), ("2060-01-01", "2026-11-11")):
            clock(wrong)
            spend(book)
            clock(right)
            book.correct_clock("again")
            book.verify()
        assert facts_of(book)["parts"] == {
            "2026-11-10": ["0.5", "0.0"],
            "2026-11-11": ["1.0", "0.0"],
        }
        assert book.remaining("d", HALF) == 1
        spend(book)
        assert facts_of(book)["latest" if "latest" in facts_of(book) else "time"] == noon(
            "2026-11-11"
        )
        book.verify()


def test_a_time_that_was_reached_step_by_step_stays(sqlite_book, clock):
    with Book.create(sqlite_book.url) as book:
        book.dataset("d", Budget(1.0), window="month")
        for day in ("2026-11-11", "2026-11-12", "2026-11-13", "2026-11-14"):
            clock(day)
            spend(book, loss=PureLoss(0.25))
        clock("2026-11-12T10")
        before = sqlite_book.hash_rows()
        with pytest.raises(ParameterError, match=r"one day.*wait until the clock has caught up"):
            book.correct_clock("a slow clock")
        assert sqlite_book.hash_rows() == before
    with Book.open(sqlite_book.url, clock="trusted") as book:
        clock("2027-01-01")
        spend(book)
        clock("2026-11-14T10")  # before the last entry that was right
        with pytest.raises(ParameterError, match="it went in steps of at most one day"):
            book.correct_clock("a slow clock")
        clock("2026-11-14T13")
        book.correct_clock("now it is right")
        book.verify()


def test_a_book_that_began_by_a_wrong_clock_is_corrected(sqlite_book, clock):
    clock("2099-01-01")
    with Book.create(sqlite_book.url) as book:
        book.dataset("d", Budget(1.0), window="month", carry=3)
        spend(book)
        clock("2026-11-12")
        # no entry tells this from an empty battery of a machine whose log is right
        with pytest.raises(ParameterError, match=r"before 2026-11-12T12.*clock='2026-11-12'"):
            book.correct_clock("the battery was empty")
    with Book.open(sqlite_book.url, clock="2026-11-12") as book:
        book.correct_clock("the battery was empty")
        assert book.remaining("d", HALF) == 1
        clock("2026-11-13")
        spend(book)
        book.verify()


def test_a_correction_brings_no_expired_data_set_back(sqlite_book, clock):
    with Book.create(sqlite_book.url) as book:
        book.dataset("ends", Budget(1.0), expires="2027-01-01")
        book.dataset("later", Budget(1.0), expires="2999-01-01")
        book.dataset("closed", Budget(1.0), expires="2027-01-01")
        book.close_dataset("closed", "over")
        clock("2099-01-01")
        spend(book, "later")
        clock("2026-11-11")
        made = book.correct_clock("2099")
        assert made.expired == ("ends",)
        assert book.status("ends").expires == noon("2026-11-11")
        with pytest.raises(DatasetClosed, match="expired at 2026-11-11T12:00:00"):
            spend(book, "ends")
        book.expire("ends", "2027-01-01", "it was the clock")
        spend(book, "ends")
        spend(book, "later")
        assert "latest" not in facts_of(book)
        book.verify()


def test_a_step_belongs_to_the_window_to_which_a_correction_moved_its_run(sqlite_book, clock):
    plan = 2 * QUARTER
    with Book.create(sqlite_book.url, clock="trusted") as book:
        book.dataset("d", Budget(1.0), window="month")
        spend(book, loss=PureLoss(0.01))
        clock("2027-01-10")
        with book.ledger("d", DATA, plan, run="r") as ledger:
            ledger.release(QUARTER, np.sum)
        clock("2026-11-12")
        book.correct_clock("two months early")
        with book.ledger("d", DATA, plan, run="r") as ledger:
            ledger.release(QUARTER, unlooked)  # it is stored
            clock("2027-01-10")  # now it is true, and January has not paid for this run
            with pytest.raises(OffPlan, match="paid for in 2026-11"):
                ledger.release(QUARTER, unlooked)
        book.verify()


def test_a_step_of_a_run_that_was_moved_is_made(sqlite_book, clock):
    with Book.create(sqlite_book.url, clock="trusted") as book:
        book.dataset("d", Budget(1.0), window="month")
        clock("2027-01-10")
        with book.ledger("d", DATA, 2 * QUARTER, run="r") as ledger:
            ledger.release(QUARTER, np.sum)
            clock("2026-11-12")
            book.correct_clock("two months early")
            ledger.release(QUARTER, np.sum)
        book.verify()


@pytest.mark.parametrize("reason", ["", None, " x", "a\nb"])
def test_a_correction_has_a_reason(sqlite_book, clock, reason):
    with Book.create(sqlite_book.url) as book:
        clock("2026-01-01")
        with pytest.raises(ParameterError, match="reason must be"):
            book.correct_clock(reason)
        assert book.verify().entries == 1


def test_pages_of_a_history_begin_after_a_correction(sqlite_book, clock):
    with Book.create(sqlite_book.url, clock="trusted") as book:
        book.dataset("d", Budget(1.0), window="month")
        spend(book)
        clock("2027-03-01")
        spend(book)
        clock("2026-11-12")
        book.correct_clock("early")
        corrected = book.history("d")[-1].seq
        book.raise_budget("d", Budget(2.0), "more")
        book.raise_budget("d", Budget(3.0), "more")
        whole = book.history("d")
        for line in whole:
            assert book.history("d", since=line.seq) == [one for one in whole if one.seq > line.seq]
        assert [line.total for line in book.history("d", since=corrected)] == [1.0, 1.0]
        book.verify()


# --- whose clock it is


@pytest.mark.slow
def test_a_server_tells_the_time_together_with_its_lock(postgres_server, monkeypatch):
    place = postgres_server.database()
    with Book.create(place.url) as book:
        book.dataset("d", Budget(1.0), window="month")
        spend(book, loss=PureLoss(0.1))
        sent = []
        send = book._log.storage._send
        monkeypatch.setattr(
            book._log.storage, "_send", lambda *words: sent.append(words) or send(*words)
        )
        here = datetime.datetime.now(datetime.UTC)
        spend(book, loss=PureLoss(0.1))
        assert len(sent) == 2  # the lock with what is asked ahead, and the commit
        stated = datetime.datetime.fromisoformat(facts_of(book)["time"])
        assert abs(stated - here) < datetime.timedelta(minutes=1)


def test_a_file_has_the_clock_of_the_machine(sqlite_book):
    with Book.create(sqlite_book.url) as book:
        here = datetime.datetime.now(datetime.UTC)
        with book._log.reading():
            assert abs(book._log.storage.now() - here) < datetime.timedelta(minutes=1)


TIMES = {"log_time": "2026-11-10T12:00:00.25", "clock": "2026-11-11T12:00:00.75"}
LINES = [
    ({}, []),
    (TIMES, ["  the log's time is 2026-11-10T12:00:00, the clock says 2026-11-11T12:00:00 (UTC); "
             "no later window opens until the clock is confirmed"]),
    ({"log_time": TIMES["clock"], "clock": TIMES["log_time"]},
     ["  the log's time is 2026-11-11T12:00:00, the clock says 2026-11-10T12:00:00 (UTC)"]),
    ({"log_time": TIMES["clock"]}, []),
    ({"expires": "2027-01-01T00:00:00.5"}, ["  expires 2027-01-01T00:00:00 (UTC)"]),
    ({"expires": "2027-01-01T00:00:00.5", "closed": "2026-01-01T00:00:00.5", "reason": "the end"},
     ["  closed 2026-01-01T00:00:00 (UTC): the end"]),
    ({"runs": (1, 2000)}, ["  1 of 2,000 runs of the plan that was set aside are made"]),
    ({"verified": True, "proposal": "a change waits"},
     ["  each plan is opened with a proof of its cost", "  a change waits"]),
    ({"limited_authors": 1200, "most": 2.5},
     ["  one window has at most epsilon 2.500", "  authors with a quota: 1,200"]),
]  # fmt: skip


def test_a_status_says_each_of_its_terms_in_a_line(tmp_path):
    with Book.create(tmp_path / "b.db") as book:
        status = book.dataset("d", Budget(1.0, 1e-6))
    for changes, lines in LINES:
        first, *others = str(status._replace(**changes)).splitlines()
        assert first == "d: spent epsilon 0 of 1 at delta 1e-06, for one row"
        assert others == lines
