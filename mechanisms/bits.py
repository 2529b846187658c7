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
