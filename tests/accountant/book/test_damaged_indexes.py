"""Damaged indexes of the database: no budget comes back, and `verify` says so."""

import sqlite3

import numpy as np
import pytest

from accountant import Book, Budget, BudgetExceeded, LedgerCorrupt, ParameterError, Repeat
from mechanisms import Laplace
from tests.accountant.book.throwaway_books import unlooked

DATA = np.arange(20.0)
TENTH = Laplace(10.0)


def written(place):
    with Book.create(place.url) as book:
        book.dataset("d", Budget(1.0))
        book.dataset("e", Budget(1.0))
        with book.ledger("d", DATA) as ledger:
            answer = ledger.release(TENTH, np.sum, label="sum")
            for _ in range(8):
                ledger.spend(TENTH)
        with book.ledger("e", DATA, Repeat(TENTH, 10), run="june") as ledger:
            first = ledger.release(TENTH, np.sum)
    return answer, first


COLUMNS = {
    "a kind": "UPDATE entries SET kind = 'step' WHERE kind = 'reserve'",
    "a data set": "UPDATE entries SET dataset = 'x' WHERE kind IN ('reserve', 'plan')",
    "a key": "UPDATE entries SET key = 'x' || seq WHERE key IS NOT NULL",
}


@pytest.mark.parametrize("what", COLUMNS)
def test_columns_that_say_something_else_give_no_budget_back(stored_book, what):
    """The database's indexes are made from the columns: they lead nowhere now."""
    answer, first = written(stored_book)
    with Book.open(stored_book.url) as book:
        head = book._log.last_seen_head
        stored_book.tamper(COLUMNS[what])
        for name in "de":
            with pytest.raises((BudgetExceeded, LedgerCorrupt)):
                book.ledger(name, DATA, Repeat(TENTH, 2))
            with pytest.raises(ParameterError):
                book.dataset(name, Budget(100.0))
        with book.ledger("d", DATA) as ledger:
            assert ledger.release(TENTH, unlooked, label="sum") == answer
        with book.ledger("e", DATA, Repeat(TENTH, 10), run="june") as ledger:
            assert ledger.release(TENTH, unlooked) == first
        assert book.spent("d") == 0.9
        assert book._log.last_seen_head == head
        with pytest.raises(LedgerCorrupt):
            book.verify()


def test_a_lost_last_entry_is_noticed_without_a_pin(sqlite_book):
    written(sqlite_book)
    db = sqlite3.connect(sqlite_book.path)
    for words in ("DROP TRIGGER entries_no_delete", "DELETE FROM entries WHERE seq > 14"):
        db.execute(words)
    db.commit()
    db.close()
    with pytest.raises(LedgerCorrupt, match="has lost or gained entries"):
        Book.open(sqlite_book.url)


def test_an_index_that_misses_rows_is_found(sqlite_book):
    written(sqlite_book)
    right = "CREATE INDEX entries_of ON entries (dataset, seq)"
    for words in (f"{right} WHERE seq < 6", right):
        db = sqlite3.connect(sqlite_book.path)
        db.execute("PRAGMA writable_schema = 1")
        db.execute("UPDATE sqlite_master SET sql = ? WHERE name = 'entries_of'", (words,))
        db.commit()
        db.close()
        if words != right:
            db = sqlite3.connect(sqlite_book.path)
            db.execute("REINDEX entries_of")
            db.commit()
            db.close()
    with Book.open(sqlite_book.url) as book:
        assert len(book.history("d")) < 9
        with pytest.raises(LedgerCorrupt, match="the file is damaged"):
            book.verify()
        book._log.storage.check_integrity = lambda: None
        with pytest.raises(LedgerCorrupt, match="index of data sets"):
            book.verify()
