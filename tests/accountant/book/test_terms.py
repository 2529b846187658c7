"""Terms that change: a data set is closed, its budget is raised, or it expires."""

import multiprocessing
import re

import numpy as np
import pytest

from accountant import (
    Book,
    Budget,
    BudgetExceeded,
    DatasetClosed,
    LedgerCorrupt,
    ParameterError,
    Tight,
)
from accountant.book import log
from accountant.book.export import registry_rows
from mechanisms import Gaussian, Laplace
from tests.accountant.book.throwaway_books import rewritten, unlooked

DATA = np.arange(20.0)
TENTH = Laplace(10.0)
SPAWN = multiprocessing.get_context("spawn")


@pytest.fixture
def book(sqlite_book):
    with Book.create(sqlite_book.url) as found:
        yield found


def spend(book, mechanism=TENTH, **more):
    with book.ledger("d", DATA) as ledger:
        return ledger.release(mechanism, np.sum, **more)


def spend_all(book, mechanism):
    with book.ledger("d", DATA) as ledger:
        for _ in range(100):
            try:
                ledger.spend(mechanism)
            except BudgetExceeded:
                return
    raise AssertionError("no end")


def test_a_closed_data_set_spends_nothing_and_reads_nothing(stored_book):
    with Book.create(stored_book.url) as book:
        book.dataset("d", Budget(1.0))
        plan = 2 * TENTH
        with book.ledger("d", DATA, plan, run="paid") as paid:
            answers = [paid.release(TENTH, np.sum)]
        kept = spend(book, label="kept")
        status = book.close_dataset("d", "the study ended")
        assert status.closed[:10] == book.history("d")[-1].time[:10]
        assert status.reason == "the study ended"
        before = stored_book.hash_rows()
        with book.ledger("d", DATA) as ledger:
            for refused in (
                lambda: ledger.release(TENTH, unlooked),
                lambda: ledger.release(TENTH, unlooked, label="new"),
                lambda: ledger.spend(TENTH),
                lambda: book.ledger("d", DATA, plan, run="another"),
                lambda: book.raise_budget("d", Budget(2.0), "more"),
                lambda: book.expire("d", "2099-01-01", "later"),
            ):
                with pytest.raises(DatasetClosed, match=r"was closed at .* \(the study ended\); s"):
                    refused()
            assert ledger.release(TENTH, unlooked, label="kept") == kept
        with book.ledger("d", DATA, plan, run="paid") as paid:
            assert [paid.release(TENTH, unlooked)] == answers
            with pytest.raises(DatasetClosed):  # paid, and not looked at before the end
                paid.release(TENTH, unlooked)
        assert stored_book.hash_rows() == before
        assert book.remaining("d", TENTH) == 0
        book.close_dataset("d", "again")
        assert stored_book.hash_rows() == before
        assert book.verify().entries == book._log.head.seq
        assert [one.outcome for one in book.history("d")][-1] == "closed"
        assert book.history("d", last=1)[0].what == "closed (the study ended)"


