"""Staircase noise on the integers, whose law is exact, given ideal random words.

An integer k stands for the cell from k to k + 1.  On each side of 0 the first level has ``upper``
cells of one probability; each further level has ``stair`` cells, and their probability is that of
the level before times e^(-1 / width).

References: Geng & Viswanath (2014), on cells of one step.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np

from mechanisms.exact_noise.exact_bernoulli import bernoulli_between
from mechanisms.exact_noise.exponential_coins import exponential_bounds
from mechanisms.exact_noise.integer_noise import IntegerArray, IntegerNoise


@final
@dataclass(frozen=True, slots=True)
class IntegerStaircase:
    """Cells from k to k + 1, alike on both sides of 0, whose probabilities fall in steps.

    The first ``upper`` cells of a side have the highest probability, and every ``stair`` cells
    after them that of the ones before times ``e^(-1 / width)``.
    """

    stair: int
    upper: int
    width: float

    def draw(self, size: int, rng: np.random.Generator) -> IntegerArray:
        """Return ``size`` independent draws."""
        # The number of levels below the first is geometric, with an independent fair sign.
        signed = IntegerNoise(self.width, 1, cells=True).draw(size, rng)
        in_first_level = bernoulli_between(self.first_level, (size,), rng)
        inside = rng.integers(0, self.stair, size)
        top = np.flatnonzero(in_first_level)
        inside[top] = rng.integers(0, self.upper, top.size)
        negative = signed < 0
        below = np.where(negative, ~signed, signed)
        k = inside + np.where(in_first_level, 0, self.upper + self.stair * below)
        noise: IntegerArray = np.where(negative, ~k, k)
        return noise

    def first_level(self, digits: int) -> tuple[Fraction, Fraction]:
        """Return two fractions with the probability of the first level between them."""
        return _first_level(self.stair, self.upper, self.width, digits)

    @property
    def tables(self) -> list[dict[str, Any]]:
        """The share of the first level between two fractions, and the table of the levels below."""
        low, high = (list(bound.as_integer_ratio()) for bound in self.first_level(40))
        top_table = {
            "table": "IntegerStaircase",
            "stair": self.stair,
            "top": self.upper,
            "width": self.width,
            "low": low,
            "high": high,
        }
        return [top_table, IntegerNoise(self.width, 1, cells=True).table]

    def level(self, k: int) -> int:
        """Return how often the probability of cell k has fallen."""
        return (max(k, -1 - k) - self.upper) // self.stair + 1


@functools.lru_cache(maxsize=256)
def _first_level(stair: int, upper: int, width: float, digits: int) -> tuple[Fraction, Fraction]:
    # With b = e^(-1 / width) and cells of the first level of weight 1, that level has the weight
    # ``upper``, and all further levels together have stair b / (1 - b).
    low, high = exponential_bounds(1 / Fraction(width), digits)
    low_share, high_share = (upper * (1 - b) / (upper * (1 - b) + stair * b) for b in (high, low))
    return low_share, high_share
