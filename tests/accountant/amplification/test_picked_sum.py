"""Lower ends of several picks: the sum of a score is a function of the answers of an epoch."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy.stats import binom

from accountant import GaussianLoss, LaplaceLoss, PairLoss, PureLoss, RandomAllocation, Tight
from accountant.amplification.allocation import picked_sum
from accountant.amplification.allocation.picked_sum import (
    CELL_ROUND_OFF,
    ScoreLaw,
    cell_edges,
    gaussian_cells,
    picked_sum_pair,
    score_odds,
)
from accountant.amplification.exchanged_record import NO_LOSS
from accountant.losses.loss import Loss

EPSILONS = np.array([0.0, 0.05, 0.3, 1.0])


def enumerated_profiles(part: PairLoss, steps: int, picks: int) -> tuple[np.ndarray, np.ndarray]:
    """The profiles of an epoch from all outcomes of its steps, with the record and without."""
    p, q = np.array(part.p), np.array(part.q)
    outcomes = np.array(list(itertools.product(range(p.size), repeat=steps)))
    without = q[outcomes].prod(axis=1)
    subsets = list(itertools.combinations(range(steps), picks))
    picked = [np.isin(np.arange(steps), subset) for subset in subsets]
    with_record = np.mean(
        [np.where(mask, p[outcomes], q[outcomes]).prod(axis=1) for mask in picked], axis=0
    )
    factor = np.exp(EPSILONS)[:, None]
    return (
        np.maximum(with_record - factor * without, 0.0).sum(axis=1),
        np.maximum(without - factor * with_record, 0.0).sum(axis=1),
    )


@pytest.mark.parametrize(("steps", "picks"), [(3, 2), (5, 2), (6, 4), (7, 6)])
def test_of_two_outcomes_the_sum_tells_all(steps, picks):
    part = PairLoss((0.7, 0.3), (0.4, 0.6))
    pair = picked_sum_pair(part, steps, picks)
    forward, backward = enumerated_profiles(part, steps, picks)
    assert pair.profile(EPSILONS) == pytest.approx(forward, rel=1e-9, abs=1e-15)
    assert pair.reversed.profile(EPSILONS) == pytest.approx(backward, rel=1e-9, abs=1e-15)


def test_outcomes_that_the_record_excludes_count():
    part = PairLoss((0.6, 0.4, 0.0), (0.3, 0.5, 0.2))
    pair = picked_sum_pair(part, 5, 3)
    forward, backward = enumerated_profiles(part, 5, 3)
    for profile, truth in ((pair.profile(EPSILONS), forward),
                           (pair.reversed.profile(EPSILONS), backward)):  # fmt: skip
        assert np.all(profile <= truth * (1 + 1e-9))
        assert np.all(profile >= 0.9 * truth - 1e-4)


def test_each_direction_attains_its_own_pair_and_says_how_exact_it_is():
    part = GaussianLoss(1.0)
    pair = picked_sum_pair(part, 100, 4)
    assert pair.rounding >= 200 * CELL_ROUND_OFF
    plan = RandomAllocation(part, 100, picks=4, epochs=3)
    ((loss, count),) = plan.losses()
    assert loss.attained_items(count) == [(pair, 3)]
    assert loss.reversed.attained_items(count) == [(pair.reversed, 3)]
    assert loss.reversed.reversed.attained_items(count) == [(pair, 3)]
    ((loss, count),) = plan.reversed.losses()
    assert loss.attained_items(count) == [(pair.reversed, 3)]
    # a part of an epoch attains no pair that is known
    assert loss.attained_items(2) == [(NO_LOSS, 2)]


@pytest.mark.parametrize(("steps", "picks"), [(3, 2), (5, 2), (6, 4)])
def test_of_three_outcomes_it_is_below_and_near(steps, picks):
    part = PairLoss((0.6, 0.3, 0.1), (0.4, 0.3, 0.3))
    pair = picked_sum_pair(part, steps, picks)
    for profile, truth in zip(
        (pair.profile(EPSILONS), pair.reversed.profile(EPSILONS)),
        enumerated_profiles(part, steps, picks),
        strict=True,
    ):
        assert np.all(profile <= truth * (1 + 1e-9))
        assert np.all(profile >= 0.95 * truth - 1e-4)


@pytest.mark.parametrize(("mu", "steps"), [(1.0, 30), (0.5, 200), (2.0, 5)])
def test_of_one_pick_it_is_below_the_integrated_profile(mu, steps):
    epsilon = np.array([0.0, 0.2, 1.0])
    pair = picked_sum_pair(GaussianLoss(mu), steps, 1)
    ((exact, _),) = RandomAllocation(GaussianLoss(mu), steps).losses()
    for below, truth in ((pair, exact), (pair.reversed, exact.reversed)):
        assert np.all(below.profile(epsilon) <= truth.profile(epsilon))
        assert np.all(below.profile(epsilon) >= 0.6 * truth.profile(epsilon) - 1e-9)


@pytest.mark.parametrize("count", [1, 2, 7, 100])
def test_a_power_of_a_coin_is_binomial(count):
    law = ScoreLaw(-1, np.array([0.3, 0.7])).power(count)
    truth = binom.pmf(law.start + count + np.arange(law.masses.size), count, 0.7)
    assert law.masses == pytest.approx(truth, rel=1e-12)
    assert law.masses.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(("mu", "chance"), [(1.0, 0.004), (0.05, 0.5), (5.0, 1e-5)])
def test_cells_of_a_gaussian_err_by_less_than_they_say(mu, chance):
    edges = cell_edges(mu, chance)
    narrowest = np.argsort(np.diff(edges))[:20]
    for mean in (mu, 0.0):
        masses = gaussian_cells(edges, mean)
        assert masses.sum() == pytest.approx(1, abs=1e-12)
        with mpmath.workdps(80):
            for i in [*narrowest, *range(0, edges.size - 1, 500)]:
                low, high = edges[i] - mean, edges[i + 1] - mean
                exact = abs(mpmath.ncdf(-abs(low)) - mpmath.ncdf(-abs(high)))
                if low < 0 < high:
                    exact = 1 - mpmath.ncdf(low) - mpmath.ncdf(-high)
                assert abs(masses[i + 1] - exact) <= CELL_ROUND_OFF / 4 * exact


@pytest.mark.parametrize(("steps", "picks"), [(10, 1), (1000, 40), (7, 6)])
def test_the_odds_of_a_score_are_those_of_a_picked_step_or_less(steps, picks, monkeypatch):
    p, q = np.array([0.7, 0.2, 0.1]), np.array([0.4, 0.3, 0.3])
    usual = picks / (steps - picks)
    assert 0.2 * usual < score_odds(p, q, steps, picks) < usual
    monkeypatch.setattr(picked_sum, "EVIDENCE", 1.0)
    assert score_odds(p, q, steps, picks) == pytest.approx(usual, rel=1e-2)


# widths that are relative to epsilon, as they were measured
@pytest.mark.parametrize(
    ("mu", "steps", "picks", "epochs", "delta", "width"),
    [(1.0, 1000, 4, 1, 1e-6, 0.02), (1.0, 1000, 4, 10, 1e-6, 0.02), (0.5, 200, 20, 1, 1e-6, 0.01),
     (1.0, 1000, 40, 1, 1e-6, 0.03), (1.0, 100, 10, 1, 1e-6, 0.06)],
)  # fmt: skip
def test_several_picks_have_both_ends(mu, steps, picks, epochs, delta, width):
    plan = RandomAllocation(GaussianLoss(mu), steps, picks, epochs)
    interval = Tight().certify(plan, delta)
    assert 0 < interval.upper - interval.lower < width * interval.upper
    # twice as many picks, half the noise and more epochs are worse, also from below
    more = Tight().certify(RandomAllocation(GaussianLoss(mu), steps, 2 * picks, epochs), delta)
    assert more.lower > interval.upper


def test_a_part_without_a_finite_law_has_no_lower_end():
    part: Loss = PairLoss((0.5, 0.4, 0.1), (0.5, 0.5, 0.0))
    assert Tight().certify(RandomAllocation(part, 7, picks=3), 1e-3).lower == 0.0
    plan = RandomAllocation(PureLoss(0.5), steps=11, picks=3, epochs=2)
    interval = Tight().certify(plan, 1e-3)
    assert 0.85 * interval.upper < interval.lower < interval.upper
    # other releases beside it count in both ends
    beside = Tight().certify(plan + LaplaceLoss(0.3), 1e-3)
    assert beside.lower > interval.lower
    assert beside.upper > interval.upper
    assert math.isfinite(beside.upper)
