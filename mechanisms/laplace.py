"""Laplace noise on a number or a vector."""

from __future__ import annotations

from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.domains import POSITIVE
from accountant.laplace import LaplaceLoss
from accountant.numerics import Array
from accountant.randomness import Rng, generator
from mechanisms.additive import Additive
from mechanisms.mechanism import draws, summed
from mechanisms.parameters import declare, param


@final
@declare
class Laplace(Additive):
    """``value + scale * Laplace(0, 1)`` in every coordinate."""

    reference: ClassVar[str] = "Dwork, McSherry, Nissim & Smith (2006)"

    scale: float = param(
        POSITIVE, "noise scale, in the units of the query", typical=(1.0,), knob=True
    )
    sensitivity: float = param(POSITIVE, "L1 sensitivity of the query", typical=(1.0,), default=1.0)

    def release(self, value: ArrayLike, rng: Rng = None, size: int | None = None) -> Any:
        """Add noise; see `Mechanism.release`."""
        real = self.values.check(value)
        return real + self.scale * generator(rng).laplace(size=draws(size, real.shape))

    def log_density(self, output: ArrayLike, value: ArrayLike, each: bool = False) -> Array:
        """``-|output - value| / scale - ln(2 scale)``, summed."""
        distance = np.abs(np.subtract(output, value)) / self.scale
        return summed(-distance - np.log(2 * self.scale), np.ndim(value), each)

    @property
    def loss(self) -> LaplaceLoss:
        """Laplace shifted by ``sensitivity / scale``."""
        return LaplaceLoss(self.sensitivity / self.scale)
