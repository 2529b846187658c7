"""Upper bounds from one lattice: the finite pair above each loss that `PLD` composes, proved.

Each loss is known by its profile at all points of the lattice.  What `PLD` estimates, the round-off
of the composition, is bounded here, by tilted laws (`docs/proofs/grid_pairs.md`).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from accountant.composition.composition import ignore_overflow
from accountant.composition.fft_composition import SumOnGrid
from accountant.composition.grid_bounds import good_tilts, mass_beyond, rough_log_height
from accountant.composition.loss_outline import Outline
from accountant.composition.profile_pairs import pair_above_at_all_points
from accountant.losses.loss import Loss
from accountant.numerics import Array
from accountant.numerics.rounding import ULP
from accountant.numerics.search import falling_root, minimum_of_one_valley

DELTAS = (1e-3, 1e-8, 1e-14, 1e-20)  # of delta at 0: one tilt each
LEAST_TILT, TILT_GRIDS = 1e-3, (60, 12, 9)
TAIL = 1e-22  # of P, above the cuts of all releases
TAIL_SHARE = 1e-10  # of delta: the same where delta is known
MAX_LAW_POINTS, MAX_SUM_POINTS = 2**18, 2**20
MORE_THAN_PLD = 8  # times the points of an expensive profile
LOG_WRAPPED = -34.0  # relative to the tilted mass
NEAR, MAX_GUESSES = 0.02, 60  # of epsilon: how far the answer may be from a guess


class LatticeAbove:
    """Finite pairs above losses, on the points ``step * k``; not made where one is too small."""

    @ignore_overflow
    def __init__(self, items: list[tuple[Loss, int]], step: float, tail: float = TAIL) -> None:
        outlines = [Outline(loss, n) for loss, n in items]
        self.is_made = bool(items) and all(outline.is_on_ladder for outline in outlines)
        if not self.is_made:
            return
        share = tail / sum(outline.count for outline in outlines)
        # without a tilt and an epsilon nothing else is cut off
        ends = [outline.component(0.0, math.inf, 0.0, share, 1e-300).ends for outline in outlines]
        span = max(high - low for low, high in ends)
        self.is_made = 0 < span / step < math.inf  # a loss may have no end
        if not self.is_made:
            return
        points = min(outline.loss.numerics.grid_points for outline in outlines)
        max_points = min(MAX_LAW_POINTS, MORE_THAN_PLD * points)
        step *= 2.0 ** max(0, math.ceil(math.log2(span / step / max_points)))
        # a point above the greatest loss, where the profile is known, adds no round-off
        pairs = [
            pair_above_at_all_points(
                outline.loss,
                outline.count,
                step,
                math.floor(low / step),
                math.ceil(high / step) + 1,
            )
            for outline, (low, high) in zip(outlines, ends, strict=True)
        ]
        self.step, self.laws = step, [pair.law for pair in pairs]
        self.is_made = all((law.mass > 0).any() for law in self.laws)
        # a release above its cut is charged as if it were enough
        self.beyond = mass_beyond(pairs)[0] * (1 + 16 * ULP)
        self._shift = math.fsum(
            pair.law.count * (pair.edge_error + 8 * ULP * pair.law.size) for pair in pairs
        )

    def sum_near(self, tilt: float, near: tuple[float, float]) -> SumOnGrid | None:
        """Return the law of the sum; None where that is too long."""
        near = near[0] - self.step - self._shift, near[1] + self.step
        # with a smaller tilt what may wrap around is longer than a law
        tilt = max(tilt, -LOG_WRAPPED / (MAX_LAW_POINTS * self.step))
        sums = SumOnGrid(self.laws, tilt, near, LOG_WRAPPED, MAX_SUM_POINTS)
        sums.convolve()
        return sums if sums.is_small else None

    def deltas(self, sums: SumOnGrid, epsilon: Array) -> Array:
        """Return upper bounds on what releases below their cuts cost, at epsilons of the sum."""
        shifted_epsilon = epsilon * (1 - 8 * ULP) - self._shift
        size = sums.size + np.abs(sums.tilt * shifted_epsilon)
        scale = sums.log_moment - sums.tilt * shifted_epsilon + 16 * ULP * (4 + size)
        delta: Array = sums.upper_deltas(shifted_epsilon) * np.exp(scale)
        return delta

    @ignore_overflow
    def epsilon(self, delta: float, guess: float) -> float:
        """Return an upper bound on epsilon at ``delta``, infinite where it is above ``guess``."""
        if not (self.is_made and self.beyond < delta and 0 < guess < math.inf):
            return math.inf
        chernoff = _chernoff(rough_log_height(self.laws), math.log(delta))
        rough_epsilon = minimum_of_one_valley(chernoff, 1e-3 / guess, 1 / self.step, TILT_GRIDS)[1]
        if 0 < rough_epsilon < (1 - NEAR) * guess:  # far below the guess
            epsilon_upper = self._epsilon_below(delta, (1 + NEAR / 2) * rough_epsilon)
            if epsilon_upper < math.inf:
                return epsilon_upper
        return self._epsilon_below(delta, guess)

    def _epsilon_below(self, delta: float, guess: float) -> float:
        """Return the least upper bound, by sums made for lower and lower guesses."""
        epsilon_upper = math.inf
        for _ in range(MAX_GUESSES):
            before = epsilon_upper
            epsilon_upper = min(epsilon_upper, self._epsilon_near(delta, guess))
            if not epsilon_upper < min(before, (1 - NEAR / 2) * guess):
                break  # it is not at the lower end of what this sum was made for
            guess = epsilon_upper
        return epsilon_upper

    def _epsilon_near(self, delta: float, guess: float) -> float:
        """Return the least upper bound between two ends around ``guess``."""
        low, high = (1 - NEAR) * guess, (1 + NEAR) * guess
        tilt, *_ = good_tilts(self.laws, guess)
        sums = self.sum_near(tilt, (low, high))
        if sums is None:
            return math.inf

        log_remaining_delta = math.log((delta - self.beyond) * (1 - 4 * ULP)) - 4 * ULP

        def excess(epsilon: float) -> float:
            if epsilon < low:
                return 1.0
            value = float(self.deltas(sums, np.array([min(epsilon, high)]))[0])
            return math.log(max(value, 1e-300)) - log_remaining_delta

        epsilon_upper = falling_root(excess, guess, tilt, high)[0]
        return epsilon_upper if excess(epsilon_upper) <= 0 else math.inf


class LatticeCurve:
    """Upper bounds on delta at many epsilons: the same laws, tilted for each of a few deltas."""

    @ignore_overflow
    def __init__(self, items: list[tuple[Loss, int]], step: float) -> None:
        self._ends: list[float] = []  # of epsilon, up to where a sum serves
        self._sums: list[SumOnGrid] = []
        self._lattice = LatticeAbove(items, step)
        self.is_made = self._lattice.is_made
        if not self.is_made:
            return
        height = rough_log_height(self._lattice.laws)
        # a tilt that is too small is better than one that is too great near the greatest loss, and
        # there none need be greater than one a step
        tilts_between = LEAST_TILT, 1 / self._lattice.step, TILT_GRIDS
        first_tilt, log_delta = minimum_of_one_valley(height, *tilts_between)
        tilts, starts = [first_tilt], [0.0]
        for share in DELTAS:
            chernoff = _chernoff(height, min(log_delta, 0.0) + math.log(share))
            a, epsilon = minimum_of_one_valley(chernoff, *tilts_between)
            tilts.append(a)
            starts.append(max(epsilon, 0.0))
        ends = [*starts[1:], 1.5 * starts[-1] + self._lattice.step]
        for a, start, end in zip(tilts, starts, ends, strict=True):
            if end > start:
                sums = self._lattice.sum_near(a, (start, end))
                self.is_made &= sums is not None
                if sums is not None:
                    self._sums.append(sums)
                    self._ends.append(end)

    @ignore_overflow
    def profile(self, epsilon: Array) -> Array:
        """Return delta at each epsilon, rounded up; 1 below 0."""
        flat = np.ravel(epsilon)
        result = np.ones(flat.shape)
        served = np.minimum(np.searchsorted(self._ends, flat), len(self._ends) - 1)
        for i in np.unique(served[flat >= 0]).tolist():
            mask = (flat >= 0) & (served == i)
            # delta falls: what is beyond the end is at most what it is there
            places = np.minimum(flat[mask], self._ends[i])
            result[mask] = self._lattice.deltas(self._sums[i], places) + self._lattice.beyond
        capped: Array = np.minimum(result, 1.0).reshape(np.shape(epsilon))
        return capped


def _chernoff(log_height: Callable[[Array], Array], log_delta: float) -> Callable[[Array], Array]:
    """Return about Chernoff's bounds on epsilon where delta has this logarithm, as of the tilt."""
    return lambda a: (log_height(a) - log_delta) / a
