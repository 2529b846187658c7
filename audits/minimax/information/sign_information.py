"""Information in private reports about a random sign, in nats, and the error of guessing the sign.

Minimax lower bounds use it so: an epsilon-LDP report carries little information, and little
information leaves a large error on each sign of a hard family.

Proofs: `docs/proofs/minimax_mean.md`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from accountant.domains import POSITIVE
from accountant.numerics import Array
from accountant.numerics.rounding import round_up
from accountant.numerics.search import furthest_that

SMALL = 1e-3  # below this epsilon the bound epsilon^2 / 8 is used, as A - 1 - ln A cancels


def posterior_divergence(epsilon: float) -> float:
    """The largest KL divergence of a posterior from its prior under ``epsilon``; rounded up.

    In nats, ``A - 1 - ln A`` with ``A = epsilon / (1 - e^-epsilon)``, for every prior; at most
    ``epsilon^2 / 8``, which it approaches for a small epsilon.
    """
    epsilon = POSITIVE.check("epsilon", epsilon)
    if epsilon < SMALL:
        return round_up(epsilon * epsilon / 8)
    excess = epsilon / -math.expm1(-epsilon) - 1
    # At most ten digits cancel in x - ln(1 + x) for x > 5e-4.
    return round_up(excess - math.log1p(excess), 1e7)


def sign_information(mean: Array) -> Array:
    """KL divergence of a sign of mean m from a fair sign: ``ln 2`` minus its entropy.

    ``((1 + m) ln(1 + m) + (1 - m) ln(1 - m)) / 2``; below m = 0.01 by its series.
    """
    m = np.clip(np.asarray(mean, dtype=float), 0.0, 1.0)
    low = np.where(m < 1, m, 0.0)
    inside = ((1 + low) * np.log1p(low) + (1 - low) * np.log1p(-low)) / 2
    # the two terms cancel if m is small
    series = m**2 * (1 / 2 + m**2 * (1 / 12 + m**2 * (1 / 30 + m**2 / 56)))
    inside = np.where(m < 1e-2, series, inside)
    information: Array = np.where(m < 1, inside, math.log(2))
    return information


def sign_error(information: Array) -> Array:
    """Least ``E (guess - sign)^2`` of a fair sign given information in nats; rounded down.

    ``1 - m^2`` for the m whose `sign_information` is the information.
    """
    nats = np.asarray(information, dtype=float)

    def enough(m: Array) -> NDArray[np.bool_]:
        return np.asarray((sign_information(m) >= nats * (1 + 1e-12)) | (m >= 1))

    magnitude = furthest_that(enough, np.ones_like(nats), np.zeros_like(nats))
    error: Array = np.where(nats >= math.log(2), 0.0, np.maximum(1 - magnitude * magnitude, 0.0))
    return error * (1 - 1e-12)
