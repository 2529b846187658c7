"""A book in a PostgreSQL database, through SQLAlchemy: for use from many machines."""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from accountant.book.storage import TABLES
from accountant.errors import LedgerBusy, LedgerCorrupt, LedgerUnwritable, ParameterError

APPEND_ONLY = (
    """CREATE FUNCTION entries_stay() RETURNS trigger LANGUAGE plpgsql AS
       $$ BEGIN RAISE EXCEPTION 'entries are never changed'; END $$""",
    """CREATE TRIGGER entries_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON entries
       EXECUTE FUNCTION entries_stay()""",
)
# two writers who make the tables at once wait here; any constant that no other program locks
CREATION_LOCK = 0x64706174
BUSY = {"55P03", "40P01", "40001", "57014"}  # lock not available, deadlock, serialisation, timeout
DAMAGED = ("XX", "42P", "42703")  # internal errors of the server, and tables that are not there
FULL, READ_ONLY = "53100", "25006"


class Postgres:
    """A `Storage` in PostgreSQL; threads share one connection, reopened after it was lost."""

    def __init__(self, url: str, wait: float) -> None:
        try:
            import sqlalchemy as sa
        except ImportError:
            allowed = "'sqlite:///PATH'; for PostgreSQL: pip install 'dp-attest[postgres]'"
            raise ParameterError("url", "postgresql", allowed) from None
        self._sa, self._wait, self._lock = sa, wait, threading.RLock()
        found = sa.make_url(url).set(drivername="postgresql+psycopg")
        self.name = found.render_as_string(hide_password=True)
        own = found.query.get("options", "")
        settings = f"{own} -c lock_timeout={max(int(wait * 1000), 1)} -c synchronous_commit=on"
        self._engine = sa.create_engine(
            found.difference_update_query(["options"]),
            poolclass=sa.pool.NullPool,
            connect_args={"options": settings},
        )
        self._db: Any = None
        with self.reading():
            if self.ask("SHOW fsync") != [("on",)]:
                raise ParameterError("url", self.name, "of a server that has fsync on")

    @property
    def empty(self) -> bool:
        """Return whether the schema has no tables of a book yet."""
        return self.ask("SELECT to_regclass('entries') IS NULL") == [(True,)]

    def create(self) -> None:
        """Create the tables, inside a transaction."""
        for table in (*TABLES, *APPEND_ONLY):
            self.ask(table.format(whole="BIGINT", bytes="BYTEA"))

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Open a transaction that excludes other writers."""
        with self._transaction():
            # who waits for the tables sees, once he has them, all that was committed before
            if self.empty:
                self.ask(f"SELECT pg_advisory_xact_lock({CREATION_LOCK})")
            if not self.empty:
                self.ask("LOCK TABLE entries IN EXCLUSIVE MODE")
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Open a read-only transaction with one consistent view."""
        with self._transaction():
            self.ask("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock, self._translated_errors():
            if self._db is None or self._db.invalidated or self._db.closed:
                self._db = self._engine.connect()
            try:
                yield
                self._db.commit()
            except BaseException:
                with suppress(self._sa.exc.SQLAlchemyError):
                    self._db.rollback()
                raise

    def note_length(self, length: int) -> None:
        """Note nothing: the server's own log brings back what it committed."""

    def has_length(self, length: int) -> bool:
        """Return true: nothing was noted."""
        del length
        return True

    def check_integrity(self) -> None:
        """Let later statements of this transaction go by the indexes, to compare them."""
        for way in ("seqscan", "sort"):
            self.ask(f"SET LOCAL enable_{way} = off")

    def ask(self, sql: str, **values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of one statement, inside a transaction."""
        found = self._db.execute(self._sa.text(sql), values)
        return [tuple(row) for row in found] if found.returns_rows else []

    def close(self) -> None:
        """Close the connection to the server."""
        with self._lock:
            if self._db is not None:
                self._db.close()
            self._engine.dispose()

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Translate the server's errors into the errors of this package."""
        try:
            yield
        except self._sa.exc.SQLAlchemyError as error:
            state = str(getattr(getattr(error, "orig", None), "sqlstate", None) or "")
            if state in BUSY:
                raise LedgerBusy(self.name, self._wait) from None
            if state.startswith(DAMAGED):
                raise LedgerCorrupt(self.name, f"the server says {state}") from None
            code = {FULL: errno.ENOSPC, READ_ONLY: errno.EROFS}.get(state, errno.EIO)
            said = f"the server says {state}" if state else "the server cannot be reached"
            raise LedgerUnwritable(code, f"{self.name}: {said}; nothing was answered") from None
