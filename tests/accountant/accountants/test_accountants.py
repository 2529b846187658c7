"""Accountants: sound on random plans by an independent road, and no nonsense gets through."""

import math
from fractions import Fraction

import pytest
from hypothesis import given

from accountant import (
    PLD,
    RDP,
    ZCDP,
    Advanced,
    ApproxLoss,
    Basic,
    BoundedRangeLoss,
    Budget,
    BudgetExceeded,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    GaussianLoss,
    Grouped,
    LaplaceLoss,
    PairLoss,
    Parallel,
    ParameterError,
    PoissonSampled,
    PureLoss,
    Repeat,
    Sequential,
    Tight,
    UnsupportedPlan,
    ZCDPLoss,
    compare,
)
from accountant.accountants.base import LEAST_LOG_DELTA, NEAR, least_delta
from accountant.ledger.composition_notions import notion_of
from mechanisms import Gaussian, Laplace
from tests.accountant.enumeration import atoms_of, delta_by_enumeration
from tests.processor_time import standard_seconds
from tests.strategies import deltas, epsilons, finite_plans

SOUND = [Basic(), Advanced(), ZCDP(), RDP(), PLD(), Tight()]
every_accountant = pytest.mark.parametrize("accountant", SOUND, ids=lambda a: a.name)


@given(finite_plans(), deltas())
def test_no_accountant_is_unsafe_on_finite_plans(losses, delta):
    plan = Sequential(losses)
    for accountant in SOUND:
        epsilon = accountant.epsilon(plan, delta)
        if math.isfinite(epsilon):
            mirrored = [PairLoss(*atoms_of(one)[::-1]) for one in losses]
            assert delta_by_enumeration(losses, epsilon) <= delta * (1 + 1e-9)
            assert delta_by_enumeration(mirrored, epsilon) <= delta * (1 + 1e-9)


@given(finite_plans(), epsilons(0.0, 3.0))
def test_no_delta_is_unsafe_on_finite_plans(losses, epsilon):
    plan = Sequential(losses)
    mirrored = [PairLoss(*atoms_of(one)[::-1]) for one in losses]
    truth = max(delta_by_enumeration(losses, epsilon), delta_by_enumeration(mirrored, epsilon))
    for accountant in SOUND:
        assert accountant.delta(plan, epsilon) >= truth * (1 - 1e-12) - 1e-15  # enumeration rounds


@given(finite_plans(3), deltas(1e-2, 1e-3))
def test_the_bracket_holds_the_enumerated_epsilon(losses, delta):
    lower, upper = PLD().bracket(Sequential(losses), delta)
    assert lower <= upper
    mirrored = [PairLoss(*atoms_of(one)[::-1]) for one in losses]
    below = lower * (1 - 1e-9) - 1e-12
    if below > 0 and math.isfinite(below):
        assert max(
            delta_by_enumeration(losses, below), delta_by_enumeration(mirrored, below)
        ) >= delta * (1 - 1e-6)


CONTINUOUS = [GaussianLoss(0.3), LaplaceLoss(0.2), BoundedRangeLoss(0.2), PureLoss(0.2)]


@pytest.mark.parametrize("count", [1, 2, 100, 10_000])
@pytest.mark.parametrize("loss", CONTINUOUS, ids=repr)
def test_every_accountant_is_above_the_grid_from_below(loss, count):
    plan = Repeat(loss, count)
    for delta in (1e-3, 1e-6):
        # the lower end is for the loss's own pair, which bounded range is looser than
        lower = 0.0 if isinstance(loss, BoundedRangeLoss) else PLD().bracket(plan, delta)[0]
        for accountant in SOUND:
            assert accountant.epsilon(plan, delta) >= lower


@pytest.mark.parametrize("count", [1, 3, 1000])
def test_gaussians_compose_to_a_gaussian(count):
    truth = GaussianLoss(0.05 * math.sqrt(count))
    for delta in (1e-3, 1e-6, 1e-9):
        lower, upper = PLD().bracket(count * GaussianLoss(0.05), delta)
        assert lower <= truth.epsilon_at(delta) <= upper
        # the noise of the transform costs more the smaller delta is
        assert upper <= truth.epsilon_at(delta) * (1 + 1e-3) + 1e-4


