"""Books for the tests of the durable ledger: the same tests on both kinds of database."""

import pytest

from tests.accountant.store_support import File, Server


@pytest.fixture(scope="session")
def server():
    found = Server()
    yield found
    found.stop()


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    if request.param == "sqlite":
        return File(tmp_path / "book.db")
    return request.getfixturevalue("server").database()


@pytest.fixture
def file(tmp_path):
    return File(tmp_path / "book.db")
