"""Profiles of very few steps: a sum over a lattice of the ways in which the steps differ.

With x = u (1, ..., 1) / sqrt(t) + v, v_1 + ... + v_t = 0, and G the mean of e^{mu v_j},

    S = t e^{mu u / sqrt(t) - mu^2 / 2} G(v):

the integral over u is that of an option's price, and the one over v is analytic and falls as a
normal density does, so that a lattice errs by e^{-32} of it.
Proof: `docs/proofs/random_allocation.md`.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from accountant.numerics import Array
from accountant.numerics.ordered_sums import ordered_dot
from accountant.numerics.rounding import ULP

MOST_MU = {2: 3.0, 3: 1.5, 4: 0.7, 5: 0.4}  # for each number of steps
MOST_WITHOUT = 4  # steps without the record, where the lattice is finer
FAR = (66.0, 120.0)  # e-foldings of the density beyond the lattice: the second for tiny deltas
NARROW = 1e-9
DIGITS, ALL_DIGITS = 32.0, 64.0  # e-foldings of aliases: of the sum itself, or of K
TURN = 1.45  # of e^{mu v_j} off the real space, at most; less than pi / 2
MAX_ROWS = 2**18


class Lattice(NamedTuple):
    """Points v: ln G, weights, ranges of v; and a bound on the weighted S of points left out."""

    log_mean: Array
    weight: Array
    reach: Array
    left_out: float


def serves(mu: float, steps: int, *, added: bool) -> bool:
    """Return whether the steps are few and even enough."""
    return mu <= MOST_MU.get(steps, 0.0) and not (added and steps > MOST_WITHOUT)


def few_steps_bounds(mu: float, steps: int, epsilon: Array, *, added: bool) -> tuple[Array, Array]:
    """Return logarithms of a lower and an upper bound on delta at each of many epsilons."""
    low, high = np.full(epsilon.shape, -np.inf), np.full(epsilon.shape, np.inf)
    for far in FAR:
        wide = np.flatnonzero(~(high - low <= NARROW))
        if wide.size == 0:
            break
        lattice = lattice_across(mu, steps, ALL_DIGITS if added else DIGITS, far)
        rows = max(1, MAX_ROWS // lattice.weight.size)
        for start in range(0, wide.size, rows):
            block = wide[start : start + rows]
            bounds = _bounds(mu, steps, lattice, epsilon[block], added=added)
            low[block], high[block] = np.log(bounds[0]), np.log(bounds[1])
    return low, high


def _bounds(
    mu: float, steps: int, lattice: Lattice, epsilon: Array, *, added: bool
) -> tuple[Array, Array]:
    """Return bounds on delta by one lattice."""
    value, error = _sums(mu, steps, lattice, epsilon, added=added)
    low, high = value - error, value + error + lattice.left_out
    # aliases, as a share of E(S - K)_+ = t delta, or of K where that of E(K - S)_+ = K delta
    share = 1.02 * steps * (steps - 1) * math.exp(-ALL_DIGITS if added else -DIGITS)
    missed = share if added else share * high
    return np.maximum(low - missed, 0.0), high + missed


def _sums(
    mu: float, steps: int, lattice: Lattice, epsilon: Array, *, added: bool
) -> tuple[Array, Array]:
    """Return ``E(S - K)_+ / t``, or ``E(K - S)_+ / K`` if ``added``, and what round-off leaves."""
    from scipy.special import erfcx

    root, sign = math.sqrt(steps), -1.0 if added else 1.0
    slope = mu / root  # of ln S in u
    # S > K where u > b
    size = np.abs(epsilon)[:, None] + mu * mu / 2
    b = (sign * epsilon[:, None] + mu * mu / 2 - lattice.log_mean) / slope
    x = sign * b
    # K int density(b + w) (e^{slope w} - 1) dw over w > 0 is K density(b) [M(b - slope) - M(b)],
    # M(x) = P(N > x) / density(x); for w < 0 it is that with -b and -slope
    larger_mills = math.sqrt(math.pi / 2) * erfcx((x - max(sign, 0.0) * slope) / math.sqrt(2))
    smaller_mills = math.sqrt(math.pi / 2) * erfcx((x + max(-sign, 0.0) * slope) / math.sqrt(2))
    weight = lattice.weight * np.exp(-b * b / 2) / math.sqrt(2 * math.pi)
    height = np.ones(epsilon.size) if added else np.exp(epsilon)
    ones = np.ones(lattice.weight.size)
    terms = weight * (larger_mills - smaller_mills)
    # of the sum, of each ratio M, and of b times the derivative in b
    square = np.minimum(x - slope, 0.0) ** 2
    count = 64 + 24 * lattice.reach**2 + 4 * b * b + ones.size / 2
    off_b = 32 * root * lattice.reach + 4 * size / slope + 4 * np.abs(b)
    error = np.abs(terms) * count + weight * (larger_mills + smaller_mills) * (32 + 4 * square)
    error += weight * slope * off_b * (smaller_mills if added else larger_mills)
    return height * ordered_dot(terms, ones), 1.02 * ULP * height * ordered_dot(error, ones)


@functools.lru_cache(maxsize=16)
def lattice_across(mu: float, steps: int, digits: float, far: float) -> Lattice:
    """Return the points ``s (k - mean of k)``, k whole numbers, each order of k counted.

    Aliases are at most ``1.01 t (t - 1) e^{-digits}``.
    """
    t = steps
    # they are bounded at imaginary parts of length y, mu y sqrt((t - 1) / t) <= TURN
    y = min(math.sqrt(2 * digits / t), TURN / (mu * math.sqrt((t - 1) / t)))
    step = 2 * math.pi * math.sqrt(2) * y / (digits + t * y * y / 2)
    largest = math.ceil(2 * (mu + math.sqrt(mu * mu + far)) / step)
    k = _orders(largest, t)
    equal = np.ones(len(k))
    run = np.ones(len(k))
    for i in range(1, t):
        run = np.where(k[:, i] == k[:, i - 1], run + 1, 1.0)
        equal *= run
    v = step * (k - k.mean(axis=1, keepdims=True))
    cell = step ** (t - 1) / math.sqrt(t) / (2 * math.pi) ** ((t - 1) / 2)
    weight = cell * math.factorial(t) / equal * np.exp(-np.sum(v * v, axis=1) / 2)
    log_mean = np.log1p(np.mean(np.expm1(mu * v), axis=1))
    # at range r = s n: t (t - 1) (n + 1)^{t-2} points at most, |v|^2 >= r^2 / 2, S / t <= e^{mu r}
    n = largest + 1.0
    r = step * n
    left_out = cell * t * (t - 1) * (n + 1) ** (t - 2) * math.exp(mu * r - r * r / 4)
    # each further range has e^{-7 step} of that, at most
    left_out *= -1.02 / math.expm1(-7 * step)
    return Lattice(log_mean, weight, step * k[:, -1], left_out)


def _orders(largest: int, count: int) -> Array:
    """Return all ``0 = k_1 <= k_2 <= ...`` up to ``largest``: of each order and shift, one."""
    k = np.zeros((1, 1))
    for _ in range(count - 1):
        repeats = (largest + 1 - k[:, -1]).astype(int)
        k = np.repeat(k, repeats, axis=0)
        group_start = np.repeat(np.cumsum(repeats) - repeats, repeats)
        k = np.column_stack([k, k[:, -1] + np.arange(len(k)) - group_start])
    return k
