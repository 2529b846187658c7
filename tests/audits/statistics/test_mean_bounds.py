"""The bound on a mean of what is never negative: it covers, at any scale, and it is sharp."""

import math

import numpy as np
import pytest
from scipy.stats import beta, binom

from audits.statistics.binomial_bounds import mean_confidence_band
from audits.statistics.mean_bounds import _log_wealth, _stakes, mean_lower

FALSE_ALARM = 1e-6  # of each test here that draws


def _far(rng, shape):
    """Mostly nothing, at times much: mean 1, no bounded range that anybody could name."""
    return np.where(rng.random(shape) < 0.05, rng.exponential(20.0, shape), 0.0)


LAWS = {
    "exponential": lambda rng, shape: rng.exponential(1.0, shape),
    "rare and large": _far,
    "log-normal": lambda rng, shape: rng.lognormal(-2.0, 2.0, shape),
    "coins": lambda rng, shape: 2.0 * rng.integers(0, 2, shape),
    "always 1": lambda rng, shape: np.ones(shape),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("runs", [3, 40])
def test_it_covers(law, runs):
    alpha, trials = 0.1, 200
    columns = LAWS[law](np.random.default_rng(1), (runs, trials))
    misses = np.count_nonzero(mean_lower(columns, alpha) > 1.0)
    assert misses <= binom.ppf(1 - FALSE_ALARM, trials, alpha)


def test_it_covers_where_each_law_is_chosen_by_what_came_before():
    # every payoff has mean 1; after a win the next is rarer and larger
    alpha, trials, runs = 0.1, 200, 40
    rng, chance = np.random.default_rng(2), np.full(trials, 0.5)
    columns = np.zeros((runs, trials))
    for row in columns:
        won = rng.random(trials) < chance
        row[won] = 1 / chance[won]
        chance = np.where(won, np.maximum(chance / 2, 0.02), 0.5)
    misses = np.count_nonzero(mean_lower(columns, alpha) > 1.0)
    assert misses <= binom.ppf(1 - FALSE_ALARM, trials, alpha)


@pytest.mark.parametrize("chance", [0.02, 0.3, 0.9])
def test_wealth_is_one_on_average_at_the_mean_itself(chance):
    # over all tables of 9 coins worth 1 / chance, of mean 1
    wealth = [math.exp(_log_wealth(np.full(k, 1 / chance), 9, _stakes(9))) for k in range(10)]
    assert binom.pmf(np.arange(10), 9, chance) @ wealth == pytest.approx(1.0, abs=1e-12)


def test_it_covers_coins_by_enumeration():
    runs, alpha = 12, 0.05
    counts = np.arange(runs + 1)
    tables = (np.arange(runs)[:, None] < counts).astype(float)
    bounds = mean_lower(tables, alpha)
    for p in np.linspace(0.01, 0.99, 99):
        assert binom.pmf(counts, runs, p)[bounds > p].sum() <= alpha
    # nor is it far from the exact binomial bound, which knows that they are coins
    exact = beta.ppf(alpha, counts[1:], runs - counts[1:] + 1)
    assert np.all(bounds[1:] <= exact * (1 + 1e-9))
    assert np.all(bounds[4:] >= exact[3:] / 2.5)


@pytest.mark.parametrize("scale", [1e-250, 1e-9, 1.0, 1e250])
def test_it_scales_with_its_samples(scale):
    samples = _far(np.random.default_rng(3), (300, 4))
    assert mean_lower(scale * samples, 1e-6) == pytest.approx(
        scale * mean_lower(samples, 1e-6), rel=1e-9
    )


def test_it_sees_what_a_bound_for_the_unit_interval_cannot():
    samples = 1e-6 * np.random.default_rng(4).exponential(1.0, (300, 1))
    assert mean_confidence_band(samples, 0.05)[0][0] < 1e-9
    assert 0.85e-6 < mean_lower(samples, 0.025)[0] < samples.mean()


def test_it_narrows_with_runs_and_widens_with_confidence():
    samples = np.random.default_rng(5).exponential(1.0, (20_000, 1))
    few, many = (mean_lower(samples[:n], 0.05)[0] for n in (200, 20_000))
    assert 1 - many < (1 - few) / 5
    sure = [mean_lower(samples[:200], alpha)[0] for alpha in (0.5, 0.05, 1e-3, 1e-9)]
    assert sure == sorted(sure, reverse=True)
    assert sure[-1] > 0.4


@pytest.mark.parametrize("runs", [1, 2, 300])
@pytest.mark.parametrize("alpha", [0.5, 1e-9])
def test_edges(runs, alpha):
    assert mean_lower(np.zeros((runs, 2)), alpha).tolist() == [0.0, 0.0]
    one = np.zeros((runs, 1))
    one[0] = 3.0
    # no bound can pass -log(1 - alpha) / runs coins' worth on a single sample among zeros
    assert 0 < mean_lower(one, alpha)[0] <= -3.0 * math.log1p(-alpha) / runs * (1 + 1e-6)
    assert mean_lower(np.zeros((0, 1)), alpha).tolist() == [0.0]
    assert mean_lower(np.zeros((5, 0)), alpha).size == 0
