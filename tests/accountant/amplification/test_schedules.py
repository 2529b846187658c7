"""Many different sampled Gaussians: shared sums against 30 digits, and against one by one."""

import math

import mpmath
import numpy as np
import pytest

from accountant import GaussianLoss, PoissonSampled, Sequential, Tight
from accountant.accountants.direction import Direction
from accountant.amplification import sampled_cgf
from accountant.amplification.sampled_cgf import SampledCGF
from accountant.amplification.sampled_gaussian import sampled_schedule
from accountant.amplification.sampled_gaussian.sampled_gaussian_cgf import SampledGaussian
from accountant.amplification.sampled_gaussian.sampled_schedule import (
    ContourValues,
    SimilarSampledGaussians,
    right_end,
)
from accountant.composition.contour_engines import ContourEngine
from accountant.numerics.exponential_sums import cf_ratios_from_cgf

KINDS = ("noise falls", "noise falls by a factor", "rate rises", "both random", "two phases")


def schedule(kind, steps, seed=0):
    """Noise and rate of each step."""
    rng, part = np.random.default_rng(seed), np.arange(steps) / (steps - 1)
    return {
        "noise falls": (3 - 2 * part, np.full(steps, 0.005)),
        "noise falls by a factor": (4 * 0.2**part, np.full(steps, 0.01)),
        "rate rises": (np.ones(steps), 1e-4 * 300**part),
        "both random": (rng.uniform(0.5, 5, steps), 10 ** rng.uniform(-4, math.log10(0.05), steps)),
        "two phases": (np.where(part < 0.5, 2 - part, 1 - 0.2 * part), np.full(steps, 0.01)),
        "small rates": (rng.uniform(0.7, 2, steps), 10 ** rng.uniform(-4, -3, steps)),
    }[kind]


def plan(noise, rates):
    return Sequential(
        PoissonSampled(GaussianLoss(1 / s), q)
        for s, q in zip(noise.tolist(), rates.tolist(), strict=True)
    )


def similar(mu, rate, added):
    return SimilarSampledGaussians(mu, np.log(rate) - np.log1p(-rate), added)


def true_cumulant(mu, rate, added, z):
    """``ln E e^{zL}`` by quadrature over the output with 30 digits."""
    with mpmath.workdps(30):
        power = -mpmath.mpc(z) if added else mpmath.mpc(z) + 1
        half = mpmath.mpf(mu) ** 2 / 2

        step = mpmath.mpf(1) / math.ceil(16 + mu * abs(z.imag) / 4)
        total = mpmath.mpf(0)
        for k in range(math.floor(-13 / step), math.ceil((13 + 2 * mu * abs(z.real)) / step)):
            ratio = 1 - mpmath.mpf(rate) + rate * mpmath.exp(mu * k * step - half)
            total += mpmath.npdf(k * step) * mpmath.exp(power * mpmath.log(ratio))
        return mpmath.log(step * total)


CASES = [  # mu, rate, order, distance of nodes: the last two are on raised lines
    (0.3, 0.01, 4.0, 0.5), (1.4, 0.004, 2.5, 0.7), (0.02, 0.3, 30.0, 2.0),
    (1.1, 0.9, 1.5, 0.2), (0.8, 0.002, 3.0, 60.0), (0.3, 0.02, 6.0, 40.0),
]  # fmt: skip


@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize(("mu", "rate", "order", "step"), CASES)
def test_shared_sums_are_within_their_errors_of_thirty_digits(mu, rate, order, step, added):
    group = similar(np.array([mu, 1.05 * mu]), np.array([rate, 0.9 * rate]), added)
    z = order + 1j * step * np.arange(6.0).reshape(2, 3)
    height, off, ratio, missed = group.contour(z, np.array([2.0, 1.0]))
    pairs = ((mu, rate, 2), (1.05 * mu, 0.9 * rate, 1))
    # the float mu and rate are what the group was made of
    whole = sum(n * true_cumulant(m, q, added, complex(order)) for m, q, n in pairs)
    assert abs(height - float(whole.real)) <= off <= 1e-11 * (1 + abs(height))
    for place in ((0, 1), (1, 2)):
        at = sum(n * true_cumulant(m, q, added, z[place]) for m, q, n in pairs)
        truth = complex(mpmath.exp(at - whole))
        assert abs(ratio[place] - truth) <= missed[place] <= 1e-9


@pytest.mark.parametrize("mu", [0.3, 0.15])
def test_small_rates_share_a_line_at_great_orders_with_the_record_absent(mu):
    mus, rates = np.array([mu, 1.05 * mu]), np.array([2e-6, 3e-5])
    z = 2e4 + 2e3j * np.arange(6.0).reshape(2, 3)
    found = similar(mus, rates, True).contour(z, np.array([2.0, 1.0]))
    assert found is not None  # |1 + e^w|^-a is some e^9 greater there, where nothing is
    height, off, ratio, missed = found
    truth, error, whole = np.ones(z.shape, dtype=complex), np.zeros(z.shape), 0.0
    for m, q, n in zip(mus.tolist(), rates.tolist(), (2, 1), strict=True):
        one = SampledGaussian(m, q, True)
        value, lost = one.cf_ratio(z, n)
        whole += n * float(one.cgf(np.array([2e4]))[0][0])
        truth, error = truth * value, error + lost
    assert abs(height - whole) <= off + 1e-10 * abs(whole)
    assert np.all(np.abs(ratio - truth) <= missed + error)
    assert np.max(missed) <= 1e-9


