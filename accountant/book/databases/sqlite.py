"""A book in one SQLite file on a local disk: every write is synchronised before it returns.

SQLite's own full synchronisation flushes the disk while it holds the lock, once for each spend.
Here the lock is released first and the write-ahead log flushed after, so one flush covers the
commits of many processes.  A spend still returns only after its own flush.
"""

from __future__ import annotations

import errno
import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from accountant.book.chain.entries import OLDER_VERSION
from accountant.book.chain.head_pin import NEEDS_FILE_LOCKS, has_file_locks
from accountant.book.databases.database_names import NETWORK_FILE_SYSTEMS, checked_path, file_system
from accountant.book.databases.storage import TABLES, Question
from accountant.book.databases.write_ahead_log import has_flipped_bit
from accountant.errors import LedgerBusy, LedgerCorrupt, LedgerUnwritable, ParameterError

APPLICATION_ID = 0x64706174  # "dpat" in ASCII: in the header of the file it marks a book
LARGEST_NOTE = (1 << 31) - 1  # the number in the file's header has 32 bits and a sign
# Triggers that refuse to change or delete entries.
APPEND_ONLY = tuple(
    f"CREATE TRIGGER entries_no_{verb.lower()} BEFORE {verb} ON entries "
    "BEGIN SELECT RAISE(ABORT, 'entries are never changed'); END"
    for verb in ("UPDATE", "DELETE")
)
# A trigger that refuses the entries of versions that know no formats.
NEEDS_FORMAT = (
    "CREATE TRIGGER IF NOT EXISTS entries_need_format BEFORE INSERT ON entries "
    "WHEN json_extract(NEW.body, '$.format') IS NULL "
    f"BEGIN SELECT RAISE(ABORT, '{OLDER_VERSION}'); END"
)
# what the library raises: the second for a text that is no UTF-8
SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
# The error codes of a file that cannot be written, with the error numbers of the operating system
# that stand for them.
UNWRITABLE = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_IOERR: errno.EIO,
    sqlite3.SQLITE_READONLY: errno.EROFS,
    sqlite3.SQLITE_PERM: errno.EACCES,
    sqlite3.SQLITE_CANTOPEN: errno.ENOENT,
}


