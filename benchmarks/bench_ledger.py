"""The durable ledger beside what the disk and SHA-256 allow, measured in the same run."""

import hashlib
import multiprocessing
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from accountant import Book, Budget
from mechanisms import Gaussian

PROCESSES, SPENDS, ENTRIES, USERS = 8, 10_000, 1_000_000, 1_000_000
DATA = np.arange(20.0)
WIDE = Budget(1000.0, 1e-6)


def flushes_per_second(folder, seconds=2.0):
    """Flushes a second of a page written over and over."""
    handle = os.open(folder / "flush.bin", os.O_RDWR | os.O_CREAT)
    made, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        os.pwrite(handle, bytes([made % 251]) * 4096, 4096 * (made % 256))
        os.fdatasync(handle)
        made += 1
    os.close(handle)
    return made / (time.perf_counter() - start)


def spends(url, times, gate, sent):
    noise = Gaussian(1e4)
    with Book.open(url) as book, book.ledger("d", DATA) as ledger:
        ledger.spend(noise)
        gate.wait()
        start = time.monotonic()
        for _ in range(times - 1):
            ledger.spend(noise)
        sent.put((start, time.monotonic()))


def spends_per_second(url, processes, times):
    """Spends a second of so many processes at once."""
    context = multiprocessing.get_context("spawn")
    gate, sent = context.Barrier(processes), context.Queue()
    ones = [context.Process(target=spends, args=(url, times, gate, sent)) for _ in range(processes)]
    for one in ones:
        one.start()
    ends = [sent.get() for _ in ones]
    for one in ones:
        one.join()
    return processes * (times - 1) / (max(e for _, e in ends) - min(s for s, _ in ends))


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


def first_spend(url, label=None, times=5):
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


def long_books(folder, entries):
    """Prints what a million entries take to verify, to open and to spend from."""
    url = f"sqlite:///{folder / 'long.db'}"
    with Book.open(url) as book:
        book.dataset("d", WIDE)
        append_entries(book, entries)
        limit = hash_seconds(entries, 480)  # bytes of such an entry
        start = time.perf_counter()
        book.verify()
        seconds = time.perf_counter() - start
        print(f"verify {entries} entries: {seconds:.1f} s, {seconds / limit:.1f} x hashing alone"
              f" ({limit:.1f} s; aim 10 s)")  # fmt: skip
    opening, spending = first_spend(url)
    print(f"a fresh process at {entries} entries: opens in {1e3 * opening:.0f} ms,"
          f" first spend in {1e3 * spending:.0f} ms")  # fmt: skip
    url = f"sqlite:///{folder / 'labels.db'}"
    with Book.open(url) as book:
        book.dataset("d", WIDE)
        append_labels(book, entries // 10)
    opening, spending = first_spend(url, "new")
    print(f"a fresh process at {entries // 10} labels: opens in {1e3 * opening:.0f} ms,"
          f" first release under a new label in {1e3 * spending:.0f} ms")  # fmt: skip


def main(spends_each=SPENDS, entries=ENTRIES):
    # /tmp may be memory
    disk = "/var/tmp" if Path("/var/tmp").is_dir() else None
    with tempfile.TemporaryDirectory(dir=disk) as name:
        folder = Path(name)
        url = f"sqlite:///{folder / 'book.db'}"
        with Book.open(url) as book:
            book.dataset("d", WIDE)
        before = flushes_per_second(folder)
        for processes in (1, PROCESSES):
            times = spends_each if processes > 1 else min(spends_each, 2000)
            rate = spends_per_second(url, processes, times)
            limit = (before + flushes_per_second(folder)) / 2
            print(f"spends a second, {processes} processes x {times}: {rate:.0f}"
                  f" ({rate / limit:.2f} x the disk's {limit:.0f} flushes; aim 1000 of 8)")  # fmt: skip
            before = limit
        with Book.open(url) as book, book.ledger("d", DATA) as ledger:
            made = len(book.history("d"))
            expected = PROCESSES * spends_each + min(spends_each, 2000)
            print(f"  spends lost: {expected - made}; verified {book.verify().entries} entries")
            seconds = []
            for k in range(50):
                ledger.spend(Gaussian(2e4 + k))
                start = time.perf_counter()
                book.spent("d")
                seconds.append(time.perf_counter() - start)
            print(f"live epsilon after a spend: {1e3 * np.median(seconds):.2f} ms (aim 5)")
        long_books(folder, entries)
        url = f"sqlite:///{folder / 'people.db'}"
        with Book.open(url) as book:
            book.dataset("d", Budget(10.0), users=USERS)
            rng = np.random.default_rng(0)
            who = [np.flatnonzero(rng.random(USERS) < 0.3) for _ in range(10)]
            from mechanisms import Laplace

            with book.ledger("d", np.zeros(USERS)) as ledger:
                start = time.perf_counter()
                for one in who:
                    ledger.spend(Laplace(10.0), one)
                seconds = (time.perf_counter() - start) / len(who)
            room = sum(path.stat().st_size for path in folder.glob("people.db*"))
            start = time.perf_counter()
            with Book.open(url) as again:
                again.spent_each("d")
            opening = time.perf_counter() - start
            print(f"{USERS} users: {1e3 * seconds:.0f} ms a spend of {len(who[0])} of them,"
                  f" {room / 2**20 / len(who):.2f} MiB each; all totals again in {opening:.2f} s")  # fmt: skip


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
