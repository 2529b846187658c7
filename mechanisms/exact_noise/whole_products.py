"""A strategy matrix times values on a grid, in whole numbers: no rounding depends on the data.

Entries are rounded to 32 bits, and values to whole steps of a grid.  Both are cut into pieces so
short that floats add their products without rounding; Python's integers put the pieces together.
Proof: `docs/proofs/correlated_noise.md`.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accountant.correlated_noise.strategy import Strategy
from accountant.numerics import Array

# Bits of an entry of the matrix, and of its lower piece.  With more bits the rounded matrix is
# nearer to the matrix, and values are cut into more pieces.
ENTRY_BITS, PIECE_BITS = 31, 16
LARGEST_STEPS = 2.0**1000  # larger values, in steps, are clipped to it: no two values move apart
FLOAT_BITS = 52  # sums of whole numbers below 2^52 are exact in floats, in any order


def entry_exponent(strategy: Strategy) -> int:
    """Return F: entries are rounded to multiples of 2^-F, and the largest is about 2^31 2^-F."""
    return ENTRY_BITS - math.frexp(strategy.largest_entry)[1]


def product_in_steps(strategy: Strategy, values: Array, k: int) -> NDArray[Any]:
    """Return C times values, rounded to the grid of step 2^k, as Python's integers.

    The values are rounded to the grid first, and C to multiples of 2^-F: in between all is exact.
    """
    exponent = entry_exponent(strategy)
    with np.errstate(over="ignore"):
        remaining = np.clip(np.rint(np.ldexp(values, -k)), -LARGEST_STEPS, LARGEST_STEPS)
    # A sum over the columns of products of two pieces is below 2^52.
    bits = FLOAT_BITS - PIECE_BITS - strategy.columns.bit_length()
    total, shift = np.zeros((strategy.rows, *values.shape[1:]), dtype=object), 0
    while remaining.any():
        piece = np.fmod(remaining, 2.0**bits)
        remaining = (remaining - piece) * 2.0**-bits
        total += _piece_product(strategy, piece, exponent) * (1 << shift)
        shift += bits
    half = 1 << (exponent - 1) if exponent > 0 else 0
    rounded: NDArray[Any] = (total + half) >> exponent if exponent > 0 else total * (1 << -exponent)
    return rounded


def as_floats(steps: NDArray[Any], k: int) -> Array:
    """Return whole numbers of steps as the nearest floats, within the range of floats."""
    largest = sys.float_info.max
    if steps.dtype == object:
        floats = np.array([_float_of(number) for number in steps.flat]).reshape(steps.shape)
    else:
        floats = steps.astype(float)
    with np.errstate(over="ignore"):
        scaled: Array = np.clip(np.ldexp(floats, k), -largest, largest)
    return scaled


def _piece_product(strategy: Strategy, piece: Array, exponent: int) -> NDArray[Any]:
    """Return the rounded C, times 2^F, times whole numbers of few bits; F is ``exponent``."""

    def whole(entries: Array) -> Array:
        return np.rint(np.ldexp(entries, exponent))

    high = strategy.times(piece, lambda entries: np.floor(whole(entries) / 2.0**PIECE_BITS))
    low = strategy.times(piece, lambda entries: np.mod(whole(entries), 2.0**PIECE_BITS))
    products: NDArray[Any] = _integers(high) * (1 << PIECE_BITS) + _integers(low)
    return products


def _integers(floats: Array) -> NDArray[Any]:
    return floats.astype(np.int64).astype(object)


def _float_of(integer: int) -> float:
    try:
        return float(integer)
    except OverflowError:
        return sys.float_info.max if integer > 0 else -sys.float_info.max