class SQLite:
    """A `Storage` in one SQLite file; threads take turns on one connection."""

    def __init__(self, path: str, wait: float, create: bool) -> None:
        if not has_file_locks():
            raise ParameterError("url", path, f"of a PostgreSQL server here: {NEEDS_FILE_LOCKS}")
        self._path, self.name = checked_path(path, create), path
        self._wait, self._lock = wait, threading.RLock()
        self._wal_handle: int | None = None
        self._is_book = False
        self._is_immutable = False  # whether the file is read without locks, as none can be made
        if (kind := file_system(self._path.parent)) in NETWORK_FILE_SYSTEMS:
            raise ParameterError("url", path, f"on a local disk, not on {kind}; use PostgreSQL")
        self._db: Any = None
        try:
            self._connect()
            self._file = self._identity()
        except BaseException as error:
            self.close()
            if isinstance(error, SQLITE_ERRORS):
                raise self._translated(error) from None
            raise

    def _connect(self) -> None:
        """Open the file, and its write-ahead log if the book can be written."""
        if has_flipped_bit(self._beside("-wal")):  # SQLite drops all frames after a damaged one
            raise LedgerCorrupt(self.name, "its log ahead is damaged")
        mode = self._mode()
        self._db = db = sqlite3.connect(
            f"{self._path.as_uri()}?mode={mode}",
            uri=True,
            timeout=self._wait,
            isolation_level=None,
            check_same_thread=False,
        )
        if mode == "rwc":
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("SELECT count(*) FROM sqlite_master").fetchall()  # makes the log ahead
            try:
                self._wal_handle = os.open(f"{self._path}-wal", os.O_RDWR)
            except OSError as error:
                problem = f"{self.name}: has no log ahead: {error.strerror}"
                raise LedgerUnwritable(error.errno, problem) from None
        # NORMAL synchronises at checkpoints only; `_flush` flushes the commits.
        pragmas = ("synchronous = NORMAL", "checkpoint_fullfsync = 1", "cell_size_check = 1")
        for pragma in pragmas:
            db.execute(f"PRAGMA {pragma}")
        db.execute("PRAGMA busy_timeout = 0")

    def _mode(self) -> str:
        """Return how SQLite opens the file: a book on a read-only disk can still be read."""
        folder = os.access(self._path.parent, os.W_OK)
        if folder and (os.access(self._path, os.W_OK) or not self._path.exists()):
            return "rwc"
        if folder or self._beside("-shm").exists():
            return "ro"
        # Reading needs a file of locks, which does not exist and cannot be made here.
        if self._beside("-wal").exists() and self._beside("-wal").stat().st_size:
            problem = "was not closed: copy it with its -wal file to a disk that can be written"
            raise LedgerUnwritable(errno.EROFS, f"{self.name}: {problem}")
        self._is_immutable = True
        return "ro&immutable=1"

    def _beside(self, end: str) -> Path:
        return self._path.with_name(self._path.name + end)

    @property
    def empty(self) -> bool:
        """Return whether the file has no tables yet."""
        if self._is_book:  # and the file is still the same one
            return False
        if self.ask("SELECT count(*) FROM sqlite_master") == [(0,)]:
            return True
        if self.ask("PRAGMA application_id") != [(APPLICATION_ID,)]:
            raise LedgerCorrupt(self.name, "is no book, or its first page is damaged")
        self._is_book = True
        return False

    def create(self) -> None:
        """Create the tables, inside a transaction."""
        for table in (*TABLES, *APPEND_ONLY):
            self.ask(table.format(whole="INTEGER", bytes="BLOB"))
        self.ask(f"PRAGMA application_id = {APPLICATION_ID}")

    def refuse_older_versions(self) -> None:
        """Refuse from now on entries that state no format; inside a transaction."""
        self.ask(NEEDS_FORMAT)

    def writing(self, ahead: Sequence[Question] = ()) -> Any:
        """Open a transaction that excludes other writers; it is on disk when it ends."""
        del ahead  # a query of a file does not wait for a server
        return self._transaction("BEGIN IMMEDIATE", self._flush)

    def reading(self, durable: bool = False) -> Any:
        """Open a read-only transaction with one consistent view.

        With ``durable`` what was seen is on disk when it ends, but where the file is read-only.
        """
        can_flush = self._wal_handle is not None
        return self._transaction("BEGIN", self._flush if durable and can_flush else None)

    @contextmanager
    def _transaction(self, begin: str, after: Callable[[], None] | None) -> Iterator[None]:
        """Open a transaction by the statement ``begin``; ``after`` is called after its commit."""
        with self._lock:
            self._refuse_another_file()
            self._refuse_without_log()
            try:  # from here on an interruption must not leave the book locked
                self._begin(begin)
                yield
                if self._is_immutable:
                    self._refuse_another_file()
                self._db.execute("COMMIT")
            except BaseException as error:
                with suppress(sqlite3.Error):
                    self._db.execute("ROLLBACK")
                if isinstance(error, SQLITE_ERRORS):
                    raise self._translated(error) from None
                raise
            if after is not None:
                after()

    def _flush(self) -> None:
        """Flush the write-ahead log, so that all commits are on disk on return."""
        import fcntl

        if self._wal_handle is None:
            raise LedgerUnwritable(errno.EROFS, f"{self.name}: read-only; nothing was answered")
        try:
            if hasattr(fcntl, "F_FULLFSYNC"):  # macOS, whose fsync stops at the disk's cache
                fcntl.fcntl(self._wal_handle, fcntl.F_FULLFSYNC)
            else:
                os.fdatasync(self._wal_handle)
        except OSError as error:
            problem = f"{self.name}: {error.strerror}; nothing was answered"
            raise LedgerUnwritable(error.errno, problem) from None
        self._refuse_without_log()

    def _refuse_without_log(self) -> None:
        # Code that opens and closes the file in this process, to copy it say, releases the locks
        # that SQLite holds (POSIX); another process then removes the log when it is done.
        if self._wal_handle is not None and os.fstat(self._wal_handle).st_nlink == 0:
            why = "its log was removed while it was open (was the file copied by this process?)"
            raise LedgerCorrupt(self.name, f"{why}; close it and open it again")

    def _begin(self, begin: str) -> None:
        """Begin a transaction; wait for other writers as long as the book allows."""
        # SQLite's own waiting sleeps up to 0.1 s at a time, but a charge takes less than 1 ms: this
        # loop sleeps 0.2 to 2 ms.
        give_up = time.monotonic() + self._wait
        while True:
            try:
                self._db.execute(begin)
            except sqlite3.OperationalError as error:
                if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                    raise
                time.sleep(random.uniform(2e-4, 2e-3))
            else:
                return

    def now(self) -> datetime:
        """Return the time of this machine's clock."""
        return datetime.now(UTC)

    @property
    def schema(self) -> str | None:
        """Return none: a file has no schemas."""
        return None

    def note_length(self, length: int) -> None:
        """Note the number of entries in the file's header; inside a transaction."""
        self.ask(f"PRAGMA user_version = {length & LARGEST_NOTE}")

    def has_length(self, length: int) -> bool:
        """Return whether this is the number in the file's header; inside a transaction."""
        return self.ask("PRAGMA user_version") == [(length & LARGEST_NOTE,)]

    def check_integrity(self) -> None:
        """Raise `LedgerCorrupt` if a page or an index is damaged; inside a transaction."""
        self.ask("PRAGMA shrink_memory")  # pages are read from the file, not from memory
        problems = self.ask("PRAGMA integrity_check(1)")
        if problems != [("ok",)]:
            raise LedgerCorrupt(self.name, f"the file is damaged: {str(problems[0][0])[:200]}")

    def ask(self, sql: str, **values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of one statement, inside a transaction."""
        rows: list[tuple[Any, ...]] = self._db.execute(sql, values).fetchall()
        return rows

    def close(self) -> None:
        """Close the connection to the file."""
        with self._lock:
            if self._db is not None:
                self._db.close()
            if self._wal_handle is not None:
                os.close(self._wal_handle)
                self._wal_handle = None

    def _refuse_another_file(self) -> None:
        if self._identity() != self._file:
            raise LedgerCorrupt(self.name, "the file was replaced while it was open")

    def _identity(self) -> tuple[object, ...] | None:
        """Return what tells the file from one that replaces it; None if there is no file."""
        try:
            file_status = os.stat(self._path)
        except OSError:
            return None
        identity = file_status.st_dev, file_status.st_ino
        if self._is_immutable:  # without locks, a writer is noticed by what it changes
            wal = self._beside("-wal").exists()
            return *identity, file_status.st_size, file_status.st_mtime_ns, wal
        return identity

    def _translated(self, error: Exception) -> Exception:
        """Return the error of this package that says what an error of SQLite means."""
        if not isinstance(error, sqlite3.Error):
            return LedgerCorrupt(self.name, "holds words that are none")
        code = _code(error)
        if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
            return LedgerBusy(self.name, self._wait)
        cut = getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_IOERR_SHORT_READ
        if code in UNWRITABLE and not cut:
            return LedgerUnwritable(UNWRITABLE[code], f"{self.name}: {error}; nothing was answered")
        return LedgerCorrupt(self.name, str(error))


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
