"""Laws: what a power cut leaves of a book knows every spend that was looked at or answered.

After each flush a copy of the file and of its log ahead is taken: that is what a disk holds for
sure.  Nothing is injected, so a flush that is left out, or made too early, is seen by the copy.
"""

import fcntl
import os
import random
import sqlite3
import tempfile
from concurrent.futures import Executor, Future
from pathlib import Path

import numpy as np
import pytest

from accountant import Book, Budget, LedgerCorrupt, Parallel
from accountant.book import log
from accountant.book.databases.sqlite import SQLite
from mechanisms import Laplace
from tests.accountant.book.people import People
from tests.laws.test_books import opened_book

DATA = np.arange(6.0)
TENTH = Laplace(10.0)
HALVES = [[0, 2, 4], [5, 3, 1]]  # users whose numbers are stored as bytes


class Disk:
    """A disk that keeps what was flushed, of a book and of its pin."""

    def __init__(self, folder, patch):
        self.file, self.folder, self.flushes = folder / "book.db", folder / "after the cut", 0
        self.folder.mkdir()
        self.flushed = set()  # whether the pin was, too
        real = os.fdatasync, os.fsync

        def fdatasync(handle, *more):
            found = real[0](handle)
            self.flushes += 1
            self.keep(handle, "-wal")
            return found

        def fsync(handle):
            found = real[1](handle)
            self.keep(handle, ".pin")
            return found

        patch.setattr(os, "fsync", fsync)
        if hasattr(fcntl, "F_FULLFSYNC"):
            patch.setattr(fcntl, "fcntl", fdatasync)
        else:
            patch.setattr(os, "fdatasync", fdatasync)

    def keep(self, handle, end):
        """Take a copy of the file that was flushed; SQLite flushes the book's own file itself."""
        for name in ("", end):
            held = Path(f"{self.file}{name}")
            if name and held.exists() and os.path.samestat(os.fstat(handle), held.stat()):
                self.flushed.add(end)
            if held.exists() and (not name or end in self.flushed):
                (self.folder / held.name).write_bytes(held.read_bytes())

    def kept(self):
        """The number of entries that are left, and the pinned one."""
        pin = self.folder / "book.db.pin"
        return entries(self.folder / "book.db"), int(pin.read_text()[:20]) if pin.exists() else 0

    def is_safe(self):
        """Whether all that was committed would be left, and pinned: who writes names the pin."""
        written = entries(self.file)
        return self.kept() == (written, written)


def entries(path):
    """How many entries another process finds in a book."""
    db = sqlite3.connect(path)
    try:
        tables = db.execute("SELECT name FROM sqlite_master").fetchall()
        return db.execute("SELECT count(*) FROM entries").fetchone()[0] if tables else 0
    finally:
        db.close()


def labelled(book, query):
    with book.ledger("d", DATA) as ledger:
        ledger.release(TENTH, query, label="sum")


def failed(book, query):
    def fails(data):
        query(data)
        raise ZeroDivisionError

    with book.ledger("d", DATA) as ledger, pytest.raises(ZeroDivisionError):
        ledger.release(TENTH, fails)


def step(book, query):
    with book.ledger("d", DATA, 2 * TENTH, run="june") as ledger:
        ledger.release(TENTH, query)


SECTOR = 512  # bytes that a disk writes as a whole


class TornDisk:
    """Keeps what a disk may hold if the power is cut within each flush of the log ahead.

    Of the sectors that were written since the flush before, it holds some at random.
    """

    def __init__(self, file, patch, rng):
        self.file, self.log, self._rng = file, Path(f"{file}-wal"), rng
        self.known = 0  # entries whose spends were looked at or answered
        self._flushed = self.log.read_bytes()
        self.states = []  # the bytes of both files, and how many entries were known
        real = os.fdatasync

        def fdatasync(handle):
            if os.path.samestat(os.fstat(handle), self.log.stat()):
                written = self.log.read_bytes()
                self.states.append((self.file.read_bytes(), self._torn(written), self.known))
                self._flushed = written
            return real(handle)

        patch.setattr(os, "fdatasync", fdatasync)

    def _torn(self, written):
        held = bytearray(self._flushed)
        for start in range(0, len(written), SECTOR):
            if self._rng.random() < 0.5:
                held[len(held) :] = bytes(max(start - len(held), 0))
                held[start : start + SECTOR] = written[start : start + SECTOR]
        return bytes(held)

    def note(self):
        """Somebody has seen what was written so far."""
        self.known = entries(self.file)


