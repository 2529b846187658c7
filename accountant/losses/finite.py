"""Losses of finitely many outcomes: what follows from the outcomes alone."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from accountant.losses.loss import Loss
from accountant.numerics import Array, Complex
from accountant.numerics.exponential_sums import log_sum, product_of_ratios, sums_of_logs


class Finite(Loss):
    """A loss whose cumulant is a finite sum over its `outcomes`."""

    __slots__ = ()

    @property
    @abstractmethod
    def outcomes(self) -> tuple[Array, Array]:
        """The losses and their masses under P; the finite part."""

    @property
    def certified(self) -> bool:
        """Its cumulant is a finite sum."""
        return True

    def cumulant(self, z: ArrayLike) -> Any:
        """``ln sum_i mass_i e^{z loss_i}`` over the finite part."""
        loss, mass = self.outcomes
        return log_sum(loss, np.log(mass), np.asarray(z, dtype=complex))[0][()]

    @classmethod
    def cumulants(cls, losses: Sequence[Self], counts: Array, z: Any) -> tuple[Any, Array]:
        """Sum over the losses."""
        return sums_of_logs([loss.outcomes for loss in losses], counts, z)

    @classmethod
    def factors(cls, losses: Sequence[Self], counts: Array, z: Complex) -> tuple[Complex, Array]:
        """Product over the losses, one matrix product each."""
        return product_of_ratios([loss.outcomes for loss in losses], counts, z)

    def real_cumulant(self, a: Array) -> tuple[Array, Array]:
        """The cumulant at real ``a``, and a bound on its round-off."""
        return self.cumulants([self], np.ones(1), a)
