"""A budget names its numbers, and ten tenths are one."""

import itertools

import pytest

from accountant import Basic, Budget, BudgetExceeded, ParameterError, PureLoss


def test_budget_names_all_three_numbers():
    with pytest.raises(
        BudgetExceeded, match=r"needs epsilon 2, and 1 is left of the limit 1 "
    ) as caught:
        Budget(1.0, 1e-6).check(2 * PureLoss(1.0))
    assert caught.value.asked == pytest.approx(2.0, rel=1e-3)
    assert Budget(2.0).check(PureLoss(1.5)) == 1.5
    for bad in itertools.product([0, -1, float("nan"), True], [0.0]):
        with pytest.raises(ParameterError):
            Budget(*bad)


def test_ten_times_a_tenth_is_one():
    assert Basic().epsilon(10 * PureLoss(0.1), 0.0) == 1.0
    assert Budget(1.0).admits(10 * PureLoss(0.1))
    assert not Budget(1.0).admits(11 * PureLoss(0.1))
    # the tolerance of round-off is a billionth of the budget
    assert Budget(1.0).admits(10 * PureLoss(0.1) + PureLoss(0.9e-9))
    assert not Budget(1.0).admits(10 * PureLoss(0.1) + PureLoss(1.1e-9))
