"""What a bet is worth."""

import math

import numpy as np
import pytest

from audits.statistics.betting import (
    MAX_EXCESS,
    expert_odds,
    log_growth,
    log_mean_wealth,
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
