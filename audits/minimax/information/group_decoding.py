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
    # ln((N - 1) e^-K), in logarithms because N may be too large for a float
    odds = log_points + math.log1p(-math.exp(-log_points)) - reach
    # the two terms may be large and nearly equal, so their rounding errors are taken off
    odds -= 4 * ULP * (log_points + reach)
    right = 1 / (1 + math.exp(min(odds, 700.0)))
    return min(1.0, round_up(right + group_delta(records, epsilon, delta), 64))


def group_delta(records: int, epsilon: float, delta: float) -> float:
    """``delta (e^(g epsilon) - 1) / (e^epsilon - 1)`` of a group of g records, at most 1."""
    if delta == 0:
        return 0.0
    grown = math.log(delta) + (records - 1) * epsilon
    grown += math.log(math.expm1(-records * epsilon) / math.expm1(-epsilon))
    # a logarithm of at most 745 is right to 1e-13, which 4096 units of rounding cover
    return min(1.0, round_up(math.exp(min(grown, 0.0)), 4096))
