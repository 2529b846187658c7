"""The log of a book: entries are only ever added, and each is checked when it is read.

Everything that is written goes through `Log.append`, or `Log.attach` for the blobs of an entry,
inside a transaction of `Log.writing`.  What is read is checked against the hash chain, and the end
of the log against what this process, the pin and the database know of it, so that a log which was
shortened or replaced is noticed.

The *head* is the last entry, and the *pin* a file in another place that holds its number and hash.
Entries are found by keys: through an index within the entries themselves (`key_index`), whose root
is the last entry with keys, or in old logs, which have none, through a column of the database.
"""

from __future__ import annotations

import getpass
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from accountant.book.chain.author_keys import AuthorKey
from accountant.book.chain.checkpoint import format_head
from accountant.book.chain.entries import (
    FIRST_PREDECESSOR,
    FORMAT,
    FORMAT_WITHOUT_ROLES,
    ROLES,
    START,
    TERMS,
    TWO_CURATORS_KEY,
    ChainHead,
    LogEntry,
    LogTimes,
    charge_key,
    digest,
    limits_of,
    next_hash,
    parse_facts,
    refuse_newer_format,
    terms_key,
    times_after,
)
from accountant.book.chain.head_pin import HeadPin, Pins
from accountant.book.chain.key_index import Node, descend, new_nodes
from accountant.book.chain.roles import Roles
from accountant.book.chain.signatures import Signatures
from accountant.book.chain.signing_key import SigningKey
from accountant.book.databases.storage import Question, Storage, paged_rows
from accountant.errors import LedgerClockAhead, LedgerCorrupt, ParameterError

HASH_OF = "SELECT hash FROM entries WHERE seq = :seq"
# The head, the two entries before it, one of which mostly is the root of the index, and one more,
# because an entry is checked with the hash before it.
LAST_ENTRIES = "SELECT seq, body, hash FROM entries ORDER BY seq DESC LIMIT 4"
# Entries that are kept after they were read and checked.  More would save reads, and take memory.
ENTRIES_KEPT = 4096
# How an operator goes on from a book that was put back.
ACCEPT = "Book.open(..., accept_restored=REASON), or `ledger accept-restored`,"


