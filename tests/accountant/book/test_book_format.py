"""What versions that know less than a book does may do with it: read."""

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from accountant import (
    Book,
    Budget,
    BudgetExceeded,
    DatasetClosed,
    LedgerCorrupt,
    LedgerNewer,
    LedgerViolated,
    ParameterError,
)
from accountant.__main__ import main
from accountant.book import log
from accountant.book.chain.entries import (
    FORMAT_OF_TWO,
    KNOWN_LIMITS,
    canonical_json,
    limits_of,
    next_hash,
    run_key,
    step_key,
)
from mechanisms import Laplace
from tests.accountant.book.throwaway_books import SQLiteBookFile, rewritten

ROOT = Path(__file__).parents[3]
DATA = np.arange(5.0)
# The terms of the snapshot's data sets, and what a spend from each must raise.
REFUSED = {
    "closed": DatasetClosed, "expired": DatasetClosed, "limited": BudgetExceeded,
    "verified": ParameterError,
}  # fmt: skip
OLDER = "this book needs a newer version of dp-attest; this one may only read it"
# The last version that knew no closing, no expiry, no quotas, windows or proofs.
BEFORE_TERMS = "869df4f7"
LISTS_QUOTAS = "830740af"  # the last version that listed all quotas in each entry of terms


def spend(book, name):
    with book.ledger(name, DATA) as ledger:
        return ledger.release(Laplace(8.0), np.sum)


@pytest.fixture
def first_format(tmp_path):
    """A book of format 1, whose data sets were closed, had expired, have a quota or need proofs."""
    shutil.copy(ROOT / "tests" / "snapshots" / "book-format-1.db", tmp_path / "book.db")
    return SQLiteBookFile(tmp_path / "book.db")


def spend_as_before_terms(place, name):
    """Append what versions before terms do: a charge by its total alone, with hashes that fit."""
    [(seq, previous)] = place.fetch("SELECT seq, hash FROM entries ORDER BY seq DESC LIMIT 1")
    [(body,)] = place.fetch("SELECT body FROM entries WHERE kind = 'reserve' LIMIT 1")
    facts = {**json.loads(body), "dataset": name, "seq": seq + 1, "key": f"noise:{seq}"}
    [(charges,)] = place.fetch(f"SELECT count(*) FROM reservations WHERE dataset = '{name}'")
    facts["total"] = [str(0.25 * (charges + 1)), "0.0"]
    facts["time"] = datetime.now(UTC).isoformat(timespec="microseconds")
    for fact in ("format", "index", "own", "before"):
        facts.pop(fact, None)
    facts["words of users"] = {"format": 1}
    body = canonical_json(facts)
    row = seq + 1, name, "reserve", facts["key"], body, next_hash(previous, body)
    with contextlib.closing(sqlite3.connect(place.path)) as db, db:
        db.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)", row)
        db.execute(f"PRAGMA user_version = {seq + 1}")


# --- formats


def test_terms_of_format_1_are_kept(first_format):
    # the log's last time is that of the snapshot, which today's clock is far ahead of
    with Book.open(first_format.url, author="ada", clock="trusted") as book:
        assert book.verify().entries == 18
        for name, error in REFUSED.items():
            with pytest.raises(error):
                spend(book, name)
        for name in ("open", "monthly"):
            spend(book, name)
        assert book.verify().entries == 22


@pytest.mark.parametrize("made", ["new", "of format 1"])
def test_the_database_refuses_a_version_before_formats(made, first_format, tmp_path):
    place = first_format
    if made == "new":
        place = SQLiteBookFile(tmp_path / "new.db")
        with Book.create(place.url) as book:
            book.dataset("closed", Budget(1.0))
            spend(book, "closed")
            book.close_dataset("closed", "the end")
    else:
        with Book.open(place.url) as book:
            spend(book, "open")  # the first entry of format 2
    with pytest.raises(sqlite3.IntegrityError, match=OLDER):
        spend_as_before_terms(place, "closed")
    with Book.open(place.url) as book:
        assert book.verify()


def test_postgres_refuses_a_version_before_formats(postgres_server):
    place = postgres_server.database()
    with Book.create(place.url) as book:
        book.dataset("ages", Budget(1.0))
        spend(book, "ages")
    import psycopg

    insertion = "INSERT INTO entries SELECT 99, dataset, kind, 'x', '{}', '' FROM entries"
    with pytest.raises(psycopg.errors.RaiseException, match=OLDER):
        place.execute(insertion)
    # of a book that another than the owner has written to first
    place.execute("DROP TRIGGER entries_need_format ON entries")
    place.execute("CREATE ROLE ana LOGIN")
    [(schema,)] = place.fetch("SELECT current_schema")
    place.execute(f"GRANT USAGE ON SCHEMA {schema} TO ana")
    place.execute(f"GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA {schema} TO ana")
    for user in ("ana", "postgres"):
        with Book.open(place.url.replace("postgres@", f"{user}@")) as book:
            spend(book, "ages")
    with pytest.raises(psycopg.errors.RaiseException, match=OLDER):
        place.execute(insertion)


