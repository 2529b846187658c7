"""Optimal composition of exponential mechanisms: releases of bounded range.

A release of range e0 is a pair with log-ratios t and t - e0 for some t in [0, e0], of masses
p_t = (1 - e^{t - e0}) / (1 - e^{-e0}) and 1 - p_t.  If all t must be chosen in advance the worst
choice is one t for all; if each may follow the answers so far, the worst strategy gains more.

With V_m(e) the greatest delta at e of m releases that may follow the answers, V_0(e) is
(1 - e^e)_+, and V_{m+1}(e) = sup_t p_t V_m(e - t) + (1 - p_t) V_m(e - t + e0).  This recursion is
computed from above on a grid of e, whose spacing h is called a cell; of each V only a window of
cells is kept.

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
# Cells of a range in the recursion, whose answer is then two thousandths too large.
CELLS_PER_RANGE = 16
# Half of a window of all e, in standard deviations of the loss: beyond, the mass is negligible.
DEVIATIONS = 14
NEGLIGIBLE_SHARE = 1e-10  # of delta: what a window around one e may leave out on each side, about


def nonadaptive_epsilon(e0: float, count: int, delta: float) -> float:
    """Return the least epsilon of ``count`` releases of range ``e0``, all chosen in advance."""
    # The search for the epsilon starts at a quarter of the largest loss.
    top = round_up(count * e0)

    def excess(epsilon: float) -> float:
        delta_at_epsilon = _nonadaptive_delta(e0, count, epsilon)
        return math.log(delta_at_epsilon) - math.log(delta) if delta_at_epsilon > 0 else -math.inf

    return min(top, falling_root(excess, top / 4, 1.0, top)[0])


def _nonadaptive_delta(e0: float, count: int, epsilon: float) -> float:
    """Return the greatest delta of ``count`` releases with one t, rounded up.

    ``low`` counts the releases with the log-ratio t - e0, so that the loss is count t - low e0.
    """
    from scipy.special import gammaln

    # the greatest is attained at some t = (epsilon + (i + 1) e0) / (count + 1), or at an end
    low = np.arange(count + 1.0)
    t = np.unique(np.clip((epsilon + (low + 1) * e0) / (count + 1), 0.0, e0))
    with np.errstate(divide="ignore", invalid="ignore"):
        # ln p_t and ln (1 - p_t)
        log_p = log1mexp(np.minimum(t - e0, 0.0)) - math.log(-math.expm1(-e0))
        log_rest = t + log1mexp(-t) - e0 - math.log(-math.expm1(-e0))
        log_binomials = gammaln(count + 1.0) - gammaln(low + 1) - gammaln(count - low + 1)
        high = np.where(low < count, (count - low) * log_p[:, None], 0.0)
        size = log_binomials + high + np.where(low > 0, low * log_rest[:, None], 0.0)
        loss = count * t[:, None] - low * e0
        sticks = np.exp(size) * -np.expm1(np.minimum(epsilon - loss, 0.0))
    # A term is e to a sum of logarithms, each inexact by some ulps of its size.
    error = 1 + 16 * ULP * (count * (1 + e0) + float(gammaln(count + 1.0)))
    return float(np.max(np.sum(sticks, axis=1))) * error


def adaptive_epsilon(e0: float, count: int, delta: float) -> float:
    """Return the least epsilon of ``count`` releases of range ``e0``, chosen adaptively.

    The grid around the answer is tried first, then that of all e.
    """
    top = round_up(count * e0)
    for is_narrowed in (True, False):
        curve = _profile_near(e0, count, delta) if is_narrowed else _adaptive_profile(e0, count)
        if curve is None:
            continue
        epsilon, value = curve
        index = int(np.argmax((value <= delta) & (epsilon >= 0)))
        if not value[index] <= delta or (index == 0 and epsilon[0] > 0):
            continue  # the answer is not on this grid
        if epsilon[index] <= 0:
            return 0.0
        # Delta is at most its chord between two points, which is linear in e^epsilon.
        share = (value[index - 1] - delta) / (value[index - 1] - value[index])
        inside = float(epsilon[index - 1]) + math.log1p(share * math.expm1(e0 / CELLS_PER_RANGE))
        return min(round_up(inside, 64), top)
    return top


def adaptive_delta(e0: float, count: int, epsilon: float) -> float:
    """Return the least delta of ``count`` releases of range ``e0``, chosen adaptively."""
    if epsilon >= count * e0:
        return 0.0
    points, value = _adaptive_profile(e0, count)
    # a chord in e^epsilon is above the profile
    return round_up(float(np.interp(math.exp(epsilon), np.exp(points), value)), 64)


@functools.lru_cache(maxsize=256)
def _adaptive_profile(e0: float, count: int) -> tuple[Array, Array]:
    """Return epsilons on a grid, and upper bounds on delta there."""
    ends = [_half_width(DEVIATIONS, done) for done in range(count + 1)]
    return _profile(e0, [(-end, end) for end in ends])


@functools.lru_cache(maxsize=256)
def _profile_near(e0: float, count: int, delta: float) -> tuple[Array, Array] | None:
    """Return `_adaptive_profile` near the epsilon at ``delta``, from fewer cells.

    After m releases only cells matter that m releases reach from 0, and from which the others reach
    the answer, but for about `NEGLIGIBLE_SHARE` of delta.  The result is None where the answer is
    not expected near that of a Gaussian.
    """
    # Each release has at most the rho of a Gaussian of mu = e0 / 2.
    guess = GaussianLoss(math.sqrt(count) * e0 / 2).inverse_profile(delta)
    if guess > count * e0 / 2:  # few releases, or a tiny delta
        return None
    middle, slack = (round(CELLS_PER_RANGE * share) for share in (guess / e0, math.sqrt(count) / 3))
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

    A release has a deviation of at most e0 / 2; two ranges are added, and no sum moves by more than
    ``releases`` ranges.
    """
    reach = max(releases, 1) * CELLS_PER_RANGE
    far = math.ceil(deviations / 2 * CELLS_PER_RANGE * math.sqrt(releases)) + 2 * CELLS_PER_RANGE
    return min(reach, far)


