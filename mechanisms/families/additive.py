"""Base classes of mechanisms that add noise to real numbers, coordinate by coordinate.

`AdditiveNoise` is any such noise; `RealNoise` is continuous noise such as Laplace's or a
Gaussian's, either in floats or in exact arithmetic on a grid.

References: Dwork, McSherry, Nissim & Smith (2006).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from accountant.domains import IntegerRange, OrNone
from accountant.errors import PrivateValueError
from accountant.numerics import Array
from accountant.numerics.rounding import round_up, round_up_ratio
from mechanisms.base import EXACT, Mechanism, RealLine, Reals, Support, Values, sum_log_density
from mechanisms.exact_noise import rounding_grid as grid
from mechanisms.exact_noise.integer_noise import IntegerNoise

DIMENSION = IntegerRange(1)
ANY_DIMENSION = OrNone(DIMENSION)
Generator = np.random.Generator


class AdditiveNoise(Mechanism):
    """Noise added to every coordinate of a number or vector; it does not depend on the value.

    A subclass declares ``scale`` and ``sensitivity``, and defines ``loss``, ``release`` and
    `terms`.  The rest follows: the density of a vector is the product of its coordinates', and the
    worst pair of values is one sensitivity apart in one coordinate.
    """

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
        """Return a number, or a vector of one coordinate, and 0, this distance apart."""
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
    """Continuous noise, or exact noise on a grid to which values are rounded first.

    Its density is proportional to ``exp(-|x / scale|^power / power)``, and ``sensitivity`` is in
    the norm of order ``power``.

    A subclass sets ``power``, declares the field ``dimension`` next to those of `AdditiveNoise`,
    releases by `_exact_release` where its arithmetic is exact, and states the loss of noise of
    scale 1 at the distance `_shift`.
    """

    __slots__ = ()
    power: ClassVar[int]
    dimension: int | None

    @property
    def drawn_scale(self) -> float:
        """The scale of the noise as it is drawn for a number, or for the declared dimension."""
        return self.drawn_scale_of(1)

    def drawn_scale_of(self, coordinates: int) -> float:
        """Return the scale of the noise as it is drawn: exact noise is wider, as the grid moves.

        Parameters
        ----------
        coordinates : int
            Number of coordinates of the value; a declared ``dimension`` is used in its place.

        Returns
        -------
        float
            In the units of the value.

        Raises
        ------
        PrivateValueError
            If rounding all coordinates moves neighbours apart by more than the sensitivity.
        """
        if self.arithmetic is not EXACT:
            return self.scale
        most_coordinates = self.dimension or coordinates
        moved = self._rounding_moves(most_coordinates)
        if moved > self.sensitivity and self.dimension is None and most_coordinates > 1:
            allowed = f"arrays of fewer numbers; {type(self).__name__}(..., dimension=n) takes n"
            raise PrivateValueError("value", allowed)
        return grid.widened_scale(self.scale, self.sensitivity, moved)

    def _rounding_moves(self, coordinates: int) -> float:
        """Return how far rounding to the grid can move neighbours apart.

        Half a step at both ends of every coordinate, in the norm of the sensitivity.
        """
        return float(coordinates ** (1 / self.power) * grid.grid_step(self.scale))

    def rounded_quantile(self, quantile: float) -> float:
        """Return a quantile of the noise as one of the error, rounded up.

        Exact arithmetic rounds the value to the grid, by half a step, and a quantile of noise on
        the grid is at most a step above the one of continuous noise.

        Parameters
        ----------
        quantile : float
            Of the absolute noise, in the units of the value.

        Returns
        -------
        float
            In the units of the value.
        """
        step = grid.grid_step(self.scale) if self.arithmetic is EXACT else 0.0
        return quantile * (1 + 1e-12) + 1.5 * step

    @property
    def _shift(self) -> float:
        """Sensitivity over scale, rounded up; more where the noise is not widened."""
        if self.arithmetic is EXACT:
            # Wider noise pays for rounding, and for the round-off of this quotient
            # (`rounding_grid.widened_scale`).
            if self.drawn_scale > self.scale:
                return self.sensitivity / self.scale
            # The noise is not widened, so that rounding counts as sensitivity.  The 2^-80 pays for
            # discrete in place of continuous noise (docs/proofs/discrete.md, 4).
            moved = round_up(self.sensitivity + self._rounding_moves(self.dimension or 1))
            return round_up(moved / self.scale + 2.0**-80)
        return round_up_ratio(self.sensitivity, self.scale)

    @property
    def drawn_numbers(self) -> dict[str, Any]:
        """The scale of the noise, and the step of the grid or 0."""
        step = grid.grid_step(self.scale) if self.arithmetic is EXACT else 0.0
        return {"drawn_scale": self.drawn_scale, "step": step}

    @property
    def drawn_tables(self) -> list[dict[str, Any]]:
        """The table of the noise on the grid."""
        if self.arithmetic is not EXACT:
            return []
        width = math.ldexp(self.drawn_scale, -grid.grid_exponent(self.scale))
        return [IntegerNoise(width, power=self.power).table]

    def _exact_release(self, value: Array, rng: Generator, shape: tuple[int, ...]) -> Any:
        """Return the value on its grid plus exact noise, in the given shape."""
        wider = self.drawn_scale_of(value.size)
        return grid.add_grid_noise(value, self.scale, wider, self.power, rng, shape)

    def noise_centre(self, value: ArrayLike) -> Any:
        """Return the value, or with exact arithmetic its grid point."""
        if self.arithmetic is EXACT:
            return grid.round_to_grid(np.asarray(value, dtype=float), self.scale)
        return value

    @property
    def values(self) -> Values:
        """Arrays of any shape; vectors of at most ``dimension`` numbers where that is declared."""
        if self.dimension is None:
            return Reals(self.sensitivity)
        axes = 1 if self.dimension > 1 else 0  # a declared dimension of 1 means numbers
        return Reals(self.sensitivity, axes=axes, dimension=self.dimension)
