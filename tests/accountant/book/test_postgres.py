"""Writers of a PostgreSQL server do not wait for another's flush, nor for a silent client."""

import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import traceback
from contextlib import ExitStack, suppress

import numpy as np
import pytest

from accountant import Book, Budget, LedgerBusy, LedgerCorrupt, LedgerUnwritable
from accountant.book.databases import postgres
from mechanisms import Laplace
from tests.accountant.book.throwaway_books import PostgresServer, unlooked

DATA = np.arange(20.0)
TENTH = Laplace(10.0)


@pytest.fixture
def place(postgres_server):
    found = postgres_server.database()
    with Book.create(found.url) as book:
        book.dataset("d", Budget(100.0))
    return found


def spend_unflushed(ledger, monkeypatch, spends):
    """Commits of a writer that dies before it waits for their flush, after one that is flushed."""
    ledger.spend(TENTH)
    monkeypatch.setattr(postgres, "FLUSH", "SELECT 1")
    for _ in range(spends):
        ledger.spend(TENTH)
    monkeypatch.undo()


@pytest.fixture(scope="module")
def lazy_server():
    """A server that flushes its log only when a client waits for it."""
    found = PostgresServer("wal_writer_delay=10s", "checkpoint_timeout=1d")
    yield found
    found.stop()


def test_the_lock_is_released_before_the_flush(place, monkeypatch):
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    with Book.open(place.url) as one, Book.open(place.url, wait=1.0) as two, place.connect() as own:
        first, second = one.ledger("d", DATA), two.ledger("d", DATA)
        own.execute("SELECT pg_advisory_lock(7)")
        monkeypatch.setattr(postgres, "FLUSH", f"SELECT pg_advisory_lock(7); {postgres.FLUSH}")
        slow = threading.Thread(target=first.spend, args=(TENTH,))
        slow.start()
        while place.fetch(waiting) != [(1,)]:
            assert slow.is_alive()
        monkeypatch.undo()
        second.spend(TENTH)
        assert slow.is_alive()
        own.execute("SELECT pg_advisory_unlock(7)")
        slow.join()
        assert one.spent("d") == 0.2
        one.verify()


def test_a_spend_waits_for_few_answers_of_the_server(place, monkeypatch):
    with Book.open(place.url) as book, book.ledger("d", DATA) as ledger:
        ledger.spend(TENTH)
        storage, sent = book._log.storage, []
        db = storage._db

        class Counted:
            def __getattr__(self, name):
                return getattr(db, name)

            def execute(self, words, *values, **options):
                sent.append(words)
                return db.execute(words, *values, **options)

        counted = Counted()
        monkeypatch.setattr(storage, "_db", counted)
        monkeypatch.setattr(storage._psycopg, "ClientCursor", psycopg_cursor(db))
        ledger.spend(TENTH)
        assert len(sent) == 3, sent
        assert sent[0].startswith("BEGIN")
        assert sent[-1].startswith("INSERT")
        assert sent[-1].endswith(f"COMMIT; {postgres.FLUSH}")


def psycopg_cursor(db):
    import psycopg

    plain = psycopg.ClientCursor
    return lambda _: plain(db)


def test_what_was_answered_survives_a_crash_of_the_server(lazy_server):
    place = lazy_server.database()
    with Book.create(place.url) as book:
        book.dataset("d", Budget(100.0))
        with book.ledger("d", DATA) as ledger:
            threads = [threading.Thread(target=ledger.spend, args=(TENTH,)) for _ in range(4)]
            for one in threads:
                one.start()
            for one in threads:
                one.join()
            answer = ledger.release(TENTH, np.sum)
        lazy_server.crash_and_recover()
    with Book.open(place.url) as book:
        lines = book.history("d")
        assert len(lines) == 5
        assert book.answer(lines[-1]) == answer
        book.verify()


def test_what_was_read_survives_a_crash_of_the_server(lazy_server, monkeypatch):
    place = lazy_server.database()
    with Book.create(place.url) as book:
        book.dataset("d", Budget(100.0))
        with book.ledger("d", DATA) as ledger:
            spend_unflushed(ledger, monkeypatch, 2)
        with Book.open(place.url) as reader:
            head, spent = reader.verify().head, reader.spent("d")
        lazy_server.crash_and_recover()
    with Book.open(place.url) as book:
        assert book.spent("d") == spent == 0.3
        book.verify(head)


