"""The least rho of a bounded loss: the supremum of its own Rényi curve over the order.

A release is rho-zCDP if its Rényi divergence D(alpha) of every order alpha > 1 is at most rho
alpha.  Of an epsilon-DP release that is all, rho is epsilon tanh(epsilon / 2); of one whose loss is
known, the supremum of D(alpha) / alpha may be far less.

With a = alpha - 1, K(a) = a D(a + 1) is the logarithm of the moment E_P e^{aL}.  So K is convex,
and K(0) is 0, or below it where some outcomes are impossible on the neighbour.  Between two orders
K lies below its chord, which bounds the supremum there in closed form; below the first order it
lies under the chord from the origin, and above the last one D is at most the largest loss.

Proof: `docs/proofs/renyi.md`, section 4.

References: Bun & Steinke (2016), Definition 1.1; Harrison & Manurangsi (2025), arXiv 2510.25746.
"""

from __future__ import annotations

import functools
import math
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from accountant.numerics import Array
from accountant.numerics.ordered_sums import ordered_dot
from accountant.numerics.rounding import ULP, round_up

# The supremum is found to this relative accuracy, where the round-off of the curve allows it.
RELATIVE_WIDTH = 1e-9
COARSE_ORDERS = 64  # the orders of the first round
MAX_ROUNDS = 8  # each divides the intervals that may hold the supremum by `PARTS`
PARTS = 8
# Largest losses of which the curve is searched: beyond them its terms are no floats.
SIZES = (1e-100, 1e100)
# The least a = alpha - 1, over the largest loss where that is above 1: there D is that of order 1.
SMALLEST_TILT = 1e-10


class BoundedRenyiCurve(Protocol):
    """What the supremum needs of a loss; a loss can be compared and hashed."""

    def __hash__(self) -> int: ...

    def renyi(self, order: ArrayLike) -> Array:
        """Return the Rényi divergence of the finite part, rounded up."""
        ...

    @property
    def max_loss(self) -> float:
        """The largest finite loss."""
        ...

    @property
    def pure(self) -> float:
        """Smallest epsilon at delta 0, over both directions."""
        ...

    @property
    def infinity(self) -> float:
        """Mass of the outcomes that are impossible on the neighbour."""
        ...

    @property
    def loss_pmf(self) -> tuple[Array, Array] | None:
        """The finite losses and their masses, where there are finitely many."""
        ...


def rho_of_pure(epsilon: float) -> float:
    """Return ``epsilon tanh(epsilon / 2)``, the least rho of all epsilon-DP releases, rounded up.

    It is the divergence of order 1 of binary randomised response (`docs/proofs/renyi.md`, 4).
    """
    if epsilon == 0 or math.isinf(epsilon):
        return epsilon
    return max(round_up(epsilon * math.tanh(epsilon / 2), 8), 1e-300)


def rho_of_bounded(loss: BoundedRenyiCurve) -> float:
    """Return the lesser of `rho_of_pure` and `least_rho`; infinite where no epsilon is pure."""
    epsilon = loss.pure
    return math.inf if math.isinf(epsilon) else min(rho_of_pure(epsilon), least_rho(loss))


