"""The sensitivity of a strategy: how far one record moves all that it releases.

References: Denisov, McMahan, Rush, Smith & Thakurta (2022); Choquette-Choo et al. (2023).  Proofs:
`docs/proofs/correlated_noise.md`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from accountant.correlated_noise.binary_tree import BinaryTree
from accountant.correlated_noise.participation import (
    FixedEpochs,
    MinSeparation,
    Once,
    Participation,
)
from accountant.correlated_noise.tree_sensitivity import (
    fixed_epochs_squared,
    min_separation_squared,
)
from accountant.errors import ParameterError


@final
@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The greatest L2 norm of what one record moves, or a bound of it.

    Parameters
    ----------
    value : float
        The norm, rounded up, for contributions of norm at most 1 in each step.
    exact : bool
        Whether a pattern attains it; False for a certified upper bound.
    reason : str
        Why it is right, in words.
    squared : int, optional
        Its square, where that is known as a whole number.

    Examples
    --------
    >>> from accountant import BinaryTree, Once, sensitivity
    >>> found = sensitivity(BinaryTree(1600), Once())
    >>> found.exact, found.squared
    (True, 11)
    """

    value: float
    exact: bool
    reason: str
    squared: int | None = None

    def __float__(self) -> float:
        return self.value


def sensitivity(strategy: BinaryTree, participation: Participation) -> Sensitivity:
    """Return how far one record moves the rows of a strategy in all, in the L2 norm.

    Parameters
    ----------
    strategy : strategy
        What is released of the steps' sums, such as a `BinaryTree`.
    participation : Participation
        In which steps a record is used: `Once`, `MinSeparation` or `FixedEpochs`.

    Returns
    -------
    Sensitivity
        Rounded up, for contributions of norm at most 1 in each step; `exact` says whether a record
        can move the rows so far, and otherwise it is an upper bound.

    Raises
    ------
    ParameterError
        If the participation does not fit the steps.

    References
    ----------
    Denisov et al. (2022), Theorem 2.1; Kairouz et al. (2021), Appendix D, for trees.

    Examples
    --------
    >>> from accountant import BinaryTree, MinSeparation, sensitivity
    >>> sensitivity(BinaryTree(24), MinSeparation(participations=8, separation=3)).squared
    88
    """
    match participation:
        case Once():
            squared, exact = max(strategy.heights) + 1, True
        case FixedEpochs():
            squared, exact = fixed_epochs_squared(strategy.heights, participation), True
        case MinSeparation():
            squared, exact = min_separation_squared(strategy.heights, participation)
        case _:
            raise ParameterError("participation", participation, "Once, MinSeparation, FixedEpochs")
    reason = "counts of a record in the nodes" if exact else "fullest nodes on each level: a bound"
    return Sensitivity(_root_above(squared), exact, reason, squared)


def _root_above(squared: int) -> float:
    """Return the least float whose square is no less than a whole number."""
    root = math.sqrt(squared)
    return root if Fraction(root) ** 2 >= squared else math.nextafter(root, math.inf)
