"""Losses of finitely many values that dominate another loss, or are dominated by it.

Their profiles lie above or below that of the other loss at every epsilon.  They are computed in
`accountant/losses/connect_the_dots.py`; here they become `Loss` objects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from accountant.losses.connect_the_dots import (
    Discretisable,
    Profile,
    discretise,
    pair_above,
    pair_below,
)
from accountant.losses.finite import FiniteLoss
from accountant.losses.loss import epsilons
from accountant.numerics import Array
from accountant.numerics.ordered_sums import ordered_dot


@final
@dataclass(frozen=True, eq=False)
class DiscretisedLoss(FiniteLoss):
    """A loss with finitely many values, their masses under P, and the mass at infinity."""

    loss: Array
    mass: Array
    infinity_mass: float

    def profile(self, epsilon: ArrayLike) -> Array:
        """Return ``sum mass (1 - e^{eps - loss})_+``."""
        sticks = -np.expm1(np.minimum(epsilons(epsilon)[..., None] - self.loss, 0.0))
        total: Array = np.minimum(ordered_dot(sticks, self.mass) + self.infinity_mass, 1.0)
        return total

    @property
    def reversed(self) -> DiscretisedLoss:
        """The loss of (Q, P): the mass that only Q has becomes its mass at infinity."""
        mass = self.mass * np.exp(-self.loss)
        return DiscretisedLoss(-self.loss, mass, max(0.0, 1 - float(mass.sum())))

    @property
    def infinity(self) -> float:
        """The mass of outcomes that are impossible on the neighbour."""
        return self.infinity_mass

    @property
    def max_loss(self) -> float:
        """The largest absolute value of a finite loss, in nats."""
        return float(np.max(np.abs(self.loss), initial=0.0))

    @property
    def loss_pmf(self) -> tuple[Array, Array]:
        """The finite losses and their masses."""
        return self.loss, self.mass


def dominating_pair(
    profile: Profile, points: Array, last_value: float | None = None
) -> DiscretisedLoss:
    """Return the loss on ``points`` whose profile is above ``profile``: see `pair_above`."""
    return DiscretisedLoss(*pair_above(profile, points, last_value))


def dominated_pair(profile: Profile, infinity: float, points: Array) -> DiscretisedLoss:
    """Return the loss on ``points`` whose profile is below ``profile``: see `pair_below`."""
    return DiscretisedLoss(*pair_below(profile, infinity, points))


def discretised(loss: Discretisable, tail: float, *, upper: bool) -> DiscretisedLoss:
    """Return a finite loss above or below ``loss``; at most ``tail`` of its mass is moved."""
    return DiscretisedLoss(*discretise(loss, tail, upper=upper))
