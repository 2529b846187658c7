"""Hockey sticks of shuffled reports, where one report has one of two answers."""

from __future__ import annotations

import functools
import math

import numpy as np

from accountant.numerics import Array
from accountant.numerics.ordered_sums import ordered_dot
from accountant.numerics.rounding import ACCURACY, LARGEST_BELOW_ONE, ULP

MAX_EXPONENT = 700.0  # whose exponential a float holds

# of a binomial: beyond them are about 1e-21, 1e-45, 1e-98 and 1e-300
DEVIATIONS = (9.5, 14.0, 21.0, 45.0)
NEGLIGIBLE = 1e-12  # of a stick: what the window misses
BLOCK = 32  # numbers of clones: the chances of each come from the one before
MAX_TERMS = 2**17  # at once, for the cache
LEAST = 1e-250  # more than underflow takes


def clone_hockey_sticks(e0: float, users: int, epsilon: Array) -> Array:
    """Return the hockey stick of the clone pair of ``users`` reports that are e0-private."""
    sticks = np.where((epsilon > MAX_EXPONENT) & (epsilon < e0), 1.0, 0.0)
    # the hockey stick is zero at e0, the largest loss
    pending = np.flatnonzero((epsilon < e0) & (epsilon <= MAX_EXPONENT))
    for deviations in DEVIATIONS:
        clones, weight, missed = binomial_window(users - 1, 2 * flip_probability(e0), deviations)
        at_once = max(1, MAX_TERMS // clones.size)
        for start in range(0, pending.size, at_once):
            batch = pending[start : start + at_once]
            sticks[batch] = _sticks_of_clones(e0, epsilon[batch], clones, weight) + missed
        pending = pending[sticks[pending] < missed / NEGLIGIBLE]
    return sticks


def _sticks_of_clones(e0: float, epsilon: Array, clones: Array, weight: Array) -> Array:
    """Return the part of the hockey sticks where the number of clones is one of these, up."""
    # P / Q = (d i + (1-d) j) / ((1-d) i + d j) with i + j = C + 1 heads and tails: it is above
    # e^eps where i - 1 >= m = floor((C+1) share), and there P - e^eps Q sums to
    # alpha P(A >= m) - beta P(A > m) = alpha P(A = m) - (e^eps - 1) P(A > m)
    d = 1 - flip_probability(e0)
    alpha = -d * np.expm1(epsilon - e0)  # d - e^eps (1 - d)
    beta = -d * np.exp(epsilon) * np.expm1(-epsilon - e0)  # e^eps d - (1 - d)
    share = beta / (alpha + beta)
    # downwards from the greatest number; what is below none has no weight
    size = -(-clones.size // BLOCK) * BLOCK
    coins = np.maximum(clones[-1] - np.arange(float(size)), 0.0)
    weights = np.append(weight[::-1], np.zeros(size - weight.size))
    heads = np.minimum(np.floor(np.multiply.outer(share, coins + 1)), coins)
    equal, mass_ulps = _fair_masses(coins, heads)
    # one coin less, and no head less or one: P(A > m) falls by P(A_c = m) (c - m) / c, or rises
    change = equal[:, :-1] * (coins - heads)[:, :-1] / np.maximum(coins[:-1], 1.0)
    rises = change * (heads[:, :-1] > heads[:, 1:])
    # weights of the numbers up to each, which the change moves
    tail_weights = np.cumsum(weights[::-1])[::-1]
    top = equal[:, 0] * _more_heads(coins[0], heads[:, 0]) * tail_weights[0]
    moved, risen = ordered_dot(change, tail_weights[1:]), ordered_dot(rises, tail_weights[1:])
    total, lost = ordered_dot(equal, weights), np.expm1(epsilon)
    value = alpha * total - lost * (top + (2 * risen - moved))
    # of the masses and their sums, of the tail, and of a threshold below C that a tie hides
    error = (mass_ulps + size) * (alpha * total + lost * (top + moved))
    error += 12 * math.sqrt(coins[0]) * lost * top
    error += 8 * (alpha + beta) * ordered_dot(equal * (heads < coins), weights)
    stick_upper: Array = np.maximum(value, 0.0) * (1 + ACCURACY) + ULP * error + LEAST
    return stick_upper


def _fair_masses(coins: Array, heads: Array) -> tuple[Array, Array]:
    """Return the chances of ``heads`` heads of fair coins, fewer along the last axis by one.

    And their relative errors in ulps, at most, of each row.
    """
    # one coin less: the chance of m heads of c is that of m of c - 1, times c / (2 (c - m)), and
    # that of m - 1 of c - 1, times c / (2 m)
    ratio = np.empty(heads.shape)
    falls = heads[:, :-1] > heads[:, 1:]
    half = 2 / np.maximum(coins[:-1], 1.0)
    ratio[:, 1:] = np.where(falls, heads[:, :-1], (coins - heads)[:, :-1]) * half
    log_mass = _log_fair_mass(coins[::BLOCK], heads[:, ::BLOCK])
    ratio[:, ::BLOCK] = np.exp(log_mass)
    blocks = ratio.reshape(heads.shape[0], -1, BLOCK)
    np.cumprod(blocks, axis=-1, out=blocks)
    return blocks.reshape(heads.shape), 256 - 12 * np.min(log_mass, axis=1)


def _more_heads(coins: float, heads: Array) -> Array:
    """Return the chance of more heads of fair coins over that of exactly so many, down."""
    # sum of products of (c - m - i) / (m + 1 + i); terms fall at least as e^{-i^2 / c}
    i = np.arange(math.ceil(6 * math.sqrt(coins)) + 1.0)
    terms = np.maximum(coins - heads[:, None] - i, 0.0) / (heads[:, None] + 1 + i)
    chance_ratio: Array = np.cumprod(terms, axis=-1, out=terms).sum(axis=-1)
    return chance_ratio


def _log_fair_mass(coins: Array, heads: Array) -> Array:
    """Return the logarithm of the chance of ``heads`` heads of fair coins."""
    # Loader (2000): (c / 2) ((1+s) ln(1+s) + (1-s) ln(1-s)), s = 2 m / c - 1, and Stirling's rests
    s = (2 * heads - coins) / np.maximum(coins, 1.0)
    inside = np.minimum(np.abs(s), LARGEST_BELOW_ONE)
    nats = np.log1p(-inside * inside) + inside * (np.log1p(inside) - np.log1p(-inside))
    nats = np.where(np.abs(s) < 1, nats, 2 * math.log(2))
    rests: Array = _stirling_rest(coins) - _stirling_rest(heads) - _stirling_rest(coins - heads)
    return rests - coins / 2 * nats


def _stirling_rest(n: Array) -> Array:
    """Return ``ln n! - n ln n + n``."""
    from scipy.special import gammaln, xlogy

    large = np.maximum(n, 16.0)
    square = 1 / (large * large)
    series = (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680))) / large
    small = np.minimum(n, 16.0)
    small_rest = gammaln(small + 1) - xlogy(small, small) + small
    return np.where(n < 16, small_rest, np.log(2 * math.pi * large) / 2 + series)