@pytest.mark.parametrize(
    ("notion", "users"),
    [("pure", None), ("zcdp", None), ("rdp", 20), ("gdp", None), ("pure-or-rdp", None),
     ("pure-or-rdp", 20)],
)  # fmt: skip
def test_a_raised_budget_is_spent_and_never_below_what_was_spent(book, notion, users):
    book.dataset("d", Budget(1.0, 1e-6), notion, users=users)
    large = Laplace(8.0)
    spend_all(book, large)
    opened = book.status("d")
    raised = book.raise_budget("d", Budget(4.0, 1e-5), "a second wave")
    assert (raised.notion, raised.order, raised.sums) == (
        opened.notion, opened.order, opened.sums)  # fmt: skip
    assert raised.budget == Budget(4.0, 1e-5)
    first = len(book.history("d")) - 1
    spend_all(book, large)
    spent, lines = book.spent("d"), book.history("d")
    assert lines[0].notion.budget.delta == 1e-6 < lines[-1].notion.budget.delta
    assert lines[-1].epsilon == spent > 1
    for k in (first - 1, first, first + 1):
        assert book.history("d", since=lines[k].seq) == lines[k + 1 :]
    for wrong in (Budget(1.0, 1e-5), Budget(9.0, 1e-6), 3.0):
        with pytest.raises(ParameterError, match="budget must be"):
            book.raise_budget("d", wrong, "less")
    book.raise_budget("d", Budget(5.0, 1e-5), "a third wave")
    changes = [line for line in book.history("d") if not line.is_spend]
    assert [line.outcome for line in changes] == ["raised", "raised"]
    for line in changes:
        assert (line.facts, line.loss, line.undeclared, line.executor) == ({}, "", "", "")
        assert (line.who, line.label, line.run, line.answer) == (None,) * 4
    lowered = book.raise_budget("d", Budget(4.0, 1e-5), "no third wave")
    assert lowered.epsilon == spent
    with pytest.raises(BudgetExceeded):
        spend(book, large)
    # a script that opens it as it was, or as it is, goes on
    assert book.dataset("d", Budget(1.0, 1e-6)) == book.dataset("d", lowered.budget)
    with pytest.raises(ParameterError, match="as the data set was opened"):
        book.dataset("d", Budget(5.0, 1e-5))
    book.verify()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("budget", Budget(2.0, 1e-6)), ("budget", Budget(1.0, 1e-5)), ("notion", "zcdp"),
        ("order", 9.0), ("users", 3), ("unit", "one household"), ("idealised", True),
        ("expires", "2100-01-02"), ("verified", True), ("people", "staff"), ("window", "month"),
        ("carry", 2), ("buckets", "region"), ("plan", Laplace(10.0)), ("runs", 2),
    ],
)  # fmt: skip
def test_another_term_than_that_of_the_opening_is_refused_by_its_name(book, name, value):
    opened = book.dataset("d", Budget(1.0, 1e-6), "gdp", expires="2100-01-01")
    with pytest.raises(ParameterError, match=f"^{name} must be .*, as the data set was opened"):
        book.dataset("d", **{name: value})
    assert book.dataset("d", Budget(1.0, 1e-6), "gdp", expires="2100-01-01") == opened


def test_what_is_left_of_a_raised_budget_is_beside_a_certified_plan(book):
    plan = 40 * Laplace(25.0)
    certified = Tight().epsilon(plan, 1e-6)
    book.dataset("d", Budget(certified, 1e-6), "pure")
    with book.ledger("d", DATA, plan):
        pass
    book.raise_budget("d", Budget(certified + 0.1, 1e-5), "one more")
    spend(book)
    assert book.spent("d") == pytest.approx(certified + 0.1, rel=1e-12)
    with pytest.raises(BudgetExceeded):
        spend(book)
    assert book.status("d").after_plan
    book.verify()


def test_users_who_fit_by_different_sums_may_keep_their_budget(book):
    book.dataset("d", Budget(1.0, 1e-6), users=20)
    with book.ledger("d", DATA) as ledger:
        ledger.release_each(Laplace(1.0), lambda rows: rows, who=[0])
        for _ in range(15):
            ledger.release_each(Gaussian(25.0), lambda rows: rows, who=[1])
    book.raise_budget("d", Budget(1.0, 2e-6), "a larger delta")
    book.verify()
    with pytest.raises(ParameterError, match="holds what was spent"):
        book.raise_budget("d", Budget(0.9, 2e-6), "user 0 spent 1")


def test_after_its_time_a_data_set_refuses_until_the_time_is_moved(sqlite_book, monkeypatch):
    clock = ["2026-01-01T00:00:00.000000+00:00"]
    monkeypatch.setattr(log, "clock_time", lambda _: clock[0])
    with Book.create(sqlite_book.url) as book:
        status = book.dataset("d", Budget(1.0), expires="2026-03-01T01:00+01:00")
        assert status.expires == "2026-03-01T00:00:00.000000+00:00"
        assert book.dataset("d", expires="2026-03-01") == status
        with pytest.raises(ParameterError, match="expires must be"):
            book.dataset("d", expires="2026-03-02")
        clock[0] = "2026-02-28T23:59:59.999999+00:00"
        spend(book)
        clock[0] = "2026-03-01T00:00:00.000000+00:00"
        before = sqlite_book.hash_rows()
        with pytest.raises(DatasetClosed, match=r"expired at 2026-03-01T00:00:00 .*Book\.expire"):
            spend(book)
        assert sqlite_book.hash_rows() == before
        assert book.remaining("d", TENTH) == 0
        book.dataset("other", Budget(1.0))  # the log has seen this time
        clock[0] = "2026-02-01T00:00:00.000000+00:00"  # a clock that is set back
        with pytest.raises(DatasetClosed):
            spend(book)
        book.expire("d", "2026-05-01", "one more quarter")
        spend(book)
        assert book.history("d")[-1].time == clock[0]  # what the clock said
        clock[0] = "2026-06-01T00:00:00.000000+00:00"
        with pytest.raises(DatasetClosed):
            spend(book)
        assert [one.outcome for one in book.history("d")] == ["answered", "expires", "answered"]
        assert len(book.history("d", until="2026-02-28T23:59:59.999998")) == 2
        book.verify()


