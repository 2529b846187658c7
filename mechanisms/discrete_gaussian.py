"""Discrete Gaussian noise on integers, exact."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.domains import POSITIVE
from accountant.losses.finite import FiniteLoss
from accountant.losses.finite_pair import PairLoss
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.loss import Loss, orders
from accountant.losses.zcdp import ZCDPLoss
from accountant.numerics import Array
from accountant.numerics.rounding import round_up, round_up_square
from accountant.randomness import Rng, generator
from mechanisms.base.mechanism import EXACT, Arithmetic, draw_shape
from mechanisms.base.parameters import declare, param
from mechanisms.base.supports import Lattice
from mechanisms.base.values import Integers
from mechanisms.discrete_laplace import INTEGER_NOISE_SCALE, MAX_ENUMERATED_OUTCOMES
from mechanisms.exact_noise.integer_noise import IntegerNoise
from mechanisms.families.additive import DIMENSION, AdditiveNoise
from mechanisms.families.expected_maxima import expected_max_abs_gaussian

ENUMERATED_DEVIATIONS = 37.5  # standard deviations with all but 1e-300 of the law
CONTINUOUS_FROM = (
    6.0  # from here on a narrower continuous law costs less than the concentrated bound
)


@final
@declare
class DiscreteGaussian(AdditiveNoise):
    """``value + k`` with probability proportional to ``exp(-k^2 / (2 scale^2))``, k whole.

    The loss is exact for numbers and a small scale; otherwise it is that of a continuous
    Gaussian a little narrower, or the concentrated bound ``sensitivity^2 / (2 scale^2)``.
    """

    releases: ClassVar[str] = "a whole number or a vector of them"
    reference: ClassVar[str] = "Canonne, Kamath & Steinke (2020)"
    limits: ClassVar[str] = "the time of a draw varies; sums stay at the ends of 64 bits"

    scale: float = param(
        INTEGER_NOISE_SCALE, "standard deviation of the noise", typical=(3.75,), knob=True
    )
    sensitivity: float = param(POSITIVE, "L2 sensitivity", typical=(1.0, 2.5), default=1.0)
    dimension: int = param(DIMENSION, "coordinates of a value", typical=(1,), default=1)

    def release(self, value: ArrayLike, rng: Rng = None, size: int | None = None) -> Any:
        """Add noise; see `Mechanism.release`."""
        whole, source = self.values.check(value), generator(rng)
        return IntegerNoise(self.scale, 2).add_to(whole, draw_shape(size, whole.shape), source)

    def terms(self, output: ArrayLike, value: ArrayLike) -> Array:
        """``-(output - value)^2 / (2 scale^2) - ln sum_k exp(-k^2 / (2 scale^2))``."""
        z = np.subtract(output, value) / self.scale
        terms: Array = -z * z / 2 - math.log(_normaliser(self.scale))
        return terms

    @property
    def deviation(self) -> float:
        """At most the scale (Canonne, Kamath & Steinke, Corollary 9)."""
        return self.scale

    def expected_maximum(self, dimension: int) -> float:
        """At most that of continuous Gaussian noise and 1 (their Proposition 25)."""
        return self.scale * expected_max_abs_gaussian(dimension) + 1

    @property
    def loss(self) -> Loss:
        """The least bound that is known; see the class."""
        if self._is_enumerated:
            return ListedGaussian(self.scale, self._integer_sensitivity)
        if self.scale < CONTINUOUS_FROM:
            return ZCDPLoss(round_up_square(self.sensitivity / self.scale, 2))
        # a Gaussian of deviation sqrt(scale^2 - 4) and a kernel make the discrete law, but for
        # a factor 1 + 1e-33 of delta: docs/proofs/discrete.md
        return GaussianLoss(round_up(self.sensitivity / math.sqrt(self.scale**2 - 4)))

    @property
    def loss_is_upper_bound(self) -> bool:
        """Wherever the loss is not that of one listed pair."""
        return not self._is_enumerated

    def worst_pair(self, epsilon: float = 0.0) -> tuple[Any, Any]:
        """Two numbers one sensitivity apart, or vectors that differ so in one coordinate."""
        del epsilon
        return self._pair_at_distance(self._integer_sensitivity)

    @property
    def values(self) -> Integers:
        """Whole numbers, or vectors of the declared length."""
        return Integers(self.sensitivity, min(self.dimension - 1, 1), self.dimension)

    @property
    def support(self) -> Lattice:
        """The integers."""
        return Lattice(12 * self.scale)

    @property
    def arithmetic(self) -> Arithmetic:
        """Exact."""
        return EXACT

    @property
    def _integer_sensitivity(self) -> int:
        """The greatest whole move of one coordinate."""
        return math.floor(self.sensitivity)

    @property
    def _is_enumerated(self) -> bool:
        """Whether one pair of numbers is all, and its outcomes are few."""
        few = (
            2 * ENUMERATED_DEVIATIONS * self.scale + self._integer_sensitivity
            < 2 * MAX_ENUMERATED_OUTCOMES
        )
        return self.dimension == 1 and few and self._integer_sensitivity >= 1


@final
@dataclass(frozen=True, slots=True)
class ListedGaussian(FiniteLoss):
    """Discrete Gaussian noise on numbers ``shift`` apart: outcome by outcome, rho by proof."""

    scale: float
    shift: int

    def profile(self, epsilon: ArrayLike) -> Array:
        """That of the list."""
        return _enumerated_pair(self.scale, self.shift).profile(epsilon)

    @property
    def reversed(self) -> Self:
        """Itself, mirrored."""
        return self

    @property
    def loss_pmf(self) -> tuple[Array, Array]:
        """Those of the list."""
        return _enumerated_pair(self.scale, self.shift).loss_pmf

    @property
    def max_loss(self) -> float:
        """The greatest that is listed."""
        return _enumerated_pair(self.scale, self.shift).max_loss

    @property
    def infinity(self) -> float:
        """What is not listed."""
        return 1e-300

    @property
    def rho(self) -> float:
        """``shift^2 / (2 scale^2)`` (Canonne, Kamath & Steinke, Theorem 14)."""
        return round_up_square(self.shift / self.scale, 2)

    def renyi(self, order: ArrayLike) -> Array:
        """``order rho``, the same for all integers."""
        divergence: Array = orders(order) * self.rho
        return divergence


def _normaliser(scale: float) -> float:
    """``sum_k exp(-k^2 / (2 scale^2))``, from whichever of Poisson's two sums is short."""
    k = np.arange(1, 12)
    if scale > 1:
        waves = float(np.exp(-2 * (math.pi * scale * k) ** 2).sum())
        return math.sqrt(2 * math.pi) * scale * (1 + 2 * waves)
    with np.errstate(over="ignore"):
        return 1 + 2 * float(np.exp(-((k / scale) ** 2) / 2).sum())


@functools.lru_cache(maxsize=1024)
def _enumerated_pair(scale: float, shift: int) -> PairLoss:
    reach = math.ceil(ENUMERATED_DEVIATIONS * scale)
    x = np.arange(-reach, reach + shift + 1)
    p, q = (np.exp(-(((x - v) / scale) ** 2) / 2) / _normaliser(scale) for v in (0, shift))
    # what lies beyond is told apart for certain
    return PairLoss([*p, 1e-300, 0.0], [*q, 0.0, 1e-300])
