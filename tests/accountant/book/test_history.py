"""The history is read page by page: what is selected, how many rows are read, in what memory."""

import csv
import io
import json
import tracemalloc
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest

from accountant import Book, Budget, LedgerCorrupt, ParameterError, Repeat, Tight
from accountant.book import log
from accountant.book.export import history_csv, history_json
from accountant.cli.exit_status import run_app
from accountant.cli.ledger import _displayed_epsilons, app
from accountant.formatting import format_upper
from mechanisms import Gaussian, Laplace

DATA = np.arange(20.0)
TENTH = Laplace(10.0)


@pytest.fixture
def small_pages(monkeypatch):
    """Pages of seven rows: a short history has many."""
    for module in ("databases.storage", "history", "entry_pages"):
        monkeypatch.setattr(f"accountant.book.{module}.ROWS_PER_PAGE", 7)


def test_a_line_states_what_a_release_or_a_plan_costs_alone(sqlite_book, capsys):
    fit = 2 * TENTH
    exact = 40 * Gaussian(20.0, arithmetic="exact")  # its sums exceed the budget
    with Book.create(sqlite_book.url) as book:
        book.dataset("d", Budget(10.0), plan=3 * TENTH, runs=2)
        with book.ledger("d", DATA) as ledger:
            ledger.release(TENTH, np.sum)
        with book.ledger("d", DATA, fit) as ledger:
            ledger.release(TENTH, np.sum)
        with book.ledger("d", DATA, 3 * TENTH):
            pass
        prices = [(line.outcome, line.price) for line in book.history("d")]
        assert prices == [
            ("set aside", 0.6), ("answered", 0.1), ("planned", 0.2), ("answered", None),
            ("planned", 0.0),
        ]  # fmt: skip
        epsilon = Tight().epsilon(exact, 1e-6)
        book.dataset("e", Budget(epsilon, 1e-6), "pure")
        with book.ledger("e", DATA, exact):
            pass
        assert [line.price for line in book.history("e")] == [pytest.approx(epsilon, rel=1e-12)]
        assert book.history("d").to_records()[1]["price"] == 0.1
    assert run_app(app, "accountant ledger", ["history", str(sqlite_book.path), "d"]) == 0
    shown = [text.partition("for ")[2] for text in capsys.readouterr().out.splitlines()]
    assert shown == ["0.6000 alone", "0.1000 alone", "0.2000 alone", "", "0 alone"]


def append_spends(book, count, name="d", label=None):
    """Spends in one transaction, as they would be written one by one."""
    account = book._account(name)
    notion, log = account.notion, account.log
    facts = {
        "label": label, "seeded": False, "who": None, "block": None, "relation": None,
        "mechanism": account.description_of(TENTH), "loss": account.description_of(TENTH.loss),
    }  # fmt: skip
    with log.writing():
        total, cost = account.standing().total, notion.cost(TENTH.loss)
        for k in range(count):
            total = notion.add(total, cost)
            words = {"cost": notion.encode(cost), "total": notion.encode(total)}
            log.append("reserve", {**facts, **words}, name, f"noise:{log.head.seq:032x}{k}")


def mixed(place):
    """A book of two data sets in turn: spends, failures, labels, and a run that went on."""
    with Book.create(place.url, author="ann") as book, Book.open(place.url, author="bob") as other:
        for name in ("d", "e"):
            book.dataset(name, Budget(10.0))
        for k in range(12):
            with book.ledger("d", DATA) as ledger, other.ledger("e", DATA) as second:
                ledger.release(TENTH, np.sum, label=f"sum {k}")
                second.spend(TENTH)
            with other.ledger("d", DATA) as ledger, pytest.raises(ZeroDivisionError):
                ledger.release(Laplace(20.0), lambda _: 1 / 0)
        with book.ledger("d", DATA, Repeat(TENTH, 4), run="june") as ledger:
            ledger.release(TENTH, np.sum)
            other.ledger("d", DATA).spend(TENTH)
            ledger.release(TENTH, np.sum)


