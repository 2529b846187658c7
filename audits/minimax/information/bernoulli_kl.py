"""From information to the probability of a right guess: Bernoulli divergences, inverted.

Minimax lower bounds use it so: of many points one is chosen at random, private data carry little
information about it (in nats), and therefore no guess of the point is right with a large
probability.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from accountant.numerics.rounding import LARGEST_BELOW_ONE
from accountant.numerics.search import least_float_that

ROUNDING = 1e-12  # relative: by how much the information and the answer are rounded up


def kl(p: float, q: float) -> float:
    """The KL divergence of two Bernoulli distributions by their success probabilities, in nats."""
    # The logarithms use the difference: for nearly equal coins those of p and q would cancel.
    difference = p - q
    total = p * _log_ratio(p, q, difference) if p > 0 else 0.0
    if p < 1:
        total += (1 - p) * _log_ratio(1 - p, 1 - q, -difference)
    return total


def _log_ratio(p: float, q: float, difference: float) -> float:
    """``ln(p / q)``, where ``difference`` is p - q."""
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
        # kl is a difference of two terms of the size of s - low: its round-off is taken off.
        return rising(s) - 1e-15 * (s - low) > budget * (1 + ROUNDING)

    if not beyond(LARGEST_BELOW_ONE):
        return 1.0
    return min(1.0, least_float_that(beyond, low, 1.0) * (1 + ROUNDING))
