"""What sampled Gaussians give back at most where another one has a large-loss event.

Proof: `docs/proofs/sampled_gaussian.md`, certain violations.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from accountant.amplification.sampled_gaussian.sampled_gaussian_cgf import SampledGaussian

REST_CHANCE = 1e-13  # times what is less than delta
SMALL_MU, SMALL_RATE = 0.6, 0.05  # closed bounds are then close
LEAST_VARIANCE = 1e-280  # far from what a float can be
SMALL_EXPONENT = 1e-3
ORDERS = np.geomspace(0.1, 1e3, 64)  # of Chernoff's bound, over what a normal sum would take


@functools.lru_cache(maxsize=64)
def least_return(members: tuple[tuple[float, float, int], ...]) -> float:
    """Return what all releases but one are above the negative of, under Q, but for 1e-13.

    ``members``: the mu, the rate and the count of each kind of release.
    """
    # Q(sum L < -s) <= prod_i (E_Q r_i^-t)^n_i e^-ts, and no factor is below 1: one release may
    # stay among the others
    nats = -math.log(REST_CHANCE)
    if len(members) == 1:
        return _return_of_equal(*members[0], nats)
    mu, rate, count = (np.array(column, dtype=float) for column in zip(*members, strict=True))
    b = -np.log1p(-rate)
    largest_return = float(np.sum(count * b) - np.min(b))
    ratio_excess = rate * np.expm1(-mu * mu / 2)
    variance = (rate / (1 - rate)) ** 2 * np.expm1(mu * mu)
    slope = mu * rate * np.exp(-mu * mu / 2) / (1 + ratio_excess)
    # the least of three bounds on ln E_Q r^-t for each release: L >= -b, a tangent to L, and the
    # variance of r
    t = ORDERS[:, None] * math.sqrt(nats / max(float(np.sum(count * slope**2)), LEAST_VARIANCE))
    with np.errstate(over="ignore", invalid="ignore"):
        by_tangent = -t * np.log1p(ratio_excess) + (t * slope) ** 2 / 2
        # (e^x - 1 - x) / x^2 is at most (1 + x) / 2 for small x, where it would cancel
        x = t * b
        growth = np.where(x < SMALL_EXPONENT, (1 + x) / 2, (np.expm1(x) - x) / (x * x))
        by_variance = variance * (t / 2 + t * t * growth)
        log_moment = np.fmin(np.fmin(by_tangent, by_variance), t * b)
    bounds = (np.sum(count * log_moment, axis=1) + nats) / t[:, 0]
    return min(largest_return, float(np.min(bounds))) * (1 + 1e-12)


def _return_of_equal(mu: float, rate: float, releases: int, nats: float) -> float:
    """Return the same of equal releases, by their cumulant where closed bounds are not close."""
    count = releases - 1
    largest_return = -count * math.log1p(-rate) if rate < 1 else math.inf
    if count == 0:
        return 0.0
    if mu <= SMALL_MU and rate < SMALL_RATE:
        return min(largest_return, _return_by_moments(mu, rate, count, nats))
    t = np.geomspace(1e-2, 1e3, 12) / (rate * min(mu, 1.0) * math.sqrt(releases))
    gaussian = SampledGaussian(mu, rate, True)
    with np.errstate(over="ignore", invalid="ignore"):
        estimates = (count * gaussian.rough_cgf(t) + nats) / t
    best = int(np.argmin(np.where(np.isfinite(estimates), estimates, np.inf)))
    if estimates[best] > largest_return:
        return largest_return
    value, error = gaussian.cgf(t[[best]])
    bound = float((count * (value + error) + nats)[0]) / float(t[best])
    return min(largest_return, bound) if math.isfinite(bound) else largest_return


def _return_by_moments(mu: float, rate: float, n: int, nats: float) -> float:
    """Return an ``s`` with ``Q(sum of n losses < -s) <= e^-nats``, close for small mu and rates.

    By a tangent to the loss, which is convex in the output, or by Bernstein's inequality.
    """
    # L(x) >= L(0) + L'(0) x:  ln E r^-t <= -t L(0) + (t L'(0))^2 / 2
    ratio_excess = rate * math.expm1(-mu * mu / 2)
    slope = mu * rate * math.exp(-mu * mu / 2) / (1 + ratio_excess)
    by_tangent = slope * math.sqrt(2 * nats * n) - n * math.log1p(ratio_excess)
    # r = 1 + W, -ln r <= b = -ln(1-q), <= -W + (W/(1-q))^2 / 2, and its square <= (W/(1-q))^2:
    # ln E r^-t <= v (t/2 + (e^{tb} - 1 - tb) / b^2), v the variance of W over (1-q)^2
    b, v = -math.log1p(-rate), (rate / (1 - rate)) ** 2 * math.expm1(mu * mu)
    if not v > LEAST_VARIANCE:
        return by_tangent
    t = min(math.sqrt(2 * nats / (n * v)), 2 / b)
    by_variance = n * v * (1 / 2 + (math.expm1(t * b) - t * b) / (t * b * b)) + nats / t
    return min(by_tangent, by_variance)
