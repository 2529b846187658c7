"""What sampled Gaussians give back at most where another one is a great loss.

Proof: `docs/proofs/sampled_gaussian.md`, sure events.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from accountant.amplification.sampled_gaussian.sampled_gaussian_cgf import SampledGaussian

REST_CHANCE = 1e-13  # times what is less than delta
SMALL_MU, SMALL_RATE = 0.6, 0.05  # closed bounds are then close
LEAST_VARIANCE = 1e-280  # far from what a float can be


@functools.lru_cache(maxsize=64)
def least_return(mu: float, rate: float, count: int) -> float:
    """Return what ``count - 1`` losses are above the negative of, under Q, but for 1e-13."""
    most = -(count - 1) * math.log1p(-rate) if rate < 1 else math.inf
    if count == 1:
        return 0.0
    # Q(sum L < -s) <= (E_Q r^-t)^(n-1) e^-ts
    nats = -math.log(REST_CHANCE)
    if mu <= SMALL_MU and rate < SMALL_RATE:
        return min(most, _return_by_moments(mu, rate, count - 1, nats))
    t = np.geomspace(1e-2, 1e3, 12) / (rate * min(mu, 1.0) * math.sqrt(count))
    others = SampledGaussian(mu, rate, True)
    with np.errstate(over="ignore", invalid="ignore"):
        rough = ((count - 1) * others.rough_cgf(t) - math.log(REST_CHANCE)) / t
    best = int(np.argmin(np.where(np.isfinite(rough), rough, np.inf)))
    if rough[best] > most:
        return most
    value, error = others.cgf(t[[best]])
    bound = float(((count - 1) * (value + error) + nats)[0]) / float(t[best])
    return min(most, bound) if math.isfinite(bound) else most


def _return_by_moments(mu: float, rate: float, n: int, nats: float) -> float:
    """Return an ``s`` with ``Q(sum of n losses < -s) <= e^-nats``, close for small mu and rates.

    By a tangent to the loss, which is convex in the output, or by Bernstein's inequality.
    """
    # L(x) >= L(0) + L'(0) x:  ln E r^-t <= -t L(0) + (t L'(0))^2 / 2
    rest = rate * math.expm1(-mu * mu / 2)
    slope = mu * rate * math.exp(-mu * mu / 2) / (1 + rest)
    by_tangent = slope * math.sqrt(2 * nats * n) - n * math.log1p(rest)
    # r = 1 + W, -ln r <= b = -ln(1-q), <= -W + (W/(1-q))^2 / 2, and its square <= (W/(1-q))^2:
    # ln E r^-t <= v (t/2 + (e^{tb} - 1 - tb) / b^2), v the variance of W over (1-q)^2
    b, v = -math.log1p(-rate), (rate / (1 - rate)) ** 2 * math.expm1(mu * mu)
    if not v > LEAST_VARIANCE:
        return by_tangent
    t = min(math.sqrt(2 * nats / (n * v)), 2 / b)
    by_variance = n * v * (1 / 2 + (math.expm1(t * b) - t * b) / (t * b * b)) + nats / t
    return min(by_tangent, by_variance)
