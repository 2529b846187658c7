"""Row 18: a book that was changed, cut, thinned out or put back from a backup is noticed."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from accountant import Book, Budget, LedgerCorrupt, ParameterError
from mechanisms import Laplace
from tests.accountant.book.throwaway_books import rewritten, unlooked

DATA = np.arange(20.0)
TENTH = Laplace(10.0)


def written(place, pin=None):
    """A book of 14 entries, and its head."""
    with Book.create(place.url, pin=pin) as book:
        book.dataset("d", Budget(1.0))
        book.dataset("users", Budget(1.0), users=20)
        with book.ledger("d", DATA) as ledger:
            for k in range(4):
                ledger.release(TENTH, np.sum, label=f"sum {k}")
        with book.ledger("users", DATA) as ledger:
            ledger.release_each(TENTH, lambda rows: rows, [3, 1, 2])
            ledger.spend(TENTH)
        return book.verify().head


TAMPERINGS = {
    "a fact": "UPDATE entries SET body = replace(body, '\"0.1\"', '\"0.0\"') WHERE seq = 6",
    "a hash": (
        "UPDATE entries SET hash = CASE WHEN substr(hash, 1, 1) = '0' THEN '1' ELSE '0' END "
        "|| substr(hash, 2) WHERE seq = 6"
    ),
    "a kind": "UPDATE entries SET kind = 'seed' WHERE seq = 6",
    "a key": "UPDATE entries SET key = 'x' WHERE seq = 7",
    "a data set": "UPDATE entries SET dataset = 'users' WHERE seq = 6",
    "a row removed": "DELETE FROM entries WHERE seq = 6",
    "the last row removed": "DELETE FROM entries WHERE seq = 14",
    "an answer": "UPDATE blobs SET body = (SELECT body FROM blobs WHERE seq = 5) WHERE seq = 7",
    "an answer removed": "DELETE FROM blobs WHERE seq = 7",
    "users": "UPDATE blobs SET body = (SELECT body FROM blobs WHERE seq = 5) WHERE seq = 12",
    "the last spend": "UPDATE entries SET kind = 'step' WHERE seq = 10",
    "whose the last spend was": "UPDATE entries SET dataset = 'x' WHERE seq = 10",
}


@pytest.mark.parametrize("what", TAMPERINGS)
def test_what_was_changed_is_noticed(stored_book, what):
    head = written(stored_book)
    stored_book.tamper(TAMPERINGS[what])
    before = stored_book.hash_rows()
    with pytest.raises(LedgerCorrupt), Book.open(stored_book.url) as book:
        book.verify(head)
    assert stored_book.hash_rows() == before


def test_the_log_refuses_to_be_changed_by_mistake(stored_book):
    written(stored_book)
    before = stored_book.hash_rows()
    for words in ("UPDATE entries SET kind = 'x'", "DELETE FROM entries"):
        with pytest.raises(Exception, match="entries are never changed"):
            stored_book.fetch(words)
    assert stored_book.hash_rows() == before


def cheaper(facts):
    if facts["seq"] == 6:
        facts["cost"] = ["0.0", "0.0"]


def test_a_chain_forged_as_a_whole_does_not_add_up_and_is_not_the_one_that_was_noted(stored_book):
    head = written(stored_book)
    stored_book.tamper(*rewritten(stored_book, 6, cheaper))
    with Book.open(stored_book.url) as book:
        with pytest.raises(LedgerCorrupt, match="not what its loss costs"):
            book.verify()
        with pytest.raises(LedgerCorrupt, match="another chain than the one that is known"):
            book.verify(head)


def test_what_is_no_head_is_refused(stored_book):
    written(stored_book)
    with Book.open(stored_book.url) as book:
        for head in ("", "14", "x:" + "0" * 64, 14):
            with pytest.raises(ParameterError, match="head must be"):
                book.verify(head)


def copied(file, folder):
    """A backup as somebody makes it with nothing open."""
    db = sqlite3.connect(file.path)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    return Path(shutil.copy(file.path, folder / "backup.db"))


def test_a_rolled_back_file_is_noticed_by_its_pin(sqlite_book, tmp_path):
    pin = tmp_path / "head.pin"
    written(sqlite_book, pin)
    backup = copied(sqlite_book, tmp_path)
    with Book.open(sqlite_book.url, pin=pin) as book, book.ledger("d", DATA) as ledger:
        ledger.release(TENTH, np.sum)
        head = book.verify().head
    shutil.copy(backup, sqlite_book.path)
    before = sqlite_book.hash_rows()
    with pytest.raises(LedgerCorrupt, match="rolled back"):
        Book.open(sqlite_book.url, pin=pin)
    with Book.open(sqlite_book.url) as book:  # without the pin it is a good book
        book.verify()
        with pytest.raises(LedgerCorrupt, match="rolled back"):
            book.verify(head)
    sqlite_book.path.unlink()
    with pytest.raises(LedgerCorrupt, match="is empty, though entries of it are known"):
        Book.open(sqlite_book.url, pin=pin)
    shutil.copy(backup, sqlite_book.path)
    assert sqlite_book.hash_rows() == before


def test_a_database_rolled_back_under_an_open_book_is_noticed(stored_book):
    with Book.create(stored_book.url) as book:
        book.dataset("d", Budget(1.0))
        with book.ledger("d", DATA) as ledger:
            ledger.spend(TENTH)
            ledger.spend(TENTH)
            stored_book.tamper("DELETE FROM entries WHERE seq = 4")
            before = stored_book.hash_rows()
            with pytest.raises(LedgerCorrupt, match="rolled back"):
                ledger.release(TENTH, unlooked)
            assert stored_book.hash_rows() == before


def test_a_file_replaced_under_an_open_book_is_noticed(sqlite_book, tmp_path):
    written(sqlite_book)
    backup = copied(sqlite_book, tmp_path)
    with Book.open(sqlite_book.url) as book, book.ledger("d", DATA) as ledger:
        sqlite_book.path.rename(tmp_path / "aside.db")
        shutil.copy(backup, sqlite_book.path)
        with pytest.raises(LedgerCorrupt, match="was replaced while it was open"):
            ledger.release(TENTH, unlooked)


@pytest.mark.parametrize("text", ["", "1:2\n", "x" * 86, "0" * 20 + ":" + "a" * 64])
def test_a_damaged_pin_is_no_pin(sqlite_book, tmp_path, text):
    written(sqlite_book)
    pin = tmp_path / "head.pin"
    pin.write_text(text)
    if text == "":  # nothing is pinned yet
        Book.open(sqlite_book.url, pin=pin).close()
        return
    with pytest.raises(LedgerCorrupt, match="is no pin, or a damaged one"):
        Book.open(sqlite_book.url, pin=pin)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9])
def test_a_truncated_file_is_noticed(sqlite_book, tmp_path, share):
    head = written(sqlite_book)
    raw = copied(sqlite_book, tmp_path).read_bytes()
    sqlite_book.path.write_bytes(raw[: int(len(raw) * share)])
    with pytest.raises((LedgerCorrupt, ParameterError)), Book.open(sqlite_book.url) as book:
        book.verify(head)
    assert sqlite_book.path.stat().st_size <= max(int(len(raw) * share), 40000)


@pytest.mark.parametrize("head", ["²:" + "0" * 64, "0:" + "0" * 64])
def test_what_looks_like_a_head_and_is_none_is_refused(sqlite_book, head):
    with Book.create(sqlite_book.url) as book, pytest.raises(ParameterError, match="head must be"):
        book.verify(head)


def test_a_check_pins_the_end_of_a_book_that_had_no_pin(sqlite_book, tmp_path):
    with Book.create(sqlite_book.url) as book:
        book.dataset("d", Budget(1.0))
    pin = tmp_path / "head.pin"
    with Book.open(sqlite_book.url, pin=pin) as book:
        assert not pin.exists()
        head = book.verify().head
    number, mark = pin.read_text().strip().split(":")
    assert f"{int(number)}:{mark}" == head


def test_an_open_book_writes_nothing_behind_what_its_pin_knows(sqlite_book, tmp_path):
    pin = tmp_path / "head.pin"
    written(sqlite_book, pin)
    with Book.open(sqlite_book.url, pin=pin) as book, book.ledger("d", DATA) as ledger:
        backup = copied(sqlite_book, tmp_path)
        with Book.open(sqlite_book.url, pin=pin) as other, other.ledger("d", DATA) as second:
            second.spend(TENTH)
        with (
            closing(sqlite3.connect(backup)) as old,
            closing(sqlite3.connect(sqlite_book.path)) as db,
        ):
            old.backup(db)  # into the very file that is open
        before = sqlite_book.hash_rows()
        with pytest.raises(LedgerCorrupt, match="rolled back"):
            ledger.release(TENTH, unlooked)
        assert sqlite_book.hash_rows() == before


def test_an_entry_that_was_read_before_has_its_number(sqlite_book):
    with Book.create(sqlite_book.url) as book:
        book.dataset("d", Budget(1.0))
        with book.ledger("d", DATA) as ledger:
            ledger.release(TENTH, np.sum)
            sqlite_book.tamper(
                "UPDATE entries SET seq = seq + 10 WHERE seq > 2", "PRAGMA user_version = 14"
            )
            with pytest.raises(LedgerCorrupt, match="an entry is no entry"):
                ledger.release(TENTH, unlooked)


@pytest.mark.parametrize("back", [0, 1], ids=["the last entry", "the root of the index"])
def test_an_entry_that_was_read_before_is_hashed_again(sqlite_book, back):
    with Book.create(sqlite_book.url) as book:
        book.dataset("d", Budget(1.0))
        with book.ledger("d", DATA) as ledger:
            for _ in range(2):  # now the book knows both entries without reading them
                ledger.release(TENTH, np.sum)
            changed = f"(SELECT max(seq) - {back} FROM entries)"
            sqlite_book.tamper(
                f"UPDATE entries SET body = replace(body, 'a', 'b') WHERE seq = {changed}"
            )
            with pytest.raises(LedgerCorrupt, match="does not fit its hash"):
                ledger.release(TENTH, unlooked)
