"""What a calibration aims at: an epsilon at a delta, or a rate of success of an attack.

Each goal is one cost of a plan, as an accountant measures it, that is not to exceed a target.  The
costs of attacks are the advantage, which is delta at an epsilon of 0, and how far the true-positive
rate of the best attack is above its false-positive rate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from accountant.accountants.attack_rates import RATE, true_positive_rate
from accountant.accountants.attack_rates import advantage as attack_advantage
from accountant.accountants.base import Accountant
from accountant.accountants.tight import Tight
from accountant.accountants.tradeoff_ends import RoughPower
from accountant.domains import DELTA, EPSILON, POSITIVE, POSITIVE_DELTA
from accountant.errors import ParameterError
from accountant.numerics.rounding import ULP
from accountant.plans.plan import Plan

HOW = "calibrate(..., epsilon=1.0, delta=1e-6), advantage=0.1, or tpr=0.05 with fpr=0.01"


@final
@dataclass(frozen=True, slots=True)
class Goal:
    """A cost that is not to exceed a target.

    ``argument`` is the caller's name of the target, and ``measure`` returns the cost of a plan.
    """

    argument: str
    target: float
    measure: Callable[[Plan], float]
    accountant: Accountant
    delta: float | None = None  # the delta at which epsilon is the cost; None for a rate
    rough: Callable[[Plan], float] | None = None  # about the same as the measure, and quicker


def epsilon_goal(target: float, delta: float, accountant: Accountant) -> Goal:
    """Return the goal of an epsilon at ``delta``."""
    target = POSITIVE.check("epsilon", target)
    return Goal("epsilon", target, lambda plan: accountant.epsilon(plan, delta), accountant, delta)


def goal_of(
    epsilon: float | None,
    delta: float,
    advantage: float | None,
    tpr: float | None,
    fpr: float | None,
    accountant: Accountant | None,
) -> Goal:
    """Return the one goal that was given, or raise `ParameterError`."""
    chosen_accountant = Tight() if accountant is None else accountant
    if not isinstance(chosen_accountant, Accountant):
        raise ParameterError("accountant", chosen_accountant, "an accountant, such as RDP()")
    goals = {"epsilon": epsilon, "advantage": advantage, "tpr": tpr}
    names = [name for name, value in goals.items() if value is not None]
    if len(names) != 1:
        raise ParameterError("epsilon", epsilon, f"the one goal, or another instead: {HOW}")
    if fpr is not None and tpr is None:
        raise ParameterError("fpr", fpr, "given beside a tpr")
    checked_delta = DELTA.check("delta", delta)
    if checked_delta and epsilon is None:
        raise ParameterError("delta", delta, f"left out: {names[0]} has no delta")
    if advantage is not None:
        return _variation_goal(
            "advantage", POSITIVE_DELTA.check("advantage", advantage), chosen_accountant
        )
    if tpr is not None:
        return _power_goal(tpr, fpr, chosen_accountant)
    target = EPSILON.check("epsilon", epsilon)
    if target > 0:
        return epsilon_goal(target, checked_delta, chosen_accountant)
    if checked_delta == 0:
        raise ParameterError("epsilon", epsilon, "above 0, or 0 with a delta above 0")
    return _variation_goal("delta", checked_delta, chosen_accountant)


def _variation_goal(argument: str, target: float, accountant: Accountant) -> Goal:
    """Return the goal of a total variation, which is the advantage and delta at epsilon 0."""
    if not isinstance(accountant, Tight):
        return Goal(argument, target, lambda plan: accountant.delta(plan, 0.0), accountant)
    if argument == "advantage":
        return Goal(argument, target, lambda plan: attack_advantage(plan).upper, accountant)

    def middle(plan: Plan) -> float:
        """Return the middle of the proved interval of the advantage: the quick estimate."""
        return sum(attack_advantage(plan)) / 2

    return Goal(
        argument, target, lambda plan: accountant.delta(plan, 0.0), accountant, rough=middle
    )


def _power_goal(tpr: object, fpr: object, accountant: Accountant) -> Goal:
    """Return the goal of a true-positive rate ``tpr`` at the false-positive rate ``fpr``."""
    if not isinstance(accountant, Tight):
        raise ParameterError("accountant", accountant, "left out where a tpr is the goal")
    if fpr is None:
        raise ParameterError("fpr", fpr, "given beside the tpr: tpr=0.05, fpr=0.01")
    level, power = RATE.check("fpr", fpr), RATE.check("tpr", tpr)
    if not level < power < 1:
        raise ParameterError("tpr", tpr, f"in (fpr, 1): guessing has {level:g} already")

    def excess(plan: Plan) -> float:
        """Return how far the best attack is above a guess, which has the rate ``level``."""
        tpr_upper = true_positive_rate(plan, level).upper
        # The rounding of the subtraction must not change on which side of the target it is.
        if tpr_upper > power:
            return (tpr_upper - level) * (1 + 4 * ULP)
        return min(tpr_upper - level, power - level)

    rough_power = RoughPower(level)
    return Goal(
        "tpr", power - level, excess, accountant, rough=lambda plan: rough_power(plan) - level
    )
