"""Mechanisms that add noise to real numbers, coordinate by coordinate.

References: Dwork, McSherry, Nissim & Smith (2006).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from accountant.domains import IntegerRange
from accountant.numerics import Array
from accountant.numerics.rounding import round_up, round_up_ratio
from mechanisms.base import EXACT, Mechanism, RealLine, Reals, Support, Values, sum_log_density
from mechanisms.exact_noise import rounding_grid as grid

DIMENSION = IntegerRange(1)


class AdditiveNoise(Mechanism):
    """Noise added to every coordinate of a number or vector; it does not depend on the value."""

    __slots__ = ()
    releases = "a number or vector"
    scale: float
    sensitivity: float

    @abstractmethod
    def terms(self, output: ArrayLike, value: ArrayLike) -> Array:
        """Return the log-density of every coordinate.

        Parameters
        ----------
        output : array_like
            Outputs; further axes in front are independent draws.
        value : array_like
            Values, broadcast against the outputs.

        Returns
        -------
        numpy.ndarray
            Natural logarithms, one for every coordinate.
        """

    def log_density(self, output: ArrayLike, value: ArrayLike, each: bool = False) -> Array:
        """Return the log-densities of the coordinates, summed over the axes of a value."""
        return sum_log_density(self.terms(output, value), np.ndim(value), each)

    def worst_pair(self, epsilon: float = 0.0) -> tuple[Any, Any]:
        """Return two numbers one sensitivity apart, or vectors that differ so in one coordinate."""
        del epsilon
        return self._pair_at_distance(self.sensitivity)

    def _pair_at_distance(self, distance: float) -> tuple[Any, Any]:
        if self.value_axes == 1:
            return np.array([distance]), np.zeros(1, dtype=type(distance))
        return distance, type(distance)(0)

    def noise_centre(self, value: ArrayLike) -> Any:
        """Return the centre of the distribution of a release.

        Parameters
        ----------
        value : array_like
            A number or vector.

        Returns
        -------
        array_like
            The value itself, or the grid point it is rounded to.
        """
        return value

    @property
    def values(self) -> Values:
        """Arrays of any shape."""
        return Reals(self.sensitivity)

    @property
    def support(self) -> Support:
        """The real line."""
        return RealLine()


class RealNoise(AdditiveNoise):
    """Continuous noise, or exact noise on a grid to which values are rounded first."""

    __slots__ = ()
    dimension: int

    @property
    @abstractmethod
    def _rounding_moves(self) -> float:
        """The distance by which rounding to the grid can move neighbours apart."""

    @property
    def drawn_scale(self) -> float:
        """The scale of the noise as it is drawn: exact noise is wider, to make up for the grid."""
        if self.arithmetic is EXACT:
            return grid.widened_scale(self.scale, self.sensitivity, self._rounding_moves)
        return self.scale

    @property
    def _shift(self) -> float:
        """Sensitivity over scale, rounded up; more where a step of the grid is more than it."""
        if self.arithmetic is EXACT:
            if self.drawn_scale > self.scale:
                return self.sensitivity / self.scale
            moved = round_up(self.sensitivity + self._rounding_moves)
            return round_up(moved / self.scale + 2.0**-80)
        return round_up_ratio(self.sensitivity, self.scale)

    def noise_centre(self, value: ArrayLike) -> Any:
        """Return the value, or with exact arithmetic its grid point."""
        if self.arithmetic is EXACT:
            return grid.round_to_grid(np.asarray(value, dtype=float), self.scale)
        return value

    @property
    def values(self) -> Values:
        """Arrays of any shape; with exact arithmetic, of the declared length."""
        if self.arithmetic is EXACT:
            return Reals(self.sensitivity, min(self.dimension - 1, 1), self.dimension)
        return Reals(self.sensitivity)
