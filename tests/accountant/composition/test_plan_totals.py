"""Facts that add up over a plan, in one direction or in the worse of every loss."""

import pytest

from accountant import ApproxLoss, PairLoss, Parallel, PureLoss
from accountant.composition.plan_totals import infinity_mass

ONE = PairLoss((0.99, 0.01), (1.0, 0.0))
OTHER = ONE.reversed


def test_mass_at_infinity_in_one_direction_and_in_the_worse_of_each():
    plan = ONE + 2 * OTHER
    assert infinity_mass(plan) == pytest.approx(0.01, rel=1e-12)
    assert infinity_mass(plan.reversed) == pytest.approx(1 - 0.99**2, rel=1e-12)
    assert infinity_mass(plan, worse_direction=True) == pytest.approx(1 - 0.99**3, rel=1e-12)


def test_a_user_of_parallel_parts_pays_for_one():
    plan = 2 * Parallel([3 * ONE, PureLoss(1.0), ONE])
    assert infinity_mass(plan) == pytest.approx(1 - 0.99**6, rel=1e-12)
    assert infinity_mass(plan) >= 1 - 0.99**6
    everything = PairLoss((1.0, 0.0), (0.0, 1.0))
    assert infinity_mass(ONE + everything) >= 1.0


def test_a_mass_at_infinity_is_no_more_than_1():
    assert infinity_mass(60 * ApproxLoss(1.0, 0.5)) == 1.0
