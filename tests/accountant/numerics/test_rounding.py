"""Ratios are rounded up."""

from fractions import Fraction

import numpy as np

from accountant.numerics.rounding import round_up_ratio
from mechanisms import Gaussian


def test_ratios_are_never_rounded_down():
    rng = np.random.default_rng(2)
    for _ in range(1000):
        x, y = 10 ** rng.uniform(-5, 5, 2)
        ratio = round_up_ratio(x, y)
        assert Fraction(ratio) * Fraction(y) >= Fraction(x)
        assert ratio <= x / y * (1 + 3e-16)
    assert round_up_ratio(1.0, 4.0) == 0.25
    assert Fraction(Gaussian(3.0, arithmetic="idealised").loss.mu) >= Fraction(1, 3)
