"""Losses: every closed form against the road that needs only profile and reverse."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given

from accountant import (
    ApproxLoss,
    BoundedRangeLoss,
    DiscreteLaplaceLoss,
    GaussianLoss,
    LaplaceLoss,
    Loss,
    PairLoss,
    ParameterError,
    PoissonSampled,
    PureLoss,
    ZCDPLoss,
)
from accountant.losses.laplace import LaplaceCGF
from accountant.losses.public_choice import PublicChoice
from accountant.losses.upper_envelope import UpperEnvelope
from tests.strategies import epsilons, orders, shares

SKEW = PairLoss((0.1, 0.3, 0.6), (0.3, 0.6, 0.1))
LEAKY = PairLoss((0.1, 0.5, 0.4, 0.0), (0.0, 0.3, 0.6, 0.1))
ONE_SIDED = PairLoss((0.5, 0.5, 0.0), (0.4, 0.4, 0.2))
ALL = [
    PureLoss(0.7), ApproxLoss(0.7, 0.01), ApproxLoss(0.0, 0.1), GaussianLoss(0.8), LaplaceLoss(0.7),
    BoundedRangeLoss(0.7), ZCDPLoss(0.2), ZCDPLoss(0.2, 0.05), SKEW, LEAKY, ONE_SIDED,
]  # fmt: skip
every_loss = pytest.mark.parametrize("loss", ALL, ids=repr)
# zCDP and bounded range are suprema over pairs: their moments are facts of their own
SINGLE_PAIR = [one for one in ALL if not isinstance(one, (ZCDPLoss, BoundedRangeLoss))]


class Bare(Loss):
    """A loss that tells its profile and reverse, and nothing else."""

    def __init__(self, inner):
        self.inner = inner

    def profile(self, epsilon):
        return self.inner.profile(epsilon)

    @property
    def reversed(self):
        return Bare(self.inner.reversed)

    @property
    def max_loss(self):
        return self.inner.max_loss

    def __eq__(self, other):
        return isinstance(other, Bare) and self.inner == other.inner

    def __hash__(self):
        return hash(self.inner)


@pytest.mark.parametrize("loss", SINGLE_PAIR, ids=repr)
def test_renyi_and_cumulant_follow_from_the_profile(loss):
    # the quadrature meets the kinks of finite pairs between its nodes: 1e-4 there; Rényi
    # divergences of bounded losses are those of dots above the profile
    orders = np.array([1.01, 1.5, 2.0, 5.0, 20.0])
    tolerance = 2e-4 if isinstance(loss, PairLoss) else 1e-9
    for one in (loss, loss.reversed):
        derived = Bare(one).renyi(orders) * (orders - 1)
        closed = one.renyi(orders) * (orders - 1)
        assert derived == pytest.approx(closed, abs=max(tolerance, 1e-6))
        assert (derived >= closed - 1e-9).all()
        for z in (0.5, 1.0, 0.3 + 2j):
            assert one.cumulant(z) == pytest.approx(Bare(one).cumulant(z), abs=tolerance)


@every_loss
def test_bare_epsilon_and_delta_agree(loss):
    for epsilon in (-1.0, 0.0, 0.3, 1.2):
        assert Bare(loss).delta_at(epsilon) == loss.delta_at(epsilon)
    for delta in (1e-12, 1e-5, 0.05, 0.3):
        assert Bare(loss).epsilon_at(delta) == pytest.approx(loss.epsilon_at(delta), rel=1e-6)


@every_loss
def test_epsilon_and_delta_are_inverse_and_err_upwards(loss):
    for delta in (1e-9, 1e-4, 0.02, 0.2):
        epsilon = loss.epsilon_at(delta)
        if math.isfinite(epsilon) and not isinstance(loss, ZCDPLoss):
            assert max(loss.profile(epsilon), loss.reversed.profile(epsilon)) <= delta
            if epsilon > 1e-6 and delta > max(loss.infinity, loss.reversed.infinity):
                assert loss.delta_at(epsilon * (1 - 1e-6)) > delta * (1 - 1e-9)


@every_loss
def test_profile_is_convex_falls_and_never_negative(loss):
    x = np.linspace(1e-3, 6.0, 2000)
    delta = loss.profile_any_epsilon(np.log(x))
    assert np.all(delta >= np.maximum(1 - x, 0) - 1e-12)
    assert np.all(np.diff(delta) <= 1e-12)
    if not isinstance(loss, ZCDPLoss):  # its profile is an upper bound with a corner at 0
        assert np.all(np.diff(delta, 2) >= -1e-10)


@every_loss
def test_negative_epsilons_follow_from_the_reverse(loss):
    epsilon = np.linspace(0.0, 3.0, 31)
    identity = 1 - np.exp(-epsilon) + np.exp(-epsilon) * loss.reversed.profile(epsilon)
    assert loss.profile_any_epsilon(-epsilon) == pytest.approx(identity, abs=1e-14)


@every_loss
def test_rho_bounds_the_renyi_curve(loss):
    orders = 1 + np.logspace(-4, 4, 200)
    with np.errstate(over="ignore"):
        assert np.all(loss.renyi(orders) <= loss.rho * orders * (1 + 1e-9))


@given(epsilons(1e-6, 30.0))
def test_the_laplace_rho_is_attained_at_order_one(shift):
    loss = LaplaceLoss(shift)
    orders = 1 + np.logspace(-5, 3, 100)
    assert (
        np.max(loss.renyi(orders) / orders) <= loss.rho * (1 + 1e-7) + 2e-10
    )  # rounding up, divided by 1e-5
    assert loss.rho == pytest.approx(shift - 1 + math.exp(-shift), rel=1e-6, abs=1e-15)


@given(epsilons(), orders)
def test_bounded_range_renyi_is_the_supremum_over_t(epsilon, order):
    t = np.linspace(0, epsilon, 20_001)[1:-1]
    q = np.expm1(epsilon - t) / np.expm1(epsilon)
    moments = np.logaddexp(
        np.log(q) + order * t, np.log1p(-q) + order * (t - epsilon)
    )  # fmt: skip
    brute = moments.max() / (order - 1)
    closed = float(BoundedRangeLoss(epsilon).renyi(order))
    assert brute * (1 - 1e-9) - 1e-12 <= closed <= brute * (1 + 1e-4) + 1e-8


@given(epsilons(), shares)
def test_bounded_range_profile_is_the_supremum_over_t(range_, share):
    epsilon = share * range_
    t = np.linspace(0, range_, 20_001)[1:]
    q = np.expm1(range_ - t) / np.expm1(range_)
    brute = np.max(q * (np.exp(t) - np.exp(epsilon)))
    closed = float(BoundedRangeLoss(range_).profile(epsilon))
    assert closed == pytest.approx(brute, rel=1e-5, abs=1e-9)
    assert closed >= brute - 1e-12


def test_gaussian_far_tail():
    # accounting.md section 2: one Gaussian, mu = 1 (13 digits)
    for delta, epsilon in ((1e-50, 15.2478654323056), (1e-100, 21.6275080936484),
                           (1e-300, 37.4488479121391)):  # fmt: skip
        found = GaussianLoss(1.0).epsilon_at(delta)
        assert epsilon <= found == pytest.approx(epsilon, rel=1e-12)


def test_negative_epsilon_does_not_cancel():
    # design.md 3.1: the other way round gives 0 for 9.8e-23
    assert GaussianLoss(1.0).delta_at(10.0) == pytest.approx(9.8e-23, rel=5e-3)
    assert 1 - GaussianLoss(1.0).delta_at(-10.0) == pytest.approx(math.exp(-10.0), abs=2e-11)


def test_pair_equality_is_meaning():
    assert PairLoss((0.2, 0.3, 0.5), (0.5, 0.3, 0.2)) == PairLoss((0.5, 0.2, 0.3), (0.2, 0.5, 0.3))
    assert PairLoss((0.25, 0.25, 0.5), (0.1, 0.1, 0.8)) == PairLoss((0.5, 0.5), (0.2, 0.8))
    assert SKEW.reversed != SKEW
    assert SKEW.reversed.reversed == SKEW


def test_a_leak_on_either_side_is_infinite():
    assert LEAKY.epsilon_at(0.05) == math.inf
    assert ONE_SIDED.infinity == 0
    assert ONE_SIDED.epsilon_at(0.1) == math.inf
    assert ONE_SIDED.rho == math.inf


@every_loss
@pytest.mark.parametrize("bad", [1.0, 0.5, float("nan"), float("inf"), True, "2", None], ids=repr)
def test_an_order_that_is_none_is_refused(loss, bad):
    with pytest.raises(ParameterError, match="order must be"):
        loss.renyi(bad)


BAD = [float("nan"), float("inf"), -1.0, True, "1", None, 1j]


@pytest.mark.parametrize("bad", BAD, ids=repr)
@pytest.mark.parametrize(
    "make",
    [PureLoss, GaussianLoss, LaplaceLoss, BoundedRangeLoss, ZCDPLoss,
     lambda x: ApproxLoss(x, 0.1), lambda x: ApproxLoss(1.0, x), lambda x: ZCDPLoss(1.0, x),
     lambda x: PureLoss(1.0).epsilon_at(x), lambda x: GaussianLoss(1.0).epsilon_at(x)],
)  # fmt: skip
def test_losses_refuse_nonsense(make, bad):
    with pytest.raises(ParameterError, match="must be"):
        make(bad)


@pytest.mark.parametrize(
    ("p", "q"),
    [((0.5, 0.4), (0.5, 0.5)), ((0.5, 0.5), (1.0,)), ((), ()), ((1.5, -0.5), (0.5, 0.5)),
     ((float("nan"), 1.0), (0.5, 0.5)), ("ab", "cd"), (((0.5, 0.5),), (0.5, 0.5))],
    ids=repr,
)  # fmt: skip
def test_pairs_refuse_what_is_no_distribution(p, q):
    with pytest.raises(ParameterError, match="must be"):
        PairLoss(p, q)


def moments(loss, order):
    """Rényi divergence of order ``order`` by closed form in 60 digits."""
    with mpmath.workdps(60):
        a, e = mpmath.mpf(order), mpmath.mpf(getattr(loss, "epsilon", getattr(loss, "shift", 0)))
        if isinstance(loss, PureLoss):
            moment = (mpmath.e ** (a * e) + mpmath.e ** ((1 - a) * e)) / (1 + mpmath.e**e)
        elif isinstance(loss, LaplaceLoss):
            moment = a * mpmath.e ** ((a - 1) * e) + (a - 1) * mpmath.e ** (-a * e)
            moment /= 2 * a - 1
        else:
            c = mpmath.e**-e
            t = mpmath.log((a - 1) * (1 - c**a) / (a * (c - c**a)))
            moment = mpmath.e ** ((a - 1) * t) * (1 - c**a) / (a * (1 - c))
        return mpmath.log(moment) / (a - 1)


@pytest.mark.parametrize("size", [1e-9, 1e-6, 1e-3, 0.1, 2.0])
@pytest.mark.parametrize("kind", [PureLoss, LaplaceLoss, BoundedRangeLoss])
@pytest.mark.parametrize("order", [1.000001, 1.001, 1.5, 2.0, 100.0, 1e4, 1e8])
def test_renyi_curves_are_never_below_the_truth(kind, size, order):
    found, truth = float(kind(size).renyi(order)), moments(kind(size), order)
    # sixty digits of the order that the float stands for
    assert found >= truth * (1 - mpmath.mpf(10) ** -30)
    assert found <= float(truth) * (1 + 1e-6) + 1e-8


def test_near_equal_pairs_do_not_cancel():
    for k in (20, 25, 29):
        step = 2.0**-k
        pair = PairLoss((0.5 + step, 0.5 - step), (0.5 - step, 0.5 + step))
        assert Fraction(pair.delta_at(0.0)) >= Fraction(2 * step)
        assert pair.renyi(2.0) >= 0
    near = PairLoss((0.75 + 2.0**-30, 0.25 - 2.0**-30), (0.75, 0.25))
    assert near.renyi(2.0) >= 4.6e-18


def test_ratios_that_overflow_stay_apart():
    pair = PairLoss([0.3, 0.3, 0.4], [5e-324, 1e-309, 1.0])
    assert len(pair.p) == 3
    assert pair.epsilon_at(0.01) >= 743.1


@pytest.mark.parametrize("shares", [29.9, 31.0, 45.0, 200.0])
def test_the_far_profile_of_a_small_shift_is_good_to_its_accuracy(shares):
    mu, epsilon = 0.01, shares * 0.01
    with mpmath.workdps(400):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        truth = mpmath.ncdf(m / 2 - e / m) - mpmath.e**e * mpmath.ncdf(-m / 2 - e / m)
        found = mpmath.mpf(float(GaussianLoss(mu).log_profile(epsilon)))
        assert abs(found - mpmath.log(truth)) < 2e-11


@pytest.mark.parametrize(("scale", "shift"), [(0.7, 1), (2.0, 3), (5.0, 40)])
def test_listed_losses_of_discrete_laplace_are_those_of_its_integers(scale, shift):
    loss, mass = DiscreteLaplaceLoss(scale, shift).loss_pmf
    k = np.arange(-400, 400)
    p = np.exp(-np.abs(k) / scale) * np.tanh(0.5 / scale)
    integers = (np.abs(k - shift) - np.abs(k)) / scale
    assert mass.sum() == pytest.approx(1.0, rel=1e-12)
    for one, chance in zip(loss, mass, strict=True):
        assert chance == pytest.approx(p[np.isclose(integers, one)].sum(), rel=1e-9)


@pytest.mark.parametrize("order", [0.5, 1.0 + 3.0j, 40.0])
def test_a_cumulant_of_a_far_shift_does_not_overflow(order):
    # e^{-(2z+1) m} is nothing beside 1
    value, _ = LaplaceCGF().sum_cgf([LaplaceLoss(5000.0)], np.ones(1), np.array([order]))
    assert value[0] == pytest.approx(5000 * order + np.log((order + 1) / (2 * order + 1)))


def laplace_moment(m, z):
    """The moment of a Laplace loss; at z = -1/2 its two terms cancel, and it is a limit."""
    if z == -0.5:
        return mpmath.exp(-m / 2) * (1 + m / 2)
    terms = (z + 1) * mpmath.exp(z * m) + z * mpmath.exp(-(z + 1) * m)
    return terms / (2 * z + 1)


def response_moment(e, z):
    return mpmath.cosh((z + 0.5) * e) / mpmath.cosh(e / 2)


MOMENTS = {
    "laplace": (LaplaceLoss, laplace_moment),
    "pure": (PureLoss, response_moment),
    "approximate": (lambda e: ApproxLoss(e, 0.25), lambda e, z: response_moment(e, z) * 0.75),
}


@pytest.mark.parametrize("size", [0.3, 30.1, 100.0, 2000.0])
@pytest.mark.parametrize("name", MOMENTS)
def test_a_cumulant_has_the_digits_of_many_wherever_it_is_asked(name, size):
    """Between -1 and 0, where P and Q change places, moments are small, and terms cancel."""
    make, moment = MOMENTS[name]
    points = np.array([-0.5, -0.5 + 0.03j, -0.48, -0.45 - 2j, -0.6, -1.0, -3.0 + 1j, -0.2 + 1e-3j,
                       0.0, 1e-3 + 0.5j, 0.2 + 3j, 4.0])  # fmt: skip
    loss = make(size)
    values = loss.cumulant(points)
    with mpmath.workdps(50):
        for z, value in zip(points.tolist(), values.tolist(), strict=True):
            assert value == loss.cumulant(z)
            ratio = mpmath.exp(mpmath.mpc(value)) / moment(mpmath.mpf(size), mpmath.mpc(z))
            assert abs(ratio - 1) <= 1e-15 * (8 + size * abs(z))


def test_what_is_refused_is_named():
    for p, q, name in (((0.5, 0.4), (0.5, 0.5), "p"), ((0.5, 0.5), (1.5, -0.5), "q")):
        with pytest.raises(ParameterError, match=rf"^{name} must be"):
            PairLoss(p, q)
    with pytest.raises(ParameterError, match=r"^delta must be"):
        ZCDPLoss(0.1).epsilon_at(2.0)
    with pytest.raises(ParameterError, match=r"^delta must be"):
        SKEW.epsilon_at(-1.0)


ASKED = {
    "profile": np.array([-0.3, 0.0, 0.4]),
    "log_profile": np.array([-0.3, 0.0, 0.4]),
    "renyi": np.array([1.5, 4.0]),
    "cumulant": np.array([-0.5, 2.0]),
    "cell_masses": np.array([-0.6, 0.0, 0.6]),
    "inverse_profile": 1e-3,
}
FACTS = ["infinity", "max_loss", "rho", "gdp_mu", "loss_pmf"]


def same(one, other):
    """Whether two answers are the same number, array, or nest of these."""
    if one is None or other is None:
        return one is other
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return np.array_equal(one, other, equal_nan=True)


@pytest.mark.parametrize("bound", [GaussianLoss(0.8), LaplaceLoss(0.7), SKEW, LEAKY], ids=repr)
def test_an_upper_envelope_answers_as_its_bound(bound):
    attained = GaussianLoss(0.1)
    for envelope, expected in (
        (UpperEnvelope(bound, attained), bound),
        (UpperEnvelope(bound, attained).reversed, bound.reversed),
    ):
        for name, argument in ASKED.items():
            assert same(getattr(envelope, name)(argument), getattr(expected, name)(argument)), name
        for name in FACTS:
            assert same(getattr(envelope, name), getattr(expected, name)), name
        assert envelope.attained_pair == attained
        assert envelope.numerics.is_upper_envelope


SOME = [LaplaceLoss(0.4), PureLoss(1.0), ApproxLoss(0.3, 1e-5), GaussianLoss(0.5),
        PairLoss([0.6, 0.4], [0.4, 0.6]), PoissonSampled(GaussianLoss(1.0), 0.1)]  # fmt: skip


@pytest.mark.parametrize("loss", SOME, ids=repr)
def test_a_profile_is_asked_at_numbers_and_has_a_logarithm(loss):
    for wrong in (math.nan, [0.5, math.nan], "1", [None]):
        with pytest.raises(ParameterError, match="epsilon must be a real number"):
            loss.profile(wrong)
    epsilon = np.array([0.0, 0.2, 0.7, 3.0])
    assert np.allclose(np.exp(loss.log_profile(epsilon)), loss.profile(epsilon), rtol=1e-9)


def test_a_public_choice_of_finite_losses_has_the_outcomes_of_all():
    first, second = PairLoss((0.75, 0.25), (0.25, 0.75)), PairLoss((0.5, 0.5), (0.375, 0.625))
    choice = PublicChoice((first, second), (0.25, 0.75))
    values, masses = choice.loss_pmf
    assert masses.sum() == pytest.approx(1.0, rel=1e-15)
    for epsilon in (0.0, 0.1, 0.5, 1.0):
        listed = np.sum(masses * -np.expm1(np.minimum(epsilon - values, 0.0)))
        each = 0.25 * first.profile(epsilon) + 0.75 * second.profile(epsilon)
        assert listed == pytest.approx(float(each), rel=1e-14)
        assert float(choice.profile(epsilon)) == pytest.approx(float(each), rel=1e-14)
    assert PublicChoice((first, GaussianLoss(1.0)), (0.5, 0.5)).loss_pmf is None
