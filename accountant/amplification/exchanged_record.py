"""Poisson sampling where one record is exchanged for another: the loss of the worst pair.

Let q be the sampling rate and R the law of the release if the record is not in the sample.  P and Q
are the laws if it is, for either record.  Then the laws on two neighbours are (1 - q) R + q P and
(1 - q) R + q Q.  The release (the part) is known only by its loss of a record that is present
against none, of P against R.  `docs/proofs/exchanged_record.md` shows which pair is then the worst.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from accountant.losses.finite import FINITE_CGF, FiniteLoss, discretised
from accountant.losses.finite_pair import PairLoss
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.loss import Loss, epsilons, orders
from accountant.losses.loss_numerics import LossNumerics
from accountant.losses.mixture_of_gaussians import MixturePairLoss
from accountant.losses.mixture_pair import MixturePair
from accountant.losses.normal_mixture import side
from accountant.losses.public_choice import PublicChoice
from accountant.numerics import Array
from accountant.numerics.logspace import log_mixture
from accountant.numerics.ordered_sums import ordered_dot
from accountant.numerics.rounding import round_up

NO_LOSS = PairLoss((1.0,), (1.0,))  # one outcome, which is certain on both neighbours


def exchanged_loss(part: Loss, rate: float, *, part_is_exchanged: bool) -> Loss:
    """Return the loss of exchanging one record of a Poisson sample.

    ``part_is_exchanged`` says that the part's loss compares two records, and knows nothing of a
    sample without either.  Then it is only known that one coin decides for both records: delta is
    at most ``rate`` times that of the part, at any epsilon.
    """
    if rate == 0:
        return NO_LOSS
    if part_is_exchanged:
        return part if rate == 1 else PublicChoice((part, NO_LOSS), (rate, 1 - rate))
    if isinstance(part, GaussianLoss):
        moved = side((0.0, part.mu), (1 - rate, rate))
        return MixturePairLoss(MixturePair(moved, moved))
    return ExchangedLoss(part, rate)


@final
@dataclass(frozen=True, slots=True)
class ExchangedLoss(FiniteLoss):
    """The worst pair of an exchange, for a part with finitely many losses, or one above it."""

    part: Loss
    rate: float

    @property
    def reversed(self) -> ExchangedLoss:
        """The same loss: either record may be the one that is exchanged."""
        return self

    @property
    def numerics(self) -> LossNumerics:
        """A finite sum; a numerical bound unless the part itself has finitely many outcomes."""
        is_exact = self.part.loss_pmf is not None and self.part.reversed.loss_pmf is not None
        return LossNumerics(FINITE_CGF, self.part.numerics.is_upper_envelope, not is_exact)

    @property
    def attained_pair(self) -> Loss:
        """The exchange of a pair that the part attains."""
        if not self.part.numerics.is_upper_envelope:
            return self
        return exchanged_loss(self.part.attained_pair, self.rate, part_is_exchanged=False)

    @property
    def infinity(self) -> float:
        """The mass of the outcomes that are impossible on the neighbour."""
        return _exchanged_outcomes(self.part, self.rate)[2]

    @property
    def max_loss(self) -> float:
        """The largest finite loss."""
        loss, _, _ = _exchanged_outcomes(self.part, self.rate)
        return round_up(float(np.max(np.abs(loss), initial=0.0)), 16)

    @property
    def loss_pmf(self) -> tuple[Array, Array]:
        """The finite losses and their masses."""
        return _exchanged_outcomes(self.part, self.rate)[:2]

    def profile(self, epsilon: ArrayLike) -> Array:
        """Return ``sum mass (1 - e^{eps - loss})_+``, and the mass at infinity."""
        loss, mass, infinity = _exchanged_outcomes(self.part, self.rate)
        sticks = -np.expm1(np.minimum(epsilons(epsilon)[..., None] - loss, 0.0))
        total: Array = np.minimum(ordered_dot(sticks, mass) + infinity, 1.0)
        return total

    def renyi(self, order: ArrayLike) -> Array:
        """Return the Rényi divergence of the finite sum."""
        a = orders(order) - 1
        value, error = FINITE_CGF.sum_cgf([self], np.ones(1), a)
        divergence: Array = (value + error) / a
        return divergence


@functools.lru_cache(maxsize=64)
def _exchanged_outcomes(part: Loss, rate: float) -> tuple[Array, Array, float]:
    """Return losses, masses and the mass at infinity of the worst pair.

    Outcomes are put on [0, 1] so that the law R without either record is uniform.  Let g(b) be the
    greatest power of a test of the part, P against R, at level b.  Then the density at b is g'(b)
    with one record and g'(1 - b) with the other.  The right half mirrors the left one, so only the
    left half, b < 1/2, is computed.
    """
    # The part's losses ln(P / R), which are ln g' of the pieces of g, their lengths in b, and the
    # mass of P where R has none.
    ratio, level, beyond = _power_pieces(part)
    # g' is constant on pieces: from the left, largest ratios first; from the right, smallest first.
    from_left, from_right = np.cumsum(level), np.cumsum(level[::-1])
    ends = np.union1d(from_left, from_right)
    ends = np.append(ends[ends < 0.5], 0.5)
    width, middle = np.diff(ends, prepend=0.0), ends - np.diff(ends, prepend=0.0) / 2
    last_piece = ratio.size - 1
    high = ratio[np.minimum(np.searchsorted(from_left, middle), last_piece)]
    low = ratio[::-1][np.minimum(np.searchsorted(from_right, middle), last_piece)]
    log_p, log_q = log_mixture(high, rate), log_mixture(low, rate)
    with np.errstate(under="ignore"):
        p, q = width * np.exp(log_p), width * np.exp(log_q)
    loss, mass = np.append(log_p - log_q, log_q - log_p), np.append(p, q)
    possible = mass > 0
    # At rate 1 an outcome that is impossible with one of the records has an infinite loss.
    infinity_mass = float(mass[possible & (loss == math.inf)].sum()) + rate * beyond
    possible &= np.isfinite(loss)
    return loss[possible], mass[possible], infinity_mass


def _power_pieces(part: Loss) -> tuple[Array, Array, float]:
    """Return the losses of the part, their masses without the record, and its mass at infinity.

    The largest loss comes first.  The last one is minus infinity if some outcomes are impossible
    with the record.
    """
    loss_pmf, reversed_pmf = part.loss_pmf, part.reversed.loss_pmf
    if loss_pmf is None or reversed_pmf is None:
        # Finitely many losses that dominate the part's; at most 1e-250 of mass is moved to
        # infinity.
        above = discretised(part, 1e-250, upper=True)
        losses, mass, beyond = above.loss, above.mass, above.infinity_mass
        lost = above.reversed.infinity_mass
    else:
        (losses, mass), beyond = loss_pmf, part.infinity
        lost = part.reversed.infinity
    order = np.argsort(-losses)
    ratio, level = losses[order], mass[order] * np.exp(-losses[order])
    if lost > 0:  # Outcomes that the record makes impossible.
        ratio, level = np.append(ratio, -np.inf), np.append(level, lost)
    return ratio, level / level.sum(), beyond
