"""Books for the tests of the durable ledger: the same tests on both kinds of database."""

import pytest

from tests.accountant.book.throwaway_books import PostgresServer, SQLiteBookFile


@pytest.fixture(scope="session")
def postgres_server():
    found = PostgresServer()
    yield found
    found.stop()


def book_of(request, tmp_path):
    """A book in the kind of database that a fixture asks for."""
    if request.param == "sqlite":
        return SQLiteBookFile(tmp_path / "book.db")
    return request.getfixturevalue("postgres_server").database()


@pytest.fixture(params=["sqlite", "postgres"])
def stored_book(request, tmp_path):
    """For tests of what a database does: locks, transactions, statements, damage."""
    return book_of(request, tmp_path)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def any_book(request, tmp_path):
    """For tests of what entries say, which is the same in every database."""
    return book_of(request, tmp_path)


@pytest.fixture
def sqlite_book(tmp_path):
    return SQLiteBookFile(tmp_path / "book.db")


@pytest.fixture
def small_grid(monkeypatch):
    """Pages whose grid of what-ifs has four cells of three deltas, for tests of other parts."""
    grid = "accountant.reports.plan_summary"
    monkeypatch.setattr(f"{grid}.NOISE_FACTORS", (1.0, 2.0))
    monkeypatch.setattr(f"{grid}.COUNT_FACTORS", (1.0, 2.0))
    monkeypatch.setattr(f"{grid}.SHOWN_DELTA_AXIS", (1e-9, 1e-6, 1e-3))
