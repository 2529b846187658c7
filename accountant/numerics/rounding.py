"""Floats rounded towards privacy, by a few units in the last place.

A number that stands for a privacy loss is rounded up, because a larger one promises less.  One of
the four operations in floats errs by at most half a unit in the last place of its result.
"""

from __future__ import annotations

import functools
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np

from accountant.numerics import Array

ULP = 2.0**-52  # the distance from 1 to the next float, relative to 1
LARGEST_BELOW_ONE = 1 - ULP / 2
UNDERFLOW = 1e-290  # more than what products and sums lose in subnormal floats
MAX_EXPONENT = 700.0  # e^700 = 1e304 is a float, and so is e^-700
# Profiles are evaluated to this relative accuracy or better; answers are rounded by as much.
ACCURACY = 2.0**-36


def round_up(x: float, ulps: float = 4.0) -> float:
    """Return ``x`` raised by ``ulps`` units of relative size `ULP`; zeros and infinities stay.

    Callers that computed ``x`` by a formula pass enough units for its operations.
    """
    return x + abs(x) * ulps * ULP


def round_up_to_bits(x: float, bits: int) -> float:
    """Return the least number with ``bits`` significant binary digits that is not below ``x``.

    Zero, negative and infinite numbers stay.
    """
    if not 0 < x < math.inf:
        return x
    share, exponent = math.frexp(x)
    return math.ldexp(math.ceil(math.ldexp(share, bits)), exponent - bits)


def round_up_ratio(x: float, y: float) -> float:
    """Return the least float not below ``x / y`` whose shortest decimal is not below it either.

    Exact ratios stay.  The decimal counts because `Basic` adds numbers as they are printed.
    """
    ratio = float(x) / float(y)  # a float of numpy prints its type
    if not 0 < ratio < math.inf:
        return ratio
    # Floats are fractions of integers, which are compared exactly.
    (a, a_under), (b, b_under) = (float(v).as_integer_ratio() for v in (x, y))
    for number in (ratio, Decimal(repr(ratio))):
        r, r_under = number.as_integer_ratio()
        if r * b * a_under < a * r_under * b_under:
            return math.nextafter(ratio, math.inf)
    return ratio


@functools.lru_cache(maxsize=4096)  # a profile asks several times for its largest loss
def round_up_printed_ratio(x: float, y: float) -> float:
    """Return a float above 0 not below ``x / y``, both of the floats and of what they print."""
    ratio, printed = round_up_ratio(x, y), Fraction(repr(float(x))) / Fraction(repr(float(y)))
    while ratio < math.inf and Fraction(repr(ratio)) < printed:
        ratio = math.nextafter(ratio, math.inf)
    return ratio


def round_up_product(x: float, y: float) -> float:
    """Return the least float that is not below ``x y``, both at least 0; exact products stay."""
    product = x * y
    if not math.isfinite(product):
        return product
    (r, r_under), (a, a_under), (b, b_under) = (
        float(v).as_integer_ratio() for v in (product, x, y)
    )
    if r * a_under * b_under >= a * b * r_under:
        return product
    return math.nextafter(product, math.inf)


def round_up_square(x: float, divisor: float) -> float:
    """Return ``x^2 / divisor`` rounded up: 0 for 0 alone, infinite where it overflows."""
    if x == 0:
        return 0.0
    return max(round_up(x * x / divisor), 1e-300) if x < 1e150 else math.inf


def round_up_sum(total: Array, size: Array) -> Array:
    """Return ``total`` plus a few units in the last place of 1 and of its terms' ``size``."""
    result: Array = total + 4 * ULP * (1 + np.abs(size) + np.abs(total))
    return result
