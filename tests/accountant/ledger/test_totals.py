"""Totals: many repetitions at once cost what they cost one by one."""

import decimal
import itertools
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from accountant import (
    ApproxLoss,
    Budget,
    BudgetExceeded,
    GaussianLoss,
    Parallel,
    PureLoss,
    Repeat,
    UnsupportedPlan,
    ZCDPLoss,
)
from accountant.ledger.additive_notions import INFINITY_SHARE
from accountant.ledger.composition_notions import notion_of
from accountant.ledger.odometer import OdometerMeter
from accountant.ledger.pure_or_renyi_notion import Sums
from accountant.ledger.totals import Total
from mechanisms import Gaussian, Laplace


@pytest.mark.parametrize("count", [1, 2, 3, 37])
@pytest.mark.parametrize("notion", ["pure", "zcdp", "rdp", "gdp", "pure-or-rdp"])
def test_repetitions_at_once_cost_what_they_cost_one_by_one(notion, count):
    adding = notion_of(notion, Budget(8.0, 1e-6))
    one = Laplace(10.0) if notion == "pure" else Gaussian(30.0)
    least = Laplace(100.0) if notion == "pure" else Gaussian(300.0)
    for plan in (one, Parallel([one, least], by="index")):
        single = adding.zero
        for _ in range(count):
            single = adding.after(single, plan)
        for repeats in (Repeat(plan, count), Repeat(Repeat(plan, count), 1)):
            for whole in (adding.after(adding.zero, repeats), adding.cost(repeats)):
                assert np.array(whole.spent, float) == pytest.approx(
                    np.array(single.spent, float), rel=1e-13
                )
                if notion == "pure":
                    assert whole == single


@pytest.mark.parametrize("count", [1, 2, 5])
def test_an_odometer_adds_the_releases_of_a_plan(count):
    for release in (ApproxLoss(0.25, 1e-6 * INFINITY_SHARE / 8), Laplace(4.0), Gaussian(9.0)):
        one_by_one, at_once = OdometerMeter(1e-6), OdometerMeter(1e-6)
        for _ in range(count):
            one_by_one.charge(release, None)
        at_once.charge(count * release, None)
        assert at_once.epsilon == pytest.approx(one_by_one.epsilon, rel=1e-12)
        assert at_once.curve_total.infinity == pytest.approx(one_by_one.curve_total.infinity)
        assert at_once.pure_total == one_by_one.pure_total
        at_once.charge(release, None)  # and goes on
        assert at_once.epsilon >= one_by_one.epsilon


def test_the_odometer_keeps_the_sum_that_a_release_has():
    meter = OdometerMeter(1e-6)
    meter.charge(Laplace(4.0), None)
    assert meter.epsilon == 0.25
    # It fails too often for the filters, which have all of delta but a share.
    meter.charge(ApproxLoss(0.5, 9e-7), None)
    assert meter.curve_total is None
    assert meter.epsilon == math.inf
    meter.charge(Laplace(4.0), None)
    assert meter.epsilon == math.inf
    with pytest.raises(UnsupportedPlan):
        meter.charge(Gaussian(9.0), None)  # no sum is left for it
    meter = OdometerMeter(1e-6)
    with pytest.raises(BudgetExceeded, match="only a release whose own delta is less"):
        meter.charge(Gaussian(9.0) + ApproxLoss(0.5, 9e-7), None)
    assert meter.epsilon == 0.0
    meter.charge(Gaussian(9.0), None)
    assert meter.pure_total is None
    before = meter.epsilon
    meter.charge(Laplace(4.0), None)
    assert before < meter.epsilon < math.inf


@pytest.mark.parametrize("stated", [-1.0, -1e-9, math.inf, math.nan])
def test_an_odometer_refuses_what_is_no_divergence(stated, monkeypatch):
    monkeypatch.setattr(GaussianLoss, "renyi", lambda _, order: np.full(np.shape(order), stated))
    meter = OdometerMeter(1e-6)
    with pytest.raises(UnsupportedPlan, match="it has no Rényi divergence"):
        meter.charge(GaussianLoss(0.5), None)
    assert meter.epsilon == 0.0


@pytest.mark.parametrize("mu", [0.01, 0.3, 2.5])
def test_gaussian_noise_costs_its_closed_forms(mu):
    budget, order = Budget(50.0, 1e-6), 7.0
    costs = {"zcdp": mu * mu / 2, "rdp": order * mu * mu / 2, "gdp": mu * mu}
    costs["pure-or-rdp"] = (math.inf, costs["zcdp"], costs["rdp"])
    for notion, expected in costs.items():
        spent = notion_of(notion, budget, order).cost(GaussianLoss(mu)).spent
        assert np.array(spent, float) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("notion", ["zcdp", "rdp", "gdp", "pure-or-rdp"])
