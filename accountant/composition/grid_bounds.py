"""Bounds on the delta of a composition from finite pairs of distributions on one lattice.

A privacy loss is ln(dP/dQ) of the output laws P and Q on two neighbours; its profile is delta as a
function of epsilon.  Each loss gets a finite loss below it and one above it, with values on a
lattice (`grid_pairs.py`, or `profile_pairs.py` where only its profile is known): their profiles are
below and above its own.  Both are summed with tilted Fourier transforms (`fft_composition.py`),
which gives a lower and an upper bound on delta.  To tilt a law by a is to multiply its mass at the
loss l by e^{a l}, so that the sums near epsilon become likely.

Each law on the lattice ends at a cut.  A release whose loss is above its cut is counted by its
probabilities P and Q alone.  Where it makes the total exceed epsilon, whatever the other releases
are, such releases add exactly P - e^epsilon Q to delta.  Proof: `docs/proofs/grid_pairs.md`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from accountant.composition.fft_composition import SumOnGrid
from accountant.composition.grid_pairs import PairOnGrid, pairs_on_grid
from accountant.composition.profile_pairs import pairs_from_profile
from accountant.composition.tilted_law import GridLaw
from accountant.losses.loss import Loss
from accountant.numerics import Array
from accountant.numerics.logspace import log_or_minus_infinity
from accountant.numerics.rounding import ULP
from accountant.numerics.search import minimum_of_one_valley

# Every tilt gives valid bounds; these numbers only decide how sharp they are, and how quick.
TILT_SHARES = np.array([0.85, 0.7, 0.55])  # tilts to try, as multiples of the best tilt
# How far, in nats, ln of Chernoff's bound at a smaller tilt may be above the least one.  The
# round-off of the sums is relative to this bound, and grows with it.
MAX_TILT_LOSS = 6.0
# Grids in the search for the best tilt: their numbers of points, and the ends of the first as
# multiples of 1 / epsilon, which is about the tilt if one large loss decides.
TILT_GRIDS, TILT_ENDS = (24, 12, 9), (1e-3, 1e4)
TILT_POINTS = 400  # points that stand for each law while the tilt is chosen: a coarse choice serves


@final
@dataclass(frozen=True, slots=True)
class Component:
    """One loss of the composition with its lattice.  All but the count are in nats, or per nat."""

    loss: Loss
    count: int  # how often the loss is released
    offset: float  # a point of the lattice
    ends: tuple[float, float]  # the lattice covers the losses between these two
    least: float  # the smallest value of the loss; may be minus infinity
    tilt: float  # roughly that of the sum: it tells where the profile should be evaluated densely


class GridBounds:
    """Bounds on delta near ``epsilon``, from pairs below and above on a lattice.

    They are best for epsilons between the two ends ``near``.  ``log_wrapped`` is ln of the tilted
    mass that may wrap around in the Fourier transforms.  ``is_small`` is False where the lattice
    has more than ``max_points`` points, or no mass; there are no bounds then.  ``tilt`` is the one
    that was chosen, and ``nodes`` the length of its transform.
    """

    name = "grid pairs"

    def __init__(
        self,
        parts: list[Component],
        epsilon: float,
        near: tuple[float, float],
        step: float,
        log_wrapped: float,
        max_points: int,
    ) -> None:
        self.step, self._parts = step, parts
        below, above = [], []
        for part in parts:
            pairs = pairs_on_grid(part.loss, part.count, part.offset, step, part.ends)
            if pairs is None:  # only the profile of the loss is known
                pairs = pairs_from_profile(
                    part.loss, part.count, part.offset, step, part.ends, part.tilt, epsilon
                )
            pair_below, pair_above = pairs
            below.append(pair_below)
            above.append(pair_above)
        # P and Q of the event that some release is above the cut of its pair below
        self._masses_beyond = mass_beyond(below)
        laws = [pair.law for pair in above]
        self.is_small, self.tilt, self.nodes = False, 1 / epsilon, math.inf
        if not all((law.mass > 0).any() for law in laws):  # epsilon is far from where the mass is
            return
        sums = [
            SumOnGrid(laws, tilt, near, log_wrapped, max_points)
            for tilt in good_tilts(laws, epsilon)
        ]
        # the sum with the shortest transform; those that are too long come last
        self._above = min(sums, key=lambda total: (not total.is_small, total.points))
        self.tilt = self._above.tilt
        below_laws = [pair.law for pair in below]
        self._below: SumOnGrid | None = None
        if all(law.mass.any() for law in below_laws):  # rounded down, a law may have no mass left
            self._below = SumOnGrid(below_laws, self.tilt, near, log_wrapped, max_points)
        sides = [side for side in (self._above, self._below) if side is not None]
        for side in sides:
            side.convolve()
        self.nodes = float(self._above.points)
        self.is_small = all(side.is_small for side in sides)
        # For each law, its cut plus the least sum of all other losses.  Up to this epsilon a
        # release above the cut makes the total exceed epsilon, whatever the other losses are.
        least_sum = math.fsum(part.count * part.least for part in parts)
        self._cuts = [
            (
                pair.law.last - part.least + least_sum if math.isfinite(least_sum) else -math.inf,
                pair,
            )
            for pair, part in zip(above, parts, strict=True)
            if pair.p_beyond > 0
        ]
        # The sums of losses may be off by this much: each point by the error of the edges of cells,
        # and by ulps of the sizes that it is computed from.
        self._loss_error = math.fsum(
            pair.law.count * (pair.edge_error + 8 * ULP * pair.law.size) for pair in above
        )

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """Return logarithms of a lower and an upper bound on delta at ``epsilon``."""
        # Delta falls with epsilon: an error of the losses, or of epsilon, is taken off epsilon for
        # the upper bound, and added to it for the lower one.
        shift = self._loss_error + 8 * ULP * epsilon
        low = 0.0 if self._below is None else self._side(self._below, epsilon + shift, side=-1)
        high = self._side(self._above, epsilon - shift, side=1)
        low += delta_beyond(self._masses_beyond, epsilon + shift, side=-1)
        # A release above its cut adds ``P - e^epsilon Q`` of that event where it surely exceeds
        # epsilon, and elsewhere P at most.
        certain = [pair for cut, pair in self._cuts if epsilon <= cut - shift]
        others = [pair for cut, pair in self._cuts if not epsilon <= cut - shift]
        p_others, _ = mass_beyond(others)
        high += delta_beyond(mass_beyond(certain), epsilon - shift, side=1) + p_others
        # 16 ulps are for the sums here.  An ulp of its size is for the rounding of each logarithm,
        # and of the logarithm of the delta that the caller compares it with.
        log_low, log_high = log_or_minus_infinity(low), math.log(max(high, 1e-300))
        log_low -= (16 + abs(log_low)) * ULP
        log_high += (16 + abs(log_high)) * ULP
        return log_low, min(log_high, 0.0)

    def log_scale(self, epsilon: float) -> float:
        """Return ln of Chernoff's bound on delta, roughly."""
        return self._above.log_scale(epsilon)

    @staticmethod
    def _side(sums: SumOnGrid, epsilon: float, side: int) -> float:
        """Return a bound on the delta of a sum: upper where ``side`` is 1, lower where it is -1."""
        scale = sums.log_scale(epsilon)
        value, error = sums.delta(epsilon)
        if math.isinf(error):
            return math.inf if side > 0 else 0.0
        total = value + side * error
        if total <= 0:
            return 0.0
        # The scale is a sum of logarithms with fewer than ten roundings, each of at most an ulp of
        # the sum of their sizes.
        size = sums.size + abs(sums.tilt * epsilon)
        log_total = math.log(total) + scale + side * 16 * ULP * (4 + size)
        return math.exp(min(log_total, 700.0))


