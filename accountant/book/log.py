"""The log of a book: entries are only ever added, and each is checked when it is read."""

from __future__ import annotations

import datetime
import getpass
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from accountant.book.chain.hash_chain import (
    FIRST_PREDECESSOR,
    ChainHead,
    LogEntry,
    canonical_json,
    next_hash,
)
from accountant.book.chain.head_pin import HeadPin
from accountant.book.chain.key_index import new_nodes
from accountant.book.chain.signing_key import SigningKey, format_head
from accountant.book.databases.storage import Question, Storage
from accountant.book.log_reader import CHARGING_KINDS, HASH_OF, LogReader, own_keys
from accountant.errors import LedgerCorrupt, ParameterError

LAST_ENTRIES = "SELECT seq, body, hash FROM entries ORDER BY seq DESC LIMIT 4"
ENTRIES_CHECKED_ON_OPEN = 1000  # entries that are checked when a book is opened


class Log(LogReader):
    """Reads and appends inside transactions; detects a log that was shortened or replaced."""

    def __init__(
        self,
        storage: Storage,
        pin: HeadPin | None,
        author: str | None,
        wait: float = 30.0,
        signing_key: SigningKey | None = None,
    ) -> None:
        super().__init__(storage, signing_key)
        self._pin, self.wait = pin, wait
        self.author = _user() if author is None else author
        self._lock, self._process = threading.RLock(), os.getpid()
        self._closed = False
        self._time = self.latest = ""  # times of the open transaction, and the latest in the log
        self.last_seen_head = ChainHead(0, FIRST_PREDECESSOR)  # the last head this process knows of

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Open a transaction that may append; appended entries are on disk when it ends."""
        with self._lock:
            self._refuse_other_process()
            try:
                # the database answers it together with the lock
                hash_question: Question = (HASH_OF, {"seq": self.last_seen_head.seq})
                with self.storage.writing([(LAST_ENTRIES, {}), hash_question]):
                    self._time = self.latest = _now()
                    if self.storage.empty:
                        self._create()
                    else:
                        self._head = self._checked_head(self._pinned())
                        self.latest = max(self._time, self._head.latest)
                    if self.head.index_root is None:
                        self._index_old_entries()
                    yield
                    self.storage.note_length(self.head.seq)
            except BaseException:
                self.forget_entries()  # an entry in the cache may not be committed
                raise
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
            pinned = self._pinned()  # read before the entries, which may be older than a later pin
            with self.storage.reading():
                if self.storage.empty:
                    raise LedgerCorrupt(self.name, "has no entries")
                self._head = self._checked_head(pinned)
                self.latest = max(_now(), self._head.latest)
                yield
            self._note_head()

    def append(
        self,
        kind: str,
        facts: dict[str, Any],
        dataset: str | None = None,
        key: str | None = None,
        also: str | None = None,
    ) -> LogEntry:
        """Append and return an entry; ``key`` must differ from the key of every other entry.

        It becomes the last entry under its key and under ``also``, and a charge under the key of
        its data set's charges.  Noise is left to the index of the database.
        """
        seq, previous = (0, FIRST_PREDECESSOR) if self._head is None else self._head.chain_head
        entry_facts = {
            **facts,
            "kind": kind,
            "dataset": dataset,
            "key": key,
            "seq": seq + 1,
            "time": self._time,
            "author": self.author,
        }
        if self.latest > self._time:  # the clock ran back: expired budgets stay expired
            entry_facts["latest"] = self.latest
        keys = own_keys(LogEntry(seq + 1, "", entry_facts)) + ([] if also is None else [also])
        if kind in CHARGING_KINDS and dataset is not None:
            last_charge = self.last_charge(dataset)
            entry_facts["before"] = 0 if last_charge is None else last_charge.seq
        root = 0 if self._head is None else self._head.index_root or 0
        if keys:
            entry_facts["index"] = new_nodes(keys, root, seq + 1, self.nodes_of)
        else:
            entry_facts["root"] = root
        if self.signing_key is None and self._head is not None and "mac" in self._head.facts:
            raise ParameterError("key", None, "given: the entries of this book are signed")
        body = canonical_json(entry_facts)
        if self.signing_key is not None:
            entry_facts["mac"] = self.signing_key.sign_entry(previous, body)
            body = canonical_json(entry_facts)
        entry = LogEntry(seq + 1, next_hash(previous, body), entry_facts)
        self.storage.ask(
            "INSERT INTO entries VALUES (:seq, :dataset, :kind, :key, :body, :hash)",
            seq=entry.seq,
            dataset=dataset,
            kind=kind,
            key=key,
            body=body,
            hash=entry.hash,
        )
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

    def _index_old_entries(self) -> None:
        """Index every key of a log that was written without an index."""
        last_seqs: dict[str, int] = {}
        for entry in self.entries_after(ChainHead(0, FIRST_PREDECESSOR)):
            nodes = entry.facts.get("index")
            keys = own_keys(entry) if nodes is None else [key for key, _ in nodes]
            last_seqs.update(dict.fromkeys(keys, entry.seq))
        for key, seq in last_seqs.items():
            self.append("index", {"at": seq}, also=key)

    def _pinned(self) -> ChainHead | None:
        return None if self._pin is None else self._pin.read()

    def _checked_head(self, pinned: ChainHead | None) -> LogEntry:
        """Return the last entry, after a check that earlier known entries are still there."""
        last_rows = self.storage.ask(LAST_ENTRIES)
        head = self._checked(last_rows[:2], last_rows[0][0] if last_rows else 0)
        # the root of the index is needed next, and was read together with the head
        for row, before in pairwise(last_rows[1:]):
            if row[0] == head.index_root == before[0] + 1:
                self._cached_entries[row[0]] = self._checked([row, before], row[0])
        for link in (self.last_seen_head, pinned):
            if link is not None:
                self.refuse_unless_there(link, head)
        if head.index_root is not None and not self.storage.has_length(head.seq):
            why = "has lost or gained entries: its length is noted as another"
            raise LedgerCorrupt(self.name, why, head.seq)
        return head

    def _note_head(self) -> None:
        self.last_seen_head = self.head.chain_head

    def close(self) -> None:
        """Close the connection to the database."""
        with self._lock:
            self._closed = True
            self.storage.close()

    def signed_head(self) -> str:
        """Return the head in words, signed where there is a key; inside a transaction."""
        return format_head(self.head.chain_head, self.signing_key)

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
