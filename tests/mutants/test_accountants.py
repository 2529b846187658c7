"""Wrong accountants, each caught by the law of enumeration."""

import math

import pytest

from accountant import PLD, RDP, ZCDP, Advanced, Basic, PureLoss, Sequential
from tests.accountant.accountants import test_accountants as laws


class CountForgotten(PLD):
    """Composes every loss once, whatever its count."""

    def one_way_epsilon(self, plan, delta):
        return super().one_way_epsilon(Sequential([loss for loss, _ in plan.losses()]), delta)


class ConversionWithoutPenalty(RDP):
    """Takes the best divergence for epsilon and forgets what delta costs."""

    def one_way_epsilon(self, plan, delta):
        return super().one_way_epsilon(plan, 0.99)


class HalfTheRho(ZCDP):
    """Bounded range for everything."""

    def rho(self, plan):
        return super().rho(plan) / 8


class DeltaSpentTwice(Basic):
    """Gives every release the whole delta."""

    def one_way_epsilon(self, plan, delta):
        return sum(count * loss.epsilon_at(delta) for loss, count in plan.losses())


class DriftForgotten(Advanced):
    """Square-root composition without its drift, of a tenth of the losses."""

    def one_way_epsilon(self, plan, delta):
        square = sum(count * loss.max_loss**2 for loss, count in plan.losses())
        return math.sqrt(2 * math.log(1 / delta) * square) / 10


MUTANTS = [CountForgotten, ConversionWithoutPenalty, HalfTheRho, DeltaSpentTwice, DriftForgotten]
PLANS = [4 * PureLoss(1.0), PureLoss(1.5) + 2 * PureLoss(0.5)]


def unsafe(accountant):
    """Whether some epsilon leaves more delta than was asked for, by enumeration."""
    for plan in PLANS:
        atoms = [loss for loss, count in plan.losses() for _ in range(count)]
        for delta in (1e-2, 1e-3):
            epsilon = accountant.epsilon(plan, delta)
            if math.isfinite(epsilon) and laws.delta_by_enumeration(atoms, epsilon) > delta * (
                1 + 1e-9
            ):
                return True
    return False


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda cls: cls.__name__)
def test_enumeration_catches_the_accountant(mutant):
    assert unsafe(mutant())
    assert not unsafe(mutant.__mro__[1]())
