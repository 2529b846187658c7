"""Discrete Laplace (two-sided geometric) noise for integers, with exact draws.

The noise is an integer k with probability proportional to exp(-|k| / scale).  No floating-point
error of a draw changes these probabilities, which the loss assumes.

References: Ghosh, Roughgarden & Sundararajan (2012); proofs in docs/proofs/discrete.md.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.domains import IntegerRange, Interval
from accountant.losses.discrete_laplace import MAX_SHIFT, DiscreteLaplaceLoss
from accountant.losses.laplace import LaplaceLoss
from accountant.losses.loss import Loss
from accountant.numerics import Array
from accountant.numerics.rounding import round_up, round_up_ratio
from accountant.randomness import Rng, generator
from mechanisms.base import EXACT, Arithmetic, Integers, Lattice, declare, draw_shape, param
from mechanisms.exact_noise.integer_noise import IntegerNoise
from mechanisms.families.additive import AdditiveNoise
from mechanisms.families.expected_maxima import expected_max_exponential

# Scales of noise on the integers.  Smaller noise is almost always 0, and larger noise would leave
# little room in 64 bits.
INTEGER_NOISE_SCALE = Interval(0.01, 2.0**50)


@final
@declare
class DiscreteLaplace(AdditiveNoise):
    """The integer ``value + k`` with probability of k proportional to ``exp(-|k| / scale)``.

    Examples
    --------
    >>> from mechanisms import DiscreteLaplace
    >>> one = DiscreteLaplace(scale=2.0)
    >>> one.release([10, 20, 30], rng=0).tolist()
    [8, 20, 27]
    >>> round(one.loss.pure, 6)
    0.5
    """

    releases: ClassVar[str] = "a whole number or a vector of them"
    statistic: ClassVar[str | None] = "count"
    reference: ClassVar[str] = "Ghosh, Roughgarden & Sundararajan (2012)"
    limits: ClassVar[str] = "the time of a draw varies; sums stay at the ends of 64 bits"

    scale: float = param(INTEGER_NOISE_SCALE, "noise scale", typical=(1.0, 2.7), knob=True)
    sensitivity: int = param(
        IntegerRange(1, floats=True), "L1 sensitivity, whole", typical=(1, 3), default=1
    )

    def release(self, value: ArrayLike, rng: Rng = None, size: int | None = None) -> Any:
        """Return the value plus noise; see `Mechanism.release`."""
        integers, source = self.values.check(value), generator(rng)
        return IntegerNoise(self.drawn_scale, power=1).add_to(
            integers, draw_shape(size, integers.shape), source
        )

    def terms(self, output: ArrayLike, value: ArrayLike) -> Array:
        """Return ``-|output - value| / scale + ln tanh(1 / (2 scale))``."""
        distance = np.abs(np.subtract(output, value)) / self.drawn_scale
        terms: Array = -distance + math.log(math.tanh(1 / (2 * self.drawn_scale)))
        return terms

    def log_below(self, x: float, value: ArrayLike) -> Array:
        """Return the log-probability that a release is at most ``x``.

        Parameters
        ----------
        x : float
            The bound, in the units of the value.
        value : array_like of int
            Values.

        Returns
        -------
        numpy.ndarray
            Natural logarithms, one for every value.
        """
        # P(k <= m) = e^{m / scale} / (1 + e^{-1 / scale}) for m <= 0.  For larger m it is 1 less
        # P(k > m), the mirror image of that.
        m, scale = np.floor(np.subtract(x, value)), self.drawn_scale
        far = np.minimum(m, 0) / scale - math.log1p(math.exp(-1 / scale))
        beyond = -(np.maximum(m, 0) + 1) / scale - math.log1p(math.exp(-1 / scale))
        return np.where(m <= 0, far, np.log1p(-np.exp(beyond)))

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise in a coordinate."""
        # The variance is 2 q / (1 - q)^2 with q = e^{-1 / scale}.
        return 1 / (math.sqrt(2) * math.sinh(1 / (2 * self.drawn_scale)))

    def error_quantile(self, probability: float) -> float:
        """Return the error that the noise stays within, with a probability.

        Parameters
        ----------
        probability : float
            In (0, 1).

        Returns
        -------
        float
            A whole number.
        """
        # P(|k| > m) = 2 q^(m + 1) / (1 + q) with q = e^{-1 / scale}; it is to be at most the rest
        # of the probability.  A millionth of a millionth is for the round-off of the logarithms.
        log_rest = math.log1p(-probability) - math.log(2 / (1 + math.exp(-1 / self.drawn_scale)))
        return max(0.0, math.ceil(-log_rest * self.drawn_scale * (1 + 1e-12)) - 1.0)

    def expected_maximum(self, dimension: int) -> float:
        """Return an upper bound of the expected largest noise: that of continuous Laplace noise.

        Parameters
        ----------
        dimension : int
            Number of coordinates.

        Returns
        -------
        float
            An upper bound of the expected largest absolute noise, in the units of the value.
        """
        # With X exponential of this scale, E (|k| - x)^+ <= E (X - x)^+ for every x >= 0.  The
        # largest of independent numbers is a convex and rising function of each, so its expectation
        # is no larger for |k|.  Proof of the inequality, with a = 1 / (2 scale): the right side is
        # scale e^{-2ax}.  At whole x the left side is e^{-2ax} / sinh(2a), and between them it is
        # linear.  The chord of e^{-2ax} over a length of 1 exceeds it at most by the factor sinh(a)
        # e^{a coth(a) - 1} / a.  That is at most scale sinh(2a) = sinh(a) cosh(a) / a, as a coth(a)
        # - 1 <= ln cosh(a): both are 0 at 0, and tanh(a) <= a orders their derivatives.
        return self.drawn_scale * expected_max_exponential(dimension)

    @property
    def loss(self) -> Loss:
        """The loss of two numbers one sensitivity apart; that of vectors is no larger.

        A path of at most ``sensitivity`` unit steps, each in one coordinate, leads from neighbour
        to neighbour.  Steps in one coordinate alone cost most: see `docs/proofs/discrete.md`.
        """
        if not self.loss_is_upper_bound:
            return DiscreteLaplaceLoss(self.scale, self.sensitivity)
        return LaplaceLoss(round_up_ratio(self.sensitivity, self.scale))

    @property
    def loss_is_upper_bound(self) -> bool:
        """Whether a continuous distribution replaces a long list of outcomes."""
        return self.sensitivity > MAX_SHIFT

    @property
    def drawn_numbers(self) -> dict[str, Any]:
        """The scale of the drawn noise; step 0.0 says that no value is rounded to a grid."""
        return {"drawn_scale": self.drawn_scale, "step": 0.0}

    @property
    def drawn_tables(self) -> list[dict[str, Any]]:
        """The table of integers that the exact draws of the noise use."""
        return [IntegerNoise(self.drawn_scale, power=1).table]

    @property
    def drawn_scale(self) -> float:
        """The scale of the noise as it is drawn.

        Where the loss is that of continuous noise it is wider by 1 / (4 sensitivity), at which
        discrete noise costs no more (`docs/proofs/discrete.md`).
        """
        if not self.loss_is_upper_bound:
            return self.scale
        return round_up(self.scale + 1 / (4 * self.sensitivity))

    @property
    def values(self) -> Integers:
        """Integers, or vectors of integers."""
        return Integers(self.sensitivity)

    @property
    def support(self) -> Lattice:
        """The integers; those beyond 70 scales from the value have a mass below 1e-30."""
        return Lattice(70 * self.drawn_scale)

    @property
    def arithmetic(self) -> Arithmetic:
        """EXACT: the noise and the sum are integers."""
        return EXACT
