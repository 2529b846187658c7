"""Staircase noise on a number: the smallest expected error of all pure mechanisms.

The density of the noise is constant on stretches and falls on both sides of 0.  A *stair* is as
wide as the sensitivity and has two parts.  From its *upper part*, which is nearer to 0, to its
lower part the density falls by the factor e^-epsilon, and the next stair begins at the density of
the lower part.  With exact arithmetic a stair is a whole number of cells of a grid
(`rounding_grid`).

References: Geng & Viswanath (2014), Theorem 2.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.domains import POSITIVE, Interval
from accountant.errors import ParameterError
from accountant.losses.finite_pair import PairLoss, response_pair
from accountant.numerics import Array
from accountant.numerics.rounding import round_up_ratio
from accountant.randomness import Rng, generator
from mechanisms.base import (
    EXACT,
    IDEALISED,
    RealLine,
    Reals,
    arithmetic_field,
    declare,
    draw_shape,
    param,
)
from mechanisms.exact_noise import rounding_grid as grid
from mechanisms.exact_noise.integer_staircase import IntegerStaircase
from mechanisms.families.additive import AdditiveNoise

BEST, LEAST_VARIANCE = "best", "least variance"


@dataclass(frozen=True, slots=True)
class ShareOrBest:
    """Shares from ``low`` to ``high``, or the words that stand for a best one."""

    low: float
    high: float

    def check(self, argument: str, value: object) -> float | str:
        """Return the share or the words."""
        if isinstance(value, str) and value in (BEST, LEAST_VARIANCE):
            return value
        return Interval(self.low, self.high).check(argument, value)

    def best(self, word: str, fall: float) -> float:
        """Return the share that a word stands for, of stairs that fall by ``exp(-fall)``."""
        b = math.exp(-fall)
        if word == BEST:  # Geng & Viswanath (2014), Theorem 3
            share = math.sqrt(b) / (1 + math.sqrt(b))
        else:  # their Theorem 4: ((b - 2b^2 + 2b^4 - b^5) / 2)^(1/3) / (1 - b)^2 - b / (1 - b),
            # where b - 2b^2 + 2b^4 - b^5 = b (1 - b)^3 (1 + b)
            share = (math.cbrt(b * (1 + b) / 2) - b) / -math.expm1(-fall)
        return min(max(share, self.low), self.high)

    def __str__(self) -> str:
        return str(Interval(self.low, self.high))


SHARE = ShareOrBest(1e-9, 1 - 1e-9)  # both parts of a stair keep many cells of the grid


@final
@declare
class Staircase(AdditiveNoise):
    """Noise whose density falls in stairs, each by the factor ``exp(-sensitivity / scale)``.

    A stair is ``sensitivity`` wide: its upper part comes first, a share ``upper`` of the width.

    Examples
    --------
    >>> from mechanisms import Staircase
    >>> one = Staircase(scale=2.0)
    >>> round(float(one.release(10.0, rng=0)), 4)
    7.5212
    >>> round(one.loss.pure, 6)
    0.5
    """

    releases: ClassVar[str] = "a number"
    statistic: ClassVar[str | None] = "sum"
    reference: ClassVar[str] = "Geng & Viswanath (2014), Theorem 2"
    limits: ClassVar[str] = (
        "idealised: low-order bits leak; exact: the time of a draw varies; "
        "each coordinate of a vector would cost a stair"
    )

    scale: float = param(
        POSITIVE,
        "noise scale, in the units of the query",
        typical=(1.0,),
        knob=True,
    )
    sensitivity: float = param(POSITIVE, "sensitivity of the number", typical=(1.0,), default=1.0)
    # The first typical share is the best one at epsilon 1.
    upper: float = param(
        SHARE,
        "share of a stair that is its upper part; 'best': the least expected error, "
        "'least variance': the least of squares",
        typical=(0.3775406687981454, 0.8),
        default=BEST,
    )
    arithmetic: str = arithmetic_field(EXACT, IDEALISED)

    def __post_init__(self) -> None:
        declared: Any = self.upper
        if isinstance(declared, str) and declared in (BEST, LEAST_VARIANCE):
            scale = POSITIVE.check("Staircase.scale", self.scale)
            fall = POSITIVE.check("Staircase.sensitivity", self.sensitivity) / scale
            object.__setattr__(self, "upper", SHARE.best(declared, fall))
        AdditiveNoise.__post_init__(self)

    def with_noise_factor(self, factor: float) -> Staircase:
        """Return the same noise times ``factor``; a best share stays the best of its kind."""
        changed = AdditiveNoise.with_noise_factor(self, factor)
        word: Any
        for word in (BEST, LEAST_VARIANCE):
            if self.upper == SHARE.best(word, self.sensitivity / self.scale):
                changed = dataclasses.replace(changed, upper=word)
        return changed

    def release(self, value: ArrayLike, rng: Rng = None, size: int | None = None) -> Any:
        """Return the value plus noise; see `Mechanism.release`."""
        real, source = self.values.check(value), generator(rng)
        shape = draw_shape(size, real.shape)
        if self.arithmetic is EXACT:
            noise = self._grid_steps.draw(math.prod(shape), source).reshape(shape)
            return grid.add_steps(real, grid.grid_exponent(self._coarser), noise, middle=True)
        # Algorithm 1 of Geng & Viswanath: a stair, its upper or lower part, a position and a sign.
        fall = self._log_ratio
        stair = source.geometric(-math.expm1(-fall), shape) - 1.0
        lower = source.random(shape) >= self.upper / (
            self.upper + (1 - self.upper) * math.exp(-fall)
        )
        inside = source.random(shape)
        position = np.where(lower, self.upper + (1 - self.upper) * inside, self.upper * inside)
        sign = 1 - 2.0 * source.integers(0, 2, shape)
        return real + sign * (stair + position) * self.sensitivity

    def noise_centre(self, value: ArrayLike) -> Any:
        """Return the value, or with exact arithmetic its grid point."""
        if self.arithmetic is EXACT:
            return grid.round_to_grid(np.asarray(value, dtype=float), self._coarser)
        return value

    def terms(self, output: ArrayLike, value: ArrayLike) -> Array:
        """Return the logarithm of the density at ``output - value``."""
        distance = np.abs(np.subtract(output, self.noise_centre(value))) / self.drawn_stair
        stair = np.floor(distance)
        falls = stair + (distance - stair >= self.drawn_upper)
        terms: Array = math.log(self._top_density) - falls * self._log_ratio
        return terms

    @property
    def drawn_stair(self) -> float:
        """The width of a stair as it is drawn: with exact arithmetic a whole number of cells."""
        if self.arithmetic is EXACT:
            return self._grid_steps.stair * grid.grid_step(self._coarser)
        return self.sensitivity

    @property
    def drawn_upper(self) -> float:
        """The share of a stair that is its upper part, as it is drawn."""
        if self.arithmetic is EXACT:
            return self._grid_steps.upper / self._grid_steps.stair
        return self.upper

    @property
    def drawn_numbers(self) -> dict[str, Any]:
        """The stair that is drawn, its upper part as a fraction, and how the density falls."""
        if self.arithmetic is EXACT:
            law, step = self._grid_steps, grid.grid_step(self._coarser)
            return {
                "drawn_scale": self.drawn_stair,
                "step": step,
                "width": law.width,
                "top": law.upper,
                "stair": law.stair,
            }
        top, stair = self.upper.as_integer_ratio()
        return {"drawn_scale": self.sensitivity, "step": 0.0, "top": top, "stair": stair}

    @property
    def drawn_tables(self) -> list[dict[str, Any]]:
        """The share of the first level, and the table of the levels below."""
        return self._grid_steps.tables if self.arithmetic is EXACT else []

    @property
    def _coarser(self) -> float:
        """The larger of scale and sensitivity; the grid divides it into 2^40 to 2^41 cells."""
        return max(self.scale, self.sensitivity)

    @property
    def _grid_steps(self) -> IntegerStaircase:
        return _steps_of_grid(self.scale, self.sensitivity, self.upper, self._coarser)

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise."""
        # |noise| is the width of a stair times S + U, with the number S of the stair, which is
        # geometric, and the place U on it, which is independent of S.
        b, g = math.exp(-self._log_ratio), self.drawn_upper
        stair, stair_2 = b / (1 - b), b * (1 + b) / (1 - b) ** 2
        share = g / (g + (1 - g) * b)
        position_mean = share * g / 2 + (1 - share) * (1 + g) / 2
        position_square = share * g**2 / 3 + (1 - share) * (1 + g + g**2) / 3
        return self.drawn_stair * math.sqrt(stair_2 + 2 * stair * position_mean + position_square)

    def error_quantile(self, probability: float) -> float:
        """Return the error that the noise stays within, with a probability.

        Parameters
        ----------
        probability : float
            In (0, 1).

        Returns
        -------
        float
            In the units of the value; rounded up.
        """
        # |noise| is the width of a stair times S + U, as in `deviation`.  The probability of more
        # than S + U stairs is b^(S + 1) + (1 - b) b^S P(U' > U).
        b, g = math.exp(-self._log_ratio), self.drawn_upper
        log_rest = math.log1p(-probability)
        stair = math.floor(-log_rest / self._log_ratio)
        beyond = (math.exp(log_rest + stair * self._log_ratio) - b) / (1 - b)  # P(U' > U)
        share = g / (g + (1 - g) * b)
        lower_mass = 1 - share
        position = (
            (1 - beyond) / share * g
            if beyond >= lower_mass
            else 1 - max(beyond, 0.0) / lower_mass * (1 - g)
        )
        quantile = self.drawn_stair * (stair + min(max(position, 0.0), 1.0))
        step = grid.grid_step(self._coarser) if self.arithmetic is EXACT else 0.0
        return quantile * (1 + 1e-11) + step

    @classmethod
    def _closed_form(cls, epsilon: float, delta: float, fields: Any) -> float | None:
        return None if delta else fields.sensitivity / epsilon

    @property
    def loss(self) -> PairLoss:
        """The loss of three outcomes: the likelihood ratio is e^fall, 1 or e^-fall.

        The fall is the logarithm of the factor by which the density falls from stair to stair.
        """
        if not 1e-4 <= self.sensitivity / self.scale <= 100:
            allowed = "between a hundredth and 10,000 times the sensitivity"
            raise ParameterError("Staircase.scale", self.scale, allowed)
        # The values are one stair apart.  To the left of both the density of the left one is e^fall
        # times the other: half of its mass.  Between them it is so on the narrower of the two parts
        # of a stair only, where its density is the highest.
        narrower_part = min(self.drawn_upper, 1 - self.drawn_upper)
        greater_mass = 0.5 + self._top_density * narrower_part * self.drawn_stair
        lesser_mass = greater_mass * math.exp(-self._log_ratio)
        # The masses are moved apart by 16 units in their last place, for their round-off, and
        # `response_pair` allows for 48 more.
        return response_pair(greater_mass, lesser_mass, ulps=16.0)

    @property
    def values(self) -> Reals:
        """Single numbers."""
        return Reals(self.sensitivity, axes=0)

    @property
    def support(self) -> RealLine:
        """The real line, with the edges of the stairs' parts."""
        # Where the density has fallen by e^-40 it is below all rounding.
        stairs = np.arange(math.ceil(40 / self._log_ratio) + 1)
        edges = np.concatenate([stairs, stairs + self.drawn_upper]) * self.drawn_stair
        signed_edges = np.concatenate([-edges, edges])
        return RealLine(lambda value: float(self.noise_centre(value)) + signed_edges)

    @property
    def _log_ratio(self) -> float:
        if self.arithmetic is EXACT:
            return 1 / self._grid_steps.width
        return self.sensitivity / self.scale

    @property
    def _top_density(self) -> float:
        # (1 - e^-fall) / (2 sensitivity (upper + e^-fall (1 - upper)))
        share = self.drawn_upper + math.exp(-self._log_ratio) * (1 - self.drawn_upper)
        return -math.expm1(-self._log_ratio) / (2 * self.drawn_stair * share)


@functools.lru_cache(maxsize=64)  # every evaluation of a density asks for it
def _steps_of_grid(
    scale: float, sensitivity: float, share: float, coarser: float
) -> IntegerStaircase:
    """Return the staircase in whole cells of the grid."""
    # Rounding moves neighbours apart by less than one cell more.  So the stair is one cell wider
    # than the sensitivity, and epsilon stays.
    stair = math.floor(sensitivity / grid.grid_step(coarser)) + 1
    upper = min(max(round(share * stair), 1), stair - 1)
    return IntegerStaircase(stair, upper, round_up_ratio(scale, sensitivity))
