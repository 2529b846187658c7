"""Pairs on a lattice from two profiles alone: above and below, and narrow."""

import math

import numpy as np
import pytest

from accountant import (
    PLD,
    GaussianLoss,
    LaplaceLoss,
    PairLoss,
    PoissonSampled,
    PureLoss,
    RandomAllocation,
    SampledWithoutReplacement,
    Tight,
)
from accountant.amplification.allocation.allocated_gaussian import AllocatedGaussian
from accountant.composition.composition import Composition, EpsilonProblem
from accountant.composition.engine import certify
from accountant.composition.engines import SUMMING_ENGINES
from accountant.composition.grid_certificate import grid_certificate
from accountant.composition.profile_pairs import (
    _lowered,
    _without_debts,
    pairs_from_profile,
)

PAIR = PairLoss([0.2, 0.5, 0.2999, 0.0001, 0.0], [0.1, 0.5, 0.35, 0.0, 0.05])
LOSSES = [
    GaussianLoss(0.7), LaplaceLoss(0.4), PAIR, PAIR.reversed, AllocatedGaussian(0.5, 20),
    PoissonSampled(GaussianLoss(2.0), 0.01), PoissonSampled(GaussianLoss(2.0), 0.01).reversed,
    SampledWithoutReplacement(PAIR, 1, 10),
]  # fmt: skip


def profile_of(pair, epsilon):
    sticks = -np.expm1(np.minimum(epsilon[:, None] - pair.law.points, 0.0))
    return sticks @ pair.law.mass + pair.p_beyond


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_one_profile_is_between_those_of_its_pairs(loss, monkeypatch):
    noise = 0.0 if isinstance(loss, LaplaceLoss) else 1e-6
    epsilon = np.linspace(-1.2, 1.2, 67)
    low, high = loss.profile_bounds(epsilon)
    made, rng = type(loss).profile_bounds, np.random.default_rng(0)

    def rough(self, points):
        one = made(self, points)
        share = rng.random((2, points.size)) * noise
        return one[0] * (1 - share[0]), one[1] * (1 + share[1])

    monkeypatch.setattr(type(loss), "profile_bounds", rough)
    # the first lattice has no points in the tails
    for step, ends in ((0.013, (-0.4, 0.5)), (2e-3, (-3.0, 3.0)), (1e-4, (-0.1, 0.1))):
        below, above = pairs_from_profile(loss, 1, 0.0, step, ends, 3.0)
        assert np.all(profile_of(below, epsilon) <= high * (1 + 1e-13))
        assert np.all(profile_of(above, epsilon) >= low * (1 - 1e-13))
        if ends[1] == 3.0:
            middle = np.abs(epsilon) < 0.3
            gap = profile_of(above, epsilon) - profile_of(below, epsilon)
            assert np.all(gap[middle] <= 1e-3)


@pytest.mark.parametrize("noise", [0.0, 1e-4])
def test_lines_are_lowered_by_the_most_that_convexity_allows(noise):
    rng = np.random.default_rng(3)
    x = np.append(0.0, np.sort(rng.uniform(0.2, 3.0, 12)))
    profile = np.exp(-x) + 0.05
    low, high = profile - noise * rng.random(13), profile + noise * rng.random(13)
    low[0] = high[0] = profile[0]
    points = x[:-1, None] + np.diff(x)[:, None] * np.linspace(0, 1, 2001)
    # Lines through the points of each neighbouring cell; their slopes are between -1 and 0.
    before = np.append(-1.0, np.maximum((low[1:-1] - high[:-2]) / np.diff(x)[:-1], -1.0))
    after = np.append(np.minimum((high[2:] - low[1:-1]) / np.diff(x)[1:], 0.0), 0.0)
    from_left = low[:-1, None] + before[:, None] * (points - x[:-1, None])
    from_right = low[1:, None] + after[:, None] * (points - x[1:, None])
    chord = np.interp(points, x, low)
    gap = np.max(chord - np.maximum(from_left, from_right), axis=1)
    expected = low - np.maximum(np.append(0.0, gap), np.append(gap, 0.0))
    lowered = _lowered(x, low, high, 0.05)
    below = int(np.argmax(np.append(expected[:-1] <= 0.05, True))) - 1
    assert lowered[:below] == pytest.approx(expected[:below], abs=2e-3 * gap.max())
    assert np.all(lowered[below:] == 0.05)
    assert np.all(np.interp(points, x, lowered) <= np.exp(-points) + 0.05)


