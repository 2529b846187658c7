"""The storage of a book in a PostgreSQL database, through psycopg: for use from many machines.

A book is an append-only log of entries; each spend of privacy budget appends to it.  `Postgres`
implements the `Storage` interface of that log, so its public methods are described there.

By default the server flushes its write-ahead log to disk while a committing transaction still holds
its locks, so that writers who wait for the lock need one flush for each spend.  Here a transaction
commits without waiting for the disk, which releases the lock, and a second, empty transaction, sent
together with the commit, waits for the flush.  The server writes and recovers its log in order:
that flush covers every commit before it, of all writers, and a crash loses a spend only together
with all that came after it.  Spends and reads return only after what they wrote or saw is flushed.
"""

from __future__ import annotations

import errno
import random
import re
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from accountant.book.chain.entries import OLDER_VERSION
from accountant.book.databases.storage import TABLES, Question
from accountant.errors import (
    LedgerBusy,
    LedgerCorrupt,
    LedgerUnwritable,
    ParameterError,
    RoleRefused,
)

APPEND_ONLY = (
    """CREATE FUNCTION entries_stay() RETURNS trigger LANGUAGE plpgsql AS
       $$ BEGIN RAISE EXCEPTION 'entries are never changed'; END $$""",
    """CREATE TRIGGER entries_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON entries
       EXECUTE FUNCTION entries_stay()""",
)
# A trigger that refuses the entries of versions that know no formats.  Only the owner of the table
# can make it, so another writer of an old book goes on without it.  What is no JSON to PostgreSQL,
# such as half of a surrogate pair, is searched for the word.
NEEDS_FORMAT = f"""DO $do$ BEGIN
    IF EXISTS (SELECT FROM pg_trigger WHERE tgrelid = 'entries'::regclass
               AND tgname = 'entries_need_format') THEN RETURN; END IF;
    CREATE OR REPLACE FUNCTION entries_need_format() RETURNS trigger LANGUAGE plpgsql AS $$
        DECLARE stated text;
        BEGIN
            BEGIN
                stated := NEW.body::json ->> 'format';
            EXCEPTION WHEN data_exception THEN
                stated := NULLIF(position('"format":' in NEW.body), 0);
            END;
            IF stated IS NULL THEN RAISE EXCEPTION '{OLDER_VERSION}'; END IF;
            RETURN NEW;
        END $$;
    CREATE TRIGGER entries_need_format BEFORE INSERT ON entries
        FOR EACH ROW EXECUTE FUNCTION entries_need_format();
EXCEPTION WHEN insufficient_privilege THEN NULL; END $do$"""
# Number of the advisory lock under which the tables are created, so that of two writers who find no
# tables one waits for the other.  It is "dpat" in ASCII; any number that no other program locks
# would do.
CREATION_LOCK = 0x64706174
# Milliseconds after which the server ends a statement of a client that holds the lock, or
# disconnects a client that is silent inside a transaction.  With a longer time a client that hangs
# would keep all others waiting longer; a shorter one could end a charge on a slow server.
HOLDING_TIMEOUT = 5000
# Takes the writers' lock until the transaction ends; its commit will not wait for the flush.  From
# the next statement on the time limit ``:most`` holds.
HOLD = (
    "SELECT set_config('synchronous_commit', 'off', true), pg_advisory_xact_lock(:lock), "
    "set_config('statement_timeout', :most, true)"
)
# a transaction that writes to the server's log, so that its commit waits for the flush
FLUSH = "SELECT pg_logical_emit_message(true, 'dp-attest', '')"
# whether the server's whole log is on disk; true on a standby server, where this cannot be asked
IS_FLUSHED = (
    "SELECT CASE WHEN pg_is_in_recovery() THEN true "
    "ELSE pg_current_wal_insert_lsn() <= pg_current_wal_flush_lsn() END"
)
# microseconds since 1970 by the server's clock, which all writers of a book share
TIME: Question = ("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint", {})
# characters or bytes: an insertion with a shorter body is held back, and sent in one message with
# the next statement, mostly the commit; one with a longer body is sent at once
LONGEST_WORDS = 1 << 16
# SQLSTATE codes of the server's errors, or their first characters
BUSY = {"55P03", "40P01", "40001", "57014"}  # lock not available, deadlock, serialisation, timeout
DAMAGED = ("XX", "42P", "42703")  # internal errors, and tables or columns that are not there
FULL, READ_ONLY = "53100", "25006"  # disk full, and a transaction that may not write
TOO_MANY_CLIENTS = "53300"
FORBIDDEN = "42501"  # a right that the login does not have
# Why no connection was made, by words of the message, without what stands in quotes: psycopg tells
# no SQLSTATE of a connection that failed.  Each has the SQLSTATE, where the server sends one, and a
# sentence of our own, because a message may repeat what the caller put in place of a name.
CONNECTION_FAILURES: tuple[tuple[str, str, str], ...] = (
    ("password authentication failed", "28P01", "the password is wrong, or the user"),
    ("no password supplied", "", "the server asks for a password, and none was given"),
    ("no pg_hba.conf entry", "28000", "the server lets this user not in from here"),
    ("role  does not exist", "28000", "the server has no such user"),
    ("is not permitted to log in", "28000", "this user may not log in"),
    ("database  does not exist", "3D000", "the server has no such database"),
    ("permission denied for database", "42501", "this user may not connect to the database"),
    ("too many c", TOO_MANY_CLIENTS, "the server has too many clients"),  # or connections
    ("remaining connection slots", TOO_MANY_CLIENTS, "the server has too many clients"),
    ("the database system is", "57P03", "the server is starting or shutting down"),
    ("failed to resolve host", "", "the host is not found"),
    ("Connection refused", "", "the connection was refused: no server listens there"),
    ("No such file or directory", "", "no server listens at this socket"),
    ("timeout expired", "", "the server did not answer in time"),
    *((f"invalid {option} value", "", f"the address has an invalid {option} value")
      for option in ("sslmode", "channel_binding", "gssencmode", "load_balance_hosts",
                     "require_auth", "sslnegotiation", "target_session_attrs")),
)  # fmt: skip


