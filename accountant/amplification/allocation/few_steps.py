"""Profiles of Gaussian noise in one random step of very few: a sum over the steps' differences.

For t steps with sensitivity mu, S = V_1 + ... + V_t with V_j = e^{mu x_j - mu^2/2}, x_j standard
normal, and delta(epsilon) is an excess of S (`allocation_profile`).  Write x = u (1, ..., 1) /
sqrt(t) + v with v_1 + ... + v_t = 0, and G(v) for the mean of e^{mu v_j}.  Then u is standard
normal and independent of v, and

    S = t e^{mu u / sqrt(t) - mu^2 / 2} G(v).

Given v the integral over u is a closed formula, that of an option's price (`_sums`).  The one over
v, in t - 1 dimensions, is analytic and falls as a normal density does, so that a sum over lattice
points (`lattice_across`) errs by e^-32 of it.

Proof: `docs/proofs/random_allocation.md`, very few steps.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from accountant.numerics import Array
from accountant.numerics.ordered_sums import ordered_dot
from accountant.numerics.rounding import ULP

# For which mu, by the number of steps, the lattice is small enough to be quick; at 5 steps and a
# smaller mu contours are quicker.  Bounds are valid for every mu.
MU_RANGES = {2: (0.0, 3.0), 3: (0.0, 1.5), 4: (0.0, 0.7), 5: (0.3, 0.4)}
RECORD_STEPS = 5  # from this number of steps on an added record is not served: it needs finer cells
# The lattice ends where the density of v times S / t is e^-66.  Where that leaves too much out, it
# ends at e^-120, and has more points.
LOG_DENSITY_RANGES = (66.0, 120.0)
NARROW = 1e-9  # between the bounds on ln delta, before the larger range is tried
# A sum over a lattice differs from the integral by aliases, the values of the integrand's Fourier
# transform at the points of the dual lattice.  They are about e^-32 of the sum, or e^-64 of K where
# the record is added.
DIGITS, ALL_DIGITS = 32.0, 64.0
# The largest angle of e^{mu v_j} off the real space, in radians: below pi / 2, so that G(v) has no
# zero there.
TURN = 1.45
BLOCK_SIZE = 2**18  # entries of a matrix of epsilons and points: 2 MB


class Lattice(NamedTuple):
    """Points v of the lattice, one for all that differ in the order of the steps.

    The weight is the density of v times the volume of a cell, summed over these orders.
    """

    log_mean: Array  # ln G(v)
    weight: Array
    reach: Array  # max v - min v
    left_out: float  # a bound on delta's part of the points beyond the lattice


def serves(mu: float, steps: int, *, added: bool) -> bool:
    """Return whether the steps are few and even enough, and no other method is quicker."""
    low, high = MU_RANGES.get(steps, (math.inf, 0.0))
    return low <= mu <= high and not (added and steps >= RECORD_STEPS)


def few_steps_bounds(mu: float, steps: int, epsilon: Array, *, added: bool) -> tuple[Array, Array]:
    """Return logarithms of a lower and an upper bound on delta at each of many epsilons."""
    low, high = np.full(epsilon.shape, -np.inf), np.full(epsilon.shape, np.inf)
    # The 1.01 of `lattice_across`, with room for round-off.
    aliases = 1.02 * steps * (steps - 1) * math.exp(-ALL_DIGITS if added else -DIGITS)
    for log_range in LOG_DENSITY_RANGES:
        wide = np.flatnonzero(~(high - low <= NARROW))
        if wide.size == 0:
            break
        lattice = lattice_across(mu, steps, ALL_DIGITS if added else DIGITS, log_range)
        rows = max(1, BLOCK_SIZE // lattice.weight.size)
        for start in range(0, wide.size, rows):
            block = wide[start : start + rows]
            value, error = _sums(mu, steps, lattice, epsilon[block], added=added)
            delta_low, delta_high = value - error, value + error + lattice.left_out
            # Aliases are a share of E(S - K)_+ = t delta, or of K = E(K - S)_+ / delta.
            alias = aliases if added else aliases * delta_high
            low[block] = np.log(np.maximum(delta_low - alias, 0.0))
            high[block] = np.log(delta_high + alias)
    return low, high


def _sums(
    mu: float, steps: int, lattice: Lattice, epsilon: Array, *, added: bool
) -> tuple[Array, Array]:
    """Return ``E(S - K)_+ / t``, or ``E(K - S)_+ / K`` if ``added``, and a bound on round-off.

    With slope = mu / sqrt(t), S > K where u > b = (ln(K / t) + mu^2 / 2 - ln G(v)) / slope.  With
    the normal density d, and Mills' ratio M(x) = P(N > x) / d(x), the integral over u given v is

        K int_0^oo d(b + w) (e^{slope w} - 1) dw = K d(b) [M(b - slope) - M(b)]      (S > K),
        K int_0^oo d(b - w) (1 - e^{-slope w}) dw = K d(b) [M(-b) - M(slope - b)]    (S < K).

    K / t is e^epsilon, or e^-epsilon if ``added``.
    """
    from scipy.special import erfcx

    root, sign = math.sqrt(steps), -1.0 if added else 1.0
    slope = mu / root  # the derivative of ln S in u
    size = np.abs(epsilon)[:, None] + mu * mu / 2
    b = (sign * epsilon[:, None] + mu * mu / 2 - lattice.log_mean) / slope
    # The ratios M are at b - slope and b, or, with the sign turned, at -b and slope - b.
    x = sign * b
    larger_mills = math.sqrt(math.pi / 2) * erfcx((x - max(sign, 0.0) * slope) / math.sqrt(2))
    smaller_mills = math.sqrt(math.pi / 2) * erfcx((x + max(-sign, 0.0) * slope) / math.sqrt(2))
    weight = lattice.weight * np.exp(-b * b / 2) / math.sqrt(2 * math.pi)
    height = np.ones(epsilon.size) if added else np.exp(epsilon)  # K over what delta divides by
    ones = np.ones(lattice.weight.size)
    terms = weight * (larger_mills - smaller_mills)
    # Errors in ulps, counted in the proof: of the weights and the sum, of each ratio M, and of b
    # times the derivative in b.
    square = np.minimum(x - slope, 0.0) ** 2
    count = 64 + 24 * lattice.reach**2 + 4 * b * b + ones.size / 2
    ulps_of_b = 32 * root * lattice.reach + 4 * size / slope + 4 * np.abs(b)
    error = np.abs(terms) * count + weight * (larger_mills + smaller_mills) * (32 + 4 * square)
    error += weight * slope * ulps_of_b * (smaller_mills if added else larger_mills)
    return height * ordered_dot(terms, ones), 1.02 * ULP * height * ordered_dot(error, ones)


@functools.lru_cache(maxsize=16)
def lattice_across(mu: float, steps: int, digits: float, log_range: float) -> Lattice:
    """Return the points ``s (k - mean of k)`` for whole k, one for all orders of the steps.

    Aliases are at most ``1.01 t (t - 1) e^{-digits}``.  Ranges r = max v - min v are listed up to
    the one where e^{mu r - r^2 / 4}, a bound on the density of v times S / t, is e^{-log_range}.
    """
    t = steps
    # The integrand is moved by iy, of length y, where mu y sqrt((t - 1) / t) <= TURN.  An alias is
    # then at most e^{t y^2 / 2 - 2 pi sqrt(2) y / s} of the integral: s makes that e^{-digits}.
    y = min(math.sqrt(2 * digits / t), TURN / (mu * math.sqrt((t - 1) / t)))
    step = 2 * math.pi * math.sqrt(2) * y / (digits + t * y * y / 2)
    largest = math.ceil(2 * (mu + math.sqrt(mu * mu + log_range)) / step)
    k = _sorted_points(largest, t)
    # A point stands for t! / prod (length of each run of equal k)! orders of the steps.
    symmetries = np.ones(len(k))
    run = np.ones(len(k))
    for i in range(1, t):
        run = np.where(k[:, i] == k[:, i - 1], run + 1, 1.0)
        symmetries *= run
    v = step * (k - k.mean(axis=1, keepdims=True))
    cell = step ** (t - 1) / math.sqrt(t) / (2 * math.pi) ** ((t - 1) / 2)
    weight = cell * math.factorial(t) / symmetries * np.exp(-np.sum(v * v, axis=1) / 2)
    log_mean = np.log1p(np.mean(np.expm1(mu * v), axis=1))
    # At a range r = s n there are at most t (t - 1) (n + 1)^{t-2} points, with |v|^2 >= r^2 / 2 and
    # S / t at most e^{mu r} in the mean over u.
    n = largest + 1.0
    r = step * n
    left_out = cell * t * (t - 1) * (n + 1) ** (t - 2) * math.exp(mu * r - r * r / 4)
    # Each farther range has at most e^{-7 step} of that.
    left_out *= -1.02 / math.expm1(-7 * step)
    return Lattice(log_mean, weight, step * k[:, -1], left_out)


def _sorted_points(largest: int, count: int) -> Array:
    """Return all ``0 = k_1 <= k_2 <= ... <= largest``: one of all orders and all shifts."""
    k = np.zeros((1, 1))
    for _ in range(count - 1):
        repeats = (largest + 1 - k[:, -1]).astype(int)
        k = np.repeat(k, repeats, axis=0)
        group_start = np.repeat(np.cumsum(repeats) - repeats, repeats)
        k = np.column_stack([k, k[:, -1] + np.arange(len(k)) - group_start])
    return k
