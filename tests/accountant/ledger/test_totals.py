"""Totals: many repetitions at once cost what they cost one by one."""

import pytest

from accountant import Budget, Parallel, Repeat
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