@pytest.mark.parametrize("added", [False, True])
def test_real_orders_of_many_are_bounded_by_corners(added):
    rng = np.random.default_rng(1)
    mu, rate = rng.uniform(0.3, 0.49, 900), rng.uniform(0.01, 0.02, 900)
    a = np.array([0.5, 3.0, 20.0, 300.0])
    value, error = similar(mu, rate, added).cgf(a, np.ones(900))
    every = [similar(mu[i : i + 300], rate[i : i + 300], added) for i in (0, 300, 600)]
    truth = sum(group.cgf(a[:3], np.ones(300))[0] for group in every)
    assert np.all(np.abs(value[:3] - truth) <= error[:3])
    # mu and odds are rounded up by a twentieth at most
    assert np.all((value + error)[:3] <= 1.35 * truth)
    least = sum(
        SampledGaussian(m, q, added).cgf(a[3:])[0] for m, q in zip(mu[:9], rate[:9], strict=True)
    )
    assert least <= value[3] + error[3]


@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("copies", [1, 300])
def test_the_decay_is_a_bound_at_every_higher_frequency(added, copies):
    mu, rate = np.array([0.4, 0.9, 1.6, 1.2]), np.array([0.01, 0.05, 0.3, 0.9])
    for i in range(4):
        group = similar(mu[i : i + 1].repeat(copies), rate[i : i + 1].repeat(copies), added)
        u = np.geomspace(0.1, 200, 40)
        bound = group.log_cf_bound(3.0, np.ones(copies), u)
        z = 3.0 + 1j * np.linspace(0, 200, 400).reshape(20, 20)
        ratio, error = SampledGaussian(float(mu[i]), float(rate[i]), added).cf_ratio(z, 1)
        size = np.log(np.maximum(np.abs(ratio) - error, 1e-14)).ravel()
        for limit, one in zip(u, bound, strict=True):
            assert np.max(size[z.imag.ravel() >= limit]) * copies <= one + 1e-9
        assert bound[-1] < -0.1 * copies


@pytest.mark.parametrize("added", [False, True])
def test_the_decay_counts_what_a_rule_misses(added, monkeypatch):
    mu, rate = np.array([0.9, 1.2]), np.array([0.05, 0.02])
    made = sampled_schedule.shared_grid

    def sparse(*given):
        y, step, height = made(*given)
        return y[::12], 12 * step, height

    monkeypatch.setattr(sampled_schedule, "shared_grid", sparse)
    u = np.geomspace(0.1, 30, 20)
    bound = similar(mu, rate, added).log_cf_bound(3.0, np.ones(2), u)
    z = 3.0 + 1j * np.linspace(0, 60, 600).reshape(20, 30)
    size = np.zeros(z.shape)
    for m, q in zip(mu.tolist(), rate.tolist(), strict=True):
        size += np.log(np.abs(SampledGaussian(m, q, added).cf_ratio(z, 1)[0]))
    for limit, log_bound in zip(u, bound, strict=True):
        assert np.max(size[z.imag >= limit]) <= log_bound + 1e-9


def one_by_one(patch):
    patch.setattr(sampled_cgf, "MIN_SHARED", 10**9)
    whole(patch)


def whole(patch):
    """Answer by the contour of all outputs alone."""
    patch.setattr(SampledCGF, "parts", lambda *_: None)


@pytest.mark.parametrize("kind", ["noise falls by a factor", "both random"])
def test_a_schedule_is_certified_as_its_losses_one_by_one(kind, monkeypatch):
    noise, rates = schedule(kind, 40)
    found = Tight().certify(plan(noise, 4 * rates), 1e-5)
    one_by_one(monkeypatch)
    other = Tight().certify(plan(noise, 4 * rates), 1e-5)
    assert max(found.lower, other.lower) <= min(found.upper, other.upper)
    assert found.width <= 1e-6 * found.upper


def test_a_thousand_different_steps_are_narrow_in_any_order():
    noise, rates = schedule("both random", 1000)
    found = Tight().certify(plan(noise, rates), 1e-6)
    assert found.width <= 1e-7 * found.upper
    order = np.random.default_rng(2).permutation(1000)
    other = Tight().certify(plan(noise[order], rates[order]), 1e-6)
    assert max(found.lower, other.lower) <= min(found.upper, other.upper)


def test_almost_equal_steps_cost_as_much_as_equal_ones():
    equal = Tight().certify(300 * PoissonSampled(GaussianLoss(1.0), 0.01), 1e-6)
    noise = 1 + 1e-13 * np.arange(300)
    found = Tight().certify(plan(noise, np.full(300, 0.01)), 1e-6)
    assert found.lower <= equal.upper * (1 + 1e-9)
    assert equal.lower <= found.upper * (1 + 1e-9)
    assert found.width <= 1e-7 * found.upper


