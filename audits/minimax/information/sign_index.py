"""Vectors of signs and their numbers: the bits of an integer of any size are the signs.

A hard family whose points are all vectors of signs has 2^dimension points, more than a float can
count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from accountant.errors import ParameterError
from accountant.numerics import Array


def power_of_two(bits: int) -> float:
    """``2^bits``, or a float below it if it is too large for a float."""
    return 2.0 ** min(bits, 990)


def signs_of(which: int, dimension: int) -> Array:
    """Bits of a number as signs, the lowest bit last; 1 is +1."""
    which = WholeBelow(dimension).check(which)
    bits = np.frombuffer(which.to_bytes(-(-dimension // 8), "big"), dtype=np.uint8)
    signs: Array = 2 * np.unpackbits(bits)[-dimension:].astype(float) - 1
    return signs


def index_of_signs(estimate: Array, dimension: int) -> int:
    """The number whose bits are the signs of an estimate; the inverse of `signs_of`."""
    values = np.asarray(estimate, dtype=float)
    if values.shape != (dimension,):
        raise ParameterError("estimate", f"shape {values.shape}", f"shape ({dimension},)")
    padded = np.concatenate([np.zeros(-dimension % 8, dtype=bool), values > 0])
    return int.from_bytes(np.packbits(padded).tobytes(), "big")


@dataclass(frozen=True, slots=True)
class WholeBelow:
    """The integers from 0 to 2^bits - 1, which may be larger than any float."""

    bits: int

    def check(self, which: object) -> int:
        """The number, or `ParameterError`."""
        allowed = f"a whole number from 0 to 2^{self.bits} - 1"
        if isinstance(which, (bool, np.bool_)) or not isinstance(which, (int, np.integer)):
            raise ParameterError("which", which, allowed)
        if not 0 <= int(which) < 1 << self.bits:
            raise ParameterError("which", which, allowed)
        return int(which)