def states_after_cuts(folder, rng):
    """The hash of each entry of a random history of a book, and what cuts leave of its files."""
    file = folder / "book.db"
    with pytest.MonkeyPatch.context() as patch, Book.create(file, author="ada") as book:
        for name in "de":
            book.dataset(name, Budget(1e6))
        disk = TornDisk(file, patch, rng)
        disk.note()

        def query(rows):
            disk.note()
            return rows.sum()

        for k in range(20):
            deed = rng.randrange(4)
            with book.ledger(rng.choice("de"), DATA) as ledger:
                if deed < 2:
                    ledger.release(TENTH, query, label=f"sum {k}" if deed else None)
                elif deed == 2:
                    ledger.spend(TENTH)
                else:
                    book.set_quota("d", f"author {k}", 1.0, "some")
            disk.note()
        with book._log.reading():
            hashes = dict(book._log.storage.ask("SELECT seq, hash FROM entries"))
    return hashes, disk.states


def check_state(folder, hashes, state):
    """What a cut left is the begin of the same log, with all that was known, and is spent from."""
    file, log, known = state
    path = folder / "cut.db"
    path.with_name("cut.db-shm").unlink(missing_ok=True)
    path.write_bytes(file)
    path.with_name("cut.db-wal").write_bytes(log)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DP_ATTEST_PINS", "")  # the pin of this machine is of the book that went on
        with Book.open(path, author="ada") as book:
            checked = book.verify()
            assert checked.entries >= known
            assert checked.head == f"{checked.entries}:{hashes[checked.entries]}"
            with book.ledger("d", DATA) as ledger:
                ledger.spend(TENTH)


class InTurn(Executor):
    """Does its work at once, in this thread: nothing is committed meanwhile."""

    def submit(self, function, *arguments):
        done = Future()
        done.set_result(function(*arguments))
        return done


def blocks(book, query):
    plan = Parallel([TENTH] * 2)
    with book.ledger("d", DATA, plan) as ledger:
        for _ in ledger.release_blocks(TENTH, query, HALVES, InTurn()):
            query(DATA)


def each(book, query):
    with book.ledger("d", DATA) as ledger:
        ledger.release_each(TENTH, query, [1, 3])


def correct(book, query):
    del query
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log, "clock_time", lambda _: "2001-01-01T00:00:00.000000+00:00")
        # The clock is before the book's first entry: that it is right needs a confirmation.
        patch.setattr(book._log, "confirmed", "2001-01-01T24")
        book.correct_clock("the book began by a wrong clock")


def with_roles(book, query):
    del query
    file = book._log.name
    with tempfile.TemporaryDirectory() as folder:
        people = People(Path(folder))
        with Book.open(file, pin=f"{file}.pin", key=people.keys["ada"]) as of_ada:
            of_ada.set_roles(people.roles(), "people with keys")


def evidence(book, query):
    book.claim("program", Budget(1.0))
    query(DATA)  # as the audit of a version does
    book.add_evidence("program", [1.0], [(1.0, 0.0)], runs="0" * 64, version="1")


# how a book is written to, and how many transactions that takes: each is flushed once
WRITES = {
    "release": (lambda book, query: book.ledger("d", DATA).release(TENTH, query), 2),
    "labelled release": (labelled, 2),
    "failed release": (failed, 2),
    "seeded release": (lambda book, query: book.ledger(
        "d", DATA, rng=1, insecure_seed=True).release(TENTH, query), 3),
    "step of a plan": (step, 3),
    "release_each": (each, 2),
    "release_blocks": (blocks, 5),
    "spend": (lambda book, query: book.ledger("d", DATA).spend(TENTH), 1),
    "ledger": (lambda book, query: book.ledger("d", DATA, 2 * TENTH), 1),
    "dataset": (lambda book, query: book.dataset("e", Budget(1.0)), 1),
    "raise_budget": (lambda book, query: book.raise_budget("d", Budget(2.0), "more"), 1),
    "expire": (lambda book, query: book.expire("d", "2999-01-01", "the end"), 1),
    "correct_clock": (correct, 1),
    "set_quota": (lambda book, query: book.set_quota("d", "ada", 0.5, "a half"), 1),
    "close_dataset": (lambda book, query: book.close_dataset("d", "the end"), 1),
    "set_roles": (with_roles, 1),
    "claim": (lambda book, query: book.claim("program", Budget(1.0)), 1),
    "add_evidence": (evidence, 2),
}  # fmt: skip
READS = {
    "answer", "buckets", "claims", "close", "create", "evidence", "excerpt", "head", "history",
    "iter_history", "left", "names", "open", "people", "quotas", "remaining", "spent", "spent_each",
    "status", "to_frame", "to_records", "verify", "grants", "proposed_roles", "roles",
    "session",  # it writes by `ledger` alone, at each answer
}  # fmt: skip


def test_every_way_to_write_to_a_book_is_in_the_table():
    public = {name for name in dir(Book) if not name.startswith("_")}
    assert public - READS <= WRITES.keys()


