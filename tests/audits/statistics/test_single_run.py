"""Many coins in one run: the bound holds for dependent guesses, by enumeration."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom

from accountant import GaussianLoss
from audits.statistics.single_run import (
    epsilon_lower_one_run,
    refutes_curve,
    tail_of_right_guesses,
)


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
    tail, mass = binom.sf(right - 1, coins, q), binom.pmf(right, coins, q)
    if lower > 0:
        assert tail + (1 - tail) * coins * delta * tail / (right * mass) <= alpha
        # not much is given away: at a little more epsilon it could happen
        more = 1 / (1 + math.exp(-1.01 * lower - 0.001))
        tail, mass = binom.sf(right - 1, coins, more), binom.pmf(right, coins, more)
        assert tail + (1 - tail) * coins * delta * tail / (right * mass) > alpha
    else:
        assert right <= coins / 2 + 3 * math.sqrt(coins)


def test_no_coins_and_no_error_left():
    assert epsilon_lower_one_run(0, 0, 0.0, 0.05) == 0.0
    assert epsilon_lower_one_run(100, 100, 0.0, 0.0) == 0.0
    assert epsilon_lower_one_run(10, 10, 1.0, 0.05) == 0.0  # every coin may leak


@pytest.mark.parametrize("right", [9, 10])
def test_a_claim_of_an_epsilon_beyond_floats_allows_all_guesses(right):
    assert tail_of_right_guesses(right, 10, np.array([800.0]), np.array([1e-3])) == [1.0]


def test_ten_thousand_coins_prove_something_at_a_small_delta():
    # with m delta / 2 charged whole this was 0
    assert epsilon_lower_one_run(8000, 10_000, 1e-5, 0.05) > 1.3


def worst_chance(m, v, claim):
    """The largest P(R >= v) of a channel under the lines (epsilon, delta), all coins guessed.

    Channels may be averaged over turned coins and over their order, so that only the chances of
    0 ... m right guesses matter: a linear program.
    """
    lines, k = len(claim), np.arange(m + 1)
    ways = np.array([math.comb(m, one) for one in k], dtype=float)
    count = m + 1 + 2 * m * lines
    aim, rows, limits = np.zeros(count), [], []
    aim[v : m + 1] = -1
    for line, (epsilon, delta) in enumerate(claim):
        whole = np.zeros(count)
        for one in range(1, m + 1):
            for turned, (up, down) in enumerate(((one, one - 1), (one - 1, one))):
                row, at = np.zeros(count), m + 1 + 2 * m * line + m * turned + one - 1
                row[up], row[down], row[at] = 1 / ways[up], -math.exp(epsilon) / ways[down], -1
                rows.append(row)
                limits.append(0.0)
                whole[at] = math.comb(m - 1, one - 1)
        rows.append(whole)
        limits.append(delta)
    total = np.zeros((1, count))
    total[0, : m + 1] = 1
    return -linprog(aim, np.array(rows), limits, total, [1.0]).fun


@pytest.mark.parametrize(
    ("m", "epsilon", "delta"), [(3, 1.0, 0.0), (5, 0.5, 0.02), (8, 2.0, 0.003)]
)
def test_the_worst_channel_attains_the_bound(m, epsilon, delta):
    for v in range(m // 2 + 1, m + 1):
        bound = tail_of_right_guesses(v, m, np.array([epsilon]), np.array([m * delta]))[0]
        worst = worst_chance(m, v, [(epsilon, delta)])
        assert worst <= bound <= worst * (1 + 1e-5)


def test_the_worst_of_all_channels_is_no_worse():
    """Without averaging: every channel of three coins, with its eight outputs as guesses."""
    m, epsilon, delta, v = 3, 1.0, 0.05, 3
    guessed = list(itertools.product((0, 1), repeat=m))
    n, edges = len(guessed), [(s, s ^ (1 << i)) for s in range(2**m) for i in range(m)]
    rows = np.zeros((len(edges) * (n + 1), n * n + len(edges) * n))
    limits = np.zeros(len(rows))
    for j, (s, t) in enumerate(edges):
        for o in range(n):
            rows[j * (n + 1) + o, [s * n + o, t * n + o]] = 1, -math.exp(epsilon)
            rows[j * (n + 1) + o, n * n + j * n + o] = -1
            rows[j * (n + 1) + n, n * n + j * n + o] = 1
        limits[j * (n + 1) + n] = delta
    sums = np.zeros((n, rows.shape[1]))
    aim = np.zeros(rows.shape[1])
    for s in range(n):
        sums[s, s * n : (s + 1) * n] = 1
        for o in range(n):
            aim[s * n + o] = (
                -(sum(x == y for x, y in zip(guessed[s], guessed[o], strict=True)) >= v) / n
            )
    worst = -linprog(aim, rows, limits, sums, np.ones(n)).fun
    bound = tail_of_right_guesses(v, m, np.array([epsilon]), np.array([m * delta]))[0]
    assert worst <= bound <= worst * (1 + 1e-5)


@pytest.mark.parametrize(("m", "v"), [(4, 4), (6, 6), (9, 9)])
def test_a_curve_bounds_the_worst_channel_and_is_sharp(m, v):
    claim = [(e, GaussianLoss(1.0).delta_at(e)) for e in (2.5, 2.0, 1.5, 1.0, 0.5, 0.0)]
    epsilons, deltas = np.array(claim).T
    worst = worst_chance(m, v, claim)
    assert not refutes_curve(v, m, epsilons, m * deltas, worst * (1 - 1e-6))
    assert refutes_curve(v, m, epsilons, m * deltas, worst * (1 + 1e-3))
    # all lines together say more than the best of them
    assert tail_of_right_guesses(v, m, epsilons, m * deltas).min() > worst * 1.01


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
