"""Records of the data: how many there are, and which one the other data set lacks."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

import numpy as np

from audits.recorded_runs.comparisons import same_value


def larger_first(data: Any, neighbour: Any) -> tuple[Any, Any]:
    """Coins are drawn for the larger data; both runs are alike in all else."""
    sizes = number_of_records(data), number_of_records(neighbour)
    if None not in sizes and sizes[0] < sizes[1]:  # type: ignore[operator]
        return neighbour, data
    return data, neighbour


def parts_of(data: Any) -> list[Any]:
    """The parts that go over the same records: of a tuple, or of a dict of columns."""
    if isinstance(data, tuple) and data and all(hasattr(part, "__len__") for part in data):
        return list(data)
    if isinstance(data, dict) and data and all(hasattr(part, "__len__") for part in data.values()):
        return list(data.values())
    return [data]


def number_of_records(data: Any) -> int | None:
    """How many records there are; None if the data have no length."""
    first_part = parts_of(data)[0]
    return len(first_part) if hasattr(first_part, "__len__") else None


def missing_record(data: Any, neighbour: Any) -> int | None:
    """Which record of the larger data the other lacks; None if they have equally many."""
    large, small = larger_first(data, neighbour)
    counts = number_of_records(large), number_of_records(small)
    if None in counts or counts[0] != counts[1] + 1:  # type: ignore[operator]
        return None
    differing = differing_rows(large, small)
    return differing[0] if differing else counts[1]


def differing_rows(data: Any, neighbour: Any) -> list[int]:
    """Which of the first rows, as many as both have, are not the same."""
    rows: set[int] = set()
    for part, neighbour_part in zip(parts_of(data), parts_of(neighbour), strict=True):
        rows |= set(_differing_in_part(rows_of(part), rows_of(neighbour_part)))
    return sorted(rows)


def _differing_in_part(one: Any, other: Any) -> list[int]:
    count = min(len(one), len(other))
    plain = isinstance(one, np.ndarray) and isinstance(other, np.ndarray)
    if plain and one.shape[1:] == other.shape[1:] and one.dtype.kind + other.dtype.kind == "ff":
        a, b = (part[:count].reshape(count, -1) for part in (one, other))
        return [int(k) for k in np.flatnonzero(((a != b) & ~(np.isnan(a) & np.isnan(b))).any(1))]
    return [k for k in range(count) if not same_value(one[k], other[k])]


def rows_of(part: Any) -> Any:
    """The part as something that gives its rows by number; of a dict the items are rows."""
    values = getattr(part, "to_numpy", None)
    if callable(values):
        return values()
    if isinstance(part, Mapping):
        return list(part.items())
    if isinstance(part, Set):
        return sorted(part, key=repr)
    return part if hasattr(part, "__getitem__") else list(part)
