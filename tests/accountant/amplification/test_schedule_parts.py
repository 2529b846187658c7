"""Parts of the outcomes of many different sampled Gaussians: below a cut, and with a great loss."""

import math

import numpy as np
import pytest

from accountant import GaussianLoss, PoissonSampled, Sequential, Tight
from accountant.amplification.sampled_gaussian import schedule_parts, similar_parts
from accountant.amplification.sampled_gaussian.sampled_gaussian_tail import (
    TruncatedSampledGaussian,
    TruncatedSampledGaussians,
)
from accountant.amplification.sampled_gaussian.schedule_parts import Schedule, ScheduleParts
from accountant.amplification.sampled_gaussian.similar_parts import FewRows
from accountant.composition.contour_engines import TruncatedContour
from tests.accountant.amplification.test_truncated_samples import true_delta_of_two

MU, RATE, COUNTS = (1.6, 0.7, 1.3), (1e-3, 2e-3, 1e-4), (2, 1, 3)
SPLIT = math.log(0.3)  # the logarithm of the scale of phi


def schedule_of(mu, rate, counts):
    rate = np.array(rate)
    return Schedule(np.array(mu), np.log(rate) - np.log1p(-rate), np.array(counts, dtype=float))


def great(schedule, log_scale=SPLIT, order=20.0):
    return ScheduleParts(schedule, 1.0, log_scale=log_scale, order=order)


def nodes(tilt, step):
    return tilt + 1j * step * np.arange(12.0).reshape(3, 4)


def true_moments(mu, rate, s):
    """``E r^s``, and the part of it in phi, by a sum over the output on the real line."""
    x = np.arange(-12.0, 20.0, 1 / 256)
    odds = rate / (1 - rate) * np.exp(mu * x - mu * mu / 2)
    exponent = s * (np.log1p(odds) + math.log1p(-rate)) - x * x / 2
    exponent -= math.log(256 * math.sqrt(2 * math.pi))
    log_phi = 12 * np.log1p(-np.exp(-odds / math.exp(SPLIT)))
    log_others = np.log(np.maximum(-np.expm1(log_phi), 1e-300))
    logs = exponent, exponent + log_phi, exponent + log_others
    return [np.exp(log).sum() for log in logs]


def true_transform(z):
    """The transform of the outcomes with a great loss: a sum over the members with one."""
    others, great_losses = 1.0, 0.0
    for mu, rate, count in zip(MU, RATE, COUNTS, strict=True):
        moment, hits, _ = true_moments(mu, rate, z + 1)
        others *= moment**count
        great_losses -= count * np.log1p(-hits / moment)
    return -others * np.expm1(-great_losses)


def test_great_losses_have_the_transform_of_a_sum_over_outputs():
    part, z = great(schedule_of(MU, RATE, COUNTS)), nodes(3.0, 2.0)
    (height,), (off,) = part.cgf(np.array([3.0]))
    at_tilt = true_transform(3.0)
    assert abs(height - math.log(at_tilt)) <= off < 1e-8
    ratio, missed = part.cf_ratio(z)
    for place in ((0, 1), (2, 3)):
        truth = true_transform(z[place]) / at_tilt
        assert abs(ratio[place] - truth) <= missed[place] < 1e-8


@pytest.mark.parametrize("order", [8.0, 30.0])
def test_what_others_cost_is_next_to_chernoffs_bound(order):
    schedule, epsilon = schedule_of(MU, RATE, COUNTS), 1.0
    _, log_others = schedule.without_great_losses(epsilon, SPLIT, np.array([order]))
    log_moment = 0.0
    for mu, rate, count in zip(MU, RATE, COUNTS, strict=True):
        log_moment += count * math.log(true_moments(mu, rate, order + 1)[2])
    constant = order * math.log(order) - (order + 1) * math.log(order + 1)
    truth = log_moment + constant - order * epsilon
    assert truth - 1e-12 <= log_others <= truth + 1e-6


