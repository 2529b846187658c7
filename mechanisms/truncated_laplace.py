"""Laplace noise that never exceeds a bound: an (epsilon, delta) mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.domains import POSITIVE, Interval
from accountant.losses.loss import Loss, SymmetricLoss, epsilons
from accountant.losses.pure_and_approximate import ApproxLoss
from accountant.numerics import Array
from accountant.numerics.rounding import ULP, round_up, round_up_ratio, round_up_square
from accountant.randomness import Rng, generator
from mechanisms.base.mechanism import IDEALISED, arithmetic_field, draw_shape
from mechanisms.base.parameters import declare, param
from mechanisms.base.supports import RealLine
from mechanisms.base.values import Reals
from mechanisms.families.additive import DIMENSION, AdditiveNoise
from mechanisms.families.expected_maxima import expected_max_exponential


@final
@dataclass(frozen=True, slots=True)
class TruncatedLaplaceLoss(SymmetricLoss):
    """Laplace(0, 1) of size at most ``reach`` against the same law moved by ``shift``."""

    shift: float
    reach: float

    def profile(self, epsilon: ArrayLike) -> Array:
        """Noise up to ``x`` tells the most, with ``x = (shift - epsilon) / 2``."""
        e = np.minimum(epsilons(epsilon), self.shift)
        # the moved law begins at shift - reach, and this one ends at reach
        x = np.clip((self.shift - e) / 2, self.shift - self.reach, self.reach)
        inside = self._scaled_cdf(x, 0.0) - self._scaled_cdf(x - self.shift, e)
        total: Array = np.clip(np.maximum(inside, 0.0) + 4 * ULP, self.infinity, 1.0)
        return np.where(epsilons(epsilon) >= self.shift, self.infinity, total)

    def _scaled_cdf(self, x: Array, log_factor: ArrayLike) -> Array:
        """``e^log_factor P(noise <= x)``, without cancelling in the lower tail."""
        # P(noise <= -y) = P(noise >= y) = e^-y (1 - e^-(reach - y)) / d with d = 2 (1 - e^-reach)
        d, factor = -2 * math.expm1(-self.reach), np.asarray(log_factor)
        share = -np.expm1(-np.maximum(self.reach - np.abs(x), 0.0)) / d
        lower = np.exp(np.where(x < 0, factor, 0.0) - np.abs(x)) * share
        upper = np.exp(np.where(x < 0, 0.0, factor)) * (1 - np.exp(-np.abs(x)) * share)
        return np.where(x < 0, lower, upper)

    @property
    def max_loss(self) -> float:
        """Where both laws live their ratio is that of Laplace noise."""
        return self.shift

    @property
    def rho(self) -> float:
        """Of the finite part, which is pure."""
        return round_up_square(self.shift, 2)

    @property
    def infinity(self) -> float:
        """Mass of the noise beyond the other's end."""
        # (e^-(reach - shift) - e^-reach) / (2 (1 - e^-reach)), or its mirror beyond the middle
        d, beyond = -2 * math.expm1(-self.reach), self.shift - self.reach
        if beyond >= self.reach:
            return 1.0
        if beyond > 0:
            return min(1.0, round_up(1 + math.exp(-beyond) * math.expm1(beyond - self.reach) / d))
        return max(round_up(math.exp(beyond) * -math.expm1(-self.shift) / d, 16.0), 1e-300)


@final
@declare
class TruncatedLaplace(AdditiveNoise):
    """``value + scale * noise``, Laplace noise given that it is at most ``reach`` in size.

    Epsilon is ``sensitivity / scale`` where delta covers what lies beyond the reach.
    """

    releases: ClassVar[str] = "a number or vector, within a known distance"
    reference: ClassVar[str] = "Geng, Ding, Guo & Kumar (2020)"
    limits: ClassVar[str] = "low-order bits leak"

    scale: float = param(POSITIVE, "noise scale before the cut", typical=(1.0,), knob=True)
    reach: float = param(
        Interval(1e-3, 1e4), "greatest size of the noise, in scales", typical=(11.0,)
    )
    sensitivity: float = param(POSITIVE, "L1 sensitivity of the query", typical=(1.0,), default=1.0)
    dimension: int = param(DIMENSION, "coordinates of a value", typical=(1,), default=1)
    arithmetic: str = arithmetic_field(IDEALISED)

    def release(self, value: ArrayLike, rng: Rng = None, size: int | None = None) -> Any:
        """Add noise by inverting its distribution function; see `Mechanism.release`."""
        real, source = self.values.check(value), generator(rng)
        shape = draw_shape(size, real.shape)
        sign = 1 - 2.0 * source.integers(0, 2, shape)
        share = source.random(shape) * math.expm1(-self.reach)
        return real - sign * self.scale * np.log1p(share)

    def terms(self, output: ArrayLike, value: ArrayLike) -> Array:
        """That of Laplace noise, divided by the mass within the bound."""
        distance = np.abs(np.subtract(output, value)) / self.scale
        mass = -2 * self.scale * math.expm1(-self.reach)
        terms: Array = np.where(distance <= self.reach, -distance - math.log(mass), -np.inf)
        return terms

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise in a coordinate."""
        # E Z^2 = 2 - e^-r (r^2 + 2 r) / (1 - e^-r) of what is left of the exponential law
        cut = self.reach * (self.reach + 2) / math.expm1(min(self.reach, 700.0))
        return self.scale * math.sqrt(2 - cut)

    def expected_maximum(self, dimension: int) -> float:
        """At most that of Laplace noise, and at most the reach."""
        return self.scale * min(expected_max_exponential(dimension), self.reach)

    @property
    def loss(self) -> Loss:
        """That of two numbers; for vectors what is proved of them, epsilon and delta."""
        whole = TruncatedLaplaceLoss(round_up_ratio(self.sensitivity, self.scale), self.reach)
        return whole if self.dimension == 1 else ApproxLoss(round_up(whole.shift), whole.infinity)

    @property
    def loss_is_upper_bound(self) -> bool:
        """For vectors."""
        return self.dimension > 1

    @property
    def values(self) -> Reals:
        """Numbers, or vectors of the declared length."""
        return Reals(self.sensitivity, min(self.dimension - 1, 1), self.dimension)

    @property
    def support(self) -> RealLine:
        """The real line, with two ends."""
        bound = self.reach * self.scale
        return RealLine(lambda value: np.array([value - bound, value + bound]))
