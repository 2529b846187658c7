"""Processor time against a yardstick that is measured beside it.

Other work on the machine lengthens both, so that a limit says something of the code alone. They
are not lengthened alike: one file that is read in .36 s took 1.04 s on another machine. So a limit
is at least ten times what the work takes alone, and tells work of another order, not slower work.
"""

import time

NOMINAL = 0.04  # seconds that the yardstick takes on an idle core, where the limits were set


def yardstick():
    """Processor time of half a million products in Python, the least of three."""
    found = []
    for _ in range(3):
        start = time.process_time()
        sum(i * i for i in range(500_000))
        found.append(time.process_time() - start)
    return min(found)


def standard(seconds):
    """Processor time as it would be where the yardstick takes `NOMINAL`."""
    return seconds * NOMINAL / yardstick()


def standard_seconds(work):
    """Standard processor time of a function without arguments."""
    start = time.process_time()
    work()
    return standard(time.process_time() - start)