def test_a_crash_loses_only_the_end(lazy_server, monkeypatch):
    place = lazy_server.database()
    with Book.create(place.url) as book:
        book.dataset("d", Budget(100.0))
        with book.ledger("d", DATA) as ledger:
            spend_unflushed(ledger, monkeypatch, 10)
        lazy_server.crash_and_recover()
    with Book.open(place.url) as book:
        kept = book.history("d")
        assert 1 <= len(kept) < 11
        book.verify()
        with book.ledger("d", DATA) as ledger:
            ledger.spend(TENTH)
        assert len(book.history("d")) == len(kept) + 1


def test_a_flush_that_fails_answers_nothing_and_is_not_called_busy(place, monkeypatch):
    with Book.open(place.url) as book, book.ledger("d", DATA) as ledger:
        monkeypatch.setattr(
            postgres, "FLUSH", "SET LOCAL statement_timeout = 1; SELECT pg_sleep(9)"
        )
        with pytest.raises(LedgerUnwritable, match="nothing was answered"):
            ledger.release(TENTH, unlooked)
        monkeypatch.undo()
        assert book.spent("d") == 0.1  # a crash may waste budget
        book.verify()


def test_what_is_read_and_cannot_be_flushed_is_not_answered(place, monkeypatch):
    with Book.open(place.url) as book:
        monkeypatch.setattr(postgres, "IS_FLUSHED", "SELECT false")
        assert book.spent("d") == 0.0
        monkeypatch.setattr(postgres, "FLUSH", "SELECT 1 / 0")
        with pytest.raises(LedgerUnwritable, match="did not flush; nothing was answered"):
            book.spent("d")


def test_what_was_asked_ahead_is_asked_again_after_an_insertion(place):
    count = "SELECT count(*) FROM blobs"
    with Book.open(place.url) as book:
        storage = book._log.storage
        assert not storage.empty
        with storage.writing([(count, {})]):
            storage.ask("INSERT INTO blobs (seq, body) VALUES (:seq, :body)", seq=1, body=b"1")
            assert storage.ask(count) == [(1,)]


@pytest.mark.parametrize("is_first", [True, False])
def test_a_transaction_in_which_a_statement_failed_is_no_spend(place, is_first):
    with Book.open(place.url) as book:
        before = place.hash_rows()

        def fails():
            with suppress(Exception):
                book._log.storage.ask("SELECT 1 / 0")

        def appends():
            with book._log.writing():
                if is_first:
                    fails()
                book._log.append("seed", {}, "d", "noise:0")
                if not is_first:  # then the server would answer the commit, and roll back
                    fails()

        with pytest.raises(LedgerUnwritable, match="nothing was answered"):
            appends()
        assert place.hash_rows() == before


SUSPENDED = """
    import os, signal, sys
    from accountant import Book
    from accountant.book.databases import postgres

    postgres.HOLDING_TIMEOUT = 500
    with Book.open(sys.argv[1]) as book:
        with book._log.writing():
            print("held", flush=True)
            os.kill(os.getpid(), signal.SIGSTOP)
            book._log.append("seed", {}, "d", "noise:0")
"""


def test_a_suspended_client_loses_the_lock_and_writes_nothing(place):
    words = [sys.executable, "-c", textwrap.dedent(SUSPENDED), place.url]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as client:
        assert client.stdout.readline() == "held\n"
        with Book.open(place.url) as book, book.ledger("d", DATA) as ledger:
            ledger.spend(TENTH)  # within its `wait` of 30 s, or it is busy
            os.kill(client.pid, signal.SIGCONT)
            _, said = client.communicate(timeout=60)
            assert "LedgerUnwritable" in said
            assert client.returncode == 1
            assert [line.kind for line in book.history("d")] == ["reserve"]
            book.verify()


def test_the_server_knows_when_to_give_up_a_client(place):
    assert postgres.HOLDING_TIMEOUT <= 10_000
    with Book.open(place.url, wait=3.0) as book, book._log.writing():
        shown = {
            name: book._log.storage.ask(f"SHOW {name}")[0][0]
            for name in (
                "idle_in_transaction_session_timeout", "statement_timeout", "lock_timeout",
                "synchronous_commit",
            )
        }  # fmt: skip
    assert list(shown.values()) == ["5s", "5s", "3s", "off"]
    with Book.open(place.url) as book, book._log.reading():
        assert book._log.storage.ask("SHOW statement_timeout") == [("0",)]
        assert book._log.storage.ask("SHOW synchronous_commit") == [("on",)]


