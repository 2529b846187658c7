"""Two blocks of guesses as one test of epsilon-DP: binomial tails, combined by Stouffer's method.

In a block, a rule guesses which of two values each run released.  The rule is fixed before the runs
of its block.  So under epsilon-DP the block's p-value is, given the past, stochastically at least
uniform, and its normal score at most standard normal.  With weights fixed beforehand, the sum
``a X + b Y`` of the two scores has a known tail.  (It is not valid to add the counts of the blocks
up to one binomial, because the second rule and its number of guesses depend on the first block.)

Reference: Stouffer et al. (1949).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from accountant.numerics.quadrature import legendre
from accountant.numerics.search import greatest_float_that, grow_until
from audits.statistics.binomial_bounds import max_correct_probability

BlockCounts = tuple[int, int, int]  # right guesses, guesses, runs
# for each block the share of the runs known when its rule is learned, and the share it is tested on
BLOCK_SHARES = (0.1, 0.2), (0.3, 0.7)
# with a delta, leaks are rare, so more runs are for learning: the smaller of 30 % of the runs, and
# 10 % of them plus 15,000
LEAKS_SHARE, LEAKS_SHARE_OF_MANY, LEAK_RUNS = 30, 10, 15_000
MAX_LEARNING_RUNS = 100_000
MIN_FIRST_SCORE = -0.5  # least score of the first block, in standard errors
QUADRATURE = legendre(64)
MIN_RUNS_TO_SPLIT = 2_000  # fewer runs are tested by one rule


def block_schedule(runs: int, pure: bool) -> list[tuple[int, int]]:
    """(runs known when a rule is learned, runs it is tested on), in order.

    With a delta (``pure`` is false) there is one block, because leaks are counted only once.
    """
    first_known = int(BLOCK_SHARES[0][0] * runs)
    if not pure or runs < MIN_RUNS_TO_SPLIT or first_known >= MAX_LEARNING_RUNS:
        share = 20 * runs // 100
        if not pure:
            share_of_many = LEAK_RUNS + LEAKS_SHARE_OF_MANY * runs // 100
            share = min(LEAKS_SHARE * runs // 100, share_of_many)
        learning_runs = min(share, MAX_LEARNING_RUNS)
        return [(learning_runs, runs - learning_runs)]
    learning_runs = int(BLOCK_SHARES[1][0] * runs)
    return [(first_known, learning_runs - first_known), (learning_runs, runs - learning_runs)]


def binomial_p_value(counts: BlockCounts, epsilon: float) -> float:
    """The largest probability of as many right guesses under epsilon-DP, by the binomial."""
    from scipy.special import bdtrc

    correct, guesses, _ = counts
    return (
        float(bdtrc(correct - 1, guesses, max_correct_probability(epsilon))) if correct > 0 else 1.0
    )


def combined_p_value(blocks: Sequence[BlockCounts], epsilon: float) -> float:
    """The blocks' tails as one p-value: at most uniform if epsilon-DP holds.

    A first block's score below `MIN_FIRST_SCORE` counts as that: an early rule that reveals less
    than the later one must not weaken its evidence.
    """
    if len(blocks) == 1:
        return binomial_p_value(blocks[0], epsilon)
    from scipy.special import ndtri

    first_block, second_block = blocks
    share = first_block[2] / (first_block[2] + second_block[2])
    first_weight, second_weight = math.sqrt(share), math.sqrt(1 - share)
    # p-values below 1e-300 are raised to it, which favours the claim
    scores = [-float(ndtri(max(binomial_p_value(block, epsilon), 1e-300))) for block in blocks]
    score = first_weight * max(scores[0], MIN_FIRST_SCORE) + second_weight * scores[1]
    return clipped_normal_tail(score, first_weight, second_weight) if math.isfinite(score) else 1.0


def clipped_normal_tail(score: float, first_weight: float, second_weight: float) -> float:
    """``P(a max(X, WORST) + b Y >= score)`` of independent standard normal X and Y.

    ``first_weight`` is a, ``second_weight`` is b, and WORST is `MIN_FIRST_SCORE`.
    """
    from scipy.special import ndtr

    # P(X < WORST) P(b Y >= score - a WORST) + int_WORST phi(x) P(b Y >= score - a x) dx.
    # The integral is cut at `end`, and P(X > end) is added; 4 panels of 64 Gauss-Legendre nodes
    # have a relative error far below the 1e-9 that is added
    end = max(first_weight * score, 0.0) + 9.0
    nodes, weights = QUADRATURE
    half = (end - MIN_FIRST_SCORE) / 8
    x = (MIN_FIRST_SCORE + half * (2 * np.arange(4)[:, None] + 1 + nodes)).ravel()
    density = np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    inside = np.tile(half * weights, 4) @ (
        density * ndtr((first_weight * x - score) / second_weight)
    )
    below = ndtr(MIN_FIRST_SCORE) * ndtr((first_weight * MIN_FIRST_SCORE - score) / second_weight)
    return min(float((inside + below) * (1 + 1e-9) + ndtr(-end)), 1.0)


def combined_epsilon_lower(blocks: Sequence[BlockCounts], alpha: float) -> float:
    """Least epsilon that the combined tail does not refute: covers with at least ``1 - alpha``."""
    if combined_p_value(blocks, 0.0) > alpha:
        return 0.0

    def refutes(epsilon: float) -> bool:
        return combined_p_value(blocks, epsilon) <= alpha

    low, high = grow_until(lambda epsilon: not refutes(epsilon), 1.0, 600.0)
    # 44 bisections of an interval of length 1 end at 1e-13
    return greatest_float_that(refutes, low, high, relative=1e-10, steps=44)
