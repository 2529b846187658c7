"""What a bet is worth."""

import math

import numpy as np
import pytest

from audits.statistics.betting import (
    MAX_EXCESS,
    STAKES,
    expert_odds,
    log_growth,
    log_mean_wealth,
    log_wealth_of_counts,
)


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.05])
def test_no_bet_gains_against_a_true_claim(epsilon, delta):
    # a run leaks with chance delta; else a guess is right with the greatest chance allowed
    q = 1 / (1 + math.exp(-epsilon))
    for excess in (0.0, 0.1, 1.0, MAX_EXCESS):
        both = np.exp(log_growth(np.full(2, excess), np.array([True, False]), epsilon, delta))
        right = delta + (1 - delta) * q
        assert right * both[0] + (1 - right) * both[1] <= 1 + 1e-12
        # a run without a guess
        none = math.exp(log_growth(np.zeros(1), np.array([True]), epsilon, delta)[0])
        assert none <= 1 + 1e-12
        assert np.all(both > 0)
        # guesses everywhere but few leaks: any share of guesses g
        for g in (0.01, 0.3):
            mean = delta * both[0] + (1 - delta) * (
                g * (q * both[0] + (1 - q) * both[1]) + (1 - g) * none
            )
            assert mean <= 1 + 1e-12


def test_wealth_is_the_average_of_experts():
    assert log_mean_wealth(np.zeros(3)) == 0.0
    assert log_mean_wealth(np.log(np.array([1.0, 2.0, 6.0]))) == pytest.approx(math.log(3))


def test_exact_odds_need_one_opinion():
    assert expert_odds(np.array([2.0, -0.5]), 1.0, exact=True).tolist() == [[1.0, 0.0]]
    assert expert_odds(np.array([2.0, -0.5]), 1.0, exact=False).shape[1] == 2


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 5.0, 50.0])
@pytest.mark.parametrize("leak_rate", [0.0, 1e-5, 0.05])
def test_counts_of_guesses_gain_nothing_against_a_true_claim(epsilon, leak_rate):
    runs, q = 12, 1 / (1 + math.exp(-epsilon))
    for guess_share in (1.0, 0.4):
        # a leak is a right guess; every other guess is right with the greatest chance allowed
        right = leak_rate + (1 - leak_rate) * guess_share * q
        wrong = (1 - leak_rate) * guess_share / (1 + math.exp(epsilon))
        assert right <= math.exp(epsilon) * wrong + leak_rate + 1e-12
        means = np.zeros(len(STAKES))
        for correct in range(runs + 1):
            for mistakes in range(runs + 1 - correct):
                none = runs - correct - mistakes
                chance = math.comb(runs, correct) * math.comb(runs - correct, mistakes)
                chance *= right**correct * wrong**mistakes * max(1 - right - wrong, 0.0) ** none
                log_wealth = log_wealth_of_counts(
                    correct, correct + mistakes, runs, epsilon, leak_rate
                )
                means += chance * np.exp(log_wealth)
        assert np.all(means <= 1 + 1e-12)
        assert np.all(means > 0.999 * (1 - leak_rate) ** runs)  # and nearly nothing is given away


@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_counts_of_guesses_are_worth_what_their_bets_are_one_by_one(delta):
    epsilon, (correct, wrong, none) = 1.0, (30, 8, 5)
    stakes = STAKES / (math.exp(epsilon) + delta)
    factors = (
        (1 + stakes * (1 - delta)) ** correct
        * (1 - stakes * (math.exp(epsilon) + delta)) ** wrong
        * (1 - stakes * delta) ** none
    )
    log_wealth = log_wealth_of_counts(correct, correct + wrong, 43, epsilon, delta)
    assert np.all(log_wealth <= np.log(factors) + 1e-13)
    assert log_wealth == pytest.approx(np.log(factors), abs=1e-12)


@pytest.mark.parametrize(("epsilon", "share"), [(0.1, 1 / 16), (1.0, 1 / 2), (4.0, 31 / 32)])
def test_some_stake_suits_half_the_noise(epsilon, share):
    p, made = 1 / (1 + math.exp(-2 * epsilon)), 1000
    log_wealth = log_wealth_of_counts(round(p * made), made, made, epsilon, 0.0)
    assert STAKES[np.argmax(log_wealth)] == share
    q = 1 / (1 + math.exp(-epsilon))
    most = made * (p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q)))
    assert np.max(log_wealth) > 0.9 * most
