"""What docs/proofs/discrete.md says, enumerated in small cases; vectors under bounded noise."""

import math

import mpmath
import numpy as np
import pytest
from scipy.special import log_ndtr

from accountant import (
    Basic,
    Budget,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    Filter,
    GaussianLoss,
    LaplaceLoss,
    ParameterError,
    Tight,
)
from mechanisms import (
    CubeLinf,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    NoisyMax,
    Staircase,
)
from mechanisms.exact_noise.rounding_grid import grid_step

EPSILONS = (-1.0, -0.2, 0.0, 0.1, 0.3, 0.6, 0.9, 1.5)


def stick(mechanism, move, epsilon, reach):
    """Hockey stick of vectors ``move`` apart, by enumeration of a box of integers."""
    axes = [np.arange(-reach, reach + 1)] * len(move)
    box = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    values = np.array(move), np.zeros(len(move), dtype=int)
    p, q = (np.exp(mechanism.log_density(box, value)) for value in values)
    return np.maximum(p - math.exp(epsilon) * q, 0).sum()


@pytest.mark.parametrize("scale", [0.6, 1.0, 2.5])
@pytest.mark.parametrize("move", [(1, 1), (1, 2), (-1, 1), (2, 2), (1, 1, 1), (3, 1)])
def test_vectors_under_discrete_laplace_noise_cost_no_more_than_numbers(scale, move):
    made = DiscreteLaplace(scale, sum(map(abs, move)))
    for epsilon in EPSILONS:
        found = stick(made, move, epsilon, 30 if len(move) == 3 else 60)
        assert found <= made.loss.profile_any_epsilon(np.array(epsilon)) + 1e-12


@pytest.mark.parametrize(("scale", "steps"), [(0.4, 1), (1.0, 3), (5.0, 7), (40.0, 40)])
def test_laplace_noise_on_a_grid_is_a_little_more_revealing_and_bounded(scale, steps):
    listed = DiscreteLaplace(scale, steps).loss
    shift = steps / scale
    epsilon = np.linspace(-shift, shift, 101)
    found = listed.profile_any_epsilon(epsilon)
    assert (found > LaplaceLoss(shift).profile_any_epsilon(epsilon) - 1e-12).any()
    assert (
        found <= LaplaceLoss(shift + 1 / (4 * scale**2)).profile_any_epsilon(epsilon) + 1e-14
    ).all()


def test_many_steps_take_the_bound_of_a_few():
    few, many = DiscreteLaplace(900.0, 2047), DiscreteLaplace(900.0, 2048)
    assert few.loss == DiscreteLaplaceLoss(900.0, 2047)
    assert 2048 / 900 <= many.loss.shift <= 2048 / 900 * (1 + 2**-52)
    # as the noise is drawn it costs no more than continuous noise of that shift
    drawn = many.drawn_scale
    assert 2048 / drawn + 1 / (4 * drawn**2) <= many.loss.shift
    assert few.drawn_scale == 900.0
    assert many.loss_is_upper_bound


@pytest.mark.parametrize("scale", [6.0, 7.5, 12.0])
@pytest.mark.parametrize("move", [(1,), (2,), (1, 1), (2, 1), (3, 4), (-1, 2)])
def test_discrete_gaussian_noise_is_at_most_as_revealing_as_a_narrower_gaussian(scale, move):
    norm = math.hypot(*move)
    made = DiscreteGaussian(scale, norm, max(2, len(move)))
    assert made.loss == GaussianLoss(made.loss.mu)
    assert made.loss.mu == pytest.approx(norm / math.sqrt(scale**2 - 4))
    for epsilon in EPSILONS:
        found = stick(made, move, epsilon, int(9 * scale))
        assert found <= made.loss.profile_any_epsilon(np.array(epsilon)) + 1e-13


def test_numbers_under_narrow_gaussian_noise_are_listed_and_the_concentrated_bound_holds():
    made = DiscreteGaussian(2.0, 3.0)
    assert isinstance(made.loss, DiscreteGaussianLoss)
    # Canonne, Kamath & Steinke (2020), Theorem 14: sensitivity^2 / (2 scale^2)-zCDP
    orders = np.array([1.1, 1.5, 2.0, 3.0, 10.0])
    assert (made.loss.renyi(orders) <= orders * 9 / 8 + 1e-9).all()
    assert made.loss.renyi(2.0) == pytest.approx(9 / 4, rel=1e-9)
    assert DiscreteGaussian(2.0, 3.0, 2).loss.rho == pytest.approx(9 / 8)
    # a fraction of a step is none
    assert DiscreteGaussian(2.0, 3.9).loss == made.loss


def test_vectors_need_their_length_declared():
    with pytest.raises(ValueError, match="at most 2 coordinates"):
        DiscreteGaussian(4.0, 1.0, 2).release([1, 2, 3], 1)
    assert DiscreteGaussian(4.0).value_axes == 0


