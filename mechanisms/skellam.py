"""Skellam noise for integers: the difference of two Poisson numbers, with exact draws.

Sums of Skellam noise are Skellam noise: clients who each add a little, and whose sum alone is seen,
together add noise whose law is known exactly (`SumOfClients`).

References: Agarwal, Kairouz & Liu (2021); proofs in docs/proofs/summed_noise.md.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar, final

import numpy as np

from accountant.domains import POSITIVE, Interval
from accountant.losses.summed_noise import SkellamNoise
from mechanisms.base import declare, param
from mechanisms.exact_noise.poisson_numbers import PoissonNumbers
from mechanisms.families.additive import DIMENSION
from mechanisms.families.summed_noise import SummedIntegerNoise

# A draw looks into a table once for each 2,048 of the variance, which may be 2^30.
SKELLAM_SCALE = Interval(1e-6, 2.0**15)


@final
@declare
class Skellam(SummedIntegerNoise):
    """The integer ``value + A - B``, with A and B Poisson numbers of mean ``scale^2 / 2``.

    The loss is exact for single numbers, and for vectors of which neighbours differ by 1 in one
    coordinate, where all outcomes can be listed.  Otherwise it is that of a continuous Gaussian
    whose variance is less by about 7 / 12.

    Examples
    --------
    >>> from mechanisms import Skellam
    >>> noisy_count = Skellam(scale=4.0)
    >>> noisy_count.release([10, 20, 30], rng=0).tolist()
    [16, 16, 21]
    >>> round(noisy_count.loss.epsilon_at(1e-6), 4)
    0.9512
    """

    reference: ClassVar[str] = "Agarwal, Kairouz & Liu (2021)"
    limits: ClassVar[str] = "the time of a draw grows with the variance"

    scale: float = param(
        SKELLAM_SCALE, "standard deviation of the noise", typical=(3.75,), knob=True
    )
    sensitivity: float = param(POSITIVE, "L2 sensitivity", typical=(1.0, 2.5), default=1.0)
    dimension: int = param(DIMENSION, "coordinates of a value", typical=(1,), default=1)

    @property
    def noise(self) -> SkellamNoise:
        """The law of the noise in one coordinate."""
        return self.noise_of_sum(1)

    def noise_of_sum(self, clients: int) -> SkellamNoise:
        """Return the law of the sum of the noise of so many clients, in one coordinate.

        Parameters
        ----------
        clients : int
            Number of clients, each of whom adds this noise.

        Returns
        -------
        SkellamNoise
            Whose variance is ``clients * scale^2``.
        """
        return SkellamNoise(self.scale, clients)

    def draw_noise(self, size: int, rng: np.random.Generator) -> Any:
        """Return independent draws of the noise."""
        return self.draw_sum(1, size, rng)

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
        numbers = PoissonNumbers(clients * Fraction(self.scale) ** 2 / 2)
        return numbers.draw(size, rng) - numbers.draw(size, rng)

    @property
    def drawn_numbers(self) -> dict[str, Any]:
        """The scale of the drawn noise, and step 0.0, as no value is rounded to a grid."""
        return {"drawn_scale": self.scale, "step": 0.0}

    @property
    def drawn_tables(self) -> list[dict[str, Any]]:
        """The table of words that the exact draws of Poisson numbers use."""
        return [PoissonNumbers(Fraction(self.scale) ** 2 / 2).table]
