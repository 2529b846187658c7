"""A bounded number, reported as a random number from a piece of an interval around it, or outside.

The interval [-C, C] is wider than the range of the number.  A report is uniform on the piece of the
number with probability ``keep``, else uniform on the rest of the interval, and its expectation is
the number.

References: Wang et al. (2019), Algorithm 2.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accountant.domains import POSITIVE, Interval
from accountant.losses.finite_pair import PairLoss, response_pair
from accountant.numerics import Array
from accountant.randomness import Rng, generator
from mechanisms.base import (
    EXACT,
    IDEALISED,
    BoundedNumbers,
    RealLine,
    arithmetic_field,
    declare,
    draw_shape,
    param,
    sum_log_density,
)
from mechanisms.exact_noise.exact_bernoulli import bernoulli
from mechanisms.families.mean_oracle import MeanOracle, out_of_range

# A number is rounded to a multiple of radius / CENTRES, so by at most 2^-46 of the radius.
CENTRES = 1 << 45


@final
@declare
class PiecewiseUniform(MeanOracle):
    """Uniform on a piece around the value with probability ``keep``, else on the rest.

    Examples
    --------
    >>> from mechanisms import PiecewiseUniform
    >>> one = PiecewiseUniform(radius=1.0, keep=0.75)
    >>> one.release([0.5, -1.0], rng=0).round(4).tolist()
    [0.2665, -0.8771]
    >>> round(one.loss.pure, 4)
    2.1972
    """

    releases: ClassVar[str] = "a bounded number of each user, for its mean"
    reference: ClassVar[str] = "Wang et al. (2019), Algorithm 2"
    limits: ClassVar[str] = "idealised: low-order bits leak; exact: unbiased to 2^-46 of the radius"

    # In units of the radius and with e = keep / (1 - keep), which is e^(epsilon/2), outputs fill
    # [-C, C] with C = (e + 1) / (e - 1) = 1 / (2 keep - 1), the ``reach``.  The piece of the number
    # v is [l, l + C - 1] with l = ((C + 1) v - (C - 1)) / 2.  The rest is C + 1 wide.
    #
    # With exact arithmetic the interval is divided into cells of one width: `piece_cells` of them
    # are the piece and 2 CENTRES the rest.  The piece begins at one of 2 CENTRES + 1 cells, to
    # which the number is rounded.

    radius: float = param(POSITIVE, "largest absolute value of the number", typical=(1.0,))
    # At the typical value ln(keep / (1 - keep)) is 1/2 and epsilon 1.
    keep: float = param(
        Interval(0.5, 1.0, "()"),
        "probability of the piece around the number",
        typical=(0.6224593312018546,),
        knob=True,
    )
    larger: str = out_of_range("larger number")
    arithmetic: str = arithmetic_field(EXACT, IDEALISED)

    def release(self, value: ArrayLike, rng: Rng = None, size: int | None = None) -> Any:
        """Return one randomised report for every number; see `Mechanism.release`."""
        numbers, source = self.values.check(value), generator(rng)
        shape = draw_shape(size, numbers.shape)
        if self.arithmetic is EXACT:
            # A cell of the piece or of the rest is drawn, and its middle is reported.  The middle
            # of the interval, 0, is after half of all cells.
            piece, starts = piece_cells(self.keep), self._first_cells(numbers)
            in_piece = bernoulli(self.keep, shape, source)
            outside: Any = source.integers(0, 2 * CENTRES, shape)
            outside += piece * (outside >= starts)  # the piece is left out
            cell = np.where(in_piece, starts + source.integers(0, piece, shape), outside)
            return ((cell + 0.5 - (CENTRES + piece / 2)) * self._step)[()]
        low = self._piece_start(numbers)
        in_piece = source.random(shape) < self.keep
        uniform = source.random(shape)
        outside = uniform * (self.reach + 1) - self.reach
        outside += (self.reach - 1) * (outside > low)  # the piece is left out
        report = np.where(in_piece, low + uniform * (self.reach - 1), outside)
        return (np.clip(report, -self.reach, self.reach) * self.radius)[()]

    def log_density(self, output: ArrayLike, value: ArrayLike, each: bool = False) -> Array:
        """Return one constant on the piece and a lower one on the rest, summed."""
        numbers = self.values.check(value)
        low, at = self._piece_start(numbers), np.asarray(output, dtype=float) / self.radius
        width = self._piece_width
        heights = np.array([self.keep / width, (1 - self.keep) / (2 * self.reach - width)])
        log_inside, log_outside = np.log(heights) - np.log(self.radius)
        piece = (low <= at) & (at <= low + width)
        terms = np.where(
            piece, log_inside, np.where(np.abs(at) <= self.reach, log_outside, -np.inf)
        )
        return sum_log_density(terms, numbers.ndim, each)

    def variance(self, value: ArrayLike) -> Array:
        """Return ``v^2 / (e - 1) + radius^2 (e + 3) / (3 (e - 1)^2)`` (their Lemma 1)."""
        numbers = self.values.check(value)
        r = (1 - self.keep) / (2 * self.keep - 1)  # 1 / (e - 1)
        spread: Array = r * np.square(numbers) + r * (1 + 4 * r) / 3 * self.radius * self.radius
        return spread

    @property
    def reach(self) -> float:
        """The largest output, in units of the radius."""
        if self.arithmetic is EXACT:
            return (CENTRES + piece_cells(self.keep) / 2) * (self._step / self.radius)
        return 1 / (2 * self.keep - 1)

    @property
    def _piece_width(self) -> float:
        """The width of the piece, in units of the radius."""
        if self.arithmetic is EXACT:
            return piece_cells(self.keep) * (self._step / self.radius)
        return self.reach - 1

    @property
    def _step(self) -> float:
        """The width of a cell, at which the reports are unbiased."""
        return self.radius * relative_step(self.keep)

    def _first_cells(self, numbers: Array) -> NDArray[np.int64]:
        """Return the first cell of every number's piece, from 0 to ``2 CENTRES``."""
        return np.rint(numbers / self.radius * CENTRES).astype(np.int64) + CENTRES

    @classmethod
    def _closed_form(cls, epsilon: float, delta: float, fields: Any) -> float | None:
        del fields
        return None if delta else 1 / (1 + math.exp(-epsilon / 2))

    @property
    def loss(self) -> PairLoss:
        """The loss of three outcomes: the piece of one value, of the other, and the rest."""
        # The piece of the other value is a share (C - 1) / (C + 1) = (1 - keep) / keep of the rest.
        return response_pair(self.keep, (1 - self.keep) * (1 - self.keep) / self.keep)

    @property
    def drawn_numbers(self) -> dict[str, Any]:
        """The widths of the piece and of the rest, in a unit of length."""
        if self.arithmetic is EXACT:
            return {"piece": piece_cells(self.keep), "rest": 2 * CENTRES, "unit": self._step}
        # These differences are exact in floats, since keep is above 1/2.
        unit = self.radius / (2 * self.keep - 1)
        return {"piece": 2 * (1 - self.keep), "rest": 2 * self.keep, "unit": unit}

    def worst_pair(self, epsilon: float = 0.0) -> tuple[float, float]:
        """Return the two ends, whose pieces do not meet, for any epsilon."""
        del epsilon
        return self.radius, -self.radius

    @property
    def values(self) -> BoundedNumbers:
        """The numbers within the radius."""
        return BoundedNumbers(self.radius, self.larger == "clip")

    @property
    def support(self) -> RealLine:
        """The interval, divided at both ends of the piece."""

        def breakpoints(value: float) -> Array:
            low = float(self._piece_start(np.asarray(value)))
            cuts = np.array([-self.reach, low, low + self._piece_width, self.reach])
            return cuts * self.radius

        return RealLine(breakpoints)

    def _piece_start(self, numbers: Array) -> Array:
        """Return the lower end of the piece, in units of the radius."""
        if self.arithmetic is EXACT:
            middle = CENTRES + piece_cells(self.keep) / 2
            start: Any = (self._first_cells(numbers) - middle) * (self._step / self.radius)
            return np.asarray(start, dtype=float)
        low: Array = ((self.reach + 1) * (numbers / self.radius) - (self.reach - 1)) / 2
        return low


@functools.lru_cache(maxsize=256)
def piece_cells(keep: float) -> int:
    """Return the number of cells of a piece, rounded up so that other cells stay probable."""
    # A cell of the rest has the probability (1 - keep) / (2 CENTRES), a cell of the piece keep over
    # the number of its cells.  The ratio of the first to the second must not be below
    # ((1 - keep) / keep)^2 = e^-epsilon.
    return math.ceil(2 * CENTRES * (1 - Fraction(keep)) / Fraction(keep))


@functools.lru_cache(maxsize=256)
def relative_step(keep: float) -> float:
    """Return the width of a cell as a share of the radius."""
    # The middle of the piece is at (first cell - CENTRES) cells.  The mean of all cells is 0, so
    # that the mean of the rest is -piece / (2 CENTRES) times the middle of the piece.  Thus
    #     E report = (first cell - CENTRES) (keep - (1 - keep) piece / (2 CENTRES)) cells,
    # which is to be the number, (first cell - CENTRES) / CENTRES radii.
    slope = Fraction(keep) - (1 - Fraction(keep)) * Fraction(piece_cells(keep), 2 * CENTRES)
    return float(1 / (CENTRES * slope))