@pytest.mark.parametrize("reason", ["", None, " x", "a\nb", "x" * 201])
def test_each_change_has_a_reason(book, reason):
    book.dataset("d", Budget(1.0))
    for change in (
        lambda: book.close_dataset("d", reason),
        lambda: book.raise_budget("d", Budget(2.0), reason),
        lambda: book.expire("d", "2099-01-01", reason),
    ):
        with pytest.raises(ParameterError, match="reason must be"):
            change()
    with pytest.raises(ParameterError, match="when must be a time such as"):
        book.expire("d", "tomorrow", "soon")
    assert book.verify().entries == 2


def spend_until_closed(url, started):
    with Book.open(url) as book, book.ledger("d", DATA) as ledger:
        for count in range(1000):
            try:
                ledger.release(TENTH, np.sum)
            except DatasetClosed:
                return
            if count == 2:
                started.set()
    raise AssertionError("it was never closed")


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def test_the_log_decides_between_one_who_closes_and_one_who_spends(request, kind):
    name = "sqlite_book" if kind == "sqlite" else "postgres_server"
    stored_book = request.getfixturevalue(name)
    if kind == "postgres":
        stored_book = stored_book.database()
    with Book.create(stored_book.url) as book:
        book.dataset("d", Budget(1e3))
        started = SPAWN.Event()
        other = SPAWN.Process(target=spend_until_closed, args=(stored_book.url, started))
        other.start()
        assert started.wait(60)
        book.close_dataset("d", "enough")
        other.join(60)
        assert other.exitcode == 0
        lines = book.history("d")
        assert lines[-1].outcome == "closed"
        assert len(lines) >= 4
        book.verify()


def forged(place, match, change, first=3):
    place.tamper(*rewritten(place, first, change))
    with Book.open(place.url) as book, pytest.raises(LedgerCorrupt, match=match):
        book.verify()


def a_book(place, monkeypatch):
    """A spend, three changes of the terms, and a spend after each."""
    clock = iter(f"2026-01-01T00:{k // 60:02d}:{k % 60:02d}.000000+00:00" for k in range(3600))
    monkeypatch.setattr(log, "clock_time", lambda _: next(clock))
    with Book.create(place.url) as book:
        book.dataset("d", Budget(0.2, 1e-7), "pure")
        with book.ledger("d", DATA) as ledger:
            ledger.spend(TENTH)
            book.raise_budget("d", Budget(0.3, 1e-6), "more")
            ledger.spend(TENTH)
            ledger.spend(TENTH)
            book.expire("d", "2026-01-02", "time is up")
            book.raise_budget("d", Budget(0.9, 1e-6), "more")
            ledger.spend(TENTH)
        book.verify()
        return {line.what.split("(")[0]: line.seq for line in book.history("d")}


