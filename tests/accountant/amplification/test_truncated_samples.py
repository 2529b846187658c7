"""Sampled Gaussians without certain violations: against one quadrature, and other methods."""

import math
import statistics
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest

from accountant import GaussianLoss, PoissonSampled, Sequential, Tight
from accountant.amplification.sampled_gaussian import sampled_gaussian_tail
from accountant.amplification.sampled_gaussian.sampled_gaussian_cgf import (
    SampledGaussian,
    rough_epsilon,
)
from accountant.amplification.sampled_gaussian.sampled_gaussian_tail import (
    TruncatedSampledGaussian,
    TruncatedSampledGaussians,
    least_return,
    truncated,
)
from accountant.composition import contour_engines
from accountant.composition.composition import Composition, EpsilonProblem
from accountant.composition.contour_engines import TruncatedContour, TruncatedContourEngine
from accountant.composition.engine import certify
from accountant.composition.grid_certificate import grid_certificate
from accountant.numerics.quadrature import gauss_legendre_panels

tail = statistics.NormalDist().cdf


def steps(mu, rate):
    return [
        PoissonSampled(GaussianLoss(m), q) for m, q in zip(mu.tolist(), rate.tolist(), strict=True)
    ]


def sampled_gaussians(mu, rate):
    return [SampledGaussian(m, q, False) for m, q in zip(mu.tolist(), rate.tolist(), strict=True)]


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
        corner = math.log((level - 1 + q) / q) / first + first / 2
        # near it delta is smooth, but not analytic
        edges = np.sort(np.append(edges, corner + np.append(0.0, np.geomspace(-1e-4, -0.5, 24))))
    x, weight, _ = gauss_legendre_panels(edges)
    ratio = 1 - q + q * np.exp(first * x - first * first / 2)
    weight = weight * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    left = epsilon + np.log(ratio) if added else epsilon - np.log(ratio)
    value = [true_delta_of_one(second, other, e, added) for e in left.tolist()]
    return float(np.sum((weight if added else weight * ratio) * value))


TWO = [
    ((0.3, 0.25), (1e-3, 2e-3), 1e-6), ((0.2, 0.3), (3e-5, 2e-5), 1e-7),
    ((1.6, 0.5), (1e-5, 2e-5), 1e-8), ((1.9, 2.1), (8e-3, 7e-3), 1e-5),
]  # fmt: skip


@pytest.mark.parametrize(("mu", "rate", "delta"), TWO)
def test_two_different_steps_are_those_of_one_quadrature(mu, rate, delta):
    found = Tight().certify(Sequential(steps(np.array(mu), np.array(rate))), delta)
    assert 0 < found.width <= 1e-6 * found.upper
    at_lower, at_upper = (
        max(true_delta_of_two(mu, rate, e, added) for added in (False, True))
        for e in (found.lower, found.upper)
    )
    assert at_upper <= delta * (1 + 3e-9)  # what the quadrature errs by
    assert at_lower >= delta * (1 - 3e-9)


@np.errstate(over="ignore", invalid="ignore")  # as `certify` asks
def ends_of_two(mu, rate, delta):
    """What the truncated contour alone says of both bounds on ln delta, at the true epsilon."""
    epsilon = Tight().certify(Sequential(steps(np.array(mu), np.array(rate))), delta).upper
    part = truncated(sampled_gaussians(np.array(mu), np.array(rate)), [1, 1], 1.02 * epsilon)
    truncated_contour = TruncatedContour(part, math.log(delta), 1.02 * epsilon)
    truncated_contour.contour.integrate()
    low, high = truncated_contour.bounds(epsilon)
    return low, math.log(true_delta_of_two(mu, rate, epsilon, False)), high


def certain_violations_forgotten(patch):
    patch.setattr(TruncatedSampledGaussians, "sure_delta", lambda self, epsilon: (0.0, 0.0))


def violations_of_one_member(patch):
    made = TruncatedSampledGaussians.sure_delta
    patch.setattr(
        TruncatedSampledGaussians,
        "sure_delta",
        lambda self, epsilon: made(TruncatedSampledGaussians(self.members[:1]), epsilon),
    )


