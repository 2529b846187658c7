"""Exact coins: ties, independence, and how often they fall."""

import math
from fractions import Fraction

import numpy as np
import pytest

from mechanisms.exact_noise.exact_bernoulli import (
    bernoulli,
    bernoulli_between,
    bernoulli_each,
    bernoulli_words,
)
from tests.laws.common import FALSE_ALARM_RATE


class Script:
    """A generator whose random words are written beforehand."""

    def __init__(self, *words):
        self.words = list(words)

    def integers(self, low, high, shape, dtype):
        assert (low, high) == (0, 2 ** np.iinfo(dtype).bits)
        return np.asarray(self.words.pop(0), dtype=dtype).reshape(shape)


ALL, PATTERN = 2**64 - 1, 0x0123456789ABCDEF


def test_coins_decide_a_tie_by_the_digits_that_are_left():
    # .100000001 and a uniform that has the same eight digits: below it if its ninth is 0
    made = bernoulli_words(0.5 + 2.0**-9, 1, Script([ALL] * 8, [PATTERN]))
    assert made.tolist() == [ALL ^ PATTERN]
    # .5 itself is not below .5
    assert bernoulli_words(0.5, 1, Script([ALL])).tolist() == [0]
    # only the words that are tied go on
    words = [[ALL, 0]] + [[ALL, ALL]] * 7
    made = bernoulli_words(0.5 + 2.0**-9, 2, Script(words, [PATTERN]))
    assert made.tolist() == [ALL ^ PATTERN, ALL]


@pytest.mark.parametrize(
    ("words", "below"),
    [
        ([PATTERN - 1], True),
        ([PATTERN + 1], False),
        ([PATTERN, 6], True),
        ([PATTERN, 8], False),
        ([PATTERN, 7, 2**63 - 2], True),
        ([PATTERN, 7, 2**63 - 1, 5], True),
        ([PATTERN, 7, 2**63, 1], False),
    ],
)
def test_bits_between_bounds_draw_digits_until_they_decide(words, below):
    p = Fraction((PATTERN << 65) + (7 << 1) + 1, 2**129)
    asked = []

    def bounds(digits):
        asked.append(digits)
        error = Fraction(1, 10**digits)
        return p - error, p + error

    drawn = Script(words[0], *([word] for word in words[1:]))
    assert bernoulli_between(bounds, (1,), drawn).tolist() == [below]
    # bounds of 20 more digits for each further word
    assert max(asked) == 40 + 20 * (len(words) - 1)
    assert drawn.words == []


def test_bits_decide_a_tie_by_what_is_left():
    # sixteen digits of p = (32768 + .5) / 65536, and those of .5 for the two that tie
    first, second = (
        np.array(digits, dtype=np.uint16).view(np.uint64)
        for digits in ([32767, 32768, 32768, 32769], [32767, 32768, 0, 0])
    )
    made = bernoulli(0.5 + 2.0**-17, (2, 2), Script(first, second))
    assert made.tolist() == [[True, True], [False, False]]


def test_a_bit_for_every_probability_decides_a_tie_by_what_is_left():
    # thirty-two digits of each p, and for the tie those of .25
    p = np.array([[0.5 + 2.0**-34, 0.5], [0.5 + 2.0**-34, 1.0], [0.0, 2.0**-80]])
    tie, last = 2**31, 2**32 - 1
    first = [[tie, tie], [tie, last], [0, 0]]
    made = bernoulli_each(p, Script(first, [2**30 - 1, 2**30, 0], [2**16 - 1]))
    assert made.tolist() == [[True, False], [False, True], [False, True]]
    made = bernoulli_each(p, Script(first, [2**30 - 1, 2**30, 0], [2**16]))
    assert made.tolist() == [[True, False], [False, True], [False, False]]


@pytest.mark.parametrize("eighths", range(9))
def test_coins_of_all_words_are_exactly_as_many(eighths):
    # all three digits of a uniform, each eight times: one is below p for each eighth
    lanes = np.arange(64) % 8
    digits = [(lanes >> place) & 1 for place in (2, 1, 0)]
    p = np.array([(eighths >> place) & 1 for place in (2, 1, 0)])
    same = [
        sum(1 << i for i in range(64) if digit[i] == that)
        for digit, that in zip(digits, p, strict=True)
    ]
    if 0 < eighths < 8:
        count = 3 - (eighths & -eighths).bit_length() + 1
        made = bernoulli_words(eighths / 8, 1, Script(same[:count]))
    else:  # never, and always: ties go on until there is none
        made = bernoulli_words(eighths / 8, 1, np.random.default_rng(1))
    assert int(made[0]).bit_count() == 8 * eighths


@pytest.mark.parametrize("p", [1e-300, 1e-5, 0.1, 1 / 3, 0.5, 0.731, 1 - 2.0**-53])
def test_coins_fall_as_often_as_they_should(p):
    count = 1_000_001
    bits = bernoulli(p, (count,), np.random.default_rng(2))
    assert bits.shape == (count,)
    rate = math.log(2 / FALSE_ALARM_RATE)
    bound = math.sqrt(2 * count * p * (1 - p) * rate) + 2 * rate / 3
    assert abs(int(bits.sum()) - count * p) <= bound


def test_neighbouring_coins_are_independent():
    bits = bernoulli(0.3, (1_000_000,), np.random.default_rng(3)).astype(float) - 0.3
    for lag in (1, 2, 8, 63, 64, 65):
        products = bits[lag:] * bits[:-lag]
        assert abs(products.mean()) <= 0.49 * math.sqrt(math.log(2 / FALSE_ALARM_RATE) / 1e6 * 2)
