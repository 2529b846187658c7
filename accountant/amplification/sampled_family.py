"""Sampled losses of one plan and direction, sorted into what is summed together."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from accountant.amplification.sampled_gaussian.sampled_gaussian_cgf import SampledGaussian
from accountant.amplification.sampled_gaussian.sampled_schedule import SimilarSampledGaussians
from accountant.amplification.sampled_gaussian.schedule_decay import UniformParts, uniform_parts
from accountant.losses.loss_numerics import HasCumulant
from accountant.numerics import Array

MIN_SHARED = 32  # fewer different sampled Gaussians are summed one by one
Index = NDArray[np.intp]


class Sampled(HasCumulant, Protocol):
    """A sampled loss whose part is Gaussian or has finitely many values."""

    @property
    def sampled_gaussian(self) -> SampledGaussian | None:
        """The sampled Gaussian pair where the part is Gaussian; else None."""
        ...


class SampledFamily(list[Sampled]):
    """A list of sampled losses; many sampled Gaussians of one direction are `groups` of it."""

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
        if not self.groups:
            return np.arange(len(self))
        grouped = np.concatenate([index for index, _ in self.groups] or [np.zeros(0, dtype=int)])
        return np.setdiff1d(np.arange(len(self)), grouped)

    @functools.cached_property
    def _kept(self) -> dict[tuple[float, bytes], Any]:
        """What was found for the last real parts: contours of one real part are many."""
        return {}

    def height(self, counts: Array, a: float) -> tuple[float, float]:
        """Return the sum of the groups' cumulants at one real order, and a bound on its error."""
        key = (a, b"height" + counts.tobytes())
        if key not in self._kept:
            cumulants = [group.cgf(np.array([a]), counts[index]) for index, group in self.groups]
            self._kept[key] = (
                sum(float(v[0]) for v, _ in cumulants),
                sum(float(e[0]) for _, e in cumulants),
            )
        height: tuple[float, float] = self._kept[key]
        return height

    def log_cf_bound(self, counts: Array, a: float, u: Array) -> Array:
        """Bound the logarithm of the product of the groups' transforms for every ``v >= u``."""
        if not self.groups:
            return np.zeros(u.shape)
        key = (a, b"decay" + counts.tobytes())
        if key not in self._kept:
            self._kept[key] = UniformParts(
                (uniform_parts(group.mu, group.log_odds, group.powers(a), log_mass), counts[index])
                for index, group in self.groups
                if (log_mass := group.log_mass(a)) is not None
            )
        bound: Array = self._kept[key].log_bound(u)
        return bound


def alike(mu: Array, log_odds: Array) -> Iterable[Index]:
    """Yield the places of losses whose mu is in one octave, and whose odds are alike."""
    octave = np.frexp(mu)[1]
    width = np.minimum(1.0, 3.0 * 2.0**octave)
    keys = np.stack([octave, np.floor(log_odds / width)])
    _, key_index = np.unique(keys, axis=1, return_inverse=True)
    order = np.argsort(key_index, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(key_index.ravel()[order])) + 1)
