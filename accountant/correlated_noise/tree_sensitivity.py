"""How far one record moves the sums in a binary tree: squared norms, as whole numbers.

The steps of a run are the leaves of complete subtrees, from left to right; ``heights`` has their
heights, and one of height h has 2^h leaves.  Every node has the sum of the steps below it.  The
steps in which a record is used are a pattern of uses.  A record that adds the same unit vector in
all of them moves every node by its count, the number of uses below it, and no other contributions
of norm at most 1 move a node further.  So the greatest squared norm of a move is the greatest sum
of squared counts over the patterns that are allowed (docs/proofs/correlated_noise.md).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from accountant.correlated_noise.participation import FixedEpochs, MinSeparation

# Divisions of uses between two subtrees that are tried, a second's work, before a bound serves.
MAX_SPLITS = 300_000
BLOCK_SIZE = 1 << 22  # uses in all patterns that are in memory together: 32 MB


def fixed_epochs_squared(heights: Sequence[int], participation: FixedEpochs) -> int:
    """Return the greatest sum of squared counts of a pattern that repeats every epoch."""
    steps = sum(1 << height for height in heights)
    period = participation.period(steps)
    block = max(BLOCK_SIZE // participation.epochs, 1)
    shifts = (np.arange(at, min(at + block, period)) for at in range(0, period, block))
    return max(
        int(_squares_of_shifts(heights, offsets, period, participation.epochs).max())
        for offsets in shifts
    )


def min_separation_squared(
    heights: Sequence[int], participation: MinSeparation
) -> tuple[int, bool]:
    """Return the greatest sum of squared counts, and whether it is attained.

    Where the search takes too long it is an upper bound, and attained if a regular pattern has it.
    """
    steps, separation = sum(1 << height for height in heights), participation.separation
    uses = participation.most(steps)
    above = _count_bound(heights, uses, separation)
    try:
        return _Patterns(separation).greatest(heights, uses), True
    except _TooMany:
        room = min(steps - (uses - 1) * separation, max(BLOCK_SIZE // uses, 1))
        attained = int(_squares_of_shifts(heights, np.arange(room), separation, uses).max())
        return above, attained == above


class _TooMany(Exception):
    """More splits than may be tried."""


class _Patterns:
    """Dynamic programming over complete subtrees, by patterns that no other one dominates.

    A pattern of uses in a subtree of 2^h leaves has a value, what its nodes add to the sum of
    squared counts, and an end, the first leaf after the subtree that may be used again, counted
    from 0 there.  Given the first leaf that may be used and the number of uses, it is dominated if
    another pattern has no later end and no lower value.
    """

    def __init__(self, separation: int) -> None:
        self.separation = separation  # the least distance of two uses, in steps
        self.splits = 0  # divisions that were tried so far
        # The undominated (end, value) pairs by the height, first usable leaf and number of uses.
        self.known: dict[tuple[int, int, int], list[tuple[int, int]]] = {}

    def greatest(self, heights: Sequence[int], max_uses: int) -> int:
        """Return the greatest value of at most ``max_uses`` uses in subtrees one after another."""
        # For each number of uses in the subtrees so far: the undominated pairs of end and value, an
        # end counted from the first leaf of the next subtree.
        so_far = {0: [(0, 0)]}
        for height in heights:
            ends: dict[int, list[tuple[int, int]]] = {}
            for uses, pairs in so_far.items():
                for start, value in pairs:
                    for further in range(min(max_uses - uses, self.room(height, start)) + 1):
                        ends.setdefault(uses + further, []).extend(
                            (end, value + added) for end, added in self.part(height, start, further)
                        )
            so_far = {uses: _undominated(pairs) for uses, pairs in ends.items()}
        return max(value for pairs in so_far.values() for _, value in pairs)

    def room(self, height: int, start: int) -> int:
        """Return how many uses fit into a subtree from leaf ``start`` on."""
        return max(-(-((1 << height) - start) // self.separation), 0)

    def part(self, height: int, start: int, uses: int) -> list[tuple[int, int]]:
        """Return the undominated (end, value) pairs of patterns with this number of uses."""
        size = 1 << height
        if uses == 0:
            return [(max(start - size, 0), 0)]
        if uses > self.room(height, start):
            return []
        if uses == 1:  # It adds 1 in height + 1 nodes; the first usable leaf has the earliest end.
            return [(max(start + self.separation - size, 0), height + 1)]
        key = height, start, uses
        if key not in self.known:
            self.known[key] = self._split(height - 1, start, uses)
        return self.known[key]

    def _split(self, height: int, start: int, uses: int) -> list[tuple[int, int]]:
        """Return the undominated pairs of a node above two subtrees of this height.

        The node itself has all uses below it, and adds their square.
        """
        pairs = []
        for left_uses in range(uses + 1):
            if left_uses > self.room(height, start):
                break
            for right_start, value in self.part(height, start, left_uses):
                self.splits += 1
                if self.splits > MAX_SPLITS:
                    raise _TooMany
                pairs += [
                    (end, value + added + uses * uses)
                    for end, added in self.part(height, right_start, uses - left_uses)
                ]
        return _undominated(pairs)


def _undominated(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the (end, value) pairs that no other pair dominates, by rising end and value."""
    undominated: list[tuple[int, int]] = []
    for end, value in sorted(pairs, key=lambda pair: (pair[0], -pair[1])):
        if not undominated or value > undominated[-1][1]:
            undominated.append((end, value))
    return undominated


def _count_bound(heights: Sequence[int], uses: int, separation: int) -> int:
    """Return an upper bound on the sum of squared counts of at most ``uses`` uses.

    Level by level, at most ``node_uses`` fit below one node.  Squares with a given sum of roots add
    up to most where nodes are full, one after another, and the last has the rest.
    """
    total = 0
    for level in range(max(heights) + 1):
        nodes = sum(1 << (height - level) for height in heights if height >= level)
        node_uses = min(-(-(1 << level) // separation), uses)
        level_uses = min(uses, nodes * node_uses)
        total += level_uses // node_uses * node_uses**2 + (level_uses % node_uses) ** 2
    return total


def _squares_of_shifts(
    heights: Sequence[int], shifts: NDArray[np.int64], period: int, uses: int
) -> NDArray[np.int64]:
    """Return the sums of squared counts of the patterns r, r + period, ..., for r in ``shifts``."""
    sizes = np.array([1 << height for height in heights])
    ends = np.cumsum(sizes)
    # A row for each use and a column for each pattern: the step, its subtree and its leaf there.
    at = period * np.arange(uses)[:, None] + shifts
    tree = np.searchsorted(ends, at, side="right")
    leaf = at - (ends - sizes)[tree]
    rows = np.arange(len(at))[:, None]
    total = np.zeros(shifts.size, dtype=np.int64)
    for level in range(max(heights) + 1):
        # The node on this level above each use, as one number: there are fewer than 2^32 leaves.
        node = (leaf >> level) + (tree << 32)
        # The row of the first use below the same node; the rank is how many uses came before there.
        begins = np.vstack(
            [np.zeros_like(shifts), np.where(np.diff(node, axis=0) != 0, rows[1:], 0)]
        )
        rank = rows - np.maximum.accumulate(begins, axis=0)
        # Ranks 0 to c - 1 below a node add 1 + 3 + ... + (2 c - 1) = c^2.
        total += np.where(np.array(heights)[tree] >= level, 2 * rank + 1, 0).sum(axis=0)
    return total