def transform_of_one_member(patch):
    made = TruncatedSampledGaussians.cf_ratio
    patch.setattr(
        TruncatedSampledGaussians,
        "cf_ratio",
        lambda self, z: made(TruncatedSampledGaussians(self.members[:1]), z),
    )


def cut_where_others_give_back(patch):
    patch.setattr(sampled_gaussian_tail, "least_return", lambda members: -0.02)


MUTANTS = (
    certain_violations_forgotten, violations_of_one_member, transform_of_one_member,
    cut_where_others_give_back,
)  # fmt: skip


def test_a_truncated_contour_holds_the_truth_and_wrong_ones_do_not(monkeypatch):
    case = (1.6, 1.3), (1e-3, 2e-3), 2e-5
    low, truth, high = ends_of_two(*case)
    assert low - 1e-10 <= truth <= high + 1e-10
    assert high - low < 1e-7
    for mutant in MUTANTS:
        with monkeypatch.context() as patch:
            mutant(patch)
            low, truth, high = ends_of_two(*case)
            assert not low - 1e-10 <= truth <= high + 1e-10, mutant.__name__


def test_members_that_are_equal_are_one_member_with_a_count():
    one = TruncatedSampledGaussian(1.3, 0.002, 7.0, 3)
    split = [TruncatedSampledGaussian(1.3, 0.002, 7.0, count) for count in (1, 2)]
    whole, parts = TruncatedSampledGaussians([one]), TruncatedSampledGaussians(split)
    for epsilon in (0.1, 1.0):
        ours, other = parts.sure_delta(epsilon), whole.sure_delta(epsilon)
        assert max(ours[0], other[0]) <= min(ours[1], other[1])
        assert abs(ours[1] / other[1] - 1) < 1e-9
    z = 5.0 + 1j * np.arange(12.0).reshape(3, 4)
    (value, missed), (other, off) = parts.cf_ratio(z), whole.cf_ratio(z)
    assert np.all(np.abs(value - other) <= missed + off)
    a = np.geomspace(1.0, 30.0, 5)
    np.testing.assert_allclose(parts.rough_cgf(a), whole.rough_cgf(a), rtol=1e-9)
    np.testing.assert_allclose(parts.cgf(a)[0], whole.cgf(a)[0], rtol=1e-12)
    np.testing.assert_allclose(parts.rough_cgf(a), whole.cgf(a)[0], rtol=1e-4)


def test_certain_violations_add_up():
    members = [(1.0, 0.01, 4.0, 2), (0.6, 0.03, 5.0, 1)]
    epsilon = 0.01
    found = TruncatedSampledGaussians([TruncatedSampledGaussian(*one) for one in members])
    low, high = found.sure_delta(epsilon)
    with mpmath.workdps(30):
        none_p = none_q = mpmath.mpf(1)
        for mu, rate, cut, count in members:
            q = mpmath.ncdf(-cut)
            p = (1 - mpmath.mpf(rate)) * q + mpmath.mpf(rate) * mpmath.ncdf(mpmath.mpf(mu) - cut)
            none_p, none_q = none_p * (1 - p) ** count, none_q * (1 - q) ** count
        truth = (1 - none_p) - mpmath.exp(epsilon) * (1 - none_q)
    assert low <= truth <= high
    assert high - low < 1e-10 * high


@pytest.mark.parametrize("count", [1, 2, 3])
def test_others_may_take_back_what_one_violates(monkeypatch, count):
    """The chance that they do is a doubt in the upper end, once for each release."""
    members = [TruncatedSampledGaussian(1.0, 0.01, 4.0, count)]
    known = TruncatedSampledGaussians(members).sure_delta(0.5)
    monkeypatch.setattr(sampled_gaussian_tail, "RETURN_CHANCE", 0.25)
    low, high = TruncatedSampledGaussians(members).sure_delta(0.5)
    assert low == known[0]
    doubt = math.exp(0.5) * count * tail(-4.0) * 0.25
    assert high - known[1] == pytest.approx(doubt, rel=1e-6)


