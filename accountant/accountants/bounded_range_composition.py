"""Optimal composition of exponential mechanisms: releases of bounded range.

An exponential mechanism of range e0 costs at most as much as a pair of laws (P, Q) with two
outcomes.  Their losses ln(P/Q) are t and t - e0 for some t in [0, e0], and have under P the
probabilities p_t = (1 - e^{t - e0}) / (1 - e^{-e0}) and 1 - p_t.  If all mechanisms must be chosen
in advance, the worst choice is one t for all.  If each may follow the answers so far, the worst
strategy costs more.

Let V_m(eps) be the greatest delta of m releases at eps = epsilon that may follow the answers.  The
loss of a release is taken off the epsilon that is left to those after it:

    V_0(eps) = (1 - e^eps)_+,   V_{m+1}(eps) = sup over t of p_t V_m(eps - t) + (1 - p_t) V_m(eps -
    t + e0).

This recursion is computed from above on a grid of eps, which may be negative.  The spacing h of the
grid is e0 / `CELLS_PER_RANGE`, and is called a cell.  Of each V_m only a window of cells is kept.

References: Dong, Durfee & Rogers (2020), Theorem 2 (non-adaptive) and section 5 (adaptive).
"""

from __future__ import annotations

import functools
import math

import numpy as np

from accountant.losses.gaussian import GaussianLoss
from accountant.numerics import Array
from accountant.numerics.logspace import log1mexp
from accountant.numerics.rounding import ULP, round_up
from accountant.numerics.search import falling_root

MAX_ADAPTIVE_RELEASES = 300
# Any number gives an upper bound; with this one the answer is up to two thousandths too large.
CELLS_PER_RANGE = 16
# Half of a window for all eps, in standard deviations of the loss: beyond, the mass is negligible.
# It is cut off on the safe side, so a narrower window would only make the bound larger.
DEVIATIONS = 14
NEGLIGIBLE_SHARE = 1e-10  # of delta: about what a window for one epsilon leaves out on each side


def nonadaptive_epsilon(e0: float, count: int, delta: float) -> float:
    """Return the least epsilon of ``count`` releases of range ``e0``, all chosen in advance."""
    top = round_up(count * e0)  # the largest loss

    def excess(epsilon: float) -> float:
        delta_at_epsilon = _nonadaptive_delta(e0, count, epsilon)
        return math.log(delta_at_epsilon) - math.log(delta) if delta_at_epsilon > 0 else -math.inf

    root, _ = falling_root(excess, start=top / 4, tilt=1.0, max_epsilon=top)
    # The losses, of size ``top``, are computed in four operations, and t in three.  Near ``top``
    # delta falls so steeply that their round-off counts.
    return min(top, root + 16 * ULP * top)


def _nonadaptive_delta(e0: float, count: int, epsilon: float) -> float:
    """Return the greatest delta of ``count`` releases with one t, rounded up.

    With k the number of releases whose loss is t - e0, and not t, the summed loss is
    count t - k e0.  So at one t

        delta = sum over k of C(count, k) p_t^(count - k) (1 - p_t)^k (1 - e^{epsilon - loss})_+.
    """
    from scipy.special import gammaln

    k = np.arange(count + 1.0)
    # The greatest is attained at some t = (epsilon + (k + 1) e0) / (count + 1), or at an end.
    t = np.unique(np.clip((epsilon + (k + 1) * e0) / (count + 1), 0.0, e0))
    with np.errstate(divide="ignore", invalid="ignore"):
        # ln p_t and ln (1 - p_t)
        log_p = log1mexp(np.minimum(t - e0, 0.0)) - math.log(-math.expm1(-e0))
        log_rest = t + log1mexp(-t) - e0 - math.log(-math.expm1(-e0))
        log_binomials = gammaln(count + 1.0) - gammaln(k + 1) - gammaln(count - k + 1)
        # The power 0 of a probability 0 is 1.
        log_powers = np.where(k < count, (count - k) * log_p[:, None], 0.0)
        log_powers += np.where(k > 0, k * log_rest[:, None], 0.0)
        loss = count * t[:, None] - k * e0
        terms = np.exp(log_binomials + log_powers) * -np.expm1(np.minimum(epsilon - loss, 0.0))
    # A term is e to a sum of logarithms, each inexact by some ulps of its size.
    error = 1 + 16 * ULP * (count * (1 + e0) + float(gammaln(count + 1.0)))
    return float(np.max(np.sum(terms, axis=1))) * error