@every_accountant
def test_epsilon_falls_with_delta_and_grows_with_count(accountant):
    loss = GaussianLoss(0.1)
    by_delta = [accountant.epsilon(20 * loss, d) for d in (1e-9, 1e-6, 1e-3)]
    assert by_delta == sorted(by_delta, reverse=True)
    by_count = [accountant.epsilon(n * loss, 1e-6) for n in (1, 5, 50)]
    assert by_count == sorted(by_count)


@every_accountant
def test_delta_and_epsilon_agree(accountant):
    plan = 20 * LaplaceLoss(0.1) + 3 * PureLoss(0.2)
    epsilon = accountant.epsilon(plan, 1e-4)
    assert accountant.delta(plan, epsilon * (1 + 1e-6)) <= 1e-4 * (1 + 1e-3)


@every_accountant
def test_an_empty_plan_costs_nothing(accountant):
    for plan in (Sequential([]), Repeat(PureLoss(1.0), 0), Parallel([])):
        assert accountant.epsilon(plan, 1e-6) == 0.0
        assert accountant.epsilon(plan, 0.0) == 0.0
        assert accountant.delta(plan, 0.5) <= 1e-15


@every_accountant
def test_delta_zero_is_the_exact_sum_or_infinite(accountant):
    pure = 10 * PureLoss(0.1)
    assert accountant.epsilon(pure, 0.0) == pytest.approx(1.0) or isinstance(accountant, ZCDP)
    assert accountant.epsilon(GaussianLoss(1.0), 0.0) == math.inf


def test_basic_shares_delta_among_the_releases_that_need_it():
    plan = 2 * GaussianLoss(0.5) + PureLoss(0.3)
    alone = GaussianLoss(0.5).epsilon_at(0.5e-6)
    assert Basic().epsilon(plan, 1e-6) == pytest.approx(2 * alone + 0.3, rel=1e-9)
    # each keeps its own delta first
    unequal = ApproxLoss(1.0, 9e-6) + ApproxLoss(0.5, 1e-6)
    assert Basic().epsilon(unequal, 1e-5) == 1.5
    assert Basic().epsilon(unequal, 0.9e-5) == math.inf


def test_shares_of_delta_do_not_round_above_it_beside_a_mass_at_infinity():
    infinity, small, count, delta = 0.01, 1e-15, 11, 0.11000000000000001
    loss = PairLoss((infinity, small, 1 - infinity - small), (0.0, small / 8, 1 - small / 8))
    for total in (delta, math.nextafter(delta, 1.0), 0.12):
        epsilon = Basic().epsilon(count * loss, total) / count
        finite_part = Fraction(small) * (1 - Fraction(math.exp(epsilon)) / 8)
        # Deltas add as they are printed.
        assert count * (Fraction("0.01") + max(finite_part, 0)) <= Fraction(repr(total))


def test_one_pure_release_is_its_epsilon_not_its_rho():
    # "Basic >= zCDP" is no law
    assert Basic().epsilon(PureLoss(0.1), 1e-6) < 0.11
    assert ZCDP().epsilon(PureLoss(0.1), 1e-6) == pytest.approx(0.43, abs=0.01)
    assert Tight().epsilon(PureLoss(0.1), 0.0) == 0.1


def test_zcdp_is_its_own_conversion():
    assert ZCDP().epsilon(10 * ZCDPLoss(0.01), 1e-5) == pytest.approx(
        ZCDPLoss(0.1).epsilon_at(1e-5), rel=1e-9
    )


@every_accountant
def test_parallel_costs_the_dearest_part(accountant):
    cheap, dear = Laplace(10.0), Laplace(5.0)
    both = accountant.epsilon(Parallel([cheap, dear]), 1e-6)
    assert both == pytest.approx(accountant.epsilon(dear, 1e-6), rel=1e-3)
    many = accountant.epsilon(Parallel([dear] * 1000), 1e-6)
    assert many == pytest.approx(accountant.epsilon(dear, 1e-6), rel=1e-3)


@every_accountant
def test_parallel_inside_a_sequence(accountant):
    node = Parallel([2 * Gaussian(20.0), 3 * Gaussian(20.0), Repeat(Gaussian(20.0), 0)])
    plan = Gaussian(20.0) + node
    alone = accountant.epsilon(4 * Gaussian(20.0), 1e-5)
    assert alone * (1 - 1e-9) <= accountant.epsilon(plan, 1e-5) <= alone * 1.35


