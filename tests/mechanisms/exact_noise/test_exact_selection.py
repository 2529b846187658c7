"""Exact selections: winners by decimals alone, extreme scores, and one law for all ways."""

import math
from fractions import Fraction

import numpy as np
import pytest

from mechanisms import (
    AboveThreshold,
    Exponential,
    Laplace,
    LazyExponential,
    NoisyMax,
    PermuteAndFlip,
    SparseVector,
)
from mechanisms.exact_noise import exact_selection, exponential_coins, lazy_laplace
from mechanisms.exact_noise.exponential_coins import below_exponential, exponential_bounds
from mechanisms.exact_noise.lazy_laplace import LazyLaplace
from mechanisms.families.bounded_scores import ListedScores

FALSE_ALARM = 1e-9
SCORES = np.array([0.0, -1.0, 2.0, 0.5, -30.0])
MADE = [Exponential(1.5), PermuteAndFlip(1.5), NoisyMax(1.5, noise="laplace"),
        AboveThreshold(1.0, 1.5)]  # fmt: skip


def no_float_is_trusted(patch):
    """Every decision is one of decimals."""
    patch.setattr(exponential_coins, "HEIGHT_ERROR", 1e9)
    patch.setattr(lazy_laplace, "LEAST_DIGITS", 2**63)


@pytest.mark.parametrize("made", MADE, ids=repr)
def test_decimals_decide_every_selection_as_floats_do(made, monkeypatch):
    fast = made.release(SCORES, 5, 400)
    no_float_is_trusted(monkeypatch)
    assert (made.release(SCORES, 5, 400) == fast).all()


@pytest.mark.parametrize("made", MADE, ids=repr)
def test_digits_that_are_drawn_late_give_the_law_too(made, monkeypatch):
    # noise of three digits, and coins without a digit: most comparisons draw further ones
    monkeypatch.setattr(lazy_laplace, "DIGITS", 3)
    monkeypatch.setattr(lazy_laplace, "LEAST_DIGITS", 2**63)
    right = lazy_laplace.random_words
    monkeypatch.setattr(
        lazy_laplace, "random_words",
        lambda size, rng: right(size, rng) >> np.uint64(60 if size > 1 else 0),
    )  # fmt: skip
    draws = made.release(SCORES, 6, 2000)
    expected = np.exp(made.log_density(np.arange(6), SCORES))
    seen = np.bincount(draws, minlength=6) / draws.size
    assert np.abs(seen - expected).max() < math.sqrt(math.log(12 / FALSE_ALARM) / (2 * draws.size))


@pytest.mark.parametrize("made", [*MADE, SparseVector(1.0, 1.5, 1.0)], ids=repr)
@pytest.mark.parametrize("scale", [1e-300, 1e-5, 1e250])
def test_any_scale_and_scores_of_any_size(made, scale):
    one = type(made)(*([scale] if not hasattr(made, "threshold") else [0.0, scale]),
                     **({"answer_scale": scale} if hasattr(made, "answer_scale") else {}),
                     sensitivity=scale)  # fmt: skip
    for scores in ([1e308, -1e308, 0.0], [5e-324, 0.0, -5e-324], [1e-300, 1e-5, 1e250]):
        released = one.release(scores, 1, 50)
        assert np.isfinite(one.log_density(released, scores)).all()


def test_a_fraction_is_drawn_until_a_coin_is_settled():
    class Words:
        def __init__(self, *words):
            self.words = list(words)

        def integers(self, low, high, size, dtype):
            return np.array([self.words.pop(0)], dtype=dtype)

    # 2^64 e^-1 = 6786177901268885274.78...: .78 decides
    whole = 6786177901268885274
    energy, top = Fraction(1), Fraction(2**64)
    assert below_exponential(whole - 1, energy, top, Words())
    assert not below_exponential(whole + 1, energy, top, Words())
    assert below_exponential(whole, energy, top, Words(2**63))
    assert not below_exponential(whole, energy, top, Words(2**64 - 1))
    # beyond what any float holds, a coin still shows heads: after 2^64 as many zeros as e^-900 has
    assert below_exponential(0, Fraction(900), top, Words(*[0] * 40))
    assert not below_exponential(0, Fraction(900), top, Words(1, *[0] * 40))


