"""Work on pieces, spread over any executor, with its results in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import TypeVar

Piece = TypeVar("Piece")
Result = TypeVar("Result")

AHEAD = 8  # pieces that are under way, or done and not yet taken


def in_order(
    work: Callable[[Piece], Result], pieces: Iterable[Piece], executor: Executor | None = None
) -> Iterator[Result]:
    """Yield ``work(piece)`` for every piece, in the order of the pieces.

    ``executor`` is any `concurrent.futures.Executor`, by default threads, one a core; to other
    processes ``work`` and the pieces travel pickled.  Pieces are made in this thread, a few ahead.
    """
    if executor is None:
        left = iter(pieces)
        few = list(islice(left, 2))
        if len(few) < 2:  # a single piece is done where it is
            yield from map(work, few)
            return
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            yield from in_order(work, chain(few, left), pool)
        return
    waiting: deque[Future[Result]] = deque()
    try:
        for piece in pieces:
            waiting.append(executor.submit(work, piece))
            if len(waiting) == AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for one in waiting:
            one.cancel()
