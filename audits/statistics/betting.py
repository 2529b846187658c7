"""Betting against a claim, so that an audit may stop as soon as the wealth disproves the claim.

In each run a fair coin selects one of two neighbouring values, and a guess of the coin is made
from the output.  Under (epsilon, delta)-DP, ``P(right) <= e^eps P(wrong) + delta`` for the guesses
on any set of outputs.  So for a stake ``0 <= f(output) <= most`` on the guess, the factor

    1 + f right - f e^eps wrong - most delta,

has mean at most 1, for any stakes that depend on earlier runs (a stake is a mixture of sets):
under a true claim the wealth, which is the product of the factors, is a supermartingale.  Such
products, and their averages, ever exceed 1/alpha with probability at most alpha.

With delta = 0 and f = p/q - 1, the factor is the likelihood ratio of a guess that is right with
probability p to one that is right with probability q = e^eps / (1 + e^eps).

Several bettors, the *experts*, bet side by side, each by another idea of p.  What counts is the
average of their wealths.

Guesses of a rule that was fixed before its runs can be bet on after them too: a bettor of one stake
has the same wealth in whatever order the runs came, so the counts of guesses say it.

References: Ville (1939); Waudby-Smith & Ramdas (2024).
"""

from __future__ import annotations

import numpy as np

from accountant.numerics import Array
from accountant.numerics.rounding import ULP
from audits.statistics.binomial_bounds import max_correct_probability

# An expert guesses where the learned log-odds exceed the claim's epsilon minus `CLAIM_MARGIN`, and
# stakes as if they exceeded epsilon by the number here.  Learning tells well on which outputs the
# odds exceed the claim, but not by how much; so three sizes are tried.
EXPERT_EXCESSES = (0.12, 0.3, 1.0)
CLAIM_MARGIN = 0.1  # in log-odds
# Larger log-odds above the claim count as these, so that stakes have an upper limit, ``most``, as a
# positive delta needs.
MAX_EXCESS = 5.0
# The stakes on counted guesses, as shares of the most that a wrong guess may cost.  The best share
# is small where epsilon is, or where the claim is broken by little, and near 1 where all guesses
# are right.  Half of Laplace noise of epsilon 0.1, 1 and 4 has it at 0.05, 0.56 and 0.98.
STAKES = np.array([1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 3 / 4, 7 / 8, 15 / 16, 31 / 32])


def log_mean_wealth(log_wealth: Array) -> Array:
    """Logarithm of the average wealth of experts (the first axis) that began with equal shares."""
    top = np.max(log_wealth, axis=0)
    result: Array = top + np.log(np.mean(np.exp(log_wealth - top), axis=0))
    return result


def expert_odds(log_odds: Array, epsilon: float, *, exact: bool) -> Array:
    """How far each expert takes the log-odds of a guess to exceed the claim's, one row per expert.

    0 means no stake.  If the log-odds are ``exact``, computed from densities and not learned, there
    is one expert.
    """
    excess = np.minimum(np.abs(log_odds) - epsilon, MAX_EXCESS)
    if exact:
        return np.maximum(excess, 0.0)[None, :]
    return np.stack([np.where(excess > -CLAIM_MARGIN, size, 0.0) for size in EXPERT_EXCESSES])


def log_growth(excess: Array, right: Array, epsilon: float, delta: float) -> Array:
    """Logarithm of each run's factor for every expert; ``right`` marks the right guesses.

    ``excess`` is by how much the expert takes the log-odds to exceed epsilon, as `expert_odds`
    returns it.
    """
    q = max_correct_probability(epsilon)
    odds = q / (1 - q)  # e^eps
    stake = 1 / (1 + np.exp(-(excess + epsilon))) / q - 1
    scale, largest_stake = 1.0, 0.0
    if delta:
        # The factor is least for a wrong guess with the greatest stake L: 1 - L e^eps - L delta,
        # where L e^eps < 1.  All stakes are scaled so that it stays above zero; the 1e-6 keeps the
        # division safe where L e^eps rounds to 1.
        largest_stake = 1 / (1 + np.exp(-(MAX_EXCESS + epsilon))) / q - 1
        scale = 1 / (1 + largest_stake * delta / max(1 - largest_stake * odds, 1e-6))
    stake = stake * scale
    gain = np.where(right, stake, -stake * odds)
    result: Array = np.log(np.maximum(1 + gain - largest_stake * scale * delta, 1e-300))
    return result


def log_wealth_of_counts(
    correct: int, made: int, runs: int, epsilon: float, leak_rate: float
) -> Array:
    """Logarithm of the wealth of each of `STAKES` after counted guesses, rounded down.

    A rule that was fixed before made ``made`` guesses in ``runs`` runs.  Under the claim, P(right)
    is at most e^epsilon P(wrong) + ``leak_rate`` in each run: delta, or half of it for a rule that
    guesses only one of the two values.
    """
    # A wrong guess costs 1 - f (e^eps + leak_rate), which is 1 minus the share of the stake.
    stakes = STAKES * np.exp(-epsilon) / (1 + leak_rate * np.exp(-epsilon))
    terms = np.stack(
        [
            correct * np.log1p(stakes * (1 - leak_rate)),
            (made - correct) * np.log1p(-STAKES),
            (runs - made) * np.log1p(-stakes * leak_rate),
        ]
    )
    result: Array = terms.sum(axis=0) - 16 * ULP * np.abs(terms).sum(axis=0)
    return result
