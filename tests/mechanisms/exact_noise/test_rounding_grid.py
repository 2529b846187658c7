"""Releases on a grid: points, floats, and sums beyond 64 bits."""

import pytest

from mechanisms import Gaussian, Laplace


@pytest.mark.parametrize("cls", [Laplace, Gaussian])
def test_exact_scalars_cross_the_border_of_64_bits(cls):
    made = cls(1.0, 1.0, "exact")
    for value in (2.0**22 - 1, 2.0**22, -(2.0**22), 1e300):
        assert abs(made.release(value, 0) - value) < 50
        assert made.release([value], 0).shape == (1,)
