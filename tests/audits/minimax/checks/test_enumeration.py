"""The inequalities against every channel that can be enumerated, and wrong ones that are caught."""

import itertools
import math
import time

import mpmath
import numpy as np
import pytest

from audits.minimax import (
    Contraction,
    SignedBasis,
    chi_squared_divergence,
    enumerate_checks,
    fano_information,
    le_cam_divergence,
    most_right,
    private_fano,
    private_le_cam,
    private_many_points,
    simulated_check,
)
from audits.minimax.checks.enumeration import channels, coordinate_response, cube
from audits.minimax.information import contraction as contractions
from audits.minimax.information.bernoulli_kl import (
    kl,
    most_right_given_divergence,
    most_right_given_information,
)
from audits.minimax.information.contraction import entropy_factor, log_factor
from tests.processor_time import standard


@pytest.fixture(scope="module")
def checks():
    started = time.process_time()
    found = enumerate_checks()
    return found, standard(time.process_time() - started)


def test_nothing_exceeds_its_bound(checks):
    found, seconds = checks
    assert [check for check in found if not check.holds] == []
    assert seconds < 20
    assert {check.case.partition(",")[0] for check in found} >= {f"p = {p}" for p in range(2, 7)}
    assert any("n = 4" in check.case for check in found)


def test_the_best_known_channel_comes_close(checks):
    closest = {}
    for check in checks[0]:
        closest[check.claim] = max(closest.get(check.claim, 0), check.tightness)
    # randomised response on one sign attains tanh^2(eps/2) / sinh^2(eps/2): .9975 at eps = .1
    for claim in ("I(V; Z), at once", "mean KL(M_0 || M_v), in turn", "P(right decode), at once"):
        assert 0.99 < closest[claim] <= 1 + 1e-9
    assert closest["C_infinity"] == pytest.approx(1)
    assert closest["C_2"] == pytest.approx(1)
    # the printed bound is at least twice what is known to be possible
    assert closest["printed I(V; Z)"] < 0.5


ROWS = {  # of one claim and one group: exact values and bounds, and which of them is shown
    "the closest": ([(0.5, 1.0), (0.9, 1.0), (0.7, 1.0)], 1),
    "the first": ([(0.9, 1.0), (0.5, 1.0)], 0),
    "one that fails": ([(0.5, 1.0), (1.5, 1.0), (0.99, 1.0)], 1),
    "the first that fails": ([(1.5, 1.0), (3.0, 1.0), (0.5, 1.0)], 0),
    "the closest by ratio": ([(1.0, 2.0), (10.0, 11.0), (0.1, 0.15)], 1),
}


@pytest.mark.parametrize("name", ROWS)
def test_of_each_claim_and_group_the_closest_row_is_shown(name, monkeypatch):
    pairs, shown = ROWS[name]

    def rows(rng, largest_p, users):
        for k, (exact, bound) in enumerate(pairs):
            yield "claim", "p = 2", f", case {k}", exact, bound
            yield "claim", "p = 3", f", case {k}", 0.25 - k / 100, 1.0
            yield "other", "p = 2", f", case {k}", 0.25 + k / 100, 1.0

    monkeypatch.setattr("audits.minimax.checks.enumeration._all_rows", rows)
    found = [(check.claim, check.case, check.exact, check.bound) for check in enumerate_checks()]
    last = len(pairs) - 1
    assert found == [
        ("claim", f"p = 2, case {shown}", *pairs[shown]),
        ("claim", "p = 3, case 0", 0.25, 1.0),
        ("other", f"p = 2, case {last}", 0.25 + last / 100, 1.0),
    ]


# dropped factors, tanh for sinh, a printed constant four times too small
MUTANTS = {
    "entropy_factor": lambda t: entropy_factor(t) / 2,
    "log_factor": lambda t: log_factor(t) / 2,
    "_energy": lambda family, n, eps: n * math.tanh(eps / 4) ** 2 * family.c_two,
    "published_information": lambda n, eps, c: n * math.expm1(eps) ** 2 * c / 16,
}


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_a_wrong_constant_is_caught_by_enumeration(name, monkeypatch):
    monkeypatch.setattr(contractions, name, MUTANTS[name])
    assert any(not check.holds for check in enumerate_checks(largest_p=2, users=2))


def test_a_forgotten_user_is_caught(monkeypatch):
    whole = contractions._energy
    monkeypatch.setattr(contractions, "_energy", lambda f, n, e: whole(f, max(n - 1, 1), e))
    assert any(not check.holds for check in enumerate_checks(largest_p=2, users=2))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_channels_are_private(epsilon):
    for p, (name, channel) in itertools.chain.from_iterable(
        ((p, c) for c in channels(p, epsilon, np.random.default_rng(p))) for p in (2, 3, 4)
    ):
        assert channel.shape[0] == 2**p, name
        assert channel.sum(axis=1) == pytest.approx(np.ones(2**p))
        ratio = channel.max(axis=0) / channel.min(axis=0)
        assert ratio.max() <= math.exp(epsilon) * (1 + 1e-12), name


