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
# For each block: the share of all runs from which its rule is learned, and the share of all runs on
# which the rule is tested.
BLOCK_SHARES = (0.1, 0.2), (0.3, 0.7)
# With a delta, the runs that reveal their value (leaks) are rare, so more runs are for learning:
# the smaller of 30 % of the runs, and 10 % of them plus 15,000.  The first two are per cent.
LEAKS_SHARE, LEAKS_SHARE_OF_MANY, LEAK_RUNS = 30, 10, 15_000
MAX_LEARNING_RUNS = 100_000  # most runs from which a rule is learned
# A lower normal score of the first block, in standard deviations, is replaced by this one.  If it
# were higher, a poor first rule would harm less, and both blocks together would prove less.
MIN_FIRST_SCORE = -0.5
PANELS = 4  # of the quadrature
QUADRATURE = legendre(64)  # nodes and weights of a panel, on [-1, 1]
MIN_RUNS_TO_SPLIT = 2_000  # fewer runs are tested in one block, by one rule


def block_schedule(runs: int, pure: bool) -> list[tuple[int, int]]:
    """For each block, in order: (runs from which its rule is learned, runs on which it is tested).

    With a delta (``pure`` is false) there is one block, because leaks are counted only once.
    Without one a single block learns from 20 % of the runs.
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
    """The largest probability, under epsilon-DP, of at least as many right guesses in a block.

    It is P(Bin(guesses, q) >= right guesses) with q = e^epsilon / (1 + e^epsilon).
    """
    from scipy.special import bdtrc

    correct, guesses, _ = counts
    return (
        float(bdtrc(correct - 1, guesses, max_correct_probability(epsilon))) if correct > 0 else 1.0
    )


def combined_p_value(blocks: Sequence[BlockCounts], epsilon: float) -> float:
    """One p-value of one or two blocks; under epsilon-DP it is stochastically at least uniform.

    The scores X and Y of two blocks are -Phi^-1 of their p-values, and their weights a and b, with
    a^2 + b^2 = 1, are the roots of their shares of the runs.  A score X below `MIN_FIRST_SCORE`
    counts as that, so that a poor early rule cannot weaken the evidence of the later one much.
    """
    if len(blocks) == 1:
        return binomial_p_value(blocks[0], epsilon)
    from scipy.special import ndtri

    first_block, second_block = blocks
    share = first_block[2] / (first_block[2] + second_block[2])
    first_weight, second_weight = math.sqrt(share), math.sqrt(1 - share)
    # p-values below 1e-300 are raised to 1e-300, which favours the claim
    scores = [-float(ndtri(max(binomial_p_value(block, epsilon), 1e-300))) for block in blocks]
    score = first_weight * max(scores[0], MIN_FIRST_SCORE) + second_weight * scores[1]
    return clipped_normal_tail(score, first_weight, second_weight) if math.isfinite(score) else 1.0


def clipped_normal_tail(score: float, first_weight: float, second_weight: float) -> float:
    """``P(a max(X, WORST) + b Y >= score)`` of independent standard normal X and Y.

    ``first_weight`` is a, ``second_weight`` is b, and WORST is `MIN_FIRST_SCORE`.
    """
    from scipy.special import ndtr

    # It is P(X < WORST) P(b Y >= score - a WORST) + int_WORST^inf phi(x) P(b Y >= score - a x) dx.
    # The integral is cut at `end`, and P(X > end) is added.  Its 4 panels of 64 Gauss-Legendre
    # nodes have a relative error far below the 1e-9 that is added, for the weights of the blocks of
    # `BLOCK_SHARES`.  (If b was near 0 the integrand would be too steep for so few nodes.)
    end = max(first_weight * score, 0.0) + 9.0
    nodes, weights = QUADRATURE
    half = (end - MIN_FIRST_SCORE) / (2 * PANELS)
    middles = MIN_FIRST_SCORE + half * (2 * np.arange(PANELS)[:, None] + 1)
    x = (middles + half * nodes).ravel()
    density = np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    inside = np.tile(half * weights, PANELS) @ (
        density * ndtr((first_weight * x - score) / second_weight)
    )
    below = ndtr(MIN_FIRST_SCORE) * ndtr((first_weight * MIN_FIRST_SCORE - score) / second_weight)
    return min(float((inside + below) * (1 + 1e-9) + ndtr(-end)), 1.0)


def combined_epsilon_lower(blocks: Sequence[BlockCounts], alpha: float) -> float:
    """Lower confidence bound on epsilon: the greatest epsilon seen to be refuted at level alpha.

    It is 0 if none is refuted.  An epsilon that holds is at least this with probability 1 - alpha
    or more.
    """
    if combined_p_value(blocks, 0.0) > alpha:
        return 0.0

    def refutes(epsilon: float) -> bool:
        return combined_p_value(blocks, epsilon) <= alpha

    low, high = grow_until(lambda epsilon: not refutes(epsilon), 1.0, 600.0)
    # The interval is at most 512 long, and 44 bisections end at a length below 3e-11.
    return greatest_float_that(refutes, low, high, relative=1e-10, steps=44)
