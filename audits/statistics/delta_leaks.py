"""Bounds at a delta: some runs may reveal their value, and their number is random.

Under (epsilon, delta)-DP a run reveals its value with probability delta, independently; L runs do.
Every other guess is right with probability at most ``e^eps / (1 + e^eps)``, for any pattern of
guesses and leaks.  Let a budget h(l) be fixed beforehand with ``E h(L) <= alpha``.  The test that
rejects only if the binomial tail without l leaks is at most h(l), for every l, errs with
probability at most ``E h(L)``.  A budget shaped like the tail of leaks and guesses together loses
no power by their separation.  Reference for the leaks: Kairouz, Oh & Viswanath (2015).
"""

from __future__ import annotations

import numpy as np

from accountant.numerics import Array
from accountant.numerics.search import least_float_that
from audits.statistics.binomial_bounds import clopper_pearson_lower, leak_count_quantile

MAX_LEAK_COUNTS = 64
ExpectedGuesses = tuple[float, float]  # guesses, and the share of them that is right


def epsilon_lower_with_leaks(
    correct: int, made: int, runs: int, delta: float, alpha: float, expected: ExpectedGuesses
) -> float:
    """Lower bound on epsilon at ``delta``, the probability that a run leaks to a guess.

    ``expected`` shapes the budget and must be fixed before the runs.
    """
    leaks, budget = leak_error_budget(runs, delta, alpha, expected)
    left = np.maximum(correct - leaks, 0.0)
    chance = float(np.min(clopper_pearson_lower(left, np.maximum(made - leaks, left), budget)))
    with np.errstate(divide="ignore"):
        return max(float(np.log(chance) - np.log1p(-chance)), 0.0)


def leak_error_budget(
    runs: int, delta: float, alpha: float, expected: ExpectedGuesses
) -> tuple[Array, Array]:
    """Counts of leaks and the error allowed up to each, which is ``alpha`` on average.

    More leaks than the last count have probability at most alpha / 1000; that error is given up.
    """
    from scipy.special import bdtr, ndtr

    rare = alpha / 1000
    top = leak_count_quantile(runs, delta, rare)
    low = min(leak_count_quantile(runs, delta, 0.999), top)
    leaks = np.unique(np.round(np.linspace(low, top, MAX_LEAK_COUNTS)))
    chance = np.diff(np.append(0.0, bdtr(leaks, runs, delta)))
    made, share = max(expected[0], top + 1.0), min(max(expected[1], 0.01), 0.99)
    mean = leaks + (made - leaks) * share
    spread = np.sqrt((made - leaks) * share * (1 - share))
    # h(l) = P(l + Bin(made - l, share) >= t) by the normal law; t makes it alpha on average
    least, most = float(mean[0] - 40 * spread[0]), float(mean[-1] + 40 * spread[0])
    t = least_float_that(
        lambda t: float(chance @ ndtr((mean - t) / spread)) <= alpha - rare, least, most, steps=80
    )
    return leaks, np.clip(ndtr((mean - t) / spread), 1e-300, 1.0)
