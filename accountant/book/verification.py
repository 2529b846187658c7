"""Verification of a whole book: hashes, accounts, answers, and all indexes that lead to entries.

A book is an append-only log of privacy charges in a database.  `verify_log` reads it once from the
first entry on, with five checks side by side: `LogCheck` for what the entries state of budgets,
`EvidenceCheck` for what they state of claims, `RolesCheck` for who wrote them, `IndexCheck` for the
index of keys within the log, and `RowCheck` for the indexes of the database.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from accountant.book.chain.approvals import missing_approval
from accountant.book.chain.author_keys import AuthorKey, refuse_without_ed25519
from accountant.book.chain.checkpoint import parse_head
from accountant.book.chain.entries import (
    FORMAT,
    PROPOSAL,
    RESTORED,
    ROLES,
    START,
    TERMS,
    LogEntry,
    digest,
    refuse_newer_format,
)
from accountant.book.chain.key_index import KeyTrie
from accountant.book.chain.signing_key import SigningKey
from accountant.book.checks.account_check import AccountsCheck
from accountant.book.checks.evidence_check import EvidenceCheck
from accountant.book.checks.time_check import TimeCheck
from accountant.book.databases.storage import paged_rows
from accountant.book.limits.second_curator import proposed_words
from accountant.book.log import Log
from accountant.errors import LedgerCorrupt, ParameterError
from accountant.serialisation.plan_json import PlanFileError

BYTES_PER_READ = 1 << 24  # bytes of answers that are read at a time


class Verified(NamedTuple):
    """The result for an intact book: the number of entries, and the head to keep.

    ``restored`` says in words each time that the book was put back from a backup, which loses the
    spends since: which entry accepts it, by whom, when, and why.
    """

    entries: int
    head: str
    restored: tuple[str, ...] = ()


def verify_log(log: Log, head: str | None) -> Verified:
    """Return the verified head of the log, or raise `LedgerCorrupt`; see `Book.verify`.

    ``head`` is a head that was kept earlier, which the log must still have.
    """
    kept_head = None if head is None else parse_head(head, log.signing_key)
    with log.reading(own_pin_too=True, durable=True):
        if kept_head is not None:
            kept_head.refuse_other_book(log.name, str(log.first_facts.get("id", "")))
            log.refuse_unless_there(kept_head.head, log.head)
            # A checkpoint must be signed by a person whom the roles named at that entry.
            roles_after = log.entry(kept_head.head.seq).roles_after if kept_head.origin else 0
            kept_head.refuse_unless_signed(log.signatures.roles_at(roles_after))
        for facts in (log.entry(1).facts, log.head.facts):
            refuse_newer_format(log.name, facts)
        log.storage.check_integrity()
        log.forget_entries()
        check, index, rows, roles = LogCheck(log), IndexCheck(log), RowCheck(log), RolesCheck(log)
        evidence, restored = EvidenceCheck(log), []
        try:
            for entry in log.entries_after(START, authors_too=True):
                check.check_entry(entry)
                evidence.check_entry(entry)
                roles.check_entry(entry)
                index.check_entry(entry)
                rows.note_entry(entry)
                if entry.kind == RESTORED:
                    restored.append(
                        "entry {seq}, by {author} at {time:.19}: {reason}".format(**entry.facts)
                    )
            check.check_attachments()
            index.check_end()
            roles.check_end()
            rows.check_rows()
            check.accounts.refuse_violations()
        except LedgerCorrupt as fault:
            check.accounts.refuse_first(fault)
            raise
        except PlanFileError as error:
            if error.path[-1:] != ("kind",):
                problem = "an entry holds no plan, mechanism or loss"
                raise LedgerCorrupt(log.name, problem, check.seq) from None
            allowed = f"declared here: import what declares it, for entry {check.seq} names it"
            raise ParameterError("kind", error.value, allowed) from None
        except (KeyError, TypeError, ValueError, ArithmeticError) as error:
            problem = f"an entry does not say what it must: {type(error).__name__}"
            raise LedgerCorrupt(log.name, problem, check.seq) from None
        verified = Verified(log.head.seq, log.signed_head(), tuple(restored))
    log.pins.advance(log.last_seen_head)
    return verified


class LogCheck:
    """Checks accounts, stored bytes, and that each reserved release has at most one answer."""

    def __init__(self, log: Log) -> None:
        self._log, self.seq = log, 0  # the number of the entry that is checked
        self.accounts = AccountsCheck(log, TimeCheck(log))
        self._attached: dict[int, str] = {}  # the digests of attached bytes, by entry
        self._reserved: set[int] = set()

    def check_entry(self, entry: LogEntry) -> None:
        """Check one entry whose hash is right."""
        self.seq, facts, kind = entry.seq, entry.facts, entry.kind
        self.accounts.check_entry(entry)
        if kind in {"reserve", "step"}:
            self._reserved.add(entry.seq)
            if facts["block"] is not None:
                self._attached[entry.seq] = facts["block"]
        elif kind in {"release", "failed"}:
            if facts["of"] not in self._reserved:
                self._refuse("answers what was not reserved, or was answered before")
            self._reserved.discard(facts["of"])
            if kind == "release":
                self._attached[entry.seq] = facts["answer"]

    def check_attachments(self) -> None:
        """Check the bytes whose digests entries state, and the index of the last charges."""
        for first_seq, last_seq in self._ranges():
            query = "SELECT seq, body FROM blobs WHERE seq BETWEEN :first AND :last ORDER BY seq"
            for seq, raw in self._log.storage.ask(query, first=first_seq, last=last_seq):
                self.seq = seq
                if self._attached.pop(seq, None) != digest(raw):
                    self._refuse("its bytes are others than were stored")
        if self._attached:
            self.seq = min(self._attached)
            self._refuse("its bytes are missing")
        self.accounts.check_last_charges()

    def _refuse(self, why: str) -> None:
        raise LedgerCorrupt(self._log.name, why, self.seq)

    def _ranges(self) -> Iterator[tuple[int, int]]:
        """Yield ranges of entries, the attached bytes of each of which fit into memory."""
        sizes = self._log.storage.ask("SELECT seq, length(body) FROM blobs ORDER BY seq")
        first_seq, byte_count = None, 0
        for seq, size in sizes:
            first_seq, byte_count = seq if first_seq is None else first_seq, byte_count + size
            if byte_count > BYTES_PER_READ:
                yield first_seq, seq
                first_seq, byte_count = None, 0
        if first_seq is not None:
            yield first_seq, sizes[-1][0]


class RolesCheck:
    """Reads the entries of a log in order and checks what needs roles, or states them.

    Their hashes are right, and their signatures: each was checked as its entry was read.  An entry
    must name the roles in force.  A book that was made with roles states them in entry 2, and later
    roles have a reason.  What gives more budget or a later end, and new roles, had a second curator
    where the roles ask for two.
    """

    def __init__(self, log: Log) -> None:
        if log.head.roles_after:
            refuse_without_ed25519()
        self._log = log
        self._roles = 0  # the number of the entry that states the roles in force
        self._starts_with_roles = False  # whether entry 1 says that entry 2 states roles
        self._terms: dict[str, LogEntry] = {}  # the last entry of each data set that states them

    def check_entry(self, entry: LogEntry) -> None:
        """Check the next entry, or raise `LedgerCorrupt`."""
        facts, log, kind = entry.facts, self._log, entry.kind
        log.signatures.refuse_other_roles(self._roles, facts)
        if entry.seq == 1:
            self._starts_with_roles = facts.get("schema") == FORMAT
        elif entry.seq == 2 and self._starts_with_roles and kind != ROLES:
            self._refuse("states no roles, though the book was made with them", entry)
        if kind in {"dataset", TERMS}:
            before = self._terms.get(facts["dataset"], entry)
            roles = log.signatures.roles_at(self._roles)
            if why := missing_approval(entry, before, roles, log.entry):
                self._refuse(why, entry)
            self._terms[facts["dataset"]] = entry
        elif kind == PROPOSAL:
            proposed_words(log, entry)
        elif kind == ROLES:
            if not facts["reason"]:
                self._refuse("changes the roles without a reason", entry)
            # It refuses roles that are none, and those of one curator where two are needed.
            log.signatures.roles_at(entry.seq)
            self._roles = entry.seq

    def check_end(self) -> None:
        """Check that a log that is read with the key of a person has roles."""
        if isinstance(self._log.signing_key, AuthorKey) and not self._roles:
            raise LedgerCorrupt(self._log.name, "has no roles, and no entry is signed by a person")

    def _refuse(self, why: str, entry: LogEntry) -> None:
        raise LedgerCorrupt(self._log.name, why, entry.seq)


class IndexCheck:
    """Computes the index of keys anew, and checks that no entry after a signed one is unsigned.

    The index leads from a key to the last entry under it.  Each entry stores the nodes that it adds
    (`key_index`); old logs have entries without an index, whose keys are added later.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._root: int | None = None  # None while entries have no index
        self._trie = KeyTrie()
        self._old: dict[str, int] = {}  # keys of entries without an index
        self._signed = False

    def check_entry(self, entry: LogEntry) -> None:
        """Check one entry whose hash is right."""
        seq, _, facts = entry
        if self._signed and "mac" not in facts:
            raise LedgerCorrupt(self._log.name, "is not signed, as entries before it are", seq)
        self._signed = "mac" in facts
        keys, nodes = entry.own_keys, facts.get("index", [])
        if entry.index_root is None:
            self._old |= {**self._trie.last_seqs(), **dict.fromkeys(keys, seq)}
            self._root, self._trie = None, KeyTrie()
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
        if nodes != [[key, self._trie.put(key, seq)] for key in named]:
            raise LedgerCorrupt(self._log.name, "its place in the index is wrong", seq)
        self._root = seq

    def check_end(self) -> None:
        """Check that all old keys are in the index, and that the last entry is signed, with a key.

        The signature of an entry covers all entries before it.
        """
        if self._root is not None and self._old:
            raise LedgerCorrupt(self._log.name, "has old keys that the index does not lead to")
        if isinstance(self._log.signing_key, SigningKey) and not self._signed:
            raise LedgerCorrupt(self._log.name, "no entry of it is signed with this key")


class RowCheck:
    """Compares the entries to which the indexes of the database lead with those of the log.

    The database has an index by data set, one by key, and a list of the data sets.  Of the index by
    key only the sum of a hash over all rows is compared.
    """

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
        """Yield the rows of a query in pages; refuse more of them than there are entries."""
        row_count = 0
        for rows in paged_rows(self._log.storage, query, after, **values):
            row_count += len(rows)
            if row_count > self._log.head.seq:
                self._refuse("an index leads in a circle")
            yield rows

    def _refuse(self, why: str) -> None:
        raise LedgerCorrupt(self._log.name, why)


def _row_hash(row: Sequence[Any]) -> int:
    """Return a hash of a key and the number of its entry, to be summed in any order."""
    # The hash of a tuple is nearly a sum of hashes: two rows with exchanged keys often have the
    # same sum as before.  So the hash of a text is taken.
    key, seq = row
    return hash(f"{seq} {key}")