@pytest.mark.parametrize("made", [Laplace(0.7), Gaussian(2.0), DiscreteLaplace(1.3)], ids=repr)
def test_mass_below_is_the_sum_of_the_density(made):
    for x in (-7.0, -1.0, 0.0, 0.4, 2.0, 5.0):
        found = float(np.exp(made.log_below(x, 1)))
        if isinstance(made, DiscreteLaplace):
            k = np.arange(-200, math.floor(x) + 1)
            assert found == pytest.approx(np.exp(made.terms(k, 1)).sum(), rel=1e-12)
        else:
            grid = np.linspace(-60, x, 2_000_001)
            assert found == pytest.approx(np.trapezoid(np.exp(made.terms(grid, 1)), grid), rel=1e-6)
    far = made.log_below(-1000.0, 0)
    assert far < -600
    assert math.isfinite(far)
    if isinstance(made, Gaussian):
        assert far == pytest.approx(log_ndtr(-500.0))


def test_nearly_equal_masses_are_rounded_apart():
    assert Staircase(1e4).loss.pure >= 1e-4
    for scale in (99.7, 1e4, 1e6, 1e12):
        made = DiscreteLaplace(scale)
        assert made.loss.pure >= 1 / scale
        assert Basic().epsilon(made, 0.0) >= 1 / scale
        # tanh(1 / (2 scale)) of a real number is about this
        assert made.loss.delta_at(0.0) >= math.tanh(1 / (2 * scale)) * (1 - 1e-15)
    for dimension in (1, 2, 4):
        keep = 0.5 + 1e-6
        assert CubeLinf(dimension, 1.0, keep).loss.pure >= math.log(keep / (1 - keep))


def test_discrete_gaussian_noise_passes_concentrated_filters():
    made = DiscreteGaussian(40.0)
    assert made.loss.rho == pytest.approx(1 / 3200)
    for notion in ("zcdp", "rdp"):
        gate = Filter(np.arange(5), Budget(1.0, 1e-5), notion, rng=0)
        assert isinstance(int(gate.release(made, np.sum)), int)
    # the lists agree with the proofs
    pair = 20 * DiscreteGaussian(3.0)
    assert Tight().epsilon(pair, 1e-6) <= Tight().epsilon(20 * Gaussian(3.0), 1e-6) * 1.01


def test_odd_scales_are_refused_by_name():
    for cls, field in ((Staircase, 1e-3), (Staircase, 1e10), (DiscreteLaplace, 1e-300)):
        with pytest.raises(ParameterError, match=f"{cls.__name__}.scale must be"):
            cls(field)
    assert NoisyMax(1.0, 1.0, "gumbel", True).log_density(0, [1.0, 0.0]) < 0


@pytest.mark.parametrize("dimension", [1, 3, 10**9])
@pytest.mark.parametrize("scale", [1e-280, 0.7, 1.0, 1.9999999999, 1e280])
@pytest.mark.parametrize("share", [2.0**-60, 2.0**-20, 0.3, 0.999, 1.0, 1.001, 50.0])
def test_noise_on_a_grid_is_drawn_wide_enough_for_the_loss(scale, dimension, share):
    with mpmath.workdps(60):
        step = mpmath.mpf(grid_step(scale))
        for kind, moved in ((Laplace, dimension * step), (Gaussian, mpmath.sqrt(dimension) * step)):
            sensitivity = float(moved / share)
            one = kind(scale, sensitivity, arithmetic="exact", dimension=dimension)
            drawn, distance = mpmath.mpf(one.drawn_scale), sensitivity + moved
            if kind is Laplace:
                stated, cost = one.loss.shift, distance / drawn + (step / (2 * drawn)) ** 2
            else:
                stated, cost = one.loss.mu, distance / mpmath.sqrt(drawn**2 - 4 * step**2)
            assert cost <= stated
            if float(moved) <= sensitivity:
                assert drawn > scale
                assert stated == sensitivity / scale
                assert distance / drawn <= sensitivity / mpmath.mpf(scale) * (1 - 2.0**-46)


@pytest.mark.parametrize("sensitivity", [2048, 10**6, 2**53])
@pytest.mark.parametrize("scale", [0.01, 1.5, 1e5, 2.0**50])
def test_wide_discrete_noise_costs_what_its_scale_says(scale, sensitivity):
    one = DiscreteLaplace(scale, sensitivity)
    with mpmath.workdps(60):
        drawn = mpmath.mpf(one.drawn_scale)
        assert sensitivity / drawn + 1 / (2 * drawn) ** 2 <= one.loss.pure
        assert one.loss.pure <= sensitivity / mpmath.mpf(scale) * (1 + 2.0**-52)


@pytest.mark.parametrize(("scale", "shift"), [(232.612845, 7), (2.9154514, 300), (0.0304669, 300)])
@pytest.mark.parametrize("below", [1e-15, 1e-12, 1e-9, 1e-3])
def test_the_profile_is_accurate_next_to_the_greatest_loss(scale, shift, below):
    epsilon = shift / scale * (1 - below)
    with mpmath.workdps(60):
        t = mpmath.mpf(scale)
        q, truth = mpmath.e ** (-1 / t), mpmath.mpf(0)
        for x in range(shift):
            mass = (1 - q) / (1 + q) * q**x if x else 1 / (1 + q)
            truth += mass * max(0, -mpmath.expm1(epsilon - (shift - 2 * x) / t))
        assert DiscreteLaplaceLoss(scale, shift).profile(epsilon) >= truth * (1 - 2.0**-36)
