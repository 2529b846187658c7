"""Many different sampled Gaussians: shared sums against 30 digits, and against one by one."""

import math

import mpmath
import numpy as np
import pytest

from accountant import GaussianLoss, PoissonSampled, Sequential, Tight
from accountant.amplification import sampled_family
from accountant.amplification.sampled_cgf import SampledCGF
from accountant.amplification.sampled_gaussian import sampled_schedule
from accountant.amplification.sampled_gaussian.sampled_gaussian_cgf import SampledGaussian
from accountant.amplification.sampled_gaussian.sampled_gaussian_tail import TruncatedSampledGaussian
from accountant.amplification.sampled_gaussian.sampled_schedule import SimilarSampledGaussians
from accountant.amplification.sampled_gaussian.schedule_decay import UniformParts, uniform_parts
from accountant.amplification.sampled_gaussian.similar_below_cut import SimilarBelowCut
from accountant.amplification.truncated_schedule import SampledSchedule, TruncatedSchedule
from accountant.composition.schedule_contour import certify_schedule, estimate_schedule
from accountant.numerics.exponential_sums import cf_ratios_from_cgf
from accountant.numerics.quadrature import gauss_legendre_panels

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
        parts = uniform_parts(group.mu, group.log_odds, group.powers(3.0), group.log_mass(3.0))
        u = np.geomspace(0.1, 200, 40)
        bound = UniformParts([(parts, np.ones(copies))]).log_bound(u)
        z = 3.0 + 1j * np.linspace(0, 200, 400).reshape(20, 20)
        size = np.abs(SampledGaussian(float(mu[i]), float(rate[i]), added).cf_ratio(z, 1)[0])
        size = np.log(np.maximum(size, 1e-14)).ravel()
        for limit, one in zip(u, bound, strict=True):
            assert np.max(size[z.imag.ravel() >= limit]) * copies <= one + 1e-9
        assert bound[-1] < -0.1 * copies


def one_by_one(patch):
    patch.setattr(sampled_family, "MIN_SHARED", 10**9)
    whole(patch)


def whole(patch):
    """Answer by the contour of all outputs alone."""
    patch.setattr(SampledCGF, "schedule", lambda *_, **__: None)


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
    alike = sampled_family.SimilarSampledGaussians
    patch.setattr(
        sampled_family,
        "SimilarSampledGaussians",
        lambda mu, log_odds, added: alike(mu, log_odds - np.logaddexp(0.0, log_odds), added),
    )


def decay_from_longer_parts(patch):
    made = sampled_family.uniform_parts

    def longer(*given):
        mass, length = made(*given)
        return mass, 40 * length

    patch.setattr(sampled_family, "uniform_parts", longer)


def step_too_long(patch):
    made = sampled_schedule.shared_grid

    def sparse(*given):
        found = made(*given)
        return found and (found[0][::8], 8 * found[1], found[2])

    patch.setattr(sampled_schedule, "shared_grid", sparse)


def phase_of_the_rate_forgotten(patch):
    made = SimilarSampledGaussians.contour

    def wrong(self, z, counts):
        height, off, product, missed = made(self, z, counts)
        nats = float(np.logaddexp(0.0, self.log_odds) @ counts)
        turn = -1 if self.record_added else 1
        return height, off, product * np.exp(1j * turn * nats * z.imag), missed

    patch.setattr(SimilarSampledGaussians, "contour", wrong)


