"""Table of docs/budget.md: how often flips, cuts and kills overspent a book or lost from it."""

from __future__ import annotations

import itertools
import os
import random
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from accountant import Book, Budget
from experiments.charts import Options

TRIALS = 400  # of each attack; the quick form makes a twentieth of them
LEVEL = 0.95  # of the upper ends: with no failure about 3 / trials, the rule of three
HEAD = "| attack | trials | overspent, lost or hidden | chance of it, upper end at 95 % |"
TESTS = "tests.accountant.book"


def attacks(options: Options) -> Iterator[str]:
    """A row for each attack, which the tests of the same names make too, in other numbers."""
    trials = TRIALS // 20 if options.quick else TRIALS
    rng = random.Random(options.seeds[0])
    yield from (HEAD, "|" + " --- |" * 4)
    for name, failures_of in ATTACKS.items():
        with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
            patch.setenv("DP_ATTEST_PINS", "")  # a copy that is attacked is older than its book
            outcomes = list(itertools.islice(failures_of(Path(folder), patch, rng), trials))
        failures = sum(outcomes)
        upper = f"{upper_end(failures, trials):.2g}"
        yield f"| {name} | {trials:,} | {failures} | {upper} |"


def upper_end(failures: int, trials: int) -> float:
    """Return the exact upper end for a chance (Clopper & Pearson 1934)."""
    if failures == trials:
        return 1.0
    from scipy.stats import beta

    return float(beta.ppf(LEVEL, failures + 1, trials - failures))


def has_failed(attack: Callable[..., Any], *arguments: Any) -> bool:
    """Return whether an attack did not end as it must."""
    try:
        attack(*arguments)
    except Exception as failure:  # an error of any kind is a failure, and is shown
        print(f"{type(failure).__name__}: {failure}", flush=True)
        return True
    return False


def flips(folder: Path, patch: Any, rng: random.Random, ahead: bool = False) -> Iterator[bool]:
    """Flip one bit of a book; nothing may be spent twice, and a book that verifies says the same.

    The bit is in the file of a book that was closed, or in the log ahead of one that was open.
    """
    flipped, books = import_module(f"{TESTS}.test_flipped_bits"), throwaway_books()
    patch.setattr(os, "fdatasync", lambda _: None)  # nothing here dies
    place = books.SQLiteBookFile(folder / "book.db")
    said, while_open = flipped.written(place)
    files = while_open if ahead else flipped.files_of(place)
    path = place.path.with_name("book.db-wal") if ahead else place.path

    def flip_and_look() -> None:
        state = rng.getstate()
        flipped.flip(files, path, rng)
        flipped.is_verified(place, said)
        rng.setstate(state)
        flipped.flip(files, path, rng)  # the same bit again
        flipped.is_spent_from(place)

    while True:
        yield has_failed(flip_and_look)


def cuts(folder: Path, _: Any, rng: random.Random) -> Iterator[bool]:
    """Cut the power within a flush: what a reader has seen is there, and the log goes on."""
    power = import_module("tests.laws.test_power_cuts")
    for number in itertools.count():
        history = folder / str(number)
        history.mkdir()
        hashes, states = power.states_after_cuts(history, rng)
        for state in states:
            yield has_failed(power.check_state, history, hashes, state)


def kills(folder: Path, patch: Any, rng: random.Random) -> Iterator[bool]:
    """Kill a spend at a border of a system call; each book is killed twice, and then looked at."""
    killed = import_module(f"{TESTS}.test_killed_processes")
    template = folder / "template.db"
    with Book.create(template) as book:
        book.dataset("d", Budget(1.0))
    with sqlite3.connect(template) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    raw, url = template.read_bytes(), f"sqlite:///{folder / 'book.db'}"

    def new_book() -> str:
        for end in ("", "-wal", "-shm"):
            (folder / f"book.db{end}").unlink(missing_ok=True)
        (folder / "book.db").write_bytes(raw)
        return url

    borders, _, _ = killed.killed(new_book(), 10**9, 2, {})
    while True:
        failed = has_failed(killed.kill_twice, new_book(), 2, borders, rng, {})
        yield from (failed, False)


def throwaway_books() -> Any:
    """Return the module of books that tests throw away."""
    return import_module(f"{TESTS}.throwaway_books")


ATTACKS: dict[str, Callable[..., Iterator[bool]]] = {
    "one bit of the file flips": flips,
    "one bit of SQLite's log ahead flips": partial(flips, ahead=True),
    "the power is cut within a flush": cuts,
    "a spend is killed at a system call": kills,
}
FIGURES = {"book-attacks": attacks}