def adaptive_epsilon(e0: float, count: int, delta: float) -> float:
    """Return the least epsilon of ``count`` releases of range ``e0``, chosen adaptively.

    The grid around the answer is tried first, then that of all eps.  Where neither has the answer,
    it is the largest loss.
    """
    top = round_up(count * e0)
    for is_narrowed in (True, False):
        profile = _profile_near(e0, count, delta) if is_narrowed else _adaptive_profile(e0, count)
        if profile is None:
            continue
        epsilon, value = profile
        # The first point at which delta is small enough; 0 also where there is none.
        index = int(np.argmax((value <= delta) & (epsilon >= 0)))
        if not value[index] <= delta or (index == 0 and epsilon[0] > 0):
            continue  # the answer is not on this grid
        if epsilon[index] <= 0:
            return 0.0
        # Delta is convex in e^epsilon, so it is at most its chord from the point before, a cell
        # lower.  The chord has the value delta at this share of the way.
        share = (value[index - 1] - delta) / (value[index - 1] - value[index])
        crossing = float(epsilon[index - 1]) + math.log1p(share * math.expm1(e0 / CELLS_PER_RANGE))
        return min(round_up(crossing, 64), top)
    return top


def adaptive_delta(e0: float, count: int, epsilon: float) -> float:
    """Return the least delta of ``count`` releases of range ``e0``, chosen adaptively."""
    if epsilon >= count * e0:
        return 0.0
    points, value = _adaptive_profile(e0, count)
    # The profile is convex in e^epsilon, so it is at most its chords.
    return round_up(float(np.interp(math.exp(epsilon), np.exp(points), value)), 64)


@functools.lru_cache(maxsize=256)
def _adaptive_profile(e0: float, count: int) -> tuple[Array, Array]:
    """Return epsilons on a grid around 0, and upper bounds on delta there."""
    ends = [_half_width(DEVIATIONS, releases) for releases in range(count + 1)]
    return _profile(e0, [(-end, end) for end in ends])


@functools.lru_cache(maxsize=256)
def _profile_near(e0: float, count: int, delta: float) -> tuple[Array, Array] | None:
    """Return `_adaptive_profile` near the epsilon at ``delta``, from fewer cells.

    After m releases only cells matter that m releases reach from 0, and from which the others reach
    the answer, but for about `NEGLIGIBLE_SHARE` of delta.  The result is None where the answer is
    not expected near that of a Gaussian.
    """
    # A release has at most the zCDP rho = e0^2 / 8, which is that of a Gaussian of mu = e0 / 2.
    guess = GaussianLoss(math.sqrt(count) * e0 / 2).inverse_profile(delta)
    if guess > count * e0 / 2:
        return None  # few releases, or a tiny delta: the window would be as wide as the grid
    middle, slack = (round(CELLS_PER_RANGE * share) for share in (guess / e0, math.sqrt(count) / 3))
    # A normal loss exceeds this many deviations with about the probability NEGLIGIBLE_SHARE delta.
    deviations = math.sqrt(-2 * (math.log(delta) + math.log(NEGLIGIBLE_SHARE)))
    windows = []
    for done in range(count + 1):
        reached = _half_width(deviations, done)
        remaining = _half_width(deviations, count - done) + slack
        low, high = max(-reached, middle - remaining), min(reached, middle + remaining)
        windows.append((low, high) if low < high else (-reached, reached))
    return _profile(e0, windows)


def _half_width(deviations: float, releases: int) -> int:
    """Return by how many cells a sum of releases may move, for a number of its deviations.

    The loss of a release has a standard deviation of at most e0 / 2.  Two ranges are added, since
    few losses are not normal, and no sum moves by more than ``releases`` ranges.
    """
    reach = max(releases, 1) * CELLS_PER_RANGE
    far = math.ceil(deviations / 2 * CELLS_PER_RANGE * math.sqrt(releases)) + 2 * CELLS_PER_RANGE
    return min(reach, far)


def _profile(e0: float, windows: list[tuple[int, int]]) -> tuple[Array, Array]:
    """Return the epsilons of the last window, and upper bounds on delta there.

    ``windows`` has the first and the last cell that is kept of each V_m.  V_m is convex in x =
    e^eps and 1 at x = 0.  So the line between two points is above it.  Below a window, the line
    from x = 0 to the window's first value is above it.  Above a window, V_m is at most the last
    value.  So every window gives an upper bound.
    """
    step, bellman_step = e0 / CELLS_PER_RANGE, _BellmanStep(e0)
    bottom, top = windows[0]
    value: Array = np.maximum(-np.expm1(step * np.arange(bottom, top + 1.0)), 0.0)
    for low, high in windows[1:]:
        # ``value`` has V_m from the cell ``bottom`` on.  V_{m+1} in a window needs V_m a range of
        # cells further on both sides, and one cell more below.
        start, end = low - CELLS_PER_RANGE - 1, high + CELLS_PER_RANGE
        if start < bottom:
            below = 1 + (value[0] - 1) * np.exp(step * np.arange(start - bottom, 0.0))
            value = np.concatenate([below, value])
        else:
            value = value[start - bottom :]
        covered = value[: end - start + 1]
        above = np.full(end - start + 1 - covered.size, covered[-1])
        value, bottom = bellman_step(np.concatenate([covered, above])), low
    low, high = windows[-1]
    return step * np.arange(low, high + 1.0), value


