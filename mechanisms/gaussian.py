"""Gaussian noise on a number or a vector."""

from __future__ import annotations

from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.domains import POSITIVE
from accountant.gaussian import GaussianLoss
from accountant.numerics import Array
from accountant.randomness import Rng, generator
from mechanisms.additive import Additive
from mechanisms.mechanism import draws, summed
from mechanisms.parameters import declare, param


@final
@declare
class Gaussian(Additive):
    """``value + scale * N(0, 1)`` in every coordinate."""

    reference: ClassVar[str] = "Balle & Wang (2018); Dong, Roth & Su (2022)"

    # 3.7306334 is (1, 1e-5)
    scale: float = param(
        POSITIVE, "standard deviation of the noise, in the units of the query",
        typical=(3.7306334,), knob=True,
    )  # fmt: skip
    sensitivity: float = param(POSITIVE, "L2 sensitivity of the query", typical=(1.0,), default=1.0)

    def release(self, value: ArrayLike, rng: Rng = None, size: int | None = None) -> Any:
        """Add noise; see `Mechanism.release`."""
        real = self.values.check(value)
        return real + self.scale * generator(rng).standard_normal(draws(size, real.shape))

    def log_density(self, output: ArrayLike, value: ArrayLike, each: bool = False) -> Array:
        """``-(output - value)^2 / (2 scale^2) - ln(scale sqrt(2 pi))``, summed."""
        z = np.subtract(output, value) / self.scale
        return summed(-z * z / 2 - np.log(self.scale * np.sqrt(2 * np.pi)), np.ndim(value), each)

    @property
    def loss(self) -> GaussianLoss:
        """Gaussian shifted by ``sensitivity / scale`` standard deviations."""
        return GaussianLoss(self.sensitivity / self.scale)
