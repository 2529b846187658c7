"""Blocks of rows that fit into the processor's cache."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numpy.typing import NDArray

CACHE_BYTES = 1 << 19  # bytes that are processed at a time


def cache_blocks(rows: NDArray[Any], width: int) -> Iterator[slice]:
    """Return slices of the first axis that fit into the cache, at ``width`` bytes a row."""
    step = max(64, CACHE_BYTES // width)  # enough very wide rows to justify the calls
    return (slice(start, start + step) for start in range(0, len(rows), step))
