"""Losses of mixtures of Gaussians: a record moves the mean of Gaussian noise by a random amount.

P and Q are the laws of the output on two neighbours, each a mixture of normal laws; `MixturePair`
has their densities, and integrates them.

References: Choquette-Choo, Ganesh, Steinke & Thakurta (2024), Corollary 4.7;
`docs/proofs/mixtures.md`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.domains import NON_NEGATIVE, POSITIVE, IntegerRange
from accountant.errors import ParameterError
from accountant.losses.cell_masses import CellMasses
from accountant.losses.loss import Loss, epsilons, orders
from accountant.losses.loss_numerics import ExactCGF, LossNumerics
from accountant.losses.mixture_pair import MixturePair
from accountant.losses.normal_mixture import MAX_SHIFT, ORIGIN, side
from accountant.numerics import Array, Complex
from accountant.numerics.ordered_sums import product_with_errors, sum_with_errors
from accountant.numerics.rounding import round_up, round_up_square

COMPONENTS = IntegerRange(
    1, 2_000
)  # normal laws in a mixture; each point of a quadrature costs so many


@final
class MixtureCGF(ExactCGF["GaussianMixtureLoss"]):
    """Cumulants by one quadrature over the output for each different loss."""

    def sum_cgf(
        self, losses: Sequence[GaussianMixtureLoss], counts: Array, z: Any
    ) -> tuple[Any, Array]:
        """Return the sum of the cumulants, one loss at a time, and a bound on its error."""
        return sum_with_errors((loss.pair.cgf(z) for loss in losses), counts, z)

    def cf_ratios(
        self, losses: Sequence[GaussianMixtureLoss], counts: Array, z: Complex
    ) -> tuple[Complex, Array]:
        """Return the product of the ratios, one loss at a time, and a bound on its error."""
        ratios = (
            loss.pair.cf_ratio(z, int(count))
            for loss, count in zip(losses, counts.tolist(), strict=True)
        )
        return product_with_errors(ratios, z)

    def log_cf_bounds(
        self, losses: Sequence[GaussianMixtureLoss], counts: Array, a: float, u: Array
    ) -> Array:
        """Return the sum of the bounds."""
        total = np.zeros(u.shape)
        for loss, count in zip(losses, counts.tolist(), strict=True):
            total += count * loss.pair.log_cf_bound(a, u)
        return total

    def quadrature_terms(self, loss: GaussianMixtureLoss, frequency: float) -> float:
        """Return the number of points of the quadrature."""
        return loss.pair.quadrature_terms(frequency)


NUMERICS = LossNumerics(MixtureCGF())


class GaussianMixtureLoss(Loss):
    """A loss whose pair is two mixtures of normal laws on a line."""

    __slots__ = ()

    @property
    @abstractmethod
    def pair(self) -> MixturePair:
        """The two mixtures, the noise having deviation 1."""

    def profile(self, epsilon: ArrayLike) -> Array:
        """Return ``P(L > eps) - e^eps Q(L > eps)``, without cancellation."""
        return np.exp(self.log_profile(epsilon))

    def log_profile(self, epsilon: ArrayLike) -> Array:
        """Return the logarithm of `profile`, accurate in the far tail."""
        return self.pair.log_profile(epsilons(epsilon))

    @property
    def infinity(self) -> float:
        """0: every outcome is possible on both neighbours."""
        return 0.0

    @property
    def max_loss(self) -> float:
        """The largest loss: finite where P is the law without a shift, and Q may be it."""
        return round_up(self.pair.max_loss)

    @property
    def rho(self) -> float:
        """That of the two normal laws furthest apart, as divergences are jointly quasi-convex."""
        return min(round_up_square(self.gdp_mu, 2), round_up_square(self.pure, 2))

    @property
    def gdp_mu(self) -> float:
        """The distance of the two normal laws furthest apart: larger shifts are easier to see."""
        return round_up(self.pair.span)

    @property
    def numerics(self) -> LossNumerics:
        """The cumulant is a quadrature with a proved error."""
        return NUMERICS

    def renyi(self, order: ArrayLike) -> Array:
        """Return the Rényi divergence by quadrature, never above ``order`` times `rho`."""
        a = orders(order)
        value, error = self.pair.cgf(a - 1)
        with np.errstate(invalid="ignore"):
            moment = np.where(np.isfinite(value), (value + error) / (a - 1), np.inf)
        tightest: Array = np.minimum(np.minimum(moment, a * self.rho), self.max_loss)
        return np.maximum(tightest, 0.0)

    def cell_masses(self, edges: Array) -> CellMasses:
        """Return differences of normal distribution functions at the outputs of the edges."""
        return self.pair.cell_masses(edges)

    def cumulant(self, z: ArrayLike) -> Any:
        """Return the cumulant by quadrature over the output."""
        return self.pair.cgf(np.asarray(z, dtype=complex))[0][()]


@final
@dataclass(frozen=True, slots=True)
class MixturePairLoss(GaussianMixtureLoss):
    """The loss of two mixtures, one on each side of 0, as of a group of records in a sample."""

    pair: MixturePair

    @property
    def reversed(self) -> MixturePairLoss:
        """The loss of (Q, P)."""
        return MixturePairLoss(self.pair.mirrored)


@final
@dataclass(frozen=True, slots=True)
class MixtureOfGaussians(GaussianMixtureLoss):
    """Gaussian noise on a sum that one record moves by a random amount, secret and not adaptive.

    P is ``sum_j weights[j] N(shifts[j], scale^2)`` and Q is ``N(0, scale^2)``: with the record and
    without it.  Moves that are vectors cost no more than their lengths in one direction, and
    shorter moves cost no more than longer ones, so shifts may be upper bounds on lengths.

    Parameters
    ----------
    scale : float
        Standard deviation of the noise, in [1e-300, 1e300].
    shifts : sequence of float
        How far the record moves the mean, each at least 0 and at most 1e100 scales.
    weights : sequence of float
        The chance of each shift; they sum to 1.

    References
    ----------
    Choquette-Choo, Ganesh, Steinke & Thakurta (2024), "Privacy Amplification for Matrix
    Mechanisms", Corollary 4.7.

    Examples
    --------
    >>> from accountant import MixtureOfGaussians
    >>> round(MixtureOfGaussians(1.0, (0.0, 1.0, 2.0), (0.2, 0.6, 0.2)).delta_at(1.0), 9)
    0.157682841
    """

    scale: float
    shifts: tuple[float, ...]
    weights: tuple[float, ...]
    _added: bool = field(default=False, repr=False)  # whether the pair is (Q, P)

    def __post_init__(self) -> None:
        scale = POSITIVE.check("scale", self.scale)
        shifts = _numbers("shifts", self.shifts)
        weights = _numbers("weights", self.weights)
        if max(shifts) / scale > MAX_SHIFT:
            raise ParameterError("shifts", self.shifts, f"at most {MAX_SHIFT:g} scales")
        if len(weights) != len(shifts):
            raise ParameterError("weights", self.weights, f"{len(shifts)} numbers, one a shift")
        if not abs(math.fsum(weights) - 1) <= 1e-12 * len(weights):
            raise ParameterError("weights", self.weights, "probabilities that sum to 1")
        object.__setattr__(self, "scale", scale)
        object.__setattr__(self, "shifts", shifts)
        object.__setattr__(self, "weights", weights)

    @property
    def pair(self) -> MixturePair:
        """The mixture against the law at 0, or the other way round."""
        moved = side([s / self.scale for s in self.shifts], self.weights)
        pair = MixturePair(moved, ORIGIN)
        return pair.mirrored if self._added else pair

    @property
    def reversed(self) -> MixtureOfGaussians:
        """The loss with the record only on the other side."""
        return MixtureOfGaussians(self.scale, self.shifts, self.weights, not self._added)


def _numbers(argument: str, values: Any) -> tuple[float, ...]:
    """Return a checked sequence of numbers that are at least 0."""
    is_vector = isinstance(values, np.ndarray) and values.ndim == 1
    if isinstance(values, (str, bytes)) or not (is_vector or isinstance(values, Sequence)):
        raise ParameterError(argument, values, "a list of numbers")
    if not 1 <= len(values) <= COMPONENTS.high:
        raise ParameterError(argument, values, f"a list of 1 to {COMPONENTS.high:,} numbers")
    return tuple(NON_NEGATIVE.check(f"{argument}[{i}]", number) for i, number in enumerate(values))