@pytest.mark.parametrize(
    "facts", [{"schema": FORMAT_OF_TWO + 1}, {"format": FORMAT_OF_TWO + 1}, {"schema": "x"}]
)
def test_a_newer_book_is_only_read(facts, any_book):
    with Book.create(any_book.url) as book:
        book.dataset("ages", Budget(1.0))
        spend(book, "ages")
        last = book.verify().entries
    entry = 1 if "schema" in facts else last
    any_book.tamper(
        *rewritten(any_book, entry, lambda one: one["seq"] == entry and one.update(facts))
    )
    with Book.open(any_book.url) as book:
        assert book.spent("ages") == 0.125
        assert len(book.history("ages")) == 1
        before = any_book.hash_rows()
        for attempt in (
            lambda: spend(book, "ages"),
            lambda: book.dataset("others", Budget(1.0)),
            lambda: book.close_dataset("ages", "the end"),
        ):
            with pytest.raises(LedgerNewer, match=r"has the format .*; update dp-attest"):
                attempt()
        with pytest.raises(LedgerNewer):
            book.verify()
        assert any_book.hash_rows() == before


@pytest.mark.parametrize(
    "facts", [{"needs": ["per day"]}, {"per day": 3}], ids=["a need", "a fact"]
)
@pytest.mark.parametrize("of", ["the opening", "a change"])
def test_a_data_set_of_unknown_terms_is_only_read(facts, of, any_book):
    with Book.create(any_book.url) as book:
        for name in ("ages", "others"):
            book.dataset(name, Budget(1.0))
            spend(book, name)
            book.raise_budget(name, Budget(2.0), "a second wave")
    kind = "dataset" if of == "the opening" else "terms"

    def change(one):
        if (one["dataset"], one["kind"]) == ("ages", kind):
            one.update(facts)

    any_book.tamper(*rewritten(any_book, 1, change))
    with Book.open(any_book.url) as book:
        assert book.spent("ages") == 0.125
        before = any_book.hash_rows()
        for attempt in (
            lambda: spend(book, "ages"),
            lambda: book.remaining("ages", Laplace(8.0)),
            lambda: book.raise_budget("ages", Budget(3.0), "a third wave"),
        ):
            with pytest.raises(LedgerNewer, match="limits the data set 'ages' by 'per day'"):
                attempt()
        with pytest.raises(LedgerNewer):
            book.verify()
        assert any_book.hash_rows() == before
        spend(book, "others")


def test_entries_of_terms_state_what_they_need(sqlite_book):
    with Book.create(sqlite_book.url) as book:
        book.dataset("ages", Budget(1.0), users=5, expires="2999-01-01")
        book.set_quota("ages", "ada", 0.5, "the pilot")
        book.close_dataset("ages", "the end")
    stated = [
        json.loads(body)["needs"]
        for (body,) in sqlite_book.fetch(
            "SELECT body FROM entries WHERE kind IN ('dataset', 'terms') ORDER BY seq"
        )
    ]
    assert stated == [
        ["expires", "users"], ["expires", "limited_authors"],
        ["closed", "expires", "limited_authors"],
    ]  # fmt: skip
    assert limits_of({"window": "month", "buckets": None, "verified": False}) == ["window"]
    assert set(limits_of(dict.fromkeys(KNOWN_LIMITS, "x"))) == KNOWN_LIMITS


# --- what a version before terms has charged against them


def test_charges_against_terms_are_reported_for_their_data_set_alone(first_format, capsys):
    attacked = ["closed", "expired", "limited", "verified", "monthly"]
    for name in attacked:
        spend_as_before_terms(first_format, name)
    with Book.open(first_format.url, author="ada") as book:
        with pytest.raises(LedgerViolated) as raised:
            book.verify()
        assert list(raised.value.datasets) == attacked
        assert raised.value.intact == 1
        assert isinstance(raised.value, LedgerCorrupt)
        assert "data set 'closed': was made after its data set was closed" in str(raised.value)
        assert "1 other data sets are as they must be" in str(raised.value)
        for name in attacked:
            with pytest.raises((*REFUSED.values(), LedgerViolated)):
                spend(book, name)
        for change in (
            lambda: book.expire("limited", "2999-01-01", "no end"),
            lambda: book.raise_budget("limited", Budget(2.0), "more"),
            lambda: book.set_quota("limited", "ada", 2.0, "more"),
        ):  # after which the charge would be one of earlier terms
            with pytest.raises(LedgerViolated):
                change()
        book.close_dataset("limited", "an older version spent from it")
        assert book.spent("open") == 0.25
        spend(book, "open")
    with pytest.raises(LedgerViolated) as raised:
        Book.open(first_format.url).verify()
    assert list(raised.value.datasets) == attacked
    assert main(["ledger", "status", str(first_format.path)]) == 1
    shown = capsys.readouterr()
    assert "open: spent epsilon 0.3750 of 1" in shown.out
    assert "data set 'monthly': was charged by a version that does not know windows" in shown.err