@functools.lru_cache(maxsize=4096)
def least_rho(loss: BoundedRenyiCurve) -> float:
    """Return ``sup D(alpha) / alpha`` over all orders above 1, rounded up.

    Infinite where the largest finite loss is beyond `SIZES`.
    """
    largest = loss.max_loss
    if largest <= 0:
        return 0.0
    if not SIZES[0] <= largest <= SIZES[1]:
        return math.inf
    # Where the last order is not large enough, the bound beyond it is coarse, and still valid.
    tilts = np.geomspace(
        SMALLEST_TILT * min(1.0, 1 / largest), 3000 * (1 + 1 / largest), COARSE_ORDERS
    )
    divergence = _divergences(loss, tilts)
    upper = math.inf
    for _ in range(MAX_ROUNDS):
        chords = _chord_suprema(tilts, divergence)
        beyond = np.append(np.maximum.accumulate(chords[::-1])[::-1], 0.0)
        bounds = np.maximum(np.maximum(divergence, beyond), largest / (1 + tilts[-1]))
        first = int(np.argmin(bounds))  # orders below this one are bounded by its divergence
        upper = min(upper, float(bounds[first]))
        attained = float(np.max(divergence[first:] / (1 + tilts[first:])))
        target = attained * (1 + RELATIVE_WIDTH)
        if upper <= target:
            break
        may_hold = np.flatnonzero(chords > target)
        may_hold = may_hold[may_hold >= first]
        if divergence[first] > target and first:
            may_hold = np.append(may_hold, first - 1)
        # The intervals of the greatest bounds come first; the others follow in the next rounds.
        worst = may_hold[np.argsort(-chords[may_hold])][:COARSE_ORDERS]
        shares = np.arange(1, PARTS) / PARTS
        added = tilts[worst, None] + np.diff(tilts)[worst, None] * shares
        new = np.unique(added[added > 0])
        order = np.argsort(np.concatenate([tilts, new]), kind="stable")
        divergence = np.concatenate([divergence, _divergences(loss, new)])[order]
        tilts = np.concatenate([tilts, new])[order]
    return round_up(upper, 16)


def _chord_suprema(tilts: Array, divergence: Array) -> Array:
    """Return bounds on ``K(a) / (a (a + 1))`` between two tilts each, from the chord of K.

    With the chord n + s a, the quotient is greatest at the positive root of
    s a^2 + 2 n a + n = 0, or at an end of the interval; n <= 0, as K is convex and K(0) <= 0.
    """
    cgf = tilts * divergence
    low, high = tilts[:-1], tilts[1:]
    slope = np.diff(cgf) / (high - low)
    intercept = np.minimum(cgf[:-1] - slope * low, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        root = (-intercept + np.sqrt(intercept * (intercept - slope))) / slope
    peak = np.clip(np.where(np.isfinite(root), root, low), low, high)
    # The chord at the peak, from the ends: a convex combination cancels nothing.
    share = (peak - low) / (high - low)
    at_peak = cgf[:-1] * (1 - share) + cgf[1:] * share
    ends = divergence / (1 + tilts)
    greatest: Array = np.maximum(at_peak / (peak * (1 + peak)), np.maximum(ends[:-1], ends[1:]))
    return greatest


def _divergences(loss: BoundedRenyiCurve, tilts: Array) -> Array:
    """Return the divergences of the orders ``1 + tilts``, rounded up; at most the largest loss."""
    pmf, order = loss.loss_pmf, 1 + tilts
    if pmf is None:
        known = np.where(order > 1, loss.renyi(np.maximum(order, 1 + ULP)), math.inf)
    else:
        known = _finite_divergences(loss, pmf, tilts)
    # An order at which nothing is known, or the bound is no number, has the largest loss.
    divergence: Array = np.fmin(known, loss.max_loss)
    return divergence


def _finite_divergences(loss: BoundedRenyiCurve, pmf: tuple[Array, Array], tilts: Array) -> Array:
    """Return the divergences of a loss of finitely many values, also near order 1."""
    losses, mass = pmf
    # Near order 1 the moment is 1 plus a small number, which is computed by itself:
    # K(a) = ln(1 + sum_i p_i (e^{a l_i} - 1) - infinity).
    is_small = tilts * np.max(np.abs(losses), initial=0.0) <= 0.5
    result = np.empty(tilts.shape)
    if not is_small.all():
        result[~is_small] = loss.renyi(1 + tilts[~is_small])
    a = tilts[is_small]
    growth = np.expm1(a[:, None] * losses)
    excess = ordered_dot(growth, mass) - loss.infinity
    # Each mass may be off by its share of what the masses lack to 1, and by some ulps.
    mass_error = abs(float(np.sum(mass)) + loss.infinity - 1) + (16 + losses.size) * ULP
    excess += mass_error * ordered_dot(np.abs(growth), mass)
    log_moment = np.log1p(excess)
    result[is_small] = (log_moment + 8 * ULP * np.abs(log_moment)) / a
    return result