MUTANTS = [
    odds_taken_for_rates,
    decay_from_longer_parts,
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


def small_losses(steps, low, high, rate):
    rng = np.random.default_rng(2)
    return rng.uniform(low, high, steps), rate * 10 ** rng.uniform(-0.3, 0.3, steps)


def test_the_direction_without_the_record_does_not_widen_thousands_of_small_losses():
    found = Tight().certify(plan(*small_losses(2_050, 0.55, 1.35, 2e-6)), 7e-6)
    assert found.engine == "truncated contour"
    assert 0 < found.width <= 1e-7 * found.upper


MODERATE = [
    (3_000, 0.55, 1.35, 2e-6, 1e-5), (10_000, 0.5, 1.55, 1e-6, 3e-6),
    (10_000, 0.7, 4.0, 1e-5, 1e-7), (10_000, 2.5, 10.0, 5e-6, 1e-12),
    (10_000, 4.6, 9.5, 1e-4, 2e-12), (100_000, 0.7, 4.0, 1e-5, 1e-9),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("steps", "low", "high", "rate", "delta"), MODERATE)
def test_hits_neither_rare_nor_many_are_narrow(steps, low, high, rate, delta):
    noise, rates = small_losses(steps, low, high, rate)
    found = Tight().certify(plan(noise, rates), delta)
    assert 0 < found.width <= 1e-6 * found.upper


def test_an_estimate_by_merged_members_is_near():
    noise, rates = small_losses(300, 0.65, 2.1, 2e-3)
    given = SampledSchedule(1 / noise, np.log(rates) - np.log1p(-rates), np.ones(300))
    with np.errstate(over="ignore", invalid="ignore"):
        estimate = estimate_schedule(given, math.log(1e-5))
        found = certify_schedule(given, (math.log(1e-5),) * 2, estimate)
    assert abs(estimate[0] / found.upper - 1) < 0.006


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_hundred_thousand_different_steps_are_narrow(kind):
    found = Tight().certify(plan(*schedule(kind, 100_000)), 1e-6)
    assert found.width <= 1e-6 * found.upper


def below(mu, rate, counts, cut, tolerance=1e-13):
    log_odds = np.log(rate) - np.log1p(-rate)
    return SimilarBelowCut(mu, log_odds, counts, cut, greatest_power=8.0, tolerance=tolerance)


def true_moment(mu, rate, cut, power):
    """``E[(1 + e^Y)^p; Y <= cut]`` by Gauss's rule on the real line."""
    mean = math.log(rate / (1 - rate)) - mu * mu / 2
    edges = mean + mu * np.arange(-13, 40, 0.25)
    y, weight, _ = gauss_legendre_panels(np.append(edges[edges < cut], cut))
    weight = weight * np.exp(-(((y - mean) / mu) ** 2) / 2) / (mu * math.sqrt(2 * math.pi))
    return complex(np.sum(weight * np.exp(power * np.logaddexp(0.0, y))))


BELOW = [(0.6, 0.002, 2.0, 6.0), (1.9, 0.0003, 1.0, 4.0), (0.3, 0.2, 0.5, 3.0), (0.05, 0.3, 9.0, 8)]


@pytest.mark.parametrize(("mu", "rate", "cut", "power"), BELOW)
@pytest.mark.parametrize("tolerance", [1e-13, 1e-2])
def test_moments_below_a_cut_are_within_their_errors(mu, rate, cut, power, tolerance):
    counts = np.array([2.0, 1.0, 1.0])
    mus, rates = mu * np.array([1, 1.2, 0.999]), rate * np.array([1, 0.5, 1.01])
    group = below(mus, rates, counts, cut, tolerance)
    turns = 1j * np.array([0.0, 2.0, 11.0])
    truth = [
        [true_moment(m, q, cut, power + t) for t in turns] for m, q in zip(mus, rates, strict=True)
    ]
    height, off = group.log_height(power)
    whole = sum(n * np.log(one[0]) for n, one in zip(counts, truth, strict=True))
    assert abs(height - float(whole.real)) <= off + 1e-13
    ratio, missed, _ = group.ratios(power, np.array([power + 0j]), turns)
    for at in (1, 2):
        exact = 1.0
        for n, one in zip(counts, truth, strict=True):
            exact *= (one[at] / one[0]) ** int(n)
        assert abs(ratio[at] - exact) <= missed[at] + 1e-13
    if tolerance < 1e-12:
        assert off <= 3e-9
        assert np.max(missed) <= 3e-8
    assert group.upper_sum(np.array([power]))[0] >= height


def members_below_a_cut():
    rng = np.random.default_rng(3)
    mu, rate = rng.uniform(0.26, 0.49, 400), 10 ** rng.uniform(-5.3, -4.7, 400)
    group = below(mu, rate, 1.0 + np.arange(400) % 3, -2.0)
    every = np.concatenate([real + 1j * imag for _, real, imag, _ in group._densities.blocks()])
    return group, every


def test_ulps_of_densities_are_counted_by_cells_of_members():
    group, every = members_below_a_cut()
    t = np.abs(group.y - group.mean[:, None]) / group.mu[:, None]
    place = np.abs(group.y) + np.abs(group.mean)[:, None]
    each = 80 + group.y.size / 8 + 4 * t**2 + 8 * t * place / group.mu[:, None]
    truth = group.counts @ (np.abs(every) * each) * np.abs(group._speed)
    whole = group._densities.ulps * (group.counts @ np.abs(every)) * np.abs(group._speed)
    assert np.all(group._density_ulps >= truth)
    assert np.sum(group._density_ulps) <= 2 * np.sum(truth) <= 0.5 * np.sum(whole)


def test_columns_of_next_to_no_mass_are_left_and_counted():
    group, every = members_below_a_cut()
    scale = group.scale(60.0) * np.abs(group._speed)
    found, _ = group._densities.factored(scale, 1e-10)
    whole = np.concatenate([every.real, every.imag], axis=1) * np.concatenate([scale, scale])
    left = whole - found.coordinates @ found.basis
    assert np.sum(~found.basis.any(axis=0)) > 50
    assert np.sum(group.counts @ np.abs(left)) <= found.rest * (1 + 1e-6)
    assert np.allclose(group.counts @ left, found.column_rest, atol=1e-12 * np.max(whole))
    assert found.rest <= 1e-7 * np.sum(np.abs(whole))


def test_the_decay_below_a_cut_is_a_bound_at_every_higher_frequency():
    found = small_rates(100).without_sure_events(0.4)
    u = np.geomspace(1.0, 3000.0, 30)
    bound = found.log_cf_bound(12.0, u)
    z = 12.0 + 1j * np.linspace(0, 3000, 400).reshape(20, 20)
    ratio, missed = found.cf_ratio(z)
    size = np.log(np.abs(ratio) + 1e-300).ravel()
    for limit, one in zip(u, bound, strict=True):
        some = (z.imag.ravel() >= limit) & (size > -18)
        assert np.all(size[some] <= one + 1e-6)
    assert bound[-1] < -5
    assert np.max(missed) < 1e-8


def small_rates(steps):
    noise, rates = schedule("small rates", steps)
    return SampledSchedule(1 / noise, np.log(rates) - np.log1p(-rates), np.ones(steps))


def test_sure_events_of_a_schedule_are_those_of_equal_losses():
    mu, rate = 1.3, 0.002
    equal = SampledSchedule(np.full(3, mu), np.full(3, math.log(rate / (1 - rate))), np.ones(3))
    found = TruncatedSchedule(equal, 1.5, 20.0)
    one = TruncatedSampledGaussian(
        mu, rate, (1.5 - math.log(rate / (1 - rate)) + mu * mu / 2) / mu, 3
    )
    for epsilon in (0.1, 1.0):
        ours, other = found.sure_delta(epsilon), one.sure_delta(epsilon)
        assert ours[0] <= other[1]
        assert other[0] <= ours[1]
        assert abs(ours[1] / other[1] - 1) < 1e-9


@pytest.mark.parametrize(("noise", "rate", "steps"), [(0.8, 2e-4, 100), (1.5, 0.001, 200)])
def test_nearly_equal_losses_cost_what_equal_ones_cost(noise, rate, steps):
    # every one of them is at least `noise`, and at most a little more
    spread = 1 + 1e-10 * np.arange(steps)
    found = Tight().certify(plan(noise * spread, np.full(steps, rate)), 1e-6)
    least = Tight().certify(steps * PoissonSampled(GaussianLoss(1 / noise), rate), 1e-6)
    assert found.lower <= least.upper
    assert found.upper >= least.lower * (1 - 1e-5)
    assert found.width <= 1e-8 * found.upper


def test_small_rates_are_narrow():
    found = Tight().certify(plan(*schedule("small rates", 150)), 1e-6)
    assert found.engine == "truncated contour"
    assert found.width <= 1e-8 * found.upper


LEFT_OUT = {  # what a bound leaves out: the interval must be found wrong
    "sure events": (TruncatedSchedule, "sure_delta", lambda self, epsilon: (0.0, 0.0)),
    "what others give back": (SampledSchedule, "least_return", -0.3),
    "what is lost": (SimilarBelowCut, "tails", property(lambda self: (0 * self.mu, 0 * self.mu))),
}


@pytest.mark.parametrize("name", LEFT_OUT)
@np.errstate(over="ignore", invalid="ignore")  # as `CertifiedComposition` asks for them
def test_bounds_that_leave_something_out_are_wrong(name, monkeypatch):
    given = small_rates(12)
    log_delta = (math.log(1e-6),) * 2
    estimate = estimate_schedule(given, log_delta[0])
    right = certify_schedule(given, log_delta, estimate)
    owner, attribute, instead = LEFT_OUT[name]
    monkeypatch.setattr(owner, attribute, instead)
    wrong = certify_schedule(small_rates(12), log_delta, (1.3 * estimate[0], estimate[1]))
    assert wrong is None or wrong.lower > right.upper or wrong.upper < right.lower


@pytest.mark.parametrize("delta", [1e-6, 1e-3])
def test_a_schedule_that_costs_no_epsilon_has_an_answer(delta):
    # total variation is some 2e-5 at most: at 1e-3 nothing is left, at 1e-6 little is
    rates, mus = np.geomspace(1.5e-6, 1.6e-6, 120), np.linspace(0.10, 0.14, 120)
    parts = [PoissonSampled(GaussianLoss(mu), q) for mu, q in zip(mus, rates, strict=True)]
    found = Tight().certify(Sequential(parts), delta)
    assert found.lower <= found.upper < 0.01
    assert found.upper == 0.0 or delta < 1e-3


def test_a_lattice_without_an_upper_end_is_tried_again():
    # the first lattice sees no upper end; delta is as large as `Tight` takes them
    plan = 81_836 * PoissonSampled(GaussianLoss(0.1348314270804099), 0.48004403354800657)
    found = Tight().certify(plan, 0.9999)
    assert 0 <= found.lower <= found.upper < 200