def test_pages_and_selections_are_parts_of_the_whole_history(stored_book, monkeypatch, request):
    mixed(stored_book)
    with Book.open(stored_book.url) as book:
        whole = book.history("d")  # in one page
        request.getfixturevalue("small_pages")
        assert [line.outcome for line in whole[:3]] == ["answered", "failed", "answered"]
        assert [line.run for line in whole[-4:]] == ["june", "june", None, "june"]
        assert [line.epsilon for line in whole[-4:]] == [2.2, 2.2, 2.3, 2.3]
        assert book.history("d") == whole == list(book.iter_history("d"))
        for k in range(len(whole) + 1):
            assert book.history("d", last=k + 1) == whole[-(k + 1) :]
            since = whole[k - 1].seq if k else 0
            assert book.history("d", since=since) == whole[k:]
            assert book.history("d", since=np.int64(since), last=3) == whole[k:][-3:]
        bobs = [line for line in whole if line.author == "bob"]
        assert len(bobs) == 13
        assert book.history("d", author="bob") == bobs
        assert book.history("d", author="bob", last=5) == bobs[-5:]
        time = datetime.fromisoformat(whole[9].time)
        later = [line for line in whole if line.time >= whole[9].time]
        for since in (
            time, time.isoformat(), time.astimezone(timezone(timedelta(hours=5))).isoformat(),
            time.astimezone(UTC).replace(tzinfo=None),
        ):  # fmt: skip
            assert book.history("d", since=since) == later
        assert book.history("d", since=time, last=2, author="bob") == bobs[-2:]
        assert book.history("d", since="9999-01-01") == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"since": -1}, {"since": True}, {"since": 1.5}, {"since": "yesterday"}, {"last": 0},
        {"last": True}, {"last": 2.0}, {"author": 3}, {"author": b"ann"},
    ],
    ids=str,
)  # fmt: skip
def test_what_selects_nothing_is_refused_at_once(sqlite_book, wrong):
    with Book.create(sqlite_book.url) as book:
        book.dataset("d", Budget(1.0))
        [name] = wrong
        with pytest.raises(ParameterError, match=f"{name} must be"):
            book.iter_history("d", **wrong)


def rows_read(book, monkeypatch):
    counts, ask = [0], book._log.storage.ask

    def counted(sql, **values):
        found = ask(sql, **values)
        counts[0] += len(found)
        return found

    monkeypatch.setattr(book._log.storage, "ask", counted)
    return counts


def test_the_end_of_a_long_history_is_read_without_its_beginning(any_book, monkeypatch):
    with Book.create(any_book.url) as book:
        book.dataset("d", Budget(1000.0))
        append_spends(book, 3000)
        rows = rows_read(book, monkeypatch)
        assert [line.seq for line in book.history("d", last=10)] == list(range(2993, 3003))
        assert [line.seq for line in book.history("d", since=2990)] == list(range(2991, 3003))
        assert rows[0] < 100


def test_a_history_is_streamed_in_the_memory_of_a_page(sqlite_book):
    peaks = []
    with Book.create(sqlite_book.url) as book:
        book.dataset("d", Budget(1000.0))
        for count in (2500, 7500):
            append_spends(book, count)
            tracemalloc.start()
            lines = sum(1 for _ in book.iter_history("d"))
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        assert lines == 10_000
    assert peaks[1] < 1.25 * peaks[0]


def test_a_streamed_history_holds_no_one_up_and_ends_where_it_was(stored_book, small_pages):
    with Book.create(stored_book.url) as book:
        book.dataset("d", Budget(1000.0))
        append_spends(book, 30)
        lines = book.iter_history("d")
        next(lines)
        with book.ledger("d", DATA) as ledger:
            ledger.release(TENTH, np.sum)
        assert 1 + len(list(lines)) == 30
        assert len(book.history("d")) == 31


def test_a_page_whose_entries_were_changed_is_not_shown(any_book, small_pages):
    with Book.create(any_book.url) as book:
        book.dataset("d", Budget(1000.0))
        append_spends(book, 30)
        any_book.tamper("UPDATE entries SET body = replace(body, '10.0', '90.0') WHERE seq = 20")
        lines = book.iter_history("d")
        with pytest.raises(LedgerCorrupt, match="entry 20"):
            list(lines)


def test_entries_that_only_the_standard_library_decodes_are_lines(stored_book, small_pages):
    half = "\ud800"  # of a pair: JSON can state it, and UTF-8 cannot
    with Book.create(stored_book.url) as book:
        book.dataset("d", Budget(1000.0))
        for label in (None, half, None):
            append_spends(book, 5, label=label)
        assert [line.label for line in book.history("d")] == [None] * 5 + [half] * 5 + [None] * 5
        book.verify()


def test_epsilons_are_computed_when_they_are_asked_for(sqlite_book, monkeypatch):
    asked = []
    with Book.create(sqlite_book.url) as book:
        book.dataset("d", Budget(10.0, 1e-6))
        with book.ledger("d", DATA) as ledger:
            for _ in range(40):
                ledger.spend(Gaussian(60.0))
        lines = book.history("d")
        notion = type(lines[0].notion)
        plain = notion.epsilon
        monkeypatch.setattr(notion, "epsilon", lambda *x: asked.append(1) or plain(*x))
        assert len(book.history("d")) == 40
        assert not asked
        assert lines[-1].epsilon == book.spent("d")
        assert lines[-1].total == book.status("d").total


