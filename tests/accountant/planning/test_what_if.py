"""What-if questions: more records, other deltas, groups, one more release."""

import math

import pytest

from accountant import (
    Budget,
    BudgetExceeded,
    Deviation,
    Grouped,
    ParameterError,
    PureLoss,
    Tight,
    Wanted,
    allocate,
    at_deltas,
    for_groups,
    one_more,
    records_needed,
    with_more_records,
)
from mechanisms import Gaussian, Laplace

BUDGET = Budget(1.0, 1e-6)


def mean(records, **given):
    return Wanted(Laplace, Deviation(), sensitivity=1 / records, **given)


def test_more_records():
    before = allocate([mean(100, weight=1.0), mean(50, weight=2.0)], BUDGET)
    after = allocate(with_more_records(before.releases, 10.0), BUDGET)
    assert after.errors == pytest.approx([e / 10 for e in before.errors], rel=1e-5)
    for release in (Wanted(Laplace(1.0)), Wanted(Laplace, Deviation(), weight=1.0)):
        with pytest.raises(ParameterError, match="given its sensitivity"):
            with_more_records([release], 2.0)
    with pytest.raises(ParameterError, match="factor"):
        with_more_records([mean(1, weight=1.0)], math.nan)


def test_other_deltas_groups_and_one_more():
    plan = 10 * Gaussian(20.0)
    costs = at_deltas(plan, [1e-9, 1e-5])
    assert costs == tuple((d, Tight().epsilon(plan, d)) for d in (1e-9, 1e-5))
    assert for_groups(plan, 1e-6, [1, 3])[1] == (3, Tight().epsilon(Grouped(plan, 3), 1e-6))
    # noise of a third of the size
    assert for_groups(plan, 1e-6, [3])[0][1] == pytest.approx(
        Tight().epsilon(10 * Gaussian(20.0 / 3), 1e-6), rel=1e-9
    )
    found = allocate([mean(10, weight=1.0)], BUDGET)
    more = one_more(found, mean(10, weight=1.0, name="another"))
    assert more.scales[0] == more.scales[1] > found.scales[0]
    with pytest.raises(BudgetExceeded):
        one_more(found, Wanted(PureLoss(2.0)))


@pytest.mark.parametrize("target", [1.0, 0.01, 3e-6])
def test_the_records_an_error_needs(target):
    found = records_needed([mean(100, weight=1.0)], BUDGET, 0, target, 100)
    # the error is the deviation of Laplace noise of scale 1 / (n epsilon), nearly
    exact = allocate([mean(1, weight=1.0)], BUDGET).errors[0] / target
    assert found.error <= target
    assert found.records == pytest.approx(max(exact, 1), rel=2e-6, abs=1.0)
    assert found.lower is None
    assert str(found).startswith(f"{found.records:,} records suffice")


def test_a_lower_bound_is_printed_with_the_count():
    found = records_needed([mean(1, weight=1.0)], BUDGET, 0, 0.1, 1, lambda error, budget: 7)
    assert found.lower == 7 <= found.records
    assert str(found).endswith("no private algorithm has it with fewer than 7")
    with pytest.raises(ParameterError, match="which"):
        records_needed([mean(1, weight=1.0)], BUDGET, 1, 0.1, 1)
    with pytest.raises(ParameterError, match="target"):
        records_needed([mean(1, weight=1.0)], BUDGET, 0, 1e-200, 1)


@pytest.mark.parametrize("bad", [None, 3, "mean", ["mean"], []], ids=repr)
def test_what_is_no_list_of_releases_is_refused(bad):
    with pytest.raises(ParameterError, match="releases must be"):
        with_more_records(bad, 2.0)
    with pytest.raises(ParameterError, match="releases must be"):
        records_needed(bad, BUDGET, 0, 1.0, 1)
    with pytest.raises(ParameterError, match="found must be an Allocation"):
        one_more(bad, mean(1, weight=1.0))


def test_records_at_which_a_target_breaks_the_budget_are_too_few():
    def requests(records):
        return [mean(records, weight=1.0), mean(records, target=0.005)]

    budget = Budget(1.0)
    with pytest.raises(BudgetExceeded):
        allocate(requests(100), budget)
    found = records_needed(requests(100), budget, 0, 0.01, 100)
    assert found == records_needed(requests(1000), budget, 0, 0.01, 1000)
    assert found.error <= 0.01
    fixed = Wanted(Laplace, scale=1e-9, sensitivity=1e9)
    with pytest.raises(BudgetExceeded):
        records_needed([*requests(100), fixed], budget, 0, 1.0, 2**45)
