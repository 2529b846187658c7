"""Great losses of different sampled Gaussians: against Arb's balls, and by other roads."""

import math
from itertools import pairwise

import numpy as np
import pytest

from accountant import GaussianLoss, PoissonSampled, Sequential, Tight
from accountant.amplification import schedule_hits
from accountant.amplification.sampled_gaussian import similar_hits
from accountant.amplification.sampled_gaussian.similar_hits import SimilarHits
from accountant.amplification.truncated_schedule import SampledSchedule
from accountant.composition.schedule_contour import certify_hits, estimate_hits

flint = pytest.importorskip("flint")
from flint import acb, arb, ctx  # noqa: E402

from tests.references.arb.few_steps import two_sampled_gaussians  # noqa: E402


@pytest.fixture(autouse=True)
def bits():
    """Balls of 150 bits."""
    before, ctx.prec = ctx.prec, 150
    yield
    ctx.prec = before


def true_moments(mu, rate, odds, p):
    """``h(p)`` and ``w(p)`` as balls of Arb's own quadrature over y."""
    mu, rate, odds = arb(mu), arb(rate), arb(odds)
    log_odds = (rate / (1 - rate)).log()
    mean = log_odds - mu * mu / 2

    def terms(y):
        density = (-((y - acb(mean)) ** 2) / (2 * acb(mu) ** 2)).exp()
        density /= acb(mu) * acb(2 * arb.pi()).sqrt()
        none = (-(y.exp() / acb(odds))).exp()
        return density, ((1 + y.exp()).log() * acb(*p)).exp(), (1 - none) ** 12

    def hit(y, _):
        density, power, phi = terms(y)
        return density * power * phi

    def other(y, _):
        density, power, phi = terms(y)
        return density * (power * (1 - phi) - 1)

    far = 17 + 4 * float(mu) * p[0]
    ends = [float((mean + k * mu).mid()) for k in np.arange(-15, far)]

    def integral(f):
        few = {"abs_tol": arb("1e-200"), "rel_tol": arb(1e-25)}
        return sum((acb.integral(f, a, b, **few) for a, b in pairwise(ends)), acb(0))

    return integral(hit), integral(other)


def random_group(rng):
    least, octave = 2 ** rng.uniform(-3.0, 1.5), rng.uniform(1.0, 1.9, 3)
    mu = np.sort(least * octave)
    rate = 10 ** rng.uniform(-6, -2, 3)
    odds = 10 ** rng.uniform(-2.5, 0.3)
    return mu, np.clip(rate, rate[0] / 10, rate[0] * 10), odds, rng.uniform(1.2, 4.0)


def wrong_sums(rng, turns=(0.0, 3.0, 40.0), *, is_narrow=False):
    """Return errors over what they may be, of both sums and at each turn."""
    mu, rate, odds, p = random_group(rng)
    counts = np.array([1.0, 2.0, 1.0])
    group = SimilarHits(
        mu, np.log(rate) - np.log1p(-rate), counts, odds=odds, highest=p + 1, tolerance=1e-9
    )
    assert group.is_short
    found = group.sums(p + 0j, np.array(turns))
    shares, bounds = [], group.decay(p, np.array(turns))
    for at, turn in enumerate(turns):
        others = hits = first = size = acb(0)
        for n, m, q in zip(counts.tolist(), mu, rate, strict=True):
            h, w = true_moments(m, q, odds, (p, turn))
            others, hits = others + n * w.log1p(), hits + n * (h / (1 + w)).log1p()
            first, size = first + n * w, size + n * abs(h)
        shares.append(gap(found.others[at], others) / (found.others_error[at] + 4e-16))
        shares.append(gap(found.hits[at], hits) / (found.hits_error[at] + 1e-300))
        assert size.real <= arb(bounds[at])
        if turn == 0:
            assert first.real <= arb(group.others(p))
            assert size.real <= arb(group.hits(p))
    if is_narrow:
        assert np.max(found.others_error) <= 1e-8
        assert found.hits_error[0] <= 1e-8 * abs(found.hits[0])
    return shares


def gap(found, truth):
    return float(abs(acb(found.real, found.imag) - truth).upper())


def test_sums_and_decay_are_within_their_errors():
    rng = np.random.default_rng(1)
    for _ in range(2):
        assert max(wrong_sums(rng, is_narrow=True)) <= 1


@pytest.mark.slow
def test_many_sums_and_decays_are_within_their_errors():
    rng = np.random.default_rng(2)
    for _ in range(300):
        assert max(wrong_sums(rng)) <= 1


def random_pair(rng):
    mu = 1 / 10 ** rng.uniform(-0.5, 0.1, 2)
    rate = 10 ** rng.uniform(-5, -3) * 10 ** rng.uniform(-0.3, 0.3, 2)
    return mu, rate, float(np.sum(rate)) * 10 ** rng.uniform(-6, -2)


