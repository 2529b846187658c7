"""A book: closed once, units that stay, names that show what they are."""

import numpy as np
import pytest

from accountant import Book, Budget, ParameterError
from mechanisms import Laplace
from tests.accountant.book.throwaway_books import unlooked

DATA = np.arange(20.0)


TENTH = Laplace(10.0)  # costs 0.1


def test_a_closed_book_is_closed_and_not_corrupt(stored_book):
    book = Book.create(stored_book.url)
    book.dataset("d", Budget(1.0))
    ledger = book.ledger("d", DATA)
    book.close()
    book.close()
    for use in (lambda: book.spent("d"), book.verify, lambda: ledger.release(TENTH, unlooked)):
        with pytest.raises(ParameterError, match="it was closed"):
            use()


def test_the_unit_of_a_data_set_never_changes(any_book):
    with Book.create(any_book.url) as book:
        book.dataset("d", Budget(1.0), unit="one household")
        assert book.dataset("d", Budget(1.0)).unit == "one household"
        with pytest.raises(ParameterError, match="unit must be 'one household'"):
            book.dataset("d", Budget(1.0), unit="one row")


@pytest.mark.parametrize("name", ["d ", " d", " ", "cafe\u0301"])
def test_names_that_look_the_same_are_refused(any_book, name):
    with Book.create(any_book.url) as book:
        before = any_book.hash_rows()
        with pytest.raises(ParameterError, match="name must be"):
            book.dataset(name, Budget(1.0))
        assert any_book.hash_rows() == before


def test_a_line_that_is_none_has_no_answer(any_book):
    with Book.create(any_book.url) as book:
        book.dataset("d", Budget(1.0))
        with book.ledger("d", DATA) as ledger:
            ledger.release(TENTH, np.sum)
            ledger.release(TENTH, np.sum)
        line, next_line = book.history("d")
        for answer in (line.seq, next_line.answer):  # of a spend, and of another line
            with pytest.raises(ParameterError, match="line must be"):
                book.answer(line._replace(answer=answer))


@pytest.mark.parametrize("run", ["june", ""])
def test_a_run_is_of_a_plan(any_book, run):
    with Book.create(any_book.url) as book:
        book.dataset("d", Budget(1.0))
        before = any_book.hash_rows()
        with pytest.raises(ParameterError, match="run must be given with a plan"):
            book.ledger("d", DATA, run=run)
        assert any_book.hash_rows() == before