def test_parallel_of_crossing_profiles_is_above_both():
    steep, flat = LaplaceLoss(1.0), GaussianLoss(0.3)
    plan = 5 * Parallel([steep, flat])
    for part in (5 * steep, 5 * flat):
        assert PLD().epsilon(plan, 1e-4) >= PLD().bracket(part, 1e-4)[0]


BAD = [float("nan"), -1e-9, 1.0, 2.0, True, "0.1", None, 1j]


@every_accountant
@pytest.mark.parametrize("bad", BAD, ids=repr)
def test_a_delta_that_is_none_is_refused(accountant, bad):
    with pytest.raises(ParameterError, match="delta must be a number in"):
        accountant.epsilon(GaussianLoss(1.0), bad)


@every_accountant
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -1.0, True, "1", None], ids=repr)
def test_an_epsilon_that_is_none_is_refused(accountant, bad):
    with pytest.raises(ParameterError, match="epsilon must be a number in"):
        accountant.delta(GaussianLoss(1.0), bad)


@every_accountant
@pytest.mark.parametrize("bad", [None, 1.0, "plan", [PureLoss(1.0)]], ids=repr)
def test_what_is_no_plan_is_refused(accountant, bad):
    with pytest.raises(ParameterError, match="plan must be"):
        accountant.epsilon(bad, 1e-6)


@pytest.mark.parametrize("delta", [1e-12, 1e-15, 1e-18, 1e-100])
@pytest.mark.parametrize("accountant", [ZCDP(), RDP(), PLD(), Tight()], ids=lambda a: a.name)
def test_tiny_deltas_are_never_optimistic(accountant, delta):
    truth = GaussianLoss(0.01 * math.sqrt(1000)).epsilon_at(delta)
    assert accountant.epsilon(1000 * GaussianLoss(0.01), delta) >= truth


@pytest.mark.parametrize("log_delta", [-650.0, -695.0, -699.0, -700.0])
def test_the_least_deltas_are_found_as_closely_as_others(log_delta):
    delta = least_delta(lambda delta: -math.log(delta), -log_delta)
    assert log_delta - 1e-12 <= math.log(delta) <= log_delta + NEAR
    assert least_delta(lambda delta: -math.log(delta), 710.0) == math.exp(LEAST_LOG_DELTA)


@pytest.mark.parametrize(
    "loss",
    [
        LaplaceLoss(1400.0), BoundedRangeLoss(1400.0), PureLoss(1400.0),
        DiscreteLaplaceLoss(1e-3, 1), DiscreteGaussianLoss(1e-2, 1),
        PairLoss((1 - 1e-320, 1e-320), (1e-320, 1 - 1e-320)),
    ],
    ids=repr,
)  # fmt: skip
def test_samples_of_nearly_no_noise_have_nearly_no_privacy(loss):
    # with probability 0.1 the record is seen, and the loss is above 700 then
    for count in (1, 3):
        assert RDP().epsilon(count * PoissonSampled(loss, 0.1), 1e-3) > 690
    assert Tight().epsilon(PoissonSampled(loss, 0.1), 1e-3) > 690
    assert Tight().epsilon(loss, 1e-3) > 690


def test_groups_and_exchanges_of_nearly_no_noise_have_nearly_no_privacy():
    assert Tight().epsilon(Grouped(DiscreteLaplaceLoss(1 / 500, 1), 2), 1e-3) > 990
    assert Tight().epsilon(Grouped(DiscreteLaplaceLoss(1 / 300, 1), 2), 1e-3) < 601
    sampled = PoissonSampled(DiscreteLaplaceLoss(1 / 1400, 1), 0.1, "replace-one")
    assert Tight().epsilon(sampled, 1e-3) > 690


def test_extreme_noise_is_reported_as_no_privacy():
    assert Tight().epsilon(2 * Gaussian(1e-290), 1e-6) == math.inf
    assert Tight().epsilon(2 * Gaussian(1e290), 1e-6) < 1e-6
    assert Tight().epsilon(2 * Gaussian(1e290), 1e-300) > 0
    assert Tight().epsilon(2 * LaplaceLoss(1e-290), 0.0) <= 1e-280