def certificate_of(mu, rate, delta):
    schedule = SampledSchedule(mu, np.log(rate) - np.log1p(-rate), np.ones(mu.size))
    log_delta = math.log(delta)
    estimate = estimate_hits(schedule.merged(), log_delta)
    return None if estimate is None else certify_hits(schedule, (log_delta, log_delta), estimate)


def is_right_for_two(rng, *, is_narrow=False):
    """Return whether both ends are on their sides of the truth; None where others answer."""
    mu, rate, delta = random_pair(rng)
    found = certificate_of(mu, rate, delta)
    if found is None:
        return None
    assert not is_narrow or 0 < found.width <= 1e-7 * found.upper
    pairs = list(zip(mu.tolist(), rate.tolist(), strict=True))
    low, high = (two_sampled_gaussians(*pairs, e) for e in (found.lower, found.upper))
    return low.upper() >= delta and high.lower() <= delta


def test_two_releases_are_those_of_balls():
    rng = np.random.default_rng(5)
    answers = [is_right_for_two(rng, is_narrow=True) for _ in range(2)]
    assert all(one is not False for one in answers)
    assert any(answers)


@pytest.mark.slow
def test_many_pairs_of_releases_are_those_of_balls():
    rng = np.random.default_rng(6)
    answers = [is_right_for_two(rng) for _ in range(300)]
    assert all(one is not False for one in answers)
    assert sum(one is True for one in answers) >= 150


def plan(noise, rate):
    steps = zip(noise.tolist(), rate.tolist(), strict=True)
    return Sequential([PoissonSampled(GaussianLoss(1 / scale), q) for scale, q in steps])


def hardly_a_hit(steps):
    rng = np.random.default_rng(3)
    noise = np.exp(rng.uniform(math.log(0.4), math.log(2), steps))
    return noise, 1e-5 * 10 ** rng.uniform(-0.3, 0.3, steps)


def test_a_schedule_with_hardly_a_hit_is_narrow_and_nearly_equal_steps_cost_as_equal_ones():
    found = Tight().certify(plan(*hardly_a_hit(60)), 1e-10)
    assert found.engine == "hit contour"
    assert found.width <= 1e-8 * found.upper
    near = 1 + 1e-12 * np.arange(20)
    equal = Tight().certify(20 * PoissonSampled(GaussianLoss(2.0), 1e-5), 1e-10)
    other = Tight().certify(plan(0.5 * near, np.full(20, 1e-5)), 1e-10)
    assert other.engine == "hit contour"
    assert abs(other.upper - equal.upper) <= 1e-8 * equal.upper


def test_many_members_that_are_summed_in_blocks_cost_as_their_counts():
    mu = 1 / hardly_a_hit(40)[0]
    log_odds, log_delta = np.full(40, math.log(1e-5)), math.log(1e-9)
    few = SampledSchedule(mu, log_odds, np.full(40, 9.0))
    many = SampledSchedule(np.tile(mu, 9), np.tile(log_odds, 9), np.ones(360))
    estimate = estimate_hits(few, log_delta)
    one, other = (certify_hits(each, (log_delta,) * 2, estimate) for each in (few, many))
    assert abs(one.upper - other.upper) <= 1e-9 * one.upper
    assert max(one.lower, other.lower) <= min(one.upper, other.upper)


def others_forgotten(patch):
    patch.setattr(schedule_hits.HitSchedule, "sure_delta", lambda self, epsilon: (0.0, 0.0))
    patch.setattr(schedule_hits.HitSchedule, "log_rest", lambda self, epsilon: -1e3)


def other_share_of_hits(patch):
    """Phi's complement is that of another power."""
    right = similar_hits.SimilarHits.__init__

    def wrong(self, *given, **named):
        right(self, *given, **named)
        self._log_other = self._log_other * (1 + 1e-4)

    patch.setattr(similar_hits.SimilarHits, "__init__", wrong)


def first_order_alone(patch):
    patch.setattr(similar_hits, "log1p", lambda x: x)


def test_bounds_that_leave_something_out_are_wrong(monkeypatch):
    mu, rate, delta = np.array([1.9, 2.1]), np.array([8e-3, 7e-3]), 1e-5
    pairs = list(zip(mu.tolist(), rate.tolist(), strict=True))

    def is_right():
        found = certificate_of(mu, rate, delta)
        low, high = (two_sampled_gaussians(*pairs, e) for e in (found.lower, found.upper))
        return bool(low.upper() >= delta and high.lower() <= delta)

    assert is_right()
    for mutant in (others_forgotten, other_share_of_hits, first_order_alone):
        with monkeypatch.context() as patch:
            mutant(patch)
            assert not is_right(), mutant.__name__
