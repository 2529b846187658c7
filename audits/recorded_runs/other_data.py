"""Other data of the same records: what must not depend on the data is the same on them too.

Arguments of draws, bounds, and the order of draws of private code are the same on neighbours if
all outputs are, so they are on any two data sets of one size (docs/proofs/recorded_runs.md,
statement 5).  A pair that leaves a maximum as it was hides that a scale is taken from it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from audits.recorded_runs.records import (
    differing_rows,
    missing_record,
    number_of_records,
    parts_of,
    rows_of,
)

FEW = 20  # values of a column that count as names: they all stay
Places = NDArray[np.intp]


def other_data(data: Any, neighbour: Any) -> Any:
    """As many records, of those in the data, and none with an extreme; None if there are none."""
    count = number_of_records(data)
    if count is None or count < 3 or not _are_records(data, neighbour):
        return None
    columns = [column for part in parts_of(data) for column in _columns(part)]
    places = _places(columns, count)
    return _taken_of_all(data, places)


def _are_records(data: Any, neighbour: Any) -> bool:
    """True if the pair differs in one row, or in one that is lacking."""
    if any(number_of_records(part) != number_of_records(data) for part in parts_of(data)):
        return False
    sizes = number_of_records(data) or 0, number_of_records(neighbour) or 0
    if sizes[0] == sizes[1]:
        return len(differing_rows(data, neighbour)) == 1
    missing = missing_record(data, neighbour)
    if missing is None:
        return False
    places = np.delete(np.arange(sizes[0]), missing)
    remaining_data = _taken_of_all(data, places)
    return remaining_data is not None and not differing_rows(remaining_data, neighbour)


def _columns(part: Any) -> list[NDArray[np.float64]]:
    """Columns of numbers; none of other things."""
    try:
        rows = np.asarray(rows_of(part))
    except ValueError:
        return []
    if rows.dtype.kind not in "biuf" or not rows.size:
        return []
    return list(rows.reshape(len(rows), -1).T.astype(float))


def _places(columns: list[NDArray[np.float64]], count: int) -> Places:
    """Which records to take: half of the records, and those with an extreme, are replaced."""
    rng = np.random.default_rng(count)
    extremes, named = np.zeros(count, dtype=int), []
    for column in columns:
        if len(np.unique(column)) > min(FEW, count / 2):
            extremes += (column == column.max()) | (column == column.min())
        else:
            named.append(column)
    inner = np.flatnonzero(extremes == extremes.min())
    replaced = (extremes > extremes.min()) | (rng.random(count) < 0.5)
    places = np.where(replaced, rng.choice(inner, count), np.arange(count))
    for column in named:
        for lost in np.setdiff1d(column, column[places]):
            row = np.flatnonzero(column == lost)[0]
            places[row] = row
    return places


def _taken_of_all(data: Any, places: Places) -> Any:
    """The records of all parts at these places; None of data of an unknown kind."""
    parts = [_taken(part, places) for part in parts_of(data)]
    if any(part is None for part in parts):
        return None
    if isinstance(data, dict):
        return dict(zip(data, parts, strict=True))
    return tuple(parts) if isinstance(data, tuple) and parts_of(data)[0] is not data else parts[0]


def _taken(part: Any, places: Places) -> Any:
    """The records at these places; None of data of an unknown kind."""
    if isinstance(part, np.ndarray):
        return part[places]
    if type(part) in (list, tuple):
        return type(part)(part[k] for k in places)
    if hasattr(part, "iloc"):
        return part.iloc[places].set_axis(part.index[: len(places)], axis=0)
    return None
