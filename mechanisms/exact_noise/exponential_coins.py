"""Coins that show heads with probability ``exp(-energy)``, exactly, given ideal random words.

A float decides a coin only where an interval that contains the exact probability lies on one side
of the uniform number; otherwise decimals of growing precision decide, with fresh bits.

References: Canonne, Kamath & Steinke (2020) for exact coins of this probability.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accountant.numerics import Array

Bits = NDArray[np.bool_]
WordArray = NDArray[np.uint64]

# Bound on the relative error of ``c exp(-energy)`` in floats.  It is used where that is at least 1,
# so that energies are at most about 60.  With up to four roundings they contribute 60 * 4 * 2^-53,
# and an exponential is good to a few units of 2^-53; 2^-42 is several times their sum.
HEIGHT_ERROR = 2.0**-42


def random_words(size: int | None, rng: np.random.Generator) -> Any:
    """Return ``size`` random words of 64 bits; one number for None."""
    return rng.integers(0, 2**64, size, dtype=np.uint64)


def exponential_coins(
    words: WordArray,
    energies: Array,
    exact_energy: Callable[[int], Fraction],
    rng: np.random.Generator,
) -> Bits:
    """Return whether ``(word + uniform fraction) / 2^64`` is below ``exp(-energy)``, elementwise.

    The fraction stands for the further bits of a uniform number; they are drawn only where the
    first 64, the word, do not decide.  ``energies`` are floats: each ``exact_energy`` after two
    roundings.
    """
    position, height = words.astype(float), 2.0**64 * np.exp(-energies)
    heads, unsure = compare_to_height(position, height)
    for i in np.flatnonzero(unsure):
        heads[i] = below_exponential(int(words[i]), exact_energy(int(i)), Fraction(2**64), rng)
    return heads


def compare_to_height(position: Array, height: Array) -> tuple[Bits, Bits]:
    """Return where ``position`` plus a fraction is surely below the height, and where unsure.

    The fraction is any number in [0, 1).  The height has a relative error of at most
    `HEIGHT_ERROR`, unless it is smaller than the least float: so the position 0 is never surely
    above.
    """
    below = position + 1 <= height * (1 - HEIGHT_ERROR)
    unsure = ~below & ((position < height * (1 + HEIGHT_ERROR)) | (position == 0))
    return below, unsure


def below_exponential(
    position: int, energy: Fraction, height_at_zero: Fraction, rng: np.random.Generator
) -> bool:
    """Return whether ``position`` plus a uniform fraction is below ``height_at_zero exp(-energy)``.

    The decision is exact: 64 more bits of the fraction and 20 more decimal digits of the
    exponential are computed until the two intervals around them do not overlap.
    """
    fraction, bits, digits = 0, 0, 40
    while True:
        low, high = exponential_bounds(energy, digits)
        lower = position + Fraction(fraction, 1 << bits)
        if lower + Fraction(1, 1 << bits) <= height_at_zero * low:
            return True
        if lower >= height_at_zero * high:
            return False
        fraction = (fraction << 64) | int(random_words(1, rng)[0])
        bits, digits = bits + 64, digits + 20


def exponential_bounds(energy: Fraction, digits: int) -> tuple[Fraction, Fraction]:
    """Return two fractions with ``exp(-energy)`` between them; both are 1 at energy 0.

    They are decimals of this many significant ``digits``.
    """
    if energy == 0:
        return Fraction(1), Fraction(1)
    if energy > 16 * digits:
        # e^-energy is below 2^(-16 digits), far below the precision that was asked for.
        return Fraction(0), Fraction(1, 1 << (16 * digits))
    bounds = []
    # The lower bound takes the quotient rounded up, and the upper bound takes it rounded down.
    for rounding, step in ((ROUND_CEILING, "next_minus"), (ROUND_FLOOR, "next_plus")):
        context = Context(digits, rounding, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
        exponent = context.divide(Decimal(energy.numerator), Decimal(energy.denominator))
        # The exponential of decimal is rounded correctly, so its neighbour is a strict bound.
        value = getattr(context, step)(context.exp(context.minus(exponent)))
        bounds.append(max(Fraction(value), Fraction(0)))
    return bounds[0], bounds[1]
