"""Items in levels of a bound, kept up as bounds change; an item moves in constant time."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from accountant.numerics import Array
from mechanisms.families.bounded_scores import INDICES

MANY = 256  # levels at most, at the start


@final
class Levels:
    """Items 0, 1, ... in levels; level k holds bounds up to ``k width``, and a hair more."""

    def __init__(self, most: Array, width: float, hair: float) -> None:
        self._width, self._hair = max(width, float(most.max()) / MANY), hair
        self._level = self._level_of(most)
        order = np.argsort(self._level, kind="stable")
        levels, first = np.unique(self._level[order], return_index=True)
        groups = np.split(order, first[1:])
        self._members: dict[int, list[int]] = {
            int(level): group.tolist() for level, group in zip(levels, groups, strict=True)
        }
        place = np.empty(most.size, dtype=np.intp)
        for group in groups:
            place[group] = np.arange(group.size)
        self._place: list[int] = place.tolist()
        self._keys: list[int] = []

    def update(self, items: INDICES, most: Array) -> None:
        """Give items new bounds."""
        level = self._level_of(most)
        moved = level != self._level[items]
        movers = items[moved]
        for item, old, new in zip(
            movers.tolist(), self._level[movers].tolist(), level[moved].tolist(), strict=True
        ):
            self._leave(item, old)
            there = self._members.setdefault(new, [])
            self._place[item] = len(there)
            there.append(item)
        self._level[movers] = level[moved]

    def bounds(self) -> tuple[Array, INDICES]:
        """Bounds of the levels, and how many items are in each."""
        self._keys = list(self._members)
        counts = [len(members) for members in self._members.values()]
        return np.array(self._keys) * self._width + self._hair, np.array(counts)

    def member(self, level: int, place: int) -> int:
        """The item at a place in a level, by the order of `bounds`."""
        return self._members[self._keys[level]][place]

    def _leave(self, item: int, level: int) -> None:
        # the last member takes its place
        members = self._members[level]
        last = members.pop()
        if last != item:
            members[self._place[item]] = last
            self._place[last] = self._place[item]
        if not members:
            del self._members[level]

    def _level_of(self, most: Array) -> Any:
        return np.ceil(most / self._width).astype(np.int64)
