"""The cumulants of Poisson-sampled losses: by quadrature over the output, or by finite sums."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, final

import numpy as np

from accountant.amplification.sampled_family import Sampled, SampledFamily
from accountant.amplification.sampled_gaussian.sampled_gaussian_cgf import (
    SampledGaussian,
    rough_epsilon,
)
from accountant.amplification.sampled_gaussian.sampled_gaussian_tail import (
    TruncatedSampledGaussians,
    truncated,
)
from accountant.losses.loss_numerics import ExactCGF
from accountant.numerics import Array, Complex
from accountant.numerics.exponential_sums import product_of_cf_ratios, sum_of_finite_cgfs

MAX_TRUNCATED = 500  # different losses, each of which takes a millisecond


@final
class SampledCGF(ExactCGF[Sampled]):
    """Exact cumulants: Gaussian parts by quadrature, finite parts by their sums.

    Many different Gaussian parts share a quadrature (`SimilarSampledGaussians`).
    """

    def prepared(self, losses: Sequence[Sampled]) -> SampledFamily:
        """Return the losses, sorted once into what is summed together."""
        return losses if isinstance(losses, SampledFamily) else SampledFamily(losses)

    def sum_cgf(self, losses: Sequence[Sampled], counts: Array, z: Any) -> tuple[Any, Array]:
        """Return the sum of the cumulants and a bound on its error."""
        family = self.prepared(losses)
        total, size = np.zeros(z.shape, dtype=z.dtype), np.zeros(z.shape)
        ungrouped: Iterable[int] = range(len(family))
        if not np.iscomplexobj(z):
            ungrouped = family.others.tolist()
            if z.size == 1 and family.groups:
                height, off = family.height(counts, float(z.item()))
                total, size = total + height, size + off
            for index, group in family.groups if z.size > 1 else []:
                value, error = group.cgf(z, counts[index])
                total, size = total + value, size + error
        for i in ungrouped:
            gaussian = family.gaussians[i]
            if gaussian is not None:
                value, error = gaussian.cgf(z)
            else:
                value, error = sum_of_finite_cgfs([_pmf(family[i])], np.ones(1), z)
            total, size = total + counts[i] * value, size + counts[i] * error
        return total, size

    def rough_cgf(self, losses: Sequence[Sampled], counts: Array, a: Array) -> Array:
        """Return about the sum of the cumulants: one Gaussian part has a short sum."""
        family = self.prepared(losses)
        gaussian = family.gaussians[0] if len(family) == 1 else None
        if gaussian is None:
            return super().rough_cgf(losses, counts, a)
        cumulant: Array = counts[0] * gaussian.rough_cgf(a)
        return cumulant

    def has_short_sum(self, losses: Sequence[Sampled]) -> bool:
        """Return whether there is one loss alone, with a Gaussian part."""
        return len(losses) == 1 and losses[0].sampled_gaussian is not None

    def cf_ratios(
        self, losses: Sequence[Sampled], counts: Array, z: Complex
    ) -> tuple[Complex, Array]:
        """Return the product of the ratios and a bound on its error."""
        family = self.prepared(losses)
        product, missed = np.ones(z.shape, dtype=complex), np.zeros(z.shape)
        ungrouped = family.others.tolist()
        for index, group in family.groups:
            contour = group.contour(z, counts[index])
            if contour is None:
                ungrouped += index.tolist()
                continue
            product, missed = product * contour[2], missed + contour[3]
        for i in ungrouped:
            gaussian = family.gaussians[i]
            if gaussian is not None:
                value, error = gaussian.cf_ratio(z, int(counts[i]))
            else:
                value, error = product_of_cf_ratios([_pmf(family[i])], counts[i : i + 1], z)
            product, missed = product * value, missed + error
        return product, missed

    def log_cf_bounds(self, losses: Sequence[Sampled], counts: Array, a: float, u: Array) -> Array:
        """Return the sum of the bounds of the Gaussian parts."""
        family = self.prepared(losses)
        total = family.log_cf_bound(counts, a, u)
        for i in family.others.tolist():
            gaussian = family.gaussians[i]
            if gaussian is not None:
                total += counts[i] * gaussian.log_cf_bound(a, u)
        return total

    def sum_of_terms(self, losses: Sequence[Sampled], frequency: float) -> tuple[float, float]:
        """Return the number of points of the quadratures and of the finite sums."""
        family = self.prepared(losses)
        shared = [group.quadrature_terms(frequency) for _, group in family.groups]
        single_terms = [self.quadrature_terms(family[i], frequency) for i in family.others.tolist()]
        return sum(shared) + sum(single_terms), max(single_terms, default=1.0)

    def quadrature_terms(self, loss: Sampled, frequency: float) -> float:
        """Return the number of points of the quadrature, or of the finite sum."""
        gaussian = loss.sampled_gaussian
        if gaussian is not None:
            return gaussian.quadrature_terms(frequency)
        return super().quadrature_terms(loss, frequency)

    def without_certain_violations(
        self, losses: Sequence[Sampled], counts: Array, epsilon: float
    ) -> TruncatedSampledGaussians | None:
        """Return Gaussian parts without their greatest outputs, with the record present."""
        gaussians = _gaussians(losses)
        if gaussians is None or any(
            gaussian.record_added or gaussian.rate == 1 for gaussian in gaussians
        ):
            return None
        if len(gaussians) > MAX_TRUNCATED:
            return None
        return truncated(gaussians, [int(count) for count in counts], epsilon)

    def rough_epsilon(self, losses: Sequence[Sampled], counts: Array, delta: float) -> float | None:
        """Return about what Gaussian parts cost, all with the record on the same side."""
        gaussians = _gaussians(losses)
        return None if gaussians is None else rough_epsilon(gaussians, counts, delta)


def _gaussians(losses: Sequence[Sampled]) -> list[SampledGaussian] | None:
    """Return the sampled Gaussians of losses in one direction; None for others."""
    gaussians = [gaussian for loss in losses if (gaussian := loss.sampled_gaussian) is not None]
    alike = (
        len(gaussians) == len(losses)
        and len({gaussian.record_added for gaussian in gaussians}) == 1
    )
    return gaussians if alike else None


def _pmf(loss: Sampled) -> tuple[Array, Array]:
    pmf = loss.loss_pmf
    if pmf is None:
        raise TypeError(f"no exact cumulant: {type(loss).__name__}")
    return pmf
