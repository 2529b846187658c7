"""Allocations: against closed forms, brute force and a convex solver; and their laws."""

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountant import (
    ZCDP,
    Allocation,
    Budget,
    BudgetExceeded,
    Deviation,
    GaussianLoss,
    Ledger,
    Maximum,
    ParameterError,
    PoissonSampled,
    PureLoss,
    Repeat,
    Selection,
    Sequential,
    Tight,
    Wanted,
    allocate,
    calibrate,
    explanation,
    records_needed,
)
from mechanisms import (
    DiscreteLaplace,
    Gaussian,
    Laplace,
    NoisyMax,
    PermuteAndFlip,
    RandomizedResponse,
    Staircase,
    TruncatedLaplace,
)
from tests.accountant.planning.reference_allocations import (
    epsilon_of_scales,
    optimality_gap,
    slsqp_least_error,
)
from tests.strategies import (
    convex_families,
    log_scales,
    small_deltas,
    wanted,
    wanted_budgets,
    wanted_lists,
)

BUDGET = Budget(1.0, 1e-6)


def about_one(rng):
    return float(np.exp(rng.normal()))


def test_gaussians_have_a_closed_form():
    # sum n w s is least with sum n (Delta / s)^2 fixed where s is as (Delta^2 / w)^(1/3)
    rng = np.random.default_rng(1)
    delta, weight = np.exp(rng.uniform(-3, 3, (2, 20)))
    count = rng.integers(1, 9, 20)
    found = allocate(
        [
            wanted(Gaussian, d, weight=w, count=int(n))
            for d, w, n in zip(delta, weight, count, strict=True)
        ],
        BUDGET,
    )
    mu = calibrate(lambda x: GaussianLoss(1 / x), epsilon=1.0, delta=1e-6)
    shape = (delta**2 / weight) ** (1 / 3)
    best = shape * math.sqrt(np.sum(count * (delta / shape) ** 2)) * mu
    assert np.array(found.scales) == pytest.approx(best, rel=1e-4)
    assert found.total == pytest.approx(np.sum(count * weight * best), rel=2e-6)


def test_pure_laplaces_have_a_closed_form():
    # sum n w sqrt(2) s is least with sum n Delta / s = epsilon where s is as (Delta / w)^(1/2)
    found = allocate(
        [wanted(Laplace, 2.0, weight=3.0, count=5), wanted(Laplace, 0.1, weight=1.0)], Budget(0.7)
    )
    shape = np.sqrt([2.0 / 3.0, 0.1])
    best = shape * (5 * 2.0 / shape[0] + 0.1 / shape[1]) / 0.7
    assert np.array(found.scales) == pytest.approx(best, rel=1e-5)
    assert 0.7 * (1 - 2e-6) <= found.epsilon <= 0.7


@pytest.mark.parametrize("budget", [Budget(0.5, 1e-9), Budget(4.0, 1e-3), Budget(2.0)], ids=repr)
@pytest.mark.parametrize("pair", [(Laplace, Gaussian), (Laplace, PermuteAndFlip)])
def test_brute_force_over_two_finds_nothing_better(pair, budget):
    pair = (pair[0], Laplace) if budget.delta == 0 else pair
    first, second = wanted(pair[0], weight=1.0, count=3), wanted(pair[1], 2.0, weight=4.0)
    found = allocate([first, second], budget)
    best = math.inf
    for log_ratio in np.linspace(-1, 1, 11):
        ratio = math.exp(log_ratio) * found.scales[1] / found.scales[0]
        scale = calibrate(
            lambda x, r=ratio: Sequential([3 * first.plan(x), second.plan(r * x)]),
            epsilon=budget.epsilon, delta=budget.delta, bracket=None,
        )  # fmt: skip
        error = 3 * first.error_at(scale) + 4 * second.error_at(ratio * scale)
        best = min(best, error)
    assert found.total <= best * 1.005


