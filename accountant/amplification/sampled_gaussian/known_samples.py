"""Samples with nearly no noise: bounds on an epsilon so large that e^epsilon is no float.

A Gaussian is released ``count`` times from Poisson samples, each of which holds the record with
probability q; noise has deviation 1, and the record moves it by mu.  P has the record and Q has
not.  J, the number of samples with the record, is binomial, with p_j = P(J = j).

- Who is told which samples hold the record learns at least as much: for every t

      delta(epsilon(t)) <= sum_j p_j Phi(sqrt(j) mu - t) - e^epsilon(t) Phi(-t),
      e^epsilon(t) = sum_j p_j e^(sqrt(j) mu t - j mu^2 / 2).

- A test may ask whether some j answers have a sum above sqrt(j) t:

      delta(epsilon) >= P(J >= j) Phi(sqrt(j) mu - t) - e^epsilon C(count, j) Phi(-t).

With nearly no noise the samples show anyway, and the two are close.  Proof:
`docs/proofs/sampled_gaussian.md`, "Nearly no noise".
"""

from __future__ import annotations

import math

import numpy as np

from accountant.composition.certificate import Certificate
from accountant.numerics import Array
from accountant.numerics.rounding import ULP

MAX_SAMPLES = 2_000
MAX_ERROR = 1e-3  # of an exponent, by round-off: beyond it nothing is said
# Places of a threshold: how far it lies below sqrt(j) mu, and above it.  Each round of the search
# for the best one is among as many places between the neighbours of the best so far.
BELOW, BEYOND, PLACES, ROUNDS = 9.0, 40.0, 99, 8


def known_samples_interval(mu: float, rate: float, count: int, delta: float) -> Certificate:
    """Return an interval for the epsilon of a removed record at ``delta``.

    Parameters
    ----------
    mu : float
        How far a record in the sample moves an answer, in deviations of its noise; above 0.
    rate : float
        The probability q that a sample holds the record, in (0, 1).
    count : int
        The number of samples, at most `MAX_SAMPLES`.
    delta : float
        Above 0.

    Returns
    -------
    Certificate
        From 0 to infinity where the bounds say nothing.
    """
    from scipy.special import gammaln, log_ndtr

    j = np.arange(count + 1.0)
    log_ways = gammaln(count + 1.0) - gammaln(j + 1) - gammaln(count - j + 1)
    log_mass = log_ways + j * math.log(rate) + (count - j) * math.log1p(-rate)
    far = np.sqrt(j) * mu
    # Each exponent below is a sum of a few terms no larger than this, each right to 8 ulps.
    size = (
        4 * count * (mu * mu + 40 * mu - math.log(rate) - math.log1p(-rate) + math.log(count + 1))
    )
    error = 64 * ULP * (size + 1)

    def log_of_sum(exponents: Array) -> float:
        top = float(exponents.max())
        return top + math.log(float(np.exp(exponents - top).sum()))

    def end_at(t: float) -> float:
        return log_of_sum(log_mass + far * t - far * far / 2)

    def excess(t: float) -> float:
        """Return the bound on delta of threshold t, less delta, as a share of delta."""
        found = math.exp(min(log_of_sum(log_mass + log_ndtr(far - t)) - math.log(delta), 700.0))
        missed = math.exp(min(end_at(t) + float(log_ndtr(-t)) - math.log(delta), 700.0))
        return found * math.exp(error) - missed * math.exp(-error) - 1

    low, high = 0.0, float(far[-1]) + BEYOND
    if error > MAX_ERROR or excess(high) > 0:
        return Certificate(0.0, math.inf, "known samples")
    for _ in range(200):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    upper = max(end_at(high) + error, 0.0)

    log_at_least = np.logaddexp.accumulate(log_mass[::-1])[::-1] - error
    greatest = 0.0
    for k in range(1, count + 1):
        left, right = far[k] - BELOW, far[k] + BEYOND
        for _ in range(ROUNDS):
            places = np.linspace(left, right, PLACES)
            gained = np.exp(log_at_least[k] + log_ndtr(far[k] - places)) * (1 - error) - delta
            ends = np.where(
                gained > 0,
                np.log(np.maximum(gained, 1e-300)) - log_ways[k] - log_ndtr(-places),
                -math.inf,
            )
            best = int(np.argmax(ends))
            greatest = max(greatest, float(ends[best]) - error)
            left, right = places[max(best - 1, 0)], places[min(best + 1, PLACES - 1)]
    return Certificate(min(greatest, upper), upper, "known samples")
