"""From information to the probability of a right guess: Bernoulli divergences, inverted."""

from __future__ import annotations

import math
from collections.abc import Callable

from accountant.numerics.rounding import LARGEST_BELOW_ONE
from accountant.numerics.search import least_float_that

ROUNDING = 1e-12


def kl(first: float, second: float) -> float:
    """The KL divergence of two Bernoulli distributions by their success probabilities, in nats."""
    # by what they differ: of coins nearly alike the logs would cancel
    more = first - second
    total = first * _log_ratio(first, second, more) if first > 0 else 0.0
    if first < 1:
        total += (1 - first) * _log_ratio(1 - first, 1 - second, -more)
    return total


def _log_ratio(first: float, second: float, more: float) -> float:
    """``ln(first / second)``, of ``more = first - second``."""
    near = abs(more) < second / 2
    return math.log1p(more / second) if near else math.log(first) - math.log(second)


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
