"""From an (epsilon, delta) local randomiser to a pure one, by a choice among public samples.

Every user has T samples of the inner mechanism at a public reference value.  Let e^{l_t} be the
ratio of the inner densities of sample t at the user's value and at the reference value.  The user
draws a bit for each sample, 1 with probability p_t = e^{l_t} / 2, but 1/2 where |l_t| is above the
limit ``odds``.  The report is the index of a random sample among those of bit 1, or among all of
them if there is none.  It depends on the value through bounded log-ratios l_t alone, so its loss is
pure; the chosen sample has about the law of an inner release.

References: Bun, Nelson & Stemmer (2019), Algorithm GenProt.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accountant.domains import REAL, IntegerRange, Interval
from accountant.errors import ParameterError
from accountant.losses.pure_and_approximate import PureLoss
from accountant.numerics import Array
from accountant.numerics.quadrature import legendre
from accountant.numerics.rounding import ULP, round_up
from accountant.plans.adjacency import Adjacency
from accountant.randomness import Rng, generator
from mechanisms.base import (
    EXACT,
    Arithmetic,
    Cells,
    Mechanism,
    Support,
    Values,
    declare,
    draw_shape,
    param,
    sum_log_density,
)
from mechanisms.exact_noise.exact_bernoulli import bernoulli_each
from mechanisms.families.post_processing import MechanismsWithAttribute, PostProcessing
from mechanisms.gaussian import Gaussian

# Limits of the log-ratio l.  Above ln 2 the probability e^l / 2 would exceed 1.
ODDS = Interval(1e-6, math.log(2))


class NumberMechanisms(MechanismsWithAttribute):
    """Mechanisms that release one number at a time, as a domain."""

    __slots__ = ()

    def check(self, argument: str, value: object) -> Mechanism:
        """Return the mechanism, or raise `ParameterError`."""
        mechanism = MechanismsWithAttribute.check(self, argument, value)
        if mechanism.value_axes == 1:
            raise ParameterError(argument, value, str(self))
        return mechanism


@final
@declare
class PureFromApproximate(PostProcessing):
    """The index of one of ``candidates`` public samples of ``inner`` at a reference value.

    A report is the samples and the index, along the last axis; `chosen` gives the sample that
    replaces the user's own release.  Its distribution is near the inner one where delta is far
    below ``1 / candidates``.  For an inner epsilon up to 1/4, with ``5 ln(1 / epsilon)``
    candidates, the pure epsilon is below ten times the inner one.

    Examples
    --------
    >>> from mechanisms import Gaussian, PureFromApproximate
    >>> chooser = PureFromApproximate(Gaussian(scale=40.0), odds=0.2, candidates=12)
    >>> round(float(chooser.chosen(chooser.release(1.0, rng=0))), 4)
    58.5715
    >>> round(chooser.loss.epsilon, 4)
    0.799
    """

    releases: ClassVar[str] = "a number of each user"
    reference: ClassVar[str] = "Bun, Nelson & Stemmer (2019), Algorithm GenProt"
    limits: ClassVar[str] = "a report is as long as the public samples"

    inner: Any = param(
        NumberMechanisms("terms", "a mechanism of numbers, such as Gaussian"),
        "mechanism that becomes pure",
        typical=(Gaussian(40.0),),
    )
    odds: float = param(
        ODDS,
        "limit of the log-ratio of inner densities: twice the inner epsilon at its small delta",
        typical=(0.2,),
        knob=True,
    )
    candidates: int = param(IntegerRange(2, 10_000), "public samples of a user", typical=(12,))
    reference_value: float = param(
        REAL, "value from which the samples are released", typical=(0.0,), default=0.0
    )

    # Other mechanisms of this family calibrate the inner noise, this one its own ``odds``.
    with_noise_factor = Mechanism.with_noise_factor

    def release(self, value: ArrayLike, rng: Rng = None, size: int | None = None) -> Any:
        """Return the public samples and the index of one; see `Mechanism.release`."""
        values, source = self.values.check(value), generator(rng)
        shape = draw_shape(size, values.shape)
        sample_size = math.prod(shape) * self.candidates
        samples = np.reshape(
            self.inner.release(self.reference_value, source, sample_size), (*shape, self.candidates)
        )
        bits = bernoulli_each(self._bit_probabilities(samples, values), source)
        bits |= ~bits.any(axis=-1, keepdims=True)  # without ones, all samples may be chosen
        ones = bits.cumsum(axis=-1)
        rank = source.integers(0, ones[..., -1])
        index = np.argmax(ones > rank[..., None], axis=-1)
        return np.concatenate([samples, index[..., None]], axis=-1)

    def chosen(self, reports: ArrayLike) -> Array:
        """Return the sample that each report selects.

        Parameters
        ----------
        reports : array_like
            Reports of shape (..., candidates + 1).

        Returns
        -------
        numpy.ndarray
            Numbers of shape (...), in the units of the inner release.
        """
        reported = np.asarray(reports)
        index = reported[..., -1:].astype(np.intp)
        samples: Array = np.take_along_axis(reported, index, axis=-1)[..., 0]
        return samples

    def log_density(self, output: ArrayLike, value: ArrayLike, each: bool = False) -> Array:
        """Return the log-density of the public samples and of the index given them."""
        reported, values = np.asarray(output, dtype=float), np.asarray(value)
        samples, index = reported[..., :-1], reported[..., -1]
        p = self._bit_probabilities(samples, values)
        # With ``others`` the number of ones among the other samples, index t has the probability
        # P(t) = p_t E[1 / (1 + others)] + prod_s (1 - p_s) / T, and
        # E[1 / (1 + others)] = int_0^1 prod_{s != t} (1 - p_s + p_s z) dz.  The integrand is a
        # polynomial of degree T - 1, so that the quadrature is exact.
        nodes, weights = legendre(self.candidates // 2 + 1)
        z = (nodes + 1) / 2
        valid_index = np.clip(index, 0, self.candidates - 1).astype(np.intp)[..., None]
        p_chosen = np.take_along_axis(p, valid_index, axis=-1)
        log_product = np.log1p(-p[..., None, :] * (1 - z[:, None])).sum(axis=-1)
        integrand = np.exp(log_product - np.log1p(-p_chosen * (1 - z)))
        no_ones = np.exp(np.log1p(-p).sum(axis=-1))
        chance = p_chosen[..., 0] * (integrand @ weights) / 2 + no_ones / self.candidates
        log_samples = self.inner.terms(samples, np.asarray(self.reference_value)).sum(axis=-1)
        possible = (index >= 0) & (index < self.candidates) & (index == np.floor(index))
        terms = np.where(possible, log_samples + np.log(chance), -np.inf)
        return sum_log_density(terms, values.ndim, each)

    @property
    def loss(self) -> PureLoss:
        """The largest log-ratio of the chances of an index, between any two rows of probabilities.

        The chance P(t) of index t grows with p_t and falls with every other p_s, so the extremes
        are one high probability among low ones and one low among high ones.
        """
        lowest, highest = self._extreme_probabilities
        log_ratio = math.log(
            self._selection_probability(highest, lowest)
            / self._selection_probability(lowest, highest)
        )
        # Each probability errs by a few ulps of itself, so that the log-ratio errs by less than 16.
        # These may be many ulps of a small epsilon: they are added.
        return PureLoss(round_up(log_ratio + 16 * ULP, 64))

    @property
    def why_no_formula(self) -> str:
        """The epsilon holds for all public samples."""
        return "a bound over all public samples, which no pair attains"

    @property
    def values(self) -> Values:
        """Numbers; a vector would need one release for each coordinate."""
        numbers: Values = dataclasses.replace(self.inner.values, axes=0)
        return numbers

    @property
    def arithmetic(self) -> Arithmetic:
        """EXACT: exact Bernoulli bits decide; the samples are public and carry no privacy."""
        return EXACT

    @property
    def relation(self) -> Adjacency:
        """Each user chooses among samples of their own."""
        return Adjacency.LOCAL_REPLACE

    @property
    def support(self) -> Support:
        """The index, given many rows of public samples."""
        return RotatedSamples(self)

    def _selection_probability(self, p_chosen: float, p_others: float) -> float:
        # E[1 / (1 + Bin(T - 1, p))] = (1 - (1 - p)^T) / (T p)
        count = self.candidates
        no_ones = (1 - p_chosen) * (1 - p_others) ** (count - 1) / count
        return p_chosen * (1 - (1 - p_others) ** count) / (count * p_others) + no_ones

    def _bit_probabilities(self, samples: Array, values: NDArray[Any]) -> Array:
        """Return the probability of a one for each sample; 1/2 beyond the limit."""
        with np.errstate(over="ignore", invalid="ignore"):
            log_ratio = self.inner.terms(samples, values[..., None])
            log_ratio = log_ratio - self.inner.terms(samples, np.asarray(self.reference_value))
            inside = np.abs(log_ratio) <= self.odds
            chances: Array = np.where(inside, np.exp(np.where(inside, log_ratio, 0.0)) / 2, 0.5)
        # The loss is computed from these two ends, so rounding of log-ratios does not matter.
        return np.clip(chances, *self._extreme_probabilities)

    @property
    def _extreme_probabilities(self) -> tuple[float, float]:
        return math.exp(-self.odds) / 2, min(math.exp(self.odds) / 2, 1.0)


@dataclass(frozen=True, slots=True)
class RotatedSamples(Support):
    """Reports with a few rows of public samples, each row in all its rotations.

    With all rotations each sample stands at each index, so that on average no index is likelier.
    Audits compare the laws of the index: a part is an index.  The measure divides the density of a
    report by that of its samples, and averages over the rows.
    """

    mechanism: PureFromApproximate

    def cells(self, first: Any, second: Any) -> Cells:
        """Return one cell for every index with every row."""
        del first, second
        count, inner = self.mechanism.candidates, self.mechanism.inner
        rng, rows = np.random.default_rng(0), 6  # a few rows, so that the cells stay few
        samples = np.reshape(
            inner.release(self.mechanism.reference_value, rng, rows * count), (rows, count)
        )
        rotated = np.concatenate([np.roll(samples, shift, axis=1) for shift in range(count)])
        index = np.tile(np.arange(count), len(rotated))
        rotated = np.repeat(rotated, count, axis=0)
        density = inner.terms(rotated, np.asarray(self.mechanism.reference_value)).sum(axis=-1)
        return Cells(
            np.column_stack([rotated, index]),
            np.exp(-density) * count / len(rotated),
            lambda output: np.asarray(output)[..., -1].astype(np.intp),
            index,
        )