@pytest.mark.parametrize("seed", range(2))
def test_a_convex_solver_finds_nothing_better(seed):
    rng = np.random.default_rng(seed)
    classes = [Gaussian, *rng.choice([Laplace, Gaussian, PermuteAndFlip], 3)]
    releases = [
        wanted(cls, about_one(rng), weight=about_one(rng), count=int(rng.integers(1, 9)))
        for cls in classes
    ]
    budget = Budget(float(rng.choice([0.2, 1.0, 5.0])), float(rng.choice([1e-9, 1e-5])))
    found = allocate(releases, budget)
    start = np.log(found.scales) + rng.normal(size=4) / 2
    assert found.total <= slsqp_least_error(releases, budget, start) * 1.005
    assert 0 <= optimality_gap(found) < 0.005


@pytest.mark.parametrize(
    "budget", [pytest.param(Budget(0.1, 1e-9), marks=pytest.mark.slow), Budget(6.0, 1e-3)]
)
def test_the_gap_of_a_hundred_is_below_a_percent(budget):
    rng = np.random.default_rng(5)
    releases = [
        wanted((Laplace, Gaussian)[i % 2], about_one(rng), weight=about_one(rng), count=1 + i % 3)
        for i in range(100)
    ]
    found = allocate(releases, budget)
    assert optimality_gap(found) < 0.01
    assert len(dict(found.plan.losses())) < 70  # on rungs
    assert budget.admits(found.plan)
    assert found.epsilon >= budget.epsilon * (1 - 2e-4)


def test_the_gap_sees_what_is_no_optimum():
    releases = [wanted(Laplace, weight=1.0), wanted(Gaussian, weight=50.0)]
    scale = calibrate(lambda s: Laplace(s) + Gaussian(s), epsilon=1.0, delta=1e-6)
    equal = Allocation(tuple(releases), (scale, scale), BUDGET, 1.0)
    ratio = equal.total / allocate(releases, BUDGET).total
    assert ratio > 1.05
    assert 1 + optimality_gap(equal) >= ratio  # it bounds how much better the optimum is


@given(st.data(), st.integers(2, 4), small_deltas)
def test_admissible_log_scales_are_convex(data, n, delta):
    # what the bound of `optimality_gap` rests on, beyond Gaussians
    releases = [wanted(data.draw(convex_families), weight=1.0) for _ in range(n)]
    one, other = np.array(data.draw(log_scales(n))), np.array(data.draw(log_scales(n)))
    most = max(
        epsilon_of_scales(releases, np.exp(one), delta),
        epsilon_of_scales(releases, np.exp(other), delta),
    )
    assert epsilon_of_scales(releases, np.exp((one + other) / 2), delta) <= most * (1 + 1e-7)


@given(wanted_lists, wanted_budgets)
def test_never_past_the_budget_and_no_less_than_it_gives(releases, limits):
    budget = Budget(*limits)
    found = allocate(releases, budget)
    assert budget.admits(found.plan)
    assert budget.epsilon * (1 - 1e-4) <= found.epsilon <= budget.epsilon
    for one, error in zip(releases, found.errors, strict=True):
        if one.target is not None:
            assert one.target * (1 - 1e-9) <= error <= one.target
    # more budget is never more error
    assert allocate(releases, Budget(1.1 * limits[0], 3 * limits[1])).total < found.total


@given(wanted_lists, st.integers(2, 4))
def test_equal_releases_get_equal_noise_in_any_order(releases, copies):
    copy = Wanted(Laplace, Deviation(), sensitivity=1.0, weight=1.0, name="again", count=copies)
    found = allocate([*releases, copy], BUDGET)
    assert found.scales[0] == found.scales[-1]
    backwards = allocate([copy, *reversed(releases)], BUDGET)
    assert backwards.total == pytest.approx(found.total, rel=1e-5)


def test_units_do_not_change_an_allocation():
    one = allocate([wanted(Laplace, weight=1.0), wanted(Gaussian, weight=2.0)], BUDGET)
    other = allocate(
        [wanted(Laplace, 1e6, weight=1e-6), wanted(Gaussian, 1e-6, weight=2e6)], BUDGET
    )
    assert other.total == pytest.approx(one.total, rel=1e-5)
    # a function knows no unit and is found all the same
    far = Wanted(lambda s: Laplace(s, sensitivity=1e6), Deviation(), weight=1e-6)
    third = allocate([far, wanted(Gaussian, weight=2.0)], BUDGET)
    assert third.total == pytest.approx(one.total, rel=1e-4)