class _BellmanStep:
    """The map from V to ``sup_t p_t V(eps - t) + (1 - p_t) V(eps - t + e0)``, rounded up.

    With c = e^{-e0} and s = e^{-t}: (1 - c) p_t = 1 - c / s and (1 - c)(1 - p_t) = c / s - c.  The
    supremum of (1 - c) times the sum is computed, and divided by 1 - c at the end.
    """

    def __init__(self, e0: float) -> None:
        self._step, self._c = e0 / CELLS_PER_RANGE, math.exp(-e0)
        # 1 / (1 - e^{-h}): from t = i h to (i + 1) h, z = e^{ih} s goes from 1 to e^{-h}
        self._inverse_width = -1 / math.expm1(-self._step)
        # c / s at s = e^{-t}, for t = i h
        self._over = np.exp(self._step * np.arange(CELLS_PER_RANGE + 1) - e0)[:, None]
        # A weight 1 - c / s or c / s - c is a difference of two numbers: it is 0, or at least the
        # share (1 - c) / 16 of the larger one.  So round-off of a few 1e-16 in these numbers is at
        # most 1e-14 / (1 - c) of the weight.  1e-13 is for what remains, as for exponents of up to
        # 5 nats.
        self._scale = (1 + 1e-13 + 1e-14 / (1 - self._c)) / (1 - self._c)

    def __call__(self, wide: Array) -> Array:
        """Return the result on the cells of a window, for V on more cells.

        ``wide`` has V on one cell and a range of cells more below, and on a range of cells above.
        """
        cells, c = CELLS_PER_RANGE, self._c
        # t at the cells' ends: (1 - c/s) V(eps - t) + (c/s - c) V(eps - t + e0) at t = 0, h, ...,
        # e0
        ends = _rows(wide[1:-cells]) * (1 - self._over)
        ends += _rows(wide[1 + cells :]) * (self._over - c)
        best: Array = ends.max(axis=0)
        self._raise_inside(best, wide)
        best *= self._scale
        return np.minimum(best, 1.0, out=best)

    def _raise_inside(self, best: Array, wide: Array) -> None:
        """Raise ``best`` to the suprema that lie between the ends."""
        # For t between i h and (i + 1) h, s = e^{-ih} z with z in [e^{-h}, 1], and the chords are
        # lines in z: V(eps - t) = A0 + A1 z and V(eps - t + e0) = B0 + B1 z.  With c / s = c e^{ih}
        # / z
        #
        #     (1 - c / s) (A0 + A1 z) + (c / s - c) (B0 + B1 z) = constant - b z - e^{ih} d / z,
        #     b = c B1 - A1,   d = c (A0 - B0).
        #
        # Where b and d are positive this is greatest at z = sqrt(e^{ih} d / b).  That z is in
        # [e^{-h}, 1] for the one or two i with x - 2 <= i <= x, x = ln(b / d) / h.
        cells, c, rise = CELLS_PER_RANGE, self._c, wide[1:] - wide[:-1]
        b = (c * rise[cells:] - rise[:-cells]) * self._inverse_width
        d = (rise[cells:] - rise[:-cells]) * self._inverse_width
        d -= wide[cells + 1 :] - wide[1:-cells]
        d *= c
        at = np.flatnonzero((b > 0) & (d > 0))
        x = np.log(b[at] / d[at]) / self._step
        row = np.floor(x)
        at, x = np.concatenate([at, at]), np.concatenate([x, x])
        i = np.concatenate([row, row - 1])
        target = at + i.astype(np.intp) - cells
        valid = np.flatnonzero((i >= 0) & (i < cells) & (target >= 0) & (target < best.size))
        k, i = at[valid], i[valid]
        # z = e^{-y}.  Near the greatest value the round-off of y changes it only in second order.
        y = np.clip((x[valid] - i) * (self._step / 2), 0.0, self._step)
        share = np.expm1(-y) * -self._inverse_width  # of the cell that is further down
        over = np.minimum(np.exp((i - cells) * self._step + y), 1.0)  # c / s
        value = (1 - over) * (wide[k + 1] - share * rise[k])
        value += (over - c) * (wide[k + 1 + cells] - share * rise[k + cells])
        np.maximum.at(best, target[valid], value)


def _rows(values: Array) -> Array:
    """Return a view of ``values`` with `CELLS_PER_RANGE` + 1 rows, for t = 0, h, ..., e0.

    Row i, for t = i h, has V(eps - t) at all eps: the values from the place `CELLS_PER_RANGE` - i
    on.  The view has a negative stride from row to row, and copies nothing.
    """
    values = np.ascontiguousarray(values)
    size, last_offset = values.size - CELLS_PER_RANGE, CELLS_PER_RANGE * values.itemsize
    shape, strides = (CELLS_PER_RANGE + 1, size), (-values.itemsize, values.itemsize)
    return np.ndarray(shape, values.dtype, values, last_offset, strides)
