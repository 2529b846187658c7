"""The binary tree of partial sums, restarted or not, and how far one record moves its nodes.

The steps of a run are the leaves of complete subtrees, from left to right; ``heights`` has their
heights, and one of height h has 2^h leaves.  Every node has the sum of the steps below it.  The
steps in which a record is used are a pattern of uses.  A record that adds the same unit vector in
all of them moves every node by its count, the number of uses below it, and no other contributions
of norm at most 1 move a node further.  So the greatest squared norm of a move is the greatest sum
of squared counts over the patterns that are allowed (docs/proofs/correlated_noise.md).

References: Dwork, Naor, Pitassi & Rothblum (2010); Chan, Shi & Song (2011); Kairouz et al. (2021),
"Practical and private (deep) learning without sampling or shuffling", Appendix D; Hay, Rastogi,
Miklau & Suciu (2010) for least squares.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from accountant.correlated_noise.participation import (
    FixedEpochs,
    MinSeparation,
    Participation,
)
from accountant.correlated_noise.strategy import (
    MAX_STEPS,
    STEPS,
    Entrywise,
    Sensitivity,
    Strategy,
    root_above,
)
from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.plans.declared_releases import plan_field

# The most divisions of uses between two subtrees that are tried, which takes about a second.  With
# more of them an upper bound is returned.
MAX_SPLITS = 300_000
BLOCK_SIZE = 1 << 22  # uses in all patterns that are in memory together: 32 MB


@plan_field
@final
@dataclass(frozen=True, slots=True)
class BinaryTree(Strategy):
    """Sums of steps in a binary tree: every node that is complete by the last step is released.

    ``BinaryTree(6)`` has the nodes of a tree of 4 leaves and of one of 2.  ``BinaryTree((6, 6))``
    restarts: the last six steps are in a tree of their own.  The rows of one complete subtree
    after the other are its leaves, then their pairs, up to its root.

    Parameters
    ----------
    steps : int or sequence of int
        Steps, or those of each tree where the tree is restarted.

    References
    ----------
    Kairouz et al. (2021), Appendix D.

    Examples
    --------
    >>> from accountant import BinaryTree, Once, sensitivity
    >>> BinaryTree(6).heights, BinaryTree((6, 3)).heights
    ((2, 1), (2, 1, 1, 0))
    >>> BinaryTree(3).times([5.0, 7.0, 9.0]).tolist()
    [5.0, 7.0, 12.0, 9.0]
    >>> sensitivity(BinaryTree(1600), Once()).squared
    11
    """

    steps: int | tuple[int, ...]

    def __init__(self, steps: int | Sequence[int]) -> None:
        several = steps if isinstance(steps, (tuple, list)) else (steps,)
        try:
            trees = tuple(STEPS.check("steps", tree_steps) for tree_steps in several)
        except ParameterError:
            raise ParameterError("steps", steps, f"{STEPS}, or several of them") from None
        if not 0 < sum(trees) <= MAX_STEPS:
            raise ParameterError("steps", steps, f"1 to {MAX_STEPS:,} steps in all")
        object.__setattr__(self, "steps", trees if len(trees) > 1 else trees[0])

    @property
    def trees(self) -> tuple[int, ...]:
        """The steps of each tree."""
        return self.steps if isinstance(self.steps, tuple) else (self.steps,)

    @property
    def heights(self) -> tuple[int, ...]:
        """The complete subtrees from the first step on: one of height h has 2^h leaves."""
        return tuple(
            height
            for steps in self.trees
            for height in reversed(range(steps.bit_length()))
            if steps >> height & 1
        )

    @property
    def columns(self) -> int:
        """The steps of all trees."""
        return sum(self.trees)

    @property
    def rows(self) -> int:
        """The nodes of all complete subtrees."""
        return sum((2 << height) - 1 for height in self.heights)

    @property
    def largest_entry(self) -> float:
        """1: a node is the sum of the steps below it."""
        return 1.0

    @property
    def bands(self) -> int | None:
        """1 for trees of one step each, which have a node for each step; else None."""
        return 1 if self.rows == self.columns else None

    @property
    def is_invertible(self) -> bool:
        """True: the leaves are released."""
        return True

    @property
    def log_volume(self) -> float:
        """Half the logarithm of the determinant, one level after another."""
        # Let M be C^T C of a complete tree, which is (1) for one leaf, and w = 1^T M^-1 1, with 1
        # the vector of ones.  One level higher, M' = diag(M, M) + 1 1^T has the determinant
        # det M' = (det M)^2 (1 + 2 w), and w' = 2 w / (1 + 2 w).
        total = 0.0
        for height in self.heights:
            inverse_sum, log_det = 1.0, 0.0
            for _ in range(height):
                log_det = 2 * log_det + math.log1p(2 * inverse_sum)
                inverse_sum = 2 * inverse_sum / (1 + 2 * inverse_sum)
            total += log_det / 2
        return total

    def sensitivity_under(self, participation: Participation) -> Sensitivity:
        """Return how far one record moves all nodes: its counts below them."""
        reason = "the counts of a record below the nodes"
        match participation:
            case FixedEpochs():
                squared, exact = fixed_epochs_squared(self.heights, participation), True
            case MinSeparation():
                squared, exact = min_separation_squared(self.heights, participation)
                reason = reason if exact else "nodes of each level as full as they can be: a bound"
            case _:
                squared, exact = max(self.heights) + 1, True
        return Sensitivity(root_above(squared), exact, reason, squared)

    def times(self, steps: Array, entrywise: Entrywise | None = None) -> Array:
        """Return the sum of every node, of subtrees one after another, leaves first."""
        values = np.asarray(steps, dtype=float)
        entry = 1.0 if entrywise is None else float(entrywise(np.ones(1))[0])
        node_sums, start = [], 0
        for height in self.heights:
            level = values[start : start + (1 << height)]
            for _ in range(height + 1):
                node_sums.append(entry * level)
                level = level[0::2] + level[1::2] if len(level) > 1 else level
            start += 1 << height
        return np.concatenate(node_sums)

    def recovered(self, rows: Array) -> Array:
        """Return the leaves of least squares, by one pass up and one down each subtree."""
        values = np.asarray(rows, dtype=float)
        leaves, start = [], 0
        for height in self.heights:
            size = (2 << height) - 1
            leaves.append(_leaves_of_least_squares(values[start : start + size], height))
            start += size
        return np.concatenate(leaves)

    def rounded(self, bits: int) -> BinaryTree:
        """Return the tree itself: its entries are 0 and 1."""
        del bits
        return self


def _leaves_of_least_squares(nodes: Array, height: int) -> Array:
    """Return the leaves of one complete tree whose sums are nearest to its nodes."""
    levels, start = [], 0
    for level in range(height + 1):
        levels.append(nodes[start : start + (1 << (height - level))])
        start += 1 << (height - level)
    # Upwards: the mean of a node and of its children's sum, weighted by inverse variances.  A node
    # on level l has, with noise of variance 1 in all nodes, 2^l / (2^{l+1} - 1) in the mean.
    best = [levels[0]]
    for level in range(1, height + 1):
        node_weight, child_weight = (2 << level) - 1, 1 << level
        below = best[-1][0::2] + best[-1][1::2]
        best.append((child_weight * levels[level] + (child_weight - 1) * below) / node_weight)
    # Downwards: two children share equally by how much their parent exceeds their sum.
    final = best[height]
    for level in reversed(range(height)):
        missing = (final - best[level][0::2] - best[level][1::2]) / 2
        final = best[level] + np.repeat(missing, 2, axis=0)
    return final


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
        self.undominated_pairs: dict[tuple[int, int, int], list[tuple[int, int]]] = {}

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
        if key not in self.undominated_pairs:
            self.undominated_pairs[key] = self._split(height - 1, start, uses)
        return self.undominated_pairs[key]

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
