"""Hockey sticks of shuffled reports, from above: the clone pair, and binary responses.

``users`` reports, each of which satisfies e0-local differential privacy, are put in random order.
The hockey stick at epsilon is the supremum of P(A) - e^epsilon Q(A) over events A, where P and Q
are the laws of what is seen for two records of one user.

*Clones* (Feldman, McMillan & Talwar 2022, Theorem 3.2).  Let f = 1 / (e^e0 + 1).  Of the other
users C ~ Bin(users - 1, 2f) answer with a fair coin, A of them heads, and D ~ Bernoulli(1 - f):

    P = law of (A + D, C - A + 1 - D),    Q = law of (A + 1 - D, C - A + D).

*Binary responses*: each answer is flipped with probability f, and the number of yes is seen.

Bounds are rounded up.  Proof and round-off: `docs/proofs/shuffling.md`.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from accountant.numerics import Array
from accountant.numerics.ordered_sums import ordered_dot
from accountant.numerics.rounding import ACCURACY, MAX_EXPONENT, ULP

# Windows of a binomial law, in standard deviations: beyond them lie at most about 1e-21, 1e-44,
# 1e-97 and 1e-300.  A wider one is taken where what the last one misses is more than 1e-12 of a
# hockey stick (a "stick").
DEVIATIONS = (9.5, 14.0, 21.0, 45.0)
NEGLIGIBLE = 1e-12
# Numbers of clones are taken in blocks of 32: the first of a block has its chance from a logarithm,
# and every other one from the chance before it, which is quicker; round-off grows along a block.
BLOCK = 32
CACHE_SIZE = 2**17  # most entries of a matrix of epsilons by numbers of clones: 1 MB
TINY = 1e-250  # It is added to a bound: underflow takes away less than this.


def clone_hockey_sticks(e0: float, users: int, epsilon: Array) -> Array:
    """Return the hockey sticks of the clone pair of ``users`` reports that are e0-private."""
    # The hockey stick is 0 from e0 on, the largest loss.  Where e^epsilon overflows, it is at most
    # 1, as everywhere.
    sticks = np.where((epsilon > MAX_EXPONENT) & (epsilon < e0), 1.0, 0.0)
    pending = np.flatnonzero((epsilon < e0) & (epsilon <= MAX_EXPONENT))
    for deviations in DEVIATIONS:
        clones, weight, missed = binomial_window(users - 1, 2 * flip_probability(e0), deviations)
        rows = max(1, CACHE_SIZE // clones.size)
        for start in range(0, pending.size, rows):
            batch = pending[start : start + rows]
            sticks[batch] = _sticks_of_clones(e0, epsilon[batch], clones, weight) + missed
        pending = pending[sticks[pending] < missed / NEGLIGIBLE]
    return sticks


def _sticks_of_clones(e0: float, epsilon: Array, clones: Array, weight: Array) -> Array:
    """Return the part of the hockey sticks where the number of clones C is one of ``clones``.

    ``weight`` is the mass of each number of clones.  With d = 1 - f, and i heads and j tails among
    the C clones and the user, i + j = C + 1, the ratio P / Q is (d i + f j) / (f i + d j).  That is
    above e^eps where i > m = floor((C + 1) share), and there P - e^eps Q sums to

        alpha P(A >= m) - beta P(A > m) = alpha P(A = m) - (e^eps - 1) P(A > m),

    alpha = d - e^eps f, beta = e^eps d - f, share = beta / (alpha + beta).  The chances P(A > m) of
    all C come from that of the largest C by differences, see the comments.
    """
    d = 1 - flip_probability(e0)
    # f = d e^-e0: in this form nothing cancels near e0.
    alpha = -d * np.expm1(epsilon - e0)
    beta = -d * np.exp(epsilon) * np.expm1(-epsilon - e0)
    share = beta / (alpha + beta)
    # The numbers of clones fall from the largest one.  The last block is filled up with zeros of
    # weight 0.
    size = -(-clones.size // BLOCK) * BLOCK
    coins = np.maximum(clones[-1] - np.arange(float(size)), 0.0)
    weights = np.append(weight[::-1], np.zeros(size - weight.size))
    heads = np.minimum(np.floor(np.multiply.outer(share, coins + 1)), coins)
    equal, mass_ulps = _fair_masses(coins, heads)
    # From c coins to c - 1, P(A > m) falls by P(A_c = m) (c - m) / c where m stays, and rises by as
    # much where m falls by one.
    change = equal[:, :-1] * (coins - heads)[:, :-1] / np.maximum(coins[:-1], 1.0)
    rises = change * (heads[:, :-1] > heads[:, 1:])
    # A change moves P(A > m) of all smaller numbers: their weights are summed.
    tail_weights = np.cumsum(weights[::-1])[::-1]
    top = equal[:, 0] * _more_heads(coins[0], heads[:, 0]) * tail_weights[0]
    changed, risen = ordered_dot(change, tail_weights[1:]), ordered_dot(rises, tail_weights[1:])
    total, factor = ordered_dot(equal, weights), np.expm1(epsilon)
    value = alpha * total - factor * (top + (2 * risen - changed))
    # The error in ulps, counted in the proof under "Round-off": that of the masses and their sums;
    # 12 sqrt(C) of the tail of the largest C; and 8 of each mass for round-off in a share where
    # (C + 1) share is nearly whole, which may move m by one.
    error = (mass_ulps + size) * (alpha * total + factor * (top + changed))
    error += 12 * math.sqrt(coins[0]) * factor * top
    error += 8 * (alpha + beta) * ordered_dot(equal * (heads < coins), weights)
    stick_upper: Array = np.maximum(value, 0.0) * (1 + ACCURACY) + ULP * error + TINY
    return stick_upper


def _fair_masses(coins: Array, heads: Array) -> tuple[Array, Array]:
    """Return P(Bin(c, 1/2) = m), and bounds on the relative errors of each row, in ulps.

    Along the last axis the coins c fall by one and the heads m by none or one.  From the chance of
    m heads of c coins, that of m heads of c - 1 follows by the factor 2 (c - m) / c, and that of
    m - 1 heads of c - 1 by 2 m / c.  So chances are products along a block, whose first chance is
    computed by its logarithm.  By the proof each chance is exact to 256 + 12 |ln P| ulps.
    """
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
    """Return P(A > m) / P(A = m) of c fair coins, rounded down, which raises the stick.

    It is the sum over n of the products of (c - m - i) / (m + 1 + i), i = 0 ... n.  As m >= c / 2,
    the products fall at least as e^{-n^2 / c}: after 6 sqrt(c) factors they are below e^-36, and
    the sum ends.
    """
    i = np.arange(math.ceil(6 * math.sqrt(coins)) + 1.0)
    terms = np.maximum(coins - heads[:, None] - i, 0.0) / (heads[:, None] + 1 + i)
    chance_ratio: Array = np.cumprod(terms, axis=-1, out=terms).sum(axis=-1)
    return chance_ratio


def _log_fair_mass(coins: Array, heads: Array) -> Array:
    """Return ``ln P(Bin(c, 1/2) = m)`` by Loader's formula (2000), without cancellation.

    With s = 2 m / c - 1 and R(n) = ln n! - n ln n + n, it is
    R(c) - R(m) - R(c - m) - (c / 2) ((1 + s) ln(1 + s) + (1 - s) ln(1 - s)).
    """
    from scipy.special import xlogy

    s = (2 * heads - coins) / np.maximum(coins, 1.0)
    # For small s the formula is written so that terms of the size of s do not cancel.  For large s
    # it takes 1 + s and 1 - s from the whole numbers: the round-off of s would be large in 1 - s.
    small = np.clip(s, -0.5, 0.5)
    near = np.log1p(-small * small) + small * (np.log1p(small) - np.log1p(-small))
    more, less = 2 * heads / np.maximum(coins, 1.0), 2 * (coins - heads) / np.maximum(coins, 1.0)
    nats = np.where(np.abs(s) <= 0.5, near, xlogy(more, more) + xlogy(less, less))
    rests: Array = _stirling_rest(coins) - _stirling_rest(heads) - _stirling_rest(coins - heads)
    return rests - coins / 2 * nats


def _stirling_rest(n: Array) -> Array:
    """Return ``R(n) = ln n! - n ln n + n``.

    From 16 on by Stirling's series, whose first term left out is at most 1 / (1188 16^9), 55 ulps.
    """
    from scipy.special import gammaln, xlogy

    large = np.maximum(n, 16.0)
    square = 1 / (large * large)
    series = (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680))) / large
    small = np.minimum(n, 16.0)
    small_rest = gammaln(small + 1) - xlogy(small, small) + small
    return np.where(n < 16, small_rest, np.log(2 * math.pi * large) / 2 + series)


def binary_hockey_sticks(e0: float, users: int, epsilon: Array) -> Array:
    """Return hockey sticks of the number of yes, for the other users' worst answers.

    How many of the others say yes in the worst case depends on epsilon, so all numbers are tried.
    """
    greatest, ratio = np.zeros(epsilon.shape), np.exp(np.minimum(epsilon, MAX_EXPONENT))
    # A chance is a sum of at most ``users`` masses, and each mass one of as many products.
    error = 2 * ULP * (8 + users)
    for log_ratio, above_p, above_q in _tails_by_yes_count(e0, users):
        # The number of yes of the others, a sum of independent answers, has a log-concave law.  So
        # P / Q grows with the number of yes, and the stick is a difference of two tails.
        threshold = np.searchsorted(log_ratio, epsilon, side="right")
        stick = above_p[threshold] * (1 + error) - ratio * above_q[threshold] * (1 - error)
        np.maximum(greatest, stick, out=greatest)
    return greatest * (1 + ACCURACY)


@functools.lru_cache(maxsize=4)
def _tails_by_yes_count(e0: float, users: int) -> list[tuple[Array, Array, Array]]:
    """Return three arrays by the number k of yes seen: ln(P / Q), and P and Q of at least k.

    The list has such a triple for each number of other users whose answer is yes before it is
    flipped.
    """
    tails = []
    for yes in range(users):
        p, q = yes_count_distributions(e0, yes, users - 1 - yes)
        possible = (p > 0) & (q > 0)
        p, q = p[possible], q[possible]
        above = [np.append(np.cumsum(x[::-1])[::-1], 0.0) for x in (p, q)]
        tails.append((np.log(p) - np.log(q), above[0], above[1]))
    return tails


def yes_count_distributions(e0: float, yes: int, no: int) -> tuple[Array, Array]:
    """Return the laws of the number of yes seen where the user says yes (P), or no (Q).

    ``yes`` and ``no``: how many of the other users say either, before answers are flipped.
    """
    unflipped, flipped = (
        binomial_window(n, c, DEVIATIONS[-1])[1]
        for n, c in ((yes, 1 - flip_probability(e0)), (no, flip_probability(e0)))
    )
    others = np.convolve(unflipped, flipped)
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
    from scipy.special import bdtr, bdtrc, gammaln  # bdtr(k, n, p): P(Bin <= k); bdtrc: P(Bin > k)

    if chance in (0.0, 1.0):  # It may be rounded to one of these.
        return np.full(1, n * chance), np.ones(1), 0.0
    centre = n * chance
    # By Bernstein's inequality the square is added for skew laws of a small mean.
    reach = deviations * math.sqrt(n * chance * (1 - chance)) + deviations**2 / 2
    low, high = max(0, math.floor(centre - reach)), min(n, math.ceil(centre + reach))
    k = np.arange(low, high + 1.0)
    log_mass = gammaln(n + 1.0) - gammaln(k + 1) - gammaln(n - k + 1)
    log_mass += k * math.log(chance) + (n - k) * math.log1p(-chance)
    missed = bdtr(low - 1, n, chance) if low > 0 else 0.0
    missed += bdtrc(high, n, chance) if high < n else 0.0
    mass = np.exp(log_mass)
    # The logarithms are inexact by ulps of their largest term, ln n!: masses are rounded up.  Those
    # of the window are raised to the sum 1, which is their sum but for what is missed.
    mass *= (1 + 16 * ULP * float(gammaln(n + 1.0))) / mass.sum()
    k.flags.writeable = mass.flags.writeable = False  # The cache returns them again.
    return k, mass, float(missed)
