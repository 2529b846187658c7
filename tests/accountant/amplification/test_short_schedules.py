"""Few different sampled Gaussians at small rates: against one quadrature, and other roads."""

import math
import statistics

import numpy as np
import pytest

from accountant import GaussianLoss, PoissonSampled, Sequential, Tight
from accountant.accountants.one_way import OneWay
from accountant.amplification.sampled_gaussian import decay_below_cut
from accountant.amplification.truncated_schedule import SampledSchedule, TruncatedSchedule
from accountant.composition.grid_certificate import grid_certificate
from accountant.composition.schedule_contour import (
    certify_schedule,
    estimate_schedule,
    swapped_is_within,
)
from accountant.composition.truncated_contour import TruncatedContour
from accountant.numerics.quadrature import gauss_legendre_panels

tail = statistics.NormalDist().cdf


def steps(mu, rate):
    return [
        PoissonSampled(GaussianLoss(m), q) for m, q in zip(mu.tolist(), rate.tolist(), strict=True)
    ]


def as_schedule(mu, rate):
    return SampledSchedule(mu, np.log(rate) - np.log1p(-rate), np.ones(mu.size))


def true_delta_of_one(mu, rate, epsilon, added):
    """The closed form of one sampled Gaussian."""
    level = math.exp(-epsilon if added else epsilon)  # of the ratio r
    if level <= 1 - rate:
        return 0.0 if added else 1 - level
    x = math.log((level - (1 - rate)) / rate) / mu + mu / 2
    if added:
        return tail(x) - ((1 - rate) * tail(x) + rate * tail(x - mu)) / level
    return rate * tail(mu - x) + (1 - rate - level) * tail(-x)


def true_delta_of_two(mu, rate, epsilon, added):
    """One quadrature over the first output, whose loss the second has to make up for."""
    (first, second), (q, other) = mu, rate
    edges = np.arange(-12, 14 + first, 0.25)
    level = math.exp(-epsilon if added else epsilon) / (1 - other)
    if level > 1 - q:  # where the second's delta has its corner
        edges = np.sort(np.append(edges, math.log((level - 1 + q) / q) / first + first / 2))
    x, weight, _ = gauss_legendre_panels(edges)
    ratio = 1 - q + q * np.exp(first * x - first * first / 2)
    weight = weight * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    left = epsilon + np.log(ratio) if added else epsilon - np.log(ratio)
    value = [true_delta_of_one(second, other, e, added) for e in left.tolist()]
    return float(np.sum((weight if added else weight * ratio) * value))


TWO = [((0.3, 0.25), (1e-3, 2e-3), 1e-6), ((0.2, 0.3), (3e-5, 2e-5), 1e-7)]


@pytest.mark.parametrize(("mu", "rate", "delta"), TWO)
def test_two_different_steps_are_those_of_one_quadrature(mu, rate, delta):
    found = Tight().certify(Sequential(steps(np.array(mu), np.array(rate))), delta)
    assert found.engine == "truncated contour"
    assert 0 < found.width <= 1e-7 * found.upper
    ends = [true_delta_of_two(mu, rate, e, False) for e in (found.lower, found.upper)]
    assert ends[1] <= delta * (1 + 1e-10)
    assert ends[0] >= delta * (1 - 1e-10)


SWAPPED = [
    ((1.6, 1.3), (1e-5, 2e-5), 2.8e-7), ((1.1, 0.7), (3e-4, 5e-4), 1.2e-4),
    ((0.3, 0.25), (1e-3, 2e-3), 6e-4),
]  # fmt: skip


@np.errstate(over="ignore", invalid="ignore")  # as `CertifiedComposition` asks
def is_decided_rightly(mu, rate, epsilon):
    delta = true_delta_of_two(mu, rate, epsilon, True)
    given = as_schedule(np.array(mu), np.array(rate))
    answers = [swapped_is_within(given, epsilon, math.log(delta * s)) for s in (0.9, 1 - 1e-9, 1.1)]
    return answers == [False, False, True]


@pytest.mark.parametrize(("mu", "rate", "epsilon"), SWAPPED)
def test_the_record_absent_is_decided_as_by_quadrature(mu, rate, epsilon):
    assert is_decided_rightly(mu, rate, epsilon)


def test_a_decision_without_the_sure_events_is_wrong(monkeypatch):
    monkeypatch.setattr(TruncatedSchedule, "sure_delta", lambda self, epsilon: (0.0, 0.0))
    assert not is_decided_rightly(*SWAPPED[0])


