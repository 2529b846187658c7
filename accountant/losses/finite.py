"""Losses of finitely many outcomes: what follows from the outcomes alone."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from accountant.losses.loss import Loss
from accountant.numerics import Array, Complex
from accountant.numerics.exponential_sums import (
    finite_cgf,
    product_of_cf_ratios,
    sum_of_finite_cgfs,
)


class FiniteLoss(Loss):
    """A loss whose cumulant is a finite sum over its `loss_pmf`."""

    __slots__ = ()

    @property
    @abstractmethod
    def loss_pmf(self) -> tuple[Array, Array]:
        """The losses and their masses under P; the finite part."""

    @property
    def has_exact_cgf(self) -> bool:
        """Its cumulant is a finite sum."""
        return True

    def cumulant(self, z: ArrayLike) -> Any:
        """``ln sum_i mass_i e^{z loss_i}`` over the finite part."""
        loss, mass = self.loss_pmf
        return finite_cgf(loss, np.log(mass), np.asarray(z, dtype=complex))[0][()]

    @classmethod
    def sum_cgf(cls, losses: Sequence[Self], counts: Array, z: Any) -> tuple[Any, Array]:
        """Sum over the losses."""
        return sum_of_finite_cgfs([loss.loss_pmf for loss in losses], counts, z)

    @classmethod
    def cf_ratios(cls, losses: Sequence[Self], counts: Array, z: Complex) -> tuple[Complex, Array]:
        """Product over the losses, one matrix product each."""
        return product_of_cf_ratios([loss.loss_pmf for loss in losses], counts, z)

    def real_cgf(self, a: Array) -> tuple[Array, Array]:
        """The cumulant at real ``a``, and a bound on its round-off."""
        return self.sum_cgf([self], np.ones(1), a)
