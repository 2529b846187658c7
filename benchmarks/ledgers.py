"""What the benches of books share: flushes of the disk, and processes that spend at once."""

import multiprocessing
import os
import resource
import time
from pathlib import Path

import numpy as np

from accountant import Book, Budget
from mechanisms import Gaussian

PROCESSES = 8
DATA = np.arange(20.0)
WIDE = Budget(1000.0, 1e-6)


def disk():
    """A folder on a disk: /tmp may be memory."""
    return "/var/tmp" if Path("/var/tmp").is_dir() else None


def flushes_per_second(folder, seconds=1.0):
    """Flushes a second of a page written over and over."""
    handle = os.open(folder / "flush.bin", os.O_RDWR | os.O_CREAT)
    made, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        os.pwrite(handle, bytes([made % 251]) * 4096, 4096 * (made % 256))
        os.fdatasync(handle)
        made += 1
    os.close(handle)
    return made / (time.perf_counter() - start)


def in_another_process(work, *given):
    """Return what a function sends from a fresh process; its last argument takes the sender."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=work, args=(*given, there))
    process.start()
    answer = here.recv()
    process.join()
    return answer


def memory():
    """MiB that this process has taken at most, or the one that started it until then (Linux)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def spends(url, times, gate, sent):
    noise = Gaussian(1e4)
    with Book.open(url) as book, book.ledger("d", DATA) as ledger:
        ledger.spend(noise)
        gate.wait()
        start = time.perf_counter()
        for _ in range(times - 1):
            ledger.spend(noise)
        sent.put((start, time.perf_counter()))


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