@pytest.mark.parametrize("energy", [0, 1, Fraction(1, 3), 44, 700, 5000, 10**7])
def test_bounds_of_an_exponential_enclose_it(energy):
    for digits in (40, 60, 1000):
        low, high = exponential_bounds(Fraction(energy), digits)
        assert 0 <= low <= high <= 1
        if energy < 700:
            assert float(low) == pytest.approx(math.exp(-energy), rel=1e-15)
            assert high - low <= Fraction(10) ** (2 - digits)
        elif 16 * digits > energy:
            assert high / low < 1 + Fraction(10) ** (2 - digits)


def test_the_first_digits_of_a_coin_leave_two_in_65536_unsure_at_most():
    gaps = np.append(np.geomspace(1e-17, 800.0, 300), [0.0, math.log(2), 16 * math.log(2)])
    low, high = exact_selection.digit_bounds(gaps)
    for gap, surely_heads, last_unsure in zip(gaps, low.tolist(), high.tolist(), strict=True):
        p_low, p_high = exponential_bounds(Fraction(float(gap)), 60)
        # a uniform number of 16 bits d stands for those between d and d + 1, over 2^16
        assert surely_heads <= 2**16 * p_low
        assert last_unsure + 1 >= 2**16 * p_high
        assert last_unsure - surely_heads <= 1


def test_digits_of_noise_narrow_what_it_may_be():
    noise, rng = LazyLaplace.from_word(12345), np.random.default_rng(1)
    assert noise.sign == -1
    low, high = noise.bounds()
    for _ in range(5):
        noise.refine(rng)
        nearer = noise.bounds()
        assert low <= nearer[0] <= nearer[1] <= high
        assert nearer[1] - nearer[0] <= (high - low) / 2**60
        low, high = nearer
    assert LazyLaplace(1, 0, 63).bounds()[1] == math.inf
    assert LazyLaplace(-1, 0, 63).bounds()[0] == -math.inf
    assert LazyLaplace(1, 2**63 - 1, 63).bounds()[0] <= 0


def test_an_answer_is_found_and_released_as_its_two_parts_do():
    made, answers = SparseVector(0.5, 2.0, 1.0), [0.3, 1.7, -0.2]
    released = made.release(answers, 8, 500)
    assert (released[:, 0] == made.comparison.release(answers, 8, 500)).all()
    assert made.comparison == AboveThreshold(0.5, 2.0)
    assert made.answer_noise == Laplace(1.0, arithmetic="exact", dimension=1)
    found = released[released[:, 0] < 3, 1]
    steps = np.ldexp(found, 40)
    assert (steps == np.rint(steps)).all()


def test_levels_and_lists_have_one_law():
    made, listed = LazyExponential(1.5), ListedScores(SCORES)
    draws = made.release(listed, 9, 400_000)
    expected = np.exp(made.log_density(np.arange(5), listed))
    seen = np.bincount(draws, minlength=5) / draws.size
    assert np.abs(seen - expected).max() < math.sqrt(math.log(10 / FALSE_ALARM) / (2 * draws.size))
    assert (expected == np.exp(Exponential(1.5).log_density(np.arange(5), SCORES))).all()


def test_a_batch_is_drawn_in_chunks(monkeypatch):
    monkeypatch.setattr(exact_selection, "ENTRIES_PER_CHUNK", 20)
    scores = np.random.default_rng(3).normal(size=(103, 5)) + 100 * np.eye(5)[np.arange(103) % 5]
    for made in (*MADE[:3], AboveThreshold(50.0, 1.5)):
        assert (made.release(scores, 4) == np.arange(103) % 5).all()
    assert (MADE[1].release(scores[2], 4, 103) == 2).all()
