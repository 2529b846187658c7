"""Records of the data: how many there are, and which one the other data set lacks."""

from __future__ import annotations

from typing import Any

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
    first = parts_of(data)[0]
    return len(first) if hasattr(first, "__len__") else None


def missing_record(data: Any, neighbour: Any) -> int | None:
    """Which record of the larger data the other lacks; None if they have equally many."""
    large, small = larger_first(data, neighbour)
    counts = number_of_records(large), number_of_records(small)
    if None in counts or counts[0] != counts[1] + 1:  # type: ignore[operator]
        return None
    rows = [rows_of(part) for part in parts_of(large)], [rows_of(part) for part in parts_of(small)]
    for k in range(counts[1]):  # type: ignore[arg-type]
        if any(not same_value(a[k], b[k]) for a, b in zip(*rows, strict=True)):
            return k
    return counts[1]


def rows_of(part: Any) -> Any:
    """The part as something that gives its rows by number."""
    values = getattr(part, "to_numpy", None)
    return values() if callable(values) else part
