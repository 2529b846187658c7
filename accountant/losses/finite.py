"""Losses of finitely many outcomes: what follows from the outcomes alone."""

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
    """Sums over the values of each loss."""

    def sum_cgf(self, losses: Sequence[FiniteLoss], counts: Array, z: Any) -> tuple[Any, Array]:
        """Sum over the losses."""
        return sum_of_finite_cgfs([loss.loss_pmf for loss in losses], counts, z)

    def cf_ratios(
        self, losses: Sequence[FiniteLoss], counts: Array, z: Complex
    ) -> tuple[Complex, Array]:
        """Product over the losses, one matrix product each."""
        return product_of_cf_ratios([loss.loss_pmf for loss in losses], counts, z)


FINITE_CGF = FiniteCGF()
NUMERICS = LossNumerics(FINITE_CGF)


class FiniteLoss(Loss):
    """A loss whose cumulant is a finite sum over its `loss_pmf`."""

    __slots__ = ()

    @property
    @abstractmethod
    def loss_pmf(self) -> tuple[Array, Array]:
        """The losses and their masses under P; the finite part."""

    @property
    def numerics(self) -> LossNumerics:
        """Its cumulant is a finite sum."""
        return NUMERICS

    def cumulant(self, z: ArrayLike) -> Any:
        """``ln sum_i mass_i e^{z loss_i}`` over the finite part."""
        loss, mass = self.loss_pmf
        return finite_cgf(loss, np.log(mass), np.asarray(z, dtype=complex))[0][()]
