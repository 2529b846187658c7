"""From an (epsilon, delta) local randomiser to a pure one, by choosing among public samples."""

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
from accountant.numerics.rounding import round_up
from accountant.plans.adjacency import Adjacency
from accountant.randomness import Rng, generator
from mechanisms.base.mechanism import IDEALISED, Arithmetic, Mechanism, draw_shape, sum_log_density
from mechanisms.base.parameters import declare, param
from mechanisms.base.supports import Cells, Support
from mechanisms.base.values import Values
from mechanisms.families.post_processing import MechanismsWithAttribute, PostProcessing
from mechanisms.gaussian import Gaussian

# beyond ln 2 half of e^odds is no probability
ODDS = Interval(1e-6, math.log(2))


class NumberMechanisms(MechanismsWithAttribute):
    """Mechanisms that release one number at a time."""

    __slots__ = ()

    def check(self, argument: str, value: object) -> Mechanism:
        """The mechanism itself."""
        found = MechanismsWithAttribute.check(self, argument, value)
        if found.value_axes == 1:
            raise ParameterError(argument, value, str(self))
        return found


@final
@declare
class PureFromApproximate(PostProcessing):
    """The index of one of ``candidates`` public samples of ``inner`` at a reference value.

    A report is the samples and the index, along the last axis; `chosen` gives the sample that
    stands for the user's own release.  The law of that is near the inner one where delta is far
    below ``1 / candidates``.  For an inner epsilon up to 1/4, with ``5 ln(1 / epsilon)``
    candidates, the cost is below ten times epsilon.
    """

    releases: ClassVar[str] = "a number of each user"
    reference: ClassVar[str] = "Bun, Nelson & Stemmer (2019), Algorithm GenProt"
    limits: ClassVar[str] = "a report is as long as the public samples"

    inner: Any = param(
        NumberMechanisms("terms", "a mechanism of numbers, such as Gaussian"), "is to be made pure",
        typical=(Gaussian(40.0),),
    )  # fmt: skip
    odds: float = param(
        ODDS, "log-odds that a bit may tell: twice the inner epsilon at its small delta",
        typical=(0.2,), knob=True,
    )  # fmt: skip
    candidates: int = param(IntegerRange(2, 10_000), "public samples of a user", typical=(12,))
    reference_value: float = param(
        REAL, "what the samples are released from", typical=(0.0,), default=0.0
    )

    with_noise_factor = Mechanism.with_noise_factor  # the knob is its own

    def release(self, value: ArrayLike, rng: Rng = None, size: int | None = None) -> Any:
        """Draw the public samples, then a bit for each, then one of the ones."""
        values, source = self.values.check(value), generator(rng)
        shape = draw_shape(size, values.shape)
        some = math.prod(shape) * self.candidates
        samples = np.reshape(
            self.inner.release(self.reference_value, source, some), (*shape, self.candidates)
        )
        bits = source.random(samples.shape) < self._bit_probabilities(samples, values)
        # the greatest of uniform keys among the ones, or among all where there is no one
        keys = source.random(samples.shape) + bits
        index = np.argmax(keys, axis=-1)
        return np.concatenate([samples, index[..., None]], axis=-1)

    def chosen(self, reports: ArrayLike) -> Array:
        """The sample that every report points at."""
        told = np.asarray(reports)
        index = told[..., -1:].astype(np.intp)
        found: Array = np.take_along_axis(told, index, axis=-1)[..., 0]
        return found

    def log_density(self, output: ArrayLike, value: ArrayLike, each: bool = False) -> Array:
        """That of the public samples, and the log-probability of the index given them."""
        told, values = np.asarray(output, dtype=float), np.asarray(value)
        samples, index = told[..., :-1], told[..., -1]
        p = self._bit_probabilities(samples, values)
        # P(t) = p_t E[1 / (1 + others)] + (1 - p_t) prod_{s != t} (1 - p_s) / T, and
        # E[1 / (1 + others)] = int_0^1 prod_{s != t} (1 - p_s + p_s z) dz, a polynomial
        x, w = legendre(self.candidates // 2 + 1)
        z = (x + 1) / 2
        at = np.clip(index, 0, self.candidates - 1).astype(np.intp)[..., None]
        own = np.take_along_axis(p, at, axis=-1)
        logs = np.log1p(-p[..., None, :] * (1 - z[:, None])).sum(axis=-1)
        others = np.exp(logs - np.log1p(-own * (1 - z)))
        nobody = np.exp(np.log1p(-p).sum(axis=-1))
        chance = own[..., 0] * (others @ w) / 2 + nobody / self.candidates
        drawn = self.inner.terms(samples, np.asarray(self.reference_value)).sum(axis=-1)
        possible = (index >= 0) & (index < self.candidates) & (index == np.floor(index))
        terms = np.where(possible, drawn + np.log(chance), -np.inf)
        return sum_log_density(terms, values.ndim, each)

    @property
    def loss(self) -> PureLoss:
        """The greatest odds between any two rows of bit probabilities; see the class.

        P(t) grows with p_t and falls with every other p_s, so the extremes are high among low
        ones and low among high ones.
        """
        most, least = min(math.exp(self.odds) / 2, 1.0), math.exp(-self.odds) / 2
        return PureLoss(
            round_up(
                math.log(
                    self._selection_probability(most, least)
                    / self._selection_probability(least, most)
                ),
                64,
            )
        )

    @property
    def values(self) -> Values:
        """Numbers: each coordinate of a vector would cost as much again."""
        numbers: Values = dataclasses.replace(self.inner.values, axes=0)
        return numbers

    @property
    def arithmetic(self) -> Arithmetic:
        """Floats decide the bits."""
        return IDEALISED

    @property
    def relation(self) -> Adjacency:
        """Each user chooses among samples of their own."""
        return Adjacency.LOCAL_REPLACE

    @property
    def support(self) -> Support:
        """The index, given many rows of public samples."""
        return RotatedSamples(self)

    def _selection_probability(self, own: float, other: float) -> float:
        # E[1 / (1 + Bin(T - 1, p))] = (1 - (1 - p)^T) / (T p)
        t = self.candidates
        none = (1 - own) * (1 - other) ** (t - 1) / t
        return own * (1 - (1 - other) ** t) / (t * other) + none

    def _bit_probabilities(self, samples: Array, values: NDArray[Any]) -> Array:
        """Probability of a one for each sample; a half where the odds leave the box."""
        with np.errstate(over="ignore", invalid="ignore"):
            odds = self.inner.terms(samples, values[..., None])
            odds = odds - self.inner.terms(samples, np.asarray(self.reference_value))
            inside = np.abs(odds) <= self.odds
            chances: Array = np.where(inside, np.exp(np.where(inside, odds, 0.0)) / 2, 0.5)
        return np.minimum(chances, 1.0)


@dataclass(frozen=True, slots=True)
class RotatedSamples(Support):
    """Reports with a few rows of public samples, each in all rotations: the index is uniform.

    The measure is what makes densities conditional on these samples; parts are indices.
    """

    mechanism: PureFromApproximate

    def cells(self, first: Any, second: Any) -> Cells:
        """Every index with every row."""
        del first, second
        count, inner = self.mechanism.candidates, self.mechanism.inner
        rng, rows = np.random.default_rng(0), 6
        samples = np.reshape(
            inner.release(self.mechanism.reference_value, rng, rows * count), (rows, count)
        )
        turned = np.concatenate([np.roll(samples, shift, axis=1) for shift in range(count)])
        index = np.tile(np.arange(count), len(turned))
        turned = np.repeat(turned, count, axis=0)
        density = inner.terms(turned, np.asarray(self.mechanism.reference_value)).sum(axis=-1)
        return Cells(
            np.column_stack([turned, index]), np.exp(-density) * count / len(turned),
            lambda output: np.asarray(output)[..., -1].astype(np.intp), index,
        )  # fmt: skip
