"""Gaussian noise on a number or a vector.

References: Balle & Wang (2018); Dong, Roth & Su (2022).
"""

from __future__ import annotations

from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.domains import POSITIVE
from accountant.losses.gaussian import GaussianLoss
from accountant.numerics import Array
from accountant.randomness import Rng, generator
from mechanisms.base import EXACT, IDEALISED, arithmetic_field, declare, draw_shape, param
from mechanisms.families.additive import ANY_DIMENSION, RealNoise
from mechanisms.families.expected_maxima import expected_max_abs_gaussian


@final
@declare
class Gaussian(RealNoise):
    """Gaussian noise: ``value + scale * N(0, 1)`` in every coordinate.

    Exact arithmetic rounds the value to a grid and adds discrete Gaussian noise.  Its scale,
    ``drawn_scale``, is a little wider, as rounding moves neighbours apart: at most by 2^-40 of the
    scale for each coordinate if sensitivity and scale are equal.

    Examples
    --------
    >>> from mechanisms import Gaussian
    >>> gaussian = Gaussian(scale=2.0)
    >>> round(float(gaussian.release(10.0, rng=0)), 4)
    8.1706
    >>> gaussian.loss
    GaussianLoss(mu=0.5)
    """

    statistic: ClassVar[str | None] = "sum"
    reference: ClassVar[str] = "Balle & Wang (2018); Dong, Roth & Su (2022)"
    power: ClassVar[int] = 2
    limits: ClassVar[str] = "idealised: low-order bits leak; exact: the time of a draw varies"

    # At the typical scale the cost is epsilon 1 at delta 1e-5.
    scale: float = param(
        POSITIVE,
        "standard deviation of the noise, in the units of the query",
        typical=(3.7306334,),
        knob=True,
    )
    sensitivity: float = param(POSITIVE, "L2 sensitivity of the query", typical=(1.0,), default=1.0)
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
        return real + self.scale * source.standard_normal(shape)

    def terms(self, output: ArrayLike, value: ArrayLike) -> Array:
        """Return ``-(output - value)^2 / (2 scale^2) - ln(scale sqrt(2 pi))``."""
        scale = self.drawn_scale_of(np.size(value))
        z = np.subtract(output, self.noise_centre(value)) / scale
        terms: Array = -z * z / 2 - np.log(scale * np.sqrt(2 * np.pi))
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
        from scipy.special import log_ndtr

        scale = self.drawn_scale_of(np.size(value))
        below: Array = log_ndtr((x - np.asarray(self.noise_centre(value))) / scale)
        return below

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise in a coordinate."""
        return self.drawn_scale

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
        from scipy.special import ndtri

        # P(|noise| > x) = 2 Phi(-x / scale)
        return self.rounded_quantile(self.drawn_scale * -float(ndtri((1 - probability) / 2)))

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
        return self.drawn_scale_of(dimension) * expected_max_abs_gaussian(dimension)

    @property
    def loss(self) -> GaussianLoss:
        """The loss of Gaussians ``sensitivity / scale`` standard deviations apart.

        That is `_shift`, which allows for rounding where exact noise is not widened.
        """
        return GaussianLoss(self._shift)
