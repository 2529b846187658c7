"""Losses with finitely many values, whose cumulants are finite sums.

A loss L = ln(P/Q) with the values l_i of mass p_i under P has the cumulant
K(z) = ln sum_i p_i e^{z l_i}.  Outcomes that Q never has are not among the values: they are the
mass at infinity.

`FiniteLoss` is their base class.  A `DiscretisedLoss` dominates another loss, or is dominated by
it: its profile lies above or below that of the other loss at every epsilon.  The values are
computed in `accountant/losses/connect_the_dots.py`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.losses.connect_the_dots import (
    Discretisable,
    Profile,
    discretise,
    pair_above,
    pair_below,
)
from accountant.losses.loss import Loss, epsilons, orders
from accountant.losses.loss_numerics import ExactCGF, LossNumerics
from accountant.numerics import Array, Complex
from accountant.numerics.exponential_sums import (
    finite_cgf,
    product_of_cf_ratios,
    sum_of_finite_cgfs,
)
from accountant.numerics.ordered_sums import ordered_dot


class FiniteCGF(ExactCGF["FiniteLoss"]):
    """Exact cumulants of losses with finitely many outcomes, as sums over these."""

    def sum_cgf(self, losses: Sequence[FiniteLoss], counts: Array, z: Any) -> tuple[Any, Array]:
        """Return the sum of the cumulants of all losses, and a bound on its round-off."""
        return sum_of_finite_cgfs([loss.loss_pmf for loss in losses], counts, z)

    def cf_ratios(
        self, losses: Sequence[FiniteLoss], counts: Array, z: Complex
    ) -> tuple[Complex, Array]:
        """Return the product of the ratios of all losses, by one matrix product each."""
        return product_of_cf_ratios([loss.loss_pmf for loss in losses], counts, z)


FINITE_CGF = FiniteCGF()
NUMERICS = LossNumerics(FINITE_CGF)


class FiniteLoss(Loss):
    """A loss whose cumulant is a finite sum over its `loss_pmf`."""

    __slots__ = ()

    @property
    @abstractmethod
    def loss_pmf(self) -> tuple[Array, Array]:
        """The finite losses and their masses under P."""

    @property
    def numerics(self) -> LossNumerics:
        """The cumulant is exact: a finite sum."""
        return NUMERICS

    def profile(self, epsilon: ArrayLike) -> Array:
        """Return ``sum mass (1 - e^{eps - loss})_+``, and the mass at infinity."""
        loss, mass = self.loss_pmf
        sticks = -np.expm1(np.minimum(epsilons(epsilon)[..., None] - loss, 0.0))
        total: Array = np.minimum(ordered_dot(sticks, mass) + self.infinity, 1.0)
        return total

    def renyi(self, order: ArrayLike) -> Array:
        """Return the Rényi divergence of the finite sum."""
        a = orders(order) - 1
        value, error = FINITE_CGF.sum_cgf([self], np.ones(1), a)
        divergence: Array = (value + error) / a
        return divergence

    def cumulant(self, z: ArrayLike) -> Any:
        """Return ``ln sum_i mass_i e^{z loss_i}`` over the finite part."""
        loss, mass = self.loss_pmf
        return finite_cgf(loss, np.log(mass), np.asarray(z, dtype=complex))[0][()]


@final
@dataclass(frozen=True, eq=False)
class DiscretisedLoss(FiniteLoss):
    """A loss with finitely many values, their masses under P, and the mass at infinity."""

    loss: Array
    mass: Array
    infinity_mass: float

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
