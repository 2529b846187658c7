"""Totals: many repetitions at once cost what they cost one by one."""

import decimal

import pytest

from accountant import Budget, Parallel, PureLoss, Repeat
from accountant.ledger.composition_notions import notion_of
from mechanisms import Gaussian, Laplace


@pytest.mark.parametrize("notion", ["pure", "zcdp", "rdp", "gdp"])
def test_repetitions_at_once_cost_what_they_cost_one_by_one(notion):
    adding = notion_of(notion, Budget(8.0, 1e-6))
    one = Laplace(10.0) if notion == "pure" else Gaussian(30.0)
    least = Laplace(100.0) if notion == "pure" else Gaussian(300.0)
    for plan in (one, Parallel([one, least], by="index")):
        single = adding.zero
        for _ in range(37):
            single = adding.after(single, plan)
        whole = adding.after(adding.zero, Repeat(plan, 37))
        assert float(whole.spent) == pytest.approx(float(single.spent), rel=1e-13)
        if notion == "pure":
            assert whole == single


@pytest.mark.parametrize(
    ("spent", "cost", "count"),
    [
        # 1.000000001 less spent is 0.1 less 1e-30, which 28 digits round to 0.1.
        ([0.900000001, 1e-30], 0.1, 0),
        ([], 3e-30, 333333333666666666666666666666),
        ([0.1], 0.3, 3),
    ],
)
def test_so_many_pure_releases_fit_exactly(spent, cost, count):
    adding = notion_of("pure", Budget(1.0))
    total = adding.zero
    for epsilon in spent:
        total = adding.after(total, PureLoss(epsilon))
    release = adding.cost(PureLoss(cost))
    assert adding.how_often(release, total) == count
    assert not adding.exceeds(adding.add(total, adding.times(release, count)))
    assert adding.exceeds(adding.add(total, adding.times(release, count + 1)))


@pytest.mark.parametrize("rounding", [decimal.ROUND_UP, decimal.ROUND_DOWN])
def test_the_decimal_context_of_the_caller_changes_no_total(rounding):
    adding = notion_of("pure", Budget(1.01, 0.0))
    with decimal.localcontext() as context:
        context.prec, context.rounding = 2, rounding
        same = notion_of("pure", Budget(1.01, 0.0))
        assert same.limit == adding.limit
        assert same.how_often(same.cost(PureLoss(0.341)), same.zero) == 2
