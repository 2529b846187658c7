"""Filters and the odometer: exact sums, refusal before looking, limits that convert back."""

import math
import time
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given

from accountant import (
    ApproxLoss,
    Budget,
    BudgetExceeded,
    Filter,
    GaussianLoss,
    LargeDeltaWarning,
    Odometer,
    OffPlan,
    ParameterError,
    PureLoss,
    Stated,
    Tight,
    UnsupportedPlan,
    calibrate,
)
from accountant.ledger.composition_notions import notion_of
from accountant.ledger.odometer import DivergencesNotion
from accountant.ledger.totals import Total
from accountant.losses.zcdp import ZCDPLoss
from mechanisms import Exponential, Gaussian, Laplace
from tests.strategies import pure_epsilons

DATA = np.arange(20.0)
TENTH = Laplace(10.0)  # costs 0.1


def spends_until_refused(gate, mechanism):
    count = 0
    while True:
        try:
            gate.release(mechanism, np.sum)
        except BudgetExceeded:
            return count
        count += 1


def test_ten_spends_of_a_tenth_fit_into_one_exactly():
    gate = Filter(DATA, Budget(1.0), rng=0)
    assert spends_until_refused(gate, TENTH) == 10
    assert gate.spent == 1.0
    with pytest.raises(
        BudgetExceeded, match=r"this needs epsilon 0\.1, and 0 is left of the limit 1 "
    ):
        gate.release(TENTH, np.sum)
    # row 12: not even the least spend fits afterwards
    with pytest.raises(BudgetExceeded):
        gate.release(Laplace(1e299), np.sum)


@pytest.mark.parametrize("delta", [1e-6, 0.01, 0.051, 0.5])
def test_a_filter_on_private_data_warns_of_a_delta_above_one_over_n(delta):
    budget = Budget(2.0, delta)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        gate = Filter(DATA, budget)
    assert [one.category for one in said] == [LargeDeltaWarning] * (delta * len(DATA) > 1)
    assert gate.budget == budget
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Filter(DATA, budget, rng=0)  # a seed repeats the noise: nothing is protected


@pytest.mark.parametrize("spend", [Filter.spend, Filter.spend_plan, Filter.check])
def test_a_refusal_of_other_neighbours_or_of_a_query_names_the_release_and_spends_nothing(spend):
    gate = Filter(DATA, Budget(2.0, 1e-6), rng=0)
    removed, replaced = (Stated(Gaussian(40.0), way) for way in ("add-remove", "replace-one"))
    spend(gate, removed)
    if spend is Filter.check:
        gate.spend(removed)
    spent = gate.spent
    with pytest.raises(ParameterError, match="add-remove and replace-one"):
        spend(gate, replaced)

    def asks_the_gate(rows):
        with pytest.raises(OffPlan, match="a query may not ask") as error:
            spend(gate, removed)
        assert error.value.asked == removed
        return 0.0

    gate.release(Gaussian(40.0), asks_the_gate)
    assert gate.spent == pytest.approx(2 * spent)


def test_a_refused_release_looks_at_nothing_and_draws_nothing():
    def drawn(asks):
        gate = Filter(DATA, Budget(0.5), rng=3)
        looked = []
        for mechanism in asks:
            with pytest.raises(BudgetExceeded) if mechanism.scale < 1 else nothing():
                gate.release(mechanism, lambda data: looked.append(1) or data.sum())
        return [entry.output for entry in gate.transcript], len(looked)

    class nothing:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            return False

    with_refusals = drawn([TENTH, Laplace(0.1), TENTH, Laplace(0.5)])
    assert with_refusals == drawn([TENTH, TENTH])
    assert with_refusals[1] == 2


def test_the_default_notion_follows_the_budget():
    pure, zcdp = Filter(DATA, Budget(1.0)), Filter(DATA, Budget(1.0, 1e-6))
    with pytest.raises(UnsupportedPlan, match="it has no epsilon; a budget with delta > 0"):
        pure.release(Gaussian(10.0), np.sum)
    zcdp.release(Gaussian(10.0), np.sum)
    assert zcdp.spent == pytest.approx(0.005)
    assert "rho=0.005" in repr(zcdp)


def fits(gate, mechanism):
    try:
        gate.spend(mechanism)
    except BudgetExceeded:
        return False
    return True


