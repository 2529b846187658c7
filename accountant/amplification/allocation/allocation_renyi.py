"""Rényi divergences and Chernoff bounds of Gaussian noise in one random step of t, rounded up.

The likelihood ratio of the epoch is S / t, S a sum of t = ``steps`` independent V = e^{mu x -
mu^2/2}, x standard normal without the record.  A divergence of order a is

    ln E(S / t)^a / (a - 1)         the record is removed,
    ln E(S / t)^{1 - a} / (a - 1)   it is added.

At whole a the first moment is a coefficient of a power of a power series.  With p = a - 1 the
second is a Gamma integral of the Laplace transform of V,

    E S^-p = (1 / Gamma(p)) int_-oo^oo e^{py} (E e^{-e^y V})^t dy.

Proof: `docs/proofs/random_allocation.md`, Rényi divergences.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from accountant.numerics import Array
from accountant.numerics.lognormal_lattice import law_above
from accountant.numerics.logspace import log1p, logsumexp
from accountant.numerics.ordered_sums import ordered_dot
from accountant.numerics.rounding import ACCURACY, ULP, round_up_square

MAX_ORDER = 64  # largest order of a bound where the record is removed: time grows with its square
# A smaller power p takes the divergence of this one, which is larger.
MIN_POWER = 0.5
REACH = 12.0  # standard deviations of x up to which the law above V, in Chernoff's bound, is listed
# Values of a in Chernoff's bound, each of which gives a valid bound.
TILTS = np.geomspace(0.01, 1e10, 240)
BLOCK_SIZE = 2**11  # epsilons whose bounds at all tilts are in memory together: 4 MB
BLOCK_OF_TRANSFORM = 500  # values of y whose sums over x are in memory together
EFOLDINGS = 34.0  # the trapezoid rule in y misses about e^-34 = 2e-15 of the integral
RULE_POINTS = 20_000  # points of that rule, at the utmost
# Values of mu for which the Gamma integral is computed.  Below them its rule misses more than mu^2,
# and above them it is long.
INTEGRATED_MU = (1e-6, 25.0)
OVERFLOWING_MU = 1e150  # whose square is more than a float


def renyi_present(mu: float, steps: int, order: Array) -> Array:
    """Return the divergence of the data with the record from those without, rounded up."""
    # ln E(S/t)^a is convex in a, so that a chord between two whole orders is above it.
    logs = log_moments(mu, steps)
    chord = np.interp(order, np.arange(logs.size), logs) / (order - 1)
    return np.where(order <= MAX_ORDER, chord, np.inf)


def renyi_absent(mu: float, steps: int, order: Array) -> Array:
    """Return the divergence of the data without the record from those with it, rounded up."""
    from scipy.special import gammaln

    # S/t is at least the geometric mean of the V, so
    # E(S/t)^-p <= (E V^{-p/t})^t = e^{p (1 + p/t) mu^2 / 2}.
    plain: Array = (1 + (order - 1) / steps) * round_up_square(mu, 2) * (1 + 4 * ULP)
    if not INTEGRATED_MU[0] <= mu <= INTEGRATED_MU[1]:
        return plain
    p = np.maximum(np.ravel(order) - 1, MIN_POWER)  # A divergence grows with its order.
    y, log_power, h, log_missed = _log_transform(mu, steps)
    log_terms = np.multiply.outer(p, y) + log_power
    top, top_index = log_terms.max(axis=1), log_terms.argmax(axis=1)
    # The integrand is log-concave in y, so beyond an end the terms fall at least as fast as the two
    # last ones do: a geometric series bounds them.  1e-300 keeps its ratio below 1.
    falls = [np.minimum(log_terms[:, i] - log_terms[:, j], -1e-300) for i, j in ((0, 1), (-1, -2))]
    first_tail, last_tail = (
        log_terms[:, i] - np.log(-np.expm1(fall)) for i, fall in zip((0, -1), falls, strict=True)
    )
    log_sum = np.logaddexp(np.logaddexp(logsumexp(log_terms, axis=1), first_tail), last_tail)
    log_moment = p * math.log(steps) - gammaln(p) + log_sum + math.log(h) + log_missed
    # Each logarithm errs by some ulps of its size; 40 is more than the sizes of all others.
    size = p * (math.log(steps) + np.abs(y[top_index])) + np.abs(gammaln(p)) + np.abs(top) + 40
    divergence = (log_moment + 16 * ULP * size) / p
    # Where the largest term is at an end, the series is no good bound.
    inside = (top_index > 0) & (top_index < y.size - 1)
    return np.minimum(np.where(inside, divergence, np.inf).reshape(np.shape(order)), plain)


def chernoff_absent(mu: float, steps: int, epsilon: Array) -> Array:
    """Return upper bounds on the logarithm of delta where the record is in the second data set.

    With K = t e^-epsilon, delta = E(K - S)_+ / K, and y_+ <= e^{ay - 1} / a for every a > 0, so
    that delta <= e^{aK - 1} (E e^{-aV})^t / (aK).  A law U of `law_above` bounds E e^{-aV}.
    """
    # 1e-11 is more than the round-off of the masses of U.
    log_power = steps * (_log_power_below(mu) + 1e-11)
    log_minimum = np.empty(epsilon.size)
    for start in range(0, epsilon.size, BLOCK_SIZE):
        block = slice(start, start + BLOCK_SIZE)
        shift = np.multiply.outer(steps * np.exp(-epsilon[block]), TILTS)
        rounding = 8 * ULP * (shift + np.abs(log_power) + 8)
        log_minimum[block] = np.min(shift - 1 - np.log(TILTS) + log_power + rounding, axis=1)
    bound: Array = log_minimum + epsilon - math.log(steps) + ACCURACY
    return bound


@functools.lru_cache(maxsize=64)
def _log_power_below(mu: float) -> Array:
    """Return upper bounds on ``ln E e^{-aV}`` at `TILTS`."""
    value, weight = law_above(mu, REACH)
    log_power: Array = np.log(ordered_dot(np.exp(-np.multiply.outer(TILTS, value)), weight))
    return log_power


@functools.lru_cache(maxsize=64)
def log_moments(mu: float, steps: int) -> Array:
    """Return upper bounds on ``ln E(S/t)^n``, n from 0 to `MAX_ORDER`."""
    n = np.arange(MAX_ORDER + 1)
    if mu > OVERFLOWING_MU:  # E(S/t)^0 = E S/t = 1
        return np.where(n < 2, 0.0, np.inf)
    log_factorial = np.array([math.lgamma(k + 1) for k in range(MAX_ORDER + 1)])
    # E S^n = n! [x^n] (sum_j E V^j x^j / j!)^t with E V^j = e^{mu^2 j (j - 1) / 2}; the power by
    # repeated squaring, of logarithms of positive coefficients.
    base = mu * mu * n * (n - 1) / 2 - log_factorial
    power, exponent, result = base, steps, np.where(n == 0, 0.0, -np.inf)  # the constant 1
    while exponent:
        if exponent & 1:
            result = _product(result, power)
        exponent >>= 1
        if exponent:
            power = _product(power, power)
    logs = result + log_factorial - n * math.log(steps)
    # A product errs by some ulps of its logarithms, and the t-th power by t times as much as V's
    # series.  The last term is for log_factorial and n ln t.
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
def _log_transform(mu: float, steps: int) -> tuple[Array, Array, float, float]:
    """Return ``y``, ``t ln E e^{-e^y V}``, the step of y, and ``-ln(1 - the rule's error)``.

    By |E e^{-re^{id} V}| <= e^{d^2 / 2 mu^2} E e^{-rV} for every angle d below pi / 2, the
    trapezoid rule with step h misses at most 2 e^{t d^2 / 2 mu^2 - 2 pi d / h} of the integral.
    """
    d = min(mu * math.sqrt(2 * EFOLDINGS / steps), 1.5)
    h = 2 * math.pi * d / (EFOLDINGS + steps * d * d / (2 * mu * mu))
    # Any ends are valid: what lies beyond them is bounded in `renyi_absent`, from how the terms
    # fall there.
    low, high = -math.log(steps) - 2 * (EFOLDINGS + 6), 10 * mu + mu * mu / 2 + 7
    h = max(h, (high - low) / RULE_POINTS)  # a longer step misses more, which is counted
    missed = 2 * math.exp(min(steps * d * d / (2 * mu * mu) - 2 * math.pi * d / h, 700.0))
    y = np.arange(low, high, h)
    # A trapezoid rule over x, which is the sum of e^{-e^y V} - 1 where that is small, and of
    # e^{-e^y V} itself elsewhere: so nothing cancels.  1e-20 and 1e-30 are more than the errors of
    # these rules and what they leave out beyond |x| = 12.
    step = 0.1 * min(1.0, 1 / mu)
    x = np.arange(-12.0, 12.0, step)
    value = np.exp(mu * x - mu * mu / 2)
    mass = step * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    log_transform = np.empty(y.size)
    for start in range(0, y.size, BLOCK_OF_TRANSFORM):
        block = slice(start, start + BLOCK_OF_TRANSFORM)
        exponents = -np.multiply.outer(np.exp(y[block]), value)
        below_one = (mass * np.expm1(exponents)).sum(axis=1)
        is_small = below_one < -0.5
        logs = log1p(np.maximum(below_one, -0.5) + 1e-20)
        logs[is_small] = np.log((mass * np.exp(exponents[is_small])).sum(axis=1) + 1e-30)
        log_transform[block] = logs
    # A relative error of e^y V counts at most as much in ln E e^{-e^y V}, which is convex and 0 at
    # e^y = 0.  That of the exponents y and mu x - mu^2 / 2 is their size in ulps; 64 ulps are more
    # than all other operations err by.
    ulps = 64 + np.abs(y) + 12 * mu + mu * mu
    # Beyond e^{-34 t} the tail is bounded by how it falls there.
    significant = log_transform >= -34.0
    power = steps * log_transform * (1 - ulps * ULP)
    # The error is a share of the integral: at 1 or more the sum says nothing.
    log_missed = -math.log1p(-missed) if missed < 1 else math.inf
    return y[significant], power[significant], h, log_missed