def mass_beyond(pairs: list[PairOnGrid]) -> tuple[float, float]:
    """Return the probabilities, under P and under Q, that at least one release is above its cut.

    For independent releases this is ``1 - prod (1 - m_i)^{n_i}``, computed from logarithms.  A mass
    of 1 counts as one ulp less, so that its logarithm is finite.
    """
    unions = []
    for masses in (
        [(pair.law.count, pair.p_beyond) for pair in pairs],
        [(pair.law.count, pair.q_beyond) for pair in pairs],
    ):
        nats = math.fsum(-n * math.log1p(-min(max(m, 0.0), 1 - ULP)) for n, m in masses)
        unions.append(-math.expm1(-nats))
    return unions[0], unions[1]


def delta_beyond(masses: tuple[float, float], epsilon: float, side: int) -> float:
    """Return ``P - e^epsilon Q``, at least 0, rounded up where ``side`` is 1, down where it is -1.

    ``masses`` are P and Q.  The difference may be far less than P, so each term is rounded itself.
    """
    p, q = masses
    # e^epsilon may be too large for a float.  An epsilon above 1400 counts as 1400, where the
    # second term is above 1 for any positive float Q.
    root = math.exp(min(epsilon / 2, 700.0))
    margin = side * 16 * ULP
    return max(p * (1 + margin) - q * root * root * (1 - margin), 0.0)