@pytest.mark.parametrize("seed", range(8))
def test_what_negative_masses_lack_is_taken_from_the_next_ones(seed):
    mass = np.random.default_rng(seed).integers(-2, 6, 12) / 8.0  # all sums are exact
    # The masses up to a place add up to the greatest sum of the given ones up to there.
    sums = np.maximum.accumulate(np.append(0.0, np.cumsum(mass)))
    expected = np.diff(sums) if sums[-1] == mass.sum() else np.zeros(12)
    assert _without_debts(mass.copy()).tolist() == expected.tolist()


@pytest.mark.parametrize("loss", [GaussianLoss(0.1), LaplaceLoss(0.2)])
def test_composition_by_profiles_holds_the_truth(loss, monkeypatch):
    truth = certify(EpsilonProblem(Composition([(loss, 20)]), 1e-6, 1e-10), SUMMING_ENGINES)
    monkeypatch.setattr(type(loss), "cell_masses", lambda self, edges: None)
    found = grid_certificate([(loss, 20)], 1e-6, 1e-6)
    assert found.lower <= truth.upper
    assert truth.lower <= found.upper
    assert found.width <= 1e-6 * found.upper or isinstance(loss, LaplaceLoss)


def test_epochs_of_random_allocation():
    loss = AllocatedGaussian(0.5, 100)
    found = Tight().certify(5 * RandomAllocation(GaussianLoss(0.5), 100), 1e-6)
    assert found.width <= 1e-6 * found.upper
    # by finite pairs of 4,096 values; the one above errs least
    assert 0.48075 < found.lower < 0.48082
    # one epoch alone is its own profile
    one = grid_certificate([(loss, 1)], 1e-6, 1e-6)
    assert loss.epsilon_at(1e-6) == pytest.approx(one.upper, rel=2e-6)
    assert one.lower <= loss.inverse_profile(1e-6) <= one.upper * (1 + 1e-12)


def test_samples_of_an_asymmetric_part():
    part = SampledWithoutReplacement(2 * GaussianLoss(0.7), 100, 1000)
    pair = grid_certificate([(part, 5)], 1e-6, 1e-6)
    assert pair.width <= 1e-6 * pair.upper


def test_mass_at_infinity_of_a_profile():
    part = SampledWithoutReplacement(PAIR, 1, 10)
    assert part.cell_masses(np.array([0.0, 1.0])) is None
    assert grid_certificate([(part, 3)], 1e-6, 1e-6).lower == math.inf


RARE = PoissonSampled(GaussianLoss(5.0), 1e-4)


@pytest.mark.parametrize(
    ("loss", "count", "tilt", "epsilon", "is_heavy"),
    [(GaussianLoss(0.1), 100, 4.5, 5.0, False), (RARE, 10, 0.3, 6.0, True),
     (RARE, 1, 0.3, 6.0, False)],
)  # fmt: skip
def test_large_losses_get_points_of_their_own_where_the_tail_is_heavy(
    loss, count, tilt, epsilon, is_heavy
):
    def large_losses(epsilon):
        _, above = pairs_from_profile(loss, count, 0.0, 0.01, (-3.0, 12.0), tilt, epsilon)
        return np.count_nonzero(above.law.mass[above.law.points > 2.0])

    few = large_losses(math.inf)
    assert large_losses(epsilon) > 2 * few if is_heavy else large_losses(epsilon) == few


def random_plan(rng, kind):
    count = int(rng.choice([1, 2, 3, 5, 10, 30, 100]))
    scale, rate = float(rng.uniform(0.5, 3)), float(10 ** rng.uniform(-3, -0.5))
    gaussian, laplace = GaussianLoss(1 / scale), LaplaceLoss(1 / scale)
    part = [
        gaussian, laplace, PureLoss(1 / scale), PoissonSampled(gaussian, rate), PAIR,
        PoissonSampled(laplace, rate), PairLoss([0.6, 0.3, 0.1], [0.3, 0.3, 0.4]),
        SampledWithoutReplacement(gaussian, int(1000 * rate) + 1, 1000),
        RandomAllocation(GaussianLoss(1 / max(scale, 1.0)), int(1 / rate) + 1),
    ][kind]  # fmt: skip
    return count * part + (2 * GaussianLoss(0.2) if rng.random() < 0.3 else 0 * gaussian)


def check_not_above_pld(seed, kinds):
    rng = np.random.default_rng(seed)
    for kind in kinds:
        plan, delta = random_plan(rng, kind), float(10 ** rng.uniform(-9, -3))
        found, other = Tight().certify(plan, delta), PLD().epsilon(plan, delta)
        assert found.upper <= other * (1 + 1e-12) + found.width, plan


def test_tight_is_not_above_pld():
    check_not_above_pld(0, range(7))


@pytest.mark.slow
def test_tight_is_not_above_pld_on_many_plans():
    for seed in range(1, 6):
        check_not_above_pld(seed, range(9))