def binary_hockey_sticks(e0: float, users: int, epsilon: Array) -> Array:
    """Return hockey sticks of B + yes against B + no at the worst B, the others' number of yes.

    Which number of others is worst depends on epsilon, and it is not always none or all.
    """
    greatest, ratio = np.zeros(epsilon.shape), np.exp(np.minimum(epsilon, 700.0))
    error = 2 * ULP * (8 + users)
    for log_ratio, above_p, above_q in _tails_by_yes_count(e0, users):
        # B is a sum of independent answers, so the ratio grows with the number of yes
        threshold = np.searchsorted(log_ratio, epsilon, side="right")
        stick = above_p[threshold] * (1 + error) - ratio * above_q[threshold] * (1 - error)
        np.maximum(greatest, stick, out=greatest)
    return greatest * (1 + ACCURACY)


@functools.lru_cache(maxsize=4)
def _tails_by_yes_count(e0: float, users: int) -> list[tuple[Array, Array, Array]]:
    """Return, for each number of yes among the others, log-ratios and masses from there up."""
    tails = []
    for honest in range(users):
        p, q = yes_count_distributions(e0, honest, users - 1 - honest)
        possible = (p > 0) & (q > 0)
        p, q = p[possible], q[possible]
        above = [np.append(np.cumsum(x[::-1])[::-1], 0.0) for x in (p, q)]
        tails.append((np.log(p) - np.log(q), above[0], above[1]))
    return tails


def yes_count_distributions(e0: float, yes: int, no: int) -> tuple[Array, Array]:
    """Return the laws of the number of yes of ``yes + no`` others and a user: yes, or no."""
    mostly, hardly = (
        binomial_window(n, c, DEVIATIONS[-1])[1]
        for n, c in ((yes, 1 - flip_probability(e0)), (no, flip_probability(e0)))
    )
    others = np.convolve(mostly, hardly)
    with_yes, with_no = np.append(0.0, others), np.append(others, 0.0)
    p = (1 - flip_probability(e0)) * with_yes + flip_probability(e0) * with_no
    q = flip_probability(e0) * with_yes + (1 - flip_probability(e0)) * with_no
    return p, q


def flip_probability(e0: float) -> float:
    """Return the chance that a binary response is not the user's answer."""
    return math.exp(-e0) / (1 + math.exp(-e0))


@functools.lru_cache(maxsize=8)
def binomial_window(n: int, chance: float, deviations: float) -> tuple[Array, Array, float]:
    """Return values of Bin(n, chance) near its mean, their masses, and the mass of the rest."""
    from scipy.special import bdtr, bdtrc, gammaln

    if chance >= 1:  # to the last bit
        return np.full(1, float(n)), np.ones(1), 0.0
    centre = n * chance
    reach = deviations * math.sqrt(n * chance * (1 - chance)) + deviations**2 / 2
    low, high = max(0, math.floor(centre - reach)), min(n, math.ceil(centre + reach))
    k = np.arange(low, high + 1.0)
    log_mass = gammaln(n + 1.0) - gammaln(k + 1) - gammaln(n - k + 1)
    log_mass += k * math.log(chance) + (n - k) * math.log1p(-chance)
    missed = bdtr(low - 1, n, chance) if low > 0 else 0.0
    missed += bdtrc(high, n, chance) if high < n else 0.0
    mass = np.exp(log_mass)
    # the logarithms are inexact by an ulp of n ln n; rounded up
    mass *= (1 + 16 * ULP * float(gammaln(n + 1.0))) / mass.sum()
    k.flags.writeable = mass.flags.writeable = False  # they are kept
    return k, mass, float(missed)
