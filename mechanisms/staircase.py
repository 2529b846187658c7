"""Staircase noise on a number: the smallest expected error of all pure mechanisms.

References: Geng & Viswanath (2014), Theorem 2.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.domains import POSITIVE, Interval
from accountant.errors import ParameterError
from accountant.losses.finite_pair import PairLoss, response_pair
from accountant.numerics import Array
from accountant.randomness import Rng, generator
from mechanisms.base import IDEALISED, RealLine, Reals, arithmetic_field, declare, draw_shape, param
from mechanisms.families.additive import AdditiveNoise


@final
@declare
class Staircase(AdditiveNoise):
    """Noise whose density falls in steps, each by the factor ``exp(-sensitivity / scale)``.

    Every step is ``sensitivity`` wide: its upper part comes first, a share ``upper`` of the width.

    Examples
    --------
    >>> from mechanisms import Staircase
    >>> one = Staircase(scale=2.0)
    >>> round(float(one.release(10.0, rng=0)), 4)
    12.0205
    >>> round(one.loss.pure, 6)
    0.5
    """

    releases: ClassVar[str] = "a number"
    reference: ClassVar[str] = "Geng & Viswanath (2014), Theorem 2"
    limits: ClassVar[str] = "low-order bits leak; each coordinate of a vector would cost a stair"

    scale: float = param(
        POSITIVE, "noise scale, in the units of the query", typical=(1.0,), knob=True,
    )  # fmt: skip
    sensitivity: float = param(POSITIVE, "sensitivity of the number", typical=(1.0,), default=1.0)
    # 1 / (1 + e^{eps / 2}) has the least expected absolute error; typical: at epsilon 1
    upper: float = param(
        Interval(1e-9, 1 - 1e-9), "share of a stair that is its upper part",
        typical=(0.3775406687981454, 0.8), default=0.5,
    )  # fmt: skip
    arithmetic: str = arithmetic_field(IDEALISED)

    def release(self, value: ArrayLike, rng: Rng = None, size: int | None = None) -> Any:
        """Return the value plus noise; see `Mechanism.release`."""
        real, source = self.values.check(value), generator(rng)
        shape = draw_shape(size, real.shape)
        # a stair, its upper or lower part, a place inside and a sign (their Algorithm 1)
        fall = self._log_ratio
        stair = source.geometric(-math.expm1(-fall), shape) - 1.0
        lower = source.random(shape) >= self.upper / (
            self.upper + (1 - self.upper) * math.exp(-fall)
        )
        inside = source.random(shape)
        place = np.where(lower, self.upper + (1 - self.upper) * inside, self.upper * inside)
        sign = 1 - 2.0 * source.integers(0, 2, shape)
        return real + sign * (stair + place) * self.sensitivity

    def terms(self, output: ArrayLike, value: ArrayLike) -> Array:
        """Return the logarithm of the density's step at ``output - value``."""
        distance = np.abs(np.subtract(output, value)) / self.sensitivity
        stair = np.floor(distance)
        steps = stair + (distance - stair >= self.upper)
        terms: Array = math.log(self._top_density) - steps * self._log_ratio
        return terms

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise."""
        # |noise| = sensitivity (S + U): a geometric stair S and an independent place U on it
        b, g = math.exp(-self._log_ratio), self.upper
        stair, stair_2 = b / (1 - b), b * (1 + b) / (1 - b) ** 2
        share = g / (g + (1 - g) * b)
        place = share * g / 2 + (1 - share) * (1 + g) / 2
        place_2 = share * g**2 / 3 + (1 - share) * (1 + g + g**2) / 3
        return self.sensitivity * math.sqrt(stair_2 + 2 * stair * place + place_2)

    @property
    def loss(self) -> PairLoss:
        """The loss of three outcomes: a step up, level, a step down."""
        if not 1e-4 <= self._log_ratio <= 100:
            allowed = "between a hundredth and 10,000 times the sensitivity"
            raise ParameterError("Staircase.scale", self.scale, allowed)
        # left of both values the density is e^fall times the other's, and between them on the
        # narrower of the two parts of a stair
        narrow = min(self.upper, 1 - self.upper)
        up_a_step = 0.5 + self._top_density * narrow * self.sensitivity
        return response_pair(up_a_step, up_a_step * math.exp(-self._log_ratio), 16.0)

    @property
    def values(self) -> Reals:
        """Numbers."""
        return Reals(self.sensitivity, axes=0)

    @property
    def support(self) -> RealLine:
        """The real line, with the edges of the steps."""
        # forty falls of e^-1 are below all rounding
        stairs = np.arange(math.ceil(40 / self._log_ratio) + 1)
        edges = np.concatenate([stairs, stairs + self.upper]) * self.sensitivity
        return RealLine(lambda value: value + np.concatenate([-edges, edges]))

    @property
    def _log_ratio(self) -> float:
        return self.sensitivity / self.scale

    @property
    def _top_density(self) -> float:
        # (1 - e^-fall) / (2 sensitivity (upper + e^-fall (1 - upper)))
        share = self.upper + math.exp(-self._log_ratio) * (1 - self.upper)
        return -math.expm1(-self._log_ratio) / (2 * self.sensitivity * share)
