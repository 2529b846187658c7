"""Laplace noise that never exceeds a bound: an (epsilon, delta) mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.domains import POSITIVE
from accountant.loss import Loss, Symmetric, epsilons
from accountant.numerics import Array, up
from accountant.randomness import Rng, generator
from accountant.responses import ApproxLoss
from mechanisms.additive import DIMENSION, Additive
from mechanisms.mechanism import IDEALISED, Arithmetic, arithmetic_of, draws
from mechanisms.parameters import declare, param
from mechanisms.supports import Line
from mechanisms.values import Reals


@final
@dataclass(frozen=True, slots=True)
class TruncatedLaplaceLoss(Symmetric):
    """Laplace(0, 1) of size at most ``reach`` against the same law moved by ``shift``."""

    shift: float
    reach: float

    def profile(self, epsilon: ArrayLike) -> Array:
        """Noise up to ``x`` tells the most, with ``x = (shift - epsilon) / 2``."""
        e = epsilons(epsilon)
        x = (self.shift - np.minimum(e, self.shift)) / 2
        # Q(noise <= x) of the moved law starts at its own lower end
        x = np.clip(x, self.shift - self.reach, self.reach)
        inside = self._below(x) - np.exp(np.minimum(e, self.shift)) * self._below(x - self.shift)
        total: Array = np.clip(np.maximum(inside, self.infinity) * (1 + 1e-15), 0.0, 1.0)
        return total

    def _below(self, x: Array) -> Array:
        # F(x) = (1 + sign(x) (1 - e^-|x|) / (1 - e^-bound)) / 2
        share = np.expm1(-np.minimum(np.abs(x), self.reach))
        share = share / math.expm1(-self.reach)
        below: Array = (1 + np.sign(x) * share) / 2
        return below

    @property
    def bound(self) -> float:
        """Where both laws live their ratio is that of Laplace noise."""
        return self.shift

    @property
    def infinity(self) -> float:
        """Mass of the noise beyond the other's end."""
        # (e^-(bound - shift) - e^-bound) / (2 (1 - e^-bound))
        if self.shift >= 2 * self.reach:
            return 1.0
        end = np.array(self.shift - self.reach)
        if end > 0:
            return up(float(self._below(end)))
        least = math.exp(-self.reach)
        return up(least * math.expm1(self.shift) / (2 * -math.expm1(-self.reach)))


@final
@declare
class TruncatedLaplace(Additive):
    """``value + scale * noise``, Laplace noise given that it is at most ``reach`` in size.

    Epsilon is ``sensitivity / scale`` where delta covers what lies beyond the reach.
    """

    releases: ClassVar[str] = "a number or vector, within a known distance"
    reference: ClassVar[str] = "Geng, Ding, Guo & Kumar (2020)"
    limits: ClassVar[str] = "low-order bits leak"

    scale: float = param(POSITIVE, "noise scale before the cut", typical=(1.0,), knob=True)
    reach: float = param(POSITIVE, "greatest size of the noise, in scales", typical=(11.0,))
    sensitivity: float = param(POSITIVE, "L1 sensitivity of the query", typical=(1.0,), default=1.0)
    dimension: int = param(DIMENSION, "coordinates of a value", typical=(1,), default=1)
    arithmetic: Arithmetic = arithmetic_of(IDEALISED)

    def release(self, value: ArrayLike, rng: Rng = None, size: int | None = None) -> Any:
        """Add noise by inverting its distribution function; see `Mechanism.release`."""
        real, source = self.values.check(value), generator(rng)
        shape = draws(size, real.shape)
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
    def loss(self) -> Loss:
        """That of two numbers; for vectors what is proved of them, epsilon and delta."""
        whole = TruncatedLaplaceLoss(self.sensitivity / self.scale, self.reach)
        return whole if self.dimension == 1 else ApproxLoss(up(whole.shift), whole.infinity)

    @property
    def loose(self) -> bool:
        """For vectors."""
        return self.dimension > 1

    @property
    def values(self) -> Reals:
        """Numbers, or vectors of the declared length."""
        return Reals(self.sensitivity, min(self.dimension - 1, 1), self.dimension)

    @property
    def support(self) -> Line:
        """The real line, with two ends."""
        bound = self.reach * self.scale
        return Line(lambda value: np.array([value - bound, value + bound]))
