"""From information to the probability of a right guess, by inverting Bernoulli divergences.

kl(p || q) is the Kullback-Leibler divergence in nats between coins with the success probabilities p
and q.  A guess of a point V among ``points`` points is right by chance with probability 1 / points;
bounds on the information about V bound how far above this its probability s can be.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from accountant.numerics.rounding import LARGEST_BELOW_ONE
from accountant.numerics.search import least_float_that

ROUNDING = 1e-12  # relative allowance for rounding errors, in the budget and in the result


def kl(p: float, q: float) -> float:
    """kl(p || q) = p ln(p / q) + (1 - p) ln((1 - p) / (1 - q)), in nats."""
    # The logarithms are computed from p - q, since for nearly equal coins ln p - ln q would cancel.
    difference = p - q
    total = p * _log_ratio(p, q, difference) if p > 0 else 0.0
    if p < 1:
        total += (1 - p) * _log_ratio(1 - p, 1 - q, -difference)
    return total


def _log_ratio(p: float, q: float, difference: float) -> float:
    """``ln(p / q)``, from ``difference = p - q`` where that is small."""
    close = abs(difference) < q / 2
    return math.log1p(difference / q) if close else math.log(p) - math.log(q)


def most_right_given_information(information: float, points: float) -> float:
    """The largest s with ``kl(s || 1 / points) <= information``: Fano's inequality without slack.

    A guess of a uniform V from Z is right with probability at most s, by data processing of
    ``I(V; Z)``.  ``points`` may be any number below the true one.  Rounded up.
    """
    chance = 1 / points
    return _greatest_within(lambda s: kl(s, chance), chance, information)


def most_right_given_divergence(divergence: float, points: float) -> float:
    """The largest s with ``kl(1 / points || s) <= divergence``: Le Cam's method, many points.

    Under a distribution M_0 that does not depend on V a guess is right with probability 1 / points;
    s bounds it under the M_v, by data processing of the mean of ``KL(M_0 || M_v)``.  Rounded up.
    """
    chance = 1 / points
    return _greatest_within(lambda s: kl(chance, s), chance, divergence)


def _greatest_within(rising: Callable[[float], float], low: float, budget: float) -> float:
    """The last point of ``[low, 1]`` at which a rising function is within budget, rounded up."""

    def beyond(s: float) -> bool:
        # kl is a difference of two terms of the size of s - low
        return rising(s) - 1e-15 * (s - low) > budget * (1 + ROUNDING)

    if not beyond(LARGEST_BELOW_ONE):
        return 1.0
    return min(1.0, least_float_that(beyond, low, 1.0) * (1 + ROUNDING))
