"""Upper bounds on epsilon and delta from the finite losses that the accountant `PLD` composes.

`PLD` replaces each loss by a finite one above it, on a lattice through 0, from its profile at all
lattice points; it composes these by Fourier transforms and only estimates the round-off.  Here the
same finite losses are composed with tilted laws, and the round-off has a proved bound
(`docs/proofs/grid_pairs.md`).  `LatticeAbove` answers at one delta, `LatticeCurve` at many
epsilons.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from accountant.composition.composition import ignore_overflow
from accountant.composition.fft_composition import SumOnGrid
from accountant.composition.grid_bounds import good_tilts, mass_beyond, rough_log_height
from accountant.composition.loss_outline import Outline
from accountant.composition.pld_grid import MAX_GRID_POINTS
from accountant.composition.profile_pairs import pair_above_at_all_points
from accountant.losses.loss import Loss
from accountant.numerics import Array
from accountant.numerics.rounding import ULP
from accountant.numerics.search import falling_root, minimum_of_one_valley

# As shares of delta at epsilon 0: a curve has a tilt for each, since a tilt serves only epsilons
# near its own.
DELTAS = (1e-3, 1e-8, 1e-14, 1e-20)
NO_TILT = 1e-300  # so small that it does not limit the range of a lattice
# The search for a tilt starts at LEAST_TILT, per nat; each of its rounds compares one of these
# numbers of tilts, on a finer grid than the round before.
LEAST_TILT, TILT_GRIDS = 1e-3, (60, 12, 9)
TAIL = 1e-22  # mass of P above the cuts of all releases together: far below any delta of interest
TAIL_SHARE = 1e-10  # the same mass where delta is known, as a share of delta
MAX_SUM_POINTS = 2**20  # lattice points of the sum
MORE_THAN_PLD = 8  # times as many evaluations of an expensive profile as `PLD` makes, at most
LOG_WRAPPED = -34.0  # ln of the share of tilted mass that may wrap around, about 2e-15
# A sum is made for epsilons within 2 % of a guess.  After so many guesses, each at least 1 % lower,
# the last bound is returned: it is sound anyway.
NEAR, MAX_GUESSES = 0.02, 60


class LatticeAbove:
    """Finite pairs above losses, on the points ``step * k``.

    ``is_made`` is False, and nothing can be asked, where there is no lattice: without losses, where
    the range of their sum is 0 or infinite, or where some loss is too small for the step.
    """

    @ignore_overflow
    def __init__(self, items: list[tuple[Loss, int]], step: float, tail: float = TAIL) -> None:
        outlines = [Outline(loss, n) for loss, n in items]
        self.is_made = bool(items) and all(outline.is_on_ladder for outline in outlines)
        if not self.is_made:
            return
        share = tail / sum(outline.count for outline in outlines)
        # With an infinite epsilon and a tilt of nearly 0 the laws are cut only where this share of
        # their mass is left.
        ends = [outline.component(0.0, math.inf, 0.0, share, NO_TILT).ends for outline in outlines]
        span = max(high - low for low, high in ends)
        self.is_made = 0 < span / step < math.inf  # a loss may have no end
        if not self.is_made:
            return
        points = min(outline.loss.numerics.grid_points for outline in outlines)
        max_points = min(MAX_GRID_POINTS, MORE_THAN_PLD * points)
        # The step is doubled until the longest law has few enough points.
        step *= 2.0 ** max(0, math.ceil(math.log2(span / step / max_points)))
        # one point above the largest loss: there the profile is exactly the mass at infinity
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
        # a release above its cut is counted in full, as if it alone made the sum exceed epsilon
        self.beyond = mass_beyond(pairs)[0] * (1 + 16 * ULP)
        self._shift = math.fsum(
            pair.law.count * (pair.edge_error + 8 * ULP * pair.law.size) for pair in pairs
        )

    def sum_near(self, tilt: float, near: tuple[float, float]) -> SumOnGrid | None:
        """Return the tilted law of the sum for epsilons ``near``; None where that is too long."""
        near = near[0] - self.step - self._shift, near[1] + self.step
        # With a smaller tilt the range beyond which mass may wrap around, -LOG_WRAPPED / tilt,
        # would be longer than a law.
        tilt = max(tilt, -LOG_WRAPPED / (MAX_GRID_POINTS * self.step))
        sums = SumOnGrid(self.laws, tilt, near, LOG_WRAPPED, MAX_SUM_POINTS)
        sums.convolve()
        return sums if sums.is_small else None

    def deltas(self, sums: SumOnGrid, epsilon: Array) -> Array:
        """Return upper bounds on delta at these epsilons, of releases below their cuts."""
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
        if 0 < rough_epsilon < (1 - NEAR) * guess:  # Chernoff's bound is a much better guess
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
                break  # the bound is well inside the range that this sum was made for
            guess = epsilon_upper
        return epsilon_upper

    def _epsilon_near(self, delta: float, guess: float) -> float:
        """Return the least upper bound within `NEAR` of ``guess``, or infinity if it is above."""
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
    """Upper bounds on delta at many epsilons: one lattice, with a tilt for each of `DELTAS`.

    ``is_made`` is False, and there is no curve, where a lattice does not apply.
    """

    @ignore_overflow
    def __init__(self, items: list[tuple[Loss, int]], step: float) -> None:
        self._ends: list[float] = []  # the largest epsilon that each of the sums is used for
        self._sums: list[SumOnGrid] = []
        self._lattice = LatticeAbove(items, step)
        self.is_made = self._lattice.is_made
        if not self.is_made:
            return
        height = rough_log_height(self._lattice.laws)
        # Near the largest loss a tilt that is too small does less harm than one that is too large;
        # a tilt above 1 / step is never needed.
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
            # delta falls with epsilon: beyond the last end it is at most what it is at the end
            places = np.minimum(flat[mask], self._ends[i])
            result[mask] = self._lattice.deltas(self._sums[i], places) + self._lattice.beyond
        capped: Array = np.minimum(result, 1.0).reshape(np.shape(epsilon))
        return capped


def _chernoff(log_height: Callable[[Array], Array], log_delta: float) -> Callable[[Array], Array]:
    """Return a function of the tilt: roughly Chernoff's bound on epsilon at this ln delta."""
    return lambda a: (log_height(a) - log_delta) / a
