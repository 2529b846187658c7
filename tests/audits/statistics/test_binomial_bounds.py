"""Confidence bounds: against an independent library, at the edges, and by enumeration."""

import math

import numpy as np
import pytest
from hypothesis import given
from scipy.stats import binom
from statsmodels.stats.proportion import proportion_confint

from audits.statistics.binomial_bounds import (
    clopper_pearson_lower,
    epsilon_lower,
    mean_confidence_band,
)
from tests.strategies import error_rates, probabilities, trials


@given(trials, probabilities, error_rates)
def test_clopper_pearson_agrees_with_statsmodels(trials, share, alpha):
    successes = round(share * trials)
    found = float(clopper_pearson_lower(np.array(float(successes)), np.array(float(trials)), alpha))
    low, _ = proportion_confint(successes, trials, alpha=2 * alpha, method="beta")
    assert found == pytest.approx(np.nan_to_num(low), abs=1e-9)


@pytest.mark.parametrize("trials", [1, 7, 60])
@pytest.mark.parametrize("alpha", [0.05, 1e-3])
def test_coverage_by_enumeration(trials, alpha):
    counts = np.arange(trials + 1.0)
    bounds = clopper_pearson_lower(counts, np.full(trials + 1, float(trials)), alpha)
    for p in np.linspace(0.01, 0.99, 50):
        miss = binom.pmf(counts, trials, p)[bounds > p].sum()
        assert miss <= alpha * (1 + 1e-9)


def test_edges():
    assert clopper_pearson_lower(np.array(0.0), np.array(0.0), 0.05) == 0.0
    assert epsilon_lower(np.array(0.0), np.array(0.0), 100, 0.0, 0.05) == 0.0
    assert epsilon_lower(np.array(5.0), np.array(100.0), 100, 0.0, 0.05) == 0.0
    assert math.isfinite(epsilon_lower(np.array(1e8), np.array(1e8), 10**8, 0.0, 0.05))


def test_the_band_of_a_mean_holds_and_narrows():
    rng = np.random.default_rng(1)
    misses = 0
    for _ in range(2000):
        low, high = mean_confidence_band(rng.beta(0.2, 0.8, (60, 1)), 0.05)
        misses += not low[0] <= 0.2 <= high[0]
    assert misses <= binom.ppf(1 - 1e-6, 2000, 0.05)
    wide, narrow = (
        np.subtract(*mean_confidence_band(np.full((n, 1), 0.2), 0.05)[::-1])[0] for n in (50, 5000)
    )
    assert narrow < wide / 5
    low, high = mean_confidence_band(np.zeros((300, 1)), 0.05)
    assert low[0] == 0.0
    assert high[0] == pytest.approx(1 - 0.025 ** (1 / 300), rel=1e-6)
