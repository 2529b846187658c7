"""A parallel map over pieces of work, on any executor, with the results in order.

Only a few pieces are ahead of the one whose result is next, so that memory stays small.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import TypeVar

Argument = TypeVar("Argument")
Result = TypeVar("Result")

# The most pieces that are being computed, or are done and not yet yielded.  With more of them
# workers would wait less for each other, and results take more memory.
MAX_PENDING = 8


def map_in_order(
    function: Callable[[Argument], Result],
    arguments: Iterable[Argument],
    executor: Executor | None = None,
) -> Iterator[Result]:
    """Yield ``function(piece)`` for every piece, in the order of the pieces.

    ``executor`` is any `concurrent.futures.Executor`; the default is threads, one for each core.
    Other processes receive ``function`` and the pieces pickled.  This thread makes the pieces, a
    few ahead.
    """
    if executor is None:
        remaining = iter(arguments)
        first_two = list(islice(remaining, 2))
        if len(first_two) < 2:  # a single piece is computed in this thread
            yield from map(function, first_two)
            return
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            yield from map_in_order(function, chain(first_two, remaining), pool)
        return
    yield from results_in_order(executor.submit(function, piece) for piece in arguments)


def results_in_order(
    submitted: Iterable[Future[Result]], max_pending: int = MAX_PENDING
) -> Iterator[Result]:
    """Yield the results in order, while at most ``max_pending`` pieces of work are submitted."""
    waiting: deque[Future[Result]] = deque()
    try:
        for future in submitted:
            waiting.append(future)
            if len(waiting) == max_pending:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()
