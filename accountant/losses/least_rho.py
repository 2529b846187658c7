"""The least rho of a bounded loss: the supremum of its own Rényi curve over the order.

A release is rho-zCDP if its Rényi divergence D(alpha) of every order alpha > 1 is at most rho
alpha.  Of an epsilon-DP release that is all, rho is epsilon tanh(epsilon / 2); of one whose loss is
known, the supremum of D(alpha) / alpha may be far less.

With a = alpha - 1, K(a) = a D(a + 1) is the logarithm of the moment E_P e^{aL}.  So K is convex,
and K(0) is 0, or below it where some outcomes are impossible on the neighbour.  Between two orders
K lies below its chord, which bounds the supremum there in closed form; below the first order it
lies under the chord from the origin, and above the last one D is at most the largest loss.

Proof: `docs/proofs/zcdp.md`.

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
from accountant.numerics.rounding import ULP, round_up, round_up_to_bits

# The supremum is found to this relative accuracy, where the round-off of the curve allows it.
RELATIVE_WIDTH = 1e-9
COARSE_ORDERS = 64  # the orders of the first round
# A rho is rounded up to so many binary digits, 1e-11 of itself: another machine, whose functions
# differ in the last digits, then charges the same, and finds what this one charged in a book.
KEPT_BITS = 37


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

    It is the divergence of order 1 of binary randomised response (`docs/proofs/zcdp.md`, 2).
    """
    if epsilon == 0 or math.isinf(epsilon):
        return epsilon
    rho = round_up(epsilon * math.tanh(epsilon / 2), 8)
    return max(round_up_to_bits(rho, KEPT_BITS), 1e-300)


def rho_of_bounded(loss: BoundedRenyiCurve) -> float:
    """Return the lesser of `rho_of_pure` and `least_rho`; infinite where no epsilon is pure."""
    epsilon = loss.pure
    return math.inf if math.isinf(epsilon) else min(rho_of_pure(epsilon), least_rho(loss))


@functools.lru_cache(maxsize=4096)
@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # of losses near the ends of floats
def least_rho(loss: BoundedRenyiCurve) -> float:
    """Return ``sup D(alpha) / alpha`` over all orders above 1, rounded up.

    Infinite where the largest finite loss is.
    """
    largest = loss.max_loss
    if largest <= 0 or math.isinf(largest):
        return max(largest, 0.0)
    # At the least a, D is that of order 1 up to `RELATIVE_WIDTH`.  Where the last one is not large
    # enough, the bound beyond it is coarse, and still valid.
    a = np.geomspace(
        RELATIVE_WIDTH * min(1.0, 1 / largest), 3000 * (1 + 1 / largest), COARSE_ORDERS
    )
    divergence = _divergences(loss, a)
    upper = math.inf
    for _ in range(8):  # each round divides the intervals that may hold the supremum by 8
        chords = _chord_suprema(a, divergence)
        beyond = np.append(np.maximum.accumulate(chords[::-1])[::-1], 0.0)
        bounds = np.maximum(np.maximum(divergence, beyond), largest / (1 + a[-1]))
        first = int(np.argmin(bounds))  # orders below this one are bounded by its divergence
        upper = min(upper, float(bounds[first]))
        target = float(np.max(divergence[first:] / (1 + a[first:]))) * (1 + RELATIVE_WIDTH)
        if upper <= target:
            break
        may_hold = first + np.flatnonzero(chords[first:] > target)
        if divergence[first] > target and first:
            may_hold = np.append(may_hold, first - 1)
        # The intervals of the greatest bounds come first; the others follow in the next rounds.
        worst = may_hold[np.argsort(-chords[may_hold])][:COARSE_ORDERS]
        new = np.unique(a[worst, None] + np.diff(a)[worst, None] * np.arange(1, 8) / 8)
        divergence = np.concatenate([divergence, _divergences(loss, new)])
        a, first_index = np.unique(np.concatenate([a, new]), return_index=True)
        divergence = divergence[first_index]
    return round_up_to_bits(round_up(upper, 16), KEPT_BITS)


def _chord_suprema(a: Array, divergence: Array) -> Array:
    """Return bounds on ``K(a) / (a (a + 1))`` between two neighbouring a each, by the chord of K.

    With the chord n + s a, the quotient is greatest at the positive root of
    s a^2 + 2 n a + n = 0, or at an end of the interval; n <= 0, as K is convex and K(0) <= 0.
    """
    cgf = a * divergence
    low, high = a[:-1], a[1:]
    slope = np.diff(cgf) / (high - low)
    intercept = np.minimum(cgf[:-1] - slope * low, 0.0)
    root = (-intercept + np.sqrt(intercept * (intercept - slope))) / slope
    peak = np.clip(np.where(np.isfinite(root), root, low), low, high)
    # The chord at the peak, from the ends: a convex combination cancels nothing.
    share = (peak - low) / (high - low)
    at_peak = cgf[:-1] * (1 - share) + cgf[1:] * share
    ends = divergence / (1 + a)
    greatest: Array = np.maximum(at_peak / (peak * (1 + peak)), np.maximum(ends[:-1], ends[1:]))
    return greatest


def _divergences(loss: BoundedRenyiCurve, a: Array) -> Array:
    """Return the divergences of the orders ``1 + a``, rounded up, and at most the largest loss.

    Near order 1 the moment of a loss of finitely many values is 1 plus a small number, which is
    computed by itself: K(a) = ln(1 + sum_i p_i (e^{a l_i} - 1) - infinity).
    """
    losses, mass = loss.loss_pmf or (np.zeros(0), np.zeros(0))
    is_small = (losses.size > 0) & (a * np.max(np.abs(losses), initial=0.0) <= 0.5)
    result = np.full(a.shape, math.inf)
    is_known = ~is_small & (1 + a > 1)
    if is_known.any():
        result[is_known] = loss.renyi(1 + a[is_known])
    small = a[is_small]
    growth = np.expm1(small[:, None] * losses)
    excess = ordered_dot(growth, mass) - loss.infinity
    # Each mass may be off by its share of what the masses lack to 1, and by some ulps.
    mass_error = abs(float(np.sum(mass)) + loss.infinity - 1) + (16 + losses.size) * ULP
    log_moment = np.log1p(excess + mass_error * ordered_dot(np.abs(growth), mass))
    result[is_small] = (log_moment + 8 * ULP * np.abs(log_moment)) / small
    # An order at which nothing is known, or the bound is no number, has the largest loss.
    divergence: Array = np.fmin(result, loss.max_loss)
    return divergence
