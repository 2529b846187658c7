"""Continuous Laplace noise that is known to as many binary digits as a comparison needs.

A draw is ``-ln U`` with a random sign, where U is uniform and its first 63 digits are drawn.  A
float decides a comparison of such draws where an interval that contains the exact numbers lies on
one side; otherwise further digits are drawn, and decimals of growing precision decide.  What is
compared is the continuous distribution itself: no digit is rounded away.

References: Dwork & Roth (2014) for the mechanisms; the digits as in von Neumann (1951).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import final

import numpy as np

from accountant.numerics import Array
from mechanisms.exact_noise.exact_selection import IndexArray, exact_gap, row_chunks
from mechanisms.exact_noise.exponential_coins import Bits, WordArray, random_words

DIGITS = 63  # binary digits of U in a word; the lowest bit of the word is the sign
# The digits are a whole number, U times 2^63 rounded down.  If it is at least `LEAST_DIGITS`, the
# noise as a float is within 2^-32 of the draw, whatever the digits are that were not drawn; see
# docs/proofs/exact_selection.md.
LEAST_DIGITS = 2**33
DRAW_ERROR = 2.0**-32
Bound = Fraction | float  # a float only if it is infinite


def noise_of(words: WordArray) -> tuple[Array, Bits]:
    """Return standard Laplace noise in floats, and where it is not within `DRAW_ERROR`."""
    digits = (words >> np.uint64(1)).view(np.int64)
    noise = digits.astype(float)
    noise *= 2.0**-DIGITS
    with np.errstate(divide="ignore"):  # all digits are 0: the noise is large and imprecise
        np.log(noise, out=noise)
    sign = (words & np.uint64(1)).view(np.int64) * 2 - 1
    noise *= sign
    return noise, digits < LEAST_DIGITS


def draw_noisy_max(
    scores: Array, scale: float, size: int | None, rng: np.random.Generator
) -> IndexArray:
    """Return indices of the largest ``score + scale noise``: one of each row.

    If ``size`` is given there is a single row, and ``size`` indices of it.  The distribution is
    exactly that of independent continuous Laplace noise.
    """
    winners = np.empty(len(scores) if size is None else size, dtype=np.intp)
    best = scores.max(axis=-1, keepdims=True)
    # A scale is at most 1e300, so an infinite height is more than 10^8 scales below the best.  It
    # cannot win, unless an imprecise draw is so large: then decimals decide.
    with np.errstate(over="ignore"):
        heights = (scores - best) / scale
    for rows in row_chunks(winners.size, scores.shape[1]):
        shape = (rows.stop - rows.start, scores.shape[1])
        uniform_words = random_words(shape[0] * shape[1], rng).reshape(shape)
        noisy, imprecise = noise_of(uniform_words)
        noisy += heights[rows] if size is None else heights
        leaders = noisy.argmax(axis=1)
        # A row is decided if all its draws are precise and no other score is near the largest one:
        # the margin is above the errors of two draws, and rounding.
        margins = noisy[np.arange(shape[0]), leaders] - 4 * DRAW_ERROR
        undecided = np.count_nonzero(noisy >= margins[:, None], axis=1) != 1
        undecided |= imprecise.any(axis=1)
        for i in np.flatnonzero(undecided):
            row = scores[0 if size is not None else rows.start + i]
            leaders[i] = exact_winner(row, scale, uniform_words[i], noisy[i], imprecise[i], rng)
        winners[rows] = leaders
    return winners


def exact_winner(
    scores: Array,
    scale: float,
    words: WordArray,
    noisy: Array,
    imprecise: Bits,
    rng: np.random.Generator,
) -> int:
    """Return the index of the largest noisy score of one row, by exact comparison of rivals."""
    top = noisy[~imprecise].max(initial=-math.inf)
    # Scores further below lose to the top score: precise noise is within 2^-32 of the draw, and
    # floats have a relative error below 2^-50.
    with np.errstate(invalid="ignore"):  # the top is minus infinity if all draws are imprecise
        rivals = np.flatnonzero(imprecise | ~(noisy < top - 1 - 2.0**-40 * abs(top)))
    best = float(scores.max())
    terms = [
        NoisyTerm(
            height=-exact_gap(best, float(scores[i]), scale),
            factor=1,
            noise=LazyLaplace.from_word(int(words[i])),
        )
        for i in rivals
    ]
    return int(rivals[greatest(terms, rng)])


def draw_first_above(
    answers: Array, scale: float, size: int | None, rng: np.random.Generator, threshold: float
) -> IndexArray:
    """Return the first index with ``answer + 2 scale noise >= threshold + scale noise``.

    One index of each row is returned, or ``size`` of a single row.  Where no answer is above, the
    index is the number of answers.
    """
    count = answers.shape[1]
    winners = np.empty(len(answers) if size is None else size, dtype=np.intp)
    with np.errstate(over="ignore"):
        heights = (answers - threshold) / scale
    for rows in row_chunks(winners.size, count + 1):
        shape = (rows.stop - rows.start, count + 1)
        uniform_words = random_words(shape[0] * shape[1], rng).reshape(shape)
        noise, imprecise = noise_of(uniform_words)
        with np.errstate(invalid="ignore"):
            # A difference of two infinities is NaN and counts as unsure.
            away = 2 * noise[:, 1:] + (heights[rows] if size is None else heights) - noise[:, :1]
        above = away > 0
        # The margin is above the errors of one draw and of twice another, and rounding.
        unsure = imprecise[:, 1:] | imprecise[:, :1] | ~(np.abs(away) > 4 * DRAW_ERROR)
        for i in np.flatnonzero(unsure.any(axis=1)):
            row = answers[0 if size is not None else rows.start + i]
            decide_in_order(row, threshold, scale, uniform_words[i], above[i], unsure[i], rng)
        winners[rows] = np.where(above.any(axis=1), above.argmax(axis=1), count)
    return winners


def decide_in_order(
    answers: Array,
    threshold: float,
    scale: float,
    words: WordArray,
    above: Bits,
    unsure: Bits,
    rng: np.random.Generator,
) -> None:
    """Settle the unsure comparisons of a row in ``above``, up to the first answer that is above.

    The first word is for the threshold's noise, and word j + 1 for that of answer j.
    """
    # Everything is in scales and relative to the threshold: the noisy threshold is its noise.
    bar = NoisyTerm(height=Fraction(0), factor=1, noise=LazyLaplace.from_word(int(words[0])))
    for j in np.flatnonzero(above | unsure):
        if unsure[j]:
            height = -exact_gap(threshold, float(answers[j]), scale)
            noise = LazyLaplace.from_word(int(words[j + 1]))
            term = NoisyTerm(height, factor=2, noise=noise)
            above[j] = greatest([term, bar], rng) == 0
        if above[j]:
            return


@final
@dataclass(slots=True)
class LazyLaplace:
    """A draw ``sign * -ln U`` of which ``bits`` binary digits of U are drawn, more when asked."""

    sign: int  # 1 or -1
    digits: int  # U 2^bits, rounded down
    bits: int

    @classmethod
    def from_word(cls, word: int) -> LazyLaplace:
        """Return the draw that a word of 64 bits starts."""
        return cls(1 - 2 * (word & 1), word >> 1, DIGITS)

    def refine(self, rng: np.random.Generator) -> None:
        """Draw 64 further digits."""
        self.digits = (self.digits << 64) | int(random_words(1, rng)[0])
        self.bits += 64

    def bounds(self) -> tuple[Bound, Bound]:
        """Return two numbers with the draw between them; more digits bring them closer.

        U is from digits / 2^bits to (digits + 1) / 2^bits, so that -ln U is from
        bits ln 2 - ln(digits + 1) to bits ln 2 - ln(digits).
        """
        # A bit is 0.301 of a decimal digit; the 20 further digits are for cancellation.
        precision = self.bits // 3 + 20
        log_two_low, log_two_high = log_bounds(2, precision)
        _, log_next_high = log_bounds(self.digits + 1, precision)
        lower = self.bits * log_two_low - log_next_high
        upper: Bound = math.inf
        if self.digits:
            log_digits_low, _ = log_bounds(self.digits, precision)
            upper = self.bits * log_two_high - log_digits_low
        return (lower, upper) if self.sign > 0 else (-upper, -lower)


def log_bounds(number: int, precision: int) -> tuple[Fraction, Fraction]:
    """Return two fractions with the logarithm of a whole number between them."""
    if number == 1:
        return Fraction(0), Fraction(0)
    context = Context(prec=precision, rounding=ROUND_HALF_EVEN, traps=[])
    # The logarithm of decimal is correctly rounded: the exact number lies between its neighbours.
    value = context.ln(Decimal(number))
    return Fraction(context.next_minus(value)), Fraction(context.next_plus(value))


@final
@dataclass(frozen=True, slots=True)
class NoisyTerm:
    """The number ``height + factor * noise``, in scales of the noise."""

    height: Fraction
    factor: int
    noise: LazyLaplace

    def bounds(self) -> tuple[Bound, Bound]:
        """Return two numbers with this number between them."""
        low, high = (
            bound if isinstance(bound, float) else self.height + self.factor * bound
            for bound in self.noise.bounds()
        )
        return low, high


def greatest(terms: list[NoisyTerm], rng: np.random.Generator) -> int:
    """Return the index of the largest number; digits are drawn until it is settled."""
    rivals = list(range(len(terms)))
    while len(rivals) > 1:
        bounds = {i: terms[i].bounds() for i in rivals}
        largest_lower = max(low for low, _ in bounds.values())
        rivals = [i for i in rivals if bounds[i][1] > largest_lower]
        if len(rivals) > 1:
            for i in rivals:
                terms[i].noise.refine(rng)
    return rivals[0]
