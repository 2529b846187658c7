"""Many coins in one run: the bound holds for dependent guesses, by enumeration."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from audits.statistics.single_run import epsilon_lower_one_run


def _response(epsilon, delta):
    """Chances of the own, the other or a revealed coin from the worst (epsilon, delta) channel."""
    keep = (1 - delta) * math.exp(epsilon) / (1 + math.exp(epsilon))
    return {"own": keep, "other": 1 - delta - keep, "revealed": delta}


@pytest.mark.parametrize(("right", "coins"), [(0, 10), (5, 10), (48, 48), (60, 72), (40, 72)])
@pytest.mark.parametrize("delta", [0.0, 1e-6, 1e-4])
def test_the_bound_inverts_the_tail(right, coins, delta):
    alpha = 0.05
    lower = epsilon_lower_one_run(right, coins, delta, alpha)
    q = 1 / (1 + math.exp(-lower))
    tail = binom.sf(right - 1, coins, q) + coins * (1 - q) * delta
    if lower > 0:
        assert tail <= alpha * (1 + 1e-9)
        # not much is given away: at a tenth more epsilon it could happen
        more = 1 / (1 + math.exp(-1.1 * lower - 0.01))
        assert binom.sf(right - 1, coins, more) > alpha - coins * delta / 2
    else:
        assert right <= coins / 2 + 3 * math.sqrt(coins)


def test_no_coins_and_no_error_left():
    assert epsilon_lower_one_run(0, 0, 0.0, 0.05) == 0.0
    assert epsilon_lower_one_run(100, 100, 1e-3, 0.05) == 0.0  # 100 delta / 2 is all of alpha


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_independent_responses_attain_the_binomial_and_never_pass_the_bound(epsilon, delta):
    m, chances = 6, _response(epsilon, delta)
    q = 1 / (1 + math.exp(-epsilon))
    right = chances["own"] + chances["revealed"]
    for v in range(m + 1):
        assert binom.sf(v - 1, m, right) <= binom.sf(v - 1, m, q) + m * (1 - q) * delta + 1e-12


@pytest.mark.parametrize("delta", [0.0, 0.02])
def test_an_output_that_binds_all_guesses_together_stays_within(delta):
    """A mechanism whose guesses are as dependent as they get: it tells one noisy parity of blocks.

    The noisy sum of all coins is released and every coin is guessed to be the majority's.
    """
    m, epsilon = 5, 1.0
    # exponential mechanism on the sum: neighbours' sums differ by 1, so it is epsilon-DP
    outputs = np.arange(m + 1)
    tail = np.zeros(m + 1)
    for coins in itertools.product((0, 1), repeat=m):
        total = sum(coins)
        law = np.exp(-epsilon / 2 * np.abs(outputs - total))
        law /= law.sum()
        for noisy, chance in zip(outputs, law, strict=True):
            for share, seen in ((1 - delta, noisy), (delta, total)):  # delta: the sum itself
                guess = int(seen > m / 2)
                right = sum(coin == guess for coin in coins)
                tail[: right + 1] += share * chance / 2**m
    q = 1 / (1 + math.exp(-epsilon))
    bound = binom.sf(np.arange(m + 1) - 1, m, q) + m * (1 - q) * delta
    assert (tail <= bound + 1e-12).all()


def test_without_the_share_for_delta_the_bound_would_be_false():
    m, epsilon, delta = 6, 0.3, 0.05
    q, chances = 1 / (1 + math.exp(-epsilon)), _response(epsilon, delta)
    assert binom.sf(m - 1, m, chances["own"] + chances["revealed"]) > binom.sf(m - 1, m, q)


def test_a_private_release_is_rarely_above_its_epsilon():
    # 2000 audits of 24 coins at epsilon 1: at 95 % the bound may exceed it in 5 of 100;
    # 150 or more of 2000 at 5 % has probability below 1e-6
    rng, epsilon = np.random.default_rng(0), 1.0
    q = 1 / (1 + math.exp(-epsilon))
    rights = rng.binomial(24, q, 2000)
    bounds = {right: epsilon_lower_one_run(right, 24, 0.0, 0.05) for right in set(rights.tolist())}
    wrong = sum(bounds[right] > epsilon for right in rights.tolist())
    assert binom.sf(149, 2000, 0.05) < 1e-6
    assert wrong < 150