def good_tilts(laws: list[GridLaw], epsilon: float) -> list[float]:
    """Return roughly the tilt of the least Chernoff bound at ``epsilon``, and smaller ones.

    Those are the smaller tilts whose bound is nearly as good.  A smaller tilt gives rare large
    losses less weight, which makes the range of the sum shorter.
    """
    log_height = rough_log_height(laws)

    def height(a: Array) -> Array:
        return log_height(a) - a * epsilon

    scale = 1 / max(epsilon, 1e-300)
    low, high = TILT_ENDS
    best, least_height = minimum_of_one_valley(height, low * scale, high * scale, TILT_GRIDS)
    others = best * TILT_SHARES
    return [best, *others[height(others) <= least_height + MAX_TILT_LOSS].tolist()]


def rough_log_height(laws: list[GridLaw]) -> Callable[[Array], Array]:
    """Return a function of the tilt a: roughly ln of Chernoff's bound on ``delta e^{a epsilon}``.

    It is ``sum_i n_i ln E e^{a L_i} - ln a - ln(1 + a)``, each law thinned to groups of points:
    a group of mean l, variance v and mass m counts as ``m e^{a l} (1 + a^2 v / 2)``.
    """
    coarse = [_thinned(law) for law in laws]

    def log_height(a: Array) -> Array:
        total: Array = -np.log(a) - np.log1p(a)
        for loss, variance, log_mass, count in coarse:
            exponent = np.multiply.outer(a, loss) + log_mass
            exponent += np.log1p(np.multiply.outer(a * a / 2, variance))
            top = exponent.max(axis=1)
            total = total + count * (top + np.log(np.exp(exponent - top[:, None]).sum(axis=1)))
        return total

    return log_height


def _thinned(law: GridLaw) -> tuple[Array, Array, Array, int]:
    """Return means, variances, ln masses and the count of about `TILT_POINTS` groups of points.

    Groups are small around the mode and at the top of the law, where tilted laws have their mass.
    """
    size = law.mass.size
    # A quarter of the groups start at even distances, and three quarters at these distances from
    # the top and from both sides of the mode: they grow from one point to the whole law.
    distances = np.geomspace(1, size, TILT_POINTS // 4)
    mode = int(np.argmax(law.mass))
    even_starts = np.arange(0, size, -(-size // (TILT_POINTS // 4)))
    starts = np.concatenate(
        [[0], even_starts, size - distances, mode - distances, mode + distances]
    )
    starts = np.unique(np.clip(starts.astype(int), 0, size - 1))
    points = law.points
    mass = np.add.reduceat(law.mass, starts)
    occupied = mass > 0
    mass = mass[occupied]
    mean = np.add.reduceat(law.mass * points, starts)[occupied] / mass
    square = np.add.reduceat(law.mass * points * points, starts)[occupied] / mass
    return mean, np.maximum(square - mean * mean, 0.0), np.log(mass), law.count