@pytest.mark.parametrize("notion", ["zcdp", "rdp", "gdp"])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-9), (8.0, 1e-3)])
def test_what_a_filter_lets_through_is_within_the_budget(notion, epsilon, delta):
    gate = Filter(DATA, Budget(epsilon, delta), notion)
    noise = Gaussian(100 / epsilon)
    count = 0
    while fits(gate, noise):
        count += 1
    exact = Tight().epsilon(count * noise, delta)
    assert exact <= epsilon
    # for Gaussians no notion wastes much, and GDP nothing
    assert Tight().epsilon((count + 1) * noise, delta) > epsilon * (0.8 if notion != "gdp" else 1)


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 20.0])
def test_the_usual_order_lets_the_most_gaussian_noise_through(epsilon):
    zcdp, rdp = (notion_of(name, Budget(epsilon, 1e-6)) for name in ("zcdp", "rdp"))
    assert rdp.limit.spent / rdp.order == pytest.approx(zcdp.limit.spent, rel=1e-9)


def test_the_order_of_an_rdp_filter_is_fixed_at_the_start():
    gate = Filter(DATA, Budget(1.0, 1e-6), "rdp", order=20.0)
    gate.spend(Exponential(10.0))
    assert gate.spent == pytest.approx(float(Exponential(10.0).loss.renyi(20.0)))
    with pytest.raises(ParameterError, match="leaves something of the budget"):
        Filter(DATA, Budget(1.0, 1e-6), "rdp", order=2.0)
    with pytest.raises(ParameterError, match="order must be"):
        Filter(DATA, Budget(1.0, 1e-6), "rdp", order=math.nan)


@pytest.mark.parametrize("notion", ["pld", "profile", "tight"])
def test_invalid_filters_are_refused_with_the_reason(notion):
    with pytest.raises(ParameterError, match="is no valid filter when answers choose"):
        Filter(DATA, Budget(1.0, 1e-6), notion)


def test_what_is_no_filter_is_refused():
    for bad in ("zCDP", 3, ""):
        with pytest.raises(ParameterError, match="notion must be"):
            Filter(DATA, Budget(1.0, 1e-6), bad)
    with pytest.raises(ParameterError, match="delta > 0 for the notion 'zcdp'"):
        Filter(DATA, Budget(1.0), "zcdp")
    with pytest.raises(ParameterError, match="budget must be a Budget"):
        Filter(DATA, 1.0)


def test_deltas_add_up_too():
    gate = Filter(DATA, Budget(1.0, 3e-6), "pure", undeclared=True)

    class Leaky(Laplace.__mro__[2]):  # a mechanism of noise whose loss is (0.1, 1e-6)
        scale, sensitivity, reference = 1.0, 1.0, ""
        loss = ApproxLoss(0.1, 1e-6)
        release = terms = None

    for _ in range(3):
        gate.spend(object.__new__(Leaky))
    with pytest.raises(BudgetExceeded, match="needs delta 1e-06, and 0 is left of the limit 3e-06"):
        gate.spend(object.__new__(Leaky))
    with pytest.raises(UnsupportedPlan, match="notion='pure' adds such deltas up"):
        Filter(DATA, Budget(1.0, 1e-5), undeclared=True).spend(object.__new__(Leaky))


@given(pure_epsilons)
def test_the_pure_sum_is_the_decimal_one(epsilons):
    gate = Filter(DATA, Budget(2.0), rng=0)
    total = Fraction(0)
    for epsilon in epsilons:
        mechanism = Laplace(1.0, sensitivity=epsilon)
        fits = total < 2 and total + Fraction(repr(mechanism.loss.shift)) <= 2 + 2e-9
        try:
            gate.spend(mechanism)
        except BudgetExceeded:
            assert not fits
        else:
            assert fits
            total += Fraction(repr(mechanism.loss.shift))


def test_adaptive_choice_is_allowed_and_a_ledger_it_is():
    gate = Filter(DATA, Budget(1.0), rng=1)
    first = gate.release(TENTH, np.sum)
    second = gate.release(Laplace(2.0) if first > 190 else Laplace(4.0), np.sum)
    assert [entry.output for entry in gate.transcript] == [first, second]
    everybody = gate.release_each(TENTH, lambda rows: rows, who=[1, 2, 3])
    assert everybody.shape == (3,)
    with pytest.raises(TypeError, match="cannot be copied or pickled"):
        __import__("copy").copy(gate)


def test_the_odometer_of_pure_sums_is_the_sum():
    meter = Odometer(DATA, rng=0)
    for _ in range(7):
        meter.release(TENTH, np.sum)
    assert meter.epsilon == 0.7