def test_the_command_line_computes_few_epsilons_and_shows_all(sqlite_book, monkeypatch):
    with Book.create(sqlite_book.url) as book:
        book.dataset("d", Budget(1000.0))
        append_spends(book, 10)
        with book.ledger("d", DATA) as ledger:
            for _ in range(200):
                ledger.spend(Laplace(1e9))
        append_spends(book, 10)
        lines, asked = book.history("d"), []
        expected = [format_upper(line.epsilon) for line in lines]
        notion = type(lines[0].notion)
        plain = notion.epsilon
        monkeypatch.setattr(notion, "epsilon", lambda *x: asked.append(1) or plain(*x))
        assert _displayed_epsilons(lines) == expected
        assert len(asked) < 60
        assert _displayed_epsilons([]) == []


def test_the_lines_of_an_earlier_window_show_their_own_epsilons(sqlite_book, monkeypatch):
    month = "11"
    monkeypatch.setattr(log, "clock_time", lambda _: f"2026-{month}-10T12:00:00.000000+00:00")
    with Book.create(sqlite_book.url, clock="trusted") as book:
        book.dataset("d", Budget(1.0), notion="pure", window="month")
        ledger = book.ledger("d", DATA)
        ledger.spend(TENTH)
        ledger.spend(TENTH)
        month = "12"
        ledger.spend(TENTH)
        shown = _displayed_epsilons(book.history("d"))
    assert shown == ["0.1000", "0.2000", "0.1000"]


def test_the_command_line_selects(any_book, capsys):
    mixed(any_book)

    def shown(*words):
        assert run_app(app, "ledger", ["history", any_book.url, "d", *map(str, words)]) == 0
        return capsys.readouterr().out.splitlines()

    with Book.open(any_book.url) as book:
        whole = book.history("d")
    assert [int(line.split()[0]) for line in shown()] == [line.seq for line in whole]
    assert shown("--last", 3) == shown()[-3:]
    assert shown("--since", whole[4].seq) == shown()[5:]
    assert shown("--since", whole[0].time) == shown()
    assert len(shown("--author", "bob")) == 13
    assert shown("--author", "bob", "--last", 2) == shown("--author", "bob")[-2:]
    found = json.loads("\n".join(shown("--json", "--last", 2)))
    assert [one["seq"] for one in found["history"]] == [line.seq for line in whole[-2:]]
    for words in (("--last", "0"), ("--last", "x"), ("--since", "1.5"), ("--since", "nan")):
        assert run_app(app, "ledger", ["history", any_book.url, "d", *words]) == 2


def test_exports_are_written_line_by_line(any_book):
    mixed(any_book)
    with Book.open(any_book.url) as book:
        whole, status = book.history("d"), book.status("d")
    for lines in (whole, []):
        pieces = list(history_json(status, lines))
        assert len(pieces) == len(lines) + 2
        found = json.loads("".join(pieces))
        assert [one["seq"] for one in found["history"]] == [line.seq for line in lines]
        assert [one["epsilon"] for one in found["history"]] == [line.epsilon for line in lines]
        pieces = list(history_csv(lines))
        assert len(pieces) == len(lines) + 1
        rows = list(csv.DictReader(io.StringIO("".join(pieces))))
        assert [int(one["seq"]) for one in rows] == [line.seq for line in lines]


@pytest.mark.parametrize("steps", [1, 5])
def test_a_resumed_run_reads_its_own_entries_only(any_book, monkeypatch, steps):
    plan = Repeat(TENTH, 8)
    with Book.create(any_book.url) as book:
        book.dataset("d", Budget(1000.0))
        append_spends(book, 1500)
        with book.ledger("d", DATA, plan, run="june") as ledger:
            given = [ledger.release(TENTH, np.sum) for _ in range(steps)]
        append_spends(book, 1500)
    with Book.open(any_book.url) as book:
        rows = rows_read(book, monkeypatch)
        with book.ledger("d", DATA, plan, run="june") as ledger:
            assert rows[0] < 100
            assert [ledger.release(TENTH, np.sum) for _ in range(steps)] == given
            assert rows[0] < 100 + 50 * steps
            ledger.release(TENTH, np.sum)
        monkeypatch.undo()
        book.verify()
