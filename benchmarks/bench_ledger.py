"""The durable ledger beside what the disk allows: spends, live totals, many users and authors."""

import tempfile
import time
from pathlib import Path

import numpy as np

from accountant import Book, Budget
from accountant.book.account import Account
from accountant.book.chain.entries import dataset_key
from accountant.book.databases.sqlite import SQLite
from accountant.book.dataset_terms import state_quota
from accountant.book.opening import Make, open_log
from benchmarks.ledgers import (
    DATA,
    PROCESSES,
    WIDE,
    disk,
    flushes_per_second,
    in_another_process,
    memory,
    spends_per_second,
)
from benchmarks.measure import beside, median_seconds, options, seconds_of
from mechanisms import Gaussian, Laplace


def writers(folder, times):
    """Print spends a second of one process and of eight, and what a total costs after one."""
    url = f"sqlite:///{folder / 'book.db'}"
    with Book.create(url) as book:
        book.dataset("d", WIDE)
    before, made = flushes_per_second(folder), 0
    for processes in (1, PROCESSES):
        rate = spends_per_second(url, processes, times)
        after = flushes_per_second(folder)
        limit, before, made = (before + after) / 2, after, made + processes * times
        print(f"spends a second, {processes} processes x {times}: {rate:.0f}, "
              f"{beside(rate, limit, 'the flushes of the disk')} ({limit:.0f} a second; "
              "aim 1000 of 8)", flush=True)  # fmt: skip
    with Book.open(url) as book, book.ledger("d", DATA) as ledger:
        print(f"  spends lost: {made - len(book.history('d'))}; "
              f"verified {book.verify().entries} entries")  # fmt: skip
        seconds = []
        for k in range(20):
            ledger.spend(Gaussian(2e4 + k))
            seconds += seconds_of(lambda: book.spent("d"))
        print(f"live epsilon after a spend: {1e3 * np.median(seconds):.2f} ms (aim 5), "
              f"{beside(float(np.median(seconds)), 1 / before, 'a flush')}")  # fmt: skip


def many_users(folder, users, times=5):
    """Print what a spend of a third of the users takes."""
    url, rng = f"sqlite:///{folder / 'people.db'}", np.random.default_rng(0)
    who = [np.flatnonzero(rng.random(users) < 0.3) for _ in range(times)]
    with Book.create(url) as book:
        book.dataset("d", Budget(10.0), users=users)
        with book.ledger("d", np.zeros(users)) as ledger:
            start = time.perf_counter()
            for one in who:
                ledger.spend(Laplace(10.0), one)
            seconds = (time.perf_counter() - start) / times
    room = sum(path.stat().st_size for path in folder.glob("people.db*")) / times
    totals = np.zeros(users)
    limit = median_seconds(lambda: np.add.at(totals, who[0], 0.1))
    with Book.open(url) as again:
        (opening,) = seconds_of(lambda: again.spent_each("d"))
    print(f"{users:,} users: {1e3 * seconds:.0f} ms a spend of {who[0].size:,} of them, "
          f"{beside(seconds, limit, 'numpy adding to their totals')}; {room / 2**20:.2f} MiB each; "
          f"all totals again in {opening:.2f} s")  # fmt: skip


def set_quotas(url, authors, sent):
    """Send the seconds in which many quotas are set, in one transaction."""
    with Book.create(url) as book:
        book.dataset("d", WIDE)
    start, log = time.perf_counter(), open_log(url, Make.NEVER, author="curator")
    with log.writing():
        account = Account(log, log.entry_with_key(dataset_key("d")))
        account.follow_terms()
        for k in range(authors):
            state_quota(account, f"author {k}", 5.0, "the plan of the year")
    log.close()
    sent.send(time.perf_counter() - start)


def spends_of_author(url, author, times, sent):
    """Send what opening and spends cost a fresh process: processor seconds, rows, and memory."""
    rows, ask, noise, ends = [], SQLite.ask, Laplace(1e4), [time.process_time()]

    def counted(storage, sql, **values):
        answer = ask(storage, sql, **values)
        rows.append(len(answer))
        return answer

    SQLite.ask = counted
    with Book.open(url, author=author) as book:
        opened = len(rows)
        with book.ledger("d", DATA) as ledger:
            ends.append(time.process_time())
            for k in range(times):
                ledger.spend(noise)
                ends.append(time.process_time())
                if k == 0:
                    first = sum(rows[opened:])
    opening, *seconds = np.diff(ends)
    sent.send((opening, seconds[0], np.median(seconds[1:]), first, memory()))


def verifies(url, sent):
    with Book.open(url) as book:
        (seconds,) = seconds_of(book.verify)
    sent.send((seconds, memory()))


def many_authors(folder, authors, processes, times=100):
    """Print what a spend takes where many authors have a quota, beside one author with a quota."""
    firsts = []
    for count in (1, authors):
        url = f"sqlite:///{folder / f'{count} authors.db'}"
        built = in_another_process(set_quotas, url, count)
        runs = [in_another_process(spends_of_author, url, f"author {k * count // processes}", times)
                for k in range(processes)]  # fmt: skip
        opening, first, later, rows, room = np.median(runs, axis=0)
        firsts.append(first)
        print(f"{count:,} authors with a quota, set in {built:.1f} s: of the processor, "
              f"{1e3 * opening:.1f} ms to open the book and its data, "
              f"{1e3 * first:.2f} ms for the first spend of a process (aim 5), with {rows:.0f} rows "
              f"read since the book was open, and {1e3 * later:.2f} ms for a later one; "
              f"{room:.0f} MiB (aim 100)", flush=True)  # fmt: skip
    seconds, room = in_another_process(verifies, url)
    print(f"first spend with {authors:,} quotas: {beside(firsts[1], firsts[0], 'that with one')}; "
          f"verified in {seconds:.1f} s and {room:.0f} MiB (aim 100)")  # fmt: skip


def main():
    given = options(__doc__, spends=1_000, users=1_000_000, authors=100_000)
    with tempfile.TemporaryDirectory(dir=disk()) as name:
        many_authors(Path(name), *((200, 1) if given.quick else (given.authors, 5)))
        writers(Path(name), 10 if given.quick else given.spends)
        many_users(Path(name), 2_000 if given.quick else given.users)


if __name__ == "__main__":
    main()
