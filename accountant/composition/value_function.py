"""What is still to be lost: the greatest delta of the releases to come, as a function of epsilon.

Some releases stand for many pairs of laws, of which each time any may be the one, chosen with all
earlier answers.  What they cost is found backwards.  V(e) is the greatest delta of the releases
that are still to come, at the epsilon e that the losses so far leave of the one that was asked for:

- after the last release V(e) = (1 - x)_+, x = e^e;
- before a release of one pair V(e) = E_P V'(e - L), L = ln dP/dQ its loss;
- before a choice V(e) is the greatest V of its parts;
- before an exponential mechanism of range e0, which costs at most as much as a pair with the two
  losses t and t - e0, V(e) = sup over t in [0, e0] of p_t V'(e - t) + (1 - p_t) V'(e - t + e0),
  with p_t = (1 - e^{t - e0}) / (1 - e^{-e0}).

V is a profile: convex in x, 1 at x = 0, and it falls with a slope of at least -1.  A
`ValueFunction` bounds it from both sides on a lattice of e.  From above, straight lines in x
between the points are above V; a pair above on the lattice takes the place of a loss.  From below,
only losses on the lattice occur, so that V is needed at its points alone.
All terms are positive, so that round-off is a few units of each value: very small deltas have
their digits.  Proof: `docs/proofs/choices.md`.

References: Dong, Durfee & Rogers (2020), section 5, for exponential mechanisms alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from accountant.composition.grid_pairs import PairOnGrid
from accountant.numerics import Array
from accountant.numerics.ordered_sums import ordered_dot
from accountant.numerics.rounding import ULP, round_up

# V is kept where it is further than this from (1 - x)_+, relative to 1 - x: below, a line from
# V = 1 at x = 0 is as good.
NEGLIGIBLE = 1e-10
SPARSE = 6  # a law with mass at fewer than one of so many points is added point by point
CELLS = 4  # steps in the range of an exponential mechanism, from above


@dataclass(frozen=True, slots=True, eq=False)
class ValueFunction:
    """Lower and upper bounds on V at the epsilons ``step * (bottom + i)``.

    V is at least ``limit`` everywhere.  It need not be kept where it is within ``negligible`` of
    its last value.  ``shift`` bounds, in nats, by how much round-off moves the sum of all losses.
    """

    step: float
    bottom: int
    low: Array
    high: Array
    negligible: float
    limit: float = 0.0
    shift: float = 0.0

    @classmethod
    def after_all(cls, step: float, negligible: float) -> ValueFunction:
        """Return ``(1 - x)_+``: no release is to come."""
        value: Array = -np.expm1(step * np.arange(-2.0, 1.0))
        return cls(step, -2, value * (1 - 4 * ULP), value * (1 + 4 * ULP), negligible)

    @property
    def top(self) -> int:
        """The index of the last point."""
        return self.bottom + self.high.size - 1

    def before_release(self, below: PairOnGrid, above: PairOnGrid) -> ValueFunction:
        """Return V before a release of which these pairs on the same points are below and above."""
        law = above.law
        smallest, largest = law.first, law.first + law.mass.size - 1
        bottom, top = self.bottom + min(smallest, 0), self.top + max(largest, 0)
        wanted = bottom - largest, top - smallest
        # A sum of n positive terms is exact to n ulps of itself.
        slack = (law.mass.size + 16) * ULP
        low = (below.p_beyond + _weighted(self.lower(*wanted), below.law.mass)) * (1 - slack)
        high = (above.p_beyond + _weighted(self.upper(*wanted), law.mass)) * (1 + slack)
        limit = (below.p_beyond + float(below.law.mass.sum()) * self.limit) * (1 - slack)
        shift = self.shift + above.edge_error + 8 * ULP * law.size
        return replace(
            self, bottom=bottom, low=low, high=np.minimum(high, 1.0), limit=limit, shift=shift
        ).trimmed()

    def before_ranges(self, e0: float, count: int) -> ValueFunction:
        """Return V before ``count`` exponential mechanisms of range ``e0``."""
        # From below the range is a whole number of steps, at most e0; from above the lattice is one
        # of which e0 is a whole number of steps.
        steps = math.floor(e0 / self.step * (1 + 4 * ULP))
        cells = max(math.ceil(e0 / self.step * (1 - 4 * ULP)), CELLS)
        lower, upper = self, self.above_on_step(e0 / cells)
        greatest_above = BellmanStep(e0, cells)
        for _ in range(count):
            lower = lower.below_range(steps) if steps else lower
            bottom = upper.bottom - cells
            high = greatest_above(upper.upper(bottom - cells - 1, upper.top + 2 * cells))
            upper = replace(upper, bottom=bottom, low=high, high=high).trimmed()
        upper = upper.above_on_step(self.step)
        bottom, top = min(lower.bottom, upper.bottom), max(lower.top, upper.top)
        return replace(
            lower,
            bottom=bottom,
            low=lower.lower(bottom, top),
            high=upper.upper(bottom, top),
            shift=self.shift + count * 16 * ULP * e0,
        ).trimmed()

    def below_range(self, steps: int) -> ValueFunction:
        """Return V from below before an exponential mechanism of a range of so many steps."""
        bottom, top = self.bottom - steps, self.top + steps
        wide, size = self.lower(bottom - steps, top + steps), top - bottom + 1
        best = wide[steps : steps + size].copy()
        t = self.step * np.arange(steps + 1.0)
        normaliser = -math.expm1(-steps * self.step)
        at_t = -np.expm1(-t[::-1]) / normaliser * (1 - 16 * ULP)  # p_t
        at_rest = np.exp(-t[::-1]) * -np.expm1(-t) / normaliser * (1 - 16 * ULP)  # 1 - p_t
        for i in range(1, steps):
            value = at_t[i] * wide[steps - i : steps - i + size]
            value += at_rest[i] * wide[2 * steps - i : 2 * steps - i + size]
            np.maximum(best, value, out=best)
        return replace(self, bottom=bottom, low=best, high=best).trimmed()

    def upper(self, bottom: int, top: int) -> Array:
        """Return upper bounds on V at these points: below its own, a line from V = 1 at x = 0."""
        below = np.arange(max(self.bottom - bottom, 0), 0.0, -1.0)
        line = 1 + (self.high[0] - 1) * np.exp(-self.step * below) + 4 * ULP
        above = np.full(max(top - self.top, 0), self.high[-1])
        return _joined(
            np.minimum(line, 1.0), self.high, above, bottom - self.bottom, top - bottom + 1
        )

    def lower(self, bottom: int, top: int) -> Array:
        """Return lower bounds on V at these points: V falls, and is at least 1 - x and `limit`."""
        below = np.arange(bottom, max(self.bottom, bottom), dtype=float)
        trivial = np.maximum(-np.expm1(self.step * below) * (1 - 4 * ULP), self.low[0])
        above = np.full(max(top - self.top, 0), self.limit)
        return _joined(trivial, self.low, above, bottom - self.bottom, top - bottom + 1)

    def trimmed(self) -> ValueFunction:
        """Return V without the points at either end where what is said outside of it serves."""
        x_less_1 = np.expm1(self.step * np.arange(float(self.bottom), min(self.top, 0) + 1.0))
        far = self.high[: x_less_1.size] + x_less_1 > NEGLIGIBLE * -x_less_1
        start = min(int(np.argmax(far)) if far.any() else x_less_1.size, self.high.size - 2)
        start = max(start - 1, 0)
        large = self.high - self.high[-1] > self.negligible
        # The highest large point stays, with one that is not.
        end = self.high.size - int(np.argmax(large[::-1])) if large.any() else start + 2
        end = min(max(end + 1, start + 2), self.high.size)
        return replace(
            self, bottom=self.bottom + start, low=self.low[start:end], high=self.high[start:end]
        )

    def above_on_step(self, step: float) -> ValueFunction:
        """Return the upper bounds on another lattice, by lines in x, as both bounds."""
        if step == self.step:
            return self
        bottom, top = (
            math.floor(self.bottom * self.step / step),
            math.ceil(self.top * self.step / step),
        )
        inner = self.upper(self.bottom - 2, self.top + 2)
        e = step * np.arange(float(bottom), top + 1.0)
        # e may be inexact: a lower one has a greater V.
        position = (e * (1 - 4 * ULP * np.sign(e))) / self.step - (self.bottom - 2)
        index = np.clip(np.floor(position).astype(int), 0, inner.size - 2)
        share = np.expm1((position - index) * self.step) / math.expm1(self.step)
        share = np.clip(share * (1 - 8 * ULP), 0.0, 1.0)
        high = (inner[index] + share * (inner[index + 1] - inner[index])) * (1 + 8 * ULP)
        high = np.minimum(high, 1.0)
        return replace(self, step=step, bottom=bottom, low=high, high=high)

    def delta_bounds(self, epsilon: float) -> tuple[float, float]:
        """Return a lower and an upper bound on V at an epsilon."""
        e = epsilon - self.shift
        index = math.floor(e / self.step * (1 - 4 * ULP))
        left_value, right_value = self.upper(index, index + 1).tolist()
        share = min(max(math.expm1(e - index * self.step) / math.expm1(self.step), 0.0), 1.0)
        high = min(round_up(left_value + share * (right_value - left_value), 16), 1.0)
        index = math.ceil((epsilon + self.shift) / self.step * (1 + 4 * ULP))
        return min(float(self.lower(index, index)[0]), high), high

    def epsilon_bounds(self, delta: float) -> tuple[float, float]:
        """Return bounds on the least epsilon, at least 0, at which V is at most ``delta``.

        The upper one is infinite where the lattice ends before.
        """
        end = max(self.top, 0) + 2
        low, high, growth = self.lower(-1, end), self.upper(-1, end), math.expm1(self.step)
        low = np.maximum.accumulate(low[::-1])[::-1]  # V falls
        # Above: the chord to the first point where V is small enough.  Point i is at (i - 1) steps.
        index = int(np.argmax(high <= delta))
        upper = 0.0
        if not high[index] <= delta:
            upper = math.inf
        elif index > 0:
            share = float((high[index - 1] - delta) / (high[index - 1] - high[index]))
            crossing = (index - 2) * self.step + math.log1p(share * growth)
            upper = max(round_up(crossing + self.shift, 64), 0.0)
        # Below: V is convex, hence above lines through two points outside of the two.
        large = np.flatnonzero(low >= delta)
        lower = 0.0
        if large.size and large[-1] >= 1:
            i = min(int(large[-1]), low.size - 3)
            slope = max(float(high[i - 1] - low[i]) / -math.expm1(-self.step), 1e-300)
            lower = (i - 1) * self.step + math.log1p(max(float(low[i]) - delta, 0.0) / slope)
            fall = float(low[i + 1] - high[i + 2])
            share = (delta - float(low[i + 1])) / fall * growth if fall > 0 else 1.0
            if 0 <= share < 1:
                lower = max(lower, i * self.step + math.log1p(-share))
        return min(max(lower * (1 - 64 * ULP) - self.shift, 0.0), upper), upper


def greatest(values: Sequence[ValueFunction]) -> ValueFunction:
    """Return the greatest of several V on one lattice."""
    bottom, top = min(value.bottom for value in values), max(value.top for value in values)
    return replace(
        values[0],
        bottom=bottom,
        low=np.maximum.reduce([value.lower(bottom, top) for value in values]),
        high=np.maximum.reduce([value.upper(bottom, top) for value in values]),
        limit=max(value.limit for value in values),
        shift=max(value.shift for value in values),
    ).trimmed()


def _joined(below: Array, own: Array, above: Array, start: int, size: int) -> Array:
    """Return the row of what is below, own and above, cut to ``size`` places from ``start`` on."""
    row = np.concatenate([below, own, above])
    start = max(start, 0)
    return row[start : start + size] if below.size <= size else below[:size]


def _weighted(values: Array, mass: Array) -> Array:
    """Return ``sum_k mass[k] values[i + n - 1 - k]`` for all i, n the number of masses."""
    weights = mass[::-1]
    total: Array = np.zeros(values.size - weights.size + 1)
    places = np.flatnonzero(weights)
    if places.size == 0:
        return total
    # A row of neighbouring masses is added at once, the others one by one: the longest row, or all
    # masses where few places between them are empty.
    starts = np.flatnonzero(np.diff(places, prepend=-2) > 1)
    lengths = np.diff(starts, append=places.size)
    start = int(places[starts[np.argmax(lengths)]])
    stop = start + int(lengths.max())
    if places.size * SPARSE > weights.size:
        start, stop = int(places[0]), int(places[-1]) + 1
    row = values[start : start + total.size + stop - start - 1]
    total += ordered_dot(sliding_window_view(row, stop - start), weights[start:stop])
    for index in places[(places < start) | (places >= stop)].tolist():
        total += weights[index] * values[index : index + total.size]
    return total


class BellmanStep:
    """The map from V to ``sup_t p_t V(eps - t) + (1 - p_t) V(eps - t + e0)``, rounded up.

    With c = e^{-e0} and s = e^{-t}: (1 - c) p_t = 1 - c / s and (1 - c)(1 - p_t) = c / s - c.  The
    supremum of (1 - c) times the sum is computed, and divided by 1 - c at the end.
    """

    def __init__(self, e0: float, cells: int) -> None:
        self._cells, self._step, self._c = cells, e0 / cells, math.exp(-e0)
        # 1 / (1 - e^{-h}): from t = i h to (i + 1) h, z = e^{ih} s goes from 1 to e^{-h}
        self._inverse_width = -1 / math.expm1(-self._step)
        t = self._step * np.arange(cells + 1.0)
        # (1 - c) p_t and (1 - c) (1 - p_t) at t = i h, without cancellation
        self._at_t = -np.expm1(-t[::-1])
        self._at_rest = np.exp(-t[::-1]) * -np.expm1(-t)
        # The round-off of a few products and exponentials, with 2e-14 for each nat of an exponent.
        self._scale = (1 + 2e-14 * (5 + e0)) / -math.expm1(-e0)

    def __call__(self, wide: Array) -> Array:
        """Return the result on the cells of a window, for V on more cells.

        ``wide`` has V on one cell and a range of cells more below, and on a range of cells above.
        """
        cells, size = self._cells, wide.size - 2 * self._cells - 1
        best: Array = np.zeros(size)
        for i in range(cells + 1):  # t = i h
            start = 1 + cells - i
            value = self._at_t[i] * wide[start : start + size]
            value += self._at_rest[i] * wide[start + cells : start + cells + size]
            np.maximum(best, value, out=best)
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
        cells, c, rise = self._cells, self._c, wide[1:] - wide[:-1]
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
        until_e0 = np.minimum((i - cells) * self._step + y, 0.0)  # t - e0, so that c / s is its e^
        value = -np.expm1(until_e0) * (wide[k + 1] - share * rise[k])
        over_less_c = np.exp(until_e0) * -np.expm1(-i * self._step - y)
        value += over_less_c * (wide[k + 1 + cells] - share * rise[k + cells])
        np.maximum.at(best, target[valid], value)
