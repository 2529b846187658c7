"""Collection of machines' votes: one small message a machine, and what happened to each.

Data stay where they are: the server sends a function and the handle of a machine's data, and gets
two bits a feature.  Every invalid message counts as a null vote of all zeros, so the number of
machines, and with it the sensitivity, is the number invited.
Which machines failed or were late, and how long a vote is, are taken as public.

A message starts with a status in one byte; a vote continues with the number of features in four
bytes and two maps of bits: which features are 1, and which are -1.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accountant.domains import IntegerRange
from accountant.errors import ParameterError
from accountant.ledger.ordered_map import map_in_order

MACHINES_PER_BLOCK = 100  # machines whose messages are read at a time
Votes = NDArray[np.int8]
# What can happen to a machine's vote; the status byte of a message is an index of this tuple.
FATES = ("counted", "twice", "failed", "invalid", "late")
COUNTED, TWICE, FAILED, INVALID, LATE = range(len(FATES))
HEADER_BYTES = 5  # bytes: a status, and the number of features in four


@final
@dataclass(frozen=True, slots=True)
class VoteReport:
    """What happened to every machine, and bytes sent; for the operator, not private.

    A fate is one of `FATES`: "twice" is a machine that sent more than one vote, of which the first
    was counted; "failed", "invalid" and "late" were counted as null votes.
    """

    fates: tuple[str, ...]
    bytes: tuple[int, ...]

    @property
    def answered(self) -> int:
        """The number of machines whose votes were counted."""
        return sum(fate in ("counted", "twice") for fate in self.fates)

    def __str__(self) -> str:
        counts = [f"{self.fates.count(fate)} {fate}" for fate in FATES if fate in self.fates]
        return f"{len(self.fates)} machines: {', '.join(counts)}; {sum(self.bytes):,} bytes"


@final
class VoteCollector:
    """One message of every machine; a second message of a machine is not counted."""

    def __init__(self, machines: int) -> None:
        self._messages: list[Any] = [None] * IntegerRange(1).check("machines", machines)
        self._fates = [LATE] * machines
        self._bytes = [0] * machines

    def receive(self, machine: int, message: Any) -> None:
        """Take a message, valid or not, from machine number ``machine``."""
        machine = IntegerRange(0, len(self._messages) - 1).check("machine", machine)
        self._bytes[machine] += len(message) if isinstance(message, bytes) else 0
        if self._fates[machine] != LATE:
            self._fates[machine] = TWICE if self._fates[machine] <= TWICE else self._fates[machine]
            return
        self._fates[machine] = INVALID
        if vote_length(message):
            self._messages[machine], self._fates[machine] = message, message[0]
        elif isinstance(message, bytes) and message == bytes([FAILED]):
            self._fates[machine] = FAILED

    def mark_failed(self, machine: int) -> None:
        """Record that a machine will not answer."""
        self._fates[machine] = FAILED

    def read_votes(self, features: int | None = None) -> tuple[Votes, VoteReport]:
        """Return the votes (machines, features), and the report; more than half must have answered.

        Otherwise no sign can have a majority.  ``features`` None takes the number of features that
        more than half of the machines voted on.
        """
        lengths = [vote_length(message) for message in self._messages]
        if features is None:
            # If more than half of the messages have one length, it is the median.
            features = int(np.median(lengths))
        votes = np.zeros((len(lengths), max(features, 1)), dtype=np.int8)

        def write(block: range) -> None:
            for machine in block:
                has_length = 0 < lengths[machine] == features
                fits = has_length and unpack_vote(self._messages[machine], votes[machine])
                if lengths[machine] and not fits:
                    self._fates[machine] = INVALID

        # First access to the memory dominates, so threads write blocks in parallel.
        starts = range(0, len(lengths), MACHINES_PER_BLOCK)
        blocks = (range(start, min(start + MACHINES_PER_BLOCK, len(lengths))) for start in starts)
        deque(map_in_order(write, blocks), maxlen=0)
        report = VoteReport(tuple(FATES[fate] for fate in self._fates), tuple(self._bytes))
        if 2 * report.answered <= len(lengths):
            allowed = "such that more than half of them vote on the same features"
            raise ParameterError("machines", str(report), allowed)
        return votes, report


def collect_votes(
    local: Callable[[Any], Any],
    handles: Sequence[Any],
    executor: Executor | None = None,
    timeout: float | None = None,
) -> VoteCollector:
    """Return the collected votes of all machines; those slower than ``timeout`` seconds are late.

    The timeout is for all machines together.  A handle is a machine's data, or a function that
    loads them, or what the executor converts into data where they are, as Dask does with its
    futures.
    """
    pool = ThreadPoolExecutor(os.cpu_count()) if executor is None else executor
    collector, futures = VoteCollector(len(handles)), []
    try:
        futures = [pool.submit(encode_own_vote, local, handle) for handle in handles]
        finished, _ = wait(futures, timeout)
        for machine, future in enumerate(futures):
            if future in finished:
                try:
                    collector.receive(machine, future.result())
                except Exception:  # a worker died
                    collector.mark_failed(machine)
    finally:
        for future in futures:
            future.cancel()
        if executor is None:
            pool.shutdown(wait=False, cancel_futures=True)
    return collector


def pack_vote(vote: Any) -> bytes:
    """Return a machine's message: its vote in two bits a feature, or that it has none."""
    try:
        votes = np.asarray(vote)
    except ValueError:  # rows of different lengths
        return bytes([INVALID])
    fate = COUNTED
    if votes.ndim == 2 and len(votes) > 1:
        votes, fate = votes[0], TWICE
    if votes.ndim != 1 or votes.size == 0 or votes.dtype.kind not in "iuf":
        return bytes([INVALID])
    positive, negative = votes == 1, votes == -1
    if np.count_nonzero(positive) + np.count_nonzero(negative) != np.count_nonzero(votes):
        return bytes([INVALID])  # NaN is not zero either
    header = bytes([fate]) + votes.size.to_bytes(HEADER_BYTES - 1, "little")
    return header + np.packbits(positive).tobytes() + np.packbits(negative).tobytes()


def vote_length(message: Any) -> int:
    """Return the number of features that a message votes on; 0 where it is no vote."""
    if not isinstance(message, bytes) or len(message) < HEADER_BYTES or message[0] > TWICE:
        return 0
    features = int.from_bytes(message[1:HEADER_BYTES], "little")
    return features if len(message) == HEADER_BYTES + 2 * -(-features // 8) else 0


def unpack_vote(message: bytes, row: Votes) -> bool:
    """Write a vote of the row's length to the row and return True; return False if it is none."""
    positive, negative = np.frombuffer(message, dtype=np.uint8, offset=HEADER_BYTES).reshape(2, -1)
    if (positive & negative).any():
        return False
    positives, negatives = (np.unpackbits(part, count=row.size) for part in (positive, negative))
    np.subtract(positives.view(np.int8), negatives.view(np.int8), out=row)
    return True


def encode_own_vote(local: Callable[[Any], Any], handle: Any) -> bytes:
    """Return a machine's message; an error is sent without its text, which may show data."""
    try:
        # numpy's warnings are about the data, so they are not shown.
        with np.errstate(all="ignore"):
            return pack_vote(local(handle() if callable(handle) else handle))
    except BaseException:  # any error of the function, sys.exit too
        return bytes([FAILED])