def test_counts_of_different_steps_are_powers():
    noise, rates = schedule("both random", 50)
    losses = [PoissonSampled(GaussianLoss(1 / s), q) for s, q in zip(noise, rates, strict=True)]
    z = 3.0 + 1j * np.arange(12.0).reshape(3, 4)
    counts = 1.0 + np.arange(50) % 4
    found, missed = SampledCGF().cf_ratios(losses, counts, z)
    other, off = cf_ratios_from_cgf(SampledCGF().sum_cgf, losses, counts, z)
    assert np.all(np.abs(found - other) <= missed + off)


def odds_taken_for_rates(patch):
    alike = sampled_cgf.SimilarSampledGaussians
    patch.setattr(
        sampled_cgf,
        "SimilarSampledGaussians",
        lambda mu, log_odds, added: alike(mu, log_odds - np.logaddexp(0.0, log_odds), added),
    )


def decay_of_greater_frequencies(patch):
    made = SimilarSampledGaussians.log_cf_bound
    patch.setattr(
        SimilarSampledGaussians,
        "log_cf_bound",
        lambda self, a, counts, u: made(self, a, counts, 40 * u),
    )


def step_too_long(patch):
    made = sampled_schedule.shared_grid

    def sparse(*given):
        found = made(*given)
        return found and (found[0][::4], 4 * found[1], found[2])

    patch.setattr(sampled_schedule, "shared_grid", sparse)


def phase_of_the_rate_forgotten(patch):
    made = SimilarSampledGaussians.contour

    def wrong(self, z, counts):
        height, off, product, missed = made(self, z, counts)
        nats = float(np.logaddexp(0.0, self.log_odds) @ counts)
        turn = -1 if self.record_added else 1
        return ContourValues(height, off, product * np.exp(1j * turn * nats * z.imag), missed)

    patch.setattr(SimilarSampledGaussians, "contour", wrong)


MUTANTS = [
    odds_taken_for_rates,
    decay_of_greater_frequencies,
    step_too_long,
    phase_of_the_rate_forgotten,
]


@pytest.fixture(scope="module")
def right():
    """Forty steps, and their certificate one by one."""
    noise, rates = schedule("both random", 40)
    steps = plan(noise, 4 * rates)
    with pytest.MonkeyPatch.context() as patch:
        one_by_one(patch)
        return steps, Tight().certify(steps, 1e-5)


@pytest.mark.parametrize("mutant", MUTANTS)
def test_wrong_shared_sums_disagree_with_one_by_one(mutant, right, monkeypatch):
    steps, right = right
    whole(monkeypatch)
    mutant(monkeypatch)
    wrong = Tight().certify(steps, 1e-5)
    assert wrong.lower > right.upper or wrong.upper < right.lower


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_hundred_thousand_different_steps_are_narrow(kind):
    found = Tight().certify(plan(*schedule(kind, 100_000)), 1e-6)
    assert found.width <= 1e-6 * found.upper


@pytest.mark.parametrize("rate", [0.4999, 1e-20])  # the least odds are of corner 0
def test_corners_are_above_all_rates_of_their_cells(rate):
    rates = np.linspace(rate, 1.5 * rate, 900)
    group = similar(np.linspace(0.3, 0.49, 900), rates, False)
    corners, counts, index = group.corners(np.ones(900))
    assert counts.sum() == 900
    assert np.all(corners.log_odds[index] > group.log_odds)
    assert np.all(corners.mu[index] > group.mu)


def test_a_contour_of_many_small_rates_is_affordable():
    # its products are those of matrices, which take less than half of the time of others
    neighbourhood = Direction(plan(*schedule("small rates", 600)), 1e-8).problem(1e-6).neighbourhood
    # the quickest contour, and the one through the saddle point, which has less round-off
    quickest, exact = (attempt.cost for attempt in ContourEngine().near(neighbourhood))
    assert quickest < exact


@pytest.mark.parametrize("power", [1.01, 3.0, 20.0, 150.0])
@pytest.mark.parametrize("mu", [0.05, 0.7, 3.0])
@pytest.mark.parametrize("rate", [1e-4, 0.02, 0.6])
def test_next_to_nothing_of_a_power_lies_beyond_its_right_end(mu, rate, power):
    log_odds = math.log(rate) - math.log1p(-rate)
    mean = log_odds - mu * mu / 2
    end = right_end(mean, mu, power, log_odds)
    y, step = np.linspace(mean - 10 * mu, mean + power * mu**2 + 20 * mu, 40_001, retstep=True)
    log_values = power * np.logaddexp(0.0, y) - ((y - mean) / mu) ** 2 / 2
    share = np.exp(log_values - np.max(log_values))
    share /= share.sum()
    assert share[y >= end + step].sum() <= math.exp(sampled_schedule.LOG_LEFT_OUT)
    assert share[y >= end - 8 * mu].sum() >= math.exp(sampled_schedule.LOG_LEFT_OUT)


def test_a_power_that_takes_too_many_points_has_no_end():
    assert right_end(-1.0, 2.0, 1e12, 0.0) == math.inf
