"""Laplace noise conditioned to lie within a bound: an (epsilon, delta) mechanism.

A release is never farther from the value than the bound.  So some outputs are possible for one of
two neighbours only, and delta is at least their probability.

References: Geng, Ding, Guo & Kumar (2020).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.amplification.sampled_ratio_cgf import (
    MAX_SHIFT,
    SampledRatioCGF,
    SampledRatioLaw,
)
from accountant.domains import POSITIVE, Interval
from accountant.losses.least_rho import least_rho, rho_of_pure
from accountant.losses.loss import Loss, SymmetricLoss, epsilons
from accountant.losses.loss_numerics import PROFILE_ONLY, LossNumerics
from accountant.losses.pure_and_approximate import ApproxLoss
from accountant.losses.ratio_law import RatioLaw, laplace_ratio_law
from accountant.numerics import Array
from accountant.numerics.rounding import ULP, round_up
from accountant.randomness import Rng, generator
from mechanisms.base import (
    EXACT,
    IDEALISED,
    RealLine,
    Reals,
    arithmetic_field,
    declare,
    draw_shape,
    param,
)
from mechanisms.exact_noise import rounding_grid as grid
from mechanisms.exact_noise.integer_noise import IntegerNoise
from mechanisms.families.additive import DIMENSION, RealNoise
from mechanisms.families.expected_maxima import expected_max_exponential

CGF = SampledRatioCGF()
NUMERICS = LossNumerics(CGF)


@final
@dataclass(frozen=True, slots=True)
class TruncatedLaplaceLoss(SymmetricLoss):
    """The loss of Laplace(0, 1) within ``reach``, against the same moved by ``shift``.

    Its cumulants are integrals of `SampledRatioCGF`, which is for records that are sampled at a
    rate; here the rate is 1.
    """

    shift: float  # the sensitivity, in scales of the noise
    reach: float  # the largest absolute noise, in scales

    def profile(self, epsilon: ArrayLike) -> Array:
        """Return delta at each epsilon: noise up to ``(shift - epsilon) / 2`` has larger losses."""
        e = np.minimum(epsilons(epsilon), self.shift)
        # The outputs up to x have losses above e, where x is moved into the range of outputs that
        # both distributions have: the shifted one begins at shift - reach, this one ends at reach.
        # Where the first is above the second, `infinity` is 1, and so is the result.
        x = np.clip((self.shift - e) / 2, self.shift - self.reach, self.reach)
        inside = self._scaled_cdf(x, 0.0) - self._scaled_cdf(x - self.shift, e)
        # Four ULP are for the functions of the two probabilities, which are at most 1.  Exponents
        # are differences of two numbers up to the shift, rounded by half an ULP of it each.
        slack = (4 + self.shift) * ULP
        total: Array = np.clip(np.maximum(inside, 0.0) + slack, self.infinity, 1.0)
        return np.where(epsilons(epsilon) >= self.shift, self.infinity, total)

    @property
    def ratio_law(self) -> RatioLaw | None:
        """Atoms at both ends, and outputs that only one of the two can give."""
        return laplace_ratio_law(self.shift, self.reach)

    @property
    def sampled_ratio_law(self) -> SampledRatioLaw | None:
        """The law at sampling rate 1; None where it has no finite part, or too wide a one."""
        law = self.ratio_law
        return None if law is None or law.high > MAX_SHIFT else SampledRatioLaw(law, 1.0, False)

    @property
    def numerics(self) -> LossNumerics:
        """The cumulant is a quadrature between the atoms."""
        return PROFILE_ONLY if self.sampled_ratio_law is None else NUMERICS

    def cumulant(self, z: ArrayLike) -> Any:
        """Return ``ln E[e^{zL}]`` of the finite part."""
        if self.sampled_ratio_law is None:
            return Loss.cumulant(self, z)
        total, _ = CGF.sum_cgf([self], counts=np.ones(1), z=np.asarray(z, dtype=complex))
        return total[()]

    def _scaled_cdf(self, x: Array, log_factor: ArrayLike) -> Array:
        """Return ``e^log_factor P(noise <= x)``, without cancellation in the lower tail."""
        # P(noise <= -y) = P(noise >= y) = e^-y (1 - e^-(reach - y)) / d with d = 2 (1 - e^-reach)
        d, factor = -2 * math.expm1(-self.reach), np.asarray(log_factor)
        share = -np.expm1(-np.maximum(self.reach - np.abs(x), 0.0)) / d
        # An exponent above 0 occurs at x = -reach only, where the share is 0.
        exponent = np.minimum(np.where(x < 0, factor, 0.0) - np.abs(x), 700.0)
        lower = np.exp(exponent) * share
        upper = np.exp(np.where(x < 0, 0.0, factor)) * (1 - np.exp(-np.abs(x)) * share)
        return np.where(x < 0, lower, upper)

    @property
    def max_loss(self) -> float:
        """The largest finite loss, in nats: that of Laplace noise."""
        return self.shift

    @property
    def rho(self) -> float:
        """The zCDP parameter of the finite part, which is pure; rounded up."""
        return min(rho_of_pure(self.shift), least_rho(self))

    @property
    def infinity(self) -> float:
        """The mass of outputs that the neighbour's noise cannot reach, rounded up."""
        # (e^-(reach - shift) - e^-reach) / (2 (1 - e^-reach)), or its mirror beyond the middle
        d, beyond = -2 * math.expm1(-self.reach), self.shift - self.reach
        if beyond >= self.reach:
            return 1.0
        if beyond > 0:
            return min(1.0, round_up(1 + math.exp(-beyond) * math.expm1(beyond - self.reach) / d))
        # 16 ULP are for the functions; the exponent is rounded by half an ULP of itself.  The mass
        # is positive, also where the float underflows.
        mass = math.exp(beyond) * -math.expm1(-self.shift) / d
        return max(round_up(mass, ulps=16.0 - beyond), 1e-300)


