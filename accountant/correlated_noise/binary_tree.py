"""The binary tree of partial sums, restarted or not.

References: Dwork, Naor, Pitassi & Rothblum (2010); Chan, Shi & Song (2011); Kairouz et al. (2021),
"Practical and private (deep) learning without sampling or shuffling", Appendix D.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from accountant.domains import IntegerRange
from accountant.errors import ParameterError

MAX_STEPS = 10**7
STEPS = IntegerRange(1, MAX_STEPS)


@final
@dataclass(frozen=True, slots=True)
class BinaryTree:
    """Sums of steps in a binary tree: every node that is complete by the last step is released.

    ``BinaryTree(6)`` has the nodes of a tree of 4 leaves and of one of 2.  ``BinaryTree((6, 6))``
    restarts: the last six steps are in a tree of their own.

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
    >>> sensitivity(BinaryTree(1600), Once()).squared
    11
    """

    trees: tuple[int, ...]

    def __init__(self, steps: int | Sequence[int]) -> None:
        several = steps if isinstance(steps, (tuple, list)) else (steps,)
        trees = tuple(STEPS.check("steps", one) for one in several)
        if not 0 < sum(trees) <= MAX_STEPS:
            raise ParameterError("steps", steps, f"one to {MAX_STEPS:,} steps in all")
        object.__setattr__(self, "trees", trees)

    @property
    def steps(self) -> int:
        """The steps of all trees."""
        return sum(self.trees)

    @property
    def heights(self) -> tuple[int, ...]:
        """The complete subtrees from the first step on: one of height h has 2^h leaves."""
        return tuple(
            height
            for steps in self.trees
            for height in reversed(range(steps.bit_length()))
            if steps >> height & 1
        )
