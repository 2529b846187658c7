"""Participation: in which steps of a run one record may be used.

References: Choquette-Choo, McMahan, Rush & Thakurta (2023), "Multi-epoch matrix factorization
mechanisms for private machine learning", Section 2; Choquette-Choo et al. (2023), "(Amplified)
banded matrix factorization", Definition 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from accountant.domains import IntegerRange
from accountant.errors import ParameterError
from accountant.plans.plan_fields import PlanField, plan_field

COUNT = IntegerRange(1, 10**9)


class Participation(PlanField):
    """The steps in which one record may be used; in each it moves the sum by a vector.

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
    """A record is used in at most one step, whichever it is.

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

    Steps i < j are ``j - i`` apart, so 1 allows every step.  TensorFlow Privacy counts the steps
    between two uses instead, which is one less.

    Parameters
    ----------
    participations : int
        Most steps that use a record, at least 1.
    separation : int
        Least distance of two such steps, at least 1.

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
        """Return the most uses that fit into a run.

        Parameters
        ----------
        steps : int
            Of the run.

        Returns
        -------
        int
            At most ``participations``.
        """
        return min(self.participations, -(-steps // self.separation))


@plan_field
@final
@dataclass(frozen=True, slots=True)
class FixedEpochs(Participation):
    """Every epoch uses a record once, in the same place: steps r, r + n / k, r + 2 n / k, ...

    Parameters
    ----------
    epochs : int
        Epochs k, at least 1; they divide the number n of steps.

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
        """Return the steps of one epoch.

        Parameters
        ----------
        steps : int
            Of the run.

        Returns
        -------
        int
            The steps over the epochs.

        Raises
        ------
        ParameterError
            If that is no whole number.
        """
        if steps % self.epochs:
            fits = f"a divisor of the {steps} steps"
            bound = f"MinSeparation({self.epochs}, {max(steps // self.epochs, 1)}) allows more"
            raise ParameterError("epochs", self.epochs, f"{fits}; {bound}")
        return steps // self.epochs
