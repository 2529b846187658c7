"""Privacy-loss distributions on a grid, whose profile is above or below that of the true loss.

The profile of a loss L = ln dP/dQ is delta(eps) = E_P (1 - e^{eps - L})_+; outcomes that Q never
has are an infinite loss, whose probability is the mass at infinity.  Each loss is replaced
by one of finitely many values, multiples of a step, whose profile is at least (or at most) its own
(`dominating_pair`, `dominated_pair`).  Losses of a composition add, so these laws are
convolved: if each dominates its loss, the result dominates the composition, and likewise from
below.  The range of the sum S comes from Chernoff's inequality, P(S >= x) <= e^{-t x} E e^{t S} for
every tilt t > 0, and one Fourier transform of that length serves all laws.  The accountant `PLD`
chooses the step and the ends of the grid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accountant.losses.finite import DiscretisedLoss
from accountant.losses.loss import Loss
from accountant.numerics import Array
from accountant.numerics.fast_length import fast_length
from accountant.numerics.logspace import logsumexp
from accountant.numerics.ordered_sums import discounted_sums
from accountant.numerics.rounding import ULP

MAX_GRID_POINTS = 2**18  # of the law of one loss, or of a grid: limits its memory
INTERVAL = 1e-4  # nats: the widest step of a grid, unless the user of `PLD` gives another
STEPS_A_DEVIATION = 50  # grid steps in the least standard deviation, unless INTERVAL is less
# Tilts that are tried in Chernoff's bounds, as multiples of the best one of a normal law; that of a
# law with rare large losses is far below it.  Every tilt gives a valid range.
TILTS = np.geomspace(1e-6, 10.0, 43)
COARSE_PLACES = 400  # groups of places that stand for each law while a tilt is chosen
# A loss with rho of this or more counts as one without a finite rho.
FINITE_RHO = 1e99


def spread_of(items: list[tuple[Loss, int]]) -> list[tuple[float, int]]:
    """Return a rough standard deviation, above 0, and the count of each loss.

    It is the lesser of sqrt(2 rho) and 2.5 delta(0), where delta(0) is the total variation.  For
    Gaussian noise the first is the deviation mu, and the second is about mu if mu is small, since
    delta(0) is then about 0.4 mu.  Losses without a finite rho, or with rho 0, are left out.
    """
    return [
        (max(min(math.sqrt(2 * loss.rho), 2.5 * float(loss.profile(0.0))), 1e-300), n)
        for loss, n in items
        if 0 < loss.rho < FINITE_RHO
    ]


def usual_step(spread: list[tuple[float, int]], interval: float = INTERVAL) -> float:
    """Return the step of a grid: a fiftieth of the least deviation, and at most ``interval``."""
    return min([interval, *(deviation / STEPS_A_DEVIATION for deviation, _ in spread)])


@dataclass(frozen=True, slots=True, eq=False)
class PLDGrid:
    """A law of the loss under P on a grid, with what is left out.

    ``mass`` is the probability of each point of ``loss`` (nats, rising, evenly spaced), and
    ``infinity`` that of an infinite loss.  ``delta_error`` is the absolute error of `delta`: its
    round-off, which is estimated, and in a lower bound also the mass that a convolution cut off.
    Callers add it to an upper bound and subtract it from a lower one.
    """

    loss: Array
    mass: Array
    infinity: float
    delta_error: float

    def delta(self, epsilon: Array) -> Array:
        """Return the hockey-stick divergence, elementwise."""
        # infinity + sum over loss > eps of mass (1 - e^{eps - loss}); with the first such point x,
        # e^{eps - loss} = e^{eps - x} e^{x - loss}
        above, weighted_above, loss = self._tails()
        index = np.searchsorted(self.loss, epsilon, side="right")
        with np.errstate(under="ignore"):
            finite_delta = above[index] - np.exp(epsilon - loss[index]) * weighted_above[index]
        return self.infinity + np.maximum(finite_delta, 0.0)

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon >= 0 with divergence at most ``delta``; infinite if none is."""
        remaining_delta = delta - self.infinity
        if remaining_delta <= 0:
            return math.inf
        above, weighted_above, loss = self._tails()
        # The divergence falls along the grid.  So the answer lies between the first point x >= 0
        # where it is at most ``remaining_delta`` and the point before.  There the divergence is
        # above - e^{eps - x} weighted_above, with the two sums at x.
        at_points = above[1:] - math.exp(-self._step) * weighted_above[1:]
        index = int(np.argmax((at_points <= remaining_delta) & (self.loss >= 0)))  # the first
        # The answer is 0 where all points are below 0, so that there is no such x.  It is 0, too,
        # where the mass from x up is at most ``remaining_delta``: the point before is then below 0,
        # and the divergence at 0 is at most this mass.
        if self.loss[index] < 0 or above[index] <= remaining_delta:
            return 0.0
        log_ratio = math.log((above[index] - remaining_delta) / weighted_above[index])
        return max(0.0, float(loss[index]) + log_ratio)

    @property
    def _step(self) -> float:
        """From a point to the next; of a single point it discounts zeros alone."""
        return float(self.loss[-1] - self.loss[0]) / max(self.loss.size - 1, 1)

    def _tails(self) -> tuple[Array, Array, Array]:
        """Return three arrays by grid point: the mass from there up, a weighted mass, the point.

        The weighted mass is the sum of mass e^{point - loss} over the losses from the point up.
        Each array has one entry more than the grid, for a point at infinity.
        """
        above, weighted_above = (discounted_sums(self.mass, rate) for rate in (0.0, self._step))
        return np.append(above, 0.0), np.append(weighted_above, 0.0), np.append(self.loss, math.inf)


