"""Many coins in one run: epsilon from guesses of bits that one output hides together.

Record i of a data set is chosen between two candidates by a fair coin S_i of its own.  Given the
coins before, the output is (epsilon, delta)-DP in S_i, so a guess of S_i from the output is right
with probability at most q = e^eps / (1 + e^eps), except for a part of its mass whose mean is at
most (1 - q) delta.  Without that part the number of right guesses is dominated by Bin(m, q), and

    P(right >= v) <= P(Bin(m, q) >= v) + m (1 - q) delta,

for any dependence between the guesses.  References: Steinke, Nasr & Jagielski (2023),
Theorem 5.2, whose term for delta is 2 m delta; docs/proofs/audits_by_coins.md for this one.
"""

from __future__ import annotations

import math

import numpy as np

from audits.statistics.binomial_bounds import clopper_pearson_lower


def epsilon_lower_one_run(right: int, coins: int, delta: float, alpha: float) -> float:
    """Lower bound on epsilon at ``delta``, of confidence ``1 - alpha``; every coin is guessed."""
    # q >= 1/2, so m delta / 2 bounds the last term whatever epsilon is
    left = alpha - coins * delta / 2
    if coins == 0 or left <= 0:
        return 0.0
    chance = float(clopper_pearson_lower(np.array(float(right)), np.array(float(coins)), left))
    # in float the bound is good to about 1e-12 relative, which is taken off
    chance *= 1 - 1e-12
    return max(math.log(chance) - math.log1p(-chance), 0.0) if chance > 0 else 0.0
