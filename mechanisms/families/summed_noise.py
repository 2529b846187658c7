"""The base of mechanisms whose integer noise is a sum of the shares of many clients.

References: Kairouz, Liu & Steinke (2021).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from accountant.losses.loss import Loss
from accountant.losses.summed_noise import SummedNoise, SummedNoiseLoss, loss_of_summed_noise
from accountant.numerics import Array
from accountant.randomness import Rng, generator
from mechanisms.base import EXACT, Arithmetic, Integers, Lattice, draw_shape
from mechanisms.families.additive import AdditiveNoise


class SummedIntegerNoise(AdditiveNoise):
    """Noise of a `SummedNoise` law, added to a whole number or to each coordinate of a vector.

    A subclass has ``sensitivity`` and ``dimension``, and defines `noise` and `draw_noise`.
    """

    __slots__ = ()
    releases = "a whole number or a vector of them"
    dimension: int

    @property
    @abstractmethod
    def noise(self) -> SummedNoise:
        """The law of the noise in one coordinate."""

    @abstractmethod
    def draw_noise(self, size: int, rng: np.random.Generator) -> Any:
        """Return independent draws of the noise.

        Parameters
        ----------
        size : int
            Number of draws.
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        numpy.ndarray
            Of 64-bit integers.
        """

    def release(self, value: ArrayLike, rng: Rng = None, size: int | None = None) -> Any:
        """Return the value plus noise; see `Mechanism.release`."""
        integers, source = self.values.check(value), generator(rng)
        shape = draw_shape(size, integers.shape)
        return (integers + self.draw_noise(math.prod(shape), source).reshape(shape))[()]

    def terms(self, output: ArrayLike, value: ArrayLike) -> Array:
        """Return the logarithm of the probability of the noise in every coordinate."""
        return self.noise.log_mass(np.subtract(output, value))

    @property
    def deviation(self) -> float:
        """The standard deviation, or an upper bound of it."""
        return math.sqrt(self.noise.variance)

    def error_quantile(self, probability: float) -> float:
        """Return the error that the noise stays within, with a probability.

        Parameters
        ----------
        probability : float
            In (0, 1).

        Returns
        -------
        float
            A whole number, an upper bound.
        """
        return self.noise.error_quantile(probability)

    @property
    def loss(self) -> Loss:
        """The smallest known loss for the declared sensitivity and dimension; see the class."""
        return loss_of_summed_noise(self.noise, self.sensitivity, self.dimension)

    @property
    def loss_is_upper_bound(self) -> bool:
        """Whether the loss is a bound, and not that of one pair with all outcomes listed."""
        return not isinstance(self.loss, SummedNoiseLoss)

    @property
    def why_no_formula(self) -> str:
        """The text for a loss that is a bound, as there are too many outcomes to list."""
        return "a Gaussian bound, which no pair attains" if self.loss_is_upper_bound else ""

    def worst_pair(self, epsilon: float = 0.0) -> tuple[Any, Any]:
        """Return two numbers one sensitivity apart, or vectors that differ so in one coordinate."""
        del epsilon
        return self._pair_at_distance(math.floor(self.sensitivity))

    @property
    def values(self) -> Integers:
        """Integers, or vectors of the declared length."""
        axes = 1 if self.dimension > 1 else 0  # a declared dimension of 1 means numbers
        return Integers(self.sensitivity, axes=axes, dimension=self.dimension)

    @property
    def support(self) -> Lattice:
        """The integers; those farther from the value have a mass below 1e-30."""
        return Lattice(self.noise.distance_of_tail(1e-30))

    @property
    def arithmetic(self) -> Arithmetic:
        """EXACT: the noise and the sum are integers."""
        return EXACT
