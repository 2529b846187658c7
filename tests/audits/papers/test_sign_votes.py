"""Budgets of majority votes as printed: golden values of methods.md 6.2, 6.3, 6.6, 9 (E13), 11."""

import math

import pytest

from accountant import PLD, RDP, ZCDP, Advanced, Basic, PureLoss, Repeat, Sequential, Tight
from audits.papers.sparse_regression import printed_noisy_threshold, printed_peeling, printed_votes


def strong(count, each, delta):
    """Dwork, Rothblum & Vadhan (2010) in full."""
    return math.sqrt(2 * count * math.log(1 / delta)) * each + count * each * math.expm1(each)


def test_the_golden_row_of_the_vote():
    plan = printed_votes(1.0, 1e-3, 10).plan
    peel, signs = plan.part.parts
    assert (peel.count, signs.count, plan.relation) == (10, 10, "machine-replace")
    assert peel.part.loss.pure == pytest.approx(0.040553, abs=5e-7)
    assert signs.part.loss.pure == pytest.approx(0.020276, abs=5e-7)
    assert Basic().epsilon(plan, 0.0) == pytest.approx(0.60829, abs=5e-6)
    assert ZCDP().epsilon(plan, 1e-3) == pytest.approx(0.327406, abs=5e-6)
    assert RDP().epsilon(plan, 1e-3) == pytest.approx(0.30402, rel=1e-3)
    # the published .32743 and .008737 have rho epsilon^2 / 2 and epsilon^2 / 8
    assert sum(loss.rho * count for loss, count in plan.losses()) == pytest.approx(
        0.008737, abs=2e-6
    )
    each = peel.part.loss.pure, signs.part.loss.pure
    assert sum(strong(10, e, 5e-4) for e in each) == pytest.approx(0.77094, abs=5e-6)


def test_the_optimum_over_all_pure_releases():
    peel, signs = printed_votes(1.0, 1e-3, 10).plan.part.parts
    assert Advanced().epsilon(Sequential([peel, signs]), 1e-3) == pytest.approx(0.29820, abs=5e-6)
    # another road: randomised responses of those epsilons, composed numerically
    pure = Sequential([Repeat(PureLoss(part.part.loss.pure), 10) for part in (peel, signs)])
    assert PLD().epsilon(pure, 1e-3) == pytest.approx(0.29820, rel=1e-3)


def test_the_vote_costs_less_than_that_for_its_signs_have_bounded_range():
    found = printed_votes(1.0, 1e-3, 10)
    assert found.true_epsilon == pytest.approx(0.26833, abs=5e-6)
    assert found.holds


@pytest.mark.parametrize(
    ("epsilon", "delta", "select", "bound"),
    [(0.5, 1e-3, 10, 0.130), (1.0, 1e-3, 10, 0.298), (2.0, 1e-5, 10, 0.760)],
)
def test_the_claim_holds_with_slack(epsilon, delta, select, bound):
    found = printed_votes(epsilon, delta, select)
    assert found.holds
    assert Advanced().epsilon(found.plan, delta) == pytest.approx(bound, abs=1e-3)
    assert found.true_epsilon < bound


def test_below_27_features_it_is_even_pure():
    # s <= 3.56 ln(2 / delta)
    assert Basic().epsilon(printed_votes(1.0, 1e-3, 27).plan, 0.0) <= 1.0
    assert Basic().epsilon(printed_votes(1.0, 1e-3, 28).plan, 0.0) > 1.0
    assert Basic().epsilon(printed_votes(1.0, 1e-5, 43).plan, 0.0) <= 1.0


def test_it_does_not_hold_for_every_epsilon():
    # the proof needs epsilon < 1.6 ln(2 / delta)
    assert printed_votes(12.0, 1e-3, 10).holds
    assert not printed_votes(100.0, 1e-3, 100).holds


def test_peeling_alone_keeps_its_claim_though_the_cited_corollary_does_not_give_it():
    found = printed_peeling(1.0, 1e-3, 10)
    each = found.plan.part.part.loss.pure
    # Corollary 3.21 asks for half of each
    assert each == pytest.approx(1 / math.sqrt(20 * math.log(1e3)))
    # in full, strong composition exceeds the claims by 8 % and 34 %
    assert strong(10, each, 1e-3) == pytest.approx(1.08, abs=5e-3)
    four = printed_peeling(4.0, 1e-3, 10)
    assert strong(10, four.plan.part.part.loss.pure, 1e-3) / 4 == pytest.approx(1.34, abs=5e-3)
    assert found.true_epsilon == pytest.approx(0.63, abs=5e-3)
    assert four.true_epsilon == pytest.approx(3.16, abs=5e-3)
    assert found.holds
    assert four.holds


def test_the_golden_row_of_noisy_thresholding():
    found = printed_noisy_threshold(1.0, 1e-5, 10)
    chosen, values = found.plan.part.parts
    assert chosen.part.loss.pure == pytest.approx(0.053808, abs=5e-7)
    assert values.part.loss.pure == pytest.approx(0.026904, abs=5e-7)
    assert Basic().epsilon(found.plan, 0.0) == pytest.approx(0.80712, abs=5e-6)
    pure = Sequential([Repeat(PureLoss(part.part.loss.pure), 10) for part in (chosen, values)])
    assert ZCDP().epsilon(pure, 1e-5) == pytest.approx(0.752274, abs=5e-6)
    assert Advanced().epsilon(pure, 1e-5) == pytest.approx(0.63355, abs=5e-6)
    # Laplace noise costs less than any pure release of its epsilon
    assert Tight().epsilon(found.plan, 1e-5) < 0.6335
    assert found.holds
