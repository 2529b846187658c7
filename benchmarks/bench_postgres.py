"""Spends a second in a PostgreSQL server of its own, of one writer and of eight."""

import shutil
import tempfile
from pathlib import Path

from accountant import Book
from benchmarks.ledgers import PROCESSES, WIDE, disk, flushes_per_second, spends_per_second
from benchmarks.measure import beside, options


def main():
    given = options(__doc__, spends=300)
    times = 5 if given.quick else given.spends
    if not (shutil.which("postgres") or [*Path("/usr/lib/postgresql").glob("*/bin/postgres")]):
        print("left out: no PostgreSQL here")
        return
    from tests.accountant.book.throwaway_books import PostgresServer

    limit = flushes_per_second(Path(disk() or tempfile.gettempdir()))
    slow = ("commit_delay=5000", "commit_siblings=0")  # a flush takes 5 ms more
    for settings, flushes, where in (((), limit, "this disk"), (slow, 200.0, "5 ms for a flush")):
        server = PostgresServer(*settings)
        try:
            rates = {}
            for processes in (1, PROCESSES):
                place = server.database()
                with Book.create(place.url) as book:
                    book.dataset("d", WIDE)
                rates[processes] = spends_per_second(place.url, processes, times)
        finally:
            server.stop()
        one, many = rates[1], rates[PROCESSES]
        print(f"PostgreSQL, {where} ({flushes:.0f} flushes a second): {one:.0f} spends a second of "
              f"one writer, {beside(one, flushes, 'its flushes')}; {many:.0f} of {PROCESSES}, "
              f"{beside(many, one, 'one writer')} (aim 4)", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
