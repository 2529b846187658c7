"""Coins of records where one of the two data sets has one record less.

An audit runs a function on two data sets with the same random numbers, which the tape of the first
run keeps for the second.  Coins are draws that are no noise, such as those that sample records,
order them or choose row numbers.  Records that both runs have get the same coins
(docs/proofs/recorded_runs.md, statement 4).

The first run is on the larger data set.  Of its `Tape`, ``records`` is the number of records of the
run's data, and ``changed`` the row number of the record that the smaller data set lacks; None if
both have equally many records.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from audits.recorded_runs.events import Draw
from audits.recorded_runs.tape import Tape

# numpy's own function, which is replaced while a run is recorded
plain_default_rng = np.random.default_rng


def are_records(tape: Tape, count: Any) -> bool:
    """True if ``count`` is the number of records, of which one of the runs has one more.

    The second run takes a count for that of records where the first run did so at the same event,
    since a noisy size may equal the number of records by chance.
    """
    if tape.recorded is None:
        return tape.changed is not None and np.ndim(count) == 0 and count == tape.records
    expected = tape.expected()
    recorded_count = expected.of_records if isinstance(expected, Draw) else None
    return (
        recorded_count is not None
        and np.ndim(count) == 0
        and count in (recorded_count, recorded_count - 1)
    )


def is_one_per_record(tape: Tape, size: Any) -> bool:
    """True if the first dimension of the draws is the number of records."""
    first_dimension = _first(size)
    return first_dimension is not None and are_records(tape, first_dimension)


def _first(size: Any) -> Any:
    """The first dimension of a shape, or the number itself."""
    return size[0] if isinstance(size, (tuple, list)) and size else size


def _further(size: Any) -> tuple[Any, ...]:
    """The dimensions of a shape after the first one."""
    return tuple(size[1:]) if isinstance(size, (tuple, list)) else ()


def coins(tape: Tape, name: str, draw: Callable[[], Any], count: int, equal: dict[str, Any]) -> Any:
    """Draw coins for ``count`` records; in the second run, the recorded coins of the first.

    They may be for one record more than ``count``, see `_has_one_record_less`.
    """
    return tape.draw(name, draw, equal=equal, coins=True, of_records=count).output


def _has_one_record_less(tape: Tape, count: int) -> bool:
    """True if the first run drew the coins of the last event for one record more than ``count``."""
    if tape.recorded is None:
        return False
    recorded = tape.recorded.events[len(tape.events) - 1]
    return isinstance(recorded, Draw) and recorded.of_records == count + 1


def coins_of_records(tape: Tape, name: str, draw: Any, size: Any, equal: dict[str, Any]) -> Any:
    """Draw coins for each record; the coins of the missing record are left out.

    ``equal`` has what else the law of the coins depends on, by name.  It must be equal in both
    runs, but for what it has of the missing record; and so must the further dimensions of ``size``.
    """
    count, recorded = _first(size), tape.expected()
    equal = {**equal, "size": _further(size)}
    if isinstance(recorded, Draw):
        equal = {
            key: _of_the_same_records(tape, value, recorded.equal.get(key), count, recorded)
            for key, value in equal.items()
        }
    output = coins(tape, name, draw, count, equal)
    if tape.changed is None or not _has_one_record_less(tape, count):
        return np.copy(output)
    return np.delete(output, tape.changed, axis=0)


def _of_the_same_records(
    tape: Tape, value: Any, recorded_value: Any, count: int, recorded: Draw
) -> Any:
    """Return a parameter as it is compared with that of the recorded draw.

    Of a parameter with a row for each record, the row of a missing one is taken from the recorded
    draw; and all rows where the run is on other data, whose records are other ones.
    """
    has_rows = np.ndim(recorded_value) > 0 and len(recorded_value) == recorded.of_records
    if not (has_rows and np.shape(value)[:1] == (count,)):
        return value
    if tape.changed is None:  # a run on other data, with as many records
        return recorded_value if np.shape(value) == np.shape(recorded_value) else value
    if count == recorded.of_records:
        return value
    missing = tape.changed
    return np.insert(np.asarray(value), missing, recorded_value[missing], axis=0)


def order_of_records(tape: Tape, name: str, draw: Any, count: int) -> Any:
    """Draw an order of the records; the order of the others stays if one record is missing."""
    order = coins(tape, name, draw, count, {})
    if not _has_one_record_less(tape, count):
        return np.copy(order)
    present = order[order != tape.changed]
    # The records after the missing one have row numbers that are less by 1.
    return present - (present > tape.changed)


def places_of_records(
    tape: Tape, name: str, draw: Any, count: int, size: Any, *, distinct: bool
) -> Any:
    """Draw row numbers of records; another record replaces the missing one.

    If as many row numbers are drawn as there are records, each is one for a record, and that for
    the missing record is left out.  ``distinct`` row numbers stay distinct.
    """
    covers_records = _first(size) == count
    equal = {"size": _further(size) if covers_records else size}
    places = np.asarray(coins(tape, name, draw, count, equal))
    if _has_one_record_less(tape, count):
        is_missing = places == tape.changed
        # The records after the missing one have row numbers that are less by 1.
        places = places - (places > tape.changed)
        candidates = np.setdiff1d(np.arange(count), places[~is_missing] if distinct else [])
        if is_missing.any() and len(candidates):
            # The substitute is uniform too, and the same in every replay of these row numbers.
            substitutes = plain_default_rng([count, *places.ravel()])
            places = np.where(is_missing, substitutes.choice(candidates, places.shape), places)
        if covers_records:
            # Distinct row numbers are an order, which loses the missing record; others are one for
            # each record, of which that of the missing record is lost.
            is_left_out = is_missing if distinct else np.arange(len(places)) == tape.changed
            places = places[~is_left_out]
    return np.copy(places) if places.ndim else places[()]
