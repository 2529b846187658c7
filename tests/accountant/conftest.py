"""Books for the tests of the durable ledger: the same tests on both kinds of database."""

import pytest

from tests.accountant.book.throwaway_books import PostgresServer, SQLiteBookFile


@pytest.fixture(scope="session")
def postgres_server():
    found = PostgresServer()
    yield found
    found.stop()


@pytest.fixture(params=["sqlite", "postgres"])
def stored_book(request, tmp_path):
    if request.param == "sqlite":
        return SQLiteBookFile(tmp_path / "book.db")
    return request.getfixturevalue("postgres_server").database()


@pytest.fixture
def sqlite_book(tmp_path):
    return SQLiteBookFile(tmp_path / "book.db")
