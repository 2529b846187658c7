"""Reading a log: entries one by one or along the chain, each checked against its hash."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from typing import Any

import msgspec

from accountant.book.chain.hash_chain import (
    FIRST_PREDECESSOR,
    ChainHead,
    LogEntry,
    canonical_json,
    digest,
    next_hash,
)
from accountant.book.chain.key_index import Node, descend
from accountant.book.chain.signing_key import SigningKey, without_signature
from accountant.book.databases.storage import Storage
from accountant.errors import LedgerCorrupt

UNDECODED = (msgspec.MsgspecError, ValueError, TypeError, RecursionError)
ROWS_PER_PAGE = 1000  # rows that are read at a time
HASH_OF = "SELECT hash FROM entries WHERE seq = :seq"
ENTRIES_KEPT = 4096  # entries that are kept after they were read and checked
CHARGING_KINDS = ("plan", "reserve")  # the kinds of entries that spend
TERMS = "terms"  # the kind of entries that change the terms of a data set


class LogReader:
    """Queries on a log, to be called inside a transaction."""

    def __init__(self, storage: Storage, signing_key: SigningKey | None = None) -> None:
        self.storage, self.signing_key = storage, signing_key
        self._head: LogEntry | None = None
        self._cached_entries: dict[int, LogEntry] = {}

    @property
    def name(self) -> str:
        """Return the name of the book in error messages."""
        return self.storage.name

    @property
    def head(self) -> LogEntry:
        """Return the last entry; call it inside a transaction."""
        if self._head is None:
            raise LedgerCorrupt(self.name, "has no entries")
        return self._head

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

    def entry_with_key(self, key: str) -> LogEntry | None:
        """Return the last entry under this key; None if there is none."""
        root = self.head.index_root
        if root is None:
            return self.entry_in_column(key)
        try:
            seq, _ = descend(key, root, self.nodes_of)
        except (ValueError, TypeError):
            raise LedgerCorrupt(self.name, "the index of keys leads nowhere", root) from None
        entry = self.entry(seq) if seq else None
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

    def last_charge(self, dataset: str) -> LogEntry | None:
        """Return the last entry that charged a data set; None if there is none."""
        if self.head.index_root is None:
            entry = self._last_charge_in_columns(dataset)
        else:
            entry = self.entry_with_key(charge_key(dataset))
        if entry is None:
            return None
        if entry.facts["dataset"] != dataset or entry.kind not in CHARGING_KINDS:
            raise LedgerCorrupt(self.name, "a column does not say what its entry says", entry.seq)
        return entry

    def last_terms(self, dataset: str) -> LogEntry | None:
        """Return the entry that states the terms in force; None while they are as opened."""
        entry = self.entry_with_key(terms_key(dataset))
        if entry is not None and (entry.facts["dataset"], entry.kind) != (dataset, TERMS):
            raise LedgerCorrupt(self.name, "a column does not say what its entry says", entry.seq)
        return entry

    def forget_entries(self) -> None:
        """Forget the entries that were kept, so that they are read anew."""
        self._cached_entries.clear()

    def nodes_of(self, seq: int) -> list[Node]:
        """Return the nodes that an entry has in the index of keys."""
        return self.entry(seq).facts.get("index", [])  # type: ignore[no-any-return]

    def _last_charge_in_columns(self, dataset: str) -> LogEntry | None:
        rows = self.storage.ask(
            "SELECT seq FROM entries WHERE dataset = :d AND kind IN ('plan', 'reserve') "
            "ORDER BY seq DESC LIMIT 1",
            d=dataset,
        )
        return self.entry(rows[0][0]) if rows else None

    def bodies(
        self, dataset: str, kinds: tuple[str, ...], after: int, upto: int
    ) -> Iterator[tuple[int, str]]:
        """Yield numbers and bodies of the next entries of some kinds, at most `ROWS_PER_PAGE`.

        Each body is checked against the hash of the entry before it.
        """
        quoted_kinds = ", ".join(f"'{kind}'" for kind in kinds)
        rows = self.storage.ask(
            "SELECT seq, hash, body FROM entries WHERE dataset = :d AND "
            f"kind IN ({quoted_kinds}) AND seq > :after AND seq <= :upto "
            f"ORDER BY seq LIMIT {ROWS_PER_PAGE}",
            d=dataset,
            after=after,
            upto=upto,
        )
        # the row before is mostly the entry before; for other rows its hash is queried
        gaps = [row[0] for before, row in pairwise([(0,), *rows]) if row[0] != before[0] + 1]
        hashes = self._hashes_before(dataset, quoted_kinds, after, gaps[-1]) if gaps else {}
        last_seq, previous = 0, FIRST_PREDECESSOR
        for seq, mark, body in rows:
            if seq != last_seq + 1:
                previous = hashes.get(seq, "")
            if next_hash(previous, body) != mark:
                raise LedgerCorrupt(self.name, "an entry does not fit its hash", seq)
            last_seq, previous = seq, mark
            yield seq, body

    def _hashes_before(
        self, dataset: str, quoted_kinds: str, after: int, upto: int
    ) -> dict[int, str]:
        """Return by the number of each entry of some kinds the hash of the entry before it."""
        rows = self.storage.ask(
            "SELECT one.seq, before.hash FROM entries one JOIN entries before "
            "ON before.seq = one.seq - 1 WHERE one.dataset = :d AND "
            f"one.kind IN ({quoted_kinds}) AND one.seq > :after AND one.seq <= :upto",
            d=dataset,
            after=after,
            upto=upto,
        )
        return dict(rows)

    def entries_after(self, after: ChainHead) -> Iterator[LogEntry]:
        """Yield all entries after a known one, each with its hash and columns checked."""
        seq, previous = after
        for rows in self._pages(seq):
            for dataset, kind, key, number, body, mark in rows:
                seq += 1
                if number != seq:
                    raise LedgerCorrupt(self.name, "an entry is missing", seq)
                if next_hash(previous, body) != mark:
                    raise LedgerCorrupt(self.name, "an entry does not fit its hash", seq)
                facts = self.parse_entry(seq, body)
                if self.signing_key is not None:
                    self._refuse_other_signature(previous, body, facts)
                if (dataset, kind, key) != (facts["dataset"], facts["kind"], facts["key"]):
                    why = "a column does not say what its entry says"
                    raise LedgerCorrupt(self.name, why, seq)
                previous = mark
                yield LogEntry(seq, mark, facts)

    def _pages(self, after: int) -> Iterator[list[tuple[Any, ...]]]:
        """Yield pages of rows in order; no cursor stays open between pages."""
        while True:
            rows = self.storage.ask(
                "SELECT dataset, kind, key, seq, body, hash FROM entries WHERE seq > :after "
                f"ORDER BY seq LIMIT {ROWS_PER_PAGE}",
                after=after,
            )
            yield rows
            if len(rows) < ROWS_PER_PAGE:
                return
            after = rows[-1][3]

    def parse_entry(self, seq: int, body: str) -> dict[str, Any]:
        """Return the facts of an entry."""
        facts: Any = None
        try:
            facts = msgspec.json.decode(body)
        except UNDECODED:
            # what the standard library wrote it reads again: NaN, or half a surrogate pair
            with suppress(ValueError, TypeError, RecursionError):
                facts = json.loads(body)
            if facts is None:
                raise LedgerCorrupt(self.name, "an entry is not JSON", seq) from None
        if not _is_entry(facts, seq):
            raise LedgerCorrupt(self.name, "an entry is no entry", seq)
        return facts  # type: ignore[no-any-return]  # it was seen to be one

    def attachment(self, entry: LogEntry, expected: str) -> bytes:
        """Return the attached bytes, after checking their digest."""
        rows = self.storage.ask("SELECT body FROM blobs WHERE seq = :seq", seq=entry.seq)
        if not rows or digest(rows[0][0]) != expected:
            raise LedgerCorrupt(self.name, "its bytes are missing or others", entry.seq)
        return bytes(rows[0][0])

    def refuse_unless_there(self, link: ChainHead, head: LogEntry) -> None:
        """Raise `LedgerCorrupt` unless the chain passes through ``link``."""
        if link.seq == 0:
            return
        if link.seq > head.seq:
            problem = f"ends at entry {head.seq}, but entry {link.seq} was written: rolled back"
            raise LedgerCorrupt(self.name, problem, link.seq)
        marks = [(head.hash,)]
        if link.seq < head.seq:
            marks = self.storage.ask(HASH_OF, seq=link.seq)
        if marks != [(link.hash,)]:
            raise LedgerCorrupt(self.name, "is another chain than the one that is known", link.seq)

    def _checked(self, rows: list[tuple[Any, ...]], seq: int) -> LogEntry:
        """Return the first row as a checked entry; the second is the row before it."""
        predecessor_row = [(seq, "", FIRST_PREDECESSOR)] if seq == 1 else []
        rows = [*rows, *predecessor_row] if len(rows) == 1 else rows
        here = isinstance(seq, int) and [row[0] for row in rows] == [seq, seq - 1]
        if not here and not (seq == 1 and rows):
            raise LedgerCorrupt(self.name, "an entry is missing", seq)
        _, body, mark = rows[0]
        if next_hash(rows[1][2], body) != mark:
            raise LedgerCorrupt(self.name, "an entry does not fit its hash", seq)
        facts = self.parse_entry(seq, body)
        self._refuse_other_signature(rows[1][2], body, facts)
        return LogEntry(seq, mark, facts)

    def _refuse_other_signature(self, previous: str, body: str, facts: dict[str, Any]) -> None:
        """Raise `LedgerCorrupt` if there is a key, and a signature that is not made with it."""
        if self.signing_key is None or "mac" not in facts:
            return
        unsigned_body = without_signature(body, facts["mac"])
        if facts["mac"] != self.signing_key.sign_entry(previous, unsigned_body):
            why = "an entry is signed with another key, or was written anew without the key"
            raise LedgerCorrupt(self.name, why, facts["seq"])


def _is_entry(facts: Any, seq: int) -> bool:
    # one after another: a comparison of sets of keys takes five times as long
    return (
        isinstance(facts, dict)
        and facts.get("seq") == seq
        and "dataset" in facts
        and "kind" in facts
        and "key" in facts
    )


def charge_key(dataset: str) -> str:
    """Return the key of the charges of a data set."""
    return f"charge:{dataset}"


def terms_key(dataset: str) -> str:
    """Return the key of the terms of a data set."""
    return f"terms:{dataset}"


def author_key(dataset: str, author: str) -> str:
    """Return the key of the charges of one author."""
    return canonical_json({"author": author, "charges": dataset})


def bucket_key(dataset: str, bucket: str) -> str:
    """Return the key of the charges of one bucket of people."""
    return canonical_json({"bucket": bucket, "charges": dataset})


def set_aside_key(dataset: str) -> str:
    """Return the key of the runs of the plan that was set aside for a data set."""
    return canonical_json({"charges": dataset, "plan": "set aside"})


def own_keys(entry: LogEntry) -> list[str]:
    """Return the keys that an entry must be found by, whether or not it has an index yet."""
    facts = entry.facts
    key = facts["key"]
    keys = [] if key is None or key.startswith("noise:") else [key]
    name, kind = facts["dataset"], facts["kind"]
    if kind in CHARGING_KINDS:
        author_keys = [author_key(name, facts["author"])] if "own" in facts else []
        buckets = [bucket_key(name, bucket) for bucket in facts.get("buckets", ())]
        aside = [set_aside_key(name)] if "runs" in facts or "paid" in facts else []
        return [charge_key(name), *author_keys, *buckets, *aside, *keys]
    if kind == TERMS:
        return [
            terms_key(name),
            *(author_key(name, author) for author in facts.get("used", ())),
            *keys,
        ]
    return keys
