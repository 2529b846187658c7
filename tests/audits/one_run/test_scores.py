"""Audits of one training run from scores: the error rate, the anchor, what is refused."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import binom

from accountant import (
    ApproxLoss,
    GaussianLoss,
    ParameterError,
    PoissonSampled,
    PureLoss,
    Repeat,
)
from audits import Outcome, TradeoffLoss, audit_scores
from audits.one_run.guess_rules import RankedCoins, ladder, planned_rule, ranked_coins, ranked_pairs
from audits.one_run.hypotheses import curve_lines
from audits.statistics.single_run import refutes_curve, tail_of_right_guesses

JAX_PRIVACY = {1: (1.133, 2.165), 2: (2.312, 4.722), 4: (4.396, 9.134)}


@pytest.mark.parametrize("shift", JAX_PRIVACY)
def test_the_anchor_is_above_jax_privacy(shift):
    below = ndtri((np.arange(10_000) + 0.5) / 10_000)
    found = audit_scores(below + shift, below, GaussianLoss(shift), 1e-6)
    one, curve = JAX_PRIVACY[shift]
    assert one * 1.5 < found.epsilon_lower < GaussianLoss(shift).epsilon_at(1e-6)
    assert curve * 1.4 < GaussianLoss(found.mu_lower).epsilon_at(1e-6)
    assert found.mu_lower < shift
    page = Path(__file__).parents[3] / "docs" / "one-training-run.md"
    by_curves = GaussianLoss(found.mu_lower).epsilon_at(1e-6)
    row = f"| {shift} | {found.epsilon_lower:.3f} | {one} | {by_curves:.3f} | {curve} |"
    assert row in page.read_text(encoding="utf-8")
    assert found.outcome is not Outcome.FALSIFIED  # so many coins cannot refute shift 4


def rejection_chances(coins, epsilon, leak, alpha, q):
    """The chance that each rule refutes a channel that is right with probability q, apart."""
    at = np.array([epsilon])
    for rule in (planned_rule(coins, at, np.array([leak]), alpha), *ladder(coins, one_way=True)):
        right = np.arange(rule.guesses + 1)
        tails = tail_of_right_guesses(right, rule.guesses, at, np.array([leak]))
        refuting = np.flatnonzero(tails <= alpha * rule.share)
        yield binom.sf(refuting[0] - 1, rule.guesses, q) if refuting.size else 0.0


@pytest.mark.parametrize("coins", [10, 50, 1000, 20_000])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_all_rules_together_refute_responses_at_most_as_often_as_allowed(coins, epsilon):
    chances = list(rejection_chances(coins, epsilon, 0.0, 0.05, 1 / (1 + math.exp(-epsilon))))
    assert sum(chances) <= 0.05
    assert sum(rule.share for rule in ladder(coins, one_way=True)) <= 0.5


@pytest.mark.parametrize("one_way", [False, True])
def test_a_ladder_goes_down_by_fourths_to_eight_guesses(one_way):
    for coins in [*range(1, 140), 511, 512, 2047, 2048, 100_000]:
        every, *rules = ladder(coins, one_way=one_way)
        assert (every.guesses, every.both) == (coins, True)
        for both, largest in ((True, coins // 4), (False, coins // 2 if one_way else 0)):
            expected = [largest // 4**k for k in range(20) if largest // 4**k >= 8]
            assert [rule.guesses for rule in rules if rule.both == both] == expected


def test_one_gaussian_loss_for_all_coins_is_refuted_at_most_as_often_as_allowed():
    """Every coin is seen with the odds of one loss: mu-GDP, and as dependent as can be."""
    mu, coins, alpha = 1.5, 1000, 0.05
    epsilons, deltas = curve_lines(GaussianLoss(mu), coins, alpha)
    rules = planned_rule(coins, epsilons, coins * deltas, alpha), *ladder(coins, one_way=True)
    nodes, weights = np.polynomial.hermite_e.hermegauss(200)
    odds = 1 / (1 + np.exp(-np.abs(mu * mu / 2 + mu * nodes)))
    total = 0.0
    for rule in rules:
        leaks = coins * deltas / (1 if rule.both else 2)
        low, high = rule.guesses // 2, rule.guesses + 1  # the least that refutes, by bisection
        while high - low > 1:
            middle = (low + high) // 2
            out = refutes_curve(middle, rule.guesses, epsilons, leaks, alpha * rule.share)
            low, high = (low, middle) if out else (middle, high)
        total += weights @ binom.sf(high - 1, rule.guesses, odds) / weights.sum()
    assert 0.005 < total <= alpha


def test_honest_runs_fall_at_their_rate():
    # at 5 %, 15 or more of 60 have a probability below 1e-6; equal scores abound
    rng, fell = np.random.default_rng(2), 0
    for _ in range(60):
        coins = rng.random(100) < 0.5
        seen = np.where(rng.random(100) < 1 / (1 + math.exp(-1.0)), coins, ~coins) * 1
        found = audit_scores(seen[coins], seen[~coins], PureLoss(1.0), rng=rng)
        fell += found.outcome is Outcome.FALSIFIED
        assert found.outcome is not Outcome.INCONCLUSIVE
    assert binom.sf(14, 60, 0.05) < 1e-6
    assert fell < 15


def test_equal_scores_are_not_put_in_order_by_the_coins():
    scores, is_in = np.zeros(1000), np.arange(1000) < 500
    mixed = np.random.default_rng(0).permutation(1000)
    coins = ranked_coins(scores, is_in[mixed])
    assert coins.split == 500
    assert abs(int(coins.highest[500]) - 250) < 60
    for claim in (None, GaussianLoss(1.0)):  # nothing is refuted, not even the least mu
        found = audit_scores(np.zeros(500), np.zeros(500), claim, rng=0)
        assert found.epsilon_lower == 0.0
        assert not found.mu_lower


@pytest.mark.parametrize(
    ("runs", "split"),
    [([6], 3), ([7], 3), ([1, 6], 1), ([6, 1], 6), ([2, 3, 2], 2), ([1, 3, 2], 4), ([1] * 7, 3),
     ([3, 3], 3), ([1], 0)],
)  # fmt: skip
def test_coins_are_split_at_the_end_of_a_run_of_equal_scores_that_is_nearest_to_the_middle(
    runs, split
):
    scores = np.repeat(-np.arange(len(runs)), runs)
    coins = ranked_coins(np.random.default_rng(1).permutation(scores), np.ones(scores.size) > 0)
    assert coins.split == split


def test_a_claim_of_two_answers_is_split_between_them():
    coins = ranked_coins(np.repeat([1.0, 0.0], [700, 300]), np.repeat([True, False], [700, 300]))
    every = ladder(1000, one_way=True)[0]
    assert (coins.split, coins.right(every)) == (700, 1000)


@pytest.mark.parametrize(
    ("claim", "outcome"),
    [
        (PureLoss(2.0), "FALSIFIED"),
        (PureLoss(7.0), "SURVIVED"),
        (PureLoss(8.0), "INCONCLUSIVE"),
        (ApproxLoss(3.0, 1e-5), "FALSIFIED"),
        (GaussianLoss(1.0), "FALSIFIED"),
        (GaussianLoss(2.0), "SURVIVED"),
        (GaussianLoss(3.0), "INCONCLUSIVE"),
        (Repeat(GaussianLoss(0.1), 100), "FALSIFIED"),
        (Repeat(PoissonSampled(GaussianLoss(1.0), 0.01), 100), "FALSIFIED"),
        (TradeoffLoss(((0.0, 0.99), (0.1, 0.8), (0.8, 0.1), (0.99, 0.0))), "FALSIFIED"),
    ],
)
def test_claims_of_every_kind(claim, outcome):
    rng = np.random.default_rng(0)
    found = audit_scores(rng.normal(3, 1, 3020), rng.normal(0, 1, 2980), claim, rng=0)
    assert found.outcome.name == outcome
    assert found.claim is claim
    assert (found.mu_lower is None) == (not isinstance(claim, GaussianLoss))
    assert found.epsilon_lower <= found.provable


def test_a_fixed_split_is_audited_in_pairs_of_replaced_records():
    """Each canary is seen with the odds of epsilon: two of them replaced tell 2 epsilon."""
    rng, epsilon = np.random.default_rng(1), 1.0
    inside = rng.permutation(2000) < 1000
    seen = np.where(rng.random(2000) < 1 / (1 + math.exp(-epsilon)), inside, ~inside) * 1
    honest = audit_scores(seen[inside], seen[~inside], PureLoss(2 * epsilon), split="fixed", rng=0)
    assert honest.coins == 1000
    assert honest.outcome is Outcome.SURVIVED
    assert epsilon < honest.epsilon_lower < 2 * epsilon
    broken = audit_scores(seen[inside], seen[~inside], PureLoss(1.2), split="fixed", rng=0)
    assert broken.outcome is Outcome.FALSIFIED
    pairs = ranked_pairs(np.arange(20.0), np.full(12, -1.0), rng)
    assert isinstance(pairs, RankedCoins)
    assert (pairs.coins, pairs.highest[-1]) == (12, 12)


def test_of_two_canaries_one_is_in_and_coins_of_their_own_would_be_wrong():
    """An epsilon-DP output of a fixed split that gives both away more often than two coins can."""
    epsilon = 1.0
    # exponential mechanism on the number of coins that agree with the output (1, 0)
    chances = {(1, 0): math.exp(epsilon), (0, 1): math.exp(-epsilon), (0, 0): 1.0, (1, 1): 1.0}
    fixed = chances[1, 0] / (chances[1, 0] + chances[0, 1])  # the split given that output
    coins = (1 / (1 + math.exp(-epsilon))) ** 2
    assert fixed == pytest.approx(1 / (1 + math.exp(-2 * epsilon)))
    assert fixed > coins


def test_too_few_coins_cannot_refute_and_say_so():
    found = audit_scores(np.arange(10.0, 20), np.arange(10.0), ApproxLoss(8.0, 1e-5))
    assert found.outcome is Outcome.INCONCLUSIVE
    assert found.provable < 8
    assert "could have proved epsilon" in found.witness


@pytest.mark.parametrize(
    ("split", "few", "enough"),
    [("coins", (4, 5), (5, 5)), ("coins", (1, 8), (2, 8)),
     ("fixed", (9, 500), (10, 500)), ("fixed", (500, 9), (500, 10))],
)  # fmt: skip
def test_ten_canaries_or_ten_pairs_are_just_enough(split, few, enough):
    scores = [np.arange(float(number)) for number in enough]
    assert audit_scores(*scores, PureLoss(1.0), split=split, rng=1).outcome is not None
    scores = [np.arange(float(number)) for number in few]
    counted = "pairs of one inside and one outside" if split == "fixed" else "canaries"
    with pytest.raises(ParameterError, match=f"at least 10 {counted}"):
        audit_scores(*scores, PureLoss(1.0), split=split, rng=1)


@pytest.mark.parametrize(
    ("wrong", "remedy"),
    [
        ({"inside": [math.nan] * 20}, "finite"),
        ({"inside": ["a"] * 20}, "real numbers"),
        ({"inside": np.ones((20, 2))}, "one axis"),
        ({"inside": []}, "one score a canary"),
        ({"inside": [1.0, [2.0]]}, "real numbers"),
        ({"inside": [1.0], "outside": [2.0]}, "at least 10"),
        ({"inside": np.ones(300), "outside": np.ones(100)}, "split='fixed'"),
        ({"claim": "a"}, "a loss such as"),
        ({"delta": math.nan}, "delta"),
        ({"delta": True}, "delta"),
        ({"confidence": 1.0}, "confidence"),
        ({"split": "half"}, "'coins', 'fixed'"),
        ({"rng": -1}, "seed"),
        ({"inside": "no-such-file.npy"}, "file to read"),
    ],
)
def test_what_cannot_be_audited_is_refused(wrong, remedy):
    given = {"inside": np.ones(20), "outside": np.zeros(20)} | wrong
    with pytest.raises(ParameterError, match=remedy):
        audit_scores(**given)


def test_numbers_are_claims_of_a_training_run_too():
    scores = np.arange(300.0, 600), np.arange(300.0)
    for short, loss in [(1.0, PureLoss(1.0)), ((1.0, 1e-5), ApproxLoss(1.0, 1e-5))]:
        found = audit_scores(*scores, short, rng=0)
        assert found.outcome is Outcome.FALSIFIED
        assert found.epsilon_lower == audit_scores(*scores, loss, rng=0).epsilon_lower


@pytest.mark.parametrize("claim", [0.0, (0.0, 1e-5), (0.0, 0.1)])
def test_scores_that_tell_nothing_refute_no_claim_of_nothing(claim):
    same = np.arange(50.0)
    found = audit_scores(same, same, claim, rng=1)
    assert found.epsilon_lower == 0.0
    assert found.outcome.name != "FALSIFIED"