@pytest.mark.parametrize("mu", [1.2, 0.15])
def test_the_decay_on_curves_is_near_the_truth_and_above_it(mu, monkeypatch):
    given = as_schedule(mu * np.linspace(1, 1.3, 8), np.geomspace(1e-5, 3e-5, 8))
    epsilon, tilt = 0.003, 1000.0 if mu > 1 else 30_000.0
    with np.errstate(over="ignore", invalid="ignore"):
        found = given.without_sure_events(epsilon)
        u = np.linspace(0.0, 150 * tilt, 400)
        ratio, missed = found.cf_ratio(tilt + 1j * u.reshape(20, 20))
        size, bound = np.log(np.abs(ratio.ravel())), found.log_cf_bound(tilt, u)
        known = missed.ravel() < 1e-3 * np.abs(ratio.ravel())
        highest = np.maximum.accumulate(np.where(known, size, -np.inf)[::-1])[::-1]
        assert np.all(highest <= bound + 1e-3)
        last = np.flatnonzero(known)[-1]
        assert bound[last] <= 0.5 * size[last] < -2  # uniform parts alone: a tenth of it
        twice = decay_below_cut.log_transforms_below_cut
        monkeypatch.setattr(
            "accountant.amplification.sampled_gaussian.similar_below_cut.log_transforms_below_cut",
            lambda members, curve, power, u, *others: twice(members, curve, power, 2 * u, *others),
        )
        assert np.any(highest > found.log_cf_bound(tilt, u) + 1e-3)


def test_a_short_schedule_is_narrow_in_both_directions_and_agrees_with_a_lattice(monkeypatch):
    mu, rate = 1 / np.geomspace(1.24, 2.5, 12), np.geomspace(1e-5, 4e-5, 12)
    plan, delta = Sequential(steps(mu, rate)), 2e-6
    asked = []
    certify = OneWay.certify
    monkeypatch.setattr(OneWay, "certify", lambda *given: asked.append(1) or certify(*given))
    found = Tight().certify(plan, delta)
    assert found.width <= 1e-7 * found.upper
    assert len(asked) == 1  # the other direction is decided by one contour
    grid = grid_certificate(list(plan.losses()), delta, 1e-3)
    assert max(grid.lower, found.lower) <= min(grid.upper, found.upper)


def test_a_direction_that_costs_nothing_decides_the_other(monkeypatch):
    mu, rate = np.linspace(1.2, 1.5, 12), np.full(12, 1e-5)
    asked = []
    certify = OneWay.certify
    monkeypatch.setattr(OneWay, "certify", lambda *given: asked.append(1) or certify(*given))
    assert Tight().certify(Sequential(steps(mu, rate)), 1e-4).upper == 0.0
    assert len(asked) == 1


@np.errstate(over="ignore", invalid="ignore")
def test_an_estimate_that_is_too_dear_ends(monkeypatch):
    given, log_delta = as_schedule(np.linspace(1.9, 2.0, 21), np.full(21, 9e-6)), math.log(2e-10)
    assert estimate_schedule(given, log_delta) is None  # one great loss beside next to nothing
    given = as_schedule(np.linspace(0.15, 0.25, 40), np.full(40, 1e-5))
    estimate = estimate_schedule(given, log_delta)
    found = certify_schedule(given, (log_delta, log_delta), estimate)
    assert abs(estimate[0] / found.upper - 1) < 0.5


def test_bounds_far_out_of_reach_do_not_overflow():
    class Far:
        def bounds(self, epsilon):
            return 800.0, 900.0

        def sure_delta(self, epsilon):
            return 0.0, 1.0

    engine = object.__new__(TruncatedContour)
    engine._contour = engine._loss = Far()
    engine.largest = 1.0
    low, high = engine.bounds(0.5)
    assert low <= high
    assert high >= 700.0


def test_a_loss_that_ends_early_does_not_spoil_a_lattice():
    # the first has no output of the size of epsilon, and was counted as if it could cost nothing
    mu, rate = (
        np.array([0.67, 1.5, 2.1, 2.15, 1.7]),
        np.array([3.2e-5, 2.2e-5, 3e-5, 4.5e-5, 4.6e-5]),
    )
    plan = Sequential(steps(mu, rate))
    found = grid_certificate(list(plan.losses()), 5.4e-7, 1e-6)
    assert 0.01 < found.lower <= found.upper
    assert found.width <= 1e-6 * found.upper
    rest = grid_certificate(list(plan.losses())[1:], 5.4e-7, 1e-6)
    assert rest.lower < found.upper < 1.05 * rest.upper


def test_few_hits_of_two_steps_are_those_of_one_quadrature():
    mu, rate, delta = (1.6, 0.5), (1e-5, 2e-5), 1e-8
    found = Tight().certify(Sequential(steps(np.array(mu), np.array(rate))), delta)
    assert 0 < found.width <= 1e-6 * found.upper
    ends = [true_delta_of_two(mu, rate, e, False) for e in (found.lower, found.upper)]
    assert ends[1] <= delta * (1 + 1e-9)
    assert ends[0] >= delta * (1 - 1e-9)
