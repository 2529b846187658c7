"""Which process may release under a label: it is charged once, and others wait for the answer.

The steps of a named run are awaited in the same way (`accountant.book.plan_run`).

The last entry under the key of a label says how it stands.  A release answers all.  A reservation
is waited for as long as its process lives, but at most for the book's ``wait``; then the next one
takes the label over and pays for a release of its own, because the first may have seen the data.
A failed release leaves the label free.
"""

from __future__ import annotations

import hashlib
import os
import random
import time
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from accountant.book.chain.entries import LogEntry, canonical_json
from accountant.book.log import Log
from accountant.errors import ParameterError

Holder = list[Any]  # who reserved: the machine, the process, and when that was started


class LabelTaken(Exception):
    """Another process reserved or answered the label, or the step, first: nothing was charged."""


class LabelClaim(NamedTuple):
    """The wish to reserve a label: it succeeds if no other entry came under the label since."""

    label: str
    key: str  # under which the entries of the label are found
    follows: int  # the number of the last entry under the key, 0 where there is none
    holder: Holder | None  # this process

    def refuse_if_taken(self, log: Log) -> None:
        """Raise `LabelTaken` unless the label stands as it did; call it inside a transaction."""
        labelled_entry = log.entry_with_key(self.key)
        if (0 if labelled_entry is None else labelled_entry.seq) != self.follows:
            raise LabelTaken


def label_key(dataset: str, label: str, buckets: tuple[str, ...] = ()) -> str:
    """Return the key of a label of a data set, or of some of its buckets."""
    bucket_fields = {"buckets": list(buckets)} if buckets else {}
    return canonical_json({"dataset": dataset, "label": label, **bucket_fields})


def await_label(
    log: Log,
    dataset: str,
    label: str,
    mechanism: dict[str, Any],
    buckets: tuple[str, ...] = (),
) -> LogEntry | LabelClaim:
    """Return the entry of the label's answer, or the claim to release it."""
    key = label_key(dataset, label, buckets)
    waited_for, give_up = 0, 0.0
    while True:
        with log.reading():
            labelled_entry = log.entry_with_key(key)
        if labelled_entry is not None and labelled_entry.kind == "release":
            return labelled_entry
        if (
            labelled_entry is None
            or labelled_entry.kind != "reserve"
            or is_gone(labelled_entry.facts["holder"])
        ):
            break
        if labelled_entry.facts["mechanism"] != mechanism:
            allowed = "one that no other mechanism was released under"
            raise ParameterError("label", label, allowed)
        if labelled_entry.seq != waited_for:
            waited_for, give_up = labelled_entry.seq, time.monotonic() + log.wait
        if time.monotonic() >= give_up:
            break
        time.sleep(random.uniform(1e-3, 2e-2))  # seconds; random, so that waiters do not collide
    return LabelClaim(
        label, key, 0 if labelled_entry is None else labelled_entry.seq, process_here(os.getpid())
    )


@cache
def process_here(pid: int) -> Holder | None:
    """Return what tells this process from all others; None where the system does not say."""
    started = _start_of(pid)
    return None if started is None else [_machine(), pid, started]


@cache
def _machine() -> str:
    """Return a hash of the machine's start and of its table of processes; not its name."""
    started = Path("/proc/sys/kernel/random/boot_id").read_bytes()
    numbers = os.stat("/proc/self/ns/pid").st_ino
    return hashlib.sha256(started + str(numbers).encode()).hexdigest()[:16]


def _start_of(pid: int) -> str | None:
    """Return when a process started; None if it has ended, or the system does not say."""
    try:
        _machine()
        # the fields after the name of the program, from the third on: first the state, ...
        stat_fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    # Z and X are states of an ended process; the 22nd field of the file is the time of the start.
    return None if stat_fields[0] in "ZX" else stat_fields[19]


def is_gone(holder: Holder | None) -> bool:
    """Return whether a process of this machine is known to have ended."""
    here = process_here(os.getpid())
    if here is None or holder is None or holder[0] != here[0]:
        return False
    return bool(_start_of(holder[1]) != holder[2])
