"""The base class of losses with finitely many values, whose cumulants are finite sums.

A loss L = ln(P/Q) with the values l_i of mass p_i under P has the cumulant
K(z) = ln sum_i p_i e^{z l_i}.  Outcomes that Q never has are not among the values: they are the
mass at infinity.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from accountant.losses.loss import Loss
from accountant.losses.loss_numerics import ExactCGF, LossNumerics
from accountant.numerics import Array, Complex
from accountant.numerics.exponential_sums import (
    finite_cgf,
    product_of_cf_ratios,
    sum_of_finite_cgfs,
)


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

    def cumulant(self, z: ArrayLike) -> Any:
        """Return ``ln sum_i mass_i e^{z loss_i}`` over the finite part."""
        loss, mass = self.loss_pmf
        return finite_cgf(loss, np.log(mass), np.asarray(z, dtype=complex))[0][()]
