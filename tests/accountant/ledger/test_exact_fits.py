"""Budgets that fit: totals that are the budget but for round-off, and what each release costs."""

import numpy as np
import pytest

from accountant import (
    ApproxLoss,
    Budget,
    BudgetExceeded,
    Filter,
    GaussianLoss,
    Grouped,
    LaplaceLoss,
    Odometer,
    ParameterError,
    PoissonSampled,
    PureLoss,
    SampledWithoutReplacement,
    Stated,
    Tight,
    UnsupportedPlan,
    ZCDPLoss,
)
from accountant.ledger.composition_notions import notion_of
from accountant.numerics.rounding import round_up_ratio
from mechanisms import EXACT, DiscreteLaplace, Gaussian, Laplace

DATA = np.arange(20.0)
SCALES = (0.3, 0.7, 3.0, 7.0, 11.0, 49.0, 1e3 / 3, 1e5 / 7)
SAMPLED = PoissonSampled(Gaussian(1.0), 0.01)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", ["idealised", "exact", "discrete", "wide"])
def test_noise_of_scale_s_fits_a_budget_of_one_over_s(kind, scale):
    one, sensitivity = Laplace(scale), 1
    if kind == "exact":
        one = Laplace(scale, arithmetic="exact")
        assert one.loss.pure <= 1 / scale
    elif kind == "discrete":
        one = DiscreteLaplace(scale)
    elif kind == "wide":
        sensitivity = 10_000
        one = DiscreteLaplace(scale, sensitivity)
    budget = Budget(sensitivity / scale)
    assert budget.admits(one)
    gate = Filter(DATA, budget)
    gate.spend(one)
    assert gate.spent == pytest.approx(budget.epsilon, rel=1e-15)
    with pytest.raises(BudgetExceeded):
        gate.spend(PureLoss(1e-300))


@pytest.mark.parametrize("count", [3, 7, 11, 49, 1000])
def test_shares_of_a_budget_fit_it_and_the_tolerance_is_no_budget(count):
    for notion in ("pure", "pure-or-rdp"):
        budget = Budget(1.0, 0.0 if notion == "pure" else 1e-9)
        gate = Filter(DATA, budget, notion)
        for _ in range(count):
            gate.spend(LaplaceLoss(round_up_ratio(1.0, count)))
        assert gate.spent <= 1.0 + 1e-9
        if count < 49:  # of many, the Rényi sum admits more
            with pytest.raises(BudgetExceeded):
                gate.spend(PureLoss(1e-12))


def test_no_more_than_the_tolerance_is_ever_added():
    gate = Filter(DATA, Budget(1.0))
    gate.spend(PureLoss(1 - 1e-12))
    with pytest.raises(BudgetExceeded, match="needs epsilon"):
        gate.spend(PureLoss(2e-9))
    gate.spend(PureLoss(0.9e-9))  # the last release may end within the tolerance
    assert 1 < gate.spent <= 1 + 1e-9
    with pytest.raises(BudgetExceeded, match="and 0 is left of the limit 1 "):
        gate.spend(PureLoss(1e-300))


@pytest.mark.parametrize(("epsilon", "count"), [(5.0, 5), (1.0, 1), (0.3, 3)])
def test_delta_does_not_shrink_a_budget(epsilon, count):
    for delta in (0.0, 1e-300, 1e-12, 1e-6, 0.1):
        gate = Filter(DATA, Budget(epsilon, delta), rng=0)
        for _ in range(count):
            gate.spend(Laplace(count / epsilon))


def test_the_default_admits_what_either_filter_admits():
    budget = Budget(2.0, 1e-6)
    for noise in (Laplace(1.0), Laplace(40.0), Gaussian(30.0), DiscreteLaplace(9.0)):
        made = {}
        for notion in ("pure", "zcdp", None):
            gate, made[notion] = Filter(DATA, budget, notion), 0
            try:
                while made[notion] < 5000:
                    gate.spend(noise)
                    made[notion] += 1
            except (BudgetExceeded, UnsupportedPlan):
                continue
        assert made[None] >= max(made["pure"], made["zcdp"]) > 0


@pytest.mark.parametrize("release", [SAMPLED, SampledWithoutReplacement(GaussianLoss(1.0), 1, 100)])
def test_a_sampled_release_is_charged_as_what_it_is(release):
    notion = notion_of("rdp", Budget(8.0, 1e-6), 8.0)
    gate = Filter(DATA, Budget(8.0, 1e-6), "rdp", order=8.0)
    gate.spend(release)
    both = max(float(release.renyi(8.0)), float(release.reversed.renyi(8.0)))
    assert gate.spent == pytest.approx(both, rel=1e-12)
    assert gate.spent < 0.01 < 4.0 == pytest.approx(notion.cost(GaussianLoss(1.0)).spent)


def test_a_sampled_pure_release_pays_its_amplified_epsilon():
    gate = Filter(DATA, Budget(1.0))
    gate.release(PoissonSampled(Laplace(1.0, arithmetic="exact"), 0.01), np.sum)
    assert gate.spent == pytest.approx(np.log1p(0.01 * np.expm1(1.0)), rel=1e-12)


def test_a_group_is_charged_as_a_group():
    gate = Filter(DATA, Budget(1.0))
    gate.spend(Grouped(LaplaceLoss(0.1), 3))
    assert gate.spent == pytest.approx(0.3, rel=1e-12)


