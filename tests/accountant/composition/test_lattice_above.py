"""Upper bounds of one lattice: above truths found by other roads, and just above."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from scipy.special import ndtr

from accountant import (
    PLD,
    ApproxLoss,
    GaussianLoss,
    LaplaceLoss,
    PairLoss,
    Parallel,
    PoissonSampled,
    PureLoss,
    Repeated,
    Tight,
    TruncatedPoisson,
)
from accountant.amplification.tries import PoissonTries
from accountant.composition import fft_composition
from accountant.composition.composed_loss import loss_of_item, loss_of_plan
from accountant.composition.composition import Composition, EpsilonProblem
from accountant.composition.engine import certify, delta_interval
from accountant.composition.engines import ENGINES_NEAR_EPSILON, SUMMING_ENGINES
from accountant.composition.fft_composition import SumOnGrid
from accountant.composition.grid_certificate import grid_certificate
from accountant.composition.lattice_above import LatticeAbove, LatticeCurve
from accountant.composition.tilted_law import GridLaw
from accountant.numerics.rounding import ULP

PAIR = PairLoss([0.2, 0.5, 0.2999, 0.0001, 0.0], [0.1, 0.5, 0.35, 0.0, 0.05])


def test_gaussians_by_their_closed_form():
    mu = math.sqrt(5) * 0.3
    epsilon = np.linspace(0.0, 6.0, 50)
    truth = ndtr(mu / 2 - epsilon / mu) - np.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)
    found = LatticeCurve.of([(GaussianLoss(0.3), 5)], 2e-4).profile(epsilon)
    assert np.all(found >= truth)
    # the last deltas are 1e-18
    assert np.all(found <= truth * (1 + 3e-5) + 1e-20)
    assert LatticeCurve.of([(GaussianLoss(0.3), 5)], 2e-4).profile(np.array(-0.1)) == 1


@pytest.mark.parametrize(
    ("items", "step"),
    [
        ([(PAIR, 3)], 1e-3),
        ([(PAIR.reversed, 2), (PureLoss(0.3), 2)], 1e-3),
        ([(LaplaceLoss(0.4), 2), (ApproxLoss(0.2, 1e-4), 1)], 1e-3),
        ([(PoissonSampled(GaussianLoss(1.0), 0.01), 25)], 2e-4),
    ],
)
def test_unlike_losses_by_exact_cumulants(items, step):
    composition = Composition(items)
    curve = LatticeCurve.of(items, step)
    for epsilon in (0.0, 0.2, 0.55):
        low, high = delta_interval(composition, epsilon, 1e-8, ENGINES_NEAR_EPSILON)
        found = float(curve.profile(np.array(epsilon)))
        assert low <= found <= high * (1 + 2e-4)
    delta = composition.infinity + 1e-6
    truth = certify(EpsilonProblem(composition, delta, 1e-8), SUMMING_ENGINES)
    found = LatticeAbove.of(items, step, 1e-16).epsilon(delta, 1.01 * truth.upper)
    # an atom may be a step below a point
    assert truth.lower <= found <= truth.upper * (1 + 1e-4) + step


def test_a_far_guess_is_followed_down_and_a_small_one_says_nothing():
    lattice = LatticeAbove.of([(GaussianLoss(0.5), 3)], 1e-3, 1e-16)
    near = lattice.epsilon(1e-6, 4.16)
    assert lattice.epsilon(1e-6, 5.0) == pytest.approx(near, rel=1e-9)
    assert lattice.epsilon(1e-6, 3.0) == math.inf
    # A sum reaches 2 % above its guess.  Where the answer is just beyond, there is none.
    for share in (0.95, 0.975, 0.979):
        assert lattice.epsilon(1e-6, share * near) == math.inf


@pytest.mark.parametrize("step", [1e-310, 1e-3, 1.0])
def test_without_losses_or_range_there_is_no_lattice(step):
    assert LatticeAbove.of([], step) is None
    assert LatticeAbove.of([(PairLoss([1.0], [1.0]), 3)], step) is None
    lattice = LatticeAbove.of([(GaussianLoss(0.5), 3)], step)
    # fewer than 1e308 steps must be within the range, for the number of steps to be a float
    assert (lattice is None) == (step < 1e-308)


def test_the_mass_above_a_cut_is_charged():
    loss = GaussianLoss(1.0)
    found = LatticeAbove.of([(loss, 2)], 1e-2, 0.1).epsilon(1e-6, 50.0)
    assert found == math.inf


@pytest.mark.parametrize("tilt", [0.4, 2.0, 30.0])
def test_bounds_at_many_epsilons_are_above_those_at_one(tilt):
    rare = np.append(np.random.default_rng(0).dirichlet(np.ones(30)), np.full(60, 1e-20))
    law = GridLaw(0.125, -31, 0.0, rare, 3)
    near = (-1.0, 3.0)
    sums = SumOnGrid([law], tilt, near, -60.0, 2**14)
    sums.convolve()
    epsilon = np.linspace(*near, 57)
    direct = np.convolve(np.convolve(rare, rare), rare)
    losses = 0.125 * (np.arange(direct.size) - 93)
    truth = -np.expm1(np.minimum(epsilon[:, None] - losses, 0.0)) @ direct
    scale = np.exp([sums.log_scale(e) for e in epsilon])
    found = sums.upper_deltas(epsilon)
    assert np.all(found * scale >= truth * (1 - 1e-15))
    values, errors = np.array([sums.delta(e) for e in epsilon]).T
    assert np.all(found <= values + 3 * errors + 1e-12)


def unlike_laws():
    """Three laws on one lattice that differ in size, place, number of draws and round-off."""
    rng = np.random.default_rng(3)
    return [
        GridLaw(0.125, -31, 0.0, np.append(rng.dirichlet(np.ones(30)), np.full(60, 1e-20)), 3),
        GridLaw(0.125, 4, 0.83, rng.dirichlet(np.ones(7)), 1),
        GridLaw(0.125, -9, -0.21, rng.dirichlet(np.ones(20)), 2),
    ]


def delta_of_sum(laws, epsilon):
    """Delta of the sum of all draws, term by term."""
    mass, least = np.ones(1), 0.0
    for law in laws:
        for _ in range(law.count):
            mass, least = np.convolve(mass, law.mass), least + law.points[0]
    losses = least + laws[0].step * np.arange(mass.size)
    return float(mass @ -np.expm1(np.minimum(epsilon - losses, 0.0)))


def summed(laws, tilt, near):
    sums = SumOnGrid(laws, tilt, near, -60.0, 2**14)
    sums.convolve()
    return sums


@pytest.mark.parametrize("tilt", [0.4, 2.0])
def test_the_order_of_unlike_laws_changes_neither_their_sum_nor_its_error(tilt):
    epsilon = 0.6
    truth = delta_of_sum(unlike_laws(), epsilon)
    values_and_errors = []
    for laws in itertools.permutations(unlike_laws()):
        sums = summed(list(laws), tilt, (epsilon, epsilon))
        value, error = sums.delta(epsilon)
        scale = math.exp(sums.log_scale(epsilon))
        assert value * scale == pytest.approx(truth, abs=error * scale, rel=1e-13)
        values_and_errors.append((value, sums.error_1, sums.error_2))
    first = values_and_errors[0]
    assert all(each == pytest.approx(first, rel=1e-8, abs=0) for each in values_and_errors)


@pytest.mark.parametrize("rough", range(3))
def test_the_sum_errs_by_the_weights_of_each_of_its_laws(rough, monkeypatch):
    epsilon, share, made = 0.6, 1e-4, fft_composition.tilted
    least_errors = []

    def tilted(law, tilt):
        right = made(law, tilt)
        if law.first != unlike_laws()[rough].first:
            return right
        weight = (1 - share) * right.weight
        weight[np.flatnonzero(right.law.mass > 1e-6)[-1]] += share
        round_off = float(np.sum(np.abs(weight - right.weight)))
        least_errors.append(law.count * round_off)
        return dataclasses.replace(right, weight=weight, round_off=round_off)

    monkeypatch.setattr(fft_composition, "tilted", tilted)
    sums = summed(unlike_laws(), 0.4, (epsilon, epsilon))
    assert sums.error_1 >= sum(least_errors) > share
    value, error = sums.delta(epsilon)
    truth = delta_of_sum(unlike_laws(), epsilon) / math.exp(sums.log_scale(epsilon))
    assert 1e-7 < abs(value - truth) <= error < 100 * share
    most = float(sums.upper_deltas(np.array([epsilon]))[0])
    assert truth <= most <= value + 2 * error


def test_errors_of_a_sum_are_those_of_its_proof():
    # docs/proofs/grid_pairs.md, steps 5 and 11, with the masses of direct sums
    laws, tilt = unlike_laws(), 0.4
    sums = summed(laws, tilt, (0.6, 0.6))
    weights = [law.mass * np.exp(tilt * law.points) for law in laws]
    moments = [float(weight.sum()) for weight in weights]
    counts = [law.count for law in laws]
    logs = np.array(counts) * np.log(moments)
    assert sums.log_moment == pytest.approx(logs.sum(), rel=1e-12)
    assert sums.size == pytest.approx(np.abs(logs).sum(), rel=1e-12)
    direct = np.ones(1)
    for weight, moment, count in zip(weights, moments, counts, strict=True):
        for _ in range(count):
            direct = np.convolve(direct, weight / moment)
    of_transform = 8 * ULP * (math.log2(sums.points) + 1)
    norms = [np.linalg.norm(w / m) for w, m in zip(weights, moments, strict=True)]
    factors = sum(count + 1 for count in counts)
    least = of_transform * np.dot(counts, norms)
    least += (4 * ULP * factors + of_transform) * np.linalg.norm(direct)
    assert least * (1 - 1e-9) <= sums.error_2 <= least * 1.001
    least = sum(law.count * fft_composition.tilted(law, tilt).round_off for law in laws)
    least += 8 * ULP * factors
    assert least <= sums.error_1 <= 1.02 * least


def test_a_composite_part_has_a_narrow_profile():
    # finite losses that replaced the samples made it six times too large
    part = 3 * TruncatedPoisson(GaussianLoss(0.2158), 0.001168, 693, 10)
    epsilon = np.array([0.0, 1e-4, 5e-4])
    found = loss_of_plan(part).profile(epsilon)
    grid = PLD()._grid(part, 1e-12, upper=True)
    assert np.all(found <= (grid.delta(epsilon) + grid.delta_error) * (1 + 1e-7))


@pytest.mark.slow
def test_a_bound_that_is_not_convex_makes_no_false_lower_end():
    parts = [
        Repeated(GaussianLoss(0.6), PoissonTries(3.0)),
        Repeated(GaussianLoss(0.15), PoissonTries(6.0)),
    ]
    # the lower end is that of a user whose part is known to cost so much, by itself
    of_parts = max(Tight().certify(20 * part, 1e-4).lower for part in parts)
    assert Tight().certify(20 * Parallel(parts), 1e-4).lower == of_parts > 0
    # of the bound itself, as if some pair had it, the two ends are in order
    ends = grid_certificate([(loss_of_item(Parallel(parts)), 20)], 1e-4, 1e-8)
    assert 0.0 <= ends.lower <= ends.upper