def test_a_statement_that_takes_too_long_in_the_lock_is_ended(place, monkeypatch):
    monkeypatch.setattr(postgres, "HOLDING_TIMEOUT", 200)
    with Book.open(place.url) as book:
        with pytest.raises(LedgerBusy), book._log.writing():
            book._log.storage.ask("SELECT pg_sleep(60)")
        book.verify()


def test_a_client_whose_connection_was_ended_connects_again(place):
    with Book.open(place.url) as book, book.ledger("d", DATA) as ledger:
        ledger.spend(TENTH)
        place.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
            "AND backend_type = 'client backend'"
        )
        with pytest.raises(LedgerUnwritable):
            ledger.release(TENTH, unlooked)
        ledger.release(TENTH, np.sum)
        assert book.spent("d") == 0.2


def test_a_writer_that_locks_the_table_as_older_versions_do_excludes_others(place):
    other = place.hold_lock()
    with Book.open(place.url, wait=0.3) as book, book.ledger("d", DATA) as ledger:
        with pytest.raises(LedgerBusy):
            ledger.release(TENTH, unlooked)
        other.rollback()
        other.close()
        with book._log.writing():
            held = place.fetch("SELECT mode FROM pg_locks WHERE relation = 'entries'::regclass")
            assert ("RowExclusiveLock",) in held


def test_long_answers_are_stored_whole(place):
    big = np.arange(200_000.0)
    with Book.open(place.url) as book, book.ledger("d", DATA) as ledger:
        found = ledger.release(TENTH, lambda _: big, shape=big.size)
        assert np.array_equal(book.answer(book.history("d")[0]), found)
        book.verify()


def test_a_damaged_schema_is_corrupt(place):
    with Book.open(place.url) as book:
        place.execute("DROP VIEW datasets, plans, reservations, releases; DROP TABLE entries")
        with pytest.raises(LedgerCorrupt, match="the server says 42P01"):
            book.spent("d")


@pytest.fixture(scope="module")
def strict_server():
    """A server of few connections, to which the user eve comes with a password alone."""
    found = PostgresServer("max_connections=5", "max_wal_senders=0")
    place = found.database()
    place.execute("CREATE ROLE eve LOGIN PASSWORD 'a secret of eve'")
    rules = found.folder / "data" / "pg_hba.conf"
    rules.write_text(f"local all eve scram-sha-256\n{rules.read_text()}")
    place.execute("SELECT pg_reload_conf()")
    yield found
    found.stop()


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ("eve:wr0ng@/postgres?host=HERE", r"the password is wrong, or the user (SQLSTATE 28P01)"),
        ("eve@/postgres?host=HERE", "the server asks for a password"),
        ("postgres:wr0ng@/none?host=HERE", "no such database (SQLSTATE 3D000)"),
        ("postgres@/too many clients?host=HERE", "no such database (SQLSTATE 3D000)"),
        ("wr0ng@/postgres?host=HERE", "no such user (SQLSTATE 28000)"),
        ("u:wr0ng@no.such.host.invalid/postgres", "the host is not found"),
        ("u:wr0ng@127.0.0.1:1/postgres", "the connection was refused"),
        ("u:wr0ng@127.0.0.1:1/postgres?sslmode=wr0ng", "the address has an invalid sslmode value"),
        ("u:wr0ng@/postgres?host=/no/such/folder", "no server listens at this socket"),
        ("u:wr0ng@127.0.0.1:SILENT/postgres?connect_timeout=2", "did not answer in time"),
    ],
)
def test_a_connection_that_fails_says_why_and_no_password(strict_server, where, why):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = str(silent.getsockname()[1])
        where = where.replace("HERE", str(strict_server.folder)).replace("SILENT", port)
        with pytest.raises(LedgerUnwritable, match=re.escape(why)) as caught:
            Book.open(f"postgresql://{where.replace(' ', '%20')}")
    secret = where.partition("@")[0].partition(":")[2]
    assert not secret or secret not in "".join(traceback.format_exception(caught.value))


def test_too_many_clients_are_waited_for(strict_server):
    place = strict_server.database()
    with Book.create(place.url) as book:
        book.dataset("d", Budget(1.0))
    with ExitStack() as others:
        clients = [others.enter_context(place.connect()) for _ in range(5)]
        with pytest.raises(LedgerBusy, match=r"too many clients \(SQLSTATE 53300\)"):
            Book.open(place.url, wait=0.3)
        leaves = threading.Timer(0.5, clients[0].close)
        leaves.start()
        with Book.open(place.url, wait=30.0) as book:
            assert book.names == ["d"]
        leaves.join()