class Log:
    """The entries of a book in a database, read and appended inside transactions.

    ``confirmed`` is the time up to which the caller of `Book.open` says that the clock is right.
    """

    def __init__(
        self,
        storage: Storage,
        pin: HeadPin | None,
        author: str | None,
        wait: float = 30.0,
        signing_key: SigningKey | AuthorKey | None = None,
    ) -> None:
        self.storage, self.signing_key = storage, signing_key
        self.signatures = Signatures(
            storage.name, signing_key, self.entry, self.body, self.asked_before
        )
        self._head: LogEntry | None = None
        self._read_head: LogEntry | None = None  # the head as the last transaction found it
        self.first_facts: dict[str, Any] = {"kind": "book"}  # of entry 1, once it was read
        self._cached_entries: dict[int, LogEntry] = {}
        self.wait = wait
        self.pins = Pins(pin)
        self.is_new = False  # whether this object made the book
        self._refuses_older_versions = False  # whether it has asked the database for that
        self.author = self._user = _user() if author is None else author
        self._names_author = author is not None
        self._lock, self._process = threading.RLock(), os.getpid()
        self._closed = False
        self.confirmed = ""
        self._times: LogTimes | None = None  # of the open transaction; None until it is asked for
        self.last_seen_head = START  # the last head this process knows of

    @property
    def name(self) -> str:
        """Return the name of the book in error messages."""
        return self.storage.name

    # --- transactions

    @contextmanager
    def writing(self, first_roles: Roles | None = None) -> Iterator[None]:
        """Open a transaction that may append; appended entries are on disk when it ends."""
        with self._lock:
            self._refuse_other_process()
            try:
                # The database answers this question together with the lock.
                hash_question: Question = (HASH_OF, {"seq": self.last_seen_head.seq})
                with self.storage.writing([(LAST_ENTRIES, {}), hash_question]):
                    self._times = None
                    if self.storage.empty:
                        self._create(first_roles)
                    else:
                        self._head = self._checked_head(self.pins.heads(own_too=True))
                        for facts in (self.first_facts, self._head.facts):
                            refuse_newer_format(self.name, facts)
                        self._write_as(self.signatures.author_after(self.head))
                    if self.head.index_root is None:
                        self._index_old_entries()
                    yield
            except BaseException:
                self.forget_entries()  # an entry in the cache may not be committed
                self._refuses_older_versions = False
                raise
            self.last_seen_head = self.head.chain_head
            self.pins.advance(self.last_seen_head)

    @contextmanager
    def reading(self, own_pin_too: bool = False, durable: bool = False) -> Iterator[None]:
        """Open a read-only transaction; the machine's own pin is compared where that is asked.

        With ``durable`` the head is on disk when it ends, and can be pinned or noted: another
        process commits before it flushes.
        """
        with self._lock:
            self._refuse_other_process()
            # The pin is read before the entries, which may be older than a later pin.
            pinned = self.pins.heads(own_pin_too)
            with self.storage.reading(durable):
                if self.storage.empty:
                    raise LedgerCorrupt(self.name, "has no entries")
                self._head, self._times = self._checked_head(pinned), None
                yield
            self.last_seen_head = self.head.chain_head

    def close(self) -> None:
        """Close the connection to the database."""
        with self._lock:
            self._closed = True
            self.pins.close()
            self.storage.close()

    def _refuse_other_process(self) -> None:
        if self._closed:
            raise ParameterError("book", self.name, "open: it was closed")
        if os.getpid() != self._process:
            allowed = "opened by this very process: a connection may not cross a fork"
            raise ParameterError("book", self.name, allowed)

    def _write_as(self, name: str | None) -> None:
        """Write under the name that the roles give the holder of the key; else as was stated."""
        if name is not None and self._names_author and name != self._user:
            allowed = f"left out, or {name!r}: so the roles name the holder of the key"
            raise ParameterError("author", self._user, allowed)
        self.author = self._user if name is None else name

    def _create(self, first_roles: Roles | None) -> None:
        if self.last_seen_head.seq or self.pins.heads(own_too=True):
            raise LedgerCorrupt(self.name, "is empty, though entries of it are known")
        self.storage.create()
        self._head, self.is_new = None, True
        schema = FORMAT_WITHOUT_ROLES if first_roles is None else FORMAT
        self.append("book", {"schema": schema, "id": os.urandom(16).hex()}, key="book")
        if first_roles is not None:
            self.append_roles(first_roles, {"reason": "the book was made"})

    def _index_old_entries(self) -> None:
        """Index every key of a log that was written without an index."""
        last_seqs: dict[str, int] = {}
        for entry in self.entries_after(START):
            nodes = entry.facts.get("index")
            keys = entry.own_keys if nodes is None else [key for key, _ in nodes]
            last_seqs.update(dict.fromkeys(keys, entry.seq))
        for key, seq in last_seqs.items():
            self.append("index", {"at": seq}, also=key)

    # --- the end of the log

    @property
    def times(self) -> LogTimes:
        """Return the times of the open transaction: what its entries state."""
        if self._times is None:
            self._times = times_after(self._head, clock_time(self.storage), self.confirmed)
        return self._times

    @times.setter
    def times(self, corrected: LogTimes) -> None:
        self._times = corrected

    def refuse_clock_ahead(self) -> None:
        """Raise `LedgerClockAhead` if windows do not follow the clock; inside a transaction."""
        if self.times.clock_is_ahead:
            raise LedgerClockAhead(self.name, self.times.window, self.times.clock)

    @property
    def head(self) -> LogEntry:
        """Return the last entry; call it inside a transaction."""
        if self._head is None:
            raise LedgerCorrupt(self.name, "has no entries")
        return self._head

    @property
    def roles(self) -> Roles | None:
        """Return the roles in force, None of a book without roles; inside a transaction."""
        return self.signatures.roles_at(self.head.roles_after)

    def signed_head(self) -> str:
        """Return the head in words, signed where there is a key; inside a transaction."""
        key = self.signing_key
        if isinstance(key, AuthorKey) and self.signatures.author_after(self.head) is None:
            key = None
        return format_head(self.head.chain_head, key, str(self.first_facts.get("id", "")))

    def _checked_head(self, pinned: list[ChainHead]) -> LogEntry:
        """Return the last entry, after a check that earlier known entries are still there."""
        last_rows = self.storage.ask(LAST_ENTRIES)
        head = self._checked(last_rows[:2], last_rows[0][0] if last_rows else 0)
        # The root of the index is needed next, and was read together with the head.
        root = head.index_root
        for row, before in pairwise(last_rows[1:]):
            if row[0] == root == before[0] + 1:
                self._cached_entries[row[0]] = self._checked([row, before], row[0])
        self.refuse_unless_there(self.last_seen_head, head)
        for link in pinned:
            self.refuse_unless_there(link, head, f"; {ACCEPT} goes on from a backup")
        if root is not None and not self.storage.has_length(head.seq):
            why = "has lost or gained entries: its length is noted as another"
            raise LedgerCorrupt(self.name, why, head.seq)
        self.signatures.refuse_lost_roles(head, self.first_facts)
        self.signatures.refuse_unsigned(head)
        self._read_head = head
        return head

    def refuse_unless_there(self, link: ChainHead, head: LogEntry, remedy: str = "") -> None:
        """Raise `LedgerCorrupt` unless the chain passes through ``link``."""
        if link.seq == 0:
            return
        if link.seq > head.seq:
            problem = f"ends at entry {head.seq}, but entry {link.seq} was written: rolled back"
            problem += remedy
            raise LedgerCorrupt(self.name, problem, link.seq)
        marks = [(head.hash,)]
        if link.seq < head.seq:
            marks = self.storage.ask(HASH_OF, seq=link.seq)
        if marks != [(link.hash,)]:
            problem = f"is another chain than the one that is known{remedy}"
            raise LedgerCorrupt(self.name, problem, link.seq)

    # --- adding entries

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
        its data set's charges.  Keys of noise are only in the database's column, not in the index.
        """
        seq, previous = START if self._head is None else self._head.chain_head
        entry_facts = {
            **facts,
            "kind": kind,
            "dataset": dataset,
            "key": key,
            "seq": seq + 1,
            **self.times.facts(),
            "author": self.author,
            **self.signatures.facts_of_next(kind, facts, self._head),
        }
        if kind in {"dataset", TERMS}:
            entry_facts["needs"] = limits_of(facts)
        if not self._refuses_older_versions:
            self.storage.refuse_older_versions()
            self._refuses_older_versions = True
        unchained_entry = LogEntry(seq + 1, "", entry_facts)
        keys = unchained_entry.own_keys + ([] if also is None else [also])
        if unchained_entry.states_charges and dataset is not None:
            last_charge = self.last_charge(dataset)
            entry_facts["before"] = 0 if last_charge is None else last_charge.seq
        root = 0 if self._head is None else self._head.index_root or 0
        if keys:
            entry_facts["index"] = new_nodes(keys, root, seq + 1, self.nodes_of)
        else:
            entry_facts["root"] = root
        body = self.signatures.signed_body(previous, entry_facts, self._head)
        entry = LogEntry(seq + 1, next_hash(previous, body), entry_facts)
        if "roles" in entry_facts:
            self.signatures.note_right(entry.hash)
        self.storage.ask(
            "INSERT INTO entries VALUES (:seq, :dataset, :kind, :key, :body, :hash)",
            seq=entry.seq,
            dataset=dataset,
            kind=kind,
            key=key,
            body=body,
            hash=entry.hash,
        )
        self.storage.note_length(entry.seq)
        self._head = entry
        return entry

    def append_roles(self, roles: Roles, facts: dict[str, Any]) -> LogEntry:
        """Append an entry of roles; the first one is written by a curator whom it names."""
        if self._head is None or not self._head.roles_after:
            self._write_as(roles.refuse_unless_curator(self.signing_key))
        return self.append(ROLES, {**roles.facts(), **facts})

    def attach(self, entry: LogEntry, raw: bytes) -> None:
        """Store the bytes whose digest an entry names."""
        self.storage.ask("INSERT INTO blobs VALUES (:seq, :body)", seq=entry.seq, body=raw)

    # --- single entries

    def entry(self, seq: int) -> LogEntry:
        """Return the entry with this number, after checking its hash."""
        if self._head is not None and seq == self._head.seq:
            return self._head
        if seq not in self._cached_entries:
            rows = self.storage.ask(
                "SELECT seq, body, hash FROM entries WHERE seq IN (:seq, :before) "
                "ORDER BY seq DESC",
                seq=seq,
                before=seq - 1,
            )
            if len(self._cached_entries) >= ENTRIES_KEPT:
                self._cached_entries.clear()
            self._cached_entries[seq] = self._checked(rows, seq)
        return self._cached_entries[seq]

    def body(self, seq: int) -> str:
        """Return the text of the entry with this number, unchecked."""
        rows = self.storage.ask("SELECT body FROM entries WHERE seq = :seq", seq=seq)
        if not rows or not isinstance(rows[0][0], str):
            raise LedgerCorrupt(self.name, "an entry is missing", seq)
        return rows[0][0]

    def entry_with_key(self, key: str, upto: int | None = None) -> LogEntry | None:
        """Return the last entry under this key, up to the number ``upto``; None if none is."""
        end = self.head if upto is None else self.entry(upto)
        root = end.index_root
        if root is None:
            return self.entry_in_column(key)
        try:
            seq, _ = descend(key, root, self.nodes_of)
        except (ValueError, TypeError):
            raise LedgerCorrupt(self.name, "the index of keys leads nowhere", root) from None
        # A damaged entry cannot lead to a later one.
        entry = self.entry(min(seq, end.seq)) if seq else None
        # An entry of kind "index" stands for an old one, whose number is ``at``.  Each number is
        # smaller than the one before, so that a damaged entry cannot lead in a circle.
        while entry is not None and entry.kind == "index":
            entry = self.entry(min(entry.facts["at"], entry.seq - 1))
        return entry

    def entry_in_column(self, key: str) -> LogEntry | None:
        """Return the entry that the database finds for a key of noise, or where there is no index.

        For noise it is trusted: to miss a repetition the generator must fail as well.
        """
        rows = self.storage.ask("SELECT seq FROM entries WHERE key = :key", key=key)
        if not rows:
            return None
        entry = self.entry(rows[0][0])
        if entry.facts.get("key") != key:
            raise LedgerCorrupt(self.name, "the index of keys is damaged", entry.seq)
        return entry

    def nodes_of(self, seq: int) -> list[Node]:
        """Return the nodes that an entry has in the index of keys."""
        nodes: list[Node] = self.entry(seq).facts.get("index", [])
        return nodes

    def last_charge(self, dataset: str) -> LogEntry | None:
        """Return the last entry that charged a data set; None if there is none."""
        if self.head.index_root is None:
            rows = self.storage.ask(
                "SELECT seq FROM entries WHERE dataset = :d AND kind IN ('plan', 'reserve') "
                "ORDER BY seq DESC LIMIT 1",
                d=dataset,
            )
            entry = self.entry(rows[0][0]) if rows else None
        else:
            entry = self.entry_with_key(charge_key(dataset))
        if entry is None:
            return None
        if entry.facts["dataset"] != dataset or not entry.states_charges:
            raise LedgerCorrupt(self.name, "a column does not say what its entry says", entry.seq)
        return entry

    def last_terms(self, dataset: str, upto: int | None = None) -> LogEntry | None:
        """Return the entry that states the terms in force; None while they are as opened.

        With ``upto`` they are those in force after the entry of this number.
        """
        entry = self.entry_with_key(terms_key(dataset), upto)
        if entry is not None and (entry.facts["dataset"], entry.kind) != (dataset, TERMS):
            raise LedgerCorrupt(self.name, "a column does not say what its entry says", entry.seq)
        return entry

    def asked_before(self, seq: int) -> bool:
        """Return whether a data set asks for two curators before the entry of a number."""
        return seq > 1 and self.entry_with_key(TWO_CURATORS_KEY, seq - 1) is not None

    def attachment(self, entry: LogEntry, expected: str) -> bytes:
        """Return the attached bytes, after checking their digest."""
        rows = self.storage.ask("SELECT body FROM blobs WHERE seq = :seq", seq=entry.seq)
        if not rows or digest(rows[0][0]) != expected:
            raise LedgerCorrupt(self.name, "its bytes are missing or others", entry.seq)
        return bytes(rows[0][0])

    def forget_entries(self) -> None:
        """Forget the entries that were kept, so that they are read anew."""
        self._cached_entries.clear()
        self.signatures.forget()

    # --- many entries

    def entries_after(self, after: ChainHead, authors_too: bool = False) -> Iterator[LogEntry]:
        """Yield all entries after a known one, each with its hash and columns checked.

        Signatures of authors take a hundred times as long as hashes.  Each covers the entries
        before it, so those that were read earlier are checked only where the caller asks for it.
        """
        seq, previous = after
        name, refuse_other = self.name, self.signatures.refuse_other
        query = "SELECT seq, dataset, kind, key, body, hash FROM entries WHERE seq > :after "
        for rows in paged_rows(self.storage, f"{query} ORDER BY seq", seq):
            for number, dataset, kind, key, body, mark in rows:  # ``mark`` is the stored hash
                seq += 1
                if number != seq:
                    raise LedgerCorrupt(name, "an entry is missing", seq)
                if next_hash(previous, body) != mark:
                    raise LedgerCorrupt(name, "an entry does not fit its hash", seq)
                facts = parse_facts(name, seq, body)
                if authors_too or "roles" not in facts:
                    refuse_other(previous, body, facts, mark)
                if (dataset, kind, key) != (facts["dataset"], facts["kind"], facts["key"]):
                    why = "a column does not say what its entry says"
                    raise LedgerCorrupt(name, why, seq)
                previous = mark
                yield LogEntry(seq, mark, facts)

    # --- checks of what was read

    def _checked(self, rows: list[tuple[Any, ...]], seq: int) -> LogEntry:
        """Return the first of two rows (number, text, hash) as a checked entry.

        The second row is that of the entry before it, which entry 1 does not have.
        """
        predecessor_row = [(seq, "", FIRST_PREDECESSOR)] if seq == 1 else []
        rows = [*rows, *predecessor_row] if len(rows) == 1 else rows
        here = isinstance(seq, int) and [row[0] for row in rows] == [seq, seq - 1]
        if not here and not (seq == 1 and rows):
            raise LedgerCorrupt(self.name, "an entry is missing", seq)
        _, body, mark = rows[0]
        if next_hash(rows[1][2], body) != mark:
            raise LedgerCorrupt(self.name, "an entry does not fit its hash", seq)
        for known in (self._head, self._read_head):
            if known is not None and known.chain_head == (seq, mark):  # its text is the same
                return known
        facts = parse_facts(self.name, seq, body)
        self.signatures.refuse_other(rows[1][2], body, facts, mark)
        return LogEntry(seq, mark, facts)


def clock_time(storage: Storage) -> str:
    """Return what the clock says, as entries state times."""
    return storage.now().isoformat(timespec="microseconds")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
