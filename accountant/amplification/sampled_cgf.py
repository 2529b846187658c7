"""The cumulants of Poisson-sampled losses: by quadrature over the output, or by finite sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, final

import numpy as np

from accountant.amplification.sampled_gaussian_cgf import SampledGaussian
from accountant.losses.loss_numerics import ExactCGF, HasCumulant
from accountant.numerics import Array, Complex
from accountant.numerics.exponential_sums import product_of_cf_ratios, sum_of_finite_cgfs


class Sampled(HasCumulant, Protocol):
    """A sampled loss whose part is Gaussian or has finitely many values."""

    @property
    def sampled_gaussian(self) -> SampledGaussian | None:
        """The pair where the part is Gaussian."""
        ...


@final
class SampledCGF(ExactCGF[Sampled]):
    """Gaussian parts by quadrature, finite parts by their sums."""

    def sum_cgf(self, losses: Sequence[Sampled], counts: Array, z: Any) -> tuple[Any, Array]:
        """One loss at a time."""
        total, size = np.zeros(z.shape, dtype=z.dtype), np.zeros(z.shape)
        for loss, count in zip(losses, counts.tolist(), strict=True):
            gaussian = loss.sampled_gaussian
            if gaussian is not None:
                value, error = gaussian.cgf(z)
            else:
                value, error = sum_of_finite_cgfs([_pmf(loss)], np.ones(1), z)
            total, size = total + count * value, size + count * error
        return total, size

    def cf_ratios(
        self, losses: Sequence[Sampled], counts: Array, z: Complex
    ) -> tuple[Complex, Array]:
        """One loss at a time."""
        product, missed = np.ones(z.shape, dtype=complex), np.zeros(z.shape)
        for loss, count in zip(losses, counts.tolist(), strict=True):
            gaussian = loss.sampled_gaussian
            if gaussian is not None:
                value, error = gaussian.cf_ratio(z, int(count))
            else:
                value, error = product_of_cf_ratios([_pmf(loss)], np.array([count]), z)
            product, missed = product * value, missed + error
        return product, missed

    def log_cf_bounds(self, losses: Sequence[Sampled], counts: Array, a: float, u: Array) -> Array:
        """By parts, for Gaussian parts."""
        total = np.zeros(u.shape)
        for loss, count in zip(losses, counts.tolist(), strict=True):
            gaussian = loss.sampled_gaussian
            if gaussian is not None:
                total += count * gaussian.log_cf_bound(a, u)
        return total

    def quadrature_terms(self, loss: Sampled, frequency: float) -> float:
        """The points of the quadrature, or of the finite sum."""
        gaussian = loss.sampled_gaussian
        if gaussian is not None:
            return gaussian.quadrature_terms(frequency)
        return super().quadrature_terms(loss, frequency)


def _pmf(loss: Sampled) -> tuple[Array, Array]:
    found = loss.loss_pmf
    if found is None:
        raise TypeError(f"no exact cumulant: {type(loss).__name__}")
    return found
