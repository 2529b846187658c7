"""The durable ledger beside what the disk allows: spends, live totals, many users and authors."""

import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from accountant import Book, Budget
from accountant.book.account import Account
from accountant.book.chain.entries import dataset_key
from accountant.book.dataset_terms import state_quota
from accountant.book.log import Log, Make
from benchmarks.ledgers import DATA, PROCESSES, WIDE, disk, flushes_per_second, spends_per_second
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


def many_authors(folder, authors, times=100):
    """Print what a spend takes where many authors have a quota; all are set in one transaction."""
    url, processor = f"sqlite:///{folder / 'authors.db'}", []
    with Book.create(url) as book:
        book.dataset("d", WIDE)
    start, log = time.perf_counter(), Log.open(url, None, "curator", 30.0, Make.NEVER, None)
    with log.writing():
        account = Account(log, log.entry_with_key(dataset_key("d")))
        account.follow_terms()
        for k in range(authors):
            state_quota(account, f"author {k}", 5.0, "the plan of the year")
    log.close()
    built = time.perf_counter() - start
    with Book.open(url, author=f"author {authors // 2}") as book, book.ledger("d", DATA) as ledger:
        for _ in range(times):
            before = time.process_time()
            ledger.spend(Laplace(1e4))
            processor.append(time.process_time() - before)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{authors:,} authors with a quota, set in {built:.0f} s: "
          f"{1e3 * np.median(processor):.2f} ms of the processor a spend, and one flush (aim 5); "
          f"{memory:.0f} MiB at most in this process so far")  # fmt: skip


def main():
    given = options(__doc__, spends=1_000, users=1_000_000, authors=100_000)
    with tempfile.TemporaryDirectory(dir=disk()) as name:
        many_authors(Path(name), 200 if given.quick else given.authors)
        writers(Path(name), 10 if given.quick else given.spends)
        many_users(Path(name), 2_000 if given.quick else given.users)


if __name__ == "__main__":
    main()
