"""The cumulants of Poisson-sampled losses: by quadrature over the output, or by finite sums."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, final

import numpy as np

from accountant.amplification.sampled_family import Sampled, SampledFamily
from accountant.amplification.sampled_gaussian.sampled_gaussian_hits import (
    HitSampledGaussian,
    with_a_hit,
)
from accountant.amplification.sampled_gaussian.sampled_gaussian_tail import (
    TruncatedSampledGaussian,
    truncated,
)
from accountant.amplification.truncated_schedule import SampledSchedule
from accountant.losses.loss_numerics import ExactCGF
from accountant.numerics import Array, Complex
from accountant.numerics.exponential_sums import product_of_cf_ratios, sum_of_finite_cgfs

MAX_MU = 1e4  # of a schedule: grids of places so far apart are none
MIN_SCHEDULE = 2


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
        alone: Iterable[int] = range(len(family))
        if not np.iscomplexobj(z):
            alone = family.others.tolist()
            if z.size == 1 and family.groups:
                height, off = family.height(counts, float(z.item()))
                total, size = total + height, size + off
            for index, group in family.groups if z.size > 1 else []:
                value, error = group.cgf(z, counts[index])
                total, size = total + value, size + error
        for i in alone:
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
        rough: Array = counts[0] * gaussian.rough_cgf(a)
        return rough

    def has_short_sum(self, losses: Sequence[Sampled]) -> bool:
        """Return whether there is one loss alone, with a Gaussian part."""
        return len(losses) == 1 and losses[0].sampled_gaussian is not None

    def cf_ratios(
        self, losses: Sequence[Sampled], counts: Array, z: Complex
    ) -> tuple[Complex, Array]:
        """Return the product of the ratios and a bound on its error."""
        family = self.prepared(losses)
        product, missed = np.ones(z.shape, dtype=complex), np.zeros(z.shape)
        alone = family.others.tolist()
        for index, group in family.groups:
            found = group.contour(z, counts[index])
            if found is None:
                alone += index.tolist()
                continue
            product, missed = product * found[2], missed + found[3]
        for i in alone:
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
        alone = [self.quadrature_terms(family[i], frequency) for i in family.others.tolist()]
        return sum(shared) + sum(alone), max(alone, default=1.0)

    def quadrature_terms(self, loss: Sampled, frequency: float) -> float:
        """Return the number of points of the quadrature, or of the finite sum."""
        gaussian = loss.sampled_gaussian
        if gaussian is not None:
            return gaussian.quadrature_terms(frequency)
        return super().quadrature_terms(loss, frequency)

    def without_sure_events(
        self, loss: Sampled, count: int, epsilon: float
    ) -> TruncatedSampledGaussian | None:
        """Return the Gaussian part without its greatest outputs, with the record present."""
        gaussian = loss.sampled_gaussian
        if gaussian is None or gaussian.record_added:
            return None
        return truncated(gaussian, count, epsilon)

    def with_a_great_loss(
        self, loss: Sampled, count: int, epsilon: float, log_delta: float
    ) -> HitSampledGaussian | None:
        """Return the Gaussian part with a hit among its outputs, with the record present."""
        gaussian = loss.sampled_gaussian
        if gaussian is None or gaussian.record_added:
            return None
        return with_a_hit(gaussian, count, epsilon, log_delta)

    def schedule(
        self, losses: Sequence[Sampled], counts: Array, *, swapped: bool = False
    ) -> SampledSchedule | None:
        """Return different Gaussian parts with the record present as a schedule; or None.

        ``swapped``: the losses have the record absent.
        """
        if len(losses) < MIN_SCHEDULE:
            return None
        found = [loss.sampled_gaussian for loss in losses]
        pairs = [(one.mu, one.rate) for one in found if one and one.record_added == swapped]
        mu, rate = np.array(pairs).reshape(-1, 2).T
        if mu.size < len(losses) or not (np.all(rate < 1) and np.all(rate > 0) and np.all(mu > 0)):
            return None
        if np.max(mu) > MAX_MU:
            return None
        return SampledSchedule(mu, np.log(rate) - np.log1p(-rate), counts)

    def rough_epsilon(self, loss: Sampled, count: int, delta: float) -> float | None:
        """Return about what the Gaussian part costs."""
        gaussian = loss.sampled_gaussian
        return None if gaussian is None else gaussian.rough_epsilon(count, delta)


def _pmf(loss: Sampled) -> tuple[Array, Array]:
    found = loss.loss_pmf
    if found is None:
        raise TypeError(f"no exact cumulant: {type(loss).__name__}")
    return found