EXTREME = [
    10**12 * GaussianLoss(1e-6), 3 * PureLoss(1e300),
    2 * LaplaceLoss(1e-300), 2 * BoundedRangeLoss(700.0), 10**9 * ApproxLoss(0.0, 1e-3),
    5 * PairLoss((1.0, 0.0), (0.0, 1.0)), 5 * PairLoss((0.5, 0.5), (0.5, 0.5)),
    1000 * PureLoss(1e-9) + 2 * PureLoss(50.0) + GaussianLoss(0.3),
]  # fmt: skip
# `Tight.delta` makes a lattice for each of some forty guesses of these
DEAR_DELTAS = [10**12 * PureLoss(1e-6), 2 * ZCDPLoss(1e-200)]


@pytest.mark.parametrize("plan", [*EXTREME, *DEAR_DELTAS], ids=repr)
def test_extreme_plans_are_bounded_quickly(plan):
    for delta in (0.0, 1e-15, 1e-6):
        rows = []
        assert standard_seconds(lambda d=delta, rows=rows: rows.extend(compare(plan, d))) < 20
        assert all(row.epsilon >= 0.0 for row in rows)
        assert Tight().epsilon(plan, delta) >= 0.0


@pytest.mark.parametrize(
    "plan", [*EXTREME, *(pytest.param(one, marks=pytest.mark.slow) for one in DEAR_DELTAS)],
    ids=repr,
)  # fmt: skip
def test_deltas_of_extreme_plans_are_probabilities(plan):
    assert 0.0 <= Tight().delta(plan, 1.0) <= 1.0


def test_a_plan_too_fine_for_the_grid_is_refused_with_a_way_out():
    with pytest.raises(UnsupportedPlan, match="too small for 262,144 grid points; ask RDP"):
        PLD().epsilon(10**12 * PureLoss(1e-6), 1e-6)
    assert "cannot say" in str(compare(10**12 * PureLoss(1e-6), 1e-6))


def test_counts_that_no_float_holds_are_refused():
    with pytest.raises(ParameterError, match="count must be a whole number from 0 to 9,007"):
        10**400 * PureLoss(1.0)


def test_no_accountant_undercuts_the_exact_sum_at_delta_zero():
    for crumb in (PureLoss(1e-16), PureLoss(1e-17), PureLoss(1e-300), 10**10 * PureLoss(1e-28)):
        assert Basic().epsilon(10 * PureLoss(0.1) + crumb, 0.0) > 1.0
        assert Tight().epsilon(10 * PureLoss(0.1) + crumb, 0.0) > 1.0
        notion = notion_of("pure", Budget(1.0))
        whole = notion.charge(notion.zero, 10 * PureLoss(0.1))
        with pytest.raises(BudgetExceeded):  # a crumb is no round-off of what was spent before
            notion.charge(whole, crumb)
    for accountant in (Basic(), RDP(), PLD(), Tight()):
        assert accountant.epsilon(10 * PureLoss(0.1), 0.0) == 1.0


def test_epsilon_does_not_jump_above_the_mass_at_infinity():
    loss = ApproxLoss(1.0, 1e-3)
    for delta in (1e-3, math.nextafter(1e-3, 1), 1.00000000001e-3):
        for accountant in (Basic(), Advanced(), Tight()):
            assert accountant.epsilon(loss, delta) <= 1.0
    assert PairLoss((0.5, 0.49, 0.01), (0.5, 0.5, 0.0)).epsilon_at(0.01 + 1e-13) <= 0.0203
    for count in range(1, 40):
        for delta in (1e-6, 3e-7, 1e-9):
            spent = Basic().epsilon(count * ApproxLoss(0.5, delta), float(f"{count * delta:.12g}"))
            assert spent == 0.5 * count


def test_renyi_orders_that_cannot_be_the_best_are_left_out(monkeypatch):
    plan = 1_000 * PoissonSampled(GaussianLoss(1.0), 0.01)
    asked, whole_curve = [], RDP.curve

    def curve(self, plan, order):
        asked.append(order.max())
        return whole_curve(self, plan, order)

    monkeypatch.setattr(RDP, "curve", curve)
    found = RDP().epsilon(plan, 1e-6)
    assert max(asked) < 1e4
    monkeypatch.setattr("accountant.accountants.rdp.COSTLY_ORDERS", ())
    assert RDP().epsilon(plan, 1e-6) == found
    assert max(asked) > 1e8
