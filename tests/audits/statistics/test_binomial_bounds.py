"""Confidence bounds: against an independent library, at the edges, and by enumeration."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom
from statsmodels.stats.proportion import binom_test, proportion_confint

from audits.statistics.binomial_bounds import (
    clopper_pearson_lower,
    epsilon_lower,
    epsilon_lower_every_run,
    leak_count_quantile,
    max_correct_probability,
    mean_confidence_band,
)
from audits.statistics.combined_tests import binomial_p_value, combined_epsilon_lower
from audits.statistics.single_run import epsilon_lower_one_run
from tests.strategies import error_rates, probabilities, trials


@given(trials, probabilities, error_rates)
def test_clopper_pearson_agrees_with_statsmodels(trials, share, alpha):
    successes = round(share * trials)
    found = float(clopper_pearson_lower(np.array(float(successes)), np.array(float(trials)), alpha))
    low, _ = proportion_confint(successes, trials, alpha=2 * alpha, method="beta")
    assert found == pytest.approx(np.nan_to_num(low), rel=1e-12)


LARGE = [(1, 1), (700, 1000), (1000, 1000), (65_000, 100_000), (10**8 - 7, 10**8)]


@pytest.mark.parametrize(("right", "runs"), LARGE)
@pytest.mark.parametrize("alpha", [0.05, 1e-6])
def test_every_bound_on_epsilon_is_the_logit_of_a_library_interval(right, runs, alpha):
    low, _ = proportion_confint(right, runs, alpha=2 * alpha, method="beta")
    logit = max(math.log(low) - math.log1p(-low), 0.0)
    counts = np.array(float(right)), np.array(float(runs))
    assert float(epsilon_lower(*counts, runs, 0.0, alpha)) == pytest.approx(logit, rel=1e-12)
    assert epsilon_lower_every_run(right, runs, 0.0, alpha) == pytest.approx(logit, rel=1e-12)
    # that takes 1e-12 off the chance of a coin, which the odds multiply
    wide = 1e-10 + 1e-11 / (1 - low)
    assert epsilon_lower_one_run(right, runs, 0.0, alpha) == pytest.approx(logit, abs=wide)
    once = combined_epsilon_lower([(right, runs, runs)], alpha)
    assert once == pytest.approx(logit, rel=1e-8, abs=1e-8)


@given(st.integers(1, 3000), st.floats(0.0, 1.0), st.floats(0.0, 3.0))
def test_the_chance_of_so_many_right_guesses_is_that_of_the_librarys_test(runs, share, epsilon):
    right = round(share * runs)
    chance = max_correct_probability(epsilon)
    expected = binom_test(right, runs, chance, alternative="larger")
    found = binomial_p_value((right, runs, runs), epsilon)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("trials", [1, 7, 60])
@pytest.mark.parametrize("alpha", [0.05, 1e-3])
def test_coverage_by_enumeration(trials, alpha):
    counts = np.arange(trials + 1.0)
    bounds = clopper_pearson_lower(counts, np.full(trials + 1, float(trials)), alpha)
    for p in np.linspace(0.01, 0.99, 50):
        miss = binom.pmf(counts, trials, p)[bounds > p].sum()
        assert miss <= alpha * (1 + 1e-9)


@pytest.mark.parametrize("alpha", [0.05, 1e-3])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.05), (0.5, 0.02), (1.0, 0.2), (2.0, 1e-4)])
def test_true_claims_with_leaks_are_convicted_as_rarely_as_promised(epsilon, delta, alpha):
    # A run is right if it leaks, and else with the largest chance that epsilon allows.
    runs, counts = 150, np.arange(151.0)
    chance = delta + (1 - delta) / (1 + math.exp(-epsilon))
    mass = binom.pmf(counts, runs, chance)
    found = epsilon_lower(counts, np.full(151, 150.0), runs, delta, alpha)
    every = np.array([epsilon_lower_every_run(int(k), runs, delta, alpha) for k in counts])
    for bound in (found, every):
        assert mass[bound > epsilon].sum() <= alpha
        assert np.all(np.diff(bound) >= 0)
    least = int(binom.isf(alpha, runs, chance)) + 1  # what an exact test rejects
    assert least > runs or every[least] > epsilon
    assert every[least - 1] <= epsilon
    assert np.all(found <= every + 1e-9)


@pytest.mark.parametrize(("runs", "delta"), [(1, 0.5), (60, 0.01), (1000, 0.3), (10**6, 1e-5)])
@pytest.mark.parametrize("alpha", [0.1, 1e-6])
def test_the_count_of_leaks_is_the_least_that_is_hardly_exceeded(runs, delta, alpha):
    count = leak_count_quantile(runs, delta, alpha)
    assert binom.sf(count, runs, delta) <= alpha
    assert count == 0 or binom.sf(count - 1, runs, delta) > alpha
    assert leak_count_quantile(runs, 0.0, alpha) == 0


@pytest.mark.parametrize("alpha", [0.2, 1e-5])
@pytest.mark.parametrize("size", [40, 3000])
def test_the_band_of_a_mean_is_where_the_divergence_uses_up_the_budget(size, alpha):
    means = np.array([0.05, 0.5, 0.93])
    low, high = mean_confidence_band(np.tile(means, (size, 1)), alpha)
    for ends in (low, high):
        divergence = means * np.log(means / ends) + (1 - means) * np.log((1 - means) / (1 - ends))
        assert divergence == pytest.approx(math.log(2 / alpha) / size, rel=1e-6)
    assert np.all((low < means) & (means < high))


def test_edges():
    assert clopper_pearson_lower(np.array(0.0), np.array(0.0), 0.05) == 0.0
    assert epsilon_lower(np.array(0.0), np.array(0.0), 100, 0.0, 0.05) == 0.0
    assert epsilon_lower(np.array(5.0), np.array(100.0), 100, 0.0, 0.05) == 0.0
    assert math.isfinite(epsilon_lower(np.array(1e8), np.array(1e8), 10**8, 0.0, 0.05))


def test_the_band_of_a_mean_holds_and_narrows():
    rng = np.random.default_rng(1)
    misses = 0
    for _ in range(300):
        low, high = mean_confidence_band(rng.beta(0.2, 0.8, (60, 1)), 0.05)
        misses += not low[0] <= 0.2 <= high[0]
    assert misses <= binom.ppf(1 - 1e-6, 300, 0.05)
    wide, narrow = (
        np.subtract(*mean_confidence_band(np.full((n, 1), 0.2), 0.05)[::-1])[0] for n in (50, 5000)
    )
    assert narrow < wide / 5
    low, high = mean_confidence_band(np.zeros((300, 1)), 0.05)
    assert low[0] == 0.0
    assert high[0] == pytest.approx(1 - 0.025 ** (1 / 300), rel=1e-6)
