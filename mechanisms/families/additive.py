"""What mechanisms that add noise to real numbers share."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from accountant.domains import IntegerRange
from accountant.numerics import Array
from mechanisms.base.mechanism import EXACT, Mechanism, sum_log_density
from mechanisms.base.supports import RealLine, Support
from mechanisms.base.values import Reals, Values
from mechanisms.exact_noise import rounding_grid as grid

DIMENSION = IntegerRange(1)


class AdditiveNoise(Mechanism):
    """Noise on every coordinate of a number or vector, whatever its value."""

    __slots__ = ()
    releases = "a number or vector"
    scale: float
    sensitivity: float

    @abstractmethod
    def terms(self, output: ArrayLike, value: ArrayLike) -> Array:
        """Log-density of every coordinate."""

    def log_density(self, output: ArrayLike, value: ArrayLike, each: bool = False) -> Array:
        """That of every coordinate, summed."""
        return sum_log_density(self.terms(output, value), np.ndim(value), each)

    def worst_pair(self, epsilon: float = 0.0) -> tuple[Any, Any]:
        """Two numbers one sensitivity apart, or vectors in one coordinate, whatever epsilon."""
        del epsilon
        return self._pair_at_distance(self.sensitivity)

    def _pair_at_distance(self, distance: float) -> tuple[Any, Any]:
        if self.value_axes == 1:
            return np.array([distance]), np.zeros(1, dtype=type(distance))
        return distance, type(distance)(0)

    def noise_centre(self, value: ArrayLike) -> Any:
        """Where the law of a release is centred."""
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

    def noise_centre(self, value: ArrayLike) -> Any:
        """The value, or its grid point."""
        if self.arithmetic is EXACT:
            return grid.round_to_grid(np.asarray(value, dtype=float), self.scale)
        return value

    @property
    def values(self) -> Values:
        """Arrays of any shape; of a declared length where every coordinate is rounded."""
        if self.arithmetic is EXACT:
            return Reals(self.sensitivity, min(self.dimension - 1, 1), self.dimension)
        return Reals(self.sensitivity)
