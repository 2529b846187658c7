"""Forged books: their hashes, columns and length are right, and one fact in them is wrong."""

import functools
import json
import shutil
import sqlite3
import tempfile
from pathlib import Path

import numpy as np
import pytest

from accountant import Book, Budget, LedgerCorrupt, LedgerNewer, ParameterError, PureLoss, Tight
from accountant.book import log, verification
from accountant.book.chain.entries import FIRST_PREDECESSOR, canonical_json, next_hash
from accountant.book.chain.signing_key import SigningKey
from accountant.book.log import Log
from accountant.book.opening import connect
from mechanisms import Laplace
from tests.test_public_names import SNAPSHOTS

DATA = np.arange(6.0)
TENTH = Laplace(10.0)
PLAN = 20 * Laplace(25.0)
EXACT = Tight().epsilon(PLAN, 1e-6)  # its sum needs more
KEY, OTHER_KEY = b"a key of the auditor", b"the key of another book"


def write_honest(path, key=None):
    """Write a book with a data set of every kind, each of which was spent from."""
    with Book.create(path, author="ada", key=key) as book:
        for name, options in {
            "plain": {"notion": "pure"}, "users": {"users": 6}, "buckets": {"buckets": "region"},
            "window": {"window": "month", "carry": 1}, "aside": {"plan": 2 * TENTH, "runs": 2},
            "quota": {}, "users with a quota": {"users": 6},
            "buckets with a quota": {"buckets": "region"},
        }.items():  # fmt: skip
            book.dataset(name, Budget(1.0), **options)
        book.dataset("certified", Budget(EXACT + 0.01, 1e-6))
        book.dataset("terms", Budget(1.0, 1e-6), notion="pure")
        ledgers = {
            name: book.ledger(name, DATA) for name in ("plain", "quota", "window", "terms", "users")
        }  # fmt: skip
        ledgers["plain"].release(TENTH, np.sum, label="sum")
        with pytest.raises(ZeroDivisionError):
            ledgers["plain"].release(TENTH, lambda _: 1 / 0)
        ledgers["plain"].spend(PureLoss(0.2))
        ledgers["users"].release_each(TENTH, lambda rows: rows, [3, 1, 2])
        ledgers["users"].spend(TENTH)
        for names in (["a"], ["a", "b"]):
            book.ledger("buckets", DATA, buckets=names).spend(TENTH)
        for ledger in (ledgers["window"], ledgers["terms"]):
            ledger.spend(TENTH)
            ledger.spend(TENTH)
        book.raise_budget("window", Budget(2.0), "more")
        with book.ledger("window", DATA, 2 * TENTH, run="july") as ledger:
            ledger.release(TENTH, np.sum)
        for name in ("june", "july"):
            with book.ledger("aside", DATA, 2 * TENTH, run=name) as ledger:
                ledger.release(TENTH, np.sum)
        for name in ("quota", "users with a quota", "buckets with a quota"):
            ledger = book.ledger(name, DATA, buckets=["a"] if "buckets" in name else None)
            ledger.spend(TENTH)
            book.set_quota(name, "ada", 0.35, "a third")
            ledger.spend(TENTH)
            book.set_quota(name, "bob", 0.5, "a half")
        book.ledger("certified", DATA, PLAN)
        book.ledger("certified", DATA).spend(Laplace(200.0))
        for name in ("users", "buckets"):
            book.raise_budget(name, Budget(2.0), "more")
        book.raise_budget("terms", Budget(2.0, 1e-6), "more")
        book.expire("terms", "2999-01-01", "some day")
        book.close_dataset("terms", "the end")
        return book.verify().head


def write_claims(path, key=None):
    """Write a book with two claims, and evidence on the first that raises an alarm."""
    with Book.create(path, author="ada", key=key) as book:
        book.claim("program", Budget(1.0), alpha=0.1)
        book.claim("other", Budget(1.0), relation="add-remove")
        for number, log_e_value in enumerate((1.0, 2.5, -1.0)):  # the second raises the alarm
            book.add_evidence(
                "program", [log_e_value], [(1.0, 0.0)], runs=f"{number:064x}", version="1"
            )
        return book.verify().head


