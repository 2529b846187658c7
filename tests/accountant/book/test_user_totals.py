"""Users are stored in little room, in their order; their totals are read before the lock."""

from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountant import Book, Budget
from accountant.book.limits.user_totals import UserTotals
from accountant.book.stored_values import decode_users, encode_users
from accountant.ledger.totals import Total
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
    unsigned = np.array([5, 3, 250], dtype=np.uint8)
    assert decode_users(*encode_users(unsigned)).tolist() == [5, 3, 250]
    assert encode_users(slice(0, 10**6, 1)) == ([0, 10**6, 1], None)


@pytest.mark.parametrize("count", [0, 2, 4])
def test_users_are_as_many_as_their_entry_says(count):
    with pytest.raises(ValueError, match="not as many users"):
        decode_users(count, encode_users([1, 2, 3]).raw)


def test_users_in_bytes_of_no_known_form_are_refused():
    with pytest.raises(ValueError, match="not compressed"):
        decode_users(3, b"raw")


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
    with Book.create(stored_book.url) as book:
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
    with Book.create(sqlite_book.url) as book:
        book.dataset("d", Budget(100.0), users=20)
        with book.ledger("d", DATA) as ledger:
            for _ in range(5):
                ledger.spend(TENTH, slice(0, 10))
    with Book.open(sqlite_book.url) as book:
        account, add, spends = book._account("d"), UserTotals.add, []

        def interrupted(self, who, spend):
            add(self, who, spend)
            spends.append(who)
            if len(spends) == 2:
                raise KeyboardInterrupt

        monkeypatch.setattr(UserTotals, "add", interrupted)
        with pytest.raises(KeyboardInterrupt):
            book.spent_each("d")
        monkeypatch.undo()
        assert account is book._account("d")
        assert book.spent_each("d").max() == 0.5


class DictOfTotals:
    """A total for each user, added up one by one."""

    def __init__(self, users):
        self.of = [Total(0.0, 0.0)] * users

    def spend(self, who, spend):
        for one in np.arange(len(self.of))[slice(None) if who is None else who].tolist():
            self.of[one] = spend(self.of[one])


@given(st.lists(st.tuples(st.none() | users, st.sampled_from([0.0, 0.25, 0.5])), max_size=12))
def test_users_of_equal_totals_are_added_up_as_each_of_them(spends):
    several = UserTotals(40, Total(0.0, 0.0))
    each = DictOfTotals(40)
    for who, cost in spends:
        some = None if who is None else np.array([one % 40 for one in who], dtype=np.intp)
        some = None if some is None else np.unique(some)
        more = partial(lambda cost, total: Total(total.spent + cost, total.infinity), cost)
        several.add(some, more)
        each.spend(some, more)
        assert several.per_user(lambda total: total.spent).tolist() == [t.spent for t in each.of]
        assert several.worst_total() == max(each.of)


@pytest.mark.parametrize("seed", range(5))
def test_users_whose_totals_become_equal_are_one_class(seed):
    """Where a spend rounds up, all users may reach one total from several."""
    rng = np.random.default_rng(seed)
    totals, each = UserTotals(8, Total(0.0, 0.0)), np.zeros(8)
    for _ in range(60):
        step, size = float(rng.integers(1, 4)), rng.integers(1, 9)
        who = None if rng.random() < 0.4 else rng.choice(8, size, replace=False)

        def rounded_up(spent, step=step):
            return step * np.ceil((spent + 1) / step)

        totals.add(who, lambda total, after=rounded_up: Total(float(after(total.spent)), 0.0))
        paying = slice(None) if who is None else who
        each[paying] = rounded_up(each[paying])
        assert totals.per_user(lambda total: total.spent).tolist() == each.tolist()
        assert sorted(total.spent for total in totals.totals) == sorted(set(each.tolist()))


def test_totals_that_no_user_has_any_more_take_no_room():
    totals = UserTotals(10, Total(0.0, 0.0))
    for _ in range(500):
        for who in (None, slice(0, 5), np.arange(3, 7)):
            totals.add(who, lambda total: Total(total.spent + 1.0, 0.0))
    assert len(totals._totals) < 10
    assert totals.worst_total().spent == 1500.0