def test_the_odometer_is_honest_at_stops_that_answers_choose():
    meter = Odometer(DATA, 1e-6, rng=0)
    assert meter.epsilon == 0.0
    seen = []
    for _ in range(190):
        meter.release(Gaussian(20.0), np.sum)
        seen.append(meter.epsilon)
    assert seen == sorted(seen)
    rho = 190 / (2 * 20**2)
    running = ZCDPLoss(rho).epsilon_at(1e-6)
    assert seen[-1] > running  # a running total would promise too much
    assert seen[-1] < 2 * running
    # of the same grid of filters, each with its share of delta
    assert seen[-1] == pytest.approx(ZCDPLoss(2.0**-2).epsilon_at(1e-6 / 81), rel=1e-11)
    assert seen[-1] >= ZCDPLoss(2.0**-2).epsilon_at(1e-6 / 81)


def test_a_spend_costs_the_same_however_many_there_were():
    gate = Filter(DATA, Budget(1e9, 1e-6))
    losses = [Gaussian(1e3 + i) for i in range(300)]

    def seconds():
        start = time.process_time()
        for one in losses:
            gate.spend(one)
        return time.process_time() - start

    first = min(seconds() for _ in range(3))
    for _ in range(20):
        seconds()
    assert min(seconds() for _ in range(3)) < 3 * first
    assert Filter(DATA, Budget(1.0, 1e-6)).spent == 0.0
    assert GaussianLoss(1.0).gdp_mu == 1.0


def test_an_odometer_without_delta_takes_no_leaks():
    notion = Odometer(np.ones(3))._meter_of_epsilon.pure
    with pytest.raises(BudgetExceeded, match=r"needs delta 0\.1, and 0 is left"):
        notion.charge(notion.zero, ApproxLoss(1.0, 0.1))


def test_a_budget_that_a_notion_cannot_keep_is_refused():
    with pytest.raises(ParameterError, match="one that this notion can keep"):
        Filter(np.ones(3), Budget(1e-9, 1e-30), "zcdp")


def test_a_first_plan_is_charged_its_exact_epsilon_and_pure_releases_beside_it():
    budget = Budget(1.0, 1e-6)
    plan = 5 * Gaussian(20.0)
    whole = calibrate(plan, epsilon=1.0, delta=1e-6)
    gate = Filter(DATA, budget)
    gate.spend_plan(whole)
    assert gate.spent == pytest.approx(1.0, rel=1e-5)
    with pytest.raises(BudgetExceeded):
        gate.spend_plan(PureLoss(0.01))
    beside = Filter(DATA, budget)
    beside.spend(PureLoss(0.01))
    with pytest.raises(BudgetExceeded):  # it is not the first
        beside.spend_plan(whole)
    assert beside.spent <= 0.0101
    with pytest.raises(BudgetExceeded):  # a notion that was chosen adds up nothing else
        Filter(DATA, budget, "zcdp").spend_plan(whole)
    with pytest.raises(BudgetExceeded):
        Filter(DATA, budget).spend_plan(calibrate(plan, epsilon=1.01, delta=1e-6))


def test_an_odometer_without_releases_has_spent_nothing():
    notion = DivergencesNotion.of(1e-6)
    assert notion.epsilon(notion.zero) == 0.0


@pytest.mark.parametrize("delta", [1e-6, 1e-2])
def test_the_smallest_filter_of_an_odometer_that_fits_is_what_divergences_convert_to(delta):
    notion = DivergencesNotion.of(delta)
    order, filters = notion.orders, np.arange(81)
    # Canonne, Kamath & Steinke (2020), Proposition 12, with an equal share of delta for each filter
    converted = notion.limits + np.log1p(-1 / order) - np.log(delta / 81 * order) / (order - 1)
    assert np.all(notion.guarantees >= converted)
    np.testing.assert_allclose(notion.guarantees, converted, rtol=1e-9)
    np.testing.assert_allclose(notion.limits, 2.0 ** (filters / 2 - 20) * order, rtol=1e-12)
    for k in range(81):
        fits_from_k = Total(np.where(filters < k, np.inf, notion.limits), 0.0)
        assert notion.epsilon(fits_from_k) == notion.guarantees[k]
    assert notion.epsilon(Total(np.nextafter(notion.limits, np.inf), 0.0)) == math.inf


def test_the_sums_of_an_odometer_are_rounded_up():
    notion = DivergencesNotion.of(1e-6)
    cost = notion.cost(GaussianLoss(0.1))
    exact = [Fraction(0.1) ** 2 / 2 * Fraction(order) for order in notion.orders.tolist()]
    total = notion.zero
    for _ in range(3):
        total = notion.add(total, cost)
    for sums, count in ((cost, 1), (total, 3), (notion.times(cost, 10**6), 10**6)):
        for shown, divergence in zip(sums.spent.tolist(), exact, strict=True):
            assert (
                count * divergence <= Fraction(shown) <= count * divergence * (1 + Fraction(1e-14))
            )
