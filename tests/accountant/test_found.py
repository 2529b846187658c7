"""What an independent check once found wrong, each with the value that is right."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

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
    Filter,
    GaussianLoss,
    LaplaceLoss,
    Ledger,
    Odometer,
    PairLoss,
    Parallel,
    ParameterError,
    PoissonSampled,
    PureLoss,
    Repeat,
    SampledWithoutReplacement,
    Sequential,
    Shuffled,
    Tight,
    ZCDPLoss,
)
from mechanisms import Laplace, RandomizedResponse

L = Laplace(1.0)


@pytest.mark.parametrize(
    ("plan", "delta"),
    [(PureLoss(1.00005), 1e-6), (LaplaceLoss(1.00005), 1e-6), (20 * PureLoss(5.00003), 1e-9),
     (10 * PureLoss(0.30005), 1e-9), (PairLoss((0.75, 0.25), (0.25, 0.75)), 1e-9),
     (PairLoss((0.75, 0.25), (0.25, 0.75)), 0.0)],
    ids=repr,
)  # fmt: skip
def test_the_lower_end_is_not_above_the_truth_off_the_grid(plan, delta):
    truth = (
        plan.epsilon_at(delta) if not isinstance(plan, Repeat) else Advanced().epsilon(plan, delta)
    )
    assert PLD().bracket(plan, delta)[0] <= truth


def test_the_lower_end_is_finite_where_delta_is_the_mass_at_infinity():
    assert PLD().bracket(ApproxLoss(1.0, 1e-3), 1e-3)[0] <= 1.0


def test_the_lower_end_of_an_envelope_is_zero():
    assert PLD().bracket(100 * ZCDPLoss(0.01), 1e-6)[0] == 0.0


def exact_delta(count, e0, epsilon):
    """Kairouz-Oh-Viswanath in 50 digits."""
    with mpmath.workdps(50):
        e0, eps, total = mpmath.mpf(e0), mpmath.mpf(epsilon), mpmath.mpf(0)
        for heads in range(count + 1):
            gap = mpmath.e ** ((2 * heads - count) * e0) - mpmath.e**eps
            if gap > 0:
                tails = mpmath.e ** ((count - heads) * e0) / (1 + mpmath.e**e0) ** count
                total += mpmath.binomial(count, heads) * tails * gap
        return total


@pytest.mark.parametrize(
    ("count", "e0", "delta"),
    [(1, 1e-8, 5e-16), (2, 1e-12, 5e-17), (1000, 1e-12, 1e-12), (3, 1e-5, 1e-7), (50, 1e-3, 1e-9)],
)
def test_small_losses_are_not_cancelled_away(count, e0, delta):
    for accountant in (Basic(), Advanced(), ZCDP(), RDP(), PLD(), Tight()):
        epsilon = accountant.epsilon(count * PureLoss(e0), delta)
        if math.isfinite(epsilon):
            assert exact_delta(count, e0, epsilon) <= delta * (1 + 1e-12)
        asked = count * e0 / 3
        truth = exact_delta(count, e0, asked)
        assert accountant.delta(count * PureLoss(e0), asked) >= truth * (1 - 1e-12)


def moments(loss, order):
    """Rényi divergence of order ``order`` by closed form in 60 digits."""
    with mpmath.workdps(60):
        a, e = mpmath.mpf(order), mpmath.mpf(getattr(loss, "epsilon", getattr(loss, "shift", 0)))
        if isinstance(loss, PureLoss):
            moment = (mpmath.e ** (a * e) + mpmath.e ** ((1 - a) * e)) / (1 + mpmath.e**e)
        elif isinstance(loss, LaplaceLoss):
            moment = a * mpmath.e ** ((a - 1) * e) + (a - 1) * mpmath.e ** (-a * e)
            moment /= 2 * a - 1
        else:
            c = mpmath.e**-e
            t = mpmath.log((a - 1) * (1 - c**a) / (a * (c - c**a)))
            moment = mpmath.e ** ((a - 1) * t) * (1 - c**a) / (a * (1 - c))
        return mpmath.log(moment) / (a - 1)


@pytest.mark.parametrize("size", [1e-9, 1e-6, 1e-3, 0.1, 2.0])
@pytest.mark.parametrize("kind", [PureLoss, LaplaceLoss, BoundedRangeLoss])
@pytest.mark.parametrize("order", [1.000001, 1.001, 1.5, 2.0, 100.0, 1e4, 1e8])
def test_renyi_curves_are_never_below_the_truth(kind, size, order):
    found, truth = float(kind(size).renyi(order)), moments(kind(size), order)
    # sixty digits of the order that the float stands for
    assert found >= truth * (1 - mpmath.mpf(10) ** -30)
    assert found <= float(truth) * (1 + 1e-6) + 1e-8


def test_near_equal_pairs_do_not_cancel():
    for k in (20, 25, 29):
        step = 2.0**-k
        pair = PairLoss((0.5 + step, 0.5 - step), (0.5 - step, 0.5 + step))
        assert Fraction(pair.delta_at(0.0)) >= Fraction(2 * step)
        assert pair.renyi(2.0) >= 0
    near = PairLoss((0.75 + 2.0**-30, 0.25 - 2.0**-30), (0.75, 0.25))
    assert near.renyi(2.0) >= 4.6e-18


def test_no_accountant_undercuts_the_exact_sum_at_delta_zero():
    for crumb in (PureLoss(1e-16), PureLoss(1e-17), PureLoss(1e-300), 10**10 * PureLoss(1e-28)):
        assert not Budget(1.0).admits(10 * PureLoss(0.1) + crumb)
    for accountant in (Basic(), RDP(), PLD(), Tight()):
        assert accountant.epsilon(10 * PureLoss(0.1), 0.0) == 1.0


def test_plans_of_nothing_end():
    assert Ledger([1.0], Repeat(Sequential([]), 10**12)).next is None
    ledger = Ledger([1.0], L + Repeat(Repeat(L, 0), 10**12), rng=1)
    ledger.release(L, np.sum)
    assert ledger.next is None
    for hollow in (Parallel([Repeat(L, 0)]), Parallel([Parallel([]), Parallel([Sequential([])])])):
        assert Ledger([1.0], hollow + L).next is L


def test_the_grid_has_a_bounded_size():
    lopsided = PairLoss((1e-300, 0.5, 0.5), (0.5, 0.25, 0.25))
    assert Tight().epsilon(2 * lopsided + GaussianLoss(1e-4), 1e-6) < 1500
    assert (
        Tight().epsilon(2 * PairLoss((0.1, 1e-5, 0.9 - 1e-5), (0.0, 1e-320, 1.0)), 0.05) == math.inf
    )


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


def test_pld_speaks_of_parallels_with_mass_at_infinity():
    plan = 20 * Parallel([ApproxLoss(0.1, 1e-8), PureLoss(0.1)])
    alone = PLD().epsilon(20 * ApproxLoss(0.1, 1e-8), 1e-3)
    assert alone * (1 - 1e-9) <= PLD().epsilon(plan, 1e-3) <= alone * 1.01


def test_an_empty_group_pays_nothing_and_blocks_nothing():
    coin = RandomizedResponse(2, 0.75)
    for empty in ([], np.array([], dtype=int), slice(0, 0), np.zeros(3, dtype=bool)):
        ledger = Ledger(np.array([0, 1, 1]), Parallel([2 * coin, 2 * coin]) + L, rng=1)
        for who in ([0, 1, 2], empty, [0, 1, 2], empty):
            ledger.release_each(coin, lambda rows: rows, who)
        assert ledger.next is L


@pytest.mark.parametrize(("delta", "truth"), [(0.15, 0.62034), (0.05, 1.21725), (0.01, 1.86100)])
def test_the_lower_end_of_crossing_parallels_is_not_above_the_adaptive_truth(delta, truth):
    plan = 2 * Parallel([PureLoss(0.5), GaussianLoss(0.6)])
    assert PLD().bracket(plan, delta)[0] <= truth


@pytest.mark.parametrize(
    ("count", "e0", "delta"),
    [(27, 16.66667479393745, 1.170849653571051e-15), (10, 6.006456319552699, 1e-13)],
)
def test_the_binomial_is_not_an_ulp_too_small(count, e0, delta):
    epsilon = Advanced().epsilon(count * PureLoss(e0), delta)
    assert exact_delta(count, e0, epsilon) <= delta * (1 + mpmath.mpf(10) ** -12)


# --- what an independent check of exact accounting found, each once wrong


def sampled(mu, rate):
    return PoissonSampled(GaussianLoss(mu), rate)


@pytest.mark.parametrize(
    ("plan", "delta", "truth"),
    [
        # the mass a great tilt moves to the left was cut off
        ((sampled(1.0, 1 - 1e-12) + sampled(1.0, 1 - 1e-12).reversed), 1e-100, 30.900664),
        (2 * sampled(2.0, 1 - 1e-12).reversed, 1e-50, 45.845558),
        # two Gaussians
        (2 * sampled(1.0, 1.0), 1e-50, 21.8871180),
        # an outcome that only the data without the record can have: ln 2
        (PoissonSampled(PairLoss((0.0, 1.0), (0.3, 0.7)), 0.5).reversed, 1e-6, 0.693144),
        # 1e-12 off a lattice is off it
        (12 * PairLoss(
            (3.802024076768216e-06, 0.04437168824872835, 0.38534469201324173,
             0.05438807775528803, 0.002249546987142915, 0.5136421929715222),
            (6.355494354279542e-08, 0.04049658067948112, 0.9559964185171693,
             0.0003344596281748438, 1.3833595147468955e-05, 0.0031586440250837137)),
         0.00134133605600016, 55.9350241541),
    ],
    ids=range(5),
)  # fmt: skip
def test_certificates_hold_where_they_once_did_not(plan, delta, truth):
    found = Tight().certify_one_way(plan, delta)
    assert found.lower <= truth * (1 + 1e-6)
    assert found.upper >= truth * (1 - 1e-6)
    assert found.width < 1e-4 * truth
    for one in (Basic(), RDP(), ZCDP(), Advanced()):
        assert one.epsilon(plan, delta) >= truth * (1 - 1e-6)


def test_bounds_of_sampled_losses_are_rounded_outwards():
    assert PoissonSampled(ApproxLoss(0.1, 0.3), 0.5).reversed.max_loss >= math.log(2)
    assert PoissonSampled(PureLoss(30.0), 1.0).reversed.max_loss >= 30.0
    nearly = PoissonSampled(PureLoss(30.0), 1 - 1e-12).reversed
    assert nearly.max_loss == pytest.approx(27.541588, rel=1e-6)


def test_mass_at_infinity_is_taken_off_with_its_round_off():
    # 100 x (.1, 1e-8) at a delta a hair above its mass: 6.954603823679
    assert Advanced().epsilon(100 * ApproxLoss(0.1, 1e-8), 1.0000001e-6) >= 6.954603823679


def test_ratios_that_overflow_stay_apart():
    pair = PairLoss([0.3, 0.3, 0.4], [5e-324, 1e-309, 1.0])
    assert len(pair.p) == 3
    assert pair.epsilon_at(0.01) >= 743.1


def test_an_odometer_without_delta_takes_no_leaks():
    with pytest.raises(BudgetExceeded, match=r"spent delta 0, asked 0\.1"):
        Odometer(np.ones(3))._filter_meter.notion.spend(ApproxLoss(1.0, 0.1), Budget(1.0))


def test_a_budget_that_a_notion_cannot_keep_is_refused():
    with pytest.raises(ParameterError, match="one that this notion can keep"):
        Filter(np.ones(3), Budget(1e-9, 1e-30), "zcdp")


def test_huge_shifts_do_not_cancel():
    # delta = 1/2 lies at mu^2 / 2
    assert 5e19 <= GaussianLoss(1e10).epsilon_at(0.5) <= 5e19 * (1 + 1e-9)
    assert GaussianLoss(1e100).epsilon_at(0.9) >= 4.99e199
    wide = Tight().certify(10 * sampled(20.0, 0.01), 1e-6)
    assert 781.12 < wide.lower < wide.upper < 781.2
    assert Tight().epsilon(3 * sampled(20.0, 1.0), 1e-6) == Tight().epsilon(
        3 * GaussianLoss(20.0), 1e-6
    )


def test_a_loss_of_bound_zero_can_be_sampled_and_composed():
    plan = SampledWithoutReplacement(ApproxLoss(0.0, 1e-6), 1, 10) + LaplaceLoss(0.3)
    assert Tight().epsilon(plan, 1e-3) == pytest.approx(0.298, abs=1e-3)
    assert sampled(1.0, 0.0).delta_at(0.1) == 0.0
    assert SampledWithoutReplacement(GaussianLoss(1.0), 0, 10).epsilon_at(0.1) == 0.0


def test_many_users_weigh_no_less_than_one():
    from accountant.amplification.shuffling_bounds import binomial_window

    for users in (10**5, 10**7, 10**9):
        assert binomial_window(users, 0.3, 9.5)[1].sum() >= 1.0


def test_delta_at_the_epsilon_found_is_the_delta_asked():
    plan = 2 * BoundedRangeLoss(0.14444)
    found = Tight().epsilon(plan, 0.038617)
    assert Tight().delta(plan, found) <= 0.038617 * (1 + 1e-6)


def test_shuffling_composes_in_seconds():
    for plan in (2 * Shuffled(PureLoss(1.0), 1), 3 * Shuffled(PureLoss(0.3), 1000)):
        found = Tight().certify(plan, 1e-6)
        assert 0 < found.lower <= found.upper
