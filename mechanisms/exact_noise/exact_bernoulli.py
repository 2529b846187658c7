"""Exact Bernoulli bits: 1 with exactly the stated probability, given ideal random words.

A bit is 1 if a uniform number in [0, 1) is below p.  The number is compared with p in blocks of
binary digits, and more of its digits are drawn only where all digits so far equal those of p.  A
float p has finitely many binary digits, and all arithmetic on it here is exact.  The length of a
block, 8 to 64 digits, decides the speed alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from accountant.numerics import Array

Bits = NDArray[np.bool_]
# A function that returns a lower and an upper bound of a probability p, given the number of decimal
# digits with which it computes them.  They lie in [0, 1], and are close to p for many digits.
Bounds = Callable[[int], tuple[Fraction, Fraction]]


def bernoulli(p: float, shape: tuple[int, ...], rng: np.random.Generator) -> Bits:
    """Return bits that are 1 with probability ``p < 1``, exactly, given ideal random words.

    Sixteen binary digits of a uniform number decide, unless they equal those of ``p``: then a fresh
    uniform number is compared with the remaining digits.
    """
    count = math.prod(shape)
    digits, remainder = divmod(p * 2**16, 1.0)
    # A word of 64 bits has four numbers of 16 digits.
    drawn = rng.integers(0, 2**64, -(-count // 4), np.uint64).view(np.uint16)[:count]
    bits = np.less(drawn, np.uint16(digits))
    tied = np.flatnonzero(drawn == np.uint16(digits))
    if remainder > 0 and tied.size:
        bits[tied] = bernoulli(remainder, tied.shape, rng)
    return bits.reshape(shape)


def bernoulli_each(p: Array, rng: np.random.Generator) -> Bits:
    """Return one bit for every probability in [0, 1], 1 with exactly that probability.

    Thirty-two binary digits of a uniform number decide, unless they equal those of its ``p``: then
    a fresh uniform number is compared with the remaining digits.
    """
    scaled = np.ldexp(p, 32)
    digits = np.floor(scaled)
    drawn = rng.integers(0, 2**32, p.shape, dtype=np.uint32)
    bits: Bits = drawn < digits
    tied = (drawn == digits) & (scaled > digits)
    if tied.any():
        bits[tied] = bernoulli_each((scaled - digits)[tied], rng)
    return bits


def bernoulli_words(p: float, count: int, rng: np.random.Generator) -> NDArray[np.uint64]:
    """Return 64-bit words whose bits are 1 with probability exactly ``p``, given ideal words.

    A uniform number is compared with ``p`` digit by digit, in all bits of all words at once; words
    with a bit that is still equal after eight digits continue with the remaining digits of ``p``.
    """
    digits: list[float] = []
    while p > 0 and len(digits) < 8:  # each step is exact; the digits of 1 are .111...
        digit, p = divmod(2 * p, 1.0) if p < 1 else (1.0, p)
        digits.append(digit)
    packed_bits, tied = np.zeros(count, dtype=np.uint64), np.full(count, ~np.uint64(0))
    # A random bit says whether the next digits of the uniform number and of p are equal.  If they
    # differ, the number is below p exactly if the digit of p is 1.
    equal_digits = rng.integers(0, 2**64, (len(digits), count), dtype=np.uint64)
    for digit, equal_digit in zip(digits, equal_digits, strict=True):
        if digit:
            packed_bits |= tied & ~equal_digit
        tied &= equal_digit
    undecided = np.flatnonzero(tied)
    if p > 0 and undecided.size:
        packed_bits[undecided] |= tied[undecided] & bernoulli_words(p, undecided.size, rng)
    return packed_bits


def bernoulli_between(bounds: Bounds, shape: tuple[int, ...], rng: np.random.Generator) -> Bits:
    """Return bits that are 1 with exactly the probability p in (0, 1) that ``bounds`` closes in on.

    ``bounds(digits)`` returns two fractions around p, computed with this number of decimal digits.
    64 binary digits of a uniform number decide, unless p may have the same: then more digits of
    both do.
    """
    # 64 binary digits are 19.3 decimal ones.  Bounds of about twice as many digits seldom lie on
    # two sides of a uniform number; the number of digits decides the speed alone.
    low, high = bounds(40)
    uniform_words = rng.integers(0, 2**64, math.prod(shape), np.uint64)
    bits = uniform_words < np.uint64(math.floor(low * 2**64))
    last_word = np.uint64(math.ceil(high * 2**64) - 1)  # the last word that may lie below p
    for i in np.flatnonzero(~bits & (uniform_words <= last_word)):
        bits[i] = _is_below(int(uniform_words[i]), bounds, rng)
    return bits.reshape(shape)


def _is_below(digits: int, bounds: Bounds, rng: np.random.Generator) -> bool:
    """Return whether a uniform number with these 64 first binary digits is below p.

    Each round adds 64 binary digits to the number, and 20 decimal digits to the bounds of p.
    """
    length, precision = 64, 40
    while True:
        low, high = bounds(precision)
        if Fraction(digits + 1, 1 << length) <= low:
            return True
        if Fraction(digits, 1 << length) >= high:
            return False
        digits = (digits << 64) | int(rng.integers(0, 2**64, 1, np.uint64)[0])
        length, precision = length + 64, precision + 20
