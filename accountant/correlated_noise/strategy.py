"""Strategies: the matrices of a matrix mechanism, and how far a record moves what they release.

The mechanism adds noise to C x, where row i of x is the sum of what all records add in step i of a
run.  Who knows C recovers the steps from the released rows, with noise that is correlated between
steps.  The privacy cost follows from the sensitivity of the strategy C: how far one record moves
C x, in the L2 norm.

References: Li, Miklau, Hay, McGregor & Rastogi (2015); Denisov, McMahan, Rush, Smith & Thakurta
(2022); Choquette-Choo et al. (2023).  Proofs: `docs/proofs/correlated_noise.md`.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from accountant.correlated_noise.participation import Participation
from accountant.domains import IntegerRange
from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.numerics.rounding import round_up
from accountant.plans.declared_releases import PlanField, is_plan_field

MAX_STEPS = 10**7  # most steps of a run: vectors have 80 MB
STEPS = IntegerRange(1, MAX_STEPS)
MAX_ENTRIES = 1 << 24  # most entries of a matrix that is in memory as a whole: 128 MB
SHOWN_ENTRIES = 64  # most entries of a matrix whose `repr` shows them
LEAST_ENTRY = 1e-100  # least value of a matrix's largest entry, whose square is far from underflow
EXACT_SUM = 2.0**53  # whole numbers up to here are exact floats
Entrywise = Callable[[Array], Array]  # a function of each entry of an array, with 0 at 0


@final
@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The greatest L2 norm of what one record moves, or a bound of it.

    Parameters
    ----------
    value : float
        The norm, rounded up, where a record moves each step by a vector of norm at most 1.
    exact : bool
        Whether a record attains it, up to round-off; False for a certified upper bound.
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


class Strategy(PlanField, ABC):
    """A matrix C with a column for each step: a mechanism releases C x plus noise.

    Row i of x is the sum of what all records add in step i.

    Examples
    --------
    >>> from accountant import Toeplitz
    >>> from accountant.correlated_noise.strategy import Strategy
    >>> one = Toeplitz((1.0, 0.5), steps=3)
    >>> isinstance(one, Strategy), one.times([1.0, 0.0, 2.0]).tolist()
    (True, [1.0, 0.5, 2.0])
    """

    __slots__ = ()

    @property
    @abstractmethod
    def columns(self) -> int:
        """The number of steps, one for each column."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """The number of rows, each of which is released."""

    @property
    @abstractmethod
    def largest_entry(self) -> float:
        """The greatest absolute value of an entry."""

    @property
    @abstractmethod
    def bands(self) -> int | None:
        """The rows, from a step's own on, that the step can reach; None if it reaches others."""

    @property
    @abstractmethod
    def is_invertible(self) -> bool:
        """Whether the rows determine what each step added."""

    @property
    @abstractmethod
    def log_volume(self) -> float:
        """Half the logarithm of the determinant of ``C^T C``."""

    @abstractmethod
    def sensitivity_under(self, participation: Participation) -> Sensitivity:
        """Return how far one record moves all rows, in the L2 norm.

        Parameters
        ----------
        participation : Participation
            In which steps a record is used.

        Returns
        -------
        Sensitivity
            Rounded up.
        """

    @abstractmethod
    def times(self, steps: Array, entrywise: Entrywise | None = None) -> Array:
        """Return C times an array with a row for each step.

        Parameters
        ----------
        steps : array_like
            What each step added: a number or a vector.
        entrywise : callable, optional
            Is applied to every entry of C before; it maps 0 to 0.

        Returns
        -------
        numpy.ndarray
            To round-off; exact where all sums are whole numbers below 2^53.
        """

    @abstractmethod
    def recovered(self, rows: Array) -> Array:
        """Return the steps whose rows are nearest to the given ones.

        Parameters
        ----------
        rows : array_like
            A number or a vector for each row of C.

        Returns
        -------
        numpy.ndarray
            One for each step, of least squares: the inverse where C is square.
        """

    @abstractmethod
    def rounded(self, bits: int) -> Strategy:
        """Return the strategy with entries rounded to multiples of 2^-bits.

        Parameters
        ----------
        bits : int
            Binary digits behind the point.

        Returns
        -------
        Strategy
            Each entry is the nearest multiple.
        """


def root_above(squared: int) -> float:
    """Return the least float whose square is no less than a whole number."""
    root = math.sqrt(squared)
    return root if Fraction(root) ** 2 >= squared else math.nextafter(root, math.inf)


def certified_root(squared: float, integral: bool, ulps: float) -> tuple[float, int | None]:
    """Return the root of a sum of squares, rounded up, and the sum where it is a whole number.

    ``integral`` says that all numbers in it are integers.  Else the sum is right to ``ulps`` ulps,
    and its root to half of them; 4 more ulps are for the root's own rounding.
    """
    if integral and squared < EXACT_SUM:
        return root_above(int(squared)), int(squared)
    return round_up(math.sqrt(squared), ulps / 2 + 4), None


def sensitivity(strategy: Strategy, participation: Participation) -> Sensitivity:
    """Return how far one record moves the rows of a strategy in all, in the L2 norm.

    Parameters
    ----------
    strategy : Strategy
        `StrategyMatrix`, `BandedMatrix`, `Toeplitz`, `BufferedToeplitz` or `BinaryTree`.
    participation : Participation
        In which steps a record is used: `Once`, `MinSeparation` or `FixedEpochs`.

    Returns
    -------
    Sensitivity
        Rounded up, where a record moves each step by a vector of norm at most 1; its ``exact`` says
        whether a record can move the rows so far, and otherwise it is an upper bound.

    Raises
    ------
    ParameterError
        If the participation does not fit the steps.

    References
    ----------
    Denisov et al. (2022), Theorem 2.1; Kairouz et al. (2021), Appendix D, for trees; Kalinin &
    Lampert (2024), Theorem 2, for Toeplitz matrices.

    Examples
    --------
    >>> from accountant import BinaryTree, MinSeparation, sensitivity
    >>> sensitivity(BinaryTree(24), MinSeparation(participations=8, separation=3)).squared
    88
    """
    if not isinstance(strategy, Strategy) or not is_plan_field(strategy):
        raise ParameterError("strategy", strategy, "a strategy, such as BinaryTree(steps)")
    if not isinstance(participation, Participation) or not is_plan_field(participation):
        allowed = "Once(), MinSeparation(participations, separation) or FixedEpochs(epochs)"
        raise ParameterError("participation", participation, allowed)
    return _sensitivity_of(strategy, participation)


@functools.lru_cache(maxsize=64)
def _sensitivity_of(strategy: Strategy, participation: Participation) -> Sensitivity:
    return strategy.sensitivity_under(participation)
