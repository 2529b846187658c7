"""Groups against brute force: shifts, textbook rules, iterated trade-offs."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from accountant import (
    ZCDP,
    AmplifiedMatrix,
    ApproxLoss,
    BallsInBins,
    BoundedRangeLoss,
    GaussianLoss,
    Grouped,
    MixtureOfGaussians,
    PairLoss,
    ParameterError,
    PoissonSampled,
    PureLoss,
    SampledWithoutReplacement,
    ShuffledEpoch,
    Tight,
    Toeplitz,
    TruncatedPoisson,
    UnsupportedPlan,
    ZCDPLoss,
)
from accountant.amplification import group_privacy
from accountant.amplification.group_privacy import GroupLoss, group_loss
from mechanisms import Gaussian, Laplace


def test_groups_scale_the_shift_of_noise():
    assert [item for item, _ in Grouped(7 * Gaussian(2.0), 3).losses()] == [GaussianLoss(1.5)] or (
        next(Grouped(7 * Gaussian(2.0), 3).losses())[0].mu == pytest.approx(1.5)
    )
    assert next(Grouped(Laplace(2.0), 4).losses())[0].shift == pytest.approx(2.0)
    assert next(Grouped(BoundedRangeLoss(0.1), 5).losses())[0].epsilon == pytest.approx(0.5)
    assert ZCDP().rho(Grouped(ZCDPLoss(0.1), 3)) == pytest.approx(0.9)
    assert Tight().epsilon(Grouped(5 * PureLoss(0.1), 1), 1e-6) == pytest.approx(
        Tight().epsilon(5 * PureLoss(0.1), 1e-6)
    )


def test_losses_that_are_equal_for_a_group_are_merged():
    # Both are 2.044 for seven records, as floats.
    part = GaussianLoss(0.29200000000000004) + GaussianLoss(0.2920000000000001)
    assert list(Grouped(part, 7).losses()) == [(GaussianLoss(2.0440000000000023), 2)]


def test_approximate_privacy_of_a_group_is_the_textbook_rule():
    # Vadhan (2017), Lemma 2.2: (k eps, delta (1 + e^eps + ... + e^{(k-1) eps}))
    loss = group_loss(ApproxLoss(0.5, 1e-3), 3)
    assert loss.delta_at(1.5) == pytest.approx(1e-3 * (1 + math.exp(0.5) + math.e))
    with pytest.raises(UnsupportedPlan, match="xi > 0 is not implemented"):
        group_loss(ZCDPLoss(0.1, 0.1), 2)


@pytest.mark.parametrize("size", [2, 3])
def test_the_trade_off_of_a_group_is_the_iterated_one(size):
    # power composed with power, on a fine grid
    p, q = np.array([0.6, 0.3, 0.1]), np.array([0.1, 0.3, 0.6])
    level = np.concatenate([[0.0], np.cumsum(q)])
    power = np.concatenate([[0.0], np.cumsum(p)])
    fine = np.linspace(0, 1, 2_000_001)
    h = fine
    for _ in range(size):
        h = np.interp(h, level, power)
    loss = group_loss(PairLoss(tuple(p), tuple(q)), size)
    for epsilon in (0.0, 0.5, 1.5, 3.0):
        truth = float(np.max(h - math.exp(epsilon) * fine))
        assert float(loss.profile(epsilon)) == pytest.approx(max(truth, 0.0), abs=1e-5)


def corners_of_curve(p, q):
    """Levels and powers of the tests of one pair, as fractions; the last of each level."""
    order = sorted(range(len(p)), key=lambda i: q[i] / p[i] if p[i] else math.inf)
    sums = {Fraction(0): Fraction(0)}
    level = power = Fraction(0)
    for i in order:
        level, power = level + q[i], power + p[i]
        sums[level] = power
    return list(sums.items())


def value_of_curve(corners, a):
    """The straight line between two corners, at the level a."""
    for (a0, b0), (a1, b1) in itertools.pairwise(corners):
        if a0 <= a <= a1 > a0:
            return b0 + (b1 - b0) * (a - a0) / (a1 - a0)
    raise ValueError(a)


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("masses", [(9, 7), (10, 5, 1), (7, 5, 3, 1), (1, 15, 0)])
def test_the_trade_off_of_finite_losses_is_that_of_fractions(size, masses):
    p = [Fraction(mass, 16) for mass in masses]  # floats hold them exactly
    q = p[::-1]  # the curve is the same in both directions
    corners = corners_of_curve(p, q)
    curve = corners
    for _ in range(size - 1):
        swapped = [(b, a) for a, b in curve]
        preimages = {value_of_curve(swapped, a) for a, _ in corners if a >= curve[0][1]}
        levels = sorted({a for a, _ in curve} | preimages)
        curve = [(a, value_of_curve(corners, value_of_curve(curve, a))) for a in levels]
    loss = GroupLoss(PairLoss(tuple(map(float, p)), tuple(map(float, q))), size)
    for epsilon in (0.0, 0.3, 0.8, 1.5):
        truth = max(b - Fraction(math.exp(epsilon)) * a for a, b in curve)
        assert truth <= Fraction(float(loss.profile(epsilon))) <= truth + Fraction(1, 10**13)
    # so does the sum of its outcomes, whose losses and masses are rounded, too
    values, p_masses = loss.loss_pmf
    listed = loss.infinity + float(np.sum(p_masses * -np.expm1(np.minimum(-values, 0.0))))
    truth = max(b - a for a, b in curve)
    assert truth * (1 - Fraction(4, 2**52)) <= Fraction(listed) <= truth + Fraction(1, 10**13)


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize(
    ("p", "q"), [((0.5, 0.3, 0.2), (0.2, 0.3, 0.5)), ((0.05, 0.35, 0.6), (0.3, 0.4, 0.3))]
)
def test_all_costs_of_a_group_are_those_of_its_outcomes_or_of_its_size(p, q, size):
    part = PairLoss(p, q)
    group = GroupLoss(part, size)
    losses, mass = group.loss_pmf
    lowest, highest = sorted((part.max_loss, part.reversed.max_loss))
    assert group.max_loss == pytest.approx(size * highest, rel=1e-14)
    assert size * lowest * (1 - 1e-12) <= losses.max() <= group.max_loss * (1 + 1e-12)
    assert np.array_equal(group.profile([group.max_loss * (1 + 1e-12)]), [0.0])
    orders = 1 + np.geomspace(1e-4, 1e3, 200)
    attained = np.max(group.renyi(orders) / orders)
    assert attained * (1 - 1e-9) <= group.rho <= attained * (1 + 1e-2)
    assert group.rho <= size**2 * max(part.rho, part.reversed.rho) * (1 + 1e-9)
    assert math.fsum(mass) == pytest.approx(1.0, rel=1e-12)
    for order in (1.5, 2.0, 7.0, 40.0):
        moment = math.fsum(mass * np.exp((order - 1) * losses))
        assert float(group.renyi(order)) == pytest.approx(math.log(moment) / (order - 1), rel=1e-9)
        assert float(group.renyi(order)) <= group.max_loss
    for epsilon in (0.0, 0.4, 1.1):
        sum_of_sticks = math.fsum(mass * np.maximum(-np.expm1(epsilon - losses), 0.0))
        assert float(group.profile(epsilon)) == pytest.approx(sum_of_sticks, rel=1e-9, abs=1e-14)
    assert group.rounding > 0
    twice = group.for_group(2)
    assert np.allclose(
        twice.profile([0.0, 0.5]), GroupLoss(part, 2 * size).profile([0.0, 0.5]), rtol=1e-12
    )
    assert twice.max_loss == pytest.approx(2 * group.max_loss, rel=1e-14)


def test_a_group_of_a_loss_without_listed_values_is_bounded_near_its_shift():
    loss, shifted = GroupLoss(GaussianLoss(0.4), 2), GaussianLoss(0.8)
    for epsilon in (0.0, 1.0, 2.0):
        truth = float(shifted.profile(epsilon))
        assert truth <= float(loss.profile(epsilon)) <= truth * (1 + 1e-3)


@pytest.mark.parametrize(
    ("part", "alone"),
    [
        (AmplifiedMatrix(Toeplitz((1.0, 0.5), 6), 2.0, BallsInBins(6)), GaussianLoss(1.12)),
        (3 * ShuffledEpoch(PureLoss(1.0), 5), 3 * PureLoss(2.0)),
        (ShuffledEpoch(GaussianLoss(1.0), 5), GaussianLoss(2.0)),
        (SampledWithoutReplacement(PureLoss(1.0), 3, 9), PureLoss(2.0)),
        (SampledWithoutReplacement(GaussianLoss(1.0), 3, 9), GaussianLoss(2.0)),
        (TruncatedPoisson(GaussianLoss(1.0), 0.1, 100, 20), GaussianLoss(4.0)),
    ],
    ids=lambda plan: type(plan).__name__,
)
@pytest.mark.parametrize("delta", [0.1, 1e-12])
def test_the_lower_end_of_a_group_of_a_bound_on_many_pairs_is_that_of_a_record(part, alone, delta):
    for way in (part, part.reversed):
        found, of_record = (Tight().certify_one_way(plan, delta) for plan in (Grouped(way, 2), way))
        # without sampling, by a closed form for two records: above them
        assert found.lower <= Tight().epsilon(alone, delta)
        assert found.lower <= of_record.lower * (1 + 1e-6) <= found.upper * (1 + 1e-6)


def test_a_group_of_a_bound_on_many_pairs_has_a_pair_of_its_direction():
    ((loss, _),) = AmplifiedMatrix(Toeplitz((1.0, 0.5), 6), 2.0, BallsInBins(6)).losses()
    group = GroupLoss(loss, 2)
    assert group.attained_pair == loss.attained_pair
    assert group.reversed.attained_pair == loss.reversed.attained_pair
    assert Tight().certify_one_way(group, 1e-3).lower > 0
    exact = GroupLoss(PairLoss((0.6, 0.4), (0.3, 0.7)), 2)
    assert exact.attained_pair is exact.reversed is exact


def test_a_group_of_sampled_records_is_more_than_the_group_of_the_part():
    sampled = PoissonSampled(GaussianLoss(1.0), 0.1)
    one, two = (Grouped(sampled, size) for size in (1, 2))
    assert Tight().epsilon(two, 1e-5) > 1.5 * Tight().epsilon(one, 1e-5)
    # never the sensitivity through the sample: either record may be drawn
    wrong = PoissonSampled(GaussianLoss(2.0), 0.1)
    assert Tight().delta(two, 0.0) > Tight().delta(wrong, 0.0) * 1.05


def test_a_group_of_sampled_gaussians_is_a_mixture():
    # the hits of three records are Bin(3, q); their sum moves by as much
    q, part = 0.2, PoissonSampled(GaussianLoss(0.5), 0.2)
    weights = tuple(math.comb(3, j) * q**j * (1 - q) ** (3 - j) for j in range(4))
    hits = MixtureOfGaussians(1.0, (0.0, 0.5, 1.0, 1.5), weights)
    for count in (1, 30):
        found = Tight(width=1e-8).certify(Grouped(count * part, 3), 1e-6)
        assert found.width <= 1e-8 * found.upper
        other_end = Tight(width=1e-8).epsilon(count * hits, 1e-6)
        assert found.upper == pytest.approx(other_end, rel=2e-8)
        # never above the iterated trade-off curve
        iterated = GroupLoss(part, 3)
        assert found.upper < Tight().epsilon(count * iterated, 1e-6)
    # a sample that several releases see, beside noise that all records get
    mixed = Grouped(5 * PoissonSampled(2 * GaussianLoss(0.3), q) + GaussianLoss(0.1), 2)
    other = Grouped(5 * PoissonSampled(GaussianLoss(0.3 * math.sqrt(2)), q) + GaussianLoss(0.1), 2)
    assert Tight().epsilon(mixed, 1e-6) == pytest.approx(Tight().epsilon(other, 1e-6), rel=1e-9)
    assert Grouped(part, 1).part is part
    assert Tight(width=1e-8).epsilon(Grouped(30 * part, 1), 1e-6) == pytest.approx(
        Tight(width=1e-8).epsilon(30 * part, 1e-6), rel=1e-8
    )


def test_a_group_may_be_partly_added_and_partly_removed():
    part = PoissonSampled(GaussianLoss(1.0), 0.3)
    ((item, _),) = Grouped(30 * part, 3).losses()
    costs = [Tight().certify_one_way(way, 1e-5).upper for way in item.parts]
    assert len(costs) == 4
    assert Tight().epsilon(Grouped(30 * part, 3), 1e-5) >= max(costs) * (1 - 1e-12)
    # the same ways in both directions
    assert set(Grouped(part, 3).reversed.losses()) == set(Grouped(part, 3).losses())


@pytest.mark.slow
def test_a_rare_group_is_answered():
    # a contour of 35,000 nodes, half a million points each, took more memory than machines have
    part = PoissonSampled(GaussianLoss(0.04265011953927177), 1.8702435065810036e-06)
    found = Tight().certify(Grouped(59610 * part, 4), 2.7529185792352007e-09)
    assert 2.8e-4 < found.lower < found.upper < 2.83e-4


def test_round_off_of_the_iterated_curve_does_not_hide_its_corners():
    # slopes of pieces of length 1e-16 were out of order: at the first epsilon, delta was .2752, and
    # the iterated curve in 60 digits has .27580 there
    pair = PairLoss(
        [0.2568545504587581, 0.34783374643886844, 0.39531170310237335],
        [0.39531170310237346, 0.3478337464388685, 0.25685455045875816],
    )
    loss = GroupLoss(pair, 18)
    level, power, *_ = group_privacy._power_curve(pair, 18)
    assert np.all(np.diff(np.diff(power) / np.diff(level)) <= 1e-9)
    assert loss.profile([6.902966949778665])[0] >= 0.27579


def test_the_largest_group_of_an_iterated_curve_is_taken_and_a_larger_one_refused():
    pair = PairLoss((0.6, 0.4), (0.5, 0.5))
    assert group_loss(pair, group_privacy.MAX_ITERATED_SIZE) is not None
    with pytest.raises(ParameterError, match="at most"):
        group_loss(pair, group_privacy.MAX_ITERATED_SIZE + 1)
