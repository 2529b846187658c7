"""Exact confidence bounds for probabilities, for means, and for epsilon from right guesses.

An audit guesses from an output which of two neighbouring values it came from; these functions
turn the number of right guesses into a lower bound on epsilon.  Every bound covers with at least
its stated probability for any number of runs; none is asymptotic.

References: Clopper & Pearson (1934); Hoeffding (1963), Theorem 1; Kairouz, Oh & Viswanath (2015)
for the leaks of an (epsilon, delta)-DP release.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from accountant.numerics import Array
from accountant.numerics.search import furthest_that, least_integer_that


def clopper_pearson_lower(successes: Array, trials: Array, alpha: float | Array) -> Array:
    """Lower bound on a probability, elementwise: covers with at least ``1 - alpha``."""
    from scipy.special import betaincinv

    is_positive = successes > 0
    good = np.where(is_positive, successes, 1.0)
    bound = betaincinv(good, np.maximum(trials - good, 0.0) + 1.0, alpha)
    return np.where(is_positive, bound, 0.0)


def leak_count_quantile(runs: int, delta: float, alpha: float) -> int:
    """Least count that Bin(runs, delta) exceeds with probability at most ``alpha``."""
    from scipy.special import bdtrc

    if delta == 0:
        return 0
    return least_integer_that(lambda count: bool(bdtrc(count, runs, delta) <= alpha), -1, runs)


def max_correct_probability(epsilon: float) -> float:
    """``e^eps / (1 + e^eps)``: the largest probability of a right guess under epsilon-DP."""
    return 1 / (1 + math.exp(-epsilon))


def epsilon_lower(correct: Array, guesses: Array, runs: int, delta: float, alpha: float) -> Array:
    """Lower bound on epsilon from right guesses of a fair coin, elementwise.

    Under (epsilon, delta)-DP at most Bin(runs, delta) runs reveal their value, and every other
    guess is right with probability at most ``e^eps / (1 + e^eps)``, given any earlier guesses.
    So the leaks are bounded with error ``alpha / 10`` and taken off, and the rest is one binomial
    tail with error ``0.9 alpha``; with delta = 0 that tail has all of ``alpha``.
    """
    error_of_tail = alpha if delta == 0 else 0.9 * alpha
    leaks = leak_count_quantile(runs, delta, alpha / 10)
    unleaked_correct = np.maximum(np.asarray(correct, dtype=float) - leaks, 0.0)
    unleaked_guesses = np.maximum(np.asarray(guesses, dtype=float) - leaks, unleaked_correct)
    chance = clopper_pearson_lower(unleaked_correct, unleaked_guesses, error_of_tail)
    with np.errstate(divide="ignore"):
        bound: Array = np.maximum(np.log(chance) - np.log1p(-chance), 0.0)
        return bound


def epsilon_lower_every_run(correct: int, runs: int, delta: float, alpha: float) -> float:
    """Lower bound on epsilon at ``delta`` from right guesses of a rule that guesses in every run.

    Under (epsilon, delta)-DP a run is right with probability at most
    ``delta + (1 - delta) e^eps / (1 + e^eps)``.  The lower bound on that probability is solved for
    epsilon, so no separate count of leaks is needed.
    """
    chance = float(clopper_pearson_lower(np.array(float(correct)), np.array(float(runs)), alpha))
    chance = (chance - delta) / (1 - delta)
    if chance <= 0.5:
        return 0.0
    return math.log(chance) - math.log1p(-chance) if chance < 1 else math.inf


def mean_confidence_band(samples: Array, alpha: float) -> tuple[Array, Array]:
    """Lower and upper bound on the means of ``samples[:, j]`` in [0, 1].

    Each covers with ``1 - alpha / 2`` at least, by Hoeffding's inequality
    ``P(mean >= m) <= e^{-n kl(m, mu)}`` inverted in mu.
    """
    mean, budget = samples.mean(axis=0), math.log(2 / alpha) / len(samples)
    return _invert_kl(mean, np.zeros_like(mean), budget), _invert_kl(
        mean, np.ones_like(mean), budget
    )


def _invert_kl(p: Array, end: Array, budget: float) -> Array:
    """The point q between ``p`` and ``end`` at which kl(p, q) reaches the budget."""

    def is_beyond(q: Array) -> NDArray[np.bool_]:
        # kl(p, q) = p ln(p / q) + (1 - p) ln((1 - p) / (1 - q))
        with np.errstate(divide="ignore", invalid="ignore"):
            success_term = np.where(p > 0, p * np.log(p / q), 0.0)
            failure_term = np.where(p < 1, (1 - p) * np.log((1 - p) / (1 - q)), 0.0)
        return np.asarray(success_term + failure_term > budget)

    return furthest_that(is_beyond, end, p)
