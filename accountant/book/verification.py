"""Verification of a whole book: hashes, totals of all users, answers, and the head."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from accountant.book.account import Account
from accountant.book.chain.entries import (
    CHARGING_KINDS,
    FIRST_PREDECESSOR,
    TERMS,
    ChainHead,
    LogEntry,
    digest,
)
from accountant.book.chain.signing_key import parse_head
from accountant.book.charge_check import ChargeCheck
from accountant.book.index_check import IndexCheck, RowCheck
from accountant.book.log import Log
from accountant.book.terms_check import TermsCheck
from accountant.errors import LedgerCorrupt, ParameterError
from accountant.serialisation.plan_json import PlanFileError

BYTES_PER_READ = 1 << 24  # bytes of answers that are read at a time


class Verified(NamedTuple):
    """The result for an intact book: the number of entries, and the head to keep."""

    entries: int
    head: str


def verify_log(log: Log, head: str | None) -> Verified:
    """Return the verified head of the log, or raise `LedgerCorrupt`; as `Book.verify`."""
    known_head = None if head is None else parse_head(head, log.signing_key)
    with log.reading():
        if known_head is not None:
            log.refuse_unless_there(known_head, log.head)
        log.storage.check_integrity()
        log.forget_entries()
        check, index, rows = _LogCheck(log), IndexCheck(log), RowCheck(log)
        try:
            for entry in log.entries_after(ChainHead(0, FIRST_PREDECESSOR)):
                check.check_entry(entry)
                index.check_entry(entry)
                rows.note_entry(entry)
            check.check_attachments()
            index.check_end()
            rows.check_rows()
        except PlanFileError as error:
            if error.path[-1:] != ("kind",):
                problem = "an entry holds no plan, mechanism or loss"
                raise LedgerCorrupt(log.name, problem, check.seq) from None
            allowed = f"declared here: import what declares it, for entry {check.seq} names it"
            raise ParameterError("kind", error.value, allowed) from None
        except (KeyError, TypeError, ValueError, ArithmeticError) as error:
            problem = f"an entry does not say what it must: {type(error).__name__}"
            raise LedgerCorrupt(log.name, problem, check.seq) from None
        verified = Verified(log.head.seq, log.signed_head())
    log.advance_pin()
    return verified


class _LogCheck(ChargeCheck):
    """Reads along the log and recomputes what each data set spent."""

    def __init__(self, log: Log) -> None:
        super().__init__(log)
        self._terms = TermsCheck(log.name)
        self._accounts: dict[str, Account] = {}
        self._charged: dict[str, int] = {}
        self._attached: dict[int, str] = {}
        self._reserved: set[int] = set()

    def check_entry(self, entry: LogEntry) -> None:
        """Check one entry whose hash is right."""
        self.seq, facts = entry.seq, entry.facts
        name, kind = facts["dataset"], facts["kind"]
        self._terms.check_time(entry)
        if kind == "dataset":
            self._accounts[name] = account = Account(self._log, entry)
            self._standings[name] = account.standing_after(None)
            self._users[name] = account.unspent_users()
        elif kind == TERMS:
            account = self._accounts[name]
            self._standings[name] = self._terms.check_change(
                account,
                entry,
                self._standings[name],
                self._each_total(account),
                self._last_charge.get(name),
            )
        elif kind in CHARGING_KINDS:
            if facts.get("before", self._charged.get(name, 0)) != self._charged.get(name, 0):
                self._refuse("does not name the charge before it")
            self._add(self._accounts[name], facts, entry)
            self._charged[name] = entry.seq
            if self._accounts[name].window is not None:
                self._last_charge[name] = entry
        if kind in {*CHARGING_KINDS, "step"}:
            self._terms.check_spend(self._accounts[name], entry)
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
        """Check the attachments of the log."""
        for first_seq, last_seq in self._ranges():
            query = "SELECT seq, body FROM blobs WHERE seq BETWEEN :first AND :last ORDER BY seq"
            for seq, raw in self._log.storage.ask(query, first=first_seq, last=last_seq):
                self.seq = seq
                if self._attached.pop(seq, None) != digest(raw):
                    self._refuse("its bytes are others than were stored")
        if self._attached:
            self.seq = min(self._attached)
            self._refuse("its bytes are missing")
        for name in self._accounts:
            spend = self._log.last_charge(name)  # found through the index, as a spend finds it
            if self._charged.get(name, 0) != (0 if spend is None else spend.seq):
                raise LedgerCorrupt(self._log.name, "an index does not lead to the last spends")

    def _ranges(self) -> Iterator[tuple[int, int]]:
        """Yield ranges of attachment numbers, each small enough for memory."""
        sizes = self._log.storage.ask("SELECT seq, length(body) FROM blobs ORDER BY seq")
        first_seq, byte_count = None, 0
        for seq, size in sizes:
            first_seq, byte_count = seq if first_seq is None else first_seq, byte_count + size
            if byte_count > BYTES_PER_READ:
                yield first_seq, seq
                first_seq, byte_count = None, 0
        if first_seq is not None:
            yield first_seq, sizes[-1][0]
