"""PrivUnit: the mass of a cap, and the cap of least variance."""

import math

import mpmath
import numpy as np
import pytest

from accountant import ParameterError, Tight, calibrate
from mechanisms import HemisphereL2, PrivUnit
from mechanisms.priv_unit import cap_mass


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
