"""Tight: certificates, engines, both directions, far tails, and what it costs to ask."""

import math

import numpy as np
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
    Certificate,
    GaussianLoss,
    Grouped,
    LaplaceLoss,
    PairLoss,
    Parallel,
    ParameterError,
    PoissonSampled,
    PureLoss,
    SampledWithoutReplacement,
    Sequential,
    Shuffled,
    Tight,
    ZCDPLoss,
)
from tests.accountant.enumeration import delta_by_enumeration
from tests.processor_time import standard
from tests.strategies import deltas, epsilons, finite_plans

SCALES = np.linspace(400, 900, 500)
MANY = Sequential(
    [100 * LaplaceLoss(1 / s) for s in SCALES] + [100 * GaussianLoss(1 / s) for s in SCALES]
)
RNG = np.random.default_rng(7)
RESPONSES = Sequential([PureLoss(float(e)) for e in RNG.uniform(0.05, 0.3, 200)])
FOUR = Sequential([40 * PureLoss(0.1 * math.sqrt(n)) for n in (1, 2, 3, 5)])
E, TOTAL = math.e, math.e + 9
TEN_ARY = PairLoss((E / TOTAL, 1 / TOTAL, 8 / TOTAL), (1 / TOTAL, E / TOTAL, 8 / TOTAL))
DP_SGD = 15_000 * PoissonSampled(GaussianLoss(1 / 0.8), 0.004)

# (plan, delta, true epsilon, engine, greatest relative width)
FIGURES = {
    "a": (1000 * GaussianLoss(0.01), 1e-6, 1.3675714750843067, "closed form", 1e-11),
    "b": (DP_SGD, 1e-5, 4.3794743600703706, "contour", 1e-8),
    "d": (200 * PureLoss(0.1), 1e-6, 7.1855944576723477, "enumeration", 1e-12),
    "e": (100 * TEN_ARY, 1e-6, 39.902014886125631, "lattice", 1e-12),
    "g": (MANY, 1e-6, 2.3890228685705721, "contour", 1e-8),
    "64 Laplaces": (64 * LaplaceLoss(1 / 20), 1e-6, 1.7003609253711630, "smoothed contour", 1e-6),
    "10,000 Laplaces": (10_000 * LaplaceLoss(0.01), 1e-6, 4.8762575794006397, "contour", 1e-8),
    "top": (64 * LaplaceLoss(1 / 20), 1e-300, 3.2, "greatest outcome", 1e-12),
}


@pytest.mark.parametrize("name", FIGURES)
def test_the_figures_are_certified(name):
    plan, delta, truth, engine, width = FIGURES[name]
    found = Tight().certify(plan, delta)
    assert found.engine == engine
    # the ten-ary response's masses are floats: its epsilon is 1 but for round-off
    assert found.lower * (1 - 1e-14) <= truth <= found.upper * (1 + 1e-14)
    assert found.width <= width * truth
    assert Tight().epsilon(plan, delta) == found.upper
    assert Tight().bracket(plan, delta) == (found.lower, found.upper)


@pytest.mark.parametrize("plan", [RESPONSES, FOUR], ids=["200", "four"])
def test_incommensurable_responses_agree_with_the_grid(plan):
    found = Tight().certify(plan, 1e-6)
    assert found.width <= 1e-6 * found.upper
    lower, upper = PLD(interval=1e-4).bracket(plan, 1e-6)
    assert lower <= found.upper
    assert found.lower <= upper
    assert upper - lower < 1e-3 * upper


@given(finite_plans(), deltas(0.1, 1e-3, 1e-6))
def test_the_certificate_holds_the_enumerated_epsilon(losses, delta):
    found = Tight().certify(Sequential(losses), delta)
    mirrored = [one.reversed for one in losses]
    if math.isinf(found.upper):
        assert max(sum(one.infinity for one in way) for way in (losses, mirrored)) >= delta
        return
    worst = max(
        delta_by_enumeration(losses, found.upper), delta_by_enumeration(mirrored, found.upper)
    )
    assert worst <= delta * (1 + 1e-9)
    below = found.lower * (1 - 1e-9) - 1e-12
    if below > 0:
        worst = max(delta_by_enumeration(losses, below), delta_by_enumeration(mirrored, below))
        assert worst >= delta * (1 - 1e-6)


@given(finite_plans(), epsilons(0.0, 3.0))
def test_delta_is_the_enumerated_one(losses, epsilon):
    found = Tight().delta(Sequential(losses), epsilon)
    mirrored = [one.reversed for one in losses]
    truth = max(delta_by_enumeration(losses, epsilon), delta_by_enumeration(mirrored, epsilon))
    assert truth * (1 - 1e-12) - 1e-15 <= found <= truth * (1 + 1e-7) + 1e-15


