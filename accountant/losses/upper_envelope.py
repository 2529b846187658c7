"""A privacy loss that is above those of many neighbouring pairs, with the loss of one such pair.

Some schemes have no single worst pair of data sets, or none is known.  The bound then gives the
upper end of a certificate, and the loss of one pair that does occur gives the lower end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.losses.cell_masses import CellMasses
from accountant.losses.loss import Loss, exact_cgf
from accountant.losses.loss_numerics import ExactCGF, LossNumerics
from accountant.numerics import Array, Complex
from accountant.numerics.ordered_sums import product_with_errors, sum_with_errors


@final
class EnvelopeCGF(ExactCGF["UpperEnvelope"]):
    """The cumulants of the bounds, each by the method of the bound's own family."""

    def sum_cgf(self, losses: Sequence[UpperEnvelope], counts: Array, z: Any) -> tuple[Any, Array]:
        """Return the sum of the cumulants of the bounds, and a bound on its round-off."""
        bounds = (exact_cgf(loss.bound).sum_cgf([loss.bound], np.ones(1), z) for loss in losses)
        return sum_with_errors(bounds, counts, z)

    def cf_ratios(
        self, losses: Sequence[UpperEnvelope], counts: Array, z: Complex
    ) -> tuple[Complex, Array]:
        """Return the product of the ratios, and a bound on its round-off."""
        ratios = (
            exact_cgf(loss.bound).cf_ratios([loss.bound], counts[i : i + 1], z)
            for i, loss in enumerate(losses)
        )
        return product_with_errors(ratios, z)

    def log_cf_bounds(
        self, losses: Sequence[UpperEnvelope], counts: Array, a: float, u: Array
    ) -> Array:
        """Return the sum of the bounds on the decay."""
        total = np.zeros(u.shape)
        for i, loss in enumerate(losses):
            family = exact_cgf(loss.bound)
            total = total + family.log_cf_bounds([loss.bound], counts[i : i + 1], a, u)
        return total

    def quadrature_terms(self, loss: UpperEnvelope, frequency: float) -> float:
        """Return how many exponentials represent the bound."""
        return exact_cgf(loss.bound).quadrature_terms(loss.bound, frequency)

    def max_loss_mass(self, loss: UpperEnvelope) -> float:
        """Return 0, as for an unknown mass: no pair need attain the largest loss of a bound."""
        return 0.0


CGF = EnvelopeCGF()


@dataclass(frozen=True, slots=True)
class UpperEnvelope(Loss):
    """The loss ``bound``, which is above those of many pairs, and ``attained``, that of one pair.

    All methods are those of the bound.  What differs is that `numerics` marks it as an upper
    envelope, so lower ends of certificates are taken from `attained_pair` instead.
    """

    bound: Loss
    attained: Loss

    def profile(self, epsilon: ArrayLike) -> Array:
        """Return the profile delta(epsilon) of the bound."""
        return self.bound.profile(epsilon)

    def log_profile(self, epsilon: ArrayLike) -> Array:
        """Return the logarithm of the profile of the bound."""
        return self.bound.log_profile(epsilon)

    @property
    def reversed(self) -> UpperEnvelope:
        """Both losses reversed."""
        bound, attained = self.bound.reversed, self.attained.reversed
        same = bound is self.bound and attained is self.attained
        return self if same else replace(self, bound=bound, attained=attained)

    @property
    def infinity(self) -> float:
        """The mass at infinity of the bound."""
        return self.bound.infinity

    @property
    def max_loss(self) -> float:
        """The largest finite loss of the bound."""
        return self.bound.max_loss

    @property
    def rho(self) -> float:
        """The zCDP parameter rho of the bound."""
        return self.bound.rho

    @property
    def gdp_mu(self) -> float:
        """The Gaussian DP parameter mu of the bound."""
        return self.bound.gdp_mu

    def renyi(self, order: ArrayLike) -> Array:
        """Return the Rényi divergence of the bound."""
        return self.bound.renyi(order)

    def cumulant(self, z: ArrayLike) -> Any:
        """Return the cumulant of the bound."""
        return self.bound.cumulant(z)

    def cell_masses(self, edges: Array) -> CellMasses | None:
        """Return the masses of the bound between edges."""
        return self.bound.cell_masses(edges)

    def inverse_profile(self, delta: float) -> float:
        """Return the inverse of the profile of the bound."""
        return self.bound.inverse_profile(delta)

    @property
    def numerics(self) -> LossNumerics:
        """The numerics of the bound, marked as those of an upper envelope."""
        inner = self.bound.numerics
        return replace(inner, cgf=CGF if inner.has_exact_cgf else None, is_upper_envelope=True)

    @property
    def loss_pmf(self) -> tuple[Array, Array] | None:
        """The finite losses of the bound, where there are finitely many."""
        return self.bound.loss_pmf

    @property
    def attained_pair(self) -> Loss:
        """The loss of one of the pairs, ``attained``: a lower bound for the worst pair."""
        return self.attained
