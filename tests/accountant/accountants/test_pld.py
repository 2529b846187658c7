"""The grid's bracket: neither end on the wrong side."""

import math

import numpy as np
import pytest
from scipy.special import ndtri

from accountant import (
    PLD,
    Advanced,
    ApproxLoss,
    GaussianLoss,
    LaplaceLoss,
    PairLoss,
    Parallel,
    PoissonSampled,
    PureLoss,
    Repeat,
    Sequential,
    Tight,
    ZCDPLoss,
)
from accountant.accountants import pld
from accountant.composition import pld_of_many
from accountant.composition.loss_outline import Outline
from accountant.composition.pld_grid import LawOnGrid, _range_of_sum, convolve
from accountant.plans.plan import directions


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


@pytest.mark.parametrize(("delta", "truth"), [(0.15, 0.62034), (0.05, 1.21725), (0.01, 1.86100)])
def test_the_lower_end_of_crossing_parallels_is_not_above_the_adaptive_truth(delta, truth):
    plan = 2 * Parallel([PureLoss(0.5), GaussianLoss(0.6)])
    assert PLD().bracket(plan, delta)[0] <= truth


def test_pld_speaks_of_parallels_with_mass_at_infinity():
    plan = 20 * Parallel([ApproxLoss(0.1, 1e-8), PureLoss(0.1)])
    alone = PLD().epsilon(20 * ApproxLoss(0.1, 1e-8), 1e-3)
    assert alone * (1 - 1e-9) <= PLD().epsilon(plan, 1e-3) <= alone * 1.01


def test_a_release_that_shows_everything_leaves_no_grid():
    plan = 2 * PairLoss((1.0, 0.0), (0.0, 1.0))
    assert PLD().bracket(plan, 0.1) == (0.0, math.inf)  # from below it says nothing
    assert PLD().deltas(plan, [0.5, 2.0]).tolist() == [1.0, 1.0]


def test_many_different_losses_have_laws_of_few_places(monkeypatch):
    each = [PoissonSampled(GaussianLoss(1 / s), 0.01) for s in np.linspace(0.8, 2.0, 12)]
    plan = Sequential([*each, 3 * GaussianLoss(0.1)])
    truth = Tight().certify(plan, 1e-6)
    monkeypatch.setattr(pld, "MANY_LOSSES", 12)
    # these evaluate a profile at all places
    monkeypatch.setattr(pld, "dominating_pair", None)
    monkeypatch.setattr(pld, "dominated_pair", None)
    lower, upper = PLD(interval=1e-3).bracket(plan, 1e-6)
    assert lower <= truth.upper
    assert truth.lower <= upper <= truth.upper * (1 + 1e-3)
    assert upper - lower <= 0.02 * upper


def test_the_law_of_a_sum_is_the_convolution():
    few = LawOnGrid(np.array([-1, 2]), np.array([0.25, 0.75]), 2, 0.0)
    rare = LawOnGrid(np.array([0, 50]), np.array([0.9, 0.05]), 1, 0.05)
    grid = convolve([few, rare], 0.5, 1e-15, upper=True)
    expected = np.convolve(
        np.convolve([0.25, 0.0, 0.0, 0.75], [0.25, 0.0, 0.0, 0.75]), [0.9, *[0.0] * 49, 0.05]
    )
    np.testing.assert_allclose(grid.loss, 0.5 * np.arange(-2.0, 55.0))
    np.testing.assert_allclose(grid.mass, expected, atol=1e-15)
    assert grid.infinity == pytest.approx(0.05)


def test_the_range_of_a_sum_is_short_where_large_losses_are_rare():
    # the first law has little mass far away, and the second decides the range
    rare = LawOnGrid(np.arange(20_001), np.append(np.full(20_000, 5e-5), 1e-30), 1, 0.0)
    wide = LawOnGrid(np.arange(-5_000, 5_001), np.full(10_001, 1 / 10_001), 2_000, 0.0)
    grid = convolve([rare, wide], 1e-4, 1e-15, upper=True)
    assert grid.mass.size < 2_500_000  # of 20 million places
    assert float(grid.mass.sum()) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("tail", [1e-6, 1e-15])
@pytest.mark.parametrize(
    ("masses", "count"),
    [([0.5, 0.5], 10_000), ([0.999, 0.0, 0.0, 0.001], 20_000), ([0.2] * 5, 1_500), ([0.3, 0.7], 2)],
)
def test_the_range_of_a_sum_holds_all_but_the_tails_and_little_more(masses, count, tail):
    # the exact law, by powers of one transform
    step, place = 0.25, np.arange(-1, len(masses) - 1)
    law = LawOnGrid(place, np.array(masses), count, 0.0).normalised
    size = (len(masses) - 1) * count + 1
    exact = np.fft.irfft(np.fft.rfft(masses, 2 * size) ** count, 2 * size)[:size]
    first, places, beyond = _range_of_sum([law], step, tail)
    start = first + count  # the index of the first place in the exact law
    assert 1 - exact[max(start, 0) : start + places].sum() <= beyond + 1e-10  # round-off
    assert beyond in (0.0, tail, 2 * tail)
    cut_at_an_end = start > 0 or start + places < size
    assert cut_at_an_end == (beyond > 0)
    # Chernoff's bound at the best tilt is longer than quantiles of normal tails by a little
    deviation = math.sqrt(count * np.cov(place, aweights=masses, ddof=0))
    least = 2 * -ndtri(tail) * deviation
    assert places <= min(size, 1.35 * least + 40)


def test_laws_of_many_different_losses_are_above_them():
    loss = PoissonSampled(GaussianLoss(0.8), 0.01)
    epsilon = np.linspace(-0.02, 3, 400)
    for one in (loss, loss.reversed):
        pair, shift = pld_of_many._pair(Outline(one, 1), 1e-4, 3.0, 1e-16, upper=True)
        assert pair.mass.size < 15_000  # not every point of the lattice
        sticks = np.maximum(-np.expm1(np.subtract.outer(epsilon, pair.loss + shift)), 0.0)
        above = sticks @ pair.mass + pair.infinity
        truth = one.profile_any_epsilon(epsilon)
        assert np.all(above >= truth * (1 - 1e-11))
        assert np.all(above <= truth * (1 + 1e-3) + 1e-7)


def test_the_step_of_many_different_losses_needs_no_renyi_curve(monkeypatch):
    monkeypatch.setattr(pld.RDP, "one_way_epsilon", None)
    plan = Sequential(
        PoissonSampled(GaussianLoss(1.5 + 1e-3 * i), 0.002 + 1e-5 * i) for i in range(60)
    )
    low, high = Tight().bracket(plan, 1e-6)
    found = max(PLD().one_way_epsilon(way, 1e-6) for way in directions(plan))
    assert low <= found <= high * (1 + 1e-5)


def many_samples(count):
    return Sequential(
        PoissonSampled(GaussianLoss(0.3 + i / count), 0.01 + i / (30 * count)) for i in range(count)
    )


def test_a_direction_that_costs_less_has_no_grid(monkeypatch):
    plan, asked = many_samples(60), []
    ways = [PLD().one_way_epsilon(way, 1e-6) for way in directions(plan)]
    one_way = PLD.one_way_epsilon
    monkeypatch.setattr(
        PLD, "one_way_epsilon", lambda self, *a: asked.append(a) or one_way(self, *a)
    )
    assert PLD().epsilon(plan, 1e-6) == max(ways)
    assert len(asked) == 1


def test_a_delta_next_to_nothing_has_an_answer():
    assert PLD(interval=0.02).epsilon(GaussianLoss(1.0), 1e-320) == math.inf
