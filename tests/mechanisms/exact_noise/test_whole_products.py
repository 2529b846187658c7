"""Products on a grid are exact: fractions give the same whole numbers."""

import math
from fractions import Fraction

import numpy as np
import pytest

from accountant import BandedMatrix, BinaryTree, BufferedToeplitz, StrategyMatrix, Toeplitz
from mechanisms.exact_noise.whole_products import as_floats, entry_exponent, product_in_steps

RNG = np.random.default_rng(1)
STRATEGIES = [
    Toeplitz((1 / 3, 0.1, -0.7), 7), StrategyMatrix(RNG.normal(size=(5, 4)) * 1e30),
    BinaryTree((5, 2)), BandedMatrix(RNG.random((2, 6)) * 1e-20),
    BufferedToeplitz((0.3, 0.4), (0.5, 0.2), 5),
]  # fmt: skip


@pytest.mark.parametrize("size", [1e-5, 1.0, 1e12, 1e280])
@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda one: type(one).__name__)
def test_products_are_those_of_fractions(strategy, size):
    values = np.random.default_rng(2).normal(size=(strategy.columns, 2)) * size
    found = product_in_steps(strategy, values, -41)
    entries = strategy.rounded(entry_exponent(strategy)).times(np.eye(strategy.columns))
    for j in range(2):
        steps = [Fraction(round(Fraction(one) * 2**41)) for one in values[:, j].tolist()]
        for i, row in enumerate(entries.tolist()):
            exact = sum(Fraction(entry) * step for entry, step in zip(row, steps, strict=True))
            assert found[i, j] == math.floor(exact + Fraction(1, 2))


def test_whole_numbers_become_the_nearest_floats():
    odd = 2**80 + 2**20 + 1
    assert as_floats(np.array([odd, -odd], dtype=object), -3).tolist() == [odd / 8, -odd / 8]
    assert as_floats(np.array([10**400], dtype=object), 0)[0] == np.finfo(float).max
