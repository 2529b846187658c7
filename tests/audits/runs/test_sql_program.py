"""A query as a release: how its parameters are marked, and what databases answer."""

import sqlite3
import sys

import numpy as np
import pytest

from accountant import ParameterError
from audits import Command
from audits.runs.release_functions import RaisedOutcome
from audits.runs.sql_program import connect, translated
from tests.accountant.book.throwaway_books import PostgresServer


def run(url, query, value=3, size=2):
    with Command.sql(url, query) as release:
        return release(value, np.random.default_rng(0), size)


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE people (id INTEGER, name TEXT)")
        database.executemany("INSERT INTO people VALUES (?, ?)", [(1, "a"), (2, "b"), (3, None)])
    database.close()
    return f"sqlite:///{path}"


@pytest.mark.parametrize(
    ("style", "statement", "names"),
    [
        ("qmark", "SELECT ?, ':no', \":no\", x::int, '50%' -- :no\n + ? /* :no */ % 2",
         ["value", "b"]),
        ("named", "SELECT :value, ':no', \":no\", x::int, '50%' -- :no\n + :b /* :no */ % 2",
         ["value", "b"]),
        ("numeric", "SELECT :1, ':no', \":no\", x::int, '50%' -- :no\n + :2 /* :no */ % 2",
         ["value", "b"]),
        ("format", "SELECT %s, ':no', \":no\", x::int, '50%%' -- :no\n + %s /* :no */ %% 2",
         ["value", "b"]),
        ("pyformat", "SELECT %(value)s, ':no', \":no\", x::int, '50%%' -- :no\n + %(b)s "
         "/* :no */ %% 2", ["value", "b"]),
    ],
)  # fmt: skip
def test_parameters_are_marked_as_the_module_reads_them(style, statement, names):
    query = "SELECT :value, ':no', \":no\", x::int, '50%' -- :no\n + :b /* :no */ % 2;\n"
    assert translated(query, style) == (statement, names)


@pytest.mark.parametrize(
    ("query", "value", "expected"),
    [
        ("SELECT count(*) FROM people WHERE id <> :value", 1, np.array([2, 2])),
        ("SELECT id, name FROM people WHERE id > :value", 1, [[[2, "b"], [3, None]]] * 2),
        ("SELECT id FROM people WHERE id > :value", 9, [[]] * 2),
        ("SELECT :a - 2 * :b", {"a": 1, "b": 0.5}, np.array([0.0, 0.0])),
        ("SELECT x'01ff', :value", "it's", [[["01ff", "it's"]]] * 2),
    ],
)
def test_outputs_are_a_number_or_rows(query, value, expected, people):
    found = run(people, query, value)
    assert type(found) is type(expected)
    assert np.asarray(found).tolist() == np.asarray(expected).tolist() or found == expected


def test_an_error_of_the_database_is_an_outcome_and_a_file_is_only_read(people):
    found = run(people, "INSERT INTO people VALUES (:value, NULL)")
    assert [type(outcome) for outcome in found] == [RaisedOutcome] * 2
    assert found[0].kind == "OperationalError"
    assert "readonly" in found[0].message
    assert run(people, "SELECT count(*) + 0 * :value FROM people").tolist() == [3, 3]


@pytest.mark.parametrize(
    ("url", "query", "message"),
    [
        ("sqlite:///no/such.db", "SELECT :value", "unable to open database file"),
        ("no_such_module://x/y", "SELECT :value", "must be a URL"),
        ("nosuchmodule://x/y", "SELECT :value", "pip install 'nosuchmodule'"),
        ("people.db", "SELECT :value", "must be a URL"),
        ("postgresql://me:secret@here/db", "SELECT :value", "without a password"),
        ("sqlite:///", "SELECT 1", "no parameter :value"),
        ("sqlite://", "SELECT :other", "no parameter :other|unable to open"),
    ],
)
def test_what_cannot_be_asked_is_refused_without_a_password(url, query, message, people):
    url = people if url in {"sqlite:///", "sqlite://"} else url
    with pytest.raises(ParameterError, match=message) as refused:
        run(url, query)
    assert "secret" not in str(refused.value)


def test_a_module_gets_the_parts_of_the_url(tmp_path, monkeypatch):
    (tmp_path / "anydb.py").write_text(
        "paramstyle = 'format'\ndef connect(**arguments):\n    return arguments\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("ANY_PASSWORD", "p@ss")
    url = "anydb://me:${ANY_PASSWORD}@host:77/base%20one?ssl=1"
    expected = {"host": "host", "port": 77, "user": "me", "password": "p@ss",
                "database": "base one", "ssl": "1"}  # fmt: skip
    assert connect(url) == (expected, "format")
    assert connect("anydb://host") == ({"host": "host"}, "format")
    sys.modules.pop("anydb")


def test_queries_of_postgresql_and_what_they_write_is_rolled_back():
    psycopg = pytest.importorskip("psycopg")
    server = PostgresServer()
    url = f"postgresql://postgres@/postgres?host={server.folder}"
    try:
        query = "SELECT '50%' || :value::text, random() < 2, 1.10::numeric, 1.12345678901234567890"
        assert run(url, query, 7, 1) == [[["50%7", True, 1.1, "1.12345678901234567890"]]]
        with psycopg.connect(url, autocommit=True) as database:
            database.execute("CREATE TABLE made (x int)")
        query = "INSERT INTO made VALUES (:value) RETURNING (SELECT count(*) FROM made) + 1 / x"
        with Command.sql(url, query) as release:
            rng = np.random.default_rng(0)
            assert release(2, rng, 2).tolist() == [0, 0]
            failed, _ = release(0, rng, 2)
            assert failed == RaisedOutcome("DivisionByZero", "division by zero")
            assert release(1, rng, 2).tolist() == [1, 1]
    finally:
        server.stop()


def test_queries_of_duckdb():
    pytest.importorskip("duckdb")
    assert run("duckdb://", "SELECT sum(x) FROM (VALUES (1.5), (:value)) AS t(x)", 2).tolist() == [
        3.5, 3.5,
    ]  # fmt: skip