class Postgres:
    """A `Storage` in PostgreSQL; threads share one connection, reopened after it was lost."""

    def __init__(self, url: str, wait: float) -> None:
        try:
            import psycopg
        except ImportError:
            allowed = "'sqlite:///PATH'; for PostgreSQL: pip install 'psycopg[binary]'"
            raise ParameterError("url", "postgresql", allowed) from None
        self._psycopg, self._wait, self._lock = psycopg, wait, threading.RLock()
        self._parameters = self._connection_parameters(url)
        self.name = _shown_name(self._parameters)
        settings = {
            "lock_timeout": max(int(wait * 1000), 1),
            "statement_timeout": 0,
            "idle_in_transaction_session_timeout": HOLDING_TIMEOUT,
            "synchronous_commit": "on",
        }
        options = (f"-c {name}={value}" for name, value in settings.items())
        self._parameters["options"] = " ".join([str(self._parameters.get("options", "")), *options])
        self._db: Any = None
        # the server's object identifier of the table of entries; None until it was found
        self._table: int | None = None
        self._not_begun = ""  # the statement that begins the transaction, until it is sent
        self._inserts: list[Question] = []  # insertions of the transaction that are not sent yet
        # answers to questions that were sent together with the lock, until `ask` asks them
        self._answers: dict[Any, list[tuple[Any, ...]]] = {}
        try:
            with self.reading():
                if self.ask("SHOW fsync") != [("on",)]:
                    allowed = "of a server that has fsync on"
                    raise ParameterError("url", self.name, allowed)  # noqa: TRY301
        except BaseException:
            self.close()
            raise

    def _connection_parameters(self, url: str) -> dict[str, Any]:
        """Return the keyword arguments of a connection that the URL states.

        An error repeats nothing of the URL, because it may hold a password.
        """
        allowed = "postgresql://USER:PASSWORD@HOST:PORT/DATABASE, each part percent-encoded"
        try:
            parts = urlsplit(url)._replace(scheme="postgresql")
            query = parts.query if "@" in parts.query else parts.query.replace("+", "%20")
            parameters = self._psycopg.conninfo.conninfo_to_dict(
                urlunsplit(parts._replace(query=query))
            )
        except (ValueError, self._psycopg.Error):
            raise ParameterError("url", "postgresql", allowed) from None
        if parts.netloc.count("@") > 1 or "@" in parts.path or parts.fragment:
            raise ParameterError("url", "postgresql", allowed)
        if not re.fullmatch("[0-9,]*", str(parameters.get("port", "")), re.ASCII):
            raise ParameterError("url", "postgresql", f"{allowed}; the port is a number")
        return dict(parameters)

    @property
    def empty(self) -> bool:
        """Return whether the schema has no tables of a book yet."""
        if self._table is None:
            [(self._table,)] = self.ask("SELECT to_regclass('entries')::oid::bigint")
        return self._table is None

    @property
    def schema(self) -> str | None:
        """Return the schema that holds the tables."""
        [(schema,)] = self.ask(
            "SELECT nspname FROM pg_class JOIN pg_namespace spaces ON spaces.oid = relnamespace "
            "WHERE pg_class.oid = 'entries'::regclass"
        )
        return str(schema)

    def create(self) -> None:
        """Create the tables, inside a transaction."""
        for table in (*TABLES, *APPEND_ONLY):
            self.ask(table.format(whole="BIGINT", bytes="BYTEA"))

    def refuse_older_versions(self) -> None:
        """Refuse from now on entries that state no format; inside a transaction."""
        self.ask(NEEDS_FORMAT)

    @contextmanager
    def writing(self, ahead: Sequence[Question] = ()) -> Iterator[None]:
        """Open a transaction that excludes other writers; it is on disk when it ends."""
        known_table, ahead = self._table, [*ahead, TIME]
        with self._transaction("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"):
            self._hold(ahead if known_table else ())
            # Until now this object knew of no tables, so it holds the lock to create them.  If they
            # exist, it takes the writers' lock too.
            if known_table is None and not self.empty:
                self._hold(ahead)
            yield
            if self._db.info.transaction_status == self._psycopg.pq.TransactionStatus.INERROR:
                problem = f"{self.name}: a statement failed before the end; nothing was answered"
                raise LedgerUnwritable(errno.EIO, problem)  # the server would roll back in silence
            # The commit releases the lock.  The flush after it is a transaction of its own: it
            # waits until all that was committed is on disk.
            try:
                self._send("COMMIT", FLUSH)
            except self._psycopg.Error:
                if self._db.info.transaction_status != self._psycopg.pq.TransactionStatus.IDLE:
                    raise
                raise self._not_flushed() from None

    def _hold(self, ahead: Sequence[Question]) -> None:
        """Wait for the lock of writers, and keep the answers to the questions asked ahead.

        The lock is the one to create the tables while no table of entries is known.  The
        statements after the lock see all that other writers committed before.  From then on the
        server ends a statement that takes longer than `HOLDING_TIMEOUT`.
        """
        lock, before = CREATION_LOCK, []
        if self._table is not None:
            # A client that has locked the whole table is waited for first.
            lock = CREATION_LOCK << 32 | self._table
            before = ["LOCK TABLE entries IN ROW EXCLUSIVE MODE"]
        statement_rows = self._send(
            *before, (HOLD, {"lock": lock, "most": str(HOLDING_TIMEOUT)}), *ahead
        )
        answers = zip(ahead, statement_rows[len(statement_rows) - len(ahead) :], strict=True)
        self._answers = {_key(*question): rows for question, rows in answers}

    def _send(self, *statements: str | Question) -> list[list[tuple[Any, ...]]]:
        """Send statements as one message, and return the rows of each.

        The begin of the transaction and the insertions that wait are sent before them, and their
        rows are left out.
        """
        begin, self._not_begun = self._not_begun, ""
        begin_statements = [begin] if begin else []
        waiting, self._inserts = self._inserts, []
        quoted = self._psycopg.ClientCursor(self._db).mogrify
        quoted_statements = [
            statement
            if isinstance(statement, str)
            else quoted(_placeholders(statement[0]), statement[1])
            for statement in (*begin_statements, *waiting, *statements)
        ]
        cursor, statement_rows = self._db.execute("; ".join(quoted_statements), prepare=False), []
        while True:
            statement_rows.append(cursor.fetchall() if cursor.description else [])
            if not cursor.nextset():
                return statement_rows[len(begin_statements) + len(waiting) :]

    def _not_flushed(self) -> LedgerUnwritable:
        # the writes may be stored, so this is no `LedgerBusy`, after which users retry
        problem = f"{self.name}: the server did not flush; nothing was answered"
        return LedgerUnwritable(errno.EIO, problem)

    @contextmanager
    def reading(self, durable: bool = False) -> Iterator[None]:
        """Open a read-only transaction with one consistent view; what was seen is on disk."""
        del durable  # it is so in any case
        with self._transaction("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"):
            yield
            flushed, _ = self._send(IS_FLUSHED, "COMMIT")
            if flushed != [(True,)]:
                try:
                    self._db.execute(FLUSH)
                except self._psycopg.Error:
                    raise self._not_flushed() from None

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        """Open a transaction by the statement ``begin``; after an error it is rolled back.

        After an interruption in the middle of a statement the connection is closed.  ``begin`` is
        sent together with the first statement of the transaction.
        """
        with self._lock, self._translated_errors():
            if self._db is None or self._db.closed:
                self._db = self._connect()
            try:
                self._not_begun = begin
                yield
            except BaseException:
                idle = self._psycopg.pq.TransactionStatus.IDLE
                with suppress(self._psycopg.Error):
                    if self._db.info.transaction_status != idle:
                        self._db.execute("ROLLBACK")
                if self._db.info.transaction_status != idle:
                    self._db.close()
                raise
            finally:
                self._inserts, self._answers, self._not_begun = [], {}, ""

    def _connect(self) -> Any:
        """Return a connection; wait for one as long as the book allows if there are too many."""
        give_up = time.monotonic() + self._wait
        while True:
            try:
                return self._psycopg.connect(**self._parameters, autocommit=True)
            except self._psycopg.Error as error:
                state, sentence = _why_not_connected(error)
            if state != TOO_MANY_CLIENTS:
                shown_state = state and f" (SQLSTATE {state})"
                problem = f"{self.name}: {sentence}{shown_state}; nothing was answered"
                raise LedgerUnwritable(errno.EIO, problem)
            if time.monotonic() > give_up:
                raise LedgerBusy(self.name, self._wait, f"{sentence} (SQLSTATE {state})")
            time.sleep(random.uniform(0.01, 0.1))  # each attempt costs the server a process

    def now(self) -> datetime:
        """Return the time of the server's clock; in writing transactions, as the lock was taken."""
        [(microseconds,)] = self.ask(TIME[0])
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)

    def note_length(self, length: int) -> None:
        """Note nothing: the server's own log brings back what it committed."""

    def has_length(self, length: int) -> bool:
        """Return true: nothing was noted."""
        del length
        return True

    def check_integrity(self) -> None:
        """Make the server prefer indexes from now on in this transaction.

        Verification then reads the entries through the indexes, so that a damaged index is noticed.
        """
        for node_type in ("seqscan", "sort"):
            self.ask(f"SET LOCAL enable_{node_type} = off")

    def ask(self, sql: str, **values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of one statement, inside a transaction."""
        short = len(values.get("body", "")) < LONGEST_WORDS
        # a short insertion is held back, because no answer to it is needed
        if short and sql.startswith("INSERT"):
            self._inserts.append((sql, values))
            self._answers = {}
            return []
        rows = self._answers.pop(_key(sql, values), None)
        if rows is not None:
            return rows
        if self._inserts and not short:
            self._send()
        if self._not_begun or self._inserts or not values:
            return self._send((sql, values) if values else sql)[0]
        cursor = self._db.execute(_placeholders(sql), values)
        return cursor.fetchall() if cursor.description else []

    def close(self) -> None:
        """Close the connection to the server."""
        with self._lock:
            if self._db is not None:
                self._db.close()

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Translate the server's errors into the errors of this package."""
        try:
            yield
        except self._psycopg.Error as error:
            state = str(error.sqlstate or "")
            if state in BUSY:
                raise LedgerBusy(self.name, self._wait) from None
            if state == FORBIDDEN:
                why = "the server does not let this login do it (SQLSTATE 42501); "
                why += "`ledger grants` shows how its owner gives a login a role"
                raise RoleRefused(self.name, why) from None
            if state.startswith(DAMAGED):
                raise LedgerCorrupt(self.name, f"the server says {state}") from None
            code = {FULL: errno.ENOSPC, READ_ONLY: errno.EROFS}.get(state, errno.EIO)
            said = f"the server says {state}" if state else "the server cannot be reached"
            raise LedgerUnwritable(code, f"{self.name}: {said}; nothing was answered") from None


def _why_not_connected(error: Any) -> tuple[str, str]:
    """Return the SQLSTATE of a failed connection, empty if it has none, and why in a sentence."""
    # of several addresses the first line is about the last one that was tried
    message = re.sub('"[^"]*"', "", str(error).partition("Multiple connection attempts")[0])
    for phrase, state, sentence in CONNECTION_FAILURES:
        if phrase in message:
            return state, sentence
    state = str(error.sqlstate or "")
    return state, "the server made no connection" if state else "the server cannot be reached"


def _key(sql: str, values: dict[str, Any]) -> tuple[Any, ...]:
    return sql, *values.items()


@lru_cache(maxsize=100)
def _placeholders(sql: str) -> str:
    """Return the statement with its ``:name`` as psycopg's ``%(name)s``."""
    return re.sub(r"(?<!:):(\w+)", r"%(\1)s", sql)


def _shown_name(to: dict[str, Any]) -> str:
    """Return a URL of the user, the host, the port and the database, without the password.

    A database name with an equals sign (%3D) is left out too: libpq may read it as a connection
    string, which can hold a password.
    """
    user, host, port, database = (
        quote(str(to.get(part, "")), safe=",") for part in ("user", "host", "port", "dbname")
    )
    return f"postgresql://{user}@{host}{port and ':'}{port}/{'' if '%3D' in database else database}"
