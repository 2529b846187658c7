"""Laplace noise on a number or a vector.

References: Dwork, McSherry, Nissim & Smith (2006).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.domains import POSITIVE
from accountant.losses.laplace import LaplaceLoss
from accountant.numerics import Array
from accountant.randomness import Rng, generator
from mechanisms.base import EXACT, IDEALISED, arithmetic_field, declare, draw_shape, param
from mechanisms.families.additive import ANY_DIMENSION, RealNoise
from mechanisms.families.expected_maxima import expected_max_exponential


@final
@declare
class Laplace(RealNoise):
    """Laplace noise: ``value + scale * Laplace(0, 1)`` in every coordinate.

    Exact arithmetic rounds the value to a grid and adds discrete Laplace noise.  Its scale,
    ``drawn_scale``, is a little wider, as rounding moves neighbours apart: at most by 2^-40 of the
    scale for each coordinate if sensitivity and scale are equal.

    Examples
    --------
    >>> from mechanisms import Laplace
    >>> noise = Laplace(scale=2.0)
    >>> round(float(noise.release(10.0, rng=0)), 4)
    7.9831
    >>> noise.loss
    LaplaceLoss(shift=0.5)
    """

    statistic: ClassVar[str | None] = "sum"
    reference: ClassVar[str] = "Dwork, McSherry, Nissim & Smith (2006)"
    power: ClassVar[int] = 1
    limits: ClassVar[str] = "idealised: low-order bits leak; exact: the time of a draw varies"

    scale: float = param(
        POSITIVE, "noise scale, in the units of the query", typical=(1.0,), knob=True
    )
    sensitivity: float = param(POSITIVE, "L1 sensitivity of the query", typical=(1.0,), default=1.0)
    arithmetic: str = arithmetic_field(EXACT, IDEALISED)
    dimension: int | None = param(
        ANY_DIMENSION,
        "most coordinates of a value; None takes arrays of any shape",
        typical=(None,),
        default=None,
    )

    def release(self, value: ArrayLike, rng: Rng = None, size: int | None = None) -> Any:
        """Return the value plus noise; see `Mechanism.release`."""
        real, source = self.values.check(value), generator(rng)
        shape = draw_shape(size, real.shape)
        if self.arithmetic is EXACT:
            return self._exact_release(real, source, shape)
        return real + self.scale * source.laplace(size=shape)

    def terms(self, output: ArrayLike, value: ArrayLike) -> Array:
        """Return ``-|output - value| / scale - ln(2 scale)``."""
        scale = self.drawn_scale_of(np.size(value))
        distance = np.abs(np.subtract(output, self.noise_centre(value))) / scale
        terms: Array = -distance - np.log(2 * scale)
        return terms

    def log_below(self, x: float, value: ArrayLike) -> Array:
        """Return the log-probability that a release is at most ``x``.

        Parameters
        ----------
        x : float
            The bound, in the units of the value.
        value : array_like
            Values.

        Returns
        -------
        numpy.ndarray
            Natural logarithms, one for every value.
        """
        z = (x - np.asarray(self.noise_centre(value))) / self.drawn_scale_of(np.size(value))
        far: Array = np.minimum(z, 0.0) - math.log(2)
        return np.where(z < 0, far, np.log1p(-np.exp(-np.abs(z)) / 2))

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise in a coordinate."""
        return math.sqrt(2) * self.drawn_scale

    def error_quantile(self, probability: float) -> float:
        """Return the error that the noise stays within, with a probability.

        Parameters
        ----------
        probability : float
            In (0, 1).

        Returns
        -------
        float
            In the units of the value; rounded up.
        """
        # P(|noise| > x) = e^{-x / scale}
        return self.rounded_quantile(self.drawn_scale * -math.log1p(-probability))

    def expected_maximum(self, dimension: int) -> float:
        """Return the expected largest absolute noise of ``dimension`` coordinates.

        Parameters
        ----------
        dimension : int
            Number of coordinates.

        Returns
        -------
        float
            In the units of the value.
        """
        return self.drawn_scale_of(dimension) * expected_max_exponential(dimension)

    @property
    def loss(self) -> LaplaceLoss:
        """The loss of Laplace distributions ``sensitivity / scale`` apart.

        That is `_shift`, which allows for rounding where exact noise is not widened.
        """
        return LaplaceLoss(self._shift)
