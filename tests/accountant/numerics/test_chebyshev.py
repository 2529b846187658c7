"""Sums over many losses: what replaces them misses what is stated at most, blocks nothing."""

import numpy as np
import pytest

from accountant.numerics import chebyshev
from accountant.numerics.chebyshev import interpolation_nodes, sum_in_blocks


@pytest.mark.parametrize("formula", [np.exp, np.sqrt, lambda x: x**20 / 2**20])
def test_a_few_nodes_replace_many_parameters(formula):
    rng = np.random.default_rng(5)
    parameters, counts = rng.uniform(0.3, 1.9, 500), rng.integers(1, 9, 500)
    nodes, weights = interpolation_nodes(parameters, counts)
    assert nodes.size == 3 * 24  # octaves from 1/4, 1/2 and 1
    assert weights @ formula(nodes) == pytest.approx(counts @ formula(parameters), rel=1e-12)


@pytest.mark.parametrize("block", [1, 7, 10_000])
def test_blocks_add_up_and_so_does_their_round_off(monkeypatch, block):
    monkeypatch.setattr(chebyshev, "BLOCK_SIZE", block)
    parameters, counts = np.arange(1.0, 6.0), np.array([1.0, 2.0, 1.0, -3.0, 1.0])
    z = np.array([[1.0, 2.0], [3.0, 4.0]])
    total, size = sum_in_blocks(lambda p, x: (p * x, 0 * p * x), parameters, counts, z)
    assert np.allclose(total, (counts @ parameters) * z, rtol=1e-14)
    assert np.allclose(size, 5 * 2.0**-52 * np.abs(total), rtol=1e-12, atol=0)
    _, size = sum_in_blocks(lambda p, x: (0 * p * x, p + x), parameters, counts, z)
    assert np.allclose(size, sum(abs(n) * (p + z) for n, p in zip(counts, parameters, strict=True)))
