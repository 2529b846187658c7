"""Exact Poisson numbers: given ideal random words, the distribution is exactly the stated one.

A uniform number U gives the least k with U < F(k), F the distribution function.  The first 64 bits
of U, a word, decide unless they equal those of some F(k): then further digits of both do.  A large
mean is cut into halves, and their draws are added: sums of Poisson numbers are Poisson.

References: Devroye (1986), inversion by a table.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from mechanisms.exact_noise.exponential_coins import WordArray, random_words

LARGEST_MEAN = 1024  # a greater mean is cut into halves: the table grows with the mean
DIGITS = 40  # of a decimal F(k): 64 bits have 20; the number decides the speed alone


@final
@dataclass(frozen=True, slots=True)
class PoissonNumbers:
    """Whole numbers k with probability ``e^-mean mean^k / k!``."""

    mean: Fraction

    def draw(self, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return ``size`` independent draws."""
        part, parts = self._parts
        total, table = np.zeros(size, dtype=np.int64), poisson_table(part)
        for _ in range(parts):
            drawn_words = random_words(size, rng)
            # Of every k before this one F(k) is at most U.
            k = np.searchsorted(table, drawn_words, side="left")
            # The last word is all ones, so that k is in the table.
            for i in np.flatnonzero(table[k] == drawn_words):
                k[i] = least_above(int(drawn_words[i]), part, int(k[i]), rng)
            total += k
        return total

    @property
    def _parts(self) -> tuple[Fraction, int]:
        """The mean of the numbers that are drawn by a table, and how many of them are added."""
        parts = 1
        while self.mean > parts * LARGEST_MEAN:
            parts *= 2
        return self.mean / parts, parts

    @property
    def table(self) -> dict[str, Any]:
        """The words of the table in plain numbers, for a proof that they are right."""
        part, _ = self._parts
        mean = [part.numerator, part.denominator]
        return {"table": "PoissonNumbers", "mean": mean, "words": poisson_table(part).tolist()}


@functools.lru_cache(maxsize=64)
def poisson_table(mean: Fraction) -> WordArray:
    """Return the first 64 binary digits of F(k), k = 0, 1, ..., up to those that are all ones."""
    count, digits = 64, DIGITS
    while True:
        scale = Context(digits).multiply
        bounds = distribution_bounds(mean, count, digits)
        low_words, high_words = (
            [int(scale(x, Decimal(2**64))) for x in side] for side in zip(*bounds, strict=True)
        )
        if low_words != high_words:
            digits += 20
        elif low_words[-1] < 2**64 - 1:
            count *= 2
        else:
            return np.array(low_words[: low_words.index(2**64 - 1) + 1], dtype=np.uint64)


def least_above(word: int, mean: Fraction, k: int, rng: np.random.Generator) -> int:
    """Return the least j, at least k, with U < F(j); the digits of U begin with the word."""
    length, digits = 64, DIGITS
    while True:
        low, high = map(Fraction, distribution_bounds(mean, k + 1, digits)[k])
        if Fraction(word + 1, 1 << length) <= low:
            return k
        if Fraction(word, 1 << length) >= high:
            k += 1
        else:
            word = (word << 64) | int(random_words(None, rng))
            length, digits = length + 64, digits + 20


def distribution_bounds(mean: Fraction, count: int, digits: int) -> list[tuple[Decimal, Decimal]]:
    """Return bounds of F(k) = ``e^-mean sum_{j <= k} mean^j / j!``, for k = 0 ... count - 1.

    All terms are positive, and computed in decimals of so many digits.
    """
    context = Context(digits, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
    decimal_mean = context.divide(Decimal(mean.numerator), Decimal(mean.denominator))
    term = context.exp(context.minus(decimal_mean))
    # The mean errs by a unit u of the last digit at most, so that the exponential errs by mean u,
    # a power by k u; each of 5 k operations adds another one.
    error = (6 * count + math.ceil(mean) + 10) * Decimal(10) ** (1 - digits)
    total, bounds = Decimal(0), []
    for k in range(count):
        total = context.add(total, term)
        margin = context.multiply(total, error)
        bounds.append((context.subtract(total, margin), context.add(total, margin)))
        term = context.divide(context.multiply(term, decimal_mean), Decimal(k + 1))
    return bounds
