"""The binary tree of partial sums, restarted or not.

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
from accountant.correlated_noise.tree_sensitivity import (
    fixed_epochs_squared,
    min_separation_squared,
)
from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.plans.declared_releases import plan_field


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
        """None, but for one step alone: nodes are more than steps."""
        return 1 if self.rows == self.columns else None

    @property
    def is_invertible(self) -> bool:
        """True: the leaves are released."""
        return True

    @property
    def log_volume(self) -> float:
        """Half the logarithm of the determinant, one level after another."""
        # Let M be C^T C of a complete tree, (1) for one leaf, w = 1^T M^-1 1, and M', w' the same
        # one level higher: M' = diag(M, M) + 1 1^T has det M' = (det M)^2 (1 + 2 w), and
        # w' = 2 w / (1 + 2 w).
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
    # Upwards: the mean of a node and of its children's sum, weighted by inverse variances.
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
