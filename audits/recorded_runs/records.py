"""Records of the data: how many there are, which one a neighbour lacks, and data of other records.

In private code the arguments of draws, the bounds of clipping, and the order of draws are the same
on two neighbours with the same outputs.  Then they are the same on any two data sets of one size,
as one record after the other may be exchanged (docs/proofs/recorded_runs.md, statement 5).  A scale
that is taken from the maximum of the data does not show on two neighbours with the same maximum, so
`other_data` makes data without the extremes.

Data are an array, a frame, a list or other collection with one row for each record, or several such
*parts* with the same rows: a tuple of parts, or a dict of columns.  Of two data sets of different
size the larger comes first.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audits.recorded_runs.comparisons import same_value

# A column of at most this many different numbers is taken for one of names, such as classes, which
# all stay in other data.
FEW_NAMES = 20
Places = NDArray[np.intp]  # row numbers: which record to take for each


def larger_first(data: Any, neighbour: Any) -> tuple[Any, Any]:
    """Return the pair with the larger data first.

    Their run draws one coin for each record, so that the smaller can be replayed from it.
    """
    size, neighbour_size = number_of_records(data), number_of_records(neighbour)
    if size is not None and neighbour_size is not None and size < neighbour_size:
        return neighbour, data
    return data, neighbour


def parts_of(data: Any) -> list[Any]:
    """Return the parts of a tuple, or of a dict, of which each has a length; else the one part."""
    if isinstance(data, tuple) and data and all(hasattr(part, "__len__") for part in data):
        return list(data)
    if isinstance(data, dict) and data and all(hasattr(part, "__len__") for part in data.values()):
        return list(data.values())
    return [data]


def number_of_records(data: Any) -> int | None:
    """Return how many records there are; None if the data have no length."""
    first_part = parts_of(data)[0]
    return len(first_part) if hasattr(first_part, "__len__") else None


def missing_record(data: Any, neighbour: Any) -> int | None:
    """Return which record of the larger data the other lacks; None if they have equally many."""
    large, small = larger_first(data, neighbour)
    large_count, small_count = number_of_records(large), number_of_records(small)
    if large_count is None or small_count is None or large_count != small_count + 1:
        return None
    differing = differing_rows(large, small)
    return differing[0] if differing else small_count  # the last one, where no row before differs


def differing_rows(data: Any, neighbour: Any) -> list[int]:
    """Return the numbers of the rows that differ, among as many as both data have."""
    rows: set[int] = set()
    for part, neighbour_part in zip(parts_of(data), parts_of(neighbour), strict=True):
        rows |= set(_differing_in_part(rows_of(part), rows_of(neighbour_part)))
    return sorted(rows)


def _differing_in_part(one: Any, other: Any) -> list[int]:
    # Arrays of floats, of numpy's kind "f", are compared at once, NaN being equal to NaN; other
    # rows are compared one by one.
    count = min(len(one), len(other))
    plain = isinstance(one, np.ndarray) and isinstance(other, np.ndarray)
    if plain and one.shape[1:] == other.shape[1:] and one.dtype.kind + other.dtype.kind == "ff":
        a, b = (part[:count].reshape(count, -1) for part in (one, other))
        return [int(k) for k in np.flatnonzero(((a != b) & ~(np.isnan(a) & np.isnan(b))).any(1))]
    return [k for k in range(count) if not same_value(one[k], other[k])]


def rows_of(part: Any) -> Any:
    """Return the part as something that gives its rows by number; rows of a dict are its items."""
    values = getattr(part, "to_numpy", None)
    if callable(values):
        return values()
    if isinstance(part, Mapping):
        return list(part.items())
    if isinstance(part, Set):
        return sorted(part, key=repr)
    return part if hasattr(part, "__getitem__") else list(part)


def other_data(data: Any, neighbour: Any) -> Any:
    """Return data of as many records, taken from those without extremes; None if impossible.

    The neighbour has no more records than the data.  Some records are then taken twice, and others
    not at all.
    """
    count = number_of_records(data)
    # Of two records each is an extreme of every column in which they differ.
    if count is None or count < 3 or not _are_records(data, neighbour):
        return None
    columns = [column for part in parts_of(data) for column in _columns(part)]
    places = _places(columns, count)
    return _records_at(data, places)


def exchanged_extreme(data: Any, is_largest: bool) -> Any:
    """Return the data with another record in place of that with the largest or smallest number.

    The number is that of the first column with several values; None if there is none.
    """
    if number_of_records(data) is None:
        return None
    columns = [column for part in parts_of(data) for column in _columns(part)]
    varied = (column for column in columns if len(column) > 2 and np.ptp(column) > 0)
    column = next(varied, None)
    if column is None or len(column) != number_of_records(data):
        return None
    order = np.argsort(column)
    places = np.arange(len(column))
    places[order[-1 if is_largest else 0]] = order[len(order) // 2]
    return _records_at(data, places)


def _are_records(data: Any, neighbour: Any) -> bool:
    """Return whether the pair differs in one row, or in one that the neighbour lacks.

    The data are the larger of the two, as `larger_first` makes them.
    """
    if any(number_of_records(part) != number_of_records(data) for part in parts_of(data)):
        return False
    sizes = number_of_records(data) or 0, number_of_records(neighbour) or 0
    if sizes[0] == sizes[1]:
        return len(differing_rows(data, neighbour)) == 1
    missing = missing_record(data, neighbour)
    if missing is None:
        return False
    places = np.delete(np.arange(sizes[0]), missing)
    remaining_data = _records_at(data, places)
    return remaining_data is not None and not differing_rows(remaining_data, neighbour)


def _columns(part: Any) -> list[NDArray[np.float64]]:
    """Return the columns of numbers of a part; none where it holds other values."""
    try:
        rows = np.asarray(rows_of(part))
    except ValueError:
        return []
    if rows.dtype.kind not in "biuf" or not rows.size:
        return []
    return list(rows.reshape(len(rows), -1).T.astype(float))


def _places(columns: list[NDArray[np.float64]], count: int) -> Places:
    """Return which records to take in place of each record.

    About a half of the records, and those with the extreme of a column, are replaced by others that
    have as few extremes as possible.  Columns of few different values keep all of their values.
    """
    rng = np.random.default_rng(count)  # the same choice for every data set of this size
    extremes, named = np.zeros(count, dtype=int), []
    for column in columns:
        # Of few records a column of numbers has few values too, but mostly different ones.
        if len(np.unique(column)) > min(FEW_NAMES, count / 2):
            extremes += (column == column.max()) | (column == column.min())
        else:
            named.append(np.unique(column, return_inverse=True)[1])  # NaN is a value too
    inner = np.flatnonzero(extremes == extremes.min())
    replaced = (extremes > extremes.min()) | (rng.random(count) < 0.5)
    places = np.where(replaced, rng.choice(inner, count), np.arange(count))
    # A record that is put back may replace the last one with another value, which is put back then.
    while lost_rows := [
        np.flatnonzero(codes == lost)[0]
        for codes in named
        for lost in np.setdiff1d(codes, codes[places])
    ]:
        places[lost_rows] = lost_rows
    return places


def _records_at(data: Any, places: Places) -> Any:
    """Return the records of all parts at these places; None if a part is of an unknown kind."""
    parts = [_rows_at(part, places) for part in parts_of(data)]
    if any(part is None for part in parts):
        return None
    has_parts = parts_of(data)[0] is not data
    if isinstance(data, dict):
        return dict(zip(data, parts, strict=True))
    return tuple(parts) if isinstance(data, tuple) and has_parts else parts[0]


def _rows_at(part: Any, places: Places) -> Any:
    """Return the rows of a part at these places; None if it is of an unknown kind."""
    if isinstance(part, np.ndarray):
        return part[places]
    if type(part) in (list, tuple):
        return type(part)(part[k] for k in places)
    if hasattr(part, "iloc"):
        return part.iloc[places].set_axis(part.index[: len(places)], axis=0)
    return None
