"""Staircase noise on the integers, whose law is exact, given ideal random words.

Staircase noise has a density that is constant on stretches and falls by one factor from each level
to the next, alike on both sides of 0.  Here every stretch is a whole number of cells of a grid.

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
    """A law of cells k, each from k to k + 1, whose probabilities fall in steps.

    The cells k and -1 - k have the same probability.  On each side of 0 the first ``upper`` cells
    have the highest probability p.  They are the first level; each further level has ``stair``
    cells, and each of these has the probability of a cell of the level before times
    ``b = e^(-1 / width)``.  The first level is no longer than another: ``1 <= upper <= stair``.
    """

    stair: int  # cells of each level but the first
    upper: int  # cells of the first level, on each side of 0: the upper part of a stair
    width: float  # 1 / width is the logarithm of the factor from each level to the next

    def draw(self, size: int, rng: np.random.Generator) -> IntegerArray:
        """Return ``size`` independent draws."""
        # Below the first level, the number of levels is geometric with ratio b, and the sign is an
        # independent fair coin: `IntegerNoise` on cells draws both, as n or ~n = -1 - n.  (Its
        # power 1 is Laplace noise.)
        signed = IntegerNoise(self.width, power=1, cells=True).draw(size, rng)
        in_first_level = bernoulli_between(self.first_level, (size,), rng)
        inside = rng.integers(0, self.stair, size)
        top = np.flatnonzero(in_first_level)
        inside[top] = rng.integers(0, self.upper, top.size)
        negative = signed < 0
        lower_level = np.where(negative, ~signed, signed)
        k = inside + np.where(in_first_level, 0, self.upper + self.stair * lower_level)
        noise: IntegerArray = np.where(negative, ~k, k)
        return noise

    def first_level(self, digits: int) -> tuple[Fraction, Fraction]:
        """Return two fractions with the probability of the first level between them.

        They are computed with this many decimal ``digits``.
        """
        return _first_level(self.stair, self.upper, self.width, digits)

    @property
    def tables(self) -> list[dict[str, Any]]:
        """The two tables of the draw: bounds on the first level's probability, and lower levels.

        They are plain numbers, for a proof that the draw has the law that is charged; 40 digits
        bound the probability far more narrowly than that needs.
        """
        low, high = (list(bound.as_integer_ratio()) for bound in self.first_level(40))
        top_table = {
            "table": "IntegerStaircase",
            "stair": self.stair,
            "top": self.upper,
            "width": self.width,
            "low": low,
            "high": high,
        }
        return [top_table, IntegerNoise(self.width, power=1, cells=True).table]

    def level(self, k: int) -> int:
        """Return the number of cell k's level, 0 for the first: how often the probability fell."""
        return (max(k, -1 - k) - self.upper) // self.stair + 1


@functools.lru_cache(maxsize=256)
def _first_level(stair: int, upper: int, width: float, digits: int) -> tuple[Fraction, Fraction]:
    """Return bounds on ``upper (1 - b) / (upper (1 - b) + stair b)``, the first level's share.

    With p = 1 for its cells, the first level has the mass ``upper`` on each side, and all further
    ones together have ``stair (b + b^2 + ...) = stair b / (1 - b)``.  The share falls in b.
    """
    low, high = exponential_bounds(1 / Fraction(width), digits)  # of b = e^(-1 / width)
    low_share, high_share = (upper * (1 - b) / (upper * (1 - b) + stair * b) for b in (high, low))
    return low_share, high_share
