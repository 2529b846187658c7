"""A book with a long log: its verification, the first spend of a process, its history."""

import hashlib
import multiprocessing
import tempfile
import time
from pathlib import Path

import numpy as np

from accountant import Book
from benchmarks.ledgers import DATA, WIDE, disk, in_another_process, memory
from benchmarks.measure import beside, options, seconds_of
from mechanisms import Gaussian


def append_entries(book, entries):
    """Entries written straight into one transaction, as spends write them."""
    account = book._account("d")  # a million spends would take the disk an hour  # noqa: SLF001
    noise, log = Gaussian(1e4), account.log
    facts = {"label": None, "seeded": False, "who": None, "block": None, "relation": None,
             "mechanism": account.description_of(noise), "loss": account.description_of(noise.loss)}  # fmt: skip
    with log.writing():
        notion, total = account.standing()
        total, cost = notion.charge(total, noise.loss), notion.cost(noise.loss)
        for k in range(entries):
            total = notion.add(total, cost) if k else total
            words = {"cost": notion.encode(cost), "total": notion.encode(total)}
            log.append("reserve", {**facts, **words}, "d", f"noise:{k:032x}")


def hash_seconds(entries, size):
    """Seconds to hash as many bodies of that size, one after another."""
    body, mark = "x" * size, "0" * 64
    start = time.perf_counter()
    for _ in range(entries):
        mark = hashlib.sha256(f"{mark}{body}".encode()).hexdigest()
    return time.perf_counter() - start


def opens_and_spends(url, label, sent):
    start = time.perf_counter()
    with Book.open(url) as book, book.ledger("d", DATA) as ledger:
        opened = time.perf_counter()
        if label is None:
            ledger.spend(Gaussian(1e4))
        else:
            ledger.release(Gaussian(1e4), np.sum, label=label)
        sent.put((opened - start, time.perf_counter() - opened))


def first_spend(url, label=None, times=3):
    """Median seconds to open a book in a fresh process, and to spend from it for the first time."""
    context, found = multiprocessing.get_context("spawn"), []
    for k in range(times):
        sent = context.Queue()
        asked = None if label is None else f"{label} {k}"
        one = context.Process(target=opens_and_spends, args=(url, asked, sent))
        one.start()
        found.append(sent.get())
        one.join()
    return np.median(found, axis=0)


def append_labels(book, labels):
    """Releases under labels, written straight into one transaction."""
    from accountant.book.label_claim import label_key

    log = book._account("d").log  # noqa: SLF001
    with log.writing():
        for k in range(labels):
            log.append("release", {"of": 0}, "d", label_key("d", f"label {k}"))


def held_seconds(book):
    """A list to which each transaction that holds the lock adds how long it did."""
    storage, held = book._log.storage, []  # noqa: SLF001
    begin = storage._begin  # noqa: SLF001
    starts = []

    def begun(words):
        begin(words)
        starts.append((words, time.perf_counter()))

    def flushed():
        held.append(time.perf_counter() - starts[-1][1])
        flush()

    flush = storage._flush  # noqa: SLF001
    storage._begin, storage._flush = begun, flushed  # noqa: SLF001
    return held


def streamed(url, sent):
    """Seconds for a whole history in a process of its own, and the process's memory."""
    with Book.open(url) as book:
        start = time.perf_counter()
        lines = sum(1 for _ in book.iter_history("d"))
        seconds = time.perf_counter() - start
    sent.send((lines, seconds, memory()))


def long_book(folder, entries):
    """Print what a long log takes to verify, and to spend from in a fresh process."""
    url = f"sqlite:///{folder / 'long.db'}"
    with Book.create(url) as book:
        book.dataset("d", WIDE)
        append_entries(book, entries)
        limit = hash_seconds(entries, 480)  # bytes of such an entry
        (seconds,) = seconds_of(book.verify)
        print(f"verify {entries:,} entries: {seconds:.2f} s, "
              f"{beside(seconds, limit, 'hashing alone')} ({limit:.2f} s; aim 10 s of a million)",
              flush=True)  # fmt: skip
    opening, spending = first_spend(url)
    print(f"a fresh process at {entries:,} entries: opens in {1e3 * opening:.0f} ms, first spend "
          f"in {1e3 * spending:.0f} ms, {beside(spending, limit, 'hashing the log')}")  # fmt: skip


def users_and_runs(folder, entries):
    """Print the first spend of a process that must read the log, and a resumed run."""
    url = f"sqlite:///{folder / 'users.db'}"
    with Book.create(url) as book:
        book.dataset("d", WIDE, "zcdp", users=len(DATA))
        with book.ledger("d", DATA, 2 * Gaussian(1e4), run="r") as ledger:
            given = ledger.release(Gaussian(1e4), np.sum)
        append_entries(book, entries)
    limit = hash_seconds(entries, 480)
    with Book.open(url) as book, book.ledger("d", DATA) as ledger:
        held = held_seconds(book)
        (whole,) = seconds_of(lambda: ledger.spend(Gaussian(1e4)))
        print(f"first spend of a process after {entries:,} entries: {whole:.2f} s, "
              f"{beside(whole, limit, 'hashing the log')}, "
              f"{1e3 * max(held):.1f} ms of it in the lock (aim 50)")  # fmt: skip
    with Book.open(url) as book:
        start = time.perf_counter()
        with book.ledger("d", DATA, 2 * Gaussian(1e4), run="r") as ledger:
            again = ledger.release(Gaussian(1e4), np.sum)
        seconds = time.perf_counter() - start
        if again != given:
            raise RuntimeError("a resumed run answered differently")
        print(f"resumed run, to its first answer: {1e3 * seconds:.1f} ms (aim 50)")
        (seconds,) = seconds_of(lambda: book.history("d", last=1000))
        print(f"last 1000 lines of the history: {1e3 * seconds:.0f} ms")
    lines, seconds, room = in_another_process(streamed, url)
    print(f"{lines:,} lines streamed: {seconds:.2f} s, {beside(seconds, limit, 'hashing the log')}, "
          f"{room:.0f} MiB (aim 5 s of a million, 200 MB)")  # fmt: skip


def main():
    given = options(__doc__, entries=100_000)
    entries = 500 if given.quick else given.entries
    with tempfile.TemporaryDirectory(dir=disk()) as name:
        long_book(Path(name), entries)
        users_and_runs(Path(name), entries)


if __name__ == "__main__":
    main()
