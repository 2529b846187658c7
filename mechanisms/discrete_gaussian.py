"""Discrete Gaussian noise for integers, with exact draws.

The noise is an integer k with probability proportional to exp(-k^2 / (2 scale^2)).  No
floating-point error of a draw changes these probabilities, which the loss assumes.

References: Canonne, Kamath & Steinke (2020); proofs in docs/proofs/discrete.md.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.domains import POSITIVE
from accountant.losses.discrete_gaussian import (
    DiscreteGaussianLoss,
    discrete_gaussian_loss,
    normaliser,
)
from accountant.losses.loss import Loss
from accountant.losses.summed_noise import DiscreteGaussianSum
from accountant.numerics import Array
from accountant.randomness import Rng, generator
from mechanisms.base import EXACT, Arithmetic, Integers, Lattice, declare, draw_shape, param
from mechanisms.discrete_laplace import INTEGER_NOISE_SCALE
from mechanisms.exact_noise.integer_noise import IntegerNoise
from mechanisms.families.additive import DIMENSION, AdditiveNoise
from mechanisms.families.expected_maxima import expected_max_abs_gaussian


@final
@declare
class DiscreteGaussian(AdditiveNoise):
    """The integer ``value + k`` with probability of k proportional to ``exp(-k^2 / (2 scale^2))``.

    The loss is exact for single numbers and a scale so small that all outcomes can be listed.
    Otherwise it is that of a continuous Gaussian a little narrower, or for small scales the zCDP
    bound ``rho = sensitivity^2 / (2 scale^2)``.

    Examples
    --------
    >>> from mechanisms import DiscreteGaussian
    >>> one = DiscreteGaussian(scale=4.0)
    >>> one.release([10, 20, 30], rng=0).tolist()
    [7, 19, 30]
    >>> round(one.loss.rho, 6)
    0.03125
    """

    releases: ClassVar[str] = "a whole number or a vector of them"
    statistic: ClassVar[str | None] = "count"
    reference: ClassVar[str] = "Canonne, Kamath & Steinke (2020)"
    limits: ClassVar[str] = "the time of a draw varies; sums stay at the ends of 64 bits"

    scale: float = param(
        INTEGER_NOISE_SCALE, "standard deviation of the noise", typical=(3.75,), knob=True
    )
    sensitivity: float = param(POSITIVE, "L2 sensitivity", typical=(1.0, 2.5), default=1.0)
    dimension: int = param(DIMENSION, "coordinates of a value", typical=(1,), default=1)

    def release(self, value: ArrayLike, rng: Rng = None, size: int | None = None) -> Any:
        """Return the value plus noise; see `Mechanism.release`."""
        integers, source = self.values.check(value), generator(rng)
        return IntegerNoise(self.scale, power=2).add_to(
            integers, draw_shape(size, integers.shape), source
        )

    def noise_of_sum(self, clients: int) -> DiscreteGaussianSum:
        """Return the law of the sum of the noise of so many clients, in one coordinate.

        Parameters
        ----------
        clients : int
            Number of clients, each of whom adds this noise.

        Returns
        -------
        DiscreteGaussianSum
            It is no discrete Gaussian, though near to one.
        """
        return DiscreteGaussianSum(self.scale, clients)

    def draw_sum(self, clients: int, size: int, rng: np.random.Generator) -> Any:
        """Return draws of the sum of the noise of so many clients.

        Parameters
        ----------
        clients : int
            Number of clients, each of whom adds this noise.
        size : int
            Number of independent sums.
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        numpy.ndarray
            Of 64-bit integers.
        """
        noise, total = IntegerNoise(self.scale, power=2), np.zeros(size, dtype=np.int64)
        for _ in range(clients):
            total += noise.draw(size, rng)
        return total

    def terms(self, output: ArrayLike, value: ArrayLike) -> Array:
        """Return ``-(output - value)^2 / (2 scale^2) - ln sum_k exp(-k^2 / (2 scale^2))``."""
        z = np.subtract(output, value) / self.scale
        terms: Array = -z * z / 2 - math.log(normaliser(self.scale))
        return terms

    @property
    def deviation(self) -> float:
        """The scale, an upper bound of the standard deviation (the reference's Corollary 9)."""
        return self.scale

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
        from scipy.special import ndtri

        # Where e^(-x^2 / (2 scale^2)) is convex, from x = scale on, it is at whole x at most its
        # mean over [x - 1/2, x + 1/2]; and the sum over all whole numbers is at least scale
        # sqrt(2 pi), by Poisson's summation.  So P(|k| > m) <= P(|N| > m + 1/2) for m + 1/2 >=
        # scale, with N the continuous noise.  Elsewhere P(|k| > m) <= P(|N| > m) (the reference's
        # Proposition 25).
        within = self.scale * -float(ndtri((1 - probability) / 2)) * (1 + 1e-12)
        nearest = max(0.0, math.ceil(within - 0.5))
        return nearest if nearest + 0.5 >= self.scale else float(math.ceil(within))

    def expected_maximum(self, dimension: int) -> float:
        """Return a bound of the expected largest noise: the Gaussian's plus 1 (Proposition 25).

        Parameters
        ----------
        dimension : int
            Number of coordinates.

        Returns
        -------
        float
            An upper bound of the expected largest absolute noise, in the units of the value.
        """
        return self.scale * expected_max_abs_gaussian(dimension) + 1

    @property
    def loss(self) -> Loss:
        """The smallest known loss for the declared sensitivity and dimension; see the class."""
        return discrete_gaussian_loss(self.scale, self.sensitivity, self.dimension)

    @property
    def loss_is_upper_bound(self) -> bool:
        """Whether the loss is a bound, and not that of one pair with all outcomes listed."""
        return not isinstance(self.loss, DiscreteGaussianLoss)

    @property
    def why_no_formula(self) -> str:
        """The text for a loss that is a bound, as there are too many outcomes to list."""
        return "a Gaussian or zCDP bound, which no pair attains" if self.loss_is_upper_bound else ""

    @property
    def drawn_numbers(self) -> dict[str, Any]:
        """The scale of the drawn noise, and step 0.0, as no value is rounded to a grid."""
        return {"drawn_scale": self.scale, "step": 0.0}

    @property
    def drawn_tables(self) -> list[dict[str, Any]]:
        """The table of integers that the exact draws of the noise use."""
        return [IntegerNoise(self.scale, power=2).table]

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
        """The integers; those beyond 12 scales from the value have a mass below 1e-30."""
        return Lattice(12 * self.scale)

    @property
    def arithmetic(self) -> Arithmetic:
        """EXACT: the noise and the sum are integers."""
        return EXACT