@pytest.mark.parametrize("tilt", [12.0, 200.0])
def test_the_decay_is_a_bound_at_every_higher_frequency(tilt):
    rng = np.random.default_rng(4)
    given = sampled_gaussians(rng.uniform(0.4, 1.5, 6), 10 ** rng.uniform(-4, -3, 6))
    found = truncated(given, [1] * 6, 0.4)
    u = np.geomspace(1.0, 3000.0, 30)
    bound = found.log_cf_bound(tilt, u)
    z = tilt + 1j * np.linspace(0, 3000, 400).reshape(20, 20)
    ratio, missed = found.cf_ratio(z)
    size = np.log(np.abs(ratio) + 1e-300).ravel()
    for limit, one in zip(u, bound, strict=True):
        some = (z.imag.ravel() >= limit) & (size > -18)
        assert np.all(size[some] <= one + 1e-6)
    assert np.max(missed) < 1e-8


def test_what_different_others_give_back_is_close_to_chernoffs_bound():
    rng = np.random.default_rng(6)
    for steps_ in (2, 30, 300):
        mu, rate = rng.uniform(0.2, 0.6, steps_), 10 ** rng.uniform(-4, -2, steps_)
        members = tuple((m, q, 1) for m, q in zip(mu.tolist(), rate.tolist(), strict=True))
        t = np.geomspace(1.0, 1e6, 121)
        total = sum(SampledGaussian(m, q, True).cgf(t)[0] for m, q, _ in members)
        exact = min(
            float(np.nanmin((total - math.log(1e-13)) / t)), -float(np.sum(np.log1p(-rate)))
        )
        # one of them may be the release above its cut: of two that is half
        assert exact * (0.3 if steps_ == 2 else 0.98) <= least_return(members) <= 2 * exact


def test_an_estimate_starts_near_epsilon():
    rng = np.random.default_rng(2)
    for scale in (0.5, 1.5):
        mu, rate = 1 / rng.uniform(scale, 2 * scale, 40), 10 ** rng.uniform(-3.5, -2.5, 40)
        found = Tight().certify(Sequential(steps(mu, rate)), 1e-6)
        rough = rough_epsilon(sampled_gaussians(mu, rate), np.ones(40), 1e-6)
        assert 0.3 < rough / found.upper < 3


@pytest.mark.parametrize(("noise", "rate", "count"), [(0.8, 2e-4, 60), (1.5, 0.001, 60)])
def test_nearly_equal_losses_cost_what_equal_ones_cost(noise, rate, count):
    # every one of them is at least `noise`, and at most a little more
    mu = 1 / (noise * (1 + 1e-10 * np.arange(count)))
    composition = Composition([(step, 1) for step in steps(mu, np.full(count, rate))])
    found = certify(EpsilonProblem(composition, 1e-6, 1e-6), (TruncatedContourEngine(),))
    least = Tight().certify(count * PoissonSampled(GaussianLoss(1 / noise), rate), 1e-6)
    assert found.engine == "truncated contour"
    assert found.lower <= least.upper
    assert found.upper >= least.lower * (1 - 1e-5)
    assert found.width <= 1e-8 * found.upper


def test_cuts_come_closer_until_little_is_gained(monkeypatch):
    composition = Composition([(PoissonSampled(GaussianLoss(1.0), 0.001), 60)])
    problem, cuts = EpsilonProblem(composition, 1e-6, 1e-6), []

    class Planned:
        """A contour that is only planned."""

        contour, is_affordable = SimpleNamespace(operations=7.0), True
        bracket = print  # never called

        def __init__(self, part, log_delta, cut, cost):
            cuts.append(cut)

    monkeypatch.setattr(contour_engines, "TruncatedContour", Planned)

    def cuts_after(*intervals):
        """The cuts where attempts have these results (upper end and width)."""
        cuts.clear()
        attempts = TruncatedContourEngine().attempts(problem)
        for upper, width in intervals:
            attempt = next(attempts)
            assert attempt.cost == 7.0
            attempt.result = upper and SimpleNamespace(upper=upper, width=width)
        if next(attempts, None) is None:
            cuts.append(None)
        return [cut and cut / problem.rough_epsilon for cut in cuts]

    rough = problem.rough_epsilon
    near, close = 1.5 * rough, 1.2 * rough
    assert cuts_after() == [1]
    # an attempt that was not made, and one that gained less than half
    assert cuts_after((None, 0)) == [1, None]
    assert cuts_after((near, 1.0), (close, 0.6)) == pytest.approx([1, 1.53, None])
    assert cuts_after((near, 1.0), (close, 0.4)) == pytest.approx([1, 1.53, 1.224])
    # too low a cut is doubled, and no later cut goes below it
    unknown = math.inf, math.inf
    assert cuts_after(unknown, unknown) == [1, 2, 4]
    assert cuts_after(unknown, (0.5 * rough, 1.0)) == pytest.approx([1, 2, 1])
    assert cuts_after(*[unknown] * 4) == [1, 2, 4, 8, None]