def test_a_filter_has_one_delta_for_its_sum_and_for_masses_at_infinity(notion):
    budget = Budget(1.5, 1e-5)
    adding = notion_of(notion, budget, 9.0)
    limit, masses = adding.limit
    spendable = Fraction(budget.delta) - Fraction(masses)
    assert 0 < masses < budget.delta / 50
    sums = {"zcdp": (ZCDPLoss, limit), "gdp": (lambda s: GaussianLoss(math.sqrt(s)), limit)}
    if notion in sums:
        loss, largest = sums[notion]
        assert loss(largest).epsilon_at(float(spendable)) <= budget.admitted_epsilon * (1 + 1e-12)
        assert loss(largest * 1.01).epsilon_at(float(spendable)) > budget.epsilon
        return
    # of one divergence D at order 9 (Canonne, Kamath & Steinke 2020, Proposition 12)
    divergence = limit if notion == "rdp" else limit.renyi
    nats = math.log(1 / spendable) - 8 * math.log(9 / 8) - math.log(9)
    assert divergence + nats / 8 == pytest.approx(budget.admitted_epsilon, rel=1e-12)
    assert divergence + nats / 8 <= budget.admitted_epsilon * (1 + 1e-14)
    if notion == "pure-or-rdp":
        assert limit.rho * 9.0 <= limit.renyi  # both fail together
        assert float(limit.pure) == pytest.approx(budget.epsilon, rel=1e-6)


def test_one_of_three_sums_that_fits_is_enough():
    adding = notion_of("pure-or-rdp", Budget(1.5, 1e-5), 9.0)
    limit, masses = adding.limit
    for mask in itertools.product((0.5, 1.0, 1.1), repeat=3):
        pure, rho, renyi = (float(x) * share for x, share in zip(limit, mask, strict=True))
        sums = Sums(limit.pure * Decimal(str(mask[0])), rho, renyi)
        total = Total(sums, 0.0)
        assert adding.exceeds(total) == (min(mask) > 1)
        assert adding.refuses(adding.zero, total) == (min(mask) > 1)
        assert adding.exceeds(Total(sums, masses * 1.01))
        # A fixed plan has the least of the three epsilons.
        of_rho = ZCDPLoss(rho).epsilon_at(1e-5 - masses)
        of_renyi = renyi + (math.log(1 / (1e-5 - masses)) - 8 * math.log(9 / 8) - math.log(9)) / 8
        assert adding.epsilon(total) == pytest.approx(min(pure, of_rho, of_renyi), rel=1e-9)
        shares = [x / float(y) for x, y in zip((pure, rho, renyi), limit, strict=True)]
        found = adding.shown(total)
        assert found.amount / found.limit == pytest.approx(min(shares), rel=1e-5)
    # What is full is not made use of again, whatever its tolerance.
    full = Total(Sums(adding.full.pure, adding.full.rho, adding.full.renyi), 0.0)
    for which in range(3):
        before = [float(x) * 1.2 for x in limit]
        before[which] = float(adding.full[which])
        spent = Sums(Decimal(repr(before[0])), before[1], before[2])
        spent = spent._replace(**{spent._fields[which]: adding.full[which]})
        least_more = Sums(Decimal("1e-12"), 1e-14, 1e-14)
        after = Sums(*(x + y for x, y in zip(spent, least_more, strict=True)))
        assert adding.refuses(Total(spent, 0.0), Total(after, 0.0))
    assert adding.is_full(full)


@pytest.mark.parametrize("notion", ["pure", "zcdp", "rdp", "gdp", "pure-or-rdp"])
def test_what_is_left_and_what_is_spent_are_at_most_the_budget(notion):
    budget = Budget(2.0, 1e-6)
    adding = notion_of(notion, budget)
    release = Laplace(5.0) if notion == "pure" else Gaussian(20.0)
    total = adding.zero
    assert adding.epsilon_left(total) == 2.0
    lefts = [2.0]
    for _ in range(4):
        total = adding.after(total, release)
        left = adding.epsilon_left(total)
        assert 0 < left < lefts[-1]
        assert left + adding.epsilon(total) <= 2.0
        # a plan of the rest of the sums is no dearer than what is left
        assert left <= adding.largest_epsilon(adding.left(total))
        lefts.append(left)


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
