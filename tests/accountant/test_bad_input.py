"""Rows 1 to 12 of the table of bad input: every way in, and what must happen."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from accountant import (
    GDP,
    PLD,
    RDP,
    ZCDP,
    Advanced,
    ApproxLoss,
    Basic,
    BoundedRangeLoss,
    Budget,
    BudgetExceeded,
    GaussianLoss,
    Grouped,
    LaplaceLoss,
    ParameterError,
    PoissonSampled,
    PureLoss,
    Repeat,
    SampledWithoutReplacement,
    Shuffled,
    Tight,
    UnsupportedPlan,
    ZCDPLoss,
    calibrate,
    compare,
)
from mechanisms import Gaussian, Laplace
from tests.processor_time import standard_seconds

NO_NUMBERS = [math.nan, math.inf, -math.inf, -1.0, True, False, "1", 1j, None, [1.0]]
MAKERS = [
    PureLoss, GaussianLoss, LaplaceLoss, BoundedRangeLoss, ZCDPLoss, lambda x: ApproxLoss(x, 0.1),
    lambda x: ApproxLoss(0.1, x), lambda x: ZCDPLoss(0.1, x), Budget, lambda x: Budget(1.0, x),
    lambda x: PoissonSampled(PureLoss(1.0), x), lambda x: Repeat(PureLoss(1.0), x),
    lambda x: Grouped(PureLoss(1.0), x), lambda x: Shuffled(PureLoss(1.0), x),
    lambda x: SampledWithoutReplacement(PureLoss(1.0), x, 10), Laplace, Gaussian,
    lambda x: Laplace(1.0, sensitivity=x), PLD, Tight,
    lambda x: calibrate(Laplace, epsilon=x), lambda x: calibrate(Laplace, epsilon=1.0, delta=x),
    lambda x: PureLoss(1.0).epsilon_at(x), lambda x: PureLoss(1.0).renyi(x),
]  # fmt: skip


@pytest.mark.parametrize("bad", NO_NUMBERS, ids=repr)
@pytest.mark.parametrize("make", MAKERS, ids=range(len(MAKERS)))
def test_rows_1_to_4_what_is_no_number_is_refused(make, bad):
    with pytest.raises(ParameterError):
        make(bad)


@pytest.mark.parametrize("bad", [*NO_NUMBERS, 1.0, 2.0])
@pytest.mark.parametrize("accountant", [Basic(), Advanced(), ZCDP(), RDP(), PLD(), Tight()])
def test_row_3_every_accountant_refuses_what_is_no_delta(accountant, bad):
    with pytest.raises(ParameterError, match="delta must be"):
        accountant.epsilon(GaussianLoss(1.0), bad)
    if bad not in (1.0, 2.0, False, True):
        with pytest.raises(ParameterError, match="epsilon must be"):
            accountant.delta(GaussianLoss(1.0), bad)


@pytest.mark.parametrize("bad", [0.0, -0.0, 5e-324, 1e308])
def test_row_2_sizes_no_float_can_carry_are_refused(bad):
    for make in (PureLoss, GaussianLoss, LaplaceLoss, Laplace, Gaussian):
        with pytest.raises(ParameterError):
            make(bad)


@pytest.mark.parametrize(
    "number", [Decimal("0.5"), Fraction(1, 2), np.float16(0.5), np.longdouble(0.5), np.float32(0.5)]
)
def test_row_4_other_numbers_are_converted(number):
    assert PureLoss(number) == PureLoss(0.5)
    assert Tight().epsilon(PureLoss(1.0), number) == Tight().epsilon(PureLoss(1.0), 0.5)


def test_row_5_a_target_of_zero_is_refused_not_unset():
    for target in (0, 0.0):
        with pytest.raises(ParameterError, match="epsilon must be"):
            calibrate(Gaussian, epsilon=target)
        # beside a delta it is a target: the advantage
        noise = calibrate(Gaussian, epsilon=target, delta=1e-6)
        assert (1 - 2e-6) * 1e-6 <= Tight().delta(noise, 0.0) <= 1e-6


def test_row_6_no_noise_is_no_privacy():
    with pytest.raises(ParameterError, match="scale must be"):
        Gaussian(0.0)
    assert Tight().epsilon(3 * Gaussian(1e-300), 1e-6) == math.inf
    assert RDP().epsilon(3 * Gaussian(1e-300), 1e-6) == math.inf


@pytest.mark.parametrize(
    "loss", [PureLoss(1e-6), GaussianLoss(1e-6), LaplaceLoss(1e-6), BoundedRangeLoss(1e-6),
             ZCDPLoss(1e-13), PoissonSampled(GaussianLoss(0.01), 1e-4), ApproxLoss(1e-6, 1e-20)],
    ids=repr,
)  # fmt: skip
def test_row_7_a_trillion_compositions_are_bounded_at_once(loss):
    assert Tight().epsilon(Repeat(loss, 0), 1e-6) == 0.0
    Tight().epsilon(2 * loss, 1e-6)  # imports
    plan = Repeat(loss, 10**12)
    certificates = []
    assert standard_seconds(lambda: certificates.append(Tight().certify(plan, 1e-6))) < 30
    found = certificates[0]
    assert 0 < found.lower <= found.upper < 1e5 or isinstance(loss, BoundedRangeLoss | ZCDPLoss)
    for row in compare(Repeat(loss, 10**12), 1e-6):
        assert row.epsilon >= found.lower


def test_row_8_rates_at_their_ends():
    for bad in (1 + 1e-12, math.nan):
        with pytest.raises(ParameterError, match="rate must be"):
            PoissonSampled(GaussianLoss(1.0), bad)
    assert Tight().epsilon(PoissonSampled(GaussianLoss(1.0), 0.0), 1e-6) == 0.0
    whole = Tight().epsilon(PoissonSampled(GaussianLoss(1.0), 1.0), 1e-6)
    assert whole == pytest.approx(Tight().epsilon(GaussianLoss(1.0), 1e-6), rel=1e-9)


@pytest.mark.parametrize("epsilon", [1e-3, 1e-4, 1e-6])
def test_row_9_small_targets_are_calibrated_on_the_right_side(epsilon):
    plans = (
        lambda s: 100 * Gaussian(s),
        lambda s: 10 * Laplace(s) + 3 * Gaussian(s),
        lambda s: 100 * PoissonSampled(Gaussian(s), 0.01),
    )
    for plan_of in plans:
        scale = calibrate(plan_of, epsilon=epsilon, delta=1e-9)
        assert epsilon * (1 - 1e-6) <= Tight().epsilon(plan_of(scale), 1e-9) <= epsilon


@pytest.mark.parametrize("delta", [1e-18, 1e-50, 1e-100, 1e-300])
def test_row_10_tiny_deltas_are_never_optimistic(delta):
    from mpmath import mp, mpf, ncdf

    mp.dps = 60
    try:
        for mu in (0.1, 1.0, 5.0):
            found = Tight().epsilon(4 * GaussianLoss(mu / 2), delta)
            e, m = mpf(found), mpf(mu)
            left = ncdf(m / 2 - e / m) - mp.e**e * ncdf(-m / 2 - e / m)
            assert left <= mpf(delta)
            e *= 1 - mpf(10) ** -9
            assert ncdf(m / 2 - e / m) - mp.e**e * ncdf(-m / 2 - e / m) > mpf(delta)
    finally:
        mp.dps = 15


def test_a_node_an_accountant_cannot_bound_says_what_would_work():
    with pytest.raises(UnsupportedPlan, match="no mu bounds it; ask Tight") as caught:
        GDP().epsilon(PureLoss(0.1) + ZCDPLoss(0.1), 1e-6)
    assert caught.value.node == ZCDPLoss(0.1)
    assert caught.value.accountant == "GDP"


def test_the_message_of_an_exceeded_budget_names_its_numbers():
    remedy = "ask for less"
    words = {
        BudgetExceeded(0.5, 2.0, "B"): "spent epsilon 0.5, asked 2, budget 'B'",
        BudgetExceeded(0.5, 2.0, "B", "rho", remedy=remedy): (
            "spent rho 0.5, asked 2, budget 'B'; ask for less"
        ),
        BudgetExceeded(0.5, 2.0000012, "B", limit=1.0): (
            "this needs epsilon 2, and 0.5 is left of the limit 1 (0.5 is spent; 'B')"
        ),
        BudgetExceeded(0.5, 0.5000001, "B", "delta", 1.0, remedy): (
            "this needs delta 0.5000001, and 0.5 is left of the limit 1 (0.5 is spent; 'B')"
            "; ask for less"
        ),
        BudgetExceeded(3.0, 1.0, "B", limit=2.0): (
            "this needs epsilon 1, and 0 is left of the limit 2 (3 is spent; 'B')"
        ),
    }
    assert {error: str(error) for error in words} == words