def one_by_one(cut):
    """The same members below the cut of the schedule, each with a rule of its own."""
    return TruncatedSampledGaussians([
        TruncatedSampledGaussian(
            mu, rate, (cut - math.log(rate) + math.log1p(-rate)) / mu + mu / 2, count
        )
        for mu, rate, count in zip(MU, RATE, COUNTS, strict=True)
    ])  # fmt: skip


@pytest.mark.parametrize("tilt", [2.0, 12.0])
def test_members_below_a_cut_are_those_that_are_summed_one_by_one(tilt):
    part = ScheduleParts(schedule_of(MU, RATE, COUNTS), 1.0, cut=0.6)
    other = one_by_one(0.6)
    a = np.array([tilt])
    (value, error), (its_value, its_error) = part.cgf(a), other.cgf(a)
    assert abs(value - its_value) <= error + its_error < 1e-9
    (ratio, missed), (its_ratio, its_missed) = (
        loss.cf_ratio(nodes(tilt, 9.0)) for loss in (part, other)
    )
    assert np.all(np.abs(ratio - its_ratio) <= missed + its_missed)
    assert np.max(missed) < 1e-9
    orders = tilt * np.array([0.4, 0.9, 1.7])
    (value, error), (its_value, its_error) = part.cgf(orders), other.cgf(orders)
    assert np.all(np.abs(value - its_value) <= error + its_error)
    low, high = part.sure_delta(0.5)
    its_low, its_high = other.sure_delta(0.5)
    assert max(low, its_low) <= min(high, its_high)
    assert high - low <= 1e-9 * high


PARTS = {
    "below a cut": lambda schedule: ScheduleParts(schedule, 1.0, cut=0.6),
    "with a great loss": great,
}


@pytest.mark.parametrize("part_of", PARTS.values(), ids=PARTS)
def test_the_decay_is_a_bound_at_every_higher_frequency(part_of):
    rng = np.random.default_rng(4)
    mu, rate = rng.uniform(0.6, 1.5, 60), 10 ** rng.uniform(-4, -3, 60)
    part = part_of(schedule_of(mu, rate, 1 + np.arange(60) % 3))
    highest = 80.0 if part.is_split else 4000.0
    u = np.geomspace(0.5, highest, 12)
    bound = part.log_cf_bound(6.0, u)
    z = 6.0 + 1j * np.linspace(0, 1.2 * highest, 144).reshape(12, 12)
    ratio, _ = part.cf_ratio(z)
    size = np.log(np.maximum(np.abs(ratio), 1e-9)).ravel()
    for limit, log_bound in zip(u, bound, strict=True):
        assert np.max(size[z.imag.ravel() >= limit]) <= max(log_bound, math.log(1e-9)) + 1e-6
    assert bound[-1] < -3


@pytest.mark.parametrize("part_of", PARTS.values(), ids=PARTS)
@pytest.mark.parametrize(
    ("constant", "value"), [("NATS", 9.0), ("SHORTEST", 3e-4), ("DEVIATIONS", 3.6)]
)
def test_rules_that_are_too_short_say_how_much_they_miss(part_of, constant, value, monkeypatch):
    rng = np.random.default_rng(4)
    schedule = schedule_of(rng.uniform(0.6, 1.5, 60), 10 ** rng.uniform(-4, -3, 60), np.ones(60))
    z, a = nodes(6.0, 3.0), np.array([6.0])
    exact = part_of(schedule)
    (height, off), (ratio, missed) = exact.cgf(a), exact.cf_ratio(z)
    for module in (schedule_parts, similar_parts):
        if hasattr(module, constant):
            monkeypatch.setattr(module, constant, value)
    short = part_of(schedule)
    (its_height, its_off), (its_ratio, its_missed) = short.cgf(a), short.cf_ratio(z)
    away = np.abs(ratio - its_ratio)
    assert abs(height - its_height) <= off + its_off
    assert np.all(away <= missed + its_missed)
    # The bound is needed: what was exact is no longer within what was its error.
    assert np.max(away - missed) > 0