def test_a_broken_data_set_does_not_keep_the_clock_from_being_corrected(first_format, monkeypatch):
    with Book.open(first_format.url, author="ada", clock="trusted") as book:
        book.dataset("weekly", Budget(1.0), window="week")
        spend(book, "weekly")
    spend_before_formats(first_format, "monthly")
    now, later = datetime.now(UTC), datetime.now(UTC) + timedelta(days=400)
    with Book.open(first_format.url, author="ada", clock="trusted") as book:
        monkeypatch.setattr(log, "clock_time", lambda _: later.isoformat(timespec="microseconds"))
        spend(book, "weekly")
        monkeypatch.setattr(log, "clock_time", lambda _: now.isoformat(timespec="microseconds"))
        assert book.correct_clock("NTP was off").windows == ("weekly",)
        assert book.spent("weekly") == 0.25
        spend(book, "weekly")
        for attempt in (lambda: spend(book, "monthly"), lambda: book.status("monthly")):
            with pytest.raises(LedgerViolated):
                attempt()
        with pytest.raises(LedgerViolated) as raised:
            book.verify()
        assert list(raised.value.datasets) == ["monthly"]


def spend_before_formats(place, name):
    """Append a charge of a version before formats, in a book that refuses them by a trigger."""
    with contextlib.closing(sqlite3.connect(place.path)) as db, db:
        db.execute("DROP TRIGGER IF EXISTS entries_need_format")
    spend_as_before_terms(place, name)


def spends_of_an_earlier_version(commit, folder, place):
    """What an earlier version says when it spends from each data set of a book."""
    history = subprocess.run(
        ["git", "archive", commit, "accountant", "mechanisms"],
        cwd=ROOT, capture_output=True, check=False,
    )  # fmt: skip
    if history.returncode:
        pytest.skip("no history of the repository here")
    subprocess.run(["tar", "x", "-C", folder], input=history.stdout, check=True)
    attack = f"""
import importlib.metadata
importlib.metadata.entry_points = lambda **_: []  # those of today's version
import numpy as np
import accountant
from accountant import Book
from mechanisms import Laplace
assert accountant.__file__.startswith({str(folder)!r})
with Book.open({place.url!r}, author="ada") as book:
    for name in book.names:
        try:
            with book.ledger(name, np.arange(5.0)) as ledger:
                ledger.release(Laplace(8.0), np.sum)
                print(name, "spent")
        except Exception as error:
            print(name, error)
"""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", attack], env=environment, cwd=folder, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    return done.stdout


@pytest.mark.slow
def test_the_version_before_terms_spends_from_no_book_of_today(tmp_path):
    place = SQLiteBookFile(tmp_path / "book.db")
    with Book.create(place.url, author="ada") as book:
        for name in ("open", "closed", "expired", "limited"):
            book.dataset(name, Budget(1.0))
        book.dataset("verified", Budget(1.0), verified=True)
        spend(book, "open")
        book.close_dataset("closed", "the end")
        book.expire("expired", "2026-01-01", "consent ended")
        book.set_quota("limited", "ada", 0.05, "the pilot")
        before = book.verify()
    said = spends_of_an_earlier_version(BEFORE_TERMS, tmp_path, place)
    assert said.count(OLDER) == 5
    with Book.open(place.url) as book:
        assert book.verify() == before


@pytest.mark.slow
def test_the_version_that_lists_quotas_spends_from_no_data_set_with_quotas_of_today(tmp_path):
    place = SQLiteBookFile(tmp_path / "book.db")
    with Book.create(place.url, author="ada") as book:
        for name in ("limited", "open"):
            book.dataset(name, Budget(1.0))
        book.set_quota("limited", "ada", 0.05, "the pilot")
    said = spends_of_an_earlier_version(LISTS_QUOTAS, tmp_path, place)
    assert "limits the data set 'limited' by 'limited_authors', 'own', 'quota'" in said
    assert said.endswith("open spent\n")
    with Book.open(place.url) as book:
        assert book.spent("limited") == 0
        book.verify()


def test_the_keys_of_runs_are_as_every_log_has_them():
    assert run_key("d", "monday") == '{"dataset":"d","run":"monday"}'
    assert step_key(3, 1) == '{"run":3,"step":1}'