@final
@declare
class TruncatedLaplace(RealNoise):
    """Laplace noise conditioned to at most ``reach`` in absolute value, times ``scale``.

    Epsilon is ``sensitivity / scale`` where delta covers the mass beyond the other value's reach.
    Exact noise is drawn on a grid.  It may exceed the reach by a few steps of the grid, 2^-40 of
    the scale each, and ``drawn_scale`` may be wider than the scale, as rounding a value to the grid
    moves it.

    Examples
    --------
    >>> from mechanisms import TruncatedLaplace
    >>> one = TruncatedLaplace(scale=1.0, reach=11.0)
    >>> round(float(one.release(10.0, rng=0)), 4)
    8.9916
    >>> round(one.loss.epsilon_at(1e-4), 6)
    0.999829
    """

    # `RealNoise` has densities proportional to e^{-|x / scale|^power / power}, here cut off.
    power: ClassVar[int] = 1
    releases: ClassVar[str] = "a number or vector, within a known distance"
    reference: ClassVar[str] = "Geng, Ding, Guo & Kumar (2020)"
    limits: ClassVar[str] = "idealised: low-order bits leak; exact: the time of a draw varies"

    scale: float = param(POSITIVE, "noise scale before the cut", typical=(1.0,), knob=True)
    reach: float = param(Interval(1e-3, 1e4), "largest absolute noise, in scales", typical=(11.0,))
    sensitivity: float = param(POSITIVE, "L1 sensitivity of the query", typical=(1.0,), default=1.0)
    dimension: int = param(DIMENSION, "coordinates of a value", typical=(1,), default=1)
    arithmetic: str = arithmetic_field(EXACT, IDEALISED)

    def release(self, value: ArrayLike, rng: Rng = None, size: int | None = None) -> Any:
        """Return the value plus noise; see `Mechanism.release`."""
        real, source = self.values.check(value), generator(rng)
        shape = draw_shape(size, real.shape)
        if self.arithmetic is EXACT:
            # This is continuous noise within a whole number of steps of the grid, rounded to the
            # middle of its step.
            k = grid.grid_exponent(self.scale)
            noise = self._cells.draw(math.prod(shape), source).reshape(shape)
            return grid.add_steps(real, k, noise, middle=True)
        sign = 1 - 2.0 * source.integers(0, 2, shape)
        share = source.random(shape) * math.expm1(-self.reach)
        return real - sign * self.scale * np.log1p(share)

    def terms(self, output: ArrayLike, value: ArrayLike) -> Array:
        """Return the Laplace log-density minus the logarithm of the mass within the reach."""
        distance = np.abs(np.subtract(output, self.noise_centre(value))) / self.drawn_scale
        mass = -2 * self.drawn_scale * math.expm1(-self.drawn_reach)
        terms: Array = np.where(distance <= self.drawn_reach, -distance - math.log(mass), -np.inf)
        return terms

    @property
    def drawn_reach(self) -> float:
        """The largest absolute noise in drawn scales: exact noise ends with a step of the grid."""
        if self.arithmetic is EXACT:
            return self._reach_steps * grid.grid_step(self.scale) / self.drawn_scale
        return self.reach

    @property
    def _reach_steps(self) -> int:
        # One more step covers all rounding; a longer reach costs less.
        return math.ceil(self.reach * (self.drawn_scale / grid.grid_step(self.scale))) + 1

    @property
    def _cells(self) -> IntegerNoise:
        """The exact noise: cells of the grid.

        The ``reach`` of `IntegerNoise` is the step at which the last cell begins.  The cell ends
        one step farther: at `_reach_steps`.
        """
        width = math.ldexp(self.drawn_scale, -grid.grid_exponent(self.scale))
        return IntegerNoise(width, power=1, reach=self._reach_steps - 1, cells=True)

    @property
    def drawn_numbers(self) -> dict[str, Any]:
        """The scale and the grid of the noise, and its reach in steps of it."""
        if self.arithmetic is not EXACT:
            return {"drawn_scale": self.scale, "step": 0.0}
        step = grid.grid_step(self.scale)
        return {"drawn_scale": self.drawn_scale, "step": step, "reach_steps": self._reach_steps}

    @property
    def drawn_tables(self) -> list[dict[str, Any]]:
        """The table of the cells."""
        return [self._cells.table] if self.arithmetic is EXACT else []

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise in a coordinate."""
        # E Z^2 = 2 - e^-r (r^2 + 2 r) / (1 - e^-r) of the truncated exponential distribution, where
        # the last term is below all rounding for r = 700.
        reach = self.drawn_reach
        cut = reach * (reach + 2) / math.expm1(min(reach, 700.0))
        return self.drawn_scale * math.sqrt(2 - cut)

    def expected_maximum(self, dimension: int) -> float:
        """Return a bound of the expected largest noise: that of Laplace noise, or the reach.

        Parameters
        ----------
        dimension : int
            Number of coordinates.

        Returns
        -------
        float
            An upper bound of the expected largest absolute noise, in the units of the value.
        """
        return self.drawn_scale * min(expected_max_exponential(dimension), self.drawn_reach)

    @property
    def loss(self) -> Loss:
        """The exact loss for numbers; for vectors the proven epsilon and delta."""
        # Exact noise is drawn with `drawn_reach`, slightly longer than the reach here, and costs
        # less.  The delta of a vector is at most the sum over its coordinates of the mass that a
        # coordinate moves out of reach.  That mass lies at an end of the noise, in an interval as
        # wide as the move.  An interval of that width nearer to the centre has more mass.  So the
        # sum is at most the mass of one number that moves by the whole L1 sensitivity.
        number_loss = TruncatedLaplaceLoss(self._shift, self.reach)
        return (
            number_loss
            if self.dimension == 1
            else ApproxLoss(round_up(number_loss.shift), number_loss.infinity)
        )

    @property
    def loss_is_upper_bound(self) -> bool:
        """Whether values are vectors."""
        return self.dimension > 1

    @property
    def values(self) -> Reals:
        """Numbers, or vectors of the declared length."""
        axes = 1 if self.dimension > 1 else 0
        return Reals(self.sensitivity, axes=axes, dimension=self.dimension)

    @property
    def support(self) -> RealLine:
        """The real line, with jumps at the two ends of the noise."""
        bound = self.drawn_reach * self.drawn_scale
        ends = np.array([-bound, bound])
        return RealLine(lambda value: float(self.noise_centre(value)) + ends)
