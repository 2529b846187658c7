"""PrivUnit: the mass of a cap, and the cap of least variance."""

import math

import mpmath
import numpy as np
import pytest

from accountant import ParameterError, Tight, calibrate
from mechanisms import HemisphereL2, PrivUnit
from mechanisms.exact_noise.integer_directions import LAW, cap_mass_error, long_enough
from mechanisms.priv_unit import cap_mass, highest_provable


@pytest.mark.parametrize(
    ("dimension", "height"), [(2, 0.3), (3, 0.25), (1000, 0.1), (1000, 0.5), (10**6, 0.02)]
)
def test_cap_to_twelve_digits(dimension, height):
    with mpmath.workdps(50):
        half = (mpmath.mpf(dimension) - 1) / 2
        square = 1 - mpmath.mpf(height) ** 2
        exact = mpmath.betainc(half, 0.5, 0, square, regularized=True) / 2
    assert cap_mass(dimension, height) == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize(
    "height",
    [1e-300, 1e-12, 1.6473e-10, 7.5e-10, 1e-8, 0.7, 0.71, 0.9999, 1 - 1e-9, 1 - 1e-12, 1 - 2**-45],
)
def test_caps_of_circle_and_sphere_are_those_of_geometry(height):
    with mpmath.workdps(50):
        exact = mpmath.acos(height) / mpmath.pi, (1 - mpmath.mpf(height)) / 2
        for dimension, mass in zip((2, 3), exact, strict=True):
            assert abs(cap_mass(dimension, height) / mass - 1) < 1e-13


def test_the_cap_of_least_variance():
    for dimension, epsilon in ((2, 1.0), (3, 0.1), (100, 1.0), (100, 4.0), (100, 8.0)):
        best = PrivUnit.optimised(dimension, epsilon)
        assert (1 - 2e-6) * epsilon <= Tight().epsilon(best, 0.0) <= epsilon
        for height in np.linspace(1e-3, 0.95, 50):
            mass = cap_mass(dimension, height)
            if mass > 1e-20:
                keep = 1 / (1 + (1 - mass) / mass * math.exp(-epsilon))
                if keep < 1:
                    assert PrivUnit(
                        dimension, height, keep, arithmetic="idealised"
                    ).length >= best.length * (1 - 1e-6)
        plain = calibrate(HemisphereL2, dimension=dimension, radius=1.0, epsilon=epsilon)
        assert best.length < plain.length


def test_a_cap_of_no_mass_is_refused():
    with pytest.raises(ParameterError, match=r"PrivUnit.height|PrivUnit.keep"):
        PrivUnit(10**6, 0.5, 0.9)


GRID = [
    (p, epsilon) for p in (2, 3, 10, 100, 1000) for epsilon in (0.1, 1.0, 4.0, 8.0, 16.0, 100.0)
]


@pytest.mark.parametrize(("p", "epsilon"), [*GRID, (100, 1e300), (10**6, 1e300)])
def test_every_epsilon_has_a_mechanism_within_it(p, epsilon):
    made = PrivUnit.optimised(p, epsilon)
    spent = Tight().epsilon(made, 0.0)
    assert spent <= epsilon
    assert spent >= min((1 - 2e-6) * epsilon, 25.0)
    assert made.height <= highest_provable(p)
    # what the proof takes of the cap's share
    assert cap_mass(p, made.height) >= 127 * cap_mass_error(p)


@pytest.mark.parametrize("p", [2, 3, 10, 100, 1000])
@pytest.mark.parametrize("epsilon", [1.0, 8.0, 12.0])
def test_provable_caps_are_as_good_as_the_best(p, epsilon):
    best = math.inf
    for height in np.linspace(1e-3, min(math.sqrt(2 * (epsilon + 1) / p), 0.99999), 300):
        mass = cap_mass(p, height)
        keep = mass / (mass + (1 - mass) * math.exp(-epsilon)) if mass > 1e-20 else 0.0
        if mass < keep < 1:
            ideal = PrivUnit(p, height, keep, arithmetic="idealised")
            best = min(best, ideal.length)
    assert PrivUnit.optimised(p, epsilon).length <= 1.01 * best


@pytest.mark.parametrize(
    ("p", "epsilon"),
    [(2, 8.0), (10, 4.0), (100, 1.0), (100, 8.0), (100, 100.0),
     *(pytest.param(*one, marks=pytest.mark.slow) for one in GRID)],
)  # fmt: skip
def test_reports_are_unbiased_at_every_epsilon(p, epsilon):
    made, users = PrivUnit.optimised(p, epsilon), 2000
    rng = np.random.default_rng(5)
    axis = rng.normal(size=p)
    axis /= np.sqrt(axis @ axis) * (1 + 1e-12)
    reports = made.release(np.tile(axis, (users, 1)), 6)
    along = reports @ axis / made.length
    # <u, v> / length has the mean 1 / length and lies in [-1, 1]: Hoeffding at 1e-7, and the rest
    # of every report, across the axis, has the mean 0 and a second moment of at most length^2
    assert abs(along.mean() - 1 / made.length) <= math.sqrt(2 * math.log(2e7) / users)
    near = (along >= made.height).mean()
    spread = math.sqrt(math.log(2e7) / (2 * users))
    assert abs(near - made.keep) <= spread
    aside = rng.normal(size=p)
    aside -= aside @ axis * axis
    across = reports @ aside / (np.sqrt(aside @ aside) * made.length)
    assert abs(across.mean()) <= math.sqrt(2 * math.log(2e7) / users)
    # E<u, v> of the cap alone, at a tenth of the width that the whole sphere needs
    inside = along[along >= made.height]
    a = (p - 1) / 2
    moment = (1 - made.height**2) ** a / (2 * a * float(mpmath.beta(0.5, a)))
    expected = moment / cap_mass(p, made.height)
    width = (1 - made.height) * math.sqrt(math.log(2e7) / (2 * len(inside)))
    assert abs(inside.mean() - expected) <= width


@pytest.mark.parametrize("p", [2, 3, 10, 100, 1000])
def test_vectors_are_long_enough_as_often_as_is_proved(p):
    rng = np.random.default_rng(p)
    drawn = LAW.draw(4000 * p, rng).reshape(-1, p).astype(float)
    share = long_enough(drawn).mean()
    assert share >= 1 / math.e - math.sqrt(math.log(1e7) / (2 * len(drawn)))
    edge = p - math.isqrt(p // 2)
    assert mpmath.gammainc(p / 2, edge / 2, regularized=True) >= 1 / math.e


def test_a_cap_too_small_for_the_proof_is_refused_by_its_height():
    with pytest.raises(ParameterError, match=r"PrivUnit.height"):
        calibrate(PrivUnit, dimension=64, height=0.9, epsilon=100.0)
    with pytest.raises(ParameterError, match="and 41"):
        calibrate(PrivUnit, dimension=64, height=0.3, epsilon=100.0)
