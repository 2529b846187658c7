"""The cumulants of Poisson-sampled losses whose parts are Gaussian or have finitely many values.

K(z) = ln E e^{zL} of a plan is the sum of its losses' cumulants.  A sampled Gaussian has one by
quadrature (`SampledGaussian`); where there are at least `MIN_SHARED` different ones, those that are
alike share a grid (`SimilarSampledGaussians`); a part with finitely many losses has a finite sum.
`SampledCGF` offers them to the contour integrals of `accountant.composition`, which ask for K at
real orders a, for e^{K(z) - K(a)} at nodes z = a + iv of a line, and for a bound on its decay in v.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from accountant.amplification.sampled_gaussian.sampled_gaussian_cgf import (
    SampledGaussian,
    rough_epsilon,
)
from accountant.amplification.sampled_gaussian.sampled_schedule import SimilarSampledGaussians
from accountant.amplification.sampled_gaussian.schedule_parts import MIN_SHARED, Schedule
from accountant.losses.loss_numerics import ExactCGF, HasCumulant
from accountant.numerics import Array, Complex
from accountant.numerics.exponential_sums import product_of_cf_ratios, sum_of_finite_cgfs
from accountant.numerics.ordered_sums import sum_with_errors

Index = NDArray[np.intp]  # places of losses in a list


class Sampled(HasCumulant, Protocol):
    """A sampled loss whose part is Gaussian or has finitely many values."""

    @property
    def sampled_gaussian(self) -> SampledGaussian | None:
        """The sampled Gaussian pair where the part is Gaussian; else None."""
        ...


class SampledFamily(list[Sampled]):
    """A list of sampled losses, sorted once into `groups` that share a grid, and `others`."""

    @functools.cached_property
    def gaussians(self) -> list[SampledGaussian | None]:
        """The sampled Gaussian of each loss."""
        return [loss.sampled_gaussian for loss in self]

    @functools.cached_property
    def groups(self) -> list[tuple[Index, SimilarSampledGaussians]]:
        """The groups of similar sampled Gaussians, each with its places in the list."""
        similar_groups: list[tuple[Index, SimilarSampledGaussians]] = []
        for added in (False, True):
            places = [
                (i, gaussian.mu, gaussian.rate)
                for i, gaussian in enumerate(self.gaussians)
                if gaussian is not None and gaussian.record_added == added
            ]
            if len(places) >= MIN_SHARED:
                index, mu, rate = (np.array(column) for column in zip(*places, strict=True))
                log_odds = np.log(rate) - np.log1p(-rate)
                similar_groups += [
                    (index[members], SimilarSampledGaussians(mu[members], log_odds[members], added))
                    for members in alike(mu, log_odds)
                ]
        return similar_groups

    @functools.cached_property
    def others(self) -> Index:
        """The places of losses that are in no group."""
        grouped = np.concatenate([np.zeros(0, dtype=int), *(index for index, _ in self.groups)])
        return np.setdiff1d(np.arange(len(self)), grouped)

    @functools.cached_property
    def _remembered(self) -> dict[tuple[float, bytes], Any]:
        """Cumulants and decays by real part and counts: a search makes several contours of one."""
        return {}

    def height(self, counts: Array, a: float) -> tuple[float, float]:
        """Return the sum of the groups' cumulants at one real order, and a bound on its error."""
        key = (a, b"height" + counts.tobytes())
        if key not in self._remembered:
            cumulants = [group.cgf(np.array([a]), counts[index]) for index, group in self.groups]
            self._remembered[key] = (
                sum(float(value[0]) for value, _ in cumulants),
                sum(float(error[0]) for _, error in cumulants),
            )
        height: tuple[float, float] = self._remembered[key]
        return height

    def log_cf_bound(self, counts: Array, a: float, u: Array) -> Array:
        """Bound the logarithm of the product of the groups' transforms for every ``v >= u``."""
        total = np.zeros(u.shape)
        for index, group in self.groups:
            total += group.log_cf_bound(a, counts[index], u)
        return total