def test_coordinates_say_what_few_rows_miss():
    rng = np.random.default_rng(1)
    terms = rng.normal(size=(40, 3)) @ rng.normal(size=(3, 50)) + 1e-3 * rng.normal(size=(40, 50))
    few = FewRows.of(terms[:5].astype(complex))
    coordinates, missed = few.coordinates(terms.astype(complex))
    phases = np.exp(1j * rng.uniform(0, 6, (7, 50)))
    away = np.abs(coordinates @ few.sums(phases).T - terms @ phases.T)
    assert np.all(away <= missed[:, None])
    assert np.max(away) > 1e-4


TWO, EPSILON, DELTA = ((2.5, 2.2), (1e-3, 2e-3)), 3.0, 2.4e-6


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def log_bounds_of_two():
    """What a contour of great losses says of ln delta at an epsilon, and the truth."""
    part = schedule_of(*TWO, (1, 1)).with_great_losses(EPSILON, math.log(DELTA))
    contour = TruncatedContour(part, math.log(DELTA), EPSILON)
    contour.contour.integrate()
    low, high = contour.bounds(EPSILON)
    return low, math.log(true_delta_of_two(*TWO, EPSILON, False)), high


def test_a_contour_of_great_losses_holds_the_truth():
    low, truth, high = log_bounds_of_two()
    assert low - 1e-9 <= truth <= high + 1e-9
    assert high - low < 1e-7


def test_a_contour_of_the_great_losses_of_one_member_does_not(monkeypatch):
    monkeypatch.setattr(
        Schedule,
        "groups",
        lambda self: [Schedule(self.mu[:1], self.log_odds[:1], self.counts[:1])],
    )
    _, truth, high = log_bounds_of_two()
    assert high < truth


def test_what_others_cost_is_needed_where_few_losses_are_great(monkeypatch):
    # The others cost about as much as those with a great loss.
    monkeypatch.setattr(schedule_parts, "LOG_NOTHING", math.log(0.5))
    monkeypatch.setattr(schedule_parts, "GREAT_SHARES", (0.8, 1.0))
    monkeypatch.setattr(schedule_parts, "GREATEST", 9.0)
    low, truth, high = log_bounds_of_two()
    assert low <= truth <= high
    monkeypatch.setattr(ScheduleParts, "sure_delta", lambda self, epsilon: (0.0, 0.0))
    _, truth, high = log_bounds_of_two()
    assert high < truth


def steps(noise, rate):
    return Sequential(
        PoissonSampled(GaussianLoss(1 / scale), chance)
        for scale, chance in zip(noise.tolist(), rate.tolist(), strict=True)
    )


@pytest.mark.parametrize(
    ("noise", "rate", "delta"), [(0.4, 1e-5, 1e-10), (1.5, 0.001, 1e-6), (0.9, 2e-6, 1e-6)]
)
def test_nearly_equal_steps_cost_what_equal_ones_cost(noise, rate, delta):
    # Every noise is at least that of the equal steps, and hardly more.
    different = Tight().certify(
        steps(noise * (1 + 1e-10 * np.arange(40)), np.full(40, rate)), delta
    )
    equal = Tight().certify(40 * PoissonSampled(GaussianLoss(1 / noise), rate), delta)
    assert different.lower <= equal.upper
    assert different.upper >= equal.lower * (1 - 1e-6)
    assert different.width <= 1e-7 * different.upper


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def test_merged_members_cost_about_as_much():
    rng = np.random.default_rng(3)
    schedule = schedule_of(
        1 / rng.uniform(2, 4, 300), 10 ** rng.uniform(-4.2, -3.8, 300), np.ones(300)
    )
    merged = schedule.merged()
    assert merged.size < 100
    bounds = []
    for each in (schedule, merged):
        contour = TruncatedContour(each.below(0.005), math.log(1e-8), 0.005, 3000.0)
        contour.contour.integrate()
        bounds.append(contour.bounds(0.004))
    (low, high), (low_of_merged, high_of_merged) = bounds
    assert high - low < 1e-4
    assert high_of_merged - low_of_merged < 1e-4
    assert abs(high - high_of_merged) < 0.05