def test_a_short_schedule_is_narrow_and_agrees_with_a_lattice():
    mu, rate = 1 / np.geomspace(1.24, 2.5, 12), np.geomspace(1e-5, 4e-5, 12)
    plan, delta = Sequential(steps(mu, rate)), 2e-6
    found = Tight().certify(plan, delta)
    assert found.width <= 1e-6 * found.upper
    grid = grid_certificate(list(plan.losses()), delta, 1e-3)
    assert max(grid.lower, found.lower) <= min(grid.upper, found.upper)


def test_bounds_far_out_of_reach_do_not_overflow():
    class Far:
        def bounds(self, epsilon):
            return 800.0, 900.0

        def sure_delta(self, epsilon):
            return 0.0, 1.0

    engine = object.__new__(TruncatedContour)
    engine.contour = engine._loss = Far()
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


@pytest.mark.parametrize("delta", [1e-6, 1e-3])
def test_a_schedule_that_costs_no_epsilon_has_an_answer(delta):
    # total variation is some 2e-5 at most: at 1e-3 nothing is left, at 1e-6 little is
    rates, mus = np.geomspace(1.5e-6, 1.6e-6, 120), np.linspace(0.10, 0.14, 120)
    parts = [PoissonSampled(GaussianLoss(mu), q) for mu, q in zip(mus, rates, strict=True)]
    found = Tight().certify(Sequential(parts), delta)
    assert found.lower <= found.upper < 0.01
    assert found.upper == 0.0 or delta < 1e-3


def test_a_lattice_without_an_upper_end_is_tried_again():
    # the first four lattices see no upper end
    loss = PoissonSampled(GaussianLoss(1.348), 0.48)
    found = grid_certificate([(loss, 818)], 0.9999, 1e-2)
    assert 0 <= found.lower <= 116.5
    assert 86.9 <= found.upper < 1000  # `Tight` says from 86.9 to 116.5


@pytest.mark.slow
def test_a_delta_near_one_has_a_finite_epsilon():
    # the first lattice sees no upper end; delta is as large as `Tight` takes them
    plan = 81_836 * PoissonSampled(GaussianLoss(0.1348314270804099), 0.48004403354800657)
    found = Tight().certify(plan, 0.9999)
    assert 0 <= found.lower <= found.upper < 200


@pytest.mark.parametrize(
    ("scale", "rate", "delta", "truth"),
    [
        # 20 digits by nested quadrature over one release
        (0.25, 0.01, 1e-8, 27.063628268681627748),
        (0.3, 1e-5, 1e-7, 2.033863619048744245),
        (0.45, 0.1, 1e-10, 17.399244221237350228),
        (0.6, 0.02, 1e-6, 3.7721015782801640106),
    ],
)
def test_two_steps_with_little_noise_agree_with_nested_quadrature(scale, rate, delta, truth):
    found = Tight().certify(2 * PoissonSampled(GaussianLoss(1 / scale), rate), delta)
    assert found.lower <= truth <= found.upper
    assert found.width < 1e-6 * truth


@pytest.mark.parametrize(
    ("rate", "scale", "steps", "delta"),
    [
        (0.00632, 0.302, 3, 3e-10),
        (1.82e-5, 0.192, 9, 1e-9),
        (0.000581, 0.249, 74, 5e-6),
        (0.0266, 0.176, 35, 6e-4),
        (0.0456, 0.293, 12, 1e-4),
    ],
)
def test_certificates_overlap_with_those_of_the_grid(rate, scale, steps, delta):
    loss = PoissonSampled(GaussianLoss(1 / scale), rate)
    found = Tight().certify(steps * loss, delta)
    assert found.width < 1e-6 * found.upper
    grid = grid_certificate([(loss, steps)], delta, 1e-5)
    assert max(found.lower, grid.lower) <= min(found.upper, grid.upper)
