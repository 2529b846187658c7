"""The loss of discrete Laplace noise, the two-sided geometric law, on whole numbers.

Neighbours are two numbers ``shift`` apart.  All outcomes at or below both have one loss, all at or
above both another one, and each outcome between has a loss of its own.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from accountant.domains import POSITIVE, IntegerRange
from accountant.losses.finite import FiniteLoss
from accountant.losses.loss import epsilons, orders
from accountant.numerics import Array
from accountant.numerics.logspace import logsumexp
from accountant.numerics.rounding import ULP, round_up_printed_ratio, round_up_sum

MAX_SHIFT = 2047  # the largest shift of a loss, which lists one outcome for each step of it
SHIFT = IntegerRange(1, MAX_SHIFT)


@final
@dataclass(frozen=True, slots=True)
class DiscreteLaplaceLoss(FiniteLoss):
    """The loss of discrete Laplace noise on whole numbers, in closed form.

    Parameters
    ----------
    scale : float
        Noise scale, above 0: the integer k has a probability proportional to ``exp(-|k| / scale)``.
    shift : int
        Distance of the two numbers, from 1 to 2047.

    References
    ----------
    Ghosh, Roughgarden & Sundararajan (2012).

    Examples
    --------
    >>> from accountant import DiscreteLaplaceLoss
    >>> DiscreteLaplaceLoss(scale=2.0, shift=1).pure
    0.5
    """

    scale: float
    shift: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", POSITIVE.check("scale", self.scale))
        object.__setattr__(self, "shift", SHIFT.check("shift", self.shift))

    def profile(self, epsilon: ArrayLike) -> Array:
        """Return the privacy profile, each term without cancellation."""
        # With the scale t, the shift N and q = e^{-1/t}: all x <= 0 together have the mass 1/(1+q)
        # and the loss N/t; x = 1, 2, ... has the mass (1-q)/(1+q) q^x and the loss (N - 2x)/t.
        # Over the m outcomes x >= 1 whose loss exceeds epsilon the sum is geometric:
        # delta = [1 - e^{eps - N/t} + (1 - q^m) (q - e^{eps - (N-m)/t})] / (1+q)
        e, t, n = epsilons(epsilon), self.scale, self.shift
        e = np.minimum(e, self.max_loss)
        m = np.clip(np.ceil((n - e * t) / 2) - 1, 0, max(n - 1, 0))
        # N/t in the first term is the largest loss, rounded up: near it delta is proportional to
        # its distance to epsilon.
        largest_loss_term = -np.expm1(np.minimum(e - self.max_loss, 0.0))
        other_terms = -np.expm1(-m / t) * -np.expm1(np.minimum(e - (n - m - 1) / t, 0.0))
        total: Array = (largest_loss_term + math.exp(-1 / t) * other_terms) / (1 + math.exp(-1 / t))
        return total + 0.0

    @property
    def reversed(self) -> DiscreteLaplaceLoss:
        """The loss itself, as the noise is symmetric."""
        return self

    @property
    def max_loss(self) -> float:
        """``shift / scale``, rounded up, for the float `scale` and for the decimal it prints as."""
        return round_up_printed_ratio(float(self.shift), self.scale)

    @property
    def infinity(self) -> float:
        """0: every integer is possible on both neighbours."""
        return 0.0

    @property
    def rounding(self) -> float:
        """A few ulps of the exponents ``x / scale``."""
        return 8 * ULP * (1 + self.shift / self.scale)

    @property
    def loss_pmf(self) -> tuple[Array, Array]:
        """Losses ``(shift - 2x) / scale`` and their masses, x from 0 to ``shift``."""
        return _listed_losses(self.scale, self.shift)

    def renyi(self, order: ArrayLike) -> Array:
        """Return ``ln sum_i p_i e^{(order - 1) loss_i} / (order - 1)``, rounded up."""
        loss, mass = self.loss_pmf
        a = orders(order)[..., None] - 1
        log_moment = logsumexp(a * loss + np.log(mass))
        divergence: Array = round_up_sum(log_moment, self.max_loss * a[..., 0]) / a[..., 0]
        return np.minimum(divergence, self.max_loss)


@functools.lru_cache(maxsize=1024)
def _listed_losses(scale: float, shift: int) -> tuple[Array, Array]:
    """Return the losses of x = 0, ..., ``shift`` and their masses under P, noise about 0.

    Q is noise about ``shift``.  What is too small for a float is left out.
    """
    # All x <= 0 have one loss, and all x >= shift another; between lie shift - 1 integers.
    x = np.arange(shift + 1)
    q = math.exp(-1 / scale)
    mass = np.exp(-x / scale) * (-math.expm1(-1 / scale) / (1 + q))
    mass[0], mass[-1] = 1 / (1 + q), math.exp(-shift / scale) / (1 + q)
    has_mass = mass > 0
    loss = (shift - 2 * x[has_mass]) / scale
    for array in (loss, mass := mass[has_mass]):
        array.flags.writeable = False
    return loss, mass
