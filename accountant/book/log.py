"""The log of a book: entries are only ever added, and each is checked when it is read."""

from __future__ import annotations

import datetime
import getpass
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from accountant.book.hash_chain import (
    FIRST_PREDECESSOR,
    ChainHead,
    LogEntry,
    canonical_json,
    next_hash,
)
from accountant.book.head_pin import HeadPin
from accountant.book.log_reader import HASH_OF, LAST_CHARGE, LAST_TWO, LogReader
from accountant.book.storage import Question, Storage
from accountant.errors import LedgerCorrupt, ParameterError

ENTRIES_CHECKED_ON_OPEN = 1000  # entries that are checked when a book is opened


class Log(LogReader):
    """Reads and appends inside transactions; detects a log that was shortened or replaced."""

    def __init__(self, storage: Storage, pin: HeadPin | None, author: str | None) -> None:
        super().__init__(storage)
        self._pin = pin
        self._author = _user() if author is None else author
        self._lock, self._process = threading.RLock(), os.getpid()
        self._closed = False
        self.last_seen_head = ChainHead(0, FIRST_PREDECESSOR)  # the last head this process knows of

    @contextmanager
    def writing(self, dataset: str | None = None) -> Iterator[None]:
        """Open a transaction that may append; appended entries are on disk when it ends.

        ``dataset`` is the one that may be charged.
        """
        with self._lock:
            self._refuse_other_process()
            ahead: list[Question] = [(LAST_TWO, {}), (HASH_OF, {"seq": self.last_seen_head.seq})]
            if dataset is not None:
                ahead.append((LAST_CHARGE, {"d": dataset}))
            with self.storage.writing(ahead):
                if self.storage.empty:
                    self._create()
                else:
                    self._head = self._checked_head(self._pinned())
                yield
            self._note_head()
            self.advance_pin()

    def advance_pin(self) -> None:
        """Write the last head that was read to the pin, if there is one."""
        if self._pin is not None and self._pin.read() != self.last_seen_head:
            self._pin.advance(self.last_seen_head)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Open a read-only transaction."""
        with self._lock:
            self._refuse_other_process()
            pinned = self._pinned()  # before the view, which may be older than a later pin
            with self.storage.reading():
                if self.storage.empty:
                    raise LedgerCorrupt(self.name, "has no entries")
                self._head = self._checked_head(pinned)
                yield
            self._note_head()

    def append(
        self, kind: str, facts: dict[str, Any], dataset: str | None = None, key: str | None = None
    ) -> LogEntry:
        """Append and return an entry; ``key`` must differ from the key of every other entry."""
        seq, previous = (0, FIRST_PREDECESSOR) if self._head is None else self._head.chain_head
        whole = {
            **facts, "kind": kind, "dataset": dataset, "key": key, "seq": seq + 1, "time": _now(),
            "author": self._author,
        }  # fmt: skip
        body = canonical_json(whole)
        entry = LogEntry(seq + 1, next_hash(previous, body), whole)
        self.storage.ask(
            "INSERT INTO entries VALUES (:seq, :dataset, :kind, :key, :body, :hash)",
            seq=entry.seq, dataset=dataset, kind=kind, key=key, body=body, hash=entry.hash,
        )  # fmt: skip
        self._head = entry
        return entry

    def attach(self, entry: LogEntry, raw: bytes) -> None:
        """Store the bytes whose digest an entry names."""
        self.storage.ask("INSERT INTO blobs VALUES (:seq, :body)", seq=entry.seq, body=raw)

    def _create(self) -> None:
        if self.last_seen_head.seq or self._pinned() is not None:
            raise LedgerCorrupt(self.name, "is empty, though entries of it are known")
        self.storage.create()
        self._head = None
        self.append("book", {"schema": 1, "id": os.urandom(16).hex()}, key="book")

    def _pinned(self) -> ChainHead | None:
        return None if self._pin is None else self._pin.read()

    def _checked_head(self, pinned: ChainHead | None) -> LogEntry:
        """Return the last entry, after a check that earlier known entries are still there."""
        last = self.storage.ask(LAST_TWO)
        head = self._checked(last, last[0][0] if last else 0)
        for link in (self.last_seen_head, pinned):
            if link is not None:
                self.refuse_unless_there(link, head)
        return head

    def _note_head(self) -> None:
        self.last_seen_head = self.head.chain_head

    def close(self) -> None:
        """Close the connection to the database."""
        with self._lock:
            self._closed = True
            self.storage.close()

    def _refuse_other_process(self) -> None:
        if self._closed:
            raise ParameterError("book", self.name, "open: it was closed")
        if os.getpid() != self._process:
            allowed = "opened by this very process: a connection may not cross a fork"
            raise ParameterError("book", self.name, allowed)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="microseconds")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