def write_corrected(path, key=None):
    """Write a book whose time ran ahead twice, by a clock that was wrongly confirmed."""
    day = "2026-11-10"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log, "clock_time", lambda _: f"{day}T12:00:00.000000+00:00")
        with Book.create(path, author="ada", key=key, clock="trusted") as book:
            for name, options in {
                "month": {"window": "month", "carry": 1}, "days": {"window": "30 days"},
                "unspent": {"window": "day"}, "ended": {"window": "day"},
                "ends": {"expires": "2027-01-01"}, "plain": {},
            }.items():  # fmt: skip
                book.dataset(name, Budget(2.0), notion="pure", **options)
            for stepped in ("2026-11-11", "2026-11-12"):
                day = stepped
                for name in ("month", "days", "ended", "plain"):
                    book.ledger(name, DATA).spend(TENTH)
            book.set_quota("month", "ada", 1.5, "most")
            book.close_dataset("ended", "over")
            day = "2027-03-01"
            ledger = book.ledger("days", DATA, 2 * TENTH, run="early")
            ledger.release(TENTH, np.sum)
            book.ledger("month", DATA).spend(TENTH)
            day = "2026-11-13"
            book.correct_clock("NTP was off")
            ledger.release(TENTH, np.sum)
            book.ledger("month", DATA).spend(TENTH)
            day = "2027-05-01"
            book.ledger("month", DATA).spend(TENTH)
            day = "2026-11-14"
            book.ledger("month", DATA).spend(TENTH)  # in May, by the log
            book.correct_clock("NTP was off again")
            return book.verify().head


def write_listed(path, _=None):
    """Write a book of 830740af, which listed all quotas in every entry of terms."""
    shutil.copy(SNAPSHOTS / "book-listed-quotas.db", path)


@functools.cache
def honest_book(key=None, write=write_honest):
    """The file of an honest book, with or without signatures; nothing is ahead of it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "book.db"
        write(path, key)
        return path.read_bytes()


class Forged:
    """A copy of a book, whose entries are changed and chained anew."""

    def __init__(self, folder, key=None, write=write_honest):
        self.path = folder / "forged.db"
        self.path.write_bytes(honest_book(key, write))
        self.rows = self.ask("SELECT seq, body FROM entries ORDER BY seq")
        self.facts = [json.loads(body) for _, body in self.rows]

    def connect(self):
        """A connection that does not wait for the disk."""
        db = sqlite3.connect(self.path)
        db.execute("PRAGMA synchronous = OFF")
        return db

    def ask(self, *words):
        db = self.connect()
        for verb in ("update", "delete"):
            db.execute(f"DROP TRIGGER IF EXISTS entries_no_{verb}")
        found = db.execute(*words).fetchall()
        db.commit()
        db.close()
        return found

    def find(self, dataset, kind, nth=0):
        """The facts of the nth entry of a kind of a data set."""
        found = [
            one for one in self.facts if one["dataset"] == dataset and one["kind"] == kind
        ]  # fmt: skip
        return found[nth]

    def write(self, bodies=None):
        """Chain the entries anew, some with bodies that are given."""
        previous, rows = FIRST_PREDECESSOR, []
        for facts in self.facts:
            body = (bodies or {}).get(facts["seq"]) or canonical_json(facts)
            previous = next_hash(previous, body)
            columns = [facts.get(name) for name in ("dataset", "kind", "key")]
            rows.append((facts["seq"], *columns, body, previous))
        db = self.connect()
        db.execute("DROP TRIGGER IF EXISTS entries_need_format")
        db.execute("DELETE FROM entries")
        db.executemany("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)", rows)
        db.execute(f"PRAGMA user_version = {len(rows)}")
        db.commit()
        db.close()


def said(path, head=None, key=None, patch=None):
    """The sentence in which the log is refused; "" for a good one."""
    opened = Log(connect(path, 30.0, False), None, "eve", signing_key=key and SigningKey(key))
    try:
        if patch is not None:
            patch(opened)
        verification.verify_log(opened, head)
    except (LedgerCorrupt, LedgerNewer, ParameterError) as error:
        return getattr(error, "why", str(error))
    finally:
        opened.close()
    return ""
