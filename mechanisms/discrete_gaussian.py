"""Discrete Gaussian noise on integers, exact.

References: Canonne, Kamath & Steinke (2020); proofs in docs/proofs/discrete.md.
"""

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
from mechanisms.base import EXACT, Arithmetic, Integers, Lattice, declare, draw_shape, param
from mechanisms.discrete_laplace import INTEGER_NOISE_SCALE
from mechanisms.exact_noise.integer_noise import IntegerNoise
from mechanisms.families.additive import DIMENSION, AdditiveNoise
from mechanisms.families.expected_maxima import expected_max_abs_gaussian

MAX_ENUMERATED_OUTCOMES = 2048  # outcomes of a loss that are listed
ENUMERATED_DEVIATIONS = 37.5  # standard deviations with all but 1e-300 of the mass
CONTINUOUS_FROM = (
    6.0  # from here on a narrower continuous Gaussian costs less than the concentrated bound
)


@final
@declare
class DiscreteGaussian(AdditiveNoise):
    """The integer ``value + k`` with probability of k proportional to ``exp(-k^2 / (2 scale^2))``.

    The loss is exact for numbers and a small scale; otherwise it is that of a continuous Gaussian a
    little narrower, or the zCDP bound ``rho = sensitivity^2 / (2 scale^2)``.

    Examples
    --------
    >>> from mechanisms import DiscreteGaussian
    >>> one = DiscreteGaussian(scale=4.0)
    >>> one.release([10, 20, 30], rng=0).tolist()
    [7, 19, 30]
    >>> round(one.loss.rho, 6)
    0.03125
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
        """Return the value plus noise; see `Mechanism.release`."""
        whole, source = self.values.check(value), generator(rng)
        return IntegerNoise(self.scale, 2).add_to(whole, draw_shape(size, whole.shape), source)

    def terms(self, output: ArrayLike, value: ArrayLike) -> Array:
        """Return ``-(output - value)^2 / (2 scale^2) - ln sum_k exp(-k^2 / (2 scale^2))``."""
        z = np.subtract(output, value) / self.scale
        terms: Array = -z * z / 2 - math.log(_normaliser(self.scale))
        return terms

    @property
    def deviation(self) -> float:
        """An upper bound of the standard deviation (Canonne, Kamath & Steinke, Corollary 9)."""
        return self.scale

    def expected_maximum(self, dimension: int) -> float:
        """Return a bound of the expected largest noise: the Gaussian's plus 1 (Proposition 25).

        Parameters
        ----------
        dimension : int
            Number of coordinates.

        Returns
        -------
        float
            An upper bound of the expected largest absolute noise, in the units of the value.
        """
        return self.scale * expected_max_abs_gaussian(dimension) + 1

    @property
    def loss(self) -> Loss:
        """The smallest known bound; see the class."""
        if self._is_enumerated:
            return ListedGaussian(self.scale, self._integer_sensitivity)
        if self.scale < CONTINUOUS_FROM:
            return ZCDPLoss(round_up_square(self.sensitivity / self.scale, 2))
        # a Gaussian of deviation sqrt(scale^2 - 4) and a kernel make the discrete distribution, up
        # to a factor 1 + 1e-33 of delta: docs/proofs/discrete.md
        return GaussianLoss(round_up(self.sensitivity / math.sqrt(self.scale**2 - 4)))

    @property
    def loss_is_upper_bound(self) -> bool:
        """Whether the loss is not that of one enumerated pair."""
        return not self._is_enumerated

    @property
    def why_no_formula(self) -> str:
        """A bound stands for what is too long to list."""
        return "" if self._is_enumerated else "a Gaussian or zCDP bound, which no pair attains"

    @property
    def drawn_numbers(self) -> dict[str, Any]:
        """The scale of the noise."""
        return {"drawn_scale": self.scale, "step": 0.0}

    @property
    def drawn_tables(self) -> list[dict[str, Any]]:
        """The table of the noise."""
        return [IntegerNoise(self.scale, 2).table]

    def worst_pair(self, epsilon: float = 0.0) -> tuple[Any, Any]:
        """Return two numbers one sensitivity apart, or vectors that differ so in one coordinate."""
        del epsilon
        return self._pair_at_distance(self._integer_sensitivity)

    @property
    def values(self) -> Integers:
        """Integers, or vectors of the declared length."""
        return Integers(self.sensitivity, min(self.dimension - 1, 1), self.dimension)

    @property
    def support(self) -> Lattice:
        """The integers."""
        return Lattice(12 * self.scale)

    @property
    def arithmetic(self) -> Arithmetic:
        """EXACT."""
        return EXACT

    @property
    def _integer_sensitivity(self) -> int:
        """The largest integer move of one coordinate."""
        return math.floor(self.sensitivity)

    @property
    def _is_enumerated(self) -> bool:
        """Whether values are numbers and few outcomes have to be listed."""
        few = (
            2 * ENUMERATED_DEVIATIONS * self.scale + self._integer_sensitivity
            < 2 * MAX_ENUMERATED_OUTCOMES
        )
        return self.dimension == 1 and few and self._integer_sensitivity >= 1


@final
@dataclass(frozen=True, slots=True)
class ListedGaussian(FiniteLoss):
    """The loss of discrete Gaussian noise on numbers ``shift`` apart, listed by outcome."""

    scale: float
    shift: int

    def profile(self, epsilon: ArrayLike) -> Array:
        """Return the privacy profile of the listed pair."""
        return _enumerated_pair(self.scale, self.shift).profile(epsilon)

    @property
    def reversed(self) -> Self:
        """The loss itself, as the noise is symmetric."""
        return self

    @property
    def loss_pmf(self) -> tuple[Array, Array]:
        """Losses and probabilities of the listed pair."""
        return _enumerated_pair(self.scale, self.shift).loss_pmf

    @property
    def max_loss(self) -> float:
        """The largest listed loss, in nats."""
        return _enumerated_pair(self.scale, self.shift).max_loss

    @property
    def infinity(self) -> float:
        """An upper bound on the mass that is not listed, 1e-300."""
        return 1e-300

    @property
    def rho(self) -> float:
        """``shift^2 / (2 scale^2)``, rounded up (Canonne, Kamath & Steinke, Theorem 14)."""
        return round_up_square(self.shift / self.scale, 2)

    def renyi(self, order: ArrayLike) -> Array:
        """Return ``order * rho``, a bound of the Rényi divergence at every order."""
        divergence: Array = orders(order) * self.rho
        return divergence


def _normaliser(scale: float) -> float:
    """Return ``sum_k exp(-k^2 / (2 scale^2))``, by the shorter of Poisson's two sums."""
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
    # outcomes beyond the list occur on one side only
    return PairLoss([*p, 1e-300, 0.0], [*q, 0.0, 1e-300])