@pytest.mark.parametrize(
    "plan",
    [MANY, 64 * LaplaceLoss(1 / 20), FOUR, DP_SGD, DP_SGD.reversed, 3 * GaussianLoss(2.0),
     20 * PureLoss(0.3) + GaussianLoss(0.5), 5 * ApproxLoss(0.2, 1e-9) + LaplaceLoss(1.0)],
    ids=range(8),
)  # fmt: skip
@pytest.mark.parametrize("delta", [1e-2, 1e-8])
def test_delta_and_epsilon_meet(plan, delta):
    found = Tight().certify(plan, delta)
    assert Tight().delta(plan, found.upper) <= delta * (1 + 1e-6)
    assert Tight().delta(plan, found.lower) >= delta * (1 - 1e-6)


def test_at_delta_zero_it_is_the_sum_of_the_bounds():
    plan = 10 * PureLoss(0.1) + 3 * LaplaceLoss(0.2)
    assert Tight().certify(plan, 0.0) == Certificate(1.6, 1.6, "sum of the bounds")
    assert Tight().epsilon(plan + GaussianLoss(0.1), 0.0) == math.inf


def test_both_directions_count():
    plan = 50 * PoissonSampled(GaussianLoss(1.0), 0.1)
    forth, back = (Tight().certify_one_way(way, 1e-5).upper for way in (plan, plan.reversed))
    assert forth > back * 1.1
    assert Tight().epsilon(plan, 1e-5) == Tight().epsilon(plan.reversed, 1e-5) == forth


def test_mass_at_infinity_at_least_delta_is_no_privacy():
    loss = ApproxLoss(0.1, 1e-3)
    assert Tight().certify(10 * loss, 9e-3).lower == math.inf
    assert Tight().certify(10 * loss, 1.1e-2).upper < 1.0 + 1e-9
    assert Tight().epsilon(loss, 1e-3) == 0.1  # all of delta, and the finite part's bound


ENVELOPES = [
    49 * BoundedRangeLoss(0.053808),
    20 * ZCDPLoss(0.01),
    10 * BoundedRangeLoss(0.2) + 5 * GaussianLoss(0.3),
    3 * SampledWithoutReplacement(GaussianLoss(1.0), 10, 1000),
    2 * Shuffled(PureLoss(1.0), 100),
    3 * Parallel([LaplaceLoss(0.5), GaussianLoss(0.4)]) + PureLoss(0.1),
]


@pytest.mark.parametrize("plan", ENVELOPES, ids=lambda plan: repr(plan)[:50])
def test_of_many_pairs_it_takes_the_least_bound_and_one_pair_below(plan):
    found = Tight().certify(plan, 1e-5)
    assert 0 < found.lower <= found.upper
    assert found.upper <= RDP().epsilon(plan, 1e-5) * (1 + 1e-12)
    assert found.lower > 0.5 * found.upper


def test_one_parallel_is_its_dearest_part():
    parts = [64 * LaplaceLoss(0.05), 100 * GaussianLoss(0.05), PureLoss(0.3)]
    found = Tight().certify(Parallel(parts), 1e-6)
    dearest = max((Tight().certify(part, 1e-6) for part in parts), key=lambda one: one.upper)
    assert found == dearest


@pytest.mark.parametrize(
    ("plan", "choices"),
    [
        (
            3 * Parallel([LaplaceLoss(0.5), GaussianLoss(0.4)]) + PureLoss(0.1),
            [3 * part + PureLoss(0.1) for part in (LaplaceLoss(0.5), GaussianLoss(0.4))],
        ),
        (
            2 * Parallel([2 * PureLoss(0.2), 9 * GaussianLoss(0.1)]),
            [4 * PureLoss(0.2), 18 * GaussianLoss(0.1)],
        ),
    ],
    ids=["single releases", "compositions"],
)
def test_a_plan_with_parallels_costs_at_least_what_each_user_pays(plan, choices):
    found = Tight().certify(plan, 1e-6)
    lower = max(Tight().certify(one, 1e-6).lower for one in choices)
    # the costliest strategy costs more than each user, but is known less exactly
    assert found.lower >= lower * (1 - 1e-12)
    assert lower <= found.upper


def test_of_many_parallels_some_choices_give_the_lower_end():
    # 400 choices: each part of one beside the same of the other
    plan = Parallel([GaussianLoss(0.1 * i) for i in range(1, 21)])
    plan += Parallel([LaplaceLoss(0.05 * i) for i in range(1, 21)])
    found = Tight().certify(plan, 1e-6)
    dearest = Tight().certify(GaussianLoss(2.0) + LaplaceLoss(1.0), 1e-6)
    assert dearest.lower * (1 - 1e-9) <= found.lower <= found.upper


def test_the_printed_ends_are_rounded_outward():
    found = Certificate(4.154399500727946, 4.154399500728123, "contour")
    assert str(found) == "the true epsilon is in [4.15439950072, 4.15439950073], contour"
    assert str(Certificate(math.inf, math.inf, "closed form")).startswith(
        "the true epsilon is in [∞"
    )


