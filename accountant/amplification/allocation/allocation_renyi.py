"""Rényi divergences of Gaussian noise in one of many steps, as upper bounds.

With S a sum of t log-normal variables of mean 1: E(S/t)^n with the record, a power of a power
series, and E(S/t)^-p without it, a Gamma integral of the transform of S.
Proof: `docs/proofs/random_allocation.md`.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from accountant.amplification.allocation.lognormal_cells import law_above
from accountant.numerics import Array
from accountant.numerics.logspace import log1p, logsumexp
from accountant.numerics.ordered_sums import ordered_dot
from accountant.numerics.rounding import ACCURACY, ULP, round_up_square

MAX_ORDER = 64
LEAST_POWER = 0.5
REACH = 12.0  # of the normal variable, of cells
TILTS = np.geomspace(0.01, 1e10, 240)  # of Chernoff's bound
MAX_ROWS = 2**11
EFOLDINGS = 34.0  # of what the trapezoid rule misses
# values of mu of the transform: below, its step misses more than mu^2; beyond, it is long
OF_TRANSFORM = (1e-6, 25.0)
LARGEST_SQUARED = 1e150


def renyi_present(mu: float, steps: int, order: Array) -> Array:
    """Return the divergence of the data with the record from those without, rounded up."""
    # ln E(S/t)^a is convex in a: a chord between whole orders is above it
    logs = log_moments(mu, steps)
    chord = np.interp(order, np.arange(logs.size), logs) / (order - 1)
    return np.where(order <= MAX_ORDER, chord, np.inf)


def renyi_absent(mu: float, steps: int, order: Array) -> Array:
    """Return the divergence of the data without the record from those with it, rounded up."""
    from scipy.special import gammaln

    # S/t is not below the geometric mean:  E(S/t)^-p <= (E V^{-p/t})^t = e^{p (1 + p/t) mu^2 / 2}
    plain: Array = (1 + (order - 1) / steps) * round_up_square(mu, 2) * (1 + 4 * ULP)
    if not OF_TRANSFORM[0] <= mu <= OF_TRANSFORM[1]:
        return plain
    p = np.maximum(np.ravel(order) - 1, LEAST_POWER)  # a divergence grows with its order
    y, power, h, missed = _transform(mu, steps)
    size = np.multiply.outer(p, y) + power
    top, at = size.max(axis=1), size.argmax(axis=1)
    # log-concave in y: beyond the ends the terms fall as fast as they last did
    ends = [np.minimum(size[:, i] - size[:, j], -1e-300) for i, j in ((0, 1), (-1, -2))]
    tails = [size[:, i] - np.log(-np.expm1(end)) for i, end in zip((0, -1), ends, strict=True)]
    total = np.logaddexp(np.logaddexp(logsumexp(size, axis=1), tails[0]), tails[1]) + math.log(h)
    log_moment = p * math.log(steps) - gammaln(p) + total + missed
    scale = p * (math.log(steps) + np.abs(y[at])) + np.abs(gammaln(p)) + np.abs(top) + 40
    divergence = (log_moment + 16 * ULP * scale) / p
    inside = (at > 0) & (at < y.size - 1)
    return np.minimum(np.where(inside, divergence, np.inf).reshape(np.shape(order)), plain)


def chernoff_absent(mu: float, steps: int, epsilon: Array) -> Array:
    """Return upper bounds on the logarithm of delta where the record is in the second data set.

    With K = t e^-epsilon it is that of ``E(K - S)_+ / K``, and ``y_+ <= e^{ay - 1} / a``, a > 0.
    """
    log_power = steps * (_log_power_below(mu) + 1e-11)
    log_minimum = np.empty(epsilon.size)
    for start in range(0, epsilon.size, MAX_ROWS):
        block = slice(start, start + MAX_ROWS)
        shift = np.multiply.outer(steps * np.exp(-epsilon[block]), TILTS)
        rounding = 8 * ULP * (shift + np.abs(log_power) + 8)
        log_minimum[block] = np.min(shift - 1 - np.log(TILTS) + log_power + rounding, axis=1)
    bound: Array = log_minimum + epsilon - math.log(steps) + ACCURACY
    return bound


@functools.lru_cache(maxsize=64)
def _log_power_below(mu: float) -> Array:
    """Return upper bounds on ``ln E e^{-aV}`` at the tilts a."""
    value, weight = law_above(mu, REACH)
    log_power: Array = np.log(ordered_dot(np.exp(-np.multiply.outer(TILTS, value)), weight))
    return log_power


@functools.lru_cache(maxsize=64)
def log_moments(mu: float, steps: int) -> Array:
    """Return upper bounds on ``ln E(S/t)^n``, n from 0 to `MAX_ORDER`."""
    n = np.arange(MAX_ORDER + 1)
    if mu > LARGEST_SQUARED:
        return np.where(n < 2, 0.0, np.inf)
    log_factorial = np.array([math.lgamma(k + 1) for k in range(MAX_ORDER + 1)])
    # E S^n = n! [x^n] (sum_j E V^j x^j / j!)^t,  E V^j = e^{mu^2 j (j - 1) / 2}
    base = mu * mu * n * (n - 1) / 2 - log_factorial
    power, exponent, result = base, steps, np.where(n == 0, 0.0, -np.inf)  # of the constant 1
    while exponent:
        if exponent & 1:
            result = _product(result, power)
        exponent >>= 1
        if exponent:
            power = _product(power, power)
    logs = result + log_factorial - n * math.log(steps)
    # a product is exact to an ulp of its logarithms, and errors add up as the powers do
    error = 64 * ULP * steps * (2 + np.abs(base)) + 16 * ULP * n * (1 + math.log(steps))
    log_upper: Array = np.maximum(logs + error, 0.0)
    log_upper[:2] = 0.0
    return log_upper


def _product(left: Array, right: Array) -> Array:
    """Return the logarithms of the coefficients of a product of power series."""
    size = left.size
    degree = np.arange(size)[:, None] - np.arange(size)
    terms = np.where(degree >= 0, left[np.maximum(degree, 0)] + right, -np.inf)
    return logsumexp(terms, axis=1)


@functools.lru_cache(maxsize=64)
def _transform(mu: float, steps: int) -> tuple[Array, Array, float, float]:
    """Return ``y``, ``t ln E e^{-e^y V}``, the step of y, and what the step's rule misses."""
    # e^{t d^2 / 2 mu^2 - 2 pi d / h} of the integral is missed, at most
    d = min(mu * math.sqrt(2 * EFOLDINGS / steps), 1.5)
    h = 2 * math.pi * d / (EFOLDINGS + steps * d * d / (2 * mu * mu))
    low, high = -math.log(steps) - 2 * (EFOLDINGS + 6), 10 * mu + mu * mu / 2 + 7
    h = max(h, (high - low) / 20_000)
    missed = 2 * math.exp(min(steps * d * d / (2 * mu * mu) - 2 * math.pi * d / h, 700.0))
    y = np.arange(low, high, h)
    step = 0.1 * min(1.0, 1 / mu)
    x = np.arange(-12.0, 12.0, step)
    value = np.exp(mu * x - mu * mu / 2)
    mass = step * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    power = np.empty(y.size)
    for start in range(0, y.size, 500):
        block = slice(start, start + 500)
        terms = np.expm1(-np.multiply.outer(np.exp(y[block]), value))
        # what the rule leaves out, and its error: 1e-20
        power[block] = steps * log1p(np.maximum((mass * terms).sum(axis=1), -1 + 1e-16) + 1e-20)
    # where little is left the tail falls as it does there
    significant = power >= -34.0 * steps
    return y[significant], power[significant] * (1 - 64 * ULP), h, math.log1p(missed)