FORGED = {
    "closed before": (
        "after its data set was closed", {"change": "closed", "epsilon": 0.2, "delta": 1e-7},
        "budget epsilon 0.3"),
    "expired before": (
        "had expired", {"expires": "2026-01-01T00:00:01.000000+00:00"},
        ("expires ", "budget epsilon 0.9")),
    "more than it says": ("other terms than it says", {"expires": None}, "budget epsilon 0.9"),
    "of no kind": ("other terms than it says", {"change": "reopened"}, "budget epsilon 0.9"),
    "not raised": ("spends more than the budget", {"epsilon": 0.2}, "budget epsilon 0.3"),
    "lowered": ("below what was spent", {"epsilon": 0.25}, "budget epsilon 0.9"),
    "less delta": ("lowers a delta", {"delta": 1e-8}, "budget epsilon 0.3"),
    "no reason": ("without a reason", {"reason": ""}, "budget epsilon 0.3"),
    "back in time": (
        "before that of the entry before", {"time": "2025-01-01T00:00:00.000000+00:00"},
        "budget epsilon 0.9"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_terms_that_were_not_kept_are_found(sqlite_book, monkeypatch, name):
    match, changed, words = FORGED[name]
    seqs = a_book(sqlite_book, monkeypatch)
    changed_ones = [number for what, number in seqs.items() if what.startswith(words)]
    monkeypatch.undo()

    def change(facts):
        if facts["seq"] in changed_ones:
            facts.update(changed)

    forged(sqlite_book, match, change)


def test_terms_that_the_index_does_not_lead_to_are_found(sqlite_book, monkeypatch):
    seqs = a_book(sqlite_book, monkeypatch)
    monkeypatch.undo()

    def change(facts):
        if facts["seq"] == max(seqs.values()) - 1:
            facts["root"] = facts.pop("index") and facts["seq"] - 1

    forged(sqlite_book, "not under its keys|an index of keys leads nowhere", change)


def test_terms_are_no_releases_of_a_registry(book):
    book.dataset("d", Budget(1.0))
    spend(book)
    book.expire("d", "2099-01-01", "later")
    [row] = registry_rows(book.status("d"), book.iter_history("d"), None)
    assert (row["releases"], repr(book.history("d"))) == (1, "<History: 1 spends>")
    assert re.fullmatch(r"expires 2099-01-01T00:00:00.*\(later\)", book.history("d")[-1].what)


def test_a_registry_counts_each_spend_wherever_the_terms_change(book):
    book.dataset("d", Budget(2.0))
    spend(book)
    book.expire("d", "2099-01-01", "later")
    spend(book)
    spend(book, Laplace(20.0))
    with book.ledger("d", DATA, 2 * TENTH, run="may") as ledger:
        ledger.release(TENTH, np.sum)
    status = book.status("d")
    first, terms, second, third, plan, step = (
        line._replace(time=f"2026-01-0{day}") for day, line in enumerate(book.history("d"), 1)
    )
    trusted = {"seeded": True, "undeclared": "other.Noise", "executor": "other.Pool"}
    first, third = first._replace(seeded=True), third._replace(**trusted)
    early_terms = terms._replace(time="2025-01-01", **trusted)
    late_terms = terms._replace(time="2027-01-01", **trusted)
    spends = [first, second, third, plan, step]
    small = repr(Laplace(20.0))
    for lines in (
        [early_terms, *spends, late_terms],
        [late_terms, *reversed(spends), early_terms],
        [third, early_terms, step, late_terms, second, plan, first],
    ):
        rows = registry_rows(status, lines, None)
        assert {(row["parameters"], row["releases"], row["paid for"]) for row in rows} == {
            (repr(TENTH), 2, "one by one"),
            (small, 1, "one by one"),
            (repr(TENTH), 1, "by a plan"),
        }
        for row in rows:
            assert row["last release"] == step.time
            assert (row["seeded releases"], row["undeclared releases"]) == (2, 1)
            assert row["releases by trusted workers"] == 1
            assert (row["epsilon"], row["delta"]) == (2.0, 0.0)
            assert row["spent"] == "epsilon 0.4500 of 2"
            assert row["neighbour relation"] == "as the sensitivities state"


def test_a_registry_of_no_release_has_one_row_that_says_so(book):
    book.dataset("d", Budget(2.0))
    book.expire("d", "2099-01-01", "later")
    status = book.status("d")
    [row] = registry_rows(status, book.history("d"), "replace-one")
    assert (row["parameters"], row["releases"], row["paid for"]) == ("", 0, "")
    assert row["last release"] == status.opened
    assert row["neighbour relation"] == "replace-one"


def test_the_history_of_a_run_and_until_an_entry(book):
    book.dataset("d", Budget(10.0))
    spend(book)
    for name in ("may", "june"):
        with book.ledger("d", DATA, 2 * TENTH, run=name) as ledger:
            ledger.release(TENTH, np.sum)
    lines = book.history("d")
    assert [one.kind for one in book.history("d", run="june")] == ["plan", "step"]
    assert book.history("d", until=lines[2].seq) == lines[:3]
    assert book.history("d", until=lines[2].seq, last=1) == [lines[2]]
    assert lines[2].outcome == "answered"  # though the answer stands behind it
    assert book.history("d", until=lines[3].time, since=lines[1].seq) == lines[2:4]
    for wrong in ("soon", 1.5, -1):
        with pytest.raises(ParameterError, match="until must be"):
            book.history("d", until=wrong)
    with pytest.raises(ParameterError, match="run must be"):
        book.history("d", run=3)