@pytest.mark.parametrize(
    "release",
    [
        Wanted(DiscreteLaplace, Maximum(30), sensitivity=3, weight=1.0),
        pytest.param(
            Wanted(TruncatedLaplace, Deviation(), reach=40.0, weight=1.0), marks=pytest.mark.slow
        ),
        wanted(Staircase, weight=1.0),
        Wanted(NoisyMax, Selection(9), weight=1.0),
        Wanted(NoisyMax, Selection(9), noise="laplace", weight=1.0),
        Wanted(lambda s: 10 * PoissonSampled(Gaussian(s), 0.01), lambda s: s, weight=1.0, count=5),
        Wanted(lambda s: PureLoss(1 / s), lambda s: s**2, weight=1.0),
    ],
    ids=[
        "discrete",
        "truncated",
        "staircase",
        "selection",
        "laplace selection",
        "sampled",
        "bare loss",
    ],
)
def test_every_family_is_fitted(release):
    found = allocate([release, wanted(Laplace, weight=1.0)], BUDGET)
    assert BUDGET.admits(found.plan)
    assert found.epsilon >= 1 - 1e-5
    if release.family is not TruncatedLaplace:  # known by dots, which take seconds each
        assert optimality_gap(found) < 0.01


def test_fixed_noise_and_plans_come_first():
    fixed = Wanted(Laplace, Deviation(), scale=20.0, count=2)
    whole = Wanted(Repeat(Gaussian(50.0), 3), name="as it is")
    found = allocate([fixed, whole, wanted(Gaussian, weight=1.0)], BUDGET)
    assert found.scales[:2] == (20.0, None)
    assert found.errors[0] == pytest.approx(20 * math.sqrt(2))
    assert found.errors[1] is None
    ours = Gaussian(found.scales[2])
    assert found.plan == Sequential([Repeat(Laplace(20.0), 2), Repeat(Gaussian(50.0), 3), ours])
    assert found.epsilon == Tight(width=1e-6).epsilon(found.plan, 1e-6)
    alone = allocate([fixed], BUDGET)
    assert alone.epsilon == Tight().epsilon(2 * Laplace(20.0), 1e-6) < 1
    assert alone.total == 0


def test_given_noise_must_fit_the_budget():
    for releases in (
        [Wanted(Laplace, scale=0.5)],
        [Wanted(Laplace, Deviation(), target=1.0), wanted(Laplace, weight=1.0)],
        [Wanted(PureLoss(1.0)), wanted(Laplace, weight=1.0)],  # nothing is left
    ):
        with pytest.raises(BudgetExceeded):
            allocate(releases, Budget(1.0))


def test_a_plan_of_an_allocation_passes_a_gate():
    found = allocate([wanted(Laplace, weight=1.0, count=3), wanted(Gaussian, weight=1.0)], BUDGET)
    ledger = Ledger(np.zeros(5), found.plan, rng=0)
    for leaf in found.plan.leaves():
        ledger.release(leaf, np.sum)
    assert ledger.plan == found.plan
    # a filter adds up rho, which is no exact composition: a plan for it leaves room
    assert ZCDP().epsilon(found.plan, BUDGET.delta) > BUDGET.epsilon


def test_the_table_says_it_all():
    found = allocate([wanted(Laplace, weight=1.0, name="ages"), Wanted(Gaussian(100.0))], BUDGET)
    lines = str(found).splitlines()
    assert lines[0].split() == ["release", "count", "noise", "error", "decided", "by"]
    assert lines[1].split()[:2] == ["ages", "1"]
    assert lines[2].split() == ["Gaussian", "1", "100", "noise", "set", "by", "hand"]
    assert lines[3].startswith("epsilon 0.99999")


