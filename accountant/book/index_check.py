"""Verification of what leads to entries: the index of keys in the log, and the database's own."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Any

from accountant.book.chain.entries import LogEntry
from accountant.book.chain.key_index import Node, new_nodes
from accountant.book.log import ROWS_PER_PAGE, Log
from accountant.errors import LedgerCorrupt


class IndexCheck:
    """Reads along the log and computes the index of keys anew; also sees that signatures stay."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._root: int | None = None  # None while entries have no index
        self._last_seqs: dict[str, int] = {}  # the last entry under each key
        self._nodes: dict[int, list[Node]] = {}
        self._old: dict[str, int] = {}  # keys of entries without an index
        self._signed = False

    def check_entry(self, entry: LogEntry) -> None:
        """Check one entry whose hash is right."""
        seq, _, facts = entry
        if self._signed and "mac" not in facts:
            raise LedgerCorrupt(self._log.name, "is not signed, as entries before it are", seq)
        self._signed = "mac" in facts
        keys, nodes = entry.own_keys, facts.get("index", [])
        if len(nodes) == 1 and nodes == self._nodes.get(self._root or 0) and keys == [nodes[0][0]]:
            self._move(seq, nodes)  # the same key as before has the same path
            return
        if entry.index_root is None:
            self._old.update(self._last_seqs)
            self._old.update(dict.fromkeys(keys, seq))
            self._root = None
            self._last_seqs.clear()
            self._nodes.clear()
            return
        self._root = self._root or 0
        named = [key for key, _ in nodes]
        if entry.kind == "index":
            if [self._old.pop(key, None) for key in named] != [facts["at"]]:
                raise LedgerCorrupt(self._log.name, "brings an old key under a wrong entry", seq)
        elif self._old:
            raise LedgerCorrupt(self._log.name, "comes before the old keys have an index", seq)
        if keys != named and not set(keys) <= set(named):
            raise LedgerCorrupt(self._log.name, "is not under its keys", seq)
        if not nodes:
            if facts["root"] != self._root:
                raise LedgerCorrupt(self._log.name, "its place in the index is wrong", seq)
            return
        if nodes != new_nodes(named, self._root, seq, self._nodes_of):
            raise LedgerCorrupt(self._log.name, "its place in the index is wrong", seq)
        self._add(seq, nodes)

    def check_end(self) -> None:
        """Check that all old keys have an index; and with a key, that there is a signature.

        A signature covers all that is before it.
        """
        if self._root is not None and self._old:
            raise LedgerCorrupt(self._log.name, "has old keys that the index does not lead to")
        if self._log.signing_key is not None and not self._signed:
            raise LedgerCorrupt(self._log.name, "no entry of it is signed with this key")

    def _move(self, seq: int, nodes: list[Node]) -> None:
        del self._nodes[self._root or 0]
        self._nodes[seq], self._last_seqs[nodes[0][0]], self._root = nodes, seq, seq

    def _add(self, seq: int, nodes: list[Node]) -> None:
        for key, _ in nodes:
            before = self._last_seqs.get(key)
            if before is not None:  # no path leads to the earlier node any more
                remaining_nodes = [node for node in self._nodes[before] if node[0] != key]
                self._nodes[before] = remaining_nodes
                if not remaining_nodes:
                    del self._nodes[before]
            self._last_seqs[key] = seq
        self._nodes[seq] = nodes
        self._root = seq

    def _nodes_of(self, seq: int) -> list[Node]:
        return self._nodes.get(seq, [])


class RowCheck:
    """Compares the entries that the indexes of the database lead to with the chain."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._entries: dict[str, array[int]] = {}
        self._names: list[str] = []
        self._keys = 0

    def note_entry(self, entry: LogEntry) -> None:
        """Take note of one entry of the chain."""
        seq, _, facts = entry
        name, key = facts["dataset"], facts["key"]
        if name is not None:
            if name not in self._entries:
                self._entries[name] = array("q")
            self._entries[name].append(seq)
        if facts["kind"] == "dataset":
            self._names.append(name)
        if key is not None:
            self._keys += _row_hash((key, seq))

    def check_rows(self) -> None:
        """Raise `LedgerCorrupt` if an index leads to other entries than those of the chain."""
        for name, numbers in self._entries.items():
            query = "SELECT seq FROM entries WHERE dataset = :d AND seq > :after ORDER BY seq"
            indexed_numbers = array("q")
            for rows in self._pages(query, 0, d=name):
                indexed_numbers.extend([row[0] for row in rows])
            if indexed_numbers != numbers:
                self._refuse("the index of data sets does not lead to their entries")
        query = "SELECT key, seq FROM entries WHERE key > :after ORDER BY key"
        if sum(sum(map(_row_hash, rows)) for rows in self._pages(query, "")) != self._keys:
            self._refuse("the index of keys does not lead to their entries")
        names = self._log.storage.ask("SELECT dataset FROM datasets ORDER BY seq")
        if [row[0] for row in names] != self._names:
            self._refuse("the list of data sets is another")

    def _pages(self, query: str, after: Any, **values: Any) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the rows of a query, page by page: the first column says where a page begins."""
        row_count = 0
        while True:
            limited = f"{query} LIMIT {ROWS_PER_PAGE}"
            rows = self._log.storage.ask(limited, after=after, **values)
            row_count += len(rows)
            if row_count > self._log.head.seq:
                self._refuse("an index leads in a circle")
            yield rows
            if len(rows) < ROWS_PER_PAGE:
                return
            after = rows[-1][0]

    def _refuse(self, why: str) -> None:
        raise LedgerCorrupt(self._log.name, why)


def _row_hash(row: Sequence[Any]) -> int:
    """Return a number for a key and its entry, to be summed in any order."""
    # hashes of tuples are nearly sums: those of exchanged keys often have an equal sum
    key, seq = row
    return hash(f"{seq} {key}")
