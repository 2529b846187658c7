"""The loss of discrete Gaussian noise on whole numbers.

For one number and a small scale, `DiscreteGaussianLoss` lists all outcomes that matter.  For
vectors and larger scales, `discrete_gaussian_loss` takes a bound: that of a slightly narrower
continuous Gaussian, or of zero-concentrated privacy (zCDP).

Reference: Canonne, Kamath & Steinke (2020).  Proof for the continuous Gaussian:
`docs/proofs/discrete.md`, section 3.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from accountant.domains import POSITIVE, IntegerRange
from accountant.errors import ParameterError
from accountant.losses.finite import FiniteLoss
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.loss import Loss, orders
from accountant.losses.zcdp import ZCDPLoss
from accountant.numerics import Array
from accountant.numerics.rounding import round_up, round_up_square

# The most outcomes that a loss lists, each with two probabilities; their number grows with the
# scale.
MAX_LISTED_OUTCOMES = 4096
# Outcomes within 37.5 scales of either number are listed; all others have at most this mass.
LISTED_DEVIATIONS = 37.5
UNLISTED_MASS = 1e-300
SHIFT = IntegerRange(1, MAX_LISTED_OUTCOMES)
# From this scale on a continuous Gaussian of variance scale^2 - 4 is the bound, below it zCDP: at
# smaller scales the 4 takes more of the variance, and the Gaussian costs more than zCDP.
CONTINUOUS_FROM = 6.0


@final
@dataclass(frozen=True, slots=True)
class DiscreteGaussianLoss(FiniteLoss):
    """The loss of discrete Gaussian noise on numbers ``shift`` apart, listed by outcome.

    Parameters
    ----------
    scale : float
        The integer k has a probability proportional to ``exp(-k^2 / (2 scale^2))``; above 0, and
        ``75 scale + shift`` below 4096: `GaussianLoss` serves for more.
    shift : int
        Distance of the two numbers, at least 1.

    References
    ----------
    Canonne, Kamath & Steinke (2020).

    Examples
    --------
    >>> from accountant import DiscreteGaussianLoss
    >>> loss = DiscreteGaussianLoss(scale=2.0, shift=1)
    >>> round(loss.rho, 9), round(loss.epsilon_at(1e-6), 4)
    (0.125, 2.2758)
    """

    scale: float
    shift: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", POSITIVE.check("scale", self.scale))
        object.__setattr__(self, "shift", SHIFT.check("shift", self.shift))
        if not _is_listed(self.scale, self.shift):
            largest_scale = (MAX_LISTED_OUTCOMES - self.shift) / (2 * LISTED_DEVIATIONS)
            allowed = (
                f"below {largest_scale:.4g}; GaussianLoss(shift / sqrt(scale^2 - 4)) is above it"
            )
            raise ParameterError("scale", self.scale, allowed)

    @property
    def reversed(self) -> DiscreteGaussianLoss:
        """The loss itself, as the noise is symmetric."""
        return self

    @property
    def loss_pmf(self) -> tuple[Array, Array]:
        """Losses and probabilities of the listed outcomes."""
        return _listed_outcomes(self.scale, self.shift)

    @property
    def max_loss(self) -> float:
        """The largest listed loss, in nats."""
        return float(self.loss_pmf[0].max())

    @property
    def infinity(self) -> float:
        """An upper bound on the mass that is not listed, 1e-300."""
        return UNLISTED_MASS

    @property
    def rho(self) -> float:
        """``shift^2 / (2 scale^2)``, rounded up (Canonne, Kamath & Steinke, Theorem 14)."""
        return round_up_square(self.shift / self.scale, 2)

    def renyi(self, order: ArrayLike) -> Array:
        """Return ``order * rho``, a bound of the Rényi divergence at every order."""
        divergence: Array = orders(order) * self.rho
        return divergence


def discrete_gaussian_loss(scale: float, sensitivity: float, dimension: int | None) -> Loss:
    """Return the smallest loss known of discrete Gaussian noise on integer vectors.

    ``sensitivity``, above 0, is their distance in L2; ``dimension`` is None where it is not known:
    then the bound of zCDP serves, which no number of coordinates enters.
    """
    shift = math.floor(min(sensitivity, MAX_LISTED_OUTCOMES))
    if dimension == 1 and shift >= 1 and _is_listed(scale, shift):
        return DiscreteGaussianLoss(scale, shift)
    if dimension is None or scale < CONTINUOUS_FROM:
        return ZCDPLoss(round_up_square(sensitivity / scale, 2))
    # Integers drawn near a real number y, with P(k) ~ exp(-(y - k)^2 / (2 * 2^2)), turn a Gaussian
    # of variance scale^2 - 2^2 into the discrete one: the Gaussian's delta is a bound, up to a
    # factor 1 + 3e-34 for each coordinate: below 10^9 coordinates the ulps of `round_up` cover it.
    return GaussianLoss(round_up(sensitivity / math.sqrt(scale**2 - 4)))


def normaliser(scale: float) -> float:
    """Return ``sum_k exp(-k^2 / (2 scale^2))``, by the shorter of Poisson's two sums.

    Its terms from k = 12 on, left out, are below e^-70 in all, far less than an ulp.
    """
    k = np.arange(1, 12)
    if scale > 1:
        waves = float(np.exp(-2 * (math.pi * scale * k) ** 2).sum())
        return math.sqrt(2 * math.pi) * scale * (1 + 2 * waves)
    with np.errstate(over="ignore"):
        return 1 + 2 * float(np.exp(-((k / scale) ** 2) / 2).sum())


def _is_listed(scale: float, shift: int) -> bool:
    """Return whether at most `MAX_LISTED_OUTCOMES` have to be listed."""
    return 2 * LISTED_DEVIATIONS * scale + shift < MAX_LISTED_OUTCOMES


@functools.lru_cache(maxsize=1024)
def _listed_outcomes(scale: float, shift: int) -> tuple[Array, Array]:
    """Return the losses of the pair P about 0 against Q about ``shift``, and their masses under P.

    The loss of the integer x is ln P(x) - ln Q(x) = shift (shift - 2 x) / (2 scale^2).  It has all
    its digits where the mass under Q is too small for a float.
    """
    reach = math.ceil(LISTED_DEVIATIONS * scale)
    x = np.arange(-reach, reach + shift + 1)
    with np.errstate(over="ignore"):
        mass = np.exp(-((x / scale) ** 2) / 2) / normaliser(scale)
    # An outcome whose mass is too small for a float is not listed.
    is_listed = mass >= np.finfo(float).tiny
    with np.errstate(over="ignore"):  # of a scale so small that the largest loss is no float
        loss = shift / scale * ((shift - 2 * x[is_listed]) / (2 * scale))
    return loss, mass[is_listed]
