"""Budgets: the epsilon and delta that may be spent, and whether a plan fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from accountant.accountants.tight import Tight
from accountant.domains import DELTA, POSITIVE
from accountant.errors import BudgetExceeded, ParameterError
from accountant.plans.plan import Plan
from dp_attest.calls import TeachingClass

# Relative excess of a total over a budget that is allowed for round-off, as three times 1/3 may
# have.  It is allowed for the total once, so it does not add up: beyond the budget it admits no
# release whose epsilon is above 1e-9 of the budget's.
TOLERANCE = 1e-9


@final
@dataclass(frozen=True, slots=True)
class Budget(metaclass=TeachingClass):
    """An (epsilon, delta) that must not be exceeded; a relative 1e-9 is allowed for round-off.

    Parameters
    ----------
    epsilon : float
        Above 0, finite.
    delta : float
        In [0, 1); 0 is pure.

    Examples
    --------
    >>> from accountant import Budget, PureLoss
    >>> Budget(1.0).admits(10 * PureLoss(0.1))
    True
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", POSITIVE.check("epsilon", self.epsilon))
        object.__setattr__(self, "delta", _checked_delta(self.epsilon, self.delta))

    @property
    def admitted_epsilon(self) -> float:
        """The largest total that fits: epsilon and `TOLERANCE` of it for round-off."""
        return self.epsilon * (1 + TOLERANCE)

    def admits(self, plan: Plan) -> bool:
        """Return whether a plan costs at most the budget.

        Parameters
        ----------
        plan : Plan
            A plan, a loss or a mechanism.

        Returns
        -------
        bool
            True if the bound of `Tight` on its epsilon, at the budget's delta, is within epsilon.
        """
        return Tight().epsilon(plan, self.delta) <= self.admitted_epsilon

    def check(self, plan: Plan) -> float:
        """Return the epsilon of a plan at the budget's delta, or refuse the plan.

        Parameters
        ----------
        plan : Plan
            A plan, a loss or a mechanism.

        Returns
        -------
        float
            Rounded up.

        Raises
        ------
        BudgetExceeded
            If it is more than the budget has.
        """
        epsilon_upper = Tight().epsilon(plan, self.delta)
        if not epsilon_upper <= self.admitted_epsilon:
            remedy = "more noise fits, which calibrate finds, or fewer releases"
            raise BudgetExceeded(0.0, epsilon_upper, self, limit=self.epsilon, remedy=remedy)
        return epsilon_upper


def _checked_delta(epsilon: float, delta: float) -> float:
    """The delta; one that looks like an epsilon is refused with the remedy."""
    try:
        return DELTA.check("delta", delta)
    except ParameterError as error:
        if isinstance(delta, bool) or not isinstance(delta, int | float):
            raise
        if epsilon not in DELTA or delta not in POSITIVE:
            raise
        swapped = f"Budget({delta!r}, {epsilon!r})"
        raise ParameterError("delta", delta, f"{error.allowed}; {swapped} if swapped") from None