def test_a_response_tells_of_its_coordinate_alone():
    channel = coordinate_response(3, 1, 1.0)
    positive = cube(3)[:, 1] > 0
    assert channel[positive, 0] == pytest.approx(1 / (1 + math.exp(-1)))
    assert channel[~positive, 0] == pytest.approx(1 / (1 + math.exp(1)))


@pytest.mark.parametrize(
    ("p", "n", "epsilon", "d"), [(50, 2000, 1.0, 1.0), (64, 500, 2.0, 1.0), (20, 1000, 0.5, 0.5)]
)
def test_beyond_enumeration(p, n, epsilon, d):
    # false alarms: 1e-6 each, the error that the rate is less by
    check = simulated_check(SignedBasis(p, d), n, epsilon, runs=300)
    assert check.holds
    # far better than a guess, so that there was something to bound
    assert check.exact > 1.5 / (2 * p)


def test_a_protocol_without_privacy_is_beyond_the_bound():
    # at epsilon 8 the same responses decode more often than epsilon .5 allows
    family = SignedBasis(20, 1.0)
    check = simulated_check(family, 1000, 8.0, runs=300)
    assert check.exact > most_right(family, 1000, 0.5)


@pytest.mark.parametrize("points", [2, 4, 1024, 1e200])
@pytest.mark.parametrize("nats", [0.0, 1e-9, 0.1, 1.0, 30.0])
def test_coins_are_inverted_upwards(points, nats):
    mpmath.mp.dps = 450
    u = 1 / mpmath.mpf(points)

    def divergence(a, b):
        second = (1 - a) * mpmath.log((1 - a) / (1 - b)) if a < 1 else 0
        return a * mpmath.log(a / b) + second

    for bound, known in (
        (most_right_given_information(nats, points), lambda s: divergence(s, u)),
        (most_right_given_divergence(nats, points), lambda s: divergence(u, s)),
    ):
        assert u <= bound <= 1
        if bound < 1:
            assert known(mpmath.mpf(bound)) >= nats
            # a thousandth nearer to a guess it is within the budget: no slack
            lower = bound - (mpmath.mpf(bound) - u) * mpmath.mpf("1e-3")
            assert known(lower) <= nats * (1 + 1e-9) + 1e-18


def test_two_coins():
    assert kl(0.5, 0.5) == 0
    assert kl(1.0, 0.5) == pytest.approx(math.log(2))
    assert kl(0.0, 0.5) == pytest.approx(math.log(2))


@pytest.mark.parametrize("t", [1e-6, 0.999e-3, 1.001e-3, 0.3, 0.999999, 1.0])
def test_factors(t):
    mpmath.mp.dps = 40
    x = mpmath.mpf(t)
    low = (1 - x) * mpmath.log(1 - x) if t < 1 else 0
    assert entropy_factor(t) == pytest.approx(
        float(((1 + x) * mpmath.log(1 + x) + low) / (2 * x * x)), rel=1e-9
    )
    if t < 1:
        assert log_factor(t) == pytest.approx(float(-mpmath.log(1 - x * x) / (x * x)), rel=1e-9)


def test_inequalities_and_their_printed_forms():
    family = SignedBasis(20, 0.3)
    for n, epsilon in ((10, 0.1), (1000, 0.5), (10**4, 1.0)):
        for inequality in (private_fano, private_le_cam, private_many_points):
            wrong = inequality(family, n, epsilon)
            assert 0 <= wrong.published <= wrong.sharp <= 1
        # Fano's classical form, of our nats, is weaker than its inversion
        known = fano_information(family, n, epsilon).sharp
        classical = 1 - (known + math.log(2)) / math.log(family.points)
        assert private_fano(family, n, epsilon).sharp >= classical
    assert isinstance(le_cam_divergence(family, 5, 1.0), Contraction)
    # reports never tell more than the data, whatever epsilon
    data = 5 * -math.log1p(-0.09) / 2
    assert le_cam_divergence(family, 5, 300.0).sharp == pytest.approx(data)


@pytest.mark.parametrize("sigma", [0.8, 2.0, 10.0])
@pytest.mark.parametrize("lean", [0.2, 0.7])
def test_gaussian_noise_is_within_the_chi_squared_bound(sigma, lean):
    # the sign of a coordinate and Gaussian noise: rho-zCDP with rho = 2 / sigma^2, by quadrature
    grid = np.linspace(-1 - 12 * sigma, 1 + 12 * sigma, 20_001)
    up, down = (np.exp(-(((grid - at) / sigma) ** 2) / 2) for at in (1, -1))
    none, some = (up + down) / 2, ((1 + lean) * up + (1 - lean) * down) / 2
    flipped = some[::-1]
    step = (grid[1] - grid[0]) / (sigma * math.sqrt(2 * math.pi))
    nats = sum((none * np.log(none / law)).sum() * step / 2 for law in (some, flipped))
    p = 7
    rho = 2 / sigma**2
    bound = chi_squared_divergence(SignedBasis(p, lean), 1, math.expm1(2 * rho))
    # of two inputs the variance is a quarter of their chi^2, so no more than 1/4 is reached
    assert nats / p <= bound.sharp <= bound.published
    if sigma == 10.0:
        assert 0.17 < nats / p / bound.sharp < 0.25