@pytest.mark.parametrize("how", WRITES)
def test_nothing_is_seen_or_answered_before_it_is_on_disk(how):
    write, transactions = WRITES[how]
    looked = []
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        disk = Disk(Path(folder), patch)

        def query(rows):
            looked.append(disk.is_safe())
            return rows if how in {"release_each", "release_blocks"} else rows.sum()

        with Book.create(disk.file, author="ada", pin=f"{disk.file}.pin") as book:
            book.dataset("d", Budget(1.0))
            assert disk.is_safe()
            before, written = disk.flushes, entries(disk.file)
            write(book, query)
            assert disk.is_safe()
            assert disk.flushes - before == transactions
            assert entries(disk.file) > written
            assert all(looked)
            assert bool(looked) == (transactions > 1)
        with Book.open(disk.folder / "book.db", pin=f"{disk.file}.pin") as book:
            book.verify()  # what is left is a good book


def without_log_ahead(file, patch, transaction):
    """Remove the log ahead of a book after a commit, as another program may: it is no more a file.

    The first transaction is number 1.
    """
    flush, flushes = SQLite._flush, []

    def flush_without_log(storage):
        flushes.append(storage)
        if len(flushes) == transaction:
            Path(f"{file}-wal").unlink()
        flush(storage)

    patch.setattr(SQLite, "_flush", flush_without_log)


TRANSACTIONS = [(how, nth + 1) for how, (_, count) in WRITES.items() for nth in range(count)]


@pytest.mark.parametrize(("how", "transaction"), TRANSACTIONS)
def test_what_was_committed_to_a_log_that_was_removed_is_not_answered(how, transaction):
    write = WRITES[how][0]
    looked, answered = [], []
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        file = Path(folder) / "book.db"

        def query(rows):
            looked.append(rows)
            return rows if how in {"release_each", "release_blocks"} else rows.sum()

        with Book.create(file, author="ada", pin=f"{file}.pin") as book:
            book.dataset("d", Budget(1.0))
            without_log_ahead(file, patch, transaction)
            if (how, transaction) == ("failed release", 2):
                write(book, query)  # who asks sees the error of the query alone
            else:
                with pytest.raises(LedgerCorrupt, match="its log was removed"):
                    answered.append(write(book, query))
            assert answered == []
            assert transaction > 1 or looked == []
            with pytest.raises(LedgerCorrupt, match="its log was removed"):
                book.spent("d")


@pytest.mark.parametrize("pins", [True, False])
def test_what_each_object_of_a_book_writes_is_on_disk(pins):
    looked = []
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        disk = Disk(Path(folder), patch)

        def query(rows):
            looked.append(disk.kept()[0] == entries(disk.file))
            return rows.sum()

        pin = f"{disk.file}.pin"
        with (
            Book.create(disk.file, author="ada", pin=pin) as of_ada,
            Book.open(disk.file, author="bob", pin=pin if pins else None) as of_bob,
        ):
            of_ada.dataset("d", Budget(1.0))
            of_bob.ledger("d", DATA).release(TENTH, query)
            assert disk.kept() == (4, 4 if pins else 2)  # the pin follows those who name it
            of_ada.ledger("d", DATA).release(TENTH, query)
            assert disk.is_safe()
        assert looked == [True, True]
        with Book.open(disk.folder / "book.db", pin=pin) as book:
            assert book.verify().entries == 6


NOTES = {"verify": Book.verify, "head": lambda book: book.head}


@pytest.mark.parametrize("how", NOTES)
def test_an_end_that_is_pinned_or_noted_is_on_disk(how):
    kept = []
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        disk = Disk(Path(folder), patch)
        pin = f"{disk.file}.pin"
        with (
            Book.create(disk.file, author="ada", pin=pin) as of_ada,
            Book.open(disk.file, author="bob", pin=pin) as of_bob,
        ):
            of_ada.dataset("d", Budget(1.0))
            storage = of_ada._log.storage
            flush = storage._flush

            def notes_first():  # between the commit of ada and her flush
                before = disk.kept()
                NOTES[how](of_bob)
                kept.extend([before, disk.kept()])
                flush()

            patch.setattr(storage, "_flush", notes_first)
            of_ada.ledger("d", DATA).spend(TENTH)
            assert disk.is_safe()
    assert kept == [(2, 2), (3, 3 if how == "verify" else 2)]


def test_the_file_itself_is_flushed_by_sqlite_before_its_log_is_used_anew():
    with opened_book(budget=Budget(1.0)) as book:
        asked = ("journal_mode", "synchronous", "checkpoint_fullfsync", "cell_size_check")
        with book._log.storage.reading():
            found = [book._log.storage.ask(f"PRAGMA {name}")[0][0] for name in asked]
        assert found == ["wal", 1, 1, 1]


@pytest.mark.parametrize("seed", [0])
def test_a_cut_within_a_flush_loses_nothing_that_was_known(seed):
    with tempfile.TemporaryDirectory() as name:
        hashes, states = states_after_cuts(Path(name), random.Random(seed))
        assert len(states) > 20
        for state in states:
            check_state(Path(name), hashes, state)
