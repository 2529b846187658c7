"""What still fits is just what fits."""

import pytest

from accountant import Budget, PureLoss, Repeat, Sequential
from accountant.planning.capacity import CAPACITY_CAP, remaining_capacity
from mechanisms import Gaussian, Laplace


@pytest.mark.parametrize(("scale", "most"), [(10.0, 6), (2.5, 1), (1.6, 0)])
def test_capacity_is_the_largest_count_that_fits(scale, most):
    assert remaining_capacity(Laplace(2.5), Laplace(scale), Budget(1.0)) == most
    budget = Budget(1.0, 1e-6)
    count = remaining_capacity(Gaussian(30.0), Gaussian(50.0), budget)
    assert budget.admits(Gaussian(30.0) + count * Gaussian(50.0))
    assert not budget.admits(Gaussian(30.0) + (count + 1) * Gaussian(50.0))


WITH_DELTA = Budget(2.0, 1e-6)


@pytest.mark.parametrize("budget", [WITH_DELTA, Budget(1.0, 1e-9), Budget(4.0)], ids=str)
@pytest.mark.parametrize("part", [Laplace(scale=20.0), Laplace(scale=3.0)], ids=str)
def test_so_many_more_fit_and_one_more_does_not(budget, part):
    plan = 10 * Laplace(scale=20.0) + 2 * Laplace(scale=30.0)
    found = remaining_capacity(plan, part, budget)
    assert not budget.admits(plan + Repeat(part, found + 1))
    assert found == 0 or budget.admits(plan + Repeat(part, found))


def test_ten_spends_of_a_tenth_fit_exactly():
    assert remaining_capacity(Sequential([PureLoss(0.1)]), PureLoss(0.1), Budget(1.0)) == 9
    assert (
        remaining_capacity(Sequential([PureLoss(0.1)]), PureLoss(1e-9), Budget(1.0)) == CAPACITY_CAP
    )
    assert remaining_capacity(20 * PureLoss(0.1), PureLoss(0.1), Budget(1.0)) == 0
