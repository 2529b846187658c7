"""Gaussian noise on a number or a vector.

References: Balle & Wang (2018); Dong, Roth & Su (2022).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.domains import POSITIVE
from accountant.losses.gaussian import GaussianLoss
from accountant.numerics import Array
from accountant.randomness import Rng, generator
from mechanisms.base import EXACT, IDEALISED, arithmetic_field, declare, draw_shape, param
from mechanisms.exact_noise import rounding_grid as grid
from mechanisms.families.additive import DIMENSION, RealNoise
from mechanisms.families.expected_maxima import expected_max_abs_gaussian


@final
@declare
class Gaussian(RealNoise):
    """Gaussian noise: ``value + scale * N(0, 1)`` in every coordinate.

    Exact arithmetic rounds to a grid and adds discrete Gaussian noise, for values of up to
    ``dimension`` coordinates; idealised arithmetic takes a value of any shape.

    Examples
    --------
    >>> from mechanisms import Gaussian
    >>> one = Gaussian(scale=2.0, arithmetic="exact")
    >>> round(float(one.release(10.0, rng=0)), 4)
    8.1537
    >>> Gaussian(scale=2.0).loss
    GaussianLoss(mu=0.5)
    """

    reference: ClassVar[str] = "Balle & Wang (2018); Dong, Roth & Su (2022)"
    limits: ClassVar[str] = "idealised: low-order bits leak; exact: the time of a draw varies"

    # 3.7306334 is (1, 1e-5)
    scale: float = param(
        POSITIVE, "standard deviation of the noise, in the units of the query",
        typical=(3.7306334,), knob=True,
    )  # fmt: skip
    sensitivity: float = param(POSITIVE, "L2 sensitivity of the query", typical=(1.0,), default=1.0)
    arithmetic: str = arithmetic_field(IDEALISED, EXACT)
    dimension: int = param(DIMENSION, "coordinates of a value, if exact", typical=(1,), default=1)

    def release(self, value: ArrayLike, rng: Rng = None, size: int | None = None) -> Any:
        """Return the value plus noise; see `Mechanism.release`."""
        real, source = self.values.check(value), generator(rng)
        shape = draw_shape(size, real.shape)
        if self.arithmetic is EXACT:
            return grid.add_grid_noise(real, self.scale, self.drawn_scale, 2, source, shape)
        return real + self.scale * source.standard_normal(shape)

    def terms(self, output: ArrayLike, value: ArrayLike) -> Array:
        """Return ``-(output - value)^2 / (2 scale^2) - ln(scale sqrt(2 pi))``."""
        z = np.subtract(output, self.noise_centre(value)) / self.drawn_scale
        terms: Array = -z * z / 2 - np.log(self.drawn_scale * np.sqrt(2 * np.pi))
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

        below: Array = log_ndtr((x - np.asarray(self.noise_centre(value))) / self.drawn_scale)
        return below

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise in a coordinate."""
        return self.drawn_scale

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
        return self.drawn_scale * expected_max_abs_gaussian(dimension)

    @property
    def loss(self) -> GaussianLoss:
        """The loss of Gaussians ``sensitivity / scale`` standard deviations apart."""
        return GaussianLoss(self._shift)

    @property
    def _rounding_moves(self) -> float:
        # the L2 distance: half a step at both ends of every coordinate
        return math.sqrt(self.dimension) * grid.grid_step(self.scale)
