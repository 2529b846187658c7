"""A book in one SQLite file on a local disk: every write is synchronised before it returns.

SQLite's own full synchronisation flushes the disk while it holds the lock, once for each spend.
Here the lock is released first and the write-ahead log flushed after, so one flush covers the
commits of many processes.  A spend still returns only after its own flush.

Before SQLite reads the log, `has_flipped_bit` looks for damage.  The log is a header and a sequence
of frames; each frame is a header and one page of the database.  SQLite takes the log to end at the
first frame whose checksum is wrong, as it is after a power cut, and ignores all commits from there
on.  So one flipped bit could undo commits, and with them the privacy charges that they recorded.
After a power cut whole sectors of a frame are missing.  If flipping one bit makes frame and
checksum agree, the frame was written completely, and the log was damaged later.

The checksum is a pair of sums (s, t) modulo 2^32.  It starts at the checksum of the header, and
each pair (x, y) of 32-bit words takes

    (s, t)  to  (s + t + x, s + 2 t + x + y).

It runs over the first two words and the page of every frame.  So a frame's checksum is a linear map
of the checksum before it, plus a weighted sum of the frame's words.

Reference: the WAL format, section 4 of https://sqlite.org/fileformat2.html.
"""

from __future__ import annotations

import errno
import os
import random
import sqlite3
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from accountant.book.chain.entries import OLDER_VERSION
from accountant.book.chain.head_pin import NEEDS_FILE_LOCKS, has_file_locks
from accountant.book.databases.database_names import NETWORK_FILE_SYSTEMS, checked_path, file_system
from accountant.book.databases.storage import TABLES, Question
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
# Of the write-ahead log:
LOG_HEADER, FRAME_HEADER = 32, 24  # lengths in bytes of the header of the log, and of each frame
# The first word of the log says in which byte order the words are summed.
LOG_MAGIC = {0x377F0682: "<", 0x377F0683: ">"}
WORD = 1 << 32  # the sums are taken modulo this
FRAMES_PER_READ = 1024  # frames that are read from the file at a time
Sums = tuple[int, int]


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


def has_flipped_bit(path: Path) -> bool:
    """Return whether one flipped bit explains why the log's first wrong header or frame is wrong.

    A frame is wrong if its checksum is, or if its salt is not the salt of the log.
    """
    try:
        with path.open("rb") as file:
            return _has_flipped_bit(file)
    except OSError:  # SQLite reports a file that cannot be read
        return False


def _has_flipped_bit(file: BinaryIO) -> bool:
    """Follow the checksums from the header on, and judge what is wrong first, if anything is."""
    header = file.read(LOG_HEADER)
    if len(header) < LOG_HEADER:
        return False
    if not _is_header(header):
        bits = int.from_bytes(header, "big")
        flipped_headers = (
            (bits ^ 1 << k).to_bytes(LOG_HEADER, "big") for k in range(8 * LOG_HEADER)
        )
        return any(map(_is_header, flipped_headers))
    # The words are: magic number, version, page size, checkpoint number, two of salt, two sums.
    magic, _, page, _, *salt, checksum_1, checksum_2 = struct.unpack(">8I", header)
    frame_length, (s, t) = FRAME_HEADER + page, (checksum_1, checksum_2)
    # Summed are two words and the page of a frame, in pairs of 8 bytes.  The checksum (s, t) before
    # it is that of the one pair (s, t - s), so it counts as one more pair ahead of them.
    weights_ahead, weights = np.split(_checksum_weights(1 + (8 + page) // 8), [2])
    (s_of_x, t_of_x), (s_of_y, t_of_y) = weights_ahead.tolist()
    while raw := file.read(frame_length * FRAMES_PER_READ):
        raw = raw[: len(raw) // frame_length * frame_length]  # a frame that is cut off is left out
        # Words 2 to 5 of a frame's header are two of salt and the two sums.
        fields = np.frombuffer(raw, ">u4").reshape(-1, frame_length // 4)[:, 2:6].tolist()
        frame_words = np.frombuffer(raw, f"{LOG_MAGIC[magic]}u4").reshape(-1, frame_length // 4)
        summed = np.delete(frame_words, slice(2, FRAME_HEADER // 4), axis=1).astype(np.uint32)
        frame_sums = (summed @ weights).tolist()
        for (*frame_salt, stored_1, stored_2), (frame_s, frame_t) in zip(
            fields, frame_sums, strict=True
        ):
            computed = (
                (s * s_of_x + (t - s) * s_of_y + frame_s) % WORD,
                (s * t_of_x + (t - s) * t_of_y + frame_t) % WORD,
            )
            salt_distance = _distance(frame_salt, salt)
            # The checksum does not cover the salt.  Frames of an older log have another salt.
            if salt_distance:
                return salt_distance == 1 and (stored_1, stored_2) == computed
            if (stored_1, stored_2) != computed:
                return _is_one_bit_off((stored_1, stored_2), computed, weights)
            s, t = computed
    return False


def _is_header(header: bytes) -> bool:
    """Return whether the magic number, the page size and the checksum of a header are right.

    The checksum is over its first six words, which are three pairs.
    """
    magic, _, page, _, _, _, *stored = struct.unpack(">8I", header)
    if magic not in LOG_MAGIC or not 512 <= page <= 65536 or page & (page - 1):
        return False
    header_words = np.frombuffer(header, f"{LOG_MAGIC[magic]}u4", 6).astype(np.uint32)
    return bool((header_words @ _checksum_weights(3)).tolist() == stored)


@cache
def _checksum_weights(pairs: int) -> NDArray[np.uint32]:
    """Return the weights of the words of that many pairs in the final s and t, in their order.

    If the pairs after a pair (x, y) take (s, t) to (a s + b t, c s + d t), then x, which is added
    to both sums, has the weights (a + b, c + d), and y, which is added to t, has (b, d).
    """
    rows: list[list[int]] = []
    a, b, c, d = 1, 0, 0, 1  # no pair comes after the last one
    for _ in range(pairs):
        rows += [[b % WORD, d % WORD], [(a + b) % WORD, (c + d) % WORD]]
        a, b, c, d = a + b, a + 2 * b, c + d, c + 2 * d
    return np.array(rows[::-1], dtype=np.uint32)


def _is_one_bit_off(stored: Sums, computed: Sums, weights: NDArray[np.uint32]) -> bool:
    """Return whether one bit of the stored sums, or of the summed words, explains the difference.

    A flipped bit k of a word with the weights (v, w) changes the sums by (v, w) 2^k or by its
    negative, modulo 2^32.
    """
    if _distance(stored, computed) == 1:
        return True
    difference = np.array(
        [(s - c) % WORD for s, c in zip(stored, computed, strict=True)], np.uint32
    )
    powers = np.uint32(1) << np.arange(32, dtype=np.uint32)  # 2^k for each bit k of a word
    word_changes = weights[:, :, None] * powers
    return bool(
        np.any(np.all(word_changes == difference[:, None], axis=1))
        or np.any(np.all(word_changes == (np.uint32(0) - difference)[:, None], axis=1))
    )


def _distance(stored: Sequence[int], expected: Sequence[int]) -> int:
    """Return the number of bits in which two lists of words differ."""
    return sum(
        (stored_word ^ expected_word).bit_count()
        for stored_word, expected_word in zip(stored, expected, strict=True)
    )
