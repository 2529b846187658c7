"""Law: no accountant answers less than enumeration finds, and no answer grows with delta."""

import math

import pytest

from accountant import PLD, RDP, ZCDP, Advanced, Basic, PureLoss, Tight
from tests.accountant.enumeration import delta_by_enumeration

PLANS = [4 * PureLoss(1.0), PureLoss(1.5) + 2 * PureLoss(0.5)]
DELTAS = (1e-2, 1e-3)
every_accountant = pytest.mark.parametrize(
    "accountant", [Basic(), Advanced(), ZCDP(), RDP(), PLD(), Tight()], ids=lambda one: one.name
)


def losses_of(plan):
    """Every release of a plan as a loss of its own."""
    return [loss for loss, count in plan.losses() for _ in range(count)]


def epsilon_violation(accountant) -> str:
    """An epsilon that leaves more delta than was asked for, by enumeration."""
    for plan in PLANS:
        for delta in DELTAS:
            epsilon = accountant.epsilon(plan, delta)
            if math.isfinite(epsilon):
                left = delta_by_enumeration(losses_of(plan), epsilon)
                if left > delta * (1 + 1e-9):
                    return f"epsilon {epsilon} of {plan} leaves {left}, not {delta}"
    return ""


def delta_violation(accountant) -> str:
    """A delta below the one that enumeration finds."""
    for plan in PLANS:
        for epsilon in (0.5, 1.5, 3.0):
            found, truth = (
                accountant.delta(plan, epsilon),
                delta_by_enumeration(losses_of(plan), epsilon),
            )
            if not found >= truth * (1 - 1e-12) - 1e-15:
                return f"delta {found} of {plan} at {epsilon}, not {truth}"
    return ""


def order_violation(accountant) -> str:
    """An epsilon that falls where delta falls, or where more is released."""
    for plan in PLANS:
        found = [accountant.epsilon(plan, delta) for delta in (1e-2, 1e-4, 1e-6)]
        if found != sorted(found):
            return f"epsilons {found} of {plan} at smaller and smaller deltas"
        more = [accountant.epsilon(count * plan, 1e-3) for count in (1, 2, 5)]
        if more != sorted(more):
            return f"epsilons {more} of more and more of {plan}"
    return ""


@every_accountant
def test_enumeration_finds_no_greater_epsilon(accountant):
    assert epsilon_violation(accountant) == ""


@every_accountant
def test_enumeration_finds_no_greater_delta(accountant):
    assert delta_violation(accountant) == ""


@every_accountant
def test_less_delta_and_more_releases_are_never_cheaper(accountant):
    assert order_violation(accountant) == ""
