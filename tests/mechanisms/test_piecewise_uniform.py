"""The piecewise uniform law by quadrature."""

import numpy as np
import pytest
from scipy.stats import kstest

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


@pytest.mark.parametrize("arithmetic", ["exact", "idealised"])
@pytest.mark.parametrize("value", [-2.0, -0.3, 1.1, 2.0])
def test_reports_follow_the_density(value, arithmetic):
    oracle = PiecewiseUniform(2.0, 0.7, arithmetic=arithmetic)
    cuts = np.sort(oracle.support.breakpoints(value))
    masses = np.diff(cuts) * np.exp(oracle.log_density((cuts[:-1] + cuts[1:]) / 2, value))
    below = np.concatenate([[0.0], np.cumsum(np.where(np.isfinite(masses), masses, 0.0))])
    assert below[-1] == pytest.approx(1.0)
    reports = oracle.release(value, np.random.default_rng(6), 5000)
    assert np.all(np.abs(reports) <= cuts[-1])
    # The seed is fixed; of a right law 1 in 10,000 seeds would fall.
    assert kstest(reports, lambda x: np.interp(x, cuts, below)).pvalue > 1e-4
    many = oracle.release(np.full((50, 100), value), np.random.default_rng(7))
    assert many.shape == (50, 100)
    assert kstest(many.ravel(), lambda x: np.interp(x, cuts, below)).pvalue > 1e-4