@dataclass(frozen=True, slots=True, eq=False)
class LawOnGrid:
    """The law of one draw of a loss, and ``count``, how often the loss is drawn.

    Place k is the loss k times the step of the grid.  ``place``, which rises, and ``mass`` have one
    entry for each place that the law uses; ``infinity`` is the probability of an infinite loss.
    """

    place: NDArray[np.intp]
    mass: Array
    count: int
    infinity: float

    @classmethod
    def of_pair(cls, pair: DiscretisedLoss, points: Array, first: int, count: int) -> LawOnGrid:
        """Return the law of a pair on evenly spaced ``points``, of which it may use few.

        ``first`` is the place of the first point.
        """
        mass = np.zeros(points.size)
        mass[np.searchsorted(points, pair.loss)] = pair.mass
        return cls(first + np.arange(points.size), mass, count, pair.infinity_mass)

    @property
    def normalised(self) -> LawOnGrid:
        """The law of the finite losses alone, without the places that have no mass."""
        positive = self.mass > 0
        mass = self.mass[positive] / self.mass.sum()
        return LawOnGrid(self.place[positive], mass, self.count, 0.0)


def convolve(laws: list[LawOnGrid], step: float, tail: float, *, upper: bool) -> PLDGrid:
    """Return the law of a sum of independent losses, as an upper or a lower bound.

    Mass of at most about ``tail`` may be beyond each end of the sum's range.  It counts as mass at
    infinity in an upper bound, and as an error of delta in a lower bound.
    """
    if not all(law.infinity < 1 and float(law.mass.sum()) > 0 for law in laws):
        # A law has no finite part on the grid: the bound is the trivial one, delta 1 or 0.
        return PLDGrid(np.zeros(1), np.zeros(1), 1.0 if upper else 0.0, 0.0)
    if not laws:  # the sum of no losses is 0
        return PLDGrid(np.zeros(1), np.ones(1), 0.0, 0.0)
    # The masses d at infinity are composed without a grid: the probability of a finite sum is the
    # product of all 1 - d.
    minus_log_finite = math.fsum(-law.count * math.log1p(-law.infinity) for law in laws)
    # logarithm of the product of the finite masses, which may underflow
    log_mass = math.fsum(law.count * math.log(float(law.mass.sum())) for law in laws)
    laws = [law.normalised for law in laws]
    first_place, size, cut_off = _range_of_sum(laws, step, tail)
    length = fast_length(size)
    product = np.ones(length // 2 + 1, dtype=complex)
    for law in laws:
        folded = np.bincount(law.place % length, law.mass, length)
        product *= np.fft.rfft(folded) ** law.count
    # The transform has the mass of place k at index k modulo its length; the first place is moved
    # to index 0.
    mass = np.roll(np.fft.irfft(product, length), -(first_place % length))[:size]
    return grid_of_sum(
        math.exp(log_mass) * mass,
        sum(law.count for law in laws),
        first_place,
        step,
        minus_log_finite,
        cut_off,
        upper=upper,
    )


def _range_of_sum(laws: list[LawOnGrid], step: float, tail: float) -> tuple[int, int, float]:
    """Return the first place of the sum, how many places it needs, and the mass beyond these.

    Mass of at most ``tail`` lies beyond an end that Chernoff's inequality gives, and none beyond
    the sum of the least, or greatest, places of all laws.
    """
    exact = [(step * law.place.astype(float), law.mass, law.count) for law in laws]
    # Chernoff's inequality holds at any tilt, so that coarse laws may choose a good one: groups of
    # neighbouring places, each at its mean loss.
    coarse: list[tuple[Array, Array, int]] = []
    variance = 0.0
    for loss, mass, count in exact:
        starts = np.arange(0, loss.size, -(-loss.size // COARSE_PLACES))
        group_mass = np.add.reduceat(mass, starts)
        coarse.append((np.add.reduceat(mass * loss, starts) / group_mass, group_mass, count))
        variance += count * float(np.sum(mass * (loss - np.sum(mass * loss)) ** 2))
    tilts = TILTS * math.sqrt(-2 * math.log(tail) / max(variance, 1e-300))
    best_tilts = [
        side * float(tilts[np.argmin(_chernoff_ends(coarse, math.log(tail), side * tilts))])
        for side in (1, -1)
    ]
    top, minus_bottom = _chernoff_ends(exact, math.log(tail), np.array(best_tilts)).tolist()
    first_place = sum(law.count * int(law.place[0]) for law in laws)
    last_place = sum(law.count * int(law.place[-1]) for law in laws)
    # An end is moved one place outwards, for the rounding of the division.
    beyond = 0.0
    if top < step * (last_place - 1):
        last_place, beyond = math.ceil(top / step) + 1, tail
    if -minus_bottom > step * (first_place + 1):
        first_place, beyond = math.floor(-minus_bottom / step) - 1, beyond + tail
    return first_place, last_place - first_place + 1, beyond


def _chernoff_ends(laws: list[tuple[Array, Array, int]], log_tail: float, tilts: Array) -> Array:
    """Return, for each tilt, what the sum exceeds with chance e^log_tail at most.

    ``laws`` are losses, masses and counts.  For a negative tilt it is for minus the sum.  By
    Chernoff's inequality the end is ``(ln E e^{tilt S} - log_tail) / |tilt|``.  The logarithm of
    each loss is raised for its round-off: by 1e-12, and by some ulps of the largest exponent.
    """
    total = np.zeros(tilts.size)
    for loss, mass, count in laws:
        round_off = 1e-12 + 4 * ULP * np.abs(tilts) * np.max(np.abs(loss))
        total += count * (logsumexp(np.outer(tilts, loss) + np.log(mass)) + round_off)
    ends: Array = (total - log_tail) / np.abs(tilts)
    return ends


def grid_of_sum(
    mass: Array,
    releases: int,
    first: int,
    step: float,
    minus_log_finite: float,
    cut_off: float,
    *,
    upper: bool,
) -> PLDGrid:
    """Return the grid law of masses that a Fourier transform gave, and its error.

    ``releases`` is how many losses are added, ``first`` the place of the first grid point,
    ``minus_log_finite`` minus ln of the probability of a finite sum, and ``cut_off``, below 1, the
    mass that the transform left out.
    """
    # All of this is an estimate.  Round-off of a Fourier transform is about equally large in all
    # masses.  A negative mass shows how large it is, and each of the masses may be wrong by as
    # much.  ULP^1.5 of each place is a small floor: of a million places it is 3e-18.  64 ULP are
    # for the two sums of `_tails` whose difference is delta, and each of which is at most 1: of
    # 2^18 equal masses they were seen to miss it by 36.
    noise = mass.size * max(0.0, -float(mass.min())) + mass.size * ULP**1.5 + 64 * ULP
    # A frequency's factor of one loss is wrong by about an ulp, and so its n-th power by n ulps.
    # Where all of this error is positive, no mass is negative.
    noise += releases * ULP
    loss: Array = step * (first + np.arange(float(mass.size)))
    if upper:  # what was cut off counts as mass at infinity
        minus_log_finite -= math.log1p(-cut_off)
    else:
        noise += cut_off
    return PLDGrid(loss, np.maximum(mass, 0.0), -math.expm1(-minus_log_finite), noise)
