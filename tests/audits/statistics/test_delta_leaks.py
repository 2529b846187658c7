"""Bounds hold where some runs leak all, and the budget of leaks is spent."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from audits.statistics.binomial_bounds import (
    epsilon_lower,
    epsilon_lower_every_run,
    leak_count_quantile,
)
from audits.statistics.delta_leaks import epsilon_lower_with_leaks, leak_error_budget


@pytest.mark.parametrize(
    ("runs", "delta"), [(200_000, 1e-5), (50_000, 0.01), (1000, 0.3), (100, 1e-9)]
)
@pytest.mark.parametrize("alpha", [0.05, 1e-6])
def test_the_budget_of_leaks_is_spent_and_not_overspent(runs, delta, alpha):
    leaks, budget = leak_error_budget(runs, delta, alpha, (0.1 * runs, 0.7))
    chance = np.diff(np.append(0.0, binom.cdf(leaks, runs, delta)))
    spent = chance @ budget + binom.sf(leaks[-1], runs, delta)
    assert 0.9 * alpha <= spent <= alpha * (1 + 1e-9)


@pytest.mark.parametrize("clever", [False, True])
def test_leaky_bounds_cover_whoever_leaks(clever):
    # a leak is a right guess; a clever adversary guesses less where there were few
    rng, q, runs, delta, alpha = (
        np.random.default_rng(2),
        1 / (1 + math.exp(-1.0)),
        20_000,
        1e-3,
        0.05,
    )
    over = 0
    for _ in range(1000):
        leaks = rng.binomial(runs, delta)
        guesses = rng.binomial(runs, 0.02 if clever and leaks < 20 else 0.1)
        right = leaks + rng.binomial(guesses, q)
        over += (
            epsilon_lower_with_leaks(
                int(right), int(guesses + leaks), runs, delta, alpha, (2020, 0.74)
            )
            > 1.0
        )
    assert over <= binom.ppf(1 - 1e-6, 1000, alpha)
    assert over >= binom.ppf(1e-6, 1000, 0.5 * alpha)


def test_a_budget_gains_on_one_count_of_leaks():
    share, made, runs, delta = 0.70, 4000, 2_000_000, 1e-5
    plain = float(epsilon_lower(np.array(share * made), np.array(float(made)), runs, delta, 0.05))
    shaped = epsilon_lower_with_leaks(int(share * made), made, runs, delta, 0.05, (made, share))
    assert plain + 0.005 < shaped < math.log(share / (1 - share))


def test_guesses_of_leaks_alone_refute_where_leaks_are_too_many():
    # 77 guesses, all right, where 35 leaks are expected: more than 60 have a chance below 1e-4
    assert epsilon_lower_with_leaks(77, 77, 35_000, 1e-3, 0.05, (66.0, 0.99)) > 1.0
    assert epsilon_lower_with_leaks(45, 45, 35_000, 1e-3, 0.05, (66.0, 0.99)) == 0.0


def test_a_guess_in_every_run_needs_no_leaks():
    # Gaussian of mu = 1 at epsilon 0: the share of right guesses is Phi(1/2)
    right = int(100_000 * norm.cdf(0.5))
    delta = 2 * norm.cdf(0.5) - 1
    assert epsilon_lower_every_run(right, 100_000, delta, 0.05) == 0.0
    assert epsilon_lower_every_run(right, 100_000, 0.98 * delta, 0.05) > 0.0


@pytest.mark.parametrize(("runs", "delta"), [(1000, 0.01), (10**6, 1e-5), (100, 0.0), (50, 0.9)])
def test_most_leaks_is_the_binomial_quantile(runs, delta):
    for alpha in (0.1, 0.005, 1e-6):
        assert leak_count_quantile(runs, delta, alpha) == binom.ppf(1 - alpha, runs, delta)


def test_leaks_are_the_adversarys_right_guesses():
    # 1,000 runs of which 1 % leak: right guesses of exactly those prove nothing
    leaks = leak_count_quantile(1000, 0.01, 0.005)
    counts = np.array(float(leaks))
    assert epsilon_lower(counts, counts, 1000, 0.01, 0.05) == 0.0
