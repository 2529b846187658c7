"""Random bits that are exactly what they are said to be."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.bool_]
WORD = 2.0**-53


def bernoulli(p: float, shape: tuple[int, ...], rng: np.random.Generator) -> Bits:
    """Bits that are 1 with probability ``p``, exactly, given ideal random words.

    A uniform of 53 bits decides unless it is the one that ``p`` falls into; there a fresh
    uniform is compared with what is left of ``p``.
    """
    # p = (whole + rest) / 2^53: U = j / 2^53 is below p for j < whole, and j = whole is a coin
    whole = np.floor(p / WORD)
    rest = p / WORD - whole
    uniform = np.asarray(rng.random(shape))
    bits: Bits = np.empty(shape, dtype=bool)
    np.less(uniform, whole * WORD, out=bits)
    if rest > 0:
        edge = np.flatnonzero(uniform == whole * WORD)
        if edge.size:
            bits.reshape(-1)[edge] = bernoulli(float(rest), (edge.size,), rng)
    return bits


def bernoulli_words(p: float, count: int, rng: np.random.Generator) -> NDArray[np.uint64]:
    """Words of 64 bits that are 1 with probability ``p``, exactly, given ideal random words.

    A uniform is compared with ``p`` digit by binary digit, in all bits of all words at a time;
    words with a bit that is tied after eight digits go on with what is left of ``p``.
    """
    digits: list[float] = []
    while p > 0 and len(digits) < 8:  # every step is exact in floats; the digits of 1 are .111...
        digit, p = divmod(2 * p, 1.0) if p < 1 else (1.0, p)
        digits.append(digit)
    words, tied = np.zeros(count, dtype=np.uint64), np.full(count, ~np.uint64(0))
    # a random bit says whether the next digits are the same: if not, that of p decides
    same = rng.integers(0, 2**64, (len(digits), count), dtype=np.uint64)
    for digit, still in zip(digits, same, strict=True):
        if digit:
            words |= tied & ~still
        tied &= still
    left = np.flatnonzero(tied)
    if p > 0 and left.size:
        words[left] |= tied[left] & bernoulli_words(p, left.size, rng)
    return words
