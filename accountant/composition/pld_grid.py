"""Privacy-loss distributions on a grid, whose profile is above or below that of the true loss.

Finite pairs above and below a profile (`connect_the_dots.py`) are put on a grid and convolved.  A
pair above each loss gives a pair above the composition, and likewise below.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from accountant.losses.connect_the_dots import Profile
from accountant.losses.discretised import DiscretisedLoss, dominated_pair, dominating_pair
from accountant.losses.loss import Loss
from accountant.numerics import Array
from accountant.numerics.ordered_sums import discounted_sums
from accountant.numerics.rounding import ULP

INTERVAL = 1e-4  # nats: the widest step of a grid
STEPS_A_DEVIATION = 50  # grid steps in the least standard deviation of a loss, at least


def spread_of(items: list[tuple[Loss, int]]) -> list[tuple[float, int]]:
    """Return rough standard deviations of losses, from total variations, and counts; above 0."""
    return [
        (max(min(math.sqrt(2 * loss.rho), 2.5 * float(loss.profile(0.0))), 1e-300), n)
        for loss, n in items
        if 0 < loss.rho < 1e99
    ]


def usual_step(spread: list[tuple[float, int]], interval: float = INTERVAL) -> float:
    """Return a fiftieth of the least standard deviation, or the widest step."""
    return min([interval, *(deviation / STEPS_A_DEVIATION for deviation, _ in spread)])


@dataclass(frozen=True, slots=True, eq=False)
class PLDGrid:
    """A loss distribution on a grid, its mass at infinity, and a bound on round-off in delta."""

    loss: Array
    mass: Array
    infinity: float
    delta_error: float

    def delta(self, epsilon: Array) -> Array:
        """Return the hockey-stick divergence, elementwise."""
        # sum over loss > eps of mass (1 - e^{eps - loss})
        above, below, loss = self._tails()
        index = np.searchsorted(self.loss, epsilon, side="right")
        with np.errstate(under="ignore"):
            sticks = above[index] - np.exp(epsilon - loss[index]) * below[index]
        return self.infinity + np.maximum(sticks, 0.0)

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon >= 0 with divergence at most ``delta``; infinite if none has."""
        remaining_delta = delta - self.infinity
        if remaining_delta <= 0:
            return math.inf
        above, below, loss = self._tails()
        # Delta decreases along the grid; the answer lies just below the first point where it is
        # small, and there delta(eps) = above - e^{eps - loss} below.
        step = math.exp(self.loss[0] - self.loss[1]) if self.loss.size > 1 else 1.0
        at_points = above[1:] - step * below[1:]
        index = int(np.argmax((at_points <= remaining_delta) & (self.loss >= 0)))
        if self.loss[index] < 0 or above[index] <= remaining_delta:
            return 0.0
        return max(
            0.0, float(loss[index]) + math.log((above[index] - remaining_delta) / below[index])
        )

    def _tails(self) -> tuple[Array, Array, Array]:
        """Return per point: the mass from there up, the same times e^{point - loss}, the point."""
        step = math.exp(self.loss[0] - self.loss[1]) if self.loss.size > 1 else 0.0
        above = np.cumsum(self.mass[::-1])[::-1]
        below = discounted_sums(self.mass, step)
        end = np.zeros(1)
        return np.append(above, end), np.append(below, end), np.append(self.loss, math.inf)


def convolve(
    parts: list[tuple[Array, int, int, float]], interval: float, tail: float, *, upper: bool
) -> PLDGrid:
    """Return the sum of independent grid laws: (mass, first index, count, mass at infinity) each.

    What the convolution cuts off, at most ``tail`` a part, goes to infinity if the result is to
    be an upper bound, and counts as round-off if a lower one.
    """
    from dp_accounting.pld import pld_pmf

    laws, nats = [], 0.0  # the mass at infinity composes apart: 1 - prod (1 - d)
    log_mass = 0.0  # logarithm of the finite mass, which may underflow before it is used
    for mass, first_index, count, infinity in parts:
        finite = float(mass.sum())
        if not (infinity < 1 and finite > 0):
            return PLDGrid(np.zeros(1), np.zeros(1), 1.0 if upper else 0.0, 0.0)
        nats -= count * math.log1p(-infinity)
        log_mass += count * math.log(finite)
        law = pld_pmf.DensePLDPmf(interval, first_index, mass / finite, 0.0, True)
        with np.errstate(over="ignore"):  # of weights that the library divides by
            laws.append(law.self_compose(count, tail) if count > 1 else law)
    if not laws:
        return PLDGrid(np.zeros(1), np.ones(1), 0.0, 0.0)
    while len(laws) > 1:  # in pairs, so that long transforms are few
        unpaired = laws[len(laws) // 2 * 2 :]
        laws = [a.compose(b) for a, b in zip(laws[::2], laws[1::2], strict=False)] + unpaired
    total = laws[0]
    # The library offers no other way to its arrays.
    mass, first_index = math.exp(log_mass) * np.asarray(total._probs), total._lower_loss  # noqa: SLF001
    cut_off = float(total._infinity_mass)  # noqa: SLF001
    return grid_of_sum(mass, first_index, interval, nats, cut_off, upper=upper)


def grid_of_sum(
    mass: Array, first: int, interval: float, nats: float, cut_off: float, *, upper: bool
) -> PLDGrid:
    """Return the grid of masses that a transform gave, ``-ln`` of what is finite, and the error."""
    # Round-off of a Fourier transform is about white: what shows where the mass should be 0,
    # or is negative, is its size; every entry may be as wrong.
    # The sums from the top, which are at most 2 together, cancel to a few units of theirs.
    noise = mass.size * max(0.0, -float(mass.min())) + mass.size * ULP**1.5 + 16 * ULP
    loss: Array = interval * (first + np.arange(float(mass.size)))
    if upper:
        nats -= math.log1p(-min(cut_off, 0.5))
    else:
        noise += cut_off
    return PLDGrid(loss, np.maximum(mass, 0.0), -math.expm1(-nats), noise)


def dominating_masses(
    profile: Profile, infinity: float | None, low: int, high: int, interval: float
) -> tuple[Array, float]:
    """Return masses on ``interval * [low..high]`` and at infinity whose profile is above."""
    points: Array = interval * np.arange(low, high + 1, dtype=float)
    return _masses(dominating_pair(profile, points, infinity), low, points.size, interval)


def dominated_masses(
    profile: Profile, infinity: float, low: int, high: int, interval: float
) -> tuple[Array, float]:
    """Return masses on the grid and at infinity whose profile is below ``profile``."""
    points: Array = interval * np.arange(low, high + 1, dtype=float)
    return _masses(dominated_pair(profile, infinity, points), low, points.size, interval)


def _masses(pair: DiscretisedLoss, low: int, size: int, interval: float) -> tuple[Array, float]:
    mass = np.zeros(size)
    mass[np.rint(pair.loss / interval).astype(int) - low] = pair.mass
    return mass, pair.infinity_mass