def test_it_says_who_answered_and_how_wide():
    found = Tight().certify(64 * LaplaceLoss(1 / 20), 1e-6)
    assert str(found).startswith("the true epsilon is in [1.70036")
    assert "smoothed contour" in str(found)
    assert found.nodes > 10_000
    assert found.width == found.upper - found.lower
    assert Certificate(math.inf, math.inf, "x").width == 0.0


def test_a_coarser_width_is_wider_and_cheaper():
    plan = 64 * LaplaceLoss(1 / 20)
    coarse, fine = (Tight(width).certify(plan, 1e-6) for width in (1e-4, 1e-8))
    assert coarse.lower <= fine.lower <= fine.upper <= coarse.upper
    assert coarse.nodes < fine.nodes / 20
    with pytest.raises(ParameterError, match="width must be"):
        Tight(math.nan)


def test_widths_nest_where_nearly_all_mass_is_at_atoms():
    # selections and Laplace noise of one scale: nearly all mass is at atoms
    plan = 25 * PureLoss(0.00508) + 25 * LaplaceLoss(0.00254)
    found, fine = (Tight(width).certify(plan, 1e-6) for width in (1e-8, 1e-10))
    assert found.width <= 1e-8 * found.upper
    assert found.lower <= fine.lower <= fine.upper <= found.upper


def test_groups_of_sampled_gaussians_are_exact():
    plan = Grouped(100 * PoissonSampled(GaussianLoss(0.2), 0.01), 3)
    found = Tight().certify(plan, 1e-6)
    one = Tight().epsilon(plan.part, 1e-6)
    assert one * 2 < found.upper < one * 12
    assert found.width <= 1e-8 * found.upper


@pytest.mark.slow
def test_a_million_different_releases():
    import resource
    import time

    shifts = np.linspace(1e-4, 3e-4, 500_000)
    plan = Sequential(
        [LaplaceLoss(float(x)) for x in shifts] + [GaussianLoss(float(x)) for x in shifts]
    )
    start, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = Tight().certify(plan, 1e-6)
    assert found.width <= 1e-8 * found.upper
    assert standard(time.process_time() - start) < 120
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 * 1024


def test_the_grid_has_a_bounded_size():
    lopsided = PairLoss((1e-300, 0.5, 0.5), (0.5, 0.25, 0.25))
    assert Tight().epsilon(2 * lopsided + GaussianLoss(1e-4), 1e-6) < 1500
    assert (
        Tight().epsilon(2 * PairLoss((0.1, 1e-5, 0.9 - 1e-5), (0.0, 1e-320, 1.0)), 0.05) == math.inf
    )


def sampled_gaussian(mu, rate):
    return PoissonSampled(GaussianLoss(mu), rate)


@pytest.mark.parametrize(
    ("plan", "delta", "truth"),
    [
        # the mass a great tilt moves to the left was cut off
        (sampled_gaussian(1.0, 1 - 1e-12) + sampled_gaussian(1.0, 1 - 1e-12).reversed,
         1e-100, 30.900664),
        (2 * sampled_gaussian(2.0, 1 - 1e-12).reversed, 1e-50, 45.845558),
        # two Gaussians
        (2 * sampled_gaussian(1.0, 1.0), 1e-50, 21.8871180),
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


def test_huge_shifts_do_not_cancel():
    # delta = 1/2 lies at mu^2 / 2
    assert 5e19 <= GaussianLoss(1e10).epsilon_at(0.5) <= 5e19 * (1 + 1e-9)
    assert GaussianLoss(1e100).epsilon_at(0.9) >= 4.99e199
    wide = Tight().certify(10 * sampled_gaussian(20.0, 0.01), 1e-6)
    assert 781.12 < wide.lower < wide.upper < 781.2
    assert Tight().epsilon(3 * sampled_gaussian(20.0, 1.0), 1e-6) == Tight().epsilon(
        3 * GaussianLoss(20.0), 1e-6
    )


def test_delta_at_the_epsilon_found_is_the_delta_asked():
    plan = 2 * BoundedRangeLoss(0.14444)
    found = Tight().epsilon(plan, 0.038617)
    assert Tight().delta(plan, found) <= 0.038617 * (1 + 1e-6)


def test_one_direction_is_the_upper_end_of_its_certificate():
    plan = PairLoss((0.9, 0.1), (0.6, 0.4)) + PureLoss(0.3)
    ways = [Tight().one_way_epsilon(way, 1e-3) for way in (plan, plan.reversed)]
    assert max(ways) == Tight().epsilon(plan, 1e-3)
    assert ways[0] != ways[1]


def test_what_has_no_cumulant_is_certified_by_finite_losses():
    # two sampled ranges cost less by their Rényi curves
    plan = PoissonSampled(BoundedRangeLoss(0.5), 0.1) + PureLoss(0.1)
    found = Tight(1e-3).certify(plan, 1e-5)
    assert found.engine == "grid pairs" or found.engine.endswith(", connect-the-dots")