def _profile(e0: float, windows: list[tuple[int, int]]) -> tuple[Array, Array]:
    """Return the epsilons of the last window, and upper bounds on delta there.

    ``windows`` has the first and the last cell that is kept of each V_m.  The profile is convex in
    x = e^epsilon and 1 at x = 0, so straight lines between points are above it, and so is below a
    window the line from x = 0 to its first value.  Above a window it is at most the last value.  So
    every window gives an upper bound.
    """
    step, bellman_step = e0 / CELLS_PER_RANGE, _BellmanStep(e0)
    bottom, top = windows[0]
    value: Array = np.maximum(-np.expm1(step * np.arange(bottom, top + 1.0)), 0.0)
    for low, high in windows[1:]:
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
    """The map from V to ``sup_t p_t V(e - t) + (1 - p_t) V(e - t + e0)``, rounded up.

    With c = e^{-e0} and s = e^{-t}: (1 - c) p_t = 1 - c / s and (1 - c)(1 - p_t) = c / s - c.
    """

    def __init__(self, e0: float) -> None:
        self._step, self._c = e0 / CELLS_PER_RANGE, math.exp(-e0)
        self._inverse_width = -1 / math.expm1(-self._step)  # of a cell, in z = e^{ih} s
        # c / s at s = e^{-t}, for t = i h
        self._over = np.exp(self._step * np.arange(CELLS_PER_RANGE + 1) - e0)[:, None]
        # sums lose a few units of values that are about 1 / (1 - c) times larger
        self._scale = (1 + 1e-13 + 1e-14 / (1 - self._c)) / (1 - self._c)

    def __call__(self, wide: Array) -> Array:
        """Return the result on the cells of a window, for V on more cells.

        ``wide`` has V on one cell and a range of cells more below, and on a range of cells above.
        """
        cells, c = CELLS_PER_RANGE, self._c
        # t at the cells' ends: (1 - c/s) V(e - t) + (c/s - c) V(e - t + e0) at t = 0, h, ..., e0
        ends = _rows(wide[1:-cells]) * (1 - self._over)
        ends += _rows(wide[1 + cells :]) * (self._over - c)
        best: Array = ends.max(axis=0)
        self._raise_inside(best, wide)
        best *= self._scale
        return np.minimum(best, 1.0, out=best)

    def _raise_inside(self, best: Array, wide: Array) -> None:
        """Raise ``best`` to the suprema that lie between the ends."""
        # For t between i h and (i + 1) h, s = e^{-ih} z, both V(e - t) and V(e - t + e0) are lines
        # in z.  (1 - c) times the value is a - b z - e^{ih} d / z, greatest at z = sqrt(e^{ih} d/b)
        # if that is in [e^{-h}, 1]: on the two rows, or one, where x - 2 <= i <= x, x = ln(b/d)/h.
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
        # z = e^{-y}; every y in [0, h] gives a value that is attained: round-off in y does no harm
        y = np.clip((x[valid] - i) * (self._step / 2), 0.0, self._step)
        share = np.expm1(-y) * -self._inverse_width  # of the cell that is further down
        over = np.minimum(np.exp((i - cells) * self._step + y), 1.0)  # c / s
        value = (1 - over) * (wide[k + 1] - share * rise[k])
        value += (over - c) * (wide[k + 1 + cells] - share * rise[k + cells])
        np.maximum.at(best, target[valid], value)


def _rows(values: Array) -> Array:
    """Return a view of ``values`` with `CELLS_PER_RANGE` + 1 rows, for t = 0, h, ..., e0.

    Row i has the values that begin `CELLS_PER_RANGE` - i cells after the first: V(e - t) at all e.
    """
    values = np.ascontiguousarray(values)
    size, last_offset = values.size - CELLS_PER_RANGE, CELLS_PER_RANGE * values.itemsize
    shape, strides = (CELLS_PER_RANGE + 1, size), (-values.itemsize, values.itemsize)
    return np.ndarray(shape, values.dtype, values, last_offset, strides)
