"""How many runs it takes: against the reference table of audit-statistics 1.3, and simulation."""

import math

import numpy as np
import pytest

from audits.known_densities.outcome_models import (
    OutcomePair,
    gaussian,
    laplace,
    ten_outcomes,
    two_outcomes,
    worst_outcome_pair,
)
from audits.known_densities.sample_size import (
    guess_rates,
    guess_test_power,
    nearest_allowed_pair,
    runs_needed,
)
from audits.statistics.binomial_bounds import epsilon_lower
from mechanisms import Laplace, RandomizedResponse

# (truth, claim, delta, guess test, limit), runs in all for the median run at 95 %
TABLE = [
    (laplace(1.0), 0.90, 0.0, 2_040, 1_980), (laplace(1.0), 0.95, 0.0, 8_120, 8_000),
    (two_outcomes(1.0), 0.95, 0.0, 5_580, 5_520), (ten_outcomes(1.0), 0.95, 0.0, 17_620, 17_380),
    (gaussian(1.0, 1e-5), 0.80, 1e-5, 784_000, 502_000),
    (gaussian(1.0, 1e-5), 0.90, 1e-5, 5.94e6, 3.84e6),
    (gaussian(1.0, 1e-5), 0.95, 1e-5, 31.8e6, 20.6e6),
]  # fmt: skip


@pytest.mark.parametrize(("pair", "claim", "delta", "guess", "limit"), TABLE)
def test_the_reference_table(pair, claim, delta, guess, limit):
    found = runs_needed(pair, claim, delta, 0.05, 0.5)
    assert found.limit == pytest.approx(limit, rel=0.01)
    # Leaks are counted a little more simply than there; the last bit of the scale moves the last
    # row by 1.3 %.
    assert found.guess == pytest.approx(guess, rel=0.1 if delta else 0.02)
    assert found.limit <= found.guess


@pytest.mark.parametrize("delta", [0.0, 1e-5, 1e-2])
@pytest.mark.parametrize("made", [laplace, two_outcomes, ten_outcomes])
def test_the_nearest_pair_keeps_the_claim(made, delta):
    pair = made(1.5)
    first, second = nearest_allowed_pair(pair, 1.0, delta)
    assert first.sum() == pytest.approx(1.0, abs=1e-9)
    assert second.sum() == pytest.approx(1.0, abs=1e-9)
    for a, b in ((first, second), (second, first)):
        stick = np.maximum(a - math.e * b, 0.0).sum()
        assert stick <= delta * (1 + 1e-6) + 1e-12
        assert stick == pytest.approx(delta, rel=1e-6, abs=1e-12)


def test_power_is_what_simulation_finds():
    pair, runs, repeats = laplace(1.25), 500, 20_000
    made, right = guess_rates(pair, 1.0)
    rng = np.random.default_rng(0)
    guesses = rng.binomial(runs, made, repeats)
    correct = rng.binomial(guesses, right)
    seen = float(np.mean(epsilon_lower(correct, guesses, runs, 0.0, 0.05) > 1.0))
    power = guess_test_power(runs, made, right, 1.0, 0.0, 0.05)
    # five standard errors: a false alarm of 6e-7
    assert abs(seen - power) < 5 * math.sqrt(power * (1 - power) / repeats)
    assert 0.5 < power < 0.9


@pytest.mark.parametrize(
    ("rate", "right", "delta", "least", "most"),
    [(0.6, 0.8, 1e-3, 0.1, 0.95), (0.02, 1.0, 0.02, 0.0, 1e-3)],
)
def test_power_is_what_simulation_finds_with_leaks_too(rate, right, delta, least, most):
    runs, repeats = 500, 20_000
    rng = np.random.default_rng(0)
    guesses = rng.binomial(runs, rate, repeats)
    correct = rng.binomial(guesses, right)
    seen = float(np.mean(epsilon_lower(correct, guesses, runs, delta, 0.05) > 1.0))
    power = guess_test_power(runs, rate, right, 1.0, delta, 0.05)
    assert abs(seen - power) <= 5 * math.sqrt(power * (1 - power) / repeats) + 1e-3
    assert least <= power <= most


GUESSED = OutcomePair(
    "small", np.array([0.5, 0.25, 0.125, 0.125]), np.array([0.125, 0.25, 0.5, 0.125])
)


@pytest.mark.parametrize("pair", [GUESSED, two_outcomes(1.5), ten_outcomes(1.5), laplace(1.25)])
@pytest.mark.parametrize("cut", [0.5, 1.5, math.log(4), 1.3])
def test_rates_of_guesses_are_those_of_every_outcome(pair, cut):
    guesses = right = 0.0
    losses = pair.losses.tolist()
    for loss, first, second in zip(losses, pair.first.tolist(), pair.second.tolist(), strict=True):
        if abs(loss) >= cut:  # each value is drawn in half of the runs
            guesses += (first + second) / 2
            right += (first if loss > 0 else second) / 2
    expected = (guesses, right / guesses if guesses else 0.0)
    assert guess_rates(pair, cut) == pytest.approx(expected, abs=1e-12)
    swapped = OutcomePair("swapped", pair.second, pair.first)
    assert guess_rates(swapped, cut) == pytest.approx(expected, abs=1e-12)


def test_a_loss_of_just_the_cut_is_guessed():
    (size,) = set(np.abs(GUESSED.losses[[0, 2]]).tolist())
    assert guess_rates(GUESSED, size) == pytest.approx((0.625, 0.8))
    assert guess_rates(GUESSED, np.nextafter(size, 9.0)) == (0.0, 0.0)


def test_a_mechanism_is_its_worst_pair():
    a = runs_needed(worst_outcome_pair(Laplace(scale=1.0), 0.9), 0.9, 0.0, 0.05, 0.5)
    b = runs_needed(laplace(1.0), 0.9, 0.0, 0.05, 0.5)
    assert a.limit == pytest.approx(b.limit, rel=0.02)
    keep = 1 / (1 + math.exp(-1))
    two = worst_outcome_pair(RandomizedResponse(k=2, keep=keep), 0.9)
    assert runs_needed(two, 0.9, 0.0, 0.05, 0.5).guess == runs_needed(
        two_outcomes(1.0), 0.9, 0.0, 0.05, 0.5
    ).guess  # fmt: skip


def test_what_is_true_is_never_seen():
    found = runs_needed(laplace(1.0), 1.0, 0.0, 0.05, 0.5)
    assert math.isinf(found.guess)
    assert math.isinf(found.limit)
