"""Information in private reports about a random sign, in nats, and the error of guessing the sign.

A minimax lower bound takes a hard family of data, which independent fair signs choose.  An
epsilon-LDP report carries little information (`posterior_divergence`), and an estimate that has
little information about a sign errs about it (`sign_error`), so that every estimate has a large
error for some member of the family.

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

ROUND_OFF = 1e-12  # relative, and above the error of `sign_information`
SMALL = 1e-3  # below this epsilon the bound epsilon^2 / 8 is used, as A - 1 - ln A cancels


def posterior_divergence(epsilon: float) -> float:
    """The largest KL divergence of posterior from prior, given an epsilon-LDP report; rounded up.

    It is ``A - 1 - ln A`` nats with ``A = epsilon / (1 - e^-epsilon)``: no prior of a user's data
    has a larger one.  It is at most ``epsilon^2 / 8``, which it approaches for a small epsilon.
    """
    epsilon = POSITIVE.check("epsilon", epsilon)
    if epsilon < SMALL:
        return round_up(epsilon * epsilon / 8)
    excess = epsilon / -math.expm1(-epsilon) - 1
    # The excess x is about 5e-4 or more, so that x - ln(1 + x), about x^2 / 2 if x is small, loses
    # about four digits at most.  It is rounded up by more: by 1e7 units in the last place.
    return round_up(excess - math.log1p(excess), 1e7)


def sign_information(mean: Array) -> Array:
    """KL divergence, in nats, of a sign of mean m from a fair sign: ``ln 2`` minus its entropy.

    It is ``((1 + m) ln(1 + m) + (1 - m) ln(1 - m)) / 2``, elementwise for m in [0, 1]; below
    m = 0.01, where the two terms cancel, it is computed by its series in m.  Just above, terms of
    size m cancel to m^2, which leaves the largest relative error: below 1e-13.
    """
    m = np.clip(np.asarray(mean, dtype=float), 0.0, 1.0)
    m_below_one = np.where(m < 1, m, 0.0)
    divergence = (
        (1 + m_below_one) * np.log1p(m_below_one) + (1 - m_below_one) * np.log1p(-m_below_one)
    ) / 2
    series = m**2 * (1 / 2 + m**2 * (1 / 12 + m**2 * (1 / 30 + m**2 / 56)))
    divergence = np.where(m < 1e-2, series, divergence)
    information: Array = np.where(m < 1, divergence, math.log(2))
    return information


def sign_error(information: Array) -> Array:
    """Lower bound on ``E (guess - sign)^2`` of a fair sign, elementwise; rounded down.

    The guess sees data with this much mutual information with the sign, in nats.  The bound is
    ``1 - m^2`` for the m whose `sign_information` is the information, and 0 from ``ln 2`` on.
    """
    nats = np.asarray(information, dtype=float)

    def has_information(m: Array) -> NDArray[np.bool_]:
        return np.asarray((sign_information(m) >= nats * (1 + ROUND_OFF)) | (m >= 1))

    # The search goes down from m = 1, so that it ends above the m of the bound.
    magnitude = furthest_that(has_information, start=np.ones_like(nats), end=np.zeros_like(nats))
    error: Array = np.where(nats >= math.log(2), 0.0, np.maximum(1 - magnitude * magnitude, 0.0))
    return error * (1 - ROUND_OFF)
