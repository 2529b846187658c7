"""Group privacy: the largest probability of telling data sets apart that differ in a few records.

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

    ``1 / (1 + (N-1) e^-K) + delta_K`` with ``K = records * epsilon``, delta_K of the group; rounded
    up.
    """
    epsilon, delta = POSITIVE.check("epsilon", epsilon), DELTA.check("delta", delta)
    reach = records * epsilon
    # N e^-K less e^-K: in logs, as N may be of any size
    odds = log_points + math.log1p(-math.exp(-log_points)) - reach
    # Both may be large and nearly equal.
    odds -= 4 * ULP * (log_points + reach)
    right = 1 / (1 + math.exp(min(odds, 700.0)))
    return min(1.0, round_up(right + group_delta(records, epsilon, delta), 64))


def group_delta(records: int, epsilon: float, delta: float) -> float:
    """``delta (e^(g epsilon) - 1) / (e^epsilon - 1)`` of a group of g records, at most 1."""
    if delta == 0:
        return 0.0
    grown = math.log(delta) + (records - 1) * epsilon
    grown += math.log(math.expm1(-records * epsilon) / math.expm1(-epsilon))
    # logs of at most 745 are right to 1e-13
    return min(1.0, round_up(math.exp(min(grown, 0.0)), 4096))
