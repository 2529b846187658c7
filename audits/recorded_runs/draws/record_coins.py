"""Coins of records, where one of the two data sets lacks a record: whose coins are whose.

Records that both runs have get the same coins (docs/proofs/recorded_runs.md, statement 4).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from audits.recorded_runs.events import EventKind
from audits.recorded_runs.tape import Tape


def are_records(tape: Tape, count: Any) -> bool:
    """True if so many things are the records, of which one of the runs has one more.

    What the first run took for records the second does: a noisy size may be as large by chance.
    """
    if tape.recorded is None:
        return tape.changed is not None and np.ndim(count) == 0 and count == tape.records
    expected = tape.expected()
    known = None if expected is None else expected.of_records
    return known is not None and np.ndim(count) == 0 and count in (known, known - 1)


def is_one_per_record(tape: Tape, size: Any) -> bool:
    """True of draws of which the first dimension goes over the records."""
    first = _first(size)
    return first is not None and are_records(tape, first)


def _first(size: Any) -> Any:
    return size[0] if isinstance(size, (tuple, list)) and size else size


def coins(tape: Tape, name: str, draw: Callable[[], Any], count: int, equal: dict[str, Any]) -> Any:
    """Draw coins of so many records, and return them whole."""
    return tape.event(
        EventKind.DRAW, name, draw, equal=equal, coins=True, of_records=count
    ).output  # fmt: skip


def _lacks(tape: Tape, count: int) -> bool:
    """True if the first run drew the last coins for one record more."""
    if tape.recorded is None:
        return False
    return tape.recorded.events[len(tape.events) - 1].of_records == count + 1


def coins_of_records(tape: Tape, name: str, draw: Any, size: Any, equal: dict[str, Any]) -> Any:
    """Draw coins for each record; the coins of the record that is lacking are left out."""
    count = _first(size)
    output = coins(tape, name, draw, count, equal)
    if tape.changed is None or not _lacks(tape, count):
        return np.copy(output)
    return np.delete(output, tape.changed, axis=0)


def order_of_records(tape: Tape, name: str, draw: Any, count: int) -> Any:
    """Draw an order of the records; without the record that is lacking it is as it was."""
    order = coins(tape, name, draw, count, {})
    if not _lacks(tape, count):
        return np.copy(order)
    kept = order[order != tape.changed]
    return kept - (kept > tape.changed)


def places_of_records(
    tape: Tape, name: str, draw: Any, count: int, size: Any, *, distinct: bool
) -> Any:
    """Draw places of records; for the record that is lacking another one stands in.

    As many places as records go over the records, and the lacking one's is left out.
    """
    each = _first(size) == count
    places = np.asarray(coins(tape, name, draw, count, {} if each else {"size": size}))
    if _lacks(tape, count):
        gone = places == tape.changed
        places = places - (places > tape.changed)
        free = np.setdiff1d(np.arange(count), places[~gone])
        places = np.where(gone, free[0] if distinct and len(free) else 0, places)
        if each:
            kept = np.flatnonzero(~gone) if distinct else np.arange(count)
            places = places[kept]
    return np.copy(places) if places.ndim else places[()]
