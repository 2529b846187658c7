"""Items in buckets by an upper bound, updated as bounds change; an item moves in constant time."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from accountant.numerics import Array
from mechanisms.families.bounded_scores import IndexArray

MAX_BUCKETS = 256  # most buckets at the start


@final
class ScoreBuckets:
    """Items 0, 1, ... in buckets; bucket k has bounds up to ``k width`` plus a rounding margin."""

    def __init__(self, upper_bounds: Array, width: float, rounding_margin: float) -> None:
        self._width, self._rounding_margin = (
            max(width, float(upper_bounds.max()) / MAX_BUCKETS),
            rounding_margin,
        )
        self._bucket = self._bucket_of(upper_bounds)
        order = np.argsort(self._bucket, kind="stable")
        levels, level_starts = np.unique(self._bucket[order], return_index=True)
        groups = np.split(order, level_starts[1:])
        self._members: dict[int, list[int]] = {
            int(level): group.tolist() for level, group in zip(levels, groups, strict=True)
        }
        positions = np.empty(upper_bounds.size, dtype=np.intp)
        for group in groups:
            positions[group] = np.arange(group.size)
        self._place: list[int] = positions.tolist()
        self._keys: list[int] = []

    def update(self, items: IndexArray, upper_bounds: Array) -> None:
        """Set new bounds of some items."""
        level = self._bucket_of(upper_bounds)
        moved = level != self._bucket[items]
        movers = items[moved]
        for item, old_level, new_level in zip(
            movers.tolist(), self._bucket[movers].tolist(), level[moved].tolist(), strict=True
        ):
            self._remove(item, old_level)
            bucket = self._members.setdefault(new_level, [])
            self._place[item] = len(bucket)
            bucket.append(item)
        self._bucket[movers] = level[moved]

    def bounds(self) -> tuple[Array, IndexArray]:
        """Return the bounds of the buckets, and the number of items in each."""
        self._keys = list(self._members)
        counts = [len(members) for members in self._members.values()]
        return np.array(self._keys) * self._width + self._rounding_margin, np.array(counts)

    def member(self, level: int, place: int) -> int:
        """Return the item at a place in a bucket, in the order of `bounds`."""
        return self._members[self._keys[level]][place]

    def _remove(self, item: int, level: int) -> None:
        # the last member takes its place
        members = self._members[level]
        last_member = members.pop()
        if last_member != item:
            members[self._place[item]] = last_member
            self._place[last_member] = self._place[item]
        if not members:
            del self._members[level]

    def _bucket_of(self, upper_bounds: Array) -> Any:
        return np.ceil(upper_bounds / self._width).astype(np.int64)
