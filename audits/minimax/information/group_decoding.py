"""Group privacy: the largest probability of telling data sets apart that differ in a few records.

To *decode* is to guess from a private answer which of several data sets it came from.

Proof: `docs/proofs/minimax_mean.md`, 6.
"""

from __future__ import annotations

import math

from accountant.domains import DELTA, POSITIVE
from accountant.numerics.rounding import ULP, round_up


def most_right_at_distance(
    log_points: float, records: int, epsilon: float, delta: float = 0.0
) -> float:
    """The largest probability of a right decode if any two data sets are ``records`` records apart.

    ``1 / (1 + (N-1) e^-K) + delta_K``, rounded up.  N = e^log_points is the number of data sets,
    ``K = records * epsilon`` is the epsilon of the group, and delta_K its `group_delta`.
    """
    epsilon, delta = POSITIVE.check("epsilon", epsilon), DELTA.check("delta", delta)
    reach = records * epsilon
    # ln((N - 1) e^-K), in logarithms because N may be too large for a float.
    log_odds = log_points + math.log1p(-math.exp(-log_points)) - reach
    # The two terms may be large and nearly equal, so their rounding errors are taken off.
    log_odds -= 4 * ULP * (log_points + reach)
    right = 1 / (1 + math.exp(min(log_odds, 700.0)))  # e^700 is a float
    # An exponential, a quotient and two sums have errors of a few units in the last place.
    return min(1.0, round_up(right + group_delta(records, epsilon, delta), ulps=64))


def group_delta(records: int, epsilon: float, delta: float) -> float:
    """``delta (e^(g epsilon) - 1) / (e^epsilon - 1)`` of a group of g records, at most 1."""
    if delta == 0:
        return 0.0
    # It is delta e^((g - 1) epsilon) (1 - e^(-g epsilon)) / (1 - e^-epsilon).
    log_delta = math.log(delta) + (records - 1) * epsilon
    log_delta += math.log(math.expm1(-records * epsilon) / math.expm1(-epsilon))
    # Where the result is below 1, the terms are 745 in size at most, and right to 1e-13 each.  4096
    # units in the last place, 9e-13, are more than their sum.
    return min(1.0, round_up(math.exp(min(log_delta, 0.0)), ulps=4096))
