"""Samples with nearly no noise: bounds on an epsilon so large that e^epsilon is no float.

A Gaussian is released ``count`` times from Poisson samples, each of which holds the record with
probability q; noise has deviation 1, and the record moves it by mu.  P has the record and Q has
not.  J, the number of samples with the record, is binomial, with p_j = P(J = j).

- Publishing also which samples hold the record costs at least as much: for every t

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

from accountant.amplification.poisson_sampling import PoissonSampled
from accountant.composition.certificate import Certificate
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.loss import Loss
from accountant.numerics.rounding import MAX_EXPONENT, ULP

# Places of a threshold: how far it lies below sqrt(j) mu, and above it.  Each round of the search
# for the best one is among as many places between the neighbours of the best so far.
BELOW, BEYOND, PLACES, ROUNDS = 9.0, 40.0, 99, 8
NOTHING = Certificate(0.0, math.inf, "known samples")


def known_samples_interval(items: list[tuple[Loss, int]], delta: float) -> Certificate:
    """Return an interval for the epsilon of releases at ``delta``; it may say nothing.

    Parameters
    ----------
    items : list of tuple of Loss and int
        Losses and their counts: something is said of one Gaussian on up to 2,000 Poisson samples,
        whose record is removed.
    delta : float
        Above 0.

    Returns
    -------
    Certificate
        From 0 to infinity where the bounds say nothing.
    """
    match items:
        case [(PoissonSampled() as sampled, count)] if (
            sampled.removes_a_record
            and isinstance(sampled.loss, GaussianLoss)
            and 0 < sampled.rate < 1
            and count <= 2_000  # the bounds below take arrays of so many inclusions
        ):
            return interval_of(sampled.loss.mu, sampled.rate, count, delta)
    return NOTHING


def interval_of(mu: float, rate: float, count: int, delta: float) -> Certificate:
    """Return the interval of one Gaussian, moved by ``mu``, on ``count`` samples."""
    from scipy.special import gammaln, log_ndtr

    inclusions = np.arange(count + 1.0)
    log_ways = gammaln(count + 1.0) - gammaln(inclusions + 1) - gammaln(count - inclusions + 1)
    log_mass = log_ways + inclusions * math.log(rate) + (count - inclusions) * math.log1p(-rate)
    distance = np.sqrt(inclusions) * mu
    # Each exponent below is a sum of a few terms no larger than this, each right to 8 ulps.
    log_chances = math.log(count + 1) - math.log(rate) - math.log1p(-rate)
    size = 4 * count * (mu * mu + BEYOND * mu + log_chances)
    error = 64 * ULP * (size + 1)
    if error > 1e-3:
        return NOTHING

    def end_at(t: float) -> float:
        exponents = log_mass + distance * t - distance * distance / 2
        return float(np.logaddexp.reduce(exponents))

    def excess(t: float) -> float:
        """Return the bound on delta of threshold t, less delta, as a share of delta."""
        log_power = float(np.logaddexp.reduce(log_mass + log_ndtr(distance - t)))
        log_null = end_at(t) + float(log_ndtr(-t))
        power, null = (
            math.exp(min(exponent - math.log(delta), MAX_EXPONENT))
            for exponent in (log_power, log_null)
        )
        return power * math.exp(error) - null * math.exp(-error) - 1

    low_t, high_t = 0.0, float(distance[-1]) + BEYOND
    if excess(high_t) > 0:
        return NOTHING
    while low_t < (middle := (low_t + high_t) / 2) < high_t:
        low_t, high_t = (middle, high_t) if excess(middle) > 0 else (low_t, middle)
    epsilon_upper = max(end_at(high_t) + error, 0.0)

    log_at_least = np.logaddexp.accumulate(log_mass[::-1])[::-1] - error
    epsilon_lower = 0.0
    for j in range(1, count + 1):
        start, end = distance[j] - BELOW, distance[j] + BEYOND
        for _ in range(ROUNDS):
            thresholds = np.linspace(start, end, PLACES)
            log_power = log_at_least[j] + log_ndtr(distance[j] - thresholds)
            gain = np.exp(log_power) * (1 - error) - delta
            log_gain = np.log(np.maximum(gain, 1e-300))
            ends = np.where(gain > 0, log_gain - log_ways[j] - log_ndtr(-thresholds), -math.inf)
            best = int(np.argmax(ends))
            epsilon_lower = max(epsilon_lower, float(ends[best]) - error)
            start, end = thresholds[max(best - 1, 0)], thresholds[min(best + 1, PLACES - 1)]
    return Certificate(min(epsilon_lower, epsilon_upper), epsilon_upper, "known samples")