def alike(mu: Array, log_odds: Array) -> Iterable[Index]:
    """Yield the places of losses whose mu is in one octave, and whose odds are within a factor e.

    Where mu is small, the points of a shared grid are close, so that it must not be wide: the odds
    of a group are then within a factor e^{3 * 2^octave}, the octave being negative.
    """
    octave = np.frexp(mu)[1]
    width = np.minimum(1.0, 3.0 * 2.0**octave)
    keys = np.stack([octave, np.floor(log_odds / width)])
    _, key_index = np.unique(keys, axis=1, return_inverse=True)
    order = np.argsort(key_index, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(key_index.ravel()[order])) + 1)


@final
class SampledCGF(ExactCGF[Sampled]):
    """Exact cumulants of sampled losses, and what engines ask of them; see `ExactCGF`."""

    planning_cost_of_a_loss = 5e3  # all losses are evaluated together

    def prepared(self, losses: Sequence[Sampled]) -> SampledFamily:
        """Return the losses, sorted once into what is summed together."""
        return losses if isinstance(losses, SampledFamily) else SampledFamily(losses)

    def sum_cgf(self, losses: Sequence[Sampled], counts: Array, z: Any) -> tuple[Any, Array]:
        """Return the sum of the cumulants and a bound on its error.

        At complex z that are no contour's nodes every loss is integrated by itself.
        """
        family = self.prepared(losses)
        total, total_error = np.zeros(z.shape, dtype=z.dtype), np.zeros(z.shape)
        ungrouped = list(range(len(family)))
        if not np.iscomplexobj(z):
            ungrouped = family.others.tolist()
            if z.size == 1 and family.groups:
                height, height_error = family.height(counts, float(z.item()))
                total, total_error = total + height, total_error + height_error
            for index, group in family.groups if z.size > 1 else []:
                value, error = group.cgf(z, counts[index])
                total, total_error = total + value, total_error + error

        def cumulant(i: int) -> tuple[Any, Array]:
            gaussian = family.gaussians[i]
            if gaussian is None:
                return sum_of_finite_cgfs([_pmf(family[i])], np.ones(1), z)
            return gaussian.cgf(z)

        value, error = sum_with_errors(map(cumulant, ungrouped), counts[ungrouped], z)
        return total + value, total_error + error

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
        # No factor is above 1, so that the errors of factors add.
        product, total_error = np.ones(z.shape, dtype=complex), np.zeros(z.shape)
        ungrouped = family.others.tolist()
        for index, group in family.groups:
            contour = group.contour(z, counts[index])
            if contour is None:
                ungrouped += index.tolist()
                continue
            product = product * contour.ratio
            total_error = total_error + contour.ratio_error
        for i in ungrouped:
            gaussian = family.gaussians[i]
            if gaussian is not None:
                ratio, error = gaussian.cf_ratio(z, int(counts[i]))
            else:
                ratio, error = product_of_cf_ratios([_pmf(family[i])], counts[i : i + 1], z)
            product, total_error = product * ratio, total_error + error
        return product, total_error

    def log_cf_bounds(self, losses: Sequence[Sampled], counts: Array, a: float, u: Array) -> Array:
        """Return the sum of the bounds of the Gaussian parts: finite parts need not decay."""
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

    def parts(self, losses: Sequence[Sampled], counts: Array) -> Schedule | None:
        """Return Gaussian parts with the record present; None for others."""
        gaussians = _gaussians(losses)
        if gaussians is None or any(
            gaussian.record_added or gaussian.rate == 1 for gaussian in gaussians
        ):
            return None
        return Schedule.of(gaussians, counts)

    def rough_epsilon(self, losses: Sequence[Sampled], counts: Array, delta: float) -> float | None:
        """Return about what Gaussian parts cost, all with the record on the same side."""
        gaussians = _gaussians(losses)
        return None if gaussians is None else rough_epsilon(gaussians, counts, delta)


def _gaussians(losses: Sequence[Sampled]) -> list[SampledGaussian] | None:
    """Return the sampled Gaussians of losses in one direction; None for others."""
    gaussians = [gaussian for loss in losses if (gaussian := loss.sampled_gaussian) is not None]
    are_of_one_direction = (
        len(gaussians) == len(losses)
        and len({gaussian.record_added for gaussian in gaussians}) == 1
    )
    return gaussians if are_of_one_direction else None


def _pmf(loss: Sampled) -> tuple[Array, Array]:
    pmf = loss.loss_pmf
    if pmf is None:
        raise TypeError(f"no exact cumulant: {type(loss).__name__}")
    return pmf