def test_training_fits_the_default_filter_nearly_as_often_as_a_fixed_plan():
    step, budget = PoissonSampled(Gaussian(10.0), 0.01), Budget(1.0, 1e-6)
    gate, made = Filter(DATA, budget), 0
    try:
        while True:
            gate.spend(step)
            made += 1
    except BudgetExceeded:
        pass
    assert Tight().epsilon(made * step, budget.delta) <= 1.0
    assert Tight().epsilon(int(1.3 * made) * step, budget.delta) > 1.0


def test_the_odometer_sees_samples_and_reports_the_smaller_bound():
    meter = Odometer(DATA, 1e-6, rng=0)
    for _ in range(100):
        meter.release(SAMPLED, len)
    exact = Tight().epsilon(100 * SAMPLED, 1e-6)
    assert exact < meter.epsilon < 5 * exact  # as unsampled releases it would be above 100
    few = Odometer(DATA, 1e-6, rng=0)
    few.release(Laplace(10.0), np.sum)
    assert few.epsilon == 0.1


@pytest.mark.parametrize(
    ("budget", "notion", "release", "words"),
    [
        (Budget(1 / 3), None, Laplace(1.0), ["needs epsilon 1,", "0.333333 is left", "Laplace("]),
        (Budget(1.0, 1e-6), None, Gaussian(1.0), ["needs rho 0.5,", "Gaussian(scale=4.5"]),
        (Budget(1.0, 1e-6), "zcdp", Laplace(1.0), ["needs rho", "notion='pure-or-rdp'"]),
        (Budget(1.0, 1e-6), "gdp", Gaussian(1.0), ["needs mu^2 1,", "Gaussian(scale="]),
        (Budget(1.0), None, PureLoss(2.0), ["needs epsilon 2,", "only a release that costs less"]),
    ],
)
def test_a_refusal_names_the_need_the_rest_and_a_remedy_that_works(budget, notion, release, words):
    gate = Filter(DATA, budget, notion)
    with pytest.raises(BudgetExceeded) as refused:
        gate.spend(release)
    said = str(refused.value)
    for word in words:
        assert word in said
    if ") fits" in said:  # the suggested release is one that can be typed, and it fits
        suggested = said.split("; ")[2].removesuffix(" fits")
        gate.spend(eval(suggested, {"Laplace": Laplace, "Gaussian": Gaussian, "EXACT": EXACT}))
        if notion == "zcdp":
            Filter(DATA, budget).spend(Laplace(1.0))


@pytest.mark.parametrize("order", [1.5, 4.0, 21.98, 40.0, 1e6])
@pytest.mark.parametrize("budget", [Budget(1.0, 1e-6), Budget(8.0, 0.4)])
def test_rho_has_no_limit_of_its_own_beside_an_order_that_was_asked_for(budget, order):
    # two filters that let different transcripts through would need two deltas
    try:
        notion = notion_of("pure-or-rdp", budget, order)
    except ParameterError:
        return  # nothing of the budget is left at this order
    rho, divergence = notion.limit.spent.rho, notion.limit.spent.renyi
    assert 0 < rho * order <= divergence
    assert rho <= notion_of("zcdp", budget).limit.spent
    assert notion.zcdp.limit.spent == rho


@pytest.mark.parametrize("notion", ["pure", "zcdp", "rdp", "gdp", "pure-or-rdp"])
def test_a_full_filter_says_that_nothing_is_left(notion):
    gate = Filter(DATA, Budget(1.0, 1e-6), notion)
    small = GaussianLoss(1e-7) if notion == "gdp" else PureLoss(1e-12)
    limit = gate._filter_meter.notion.limit.spent
    if notion == "pure":
        gate.spend(PureLoss(1.0))
    elif notion == "gdp":
        gate.spend(GaussianLoss(limit**0.5 * (1 - 1e-10)))
    else:
        rho = {"zcdp": limit, "pure-or-rdp": getattr(limit, "rho", 0.0)}
        order = gate._filter_meter.notion.order
        gate.spend(ZCDPLoss((rho[notion] if notion in rho else limit / order) * (1 - 1e-10)))
    with pytest.raises(BudgetExceeded, match=r"and 0 is left .* nothing more fits$"):
        gate.spend(small)


@pytest.mark.parametrize("notion", ["zcdp", "pure-or-rdp"])
def test_a_refusal_for_masses_at_infinity_says_so(notion):
    gate = Filter(DATA, Budget(1.0, 1e-6), notion)
    small = ApproxLoss(1e-3, 4e-19)
    gate.spend(small)
    gate.spend(small)
    with pytest.raises(BudgetExceeded, match="needs delta 4e-19, and 2e-19 is left"):
        gate.spend(small)


@pytest.mark.parametrize("make", [lambda: Filter(DATA, Budget(1.0, 1e-6)), lambda: Odometer(DATA)])
def test_relations_do_not_mix_in_one_total(make):
    gate = make()
    added = PoissonSampled(PureLoss(0.1), 0.01)
    replaced = Stated(PureLoss(0.1), "replace-one")
    gate._meter.charge(added, None)
    for asked in (replaced, SampledWithoutReplacement(PureLoss(0.1), 1, 20)):
        with pytest.raises(ParameterError, match="relations do not mix"):
            gate._meter.charge(asked, None)
    gate._meter.charge(PureLoss(0.1), None)  # stated for whatever its sensitivity says
    gate._meter.charge(added, None)
