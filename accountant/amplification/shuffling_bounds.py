"""Hockey sticks of shuffled reports, where one report has one of two answers."""

from __future__ import annotations

import functools
import math

import numpy as np

from accountant.numerics import Array
from accountant.numerics.ordered_sums import ordered_dot
from accountant.numerics.rounding import ACCURACY, ULP

MAX_EXPONENT = 700.0  # whose exponential a float holds

NARROW_DEVIATIONS, WIDE_DEVIATIONS = (
    9.5,
    45.0,
)  # deviations of a binomial: about 1e-21 and 1e-300 lie beyond


def clone_hockey_stick(e0: float, users: int, epsilon: float) -> float:
    """Return the hockey stick of the clone pair of ``users`` reports that are e0-private."""
    if epsilon >= e0:
        return 0.0
    if epsilon > MAX_EXPONENT:
        return 1.0
    found = _clone_hockey_stick(e0, users, epsilon, NARROW_DEVIATIONS)
    return found if found > 1e-10 else _clone_hockey_stick(e0, users, epsilon, WIDE_DEVIATIONS)


def _clone_hockey_stick(e0: float, users: int, epsilon: float, deviations: float) -> float:
    from scipy.special import bdtrc

    # P / Q = (d i + (1-d) j) / ((1-d) i + d j) with i + j = C + 1 heads and tails: it is above
    # e^eps where i > (C+1) beta / (alpha+beta), and there P - e^eps Q sums to
    # alpha P(A >= i - 1) - beta P(A >= i)
    d = 1 - flip_probability(e0)
    alpha = d - math.exp(epsilon) * (1 - d)
    beta = math.exp(epsilon) * d - (1 - d)
    if alpha <= 0:
        return 0.0
    clones, weight, missed = binomial_window(users - 1, 2 * flip_probability(e0), deviations)
    first = np.floor((clones + 1) * beta / (alpha + beta)) + 1
    tails = []
    for heads in (first - 1, first):
        tail = np.where(heads <= 0, 1.0, 0.0)
        inside = (heads > 0) & (heads <= clones)
        tail[inside] = bdtrc(heads[inside] - 1, clones[inside].astype(int), 0.5)
        tails.append(tail)
    sticks = np.maximum(alpha * tails[0] - beta * tails[1], 0.0)
    return float(ordered_dot(sticks, weight)) * (1 + ACCURACY) + missed


def binary_hockey_sticks(e0: float, users: int, epsilon: Array) -> Array:
    """Return hockey sticks of B + yes against B + no at the worst B, the others' number of yes.

    Which number of others is worst depends on epsilon, and it is not always none or all.
    """
    greatest, ratio = np.zeros(epsilon.shape), np.exp(np.minimum(epsilon, 700.0))
    error = 2 * ULP * (8 + users)
    for log_ratio, above_p, above_q in _tails_by_yes_count(e0, users):
        # B is a sum of independent answers, so the ratio grows with the number of yes
        first = np.searchsorted(log_ratio, epsilon, side="right")
        stick = above_p[first] * (1 + error) - ratio * above_q[first] * (1 - error)
        np.maximum(greatest, stick, out=greatest)
    return greatest * (1 + ACCURACY)


@functools.lru_cache(maxsize=4)
def _tails_by_yes_count(e0: float, users: int) -> list[tuple[Array, Array, Array]]:
    """Return, for each number of yes among the others, log-ratios and masses from there up."""
    found = []
    for honest in range(users):
        p, q = yes_count_distributions(e0, honest, users - 1 - honest)
        some = (p > 0) & (q > 0)
        p, q = p[some], q[some]
        above = [np.append(np.cumsum(x[::-1])[::-1], 0.0) for x in (p, q)]
        found.append((np.log(p) - np.log(q), above[0], above[1]))
    return found


def yes_count_distributions(e0: float, yes: int, no: int) -> tuple[Array, Array]:
    """Return the laws of the number of yes of ``yes + no`` others and a user: yes, or no."""
    mostly, hardly = (
        binomial_window(n, c, WIDE_DEVIATIONS)[1]
        for n, c in ((yes, 1 - flip_probability(e0)), (no, flip_probability(e0)))
    )
    others = np.convolve(mostly, hardly)
    more, same = np.append(0.0, others), np.append(others, 0.0)
    p, q = (
        (1 - flip_probability(e0)) * more + flip_probability(e0) * same,
        flip_probability(e0) * more + (1 - flip_probability(e0)) * same,
    )
    return p, q


def flip_probability(e0: float) -> float:
    """Return the chance that a binary response is not the user's answer."""
    return math.exp(-e0) / (1 + math.exp(-e0))


@functools.lru_cache(maxsize=8)
def binomial_window(n: int, chance: float, deviations: float) -> tuple[Array, Array, float]:
    """Return values of Bin(n, chance) near its mean, their masses, and the mass of the rest."""
    from scipy.special import bdtr, bdtrc, gammaln

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
