"""The losses of pure and approximate privacy, which have binary randomised response as worst case.

A response reports a secret bit truthfully with probability 1 / (1 + e^-epsilon), and inverted
otherwise.  Its privacy loss L is +epsilon for the true bit, and -epsilon for the other one.

`PureLoss` is this response: it dominates every epsilon-DP release.  `ApproxLoss` reveals the bit
with probability delta and gives this response otherwise: it dominates every (epsilon, delta)-DP
release.

References: Kairouz, Oh & Viswanath (2015), Theorem 3.1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.domains import DELTA, EPSILON, POSITIVE, RECORDS
from accountant.losses.bounded_range import BoundedLoss
from accountant.losses.least_rho import rho_of_pure
from accountant.losses.loss import Loss, SymmetricLoss, epsilons, mirrored, orders
from accountant.losses.loss_numerics import ExactCGF, HasCumulant, LossNumerics
from accountant.numerics import Array, Complex
from accountant.numerics.chebyshev import sum_in_blocks
from accountant.numerics.exponential_sums import product_of_cf_ratios
from accountant.numerics.logspace import log1p
from accountant.numerics.rounding import ULP, round_up, round_up_sum


class Response(HasCumulant, Protocol):
    """A loss with the two values +epsilon and -epsilon."""

    @property
    def epsilon(self) -> float:
        """The absolute value of both losses, in nats."""
        ...


@final
class ResponseCGF(ExactCGF[Response]):
    """Cumulants ``K(z) = ln E e^{zL}`` of many responses at a time; see `ExactCGF`."""

    def sum_cgf(self, losses: Sequence[Response], counts: Array, z: Any) -> tuple[Any, Array]:
        """Return the sum of the closed forms, many losses at a time."""
        sizes = np.fromiter((response.epsilon for response in losses), float, len(losses))
        return sum_in_blocks(response_cgf, sizes, counts, z)

    def cf_ratios(
        self, losses: Sequence[Response], counts: Array, z: Complex
    ) -> tuple[Complex, Array]:
        """Return the product of the ratios of all losses, by one matrix product each."""
        return product_of_cf_ratios(
            [response_pmf(response.epsilon) for response in losses], counts, z
        )


def response_pmf(epsilon: float) -> tuple[Array, Array]:
    """Return the losses and masses of binary randomised response."""
    high = 1 / (1 + math.exp(-epsilon))
    return np.array([epsilon, -epsilon]), np.array([high, high * math.exp(-epsilon)])


def response_cgf(epsilon: Array, z: Any) -> tuple[Any, Array]:
    """Return the cumulants ``ln E e^{zL}`` of responses, and bounds on their round-off.

    With e = epsilon, the moment is

        E e^{zL} = cosh((z + 1/2) e) / cosh(e/2)
                 = 1 + 2 sinh((z+1) e/2) sinh(z e/2) / cosh(e/2)
                 = e^{ze} (1 + e^{-(2z+1)e}) / (1 + e^-e).

    The second form keeps the digits of a moment near 1.  The third form is used where
    (Re z + 1) e > 30: the logarithm of its first factor is z e, so that nothing overflows.  Left of
    0 the moment is small, and the third form is used earlier.
    """
    far = epsilon * (z.real + 1) > np.where(z.real < 0, 0.5, 30.0)
    with np.errstate(over="ignore", invalid="ignore"):
        e = np.where(far, 0.0, epsilon)
        moment_less_1 = 2 * np.sinh((z + 1) * e / 2) * np.sinh(z * e / 2) / np.cosh(e / 2)
        value = log1p(moment_less_1)
        if far.any():
            s = np.broadcast_to(z, far.shape)[far]
            x = np.broadcast_to(epsilon, far.shape)[far]
            value[far] = s * x + np.log1p(np.exp(-(2 * s + 1) * x)) - np.log1p(np.exp(-x))
        # An exponent z e is inexact by some ulps of itself.  What this adds to the value is its
        # size times that of e^{ze} relative to the moment.
        terms = np.abs(z) * epsilon * np.exp(z.real * epsilon - value.real)
        size = terms + np.abs(value) + far
    return value, 16 * ULP * size


PURE_CGF = ResponseCGF()
PURE = LossNumerics(PURE_CGF)
APPROXIMATE = LossNumerics(ExactCGF())  # the sums of `ApproxLoss.cumulant`, one loss at a time


@final
@dataclass(frozen=True, slots=True)
class PureLoss(BoundedLoss):
    """Any epsilon-DP release: dominated by binary randomised response.

    Parameters
    ----------
    epsilon : float
        Above 0.

    References
    ----------
    Kairouz, Oh & Viswanath (2015), Theorem 3.1.

    Examples
    --------
    >>> from accountant import PureLoss
    >>> round(PureLoss(1.0).delta_at(0.5), 4)
    0.2876
    """

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", POSITIVE.check("epsilon", self.epsilon))

    def profile(self, epsilon: ArrayLike) -> Array:
        """Return delta of the response with P = (e^e0, 1) / (1 + e^e0) and Q = its mirror image."""
        # delta(eps) = (e^e0 - e^eps)_+ / (1 + e^e0), with e0 the epsilon of this loss
        e = epsilons(epsilon)
        inside: Array = -np.expm1(np.minimum(e - self.epsilon, 0.0)) / (1 + math.exp(-self.epsilon))
        return inside

    @property
    def rho(self) -> float:
        """``epsilon tanh(epsilon / 2)``, the divergence of order 1 of the response."""
        return rho_of_pure(self.epsilon)

    def renyi(self, order: ArrayLike) -> Array:
        """Return the Rényi divergence of binary randomised response."""
        # ln[(e^{a e0} + e^{(1-a) e0}) / (1 + e^e0)] / (a - 1), with a the order
        a, e0 = orders(order), self.epsilon
        log_moment = np.logaddexp(a * e0, (1 - a) * e0) - np.logaddexp(0, e0)
        divergence: Array = round_up_sum(log_moment, a * e0) / (a - 1)
        return divergence

    @property
    def numerics(self) -> LossNumerics:
        """The cumulant is exact: a closed form."""
        return PURE

    @property
    def loss_pmf(self) -> tuple[Array, Array]:
        """The two losses ``+-epsilon`` and their masses."""
        return response_pmf(self.epsilon)

    def cumulant(self, z: ArrayLike) -> Any:
        """Return ``ln E[e^{zL}]`` of the two outcomes ``+-epsilon``."""
        return PURE_CGF.sum_cgf([self], np.ones(1), mirrored(z))[0][()]

    def dominates(self, other: Loss) -> bool:
        """Return whether ``other`` is bounded by this epsilon."""
        return other.pure <= self.epsilon

    def for_group(self, size: int) -> PureLoss:
        """Return the pure loss of ``size`` times the epsilon."""
        return PureLoss(round_up(RECORDS.check("size", size) * self.epsilon))

    def inverse_profile(self, delta: float) -> float:
        """Return the epsilon at which the profile is ``delta``, in closed form, rounded up.

        A delta for which that epsilon is below e0 - ln 2 is left to the search of `Loss`.
        """
        # The solution of (e^e0 - e^eps) / (1 + e^e0) = delta is eps = e0 + ln(1 - share).
        share = delta * (1 + math.exp(-self.epsilon))
        if share > 0.5:
            return Loss.inverse_profile(self, delta)
        e = self.epsilon + math.log1p(-share)
        return min(self.epsilon, max(0.0, e + 8 * ULP * self.epsilon))


@final
@dataclass(frozen=True, slots=True)
class ApproxLoss(SymmetricLoss):
    """Any (epsilon, delta)-DP release, as a claim or a black box.

    Parameters
    ----------
    epsilon : float
        At least 0.
    delta : float
        In [0, 1).

    References
    ----------
    Kairouz, Oh & Viswanath (2015), Theorem 3.1.

    Examples
    --------
    >>> from accountant import ApproxLoss
    >>> ApproxLoss(1.0, 1e-6).epsilon_at(1e-6)
    1.0
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", EPSILON.check("epsilon", self.epsilon))
        object.__setattr__(self, "delta", DELTA.check("delta", self.delta))

    def profile(self, epsilon: ArrayLike) -> Array:
        """Return ``delta + (1 - delta) stick``, with ``stick`` the profile of the response."""
        e = epsilons(epsilon)
        inside = -np.expm1(np.minimum(e - self.epsilon, 0.0)) / (1 + math.exp(-self.epsilon))
        total: Array = self.delta + (1 - self.delta) * inside
        return total

    @property
    def max_loss(self) -> float:
        """The largest finite loss, in nats: epsilon."""
        return self.epsilon

    @property
    def infinity(self) -> float:
        """The mass of outcomes that are impossible on the neighbour: delta."""
        return self.delta

    @property
    def numerics(self) -> LossNumerics:
        """The cumulant is exact: a closed form."""
        return APPROXIMATE

    @property
    def loss_pmf(self) -> tuple[Array, Array]:
        """The two finite losses ``+-epsilon`` and their masses, ``1 - delta`` together."""
        loss, mass = response_pmf(self.epsilon)
        return loss, mass * (1 - self.delta)

    def cumulant(self, z: ArrayLike) -> Any:
        """Return ``ln(1 - delta)`` plus the cumulant of randomised response."""
        s = mirrored(z)
        value, _ = response_cgf(np.array(self.epsilon), s.ravel())
        return (value.reshape(s.shape) + math.log1p(-self.delta))[()]

    @property
    def rho(self) -> float:
        """``epsilon tanh(epsilon / 2)`` of the finite part, which is binary randomised response."""
        return rho_of_pure(self.epsilon)

    def renyi(self, order: ArrayLike) -> Array:
        """Return the Rényi divergence of the finite part, which has mass ``1 - delta``.

        It is that of the response plus ``ln(1 - delta) / (order - 1)``.
        """
        a, e0 = orders(order), self.epsilon
        log_moment = np.logaddexp(a * e0, (1 - a) * e0) - np.logaddexp(0, e0)
        divergence: Array = (round_up_sum(log_moment, a * e0) + math.log1p(-self.delta)) / (a - 1)
        return divergence
