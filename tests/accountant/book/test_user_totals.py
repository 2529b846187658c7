"""Users are stored in little room, in their order; their totals are read before the lock."""

from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountant import Book, Budget
from accountant.book.account import Account
from accountant.book.user_totals import decode_users, encode_users
from mechanisms import Laplace
from tests.strategies import users

DATA = np.arange(20.0)
TENTH = Laplace(10.0)


@given(users, st.booleans())
def test_users_come_back_in_their_order(who, rising):
    index = np.array(sorted(who) if rising else who, dtype=np.intp)
    assert np.array_equal(decode_users(*encode_users(index)), index)


def test_a_million_users_take_little_room():
    every = np.arange(10**6)
    some = np.flatnonzero(np.random.default_rng(0).random(10**6) < 0.1)
    assert len(encode_users(every)[1]) < 10_000
    assert len(encode_users(some)[1]) < 1.2 * some.size
    assert encode_users(slice(0, 10**6, 1)) == ([0, 10**6, 1], None)


def watched_rows(book, monkeypatch):
    """The numbers of rows that were read in each transaction that held the lock."""
    storage, held, rows = book._log.storage, [], []
    writing, ask = storage.writing, storage.ask

    @contextmanager
    def counted_writing(*ahead):
        with writing(*ahead):
            held.append(0)
            rows.append(0)
            try:
                yield
            finally:
                held.pop()

    def counted_ask(sql, **values):
        found = ask(sql, **values)
        if held:
            rows[-1] += len(found)
        return found

    monkeypatch.setattr(storage, "writing", counted_writing)
    monkeypatch.setattr(storage, "ask", counted_ask)
    return rows


def test_the_first_spend_of_a_process_reads_a_long_log_before_it_takes_the_lock(
    stored_book, monkeypatch
):
    with Book.open(stored_book.url) as book:
        book.dataset("d", Budget(100.0), users=20)
        ledger = book.ledger("d", DATA)
        for _ in range(150):
            ledger.spend(TENTH, slice(0, 10))
        with Book.open(stored_book.url) as other:
            rows = watched_rows(other, monkeypatch)
            later = other.ledger("d", DATA)
            later.spend(TENTH, slice(5, 15))
            assert max(rows) < 50
            # another process went far ahead meanwhile
            for _ in range(150):
                ledger.spend(TENTH, slice(0, 10))
            later.spend(TENTH, slice(5, 15))
            assert max(rows) < 50
            expected = [30.0] * 5 + [30.2] * 5 + [0.2] * 5 + [0.0] * 5
            assert other.spent_each("d").tolist() == expected
            other.verify()


def test_an_interruption_while_totals_are_read_counts_no_spend_twice(sqlite_book, monkeypatch):
    with Book.open(sqlite_book.url) as book:
        book.dataset("d", Budget(100.0), users=20)
        with book.ledger("d", DATA) as ledger:
            for _ in range(5):
                ledger.spend(TENTH, slice(0, 10))
    with Book.open(sqlite_book.url) as book:
        account, apply = book._account("d"), Account.apply

        def interrupted(self, totals, entry):
            apply(self, totals, entry)
            if entry.seq == 5:
                raise KeyboardInterrupt

        monkeypatch.setattr(Account, "apply", interrupted)
        with pytest.raises(KeyboardInterrupt):
            book.spent_each("d")
        monkeypatch.undo()
        assert account is book._account("d")
        assert book.spent_each("d").max() == 0.5