BAD = [
    (lambda: allocate([], BUDGET), "at least one"),
    (lambda: allocate([Laplace(1.0)], BUDGET), "a list of Wanted"),
    (lambda: allocate([wanted(Laplace, weight=1.0)], 1.0), "a Budget"),
    (lambda: allocate([wanted(Gaussian, weight=1.0)], Budget(1.0)), "a cost at this delta"),
    (lambda: Wanted(Laplace, Deviation()), "given one of scale"),
    (lambda: Wanted(Laplace, Deviation(), scale=1.0, weight=1.0), "given one of scale"),
    (lambda: Wanted(Laplace(1.0), weight=1.0), "given none of scale"),
    (lambda: Wanted(Laplace, weight=1.0), "a measure"),
    (lambda: Wanted(Laplace, Deviation(), weight=math.nan), "weight must be"),
    (lambda: Wanted(Laplace, Deviation(), weight=True), "weight must be"),
    (lambda: Wanted(Laplace, Deviation(), weight=0.0), "weight must be"),
    (lambda: Wanted(Laplace, Deviation(), weight=1.0, count=0), "count must be"),
    (lambda: Wanted(Laplace, Deviation(), target=-1.0), "target must be"),
    (lambda: Wanted(Laplace, Deviation(), weight=1.0, sensitivity=math.inf), "sensitivity must be"),
    (lambda: Wanted(Laplace, Deviation(), weight=1.0, sense=1.0), "other than its knob"),
    (lambda: Wanted(RandomizedResponse, Deviation(), weight=1.0, k=4), "a noise scale"),
    (lambda: Wanted(3, Deviation(), weight=1.0), "a mechanism class, a plan, or a function"),
    (lambda: Wanted(Laplace(1.0), name="x\x1b[2J"), "printable"),
    (lambda: Wanted(Laplace(1.0), name="a\u202eb"), "printable"),
    (lambda: Maximum(0), "maximum must be"),
    (lambda: Selection(2.5), "selection must be"),
    (lambda: allocate([Wanted(NoisyMax, Deviation(), weight=1.0)], BUDGET), "NoisyMax decl"),
    (lambda: allocate([Wanted(Laplace, lambda s: -s, weight=1.0)], BUDGET), "error must be"),
    (lambda: allocate([Wanted(Laplace, lambda s: 1 / s, weight=1.0)], BUDGET), "grows with"),
    (lambda: allocate([Wanted(Laplace, lambda s: s + 5, target=4.0)], BUDGET), "can reach"),
    (lambda: allocate([Wanted(lambda s: s, lambda s: s, weight=1.0)], BUDGET), "a plan, a loss"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "words"), BAD, ids=range(len(BAD)))
def test_requests_that_cannot_be_planned_are_refused(make, words):
    with pytest.raises(ParameterError, match=words):
        make()


def test_wrong_kinds_of_argument_are_parameter_errors():
    one = Wanted(Gaussian, Deviation(), weight=1.0, sensitivity=1.0)
    for releases in (one, None, 5):
        with pytest.raises(ParameterError, match="releases"):
            allocate(releases, BUDGET)
    for error in (Deviation, 5, "deviation"):  # the class itself, not a measure
        with pytest.raises(ParameterError, match="error"):
            Wanted(Gaussian, error, weight=1.0)
    for which in ("0", 0.0, True, 1, -1):
        with pytest.raises(ParameterError, match="which"):
            records_needed([one], BUDGET, which, 0.5, 100)
    with pytest.raises(ParameterError, match="relation"):
        explanation(1.0, 1e-6, "nobody")


def test_a_budget_used_up_but_for_round_off_is_no_noise_of_1e300():
    rest = Wanted(Gaussian, Deviation(), weight=1.0)
    for used in (1.0, 1 - 1e-9):
        with pytest.raises(BudgetExceeded):
            allocate([Wanted(PureLoss(used)), rest], BUDGET)


def test_the_printed_epsilon_of_an_allocation_is_rounded_up():
    for target in (3.0, 5.0, 7.0, 11.0, 13.0):
        found = allocate([Wanted(Laplace, Deviation(), target=target)], BUDGET)
        shown = float(re.search(r"epsilon ([\d.]+);", str(found))[1])
        assert found.epsilon <= shown <= found.epsilon * (1 + 1e-8)
