"""Many coins in one run: epsilon from guesses of bits that one output hides together.

Record i is put into the data by a fair coin S_i of its own.  A rule guesses some of the coins from
the output; for any event B of the output and the other coins, and a claim (epsilon, delta),

    P(right about i, B) <= e^eps P(wrong about i, B) + leak / m,

with m the number of coins; the leak is m delta if a rule guesses both ways, and m delta / 2 if it
only guesses "in" or only "out".  Of r guesses R are right.  Two bounds follow for any dependence
between the guesses; r may not depend on the coins, but which coins are guessed, and how, may depend
on all scores.

- At one (epsilon, delta) let q = e^eps / (1 + e^eps), T(v) the probability that Bin(r, q) is at
  least v, and t(v) that it is v.  Then P(R >= v) <= T(v) + (1 - T(v)) min(1, leak T(v) / (v t(v))),
  which a mechanism attains.
- A claim of a whole curve is one claim for each of its lines, an epsilon with its leak.  All lines
  together bound P(R >= v), from v downwards.

References: Steinke, Nasr & Jagielski (2023), Theorem 5.2, for the first with a larger leak term;
Mahloujifar, Melis & Chaudhuri (2024) for curves; docs/proofs/one_run.md for both.
"""

from __future__ import annotations

import math

import numpy as np

from accountant.numerics import Array
from accountant.numerics.search import furthest_that
from audits.statistics.binomial_bounds import clopper_pearson_lower

# The search for epsilon ends here: to prove more would take about e^60 right guesses.
MOST_EPSILON = 60.0
# Relative; the rounding errors of tails, masses and sums are smaller, for up to 10^8 guesses.
FLOAT_ERROR = 1e-6


def epsilon_lower_one_run(right: int, coins: int, delta: float, alpha: float) -> float:
    """Return a lower bound on epsilon at ``delta``, of confidence ``1 - alpha``.

    Every coin is guessed, ``right`` of them rightly.
    """
    if coins == 0 or alpha <= 0:
        return 0.0
    leak = coins * delta
    if leak == 0:  # Clopper & Pearson (1934): exact in closed form
        chance = float(clopper_pearson_lower(np.array(float(right)), np.array(float(coins)), alpha))
        chance *= 1 - 1e-12  # more than the rounding error of this bound
        return max(math.log(chance) - math.log1p(-chance), 0.0) if chance > 0 else 0.0
    epsilon = furthest_that(
        lambda e: tail_of_right_guesses(right, coins, e, np.full(e.shape, leak)) <= alpha,
        np.zeros(1),
        np.full(1, MOST_EPSILON),
    )
    return float(epsilon[0])


def tail_of_right_guesses(
    right: Array | int, guesses: Array | int, epsilons: Array, leaks: Array
) -> Array:
    """Return an upper bound on the chance of at least ``right`` right guesses; 1 for ``right`` 0.

    It is the first bound of the module's docstring, elementwise.
    """
    from scipy.special import bdtrc

    v, r = np.maximum(right, 1.0), np.asarray(guesses, dtype=float)
    q = 1 / (1 + np.exp(-epsilons))
    tail = np.minimum(bdtrc(v - 1, r.astype(np.int64), q) * (1 + FLOAT_ERROR), 1.0)
    # T(v) / t(v), the tail over its first mass, is 1 + s + s s' + ... with falling factors, the
    # first one s = (r-v) e^eps / (v+1): at most 1 / (1 - s).  The smaller of the quotient and this
    # bound is taken, as the mass may be too small for a float.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        first_factor = (r - v) / (v + 1) * np.exp(epsilons)
        geometric = np.where(first_factor < 1, 1 / (1 - first_factor), np.inf)
        mass = np.exp(_log_mass(v, r, epsilons))
        quotient = np.where(mass > 1e-280, tail / mass, np.inf)  # far above the least normal float
        added_share = leaks / v * np.minimum(quotient, geometric) * (1 + FLOAT_ERROR)
    added_share = np.where(leaks > 0, np.minimum(added_share, 1.0), 0.0)
    total = np.minimum(tail + (1 - tail) * added_share, 1.0)
    bound: Array = np.where(np.asarray(right) > 0, total, 1.0)
    return bound


def refutes_curve(right: int, guesses: int, epsilons: Array, leaks: Array, alpha: float) -> bool:
    """Return whether at least ``right`` right guesses have a chance <= ``alpha`` under the curve.

    The curve is given by lines, ``epsilons`` falling, each with its leak.  True is proved; False
    says only that the curve could not be refuted.
    """
    if np.any(tail_of_right_guesses(right, guesses, epsilons, leaks) <= alpha):
        return True  # one line is enough
    # R is the number of right guesses.  Suppose that P(R >= right) is alpha.  ``rights`` and
    # ``wrongs`` are the expected numbers of right and of wrong guesses in the event R >= k, for k
    # from ``right`` downwards, in the case that the curve allows most easily.  At first that is
    # R = right, with the fewest right and the most wrong guesses.  Then for each k:
    # - Each line asks that the wrong guesses in R >= k be at least
    #       e^-epsilon (the right guesses in R >= k + 1 - leak).
    #   The line that asks for most is sought from the last one on: epsilons fall, and with more
    #   right guesses a later line asks for more.
    # - The wrong guesses that are missing come from R = k, with k right guesses for each
    #   guesses - k wrong ones.
    # The curve is refuted if the numbers of right and wrong guesses exceed all guesses.
    slopes, offsets = np.exp(-epsilons).tolist(), leaks.tolist()
    rights, wrongs = right * alpha, (guesses - right) * alpha
    last_line, line, rounding_factor = len(slopes) - 1, 0, 1 - FLOAT_ERROR
    for k in range(right - 1, -1, -1):
        least_wrong = (rights * rounding_factor - offsets[line]) * slopes[line]
        while line < last_line:
            by_next_line = (rights * rounding_factor - offsets[line + 1]) * slopes[line + 1]
            if by_next_line < least_wrong:
                break
            line, least_wrong = line + 1, by_next_line
        if least_wrong <= wrongs:
            return False  # the curve allows the guesses: smaller k change nothing
        rights += k / (guesses - k) * (least_wrong - wrongs)
        wrongs = least_wrong
        if rights + wrongs > guesses * (1 + FLOAT_ERROR):
            return True  # the chances would sum to more than one
    return False


def _log_mass(right: Array, guesses: Array, epsilons: Array) -> Array:
    """Return ``ln P(Bin(guesses, q) = right)``, q = e^eps / (1 + e^eps)."""
    from scipy.special import gammaln

    log_coefficient = gammaln(guesses + 1) - gammaln(right + 1) - gammaln(guesses - right + 1)
    mass: Array = log_coefficient + right * epsilons - guesses * np.logaddexp(0.0, epsilons)
    return mass
