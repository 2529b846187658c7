"""Participation: in which steps of a training run one record may be used.

The sensitivity of a matrix mechanism, which adds correlated noise to the sums of n steps, depends
on it: it is the greatest change by one record over all sets of steps that are admitted here.

References: Choquette-Choo, McMahan, Rush & Thakurta (2023), "Multi-epoch matrix factorization
mechanisms for private machine learning", Section 2; Choquette-Choo et al. (2023), "(Amplified)
banded matrix factorization", Definition 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from accountant.domains import IntegerRange
from accountant.errors import ParameterError
from accountant.plans.declared_releases import PlanField, plan_field

COUNT = IntegerRange(1, 10**9)  # the values of numbers of uses, of a separation, and of epochs


class Participation(PlanField):
    """The steps in which one record may be used: `Once`, `MinSeparation` or `FixedEpochs`.

    In each of these steps the record changes the step's sum by a vector of norm at most 1; in the
    others it changes nothing.

    Examples
    --------
    >>> from accountant import Once
    >>> from accountant.correlated_noise.participation import Participation
    >>> isinstance(Once(), Participation)
    True
    """

    __slots__ = ()


@plan_field
@final
@dataclass(frozen=True, slots=True)
class Once(Participation):
    """A record is used in at most one step, and that may be any step.

    Examples
    --------
    >>> from accountant import BinaryTree, Once, sensitivity
    >>> sensitivity(BinaryTree(8), Once()).value  # a leaf and the three nodes above it
    2.0
    """


@plan_field
@final
@dataclass(frozen=True, slots=True)
class MinSeparation(Participation):
    """A record is used in at most ``participations`` steps, any two ``separation`` or more apart.

    Steps i < j are ``j - i`` apart, so a separation of 1 allows uses in any steps.  TensorFlow
    Privacy counts the steps between two uses instead, which is one less.

    Parameters
    ----------
    participations : int
        Largest number of steps that use a record, at least 1.
    separation : int
        Smallest distance of two such steps, at least 1.

    References
    ----------
    Choquette-Choo et al. (2023), "(Amplified) banded matrix factorization", Definition 1.

    Examples
    --------
    >>> from accountant import BinaryTree, MinSeparation, sensitivity
    >>> sensitivity(BinaryTree(9), MinSeparation(participations=3, separation=4)).squared
    11
    """

    participations: int
    separation: int

    def __post_init__(self) -> None:
        for name in ("participations", "separation"):
            object.__setattr__(self, name, COUNT.check(name, getattr(self, name)))

    def most(self, steps: int) -> int:
        """Return how many times a run of this length can use a record: k or ceil(steps / b).

        Here k is ``participations`` and b is ``separation``: uses in steps 1, 1 + b, 1 + 2 b, ...
        fit as often as possible.

        Parameters
        ----------
        steps : int
            Number of steps of the run.

        Returns
        -------
        int
            The smaller of the two numbers.
        """
        return min(self.participations, -(-steps // self.separation))


@plan_field
@final
@dataclass(frozen=True, slots=True)
class FixedEpochs(Participation):
    """Every epoch uses a record once, in the same place: steps r, r + n / k, r + 2 n / k, ...

    Here n is the number of steps of the run, k the number of epochs, and r is any step of the
    first epoch.

    Parameters
    ----------
    epochs : int
        Number of epochs k, at least 1; it must divide n.

    References
    ----------
    Choquette-Choo, McMahan, Rush & Thakurta (2023), Section 2.

    Examples
    --------
    >>> from accountant import BinaryTree, FixedEpochs, sensitivity
    >>> sensitivity(BinaryTree(8), FixedEpochs(epochs=2)).squared  # steps 0 and 4, or others
    10
    """

    epochs: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "epochs", COUNT.check("epochs", self.epochs))

    def period(self, steps: int) -> int:
        """Return the number of steps in one epoch, n / k.

        Parameters
        ----------
        steps : int
            Number of steps of the run, n.

        Returns
        -------
        int
            The distance of two uses of a record.

        Raises
        ------
        ParameterError
            If the epochs do not divide the steps.
        """
        if steps % self.epochs:
            fits = f"a divisor of the {steps} steps"
            bound = f"MinSeparation({self.epochs}, {max(steps // self.epochs, 1)}) allows more"
            raise ParameterError("epochs", self.epochs, f"{fits}; {bound}")
        return steps // self.epochs
