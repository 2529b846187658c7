"""The piecewise uniform law by quadrature."""

import numpy as np
import pytest

from mechanisms import PiecewiseUniform


def test_the_piecewise_law_by_quadrature():
    oracle, (x, w) = PiecewiseUniform(2.0, 0.7), np.polynomial.legendre.leggauss(4)
    for value in np.linspace(-2, 2, 9):
        cuts = np.sort(oracle.support.breakpoints(value))
        half = np.diff(cuts)[:, None] / 2
        nodes = cuts[:-1, None] + half * (x + 1)
        weights = half * w * np.exp(oracle.log_density(nodes.ravel(), value)).reshape(nodes.shape)
        assert weights.sum() == pytest.approx(1, abs=1e-13)
        assert (weights * nodes).sum() == pytest.approx(value, abs=1e-13)
        spread = (weights * (nodes - value) ** 2).sum()
        assert float(oracle.variance(value)) == pytest.approx(spread, rel=1e-13)
