"""Row 15: kill -9 at the borders of system calls; nothing overspent, nothing released unrecorded.

A killed process loses nothing that the kernel took: what a power cut would lose on top is what
was not flushed, which `tests/laws/test_power_cuts.py` is about.
"""

import os
import random
import shutil
import sqlite3

import numpy as np
import pytest

from accountant import Book, Budget, BudgetExceeded
from mechanisms import Laplace
from tests.accountant.book.throwaway_books import SQLiteBookFile, kill_at_system_call, unlooked

DATA = np.arange(20.0)
FIFTH = Laplace(5.0)
LOOKED = b"l" * 8


def spends(url, end, times, given):
    """What a child does: says that it looked, and what it was given."""

    def query(data):
        os.write(end, LOOKED)
        return data.sum()

    with Book.open(url) as book, book.ledger("d", DATA, **given) as ledger:
        for k in range(times):
            try:
                answer = ledger.release(FIFTH, query, label=f"sum {k}")
            except BudgetExceeded:
                return
            os.write(end, np.float64(answer).tobytes())


def killed(url, stop, times, given):
    """How many borders there were, how often was looked, and the answers that came out."""
    here, there = os.pipe()
    borders, status = kill_at_system_call(stop, lambda: spends(url, there, times, given))
    assert status in {0, None}
    os.close(there)
    said = b""
    while part := os.read(here, 65536):
        said += part
    os.close(here)
    words = [said[i : i + 8] for i in range(0, len(said), 8)]
    answers = {np.frombuffer(word)[0] for word in words if word != LOOKED}
    return borders, words.count(LOOKED), answers


def charges(book):
    """The lines of what was spent; a quota that was set is another line."""
    return [line for line in book.history("d") if line.kind != "terms"]


def check(url, looked, answers):
    with Book.open(url) as book:
        book.verify()
        lines = charges(book)
        assert len(lines) >= looked  # no look without a reservation
        assert len(lines) <= 5
        assert book.spent("d") == pytest.approx(len(lines) / 5, abs=1e-12)
        stored = {float(book.answer(line)) for line in lines if line.outcome == "answered"}
        assert answers <= stored  # nothing came out that is not in the book


def sweep(template, url, renew, times, kills, seed, **given):
    rng = random.Random(seed)
    borders, _, _ = killed(url(renew(template)), 10**9, times, given)
    for _ in range(kills // 2):
        kill_twice(url(renew(template)), times, borders, rng, given)
    return borders


def kill_twice(where, times, borders, rng, given):
    """Kill two spends from a book that is new, and look at what each left."""
    looked, answers = 0, set()
    for _ in range(2):  # the second one wakes up to what the first left
        _, more, released = killed(where, rng.randrange(1, borders + 1), times, given)
        looked, answers = looked + more, answers | released
        check(where, looked, answers)
    with Book.open(where) as book, book.ledger("d", DATA, **given) as ledger:
        for line in book.history("d"):
            if line.outcome == "answered":  # released once, and never anew
                again = ledger.release(FIFTH, unlooked, label=line.label)
                assert again == book.answer(line)
        left = 5 - len(charges(book))
        for _ in range(left):
            ledger.spend(FIFTH)
        with pytest.raises(BudgetExceeded):
            ledger.spend(FIFTH)
        assert book.spent("d") == 1.0


SWEEP = [pytest.param(1000, seed, marks=pytest.mark.slow) for seed in range(1, 5)]


@pytest.mark.parametrize(("kills", "seed"), [(30, 0), *SWEEP])
def test_row_15_a_killed_spend_wastes_at_most_its_budget(tmp_path, kills, seed):
    sweep_files(tmp_path, kills, seed, {})


@pytest.mark.parametrize(
    ("options", "given"),
    [
        ({"window": "30 days", "carry": 1}, {}),
        ({"buckets": "region"}, {"buckets": ["a", "b"]}),
        ({"users": 20}, {}),
    ],
)
@pytest.mark.parametrize("kills", [4, pytest.param(300, marks=pytest.mark.slow)])
def test_row_15_windows_buckets_and_quotas_with_users_are_killed_alike(
    tmp_path, kills, options, given
):
    sweep_files(tmp_path, kills, 0, options, **given)


def sweep_files(tmp_path, kills, seed, options, **given):
    template = SQLiteBookFile(tmp_path / "template.db")
    with Book.create(template.url) as book:
        book.dataset("d", Budget(1.0), **options)
        if options:
            book.set_quota("d", book._log.author, 1.0, "as much as there is")
    db = sqlite3.connect(template.path)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()

    def renew(one):
        path = tmp_path / "book.db"
        for end in ("-wal", "-shm"):
            path.with_name(path.name + end).unlink(missing_ok=True)
        return shutil.copy(one.path, path)

    borders = sweep(template, lambda path: f"sqlite:///{path}", renew, 2, kills, seed, **given)
    assert borders > 100


def test_row_15_a_killed_client_of_postgresql_wastes_at_most_its_budget(postgres_server):
    def renew(_):
        found = postgres_server.database()
        with Book.create(found.url) as book:
            book.dataset("d", Budget(1.0))
        return found.url

    assert sweep(None, str, renew, 1, 10, seed=0) > 100
