"""Coins of records, where one of the two data sets lacks a record: whose coins are whose.

Records that both runs have get the same coins (docs/proofs/recorded_runs.md, statement 4).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from audits.recorded_runs.events import EventKind
from audits.recorded_runs.tape import Tape


def are_records(tape: Tape, count: Any) -> bool:
    """True if so many things are the records, of which one of the runs has one more."""
    return tape.changed is not None and np.ndim(count) == 0 and count == tape.records


def is_one_per_record(tape: Tape, size: Any) -> bool:
    """True of draws of which the first dimension goes over the records."""
    first = size[0] if isinstance(size, (tuple, list)) and size else size
    return first is not None and are_records(tape, first)


def coins_of_records(tape: Tape, name: str, draw: Any, equal: dict[str, Any]) -> Any:
    """Draw coins for each record; the coins of the record that is lacking are left out."""
    output = tape.event(EventKind.DRAW, name, draw, equal=equal, coins=True).output
    if not tape.lacks or tape.changed is None:
        return np.copy(output)
    return np.delete(output, tape.changed, axis=0)


def order_of_records(tape: Tape, order: Any) -> Any:
    """An order of the records, as it is without the record that is lacking."""
    if not tape.lacks or tape.changed is None:
        return np.copy(order)
    kept = order[order != tape.changed]
    return kept - (kept > tape.changed)


def other_places(tape: Tape, places: Any, *, distinct: bool) -> Any:
    """Places of records; for the record that is lacking another one stands in."""
    if not tape.lacks or tape.changed is None:
        return np.copy(places) if np.ndim(places) else places
    count = tape.records or 0
    moved = np.where(np.asarray(places) > tape.changed, np.asarray(places) - 1, places)
    free = np.setdiff1d(np.arange(count), moved[np.asarray(places) != tape.changed])
    other = free[0] if distinct and len(free) else 0
    made = np.where(np.asarray(places) == tape.changed, other, moved)
    return made if np.ndim(places) else made[()]
