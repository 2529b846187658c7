"""Upper bounds on epsilon and delta from the finite losses that the accountant `PLD` composes.

The privacy loss of a release is ln(dP/dQ), P and Q the laws of its output on two neighbours; its
profile is delta as a function of epsilon.  `PLD` replaces each loss by a finite one above it, on
the lattice ``step * k``, from its profile at all lattice points.  It composes these by Fourier
transforms and only estimates the round-off.  Here the same finite losses are composed with tilted
laws, and the round-off has a proved bound (`docs/proofs/grid_pairs.md`, steps 11 to 13).

To tilt a law by a > 0 is to multiply its mass at the loss l by e^{a l} and to divide by the sum of
these products.  This moves the bulk of the mass to the epsilons that are asked about, so that the
round-off is small there.  Every tilt gives a valid bound; a tilt near that of the least Chernoff
bound gives a sharp one.  `LatticeAbove` answers at one delta, `LatticeCurve` at many epsilons.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from accountant.composition.composition import ignore_overflow
from accountant.composition.fft_composition import SumOnGrid
from accountant.composition.grid_bounds import good_tilts, mass_beyond, rough_log_height
from accountant.composition.grid_pairs import PairOnGrid
from accountant.composition.loss_outline import Outline
from accountant.composition.pld_grid import MAX_GRID_POINTS
from accountant.composition.profile_pairs import pair_above_at_all_points
from accountant.losses.loss import Loss
from accountant.numerics import Array
from accountant.numerics.rounding import ULP
from accountant.numerics.search import falling_root, minimum_of_one_valley

# A tilt serves only epsilons near its own.  So a curve has one for epsilon 0, and one for each
# epsilon whose delta is about one of these shares of delta at epsilon 0.
DELTA_SHARES = (1e-3, 1e-8, 1e-14, 1e-20)
NO_TILT = 1e-300  # so small that it does not limit the range of a lattice
# The search for a tilt starts at LEAST_TILT, per nat; each of its rounds compares one of these
# numbers of tilts, on a finer grid than the round before.
LEAST_TILT, TILT_GRIDS = 1e-3, (60, 12, 9)
# Mass of P above the cuts of all releases together: far below any delta of interest.
TAIL = 1e-22
MAX_SUM_POINTS = 2**20  # lattice points of the sum: limits the time and memory of its transforms
# The profile is evaluated once at every point.  Where each evaluation takes long, a lattice has at
# most this many times the points that `PLD` would use.
MORE_THAN_PLD = 8
LOG_WRAPPED = -34.0  # ln of the share of tilted mass that may wrap around, about 2e-15
# A sum is made for epsilons within 2 % of a guess.  After so many guesses, each at least 1 % lower,
# the last bound is returned: it is sound anyway.
NEAR, MAX_GUESSES = 0.02, 60


class LatticeAbove:
    """Finite pairs above losses, on the points ``step * k``.

    Each law ends at a cut.  ``p_beyond_cuts`` is the probability that at least one release is above
    its cut; such a release is counted in full, as if it alone made the sum exceed epsilon.
    """

    def __init__(self, pairs: list[PairOnGrid], step: float) -> None:
        self.step, self.laws = step, [pair.law for pair in pairs]
        p_beyond, _ = mass_beyond(pairs)
        # `mass_beyond` takes a logarithm, a product and an exponential, each good to a few ulps.
        self.p_beyond_cuts = p_beyond * (1 + 16 * ULP)
        # The computed sum of the losses may be too small by this much: a lattice point is inexact
        # by ulps of its ``size``.  So bounds are taken at an epsilon that is lower by it.
        self._loss_error = math.fsum(
            pair.law.count * (pair.edge_error + 8 * ULP * pair.law.size) for pair in pairs
        )

    @classmethod
    @ignore_overflow
    def of(
        cls, items: list[tuple[Loss, int]], step: float, tail: float = TAIL
    ) -> LatticeAbove | None:
        """Return the lattice of losses with counts, with this step or a longer one.

        ``tail`` is the mass of P that may be above the cuts of all releases together.  There is no
        lattice, and the result is None, without losses, where the range of a loss is 0 or infinite,
        and where some loss is too small for the step.
        """
        outlines = [Outline(loss, n) for loss, n in items]
        if not outlines or not all(outline.is_on_ladder for outline in outlines):
            return None
        share = tail / sum(outline.count for outline in outlines)
        # With an infinite epsilon and a tilt of nearly 0 the laws are cut only where this share of
        # their mass is left.
        ends = [
            outline.component(
                offset=0.0, epsilon=math.inf, others=0.0, tail=share, tilt=NO_TILT
            ).ends
            for outline in outlines
        ]
        span = max(high - low for low, high in ends)
        if not 0 < span / step < math.inf:  # a loss may have no end
            return None
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
                first=math.floor(low / step),
                last=math.ceil(high / step) + 1,
            )
            for outline, (low, high) in zip(outlines, ends, strict=True)
        ]
        have_mass = all((pair.law.mass > 0).any() for pair in pairs)
        return cls(pairs, step) if have_mass else None

    def sum_near(self, tilt: float, near: tuple[float, float]) -> SumOnGrid | None:
        """Return the tilted law of the sum for epsilons ``near``; None where that is too long."""
        # `deltas` asks at epsilons that are lower by the error of the losses; the step is room for
        # the rounding to lattice points.
        low, high = near
        padded = low - self.step - self._loss_error, high + self.step
        # The lattice of the sum reaches about -LOG_WRAPPED / tilt beyond the epsilons, so that
        # little mass wraps around.  With a smaller tilt than this that alone would be longer than
        # the longest law.
        tilt = max(tilt, -LOG_WRAPPED / (MAX_GRID_POINTS * self.step))
        sums = SumOnGrid(self.laws, tilt, padded, LOG_WRAPPED, MAX_SUM_POINTS)
        sums.convolve()
        return sums if sums.is_small else None

    def deltas(self, sums: SumOnGrid, epsilon: Array) -> Array:
        """Return upper bounds on delta at these epsilons, of releases below their cuts."""
        # Delta falls with epsilon: a bound at a smaller epsilon is one at epsilon too.  8 ULP are
        # for the round-off of epsilon where lattice points are subtracted from it.
        shifted_epsilon = epsilon * (1 - 8 * ULP) - self._loss_error
        # delta = M e^{-a epsilon} times the kernel's mean, M the product of the laws' moments.  The
        # exponent ln M - a epsilon has fewer than ten roundings, each of at most an ulp of the sum
        # of the sizes of its terms.  The exponential and the product add a few ulps more.
        size = sums.size + np.abs(sums.tilt * shifted_epsilon)
        exponent = sums.log_moment - sums.tilt * shifted_epsilon + 16 * ULP * (4 + size)
        delta: Array = sums.upper_deltas(shifted_epsilon) * np.exp(exponent)
        return delta

    @ignore_overflow
    def epsilon(self, delta: float, guess: float) -> float:
        """Return an upper bound on epsilon at ``delta``, infinite where it is above ``guess``."""
        if not (self.p_beyond_cuts < delta and 0 < guess < math.inf):
            return math.inf
        chernoff = _chernoff(rough_log_height(self.laws), math.log(delta))
        # With a tilt a far below 1 / guess, Chernoff's factor e^{-a epsilon} would be about 1.
        _, rough_epsilon = minimum_of_one_valley(
            chernoff, low=1e-3 / guess, high=1 / self.step, points=TILT_GRIDS
        )
        if 0 < rough_epsilon < (1 - NEAR) * guess:  # Chernoff's bound is a much better guess
            epsilon_upper = self._epsilon_below(delta, (1 + NEAR / 2) * rough_epsilon)
            if epsilon_upper < math.inf:
                return epsilon_upper
        return self._epsilon_below(delta, guess)

    def _epsilon_below(self, delta: float, guess: float) -> float:
        """Return the least upper bound, by sums made for lower and lower guesses."""
        epsilon_upper = math.inf
        for _ in range(MAX_GUESSES):
            bound = self._epsilon_near(delta, guess)
            # Near the lower end of its range a sum can show no lower bound, but another one may.
            is_far_below = bound < min(epsilon_upper, (1 - NEAR / 2) * guess)
            epsilon_upper = min(epsilon_upper, bound)
            if not is_far_below:
                break
            guess = epsilon_upper
        return epsilon_upper

    def _epsilon_near(self, delta: float, guess: float) -> float:
        """Return the least upper bound within `NEAR` of ``guess``, or infinity if it is above."""
        low, high = (1 - NEAR) * guess, (1 + NEAR) * guess
        tilt, *_ = good_tilts(self.laws, guess)
        sums = self.sum_near(tilt, (low, high))
        if sums is None:
            return math.inf

        log_remaining_delta = math.log((delta - self.p_beyond_cuts) * (1 - 4 * ULP)) - 4 * ULP

        def excess(epsilon: float) -> float:
            if epsilon < low:
                return 1.0  # the sum was not made for these: they count as too small
            value = float(self.deltas(sums, np.array([min(epsilon, high)]))[0])
            return math.log(max(value, 1e-300)) - log_remaining_delta

        epsilon_upper, _ = falling_root(excess, start=guess, tilt=tilt, max_epsilon=high)
        return epsilon_upper if excess(epsilon_upper) <= 0 else math.inf


class LatticeCurve:
    """Upper bounds on delta at many epsilons: one lattice, and sums with different tilts.

    The sums serve ranges of epsilon that follow each other; ``ends`` are the largest epsilons of
    these ranges.
    """

    def __init__(self, lattice: LatticeAbove, sums: list[SumOnGrid], ends: list[float]) -> None:
        self._lattice, self._sums, self._ends = lattice, sums, ends

    @classmethod
    @ignore_overflow
    def of(cls, items: list[tuple[Loss, int]], step: float) -> LatticeCurve | None:
        """Return the curve of losses with counts; None where there is no lattice or it is long."""
        lattice = LatticeAbove.of(items, step)
        if lattice is None:
            return None
        log_height = rough_log_height(lattice.laws)
        # Near the largest sum of losses the best tilt is infinite, so the search has a limit.  At
        # 1 / step the weights e^{a l} of neighbouring points already differ by the factor e.
        tilts_between = LEAST_TILT, 1 / lattice.step, TILT_GRIDS
        # the best tilt at epsilon 0, and ln of Chernoff's bound on delta there
        tilt, log_delta_at_0 = minimum_of_one_valley(log_height, *tilts_between)
        tilts, starts = [tilt], [0.0]
        for share in DELTA_SHARES:
            chernoff = _chernoff(log_height, min(log_delta_at_0, 0.0) + math.log(share))
            tilt, epsilon = minimum_of_one_valley(chernoff, *tilts_between)
            tilts.append(tilt)
            starts.append(max(epsilon, 0.0))
        # The last end is free: beyond it the curve stays at its value there.
        range_ends = [*starts[1:], 1.5 * starts[-1] + lattice.step]
        all_sums, ends = [], []
        for tilt, start, end in zip(tilts, starts, range_ends, strict=True):
            if end > start:
                sums = lattice.sum_near(tilt, (start, end))
                if sums is None:
                    return None
                all_sums.append(sums)
                ends.append(end)
        return cls(lattice, all_sums, ends)

    @ignore_overflow
    def profile(self, epsilon: Array) -> Array:
        """Return delta at each epsilon, rounded up; 1 below 0."""
        flat = np.ravel(epsilon)
        result = np.ones(flat.shape)
        index_of_sum = np.minimum(np.searchsorted(self._ends, flat), len(self._ends) - 1)
        for i in np.unique(index_of_sum[flat >= 0]).tolist():
            served = (flat >= 0) & (index_of_sum == i)
            # delta falls with epsilon: beyond the last end it is at most what it is at the end
            places = np.minimum(flat[served], self._ends[i])
            result[served] = self._lattice.deltas(self._sums[i], places)
            result[served] += self._lattice.p_beyond_cuts
        capped: Array = np.minimum(result, 1.0).reshape(np.shape(epsilon))
        return capped


def _chernoff(log_height: Callable[[Array], Array], log_delta: float) -> Callable[[Array], Array]:
    """Return a function of the tilt: roughly Chernoff's bound on epsilon at this ln delta.

    ``log_height(a)`` is ln of Chernoff's bound on ``delta e^{a epsilon}``.
    """
    return lambda a: (log_height(a) - log_delta) / a
