"""Bounds at a delta: some runs may reveal their value, and their number is random.

Under (epsilon, delta)-DP a run reveals its value with probability delta, independently: it is a
*leak*.  The number of leaks is L.  Every other guess is right with probability at most
``e^eps / (1 + e^eps)``, for any pattern of guesses and leaks.  Let a budget h(l) of error for each
count l of leaks be fixed beforehand, with ``E h(L) <= alpha``.  Take l leaks off the right guesses
and off all guesses; the test rejects only if, for every l, the binomial tail of the others is at
most h(l).  It errs with probability at most ``E h(L)``, as the test of the true count is among
them.

Any such budget is valid.  The best has the shape of P(l + other right guesses >= t), the tail of
all right guesses given l leaks: then the test is about as strong as if the sum was tested.  The
tail is taken at the largest probability q of a right guess that the expected counts only just
refute.

Reference for the leaks: Kairouz, Oh & Viswanath (2015).
"""

from __future__ import annotations

import math

import numpy as np

from accountant.numerics import Array
from accountant.numerics.search import greatest_float_that, least_float_that
from audits.statistics.binomial_bounds import clopper_pearson_lower, leak_count_quantile

MAX_LEAK_COUNTS = 64  # counts of leaks with a budget of their own, at most
ExpectedGuesses = tuple[float, float]  # guesses, and the share of them that is right


def epsilon_lower_with_leaks(
    correct: int, guesses: int, runs: int, delta: float, alpha: float, expected: ExpectedGuesses
) -> float:
    """Lower bound on epsilon at ``delta``, the probability that a run leaks to a guess.

    ``expected`` shapes the budget and must be fixed before the runs.
    """
    leaks, budget = leak_error_budget(runs, delta, alpha, expected)
    unleaked = np.maximum(correct - leaks, 0.0)
    chance = float(
        np.min(clopper_pearson_lower(unleaked, np.maximum(guesses - leaks, unleaked), budget))
    )
    with np.errstate(divide="ignore"):
        return max(float(np.log(chance) - np.log1p(-chance)), 0.0)


def leak_error_budget(
    runs: int, delta: float, alpha: float, expected: ExpectedGuesses
) -> tuple[Array, Array]:
    """Counts of leaks and the error allowed up to each, which is ``alpha`` on average.

    More leaks than the last count have probability at most alpha / 1000; that error is given up.
    The normal law and the expected counts only shape the budget: any budget is valid whose average
    over the exact law of leaks, ``chance``, is at most the rest of alpha.
    """
    from scipy.special import bdtr, ndtr

    rare = alpha / 1000
    top = leak_count_quantile(runs, delta, rare)
    low = min(leak_count_quantile(runs, delta, 0.999), top)
    leaks = np.unique(np.round(np.linspace(low, top, MAX_LEAK_COUNTS)))
    chance = np.diff(np.append(0.0, bdtr(leaks, runs, delta)))
    # Guesses that no leak explains: at least one, even if there are as many leaks as guesses.
    expected_guesses, expected_share = expected
    others = np.maximum(expected_guesses - leaks, 1.0)
    share = min(max(expected_share, 0.01), 0.99)

    def error(q: float, right: float) -> Array:
        """P(l + Bin(guesses - l, q) >= right) for each count of leaks, by the normal law."""
        law: Array = ndtr((leaks + others * q - right) / np.sqrt(others * q * (1 - q)))
        return law

    # The largest q that is refuted by a count half a standard error below the expected one.
    allowed = alpha - rare
    count = max(expected_guesses - 0.5 * math.sqrt(expected_guesses), 1.0) * share
    q = greatest_float_that(
        lambda q: float(chance @ error(q, count)) <= allowed, 0.01, share, steps=40
    )
    mean, spread = leaks + others * q, np.sqrt(others * q * (1 - q))
    lowest, highest = float(np.min(mean - 40 * spread)), float(np.max(mean + 40 * spread))
    # The threshold t on right guesses at which the error is ``allowed`` on average over leaks.
    t = least_float_that(
        lambda t: float(chance @ error(q, t)) <= allowed, lowest, highest, steps=80
    )
    return leaks, np.clip(error(q, t), 1e-300, 1.0)
