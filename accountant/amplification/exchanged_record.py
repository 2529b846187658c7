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
from typing import NamedTuple, final

import numpy as np

from accountant.losses.finite import FINITE_CGF, DiscretisedLoss, FiniteLoss, discretised
from accountant.losses.finite_pair import PairLoss
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.loss import Loss
from accountant.losses.loss_numerics import LossNumerics
from accountant.losses.mixture_of_gaussians import MixturePairLoss
from accountant.losses.mixture_pair import MixturePair
from accountant.losses.normal_mixture import side
from accountant.losses.public_choice import PublicChoice
from accountant.numerics import Array
from accountant.numerics.logspace import log_mixture
from accountant.numerics.rounding import MAX_EXPONENT, round_up

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
        is_exact = _is_listed(self.part)
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
        return _exchanged_outcomes(self.part, self.rate).infinity_mass

    @property
    def max_loss(self) -> float:
        """The largest finite loss."""
        outcomes = _exchanged_outcomes(self.part, self.rate)
        return round_up(float(np.max(np.abs(outcomes.loss), initial=0.0)), 16)

    @property
    def loss_pmf(self) -> tuple[Array, Array]:
        """The finite losses and their masses."""
        outcomes = _exchanged_outcomes(self.part, self.rate)
        return outcomes.loss, outcomes.mass


class _PowerPieces(NamedTuple):
    """The pieces of g, the greatest power of a test of the part at each level.

    Each piece is one loss ln(P / R) of the part, the logarithm of the slope of g there; the largest
    loss comes first.  The last one is minus infinity if some outcomes are impossible with the
    record.
    """

    loss: Array
    length: Array  # in the level: the mass of the loss under R, without the record
    infinity_mass: float  # of P where R has none


@functools.lru_cache(maxsize=64)
def _exchanged_outcomes(part: Loss, rate: float) -> DiscretisedLoss:
    """Return the losses and masses of the outcomes of the worst pair.

    Outcomes are put on [0, 1] so that the law R without either record is uniform.  Let g(b) be the
    greatest power of a test of the part, P against R, at level b.  Then the density at b is g'(b)
    with one record and g'(1 - b) with the other.  The right half mirrors the left one, so only the
    left half, b < 1/2, is computed.
    """
    pieces = _power_pieces(part)
    # g' is constant on pieces: from the left, largest losses first; from the right, smallest first.
    from_left, from_right = np.cumsum(pieces.length), np.cumsum(pieces.length[::-1])
    ends = np.union1d(from_left, from_right)
    ends = np.append(ends[ends < 0.5], 0.5)
    width, middle = np.diff(ends, prepend=0.0), ends - np.diff(ends, prepend=0.0) / 2
    last_piece = pieces.loss.size - 1
    high = pieces.loss[np.minimum(np.searchsorted(from_left, middle), last_piece)]
    low = pieces.loss[::-1][np.minimum(np.searchsorted(from_right, middle), last_piece)]
    # ln of the densities of (1 - q) R + q P and (1 - q) R + q Q, with q the rate
    log_p, log_q = log_mixture(high, rate), log_mixture(low, rate)
    with np.errstate(under="ignore"):
        p, q = width * np.exp(log_p), width * np.exp(log_q)
    loss, mass = np.append(log_p - log_q, log_q - log_p), np.append(p, q)
    possible = mass > 0
    # At rate 1 an outcome that is impossible with one of the records has an infinite loss.
    infinity_mass = float(mass[possible & (loss == math.inf)].sum())
    infinity_mass += rate * pieces.infinity_mass
    possible &= np.isfinite(loss)
    return DiscretisedLoss(loss[possible], mass[possible], infinity_mass)


def _is_listed(part: Loss) -> bool:
    """Return whether all losses of both directions are listed: no mass is too small for a float."""
    directions_listed = part.loss_pmf is not None and part.reversed.loss_pmf is not None
    return directions_listed and max(part.max_loss, part.reversed.max_loss) <= MAX_EXPONENT


def _power_pieces(part: Loss) -> _PowerPieces:
    """Return the pieces of g, from the losses of the part and their masses."""
    if (loss_pmf := part.loss_pmf) is None or not _is_listed(part):
        # Finitely many losses that dominate the part's; at most 1e-250 of mass is moved to
        # infinity.
        above = discretised(part, 1e-250, upper=True)
        losses, mass, infinity_mass = above.loss, above.mass, above.infinity_mass
        impossible_mass = above.reversed.infinity_mass
    else:
        (losses, mass), infinity_mass = loss_pmf, part.infinity
        impossible_mass = part.reversed.infinity
    order = np.argsort(-losses)
    losses, length = losses[order], mass[order] * np.exp(-losses[order])
    if impossible_mass > 0:  # Outcomes that the record makes impossible.
        losses, length = np.append(losses, -np.inf), np.append(length, impossible_mass)
    return _PowerPieces(losses, length / length.sum(), infinity_mass)
