"""Which engines answer a plan: the rows agree with the interval of `Tight`."""

import pytest

from accountant import (
    BoundedRangeLoss,
    GaussianLoss,
    LaplaceLoss,
    Parallel,
    PoissonSampled,
    PureLoss,
    Tight,
    ZCDPLoss,
)
from accountant.reports.engine_choice import engine_choice

PLANS = {
    "closed form": 52 * GaussianLoss(0.1),
    "curves alone": 3 * ZCDPLoss(0.1),
    "one curve": ZCDPLoss(0.1),
    "envelopes": 5 * BoundedRangeLoss(0.3),
    "envelopes and noise": 5 * BoundedRangeLoss(0.3) + GaussianLoss(0.5),
    "contours": 10 * PoissonSampled(LaplaceLoss(0.3), 0.1),
    "another was planned": 3 * PoissonSampled(GaussianLoss(1.0), 0.01),
    "parallel": Parallel([PureLoss(0.1), GaussianLoss(0.2)]),
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_no_row_contradicts_the_interval_and_one_ends_where_it_ends(plan):
    interval = Tight().certify(plan, 1e-6)
    ends = [(lower, upper) for *_, lower, upper in engine_choice(plan, 1e-6).rows]
    answers = [(lower, upper) for lower, upper in ends if upper is not None]
    assert all(lower <= interval.upper for lower, _ in answers)
    assert any(upper == pytest.approx(interval.upper, rel=1e-12) for _, upper in answers)


def test_the_last_line_explains_missing_ends_where_there_are_some():
    closing = "no ends: a cheaper engine was narrow enough"
    assert str(engine_choice(PLANS["another was planned"], 1e-6)).endswith(closing)
    assert closing not in str(engine_choice(PLANS["closed form"], 1e-6))
