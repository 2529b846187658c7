"""Trapezoid rules for moments of a sampled Gaussian, on the real line and on lines above it.

With r(x) = 1 - rate + rate e^{mu x - mu^2/2} and n the normal density, ``int n r^s dx`` over the
line ``Im x = eta`` does not depend on eta for ``mu |eta| < pi``.  There ``|r^s|`` is
``|r|^{Re s} e^{-Im s arg r}``, which falls with the frequency: no oscillation is left to sum.

References: `docs/proofs/sampled_gaussian.md`; trapezoid rule: Trefethen & Weideman (2014), Thm 5.1.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from accountant.numerics import Array, Complex
from accountant.numerics.logspace import log_mixture, log_mixture_at, logsumexp

TAIL_DEVIATIONS = 9.5  # Phi(-9.5) is 1e-21: what is left out at the sides
RULE_NATS = 46.0  # a rule errs by at most e^-46 = 1e-20 of the moment
MAX_QUADRATURE_POINTS = 8_000  # an order that needs more is out of reach
HIGHEST_LINE = 1.25  # e^{eta^2 / 2} is what a line may add to the round-off
LARGE_POWER = 64.0  # above it a strip is chosen by sums, not by formula
SMALL_SIZE = 2.0  # ln of the integral on a line, over that on the real one
LARGEST_PLACE = 1e4  # no order is answered whose mass lies beyond it


class Line(NamedTuple):
    """A rule on a line or a curve: ``int n r^s dx`` is about ``sum_j e^{log_mass_j + s loss_j}``.

    ``loss_error`` bounds the round-off of a loss, in ulps, and ``missed`` the error of the sum and
    what is left out: relative to the moment at Re s, or to ``sum_j e^{edge_mass_j + s edge_j}``,
    the size of the integrand on the edges of a strip.  ``lost`` is the mass of Q that is cut off.
    """

    x: Any
    loss: Any
    log_mass: Any
    loss_error: Array
    missed: float
    edge: Array | None = None
    edge_mass: Array | None = None
    lost: float = 0.0

    def log_missed(self, powers: Array) -> Array:
        """Return the logarithm of the error at real powers."""
        edge, mass = self.edge, self.edge_mass
        if edge is None or mass is None:
            edge, mass = self.loss.real, self.log_mass.real
        size: Array = logsumexp(powers[:, None] * edge + mass) + math.log(self.missed)
        return size

    def missed_moments(self, powers: Array) -> Array:
        """Return the error at real powers."""
        size: Array = np.exp(np.minimum(self.log_missed(powers), 700.0))
        return size


def log_ratio_at(mu: float, rate: float, x: Any) -> Any:
    """Return ``ln r(x)`` for ``mu |Im x| < pi``; real at real x."""
    loss, share = loss_and_share(mu, rate, x.real)
    if not np.iscomplexobj(x):
        return loss
    if rate == 1:
        return loss + 1j * mu * x.imag
    growth, turn = turned(loss, share, rate, mu * x.imag)
    result: Complex = loss + growth + 1j * turn
    return result


def loss_and_share(mu: float, rate: float, x: Array) -> tuple[Array, Array]:
    """Return ``L = ln r(x)`` and ``w = rate e^y / r``, the chance of a hit, at real x."""
    y = mu * x - mu * mu / 2
    loss = log_mixture(y, rate)
    miss_share = (1 - rate) * np.exp(-loss)
    return loss, np.where(miss_share < 0.5, 1 - miss_share, rate * np.exp(y - loss))


def turned(loss: Array, share: Array, rate: float, angle: Any) -> tuple[Array, Array]:
    """Return ``ln |r(x + ib) / r(x)|`` and ``arg r(x + ib)`` for ``angle = mu b``."""
    miss_share = (1 - rate) * np.exp(-loss)
    turn = np.arctan2(share * np.sin(angle), miss_share + share * np.cos(angle))
    return log_growth(loss, share, rate, angle), turn


def log_growth(loss: Array, share: Array, rate: float, angle: Any) -> Array:
    """Return ``ln |r(x + ib) / r(x)|`` for ``angle = mu b``."""
    # r(x + ib) / r(x) = 1 - w + w e^{i mu b}
    miss_share, half = (1 - rate) * np.exp(-loss), np.sin(angle / 2)
    with np.errstate(divide="ignore", invalid="ignore"):  # on the edge of a strip r may be 0
        growth: Array = np.log1p(np.maximum(-4 * share * miss_share * half * half, -1.0)) / 2
    return growth


def tilted_range(mu: float, rate: float, power: float) -> tuple[float, float]:
    """Return between which ends ``n r^power`` has all but 1e-20 of its integral."""
    if power <= 0:
        # ln(n r^power) is concave, of curvature at least 1: a normal tail beyond its mode
        lowest_mode = power * mu * math.exp(math.log(rate) - mu * mu / 2 - _at_zero(mu, rate))
        x = np.linspace(max(lowest_mode, -LARGEST_PLACE), 0.0, 129)
        y = mu * x - mu * mu / 2
        rising = power * mu * rate * np.exp(y - log_mixture(y, rate)) > x
        at = max(int(np.argmin(rising)), 1)
        return float(x[at - 1]) - TAIL_DEVIATIONS, float(x[at]) + TAIL_DEVIATIONS
    # L grows: between two places at most its value at the right one, -x^2/2 that at the left one
    highest_mode = min(mu * power, LARGEST_PLACE)
    x = np.linspace(0.0, highest_mode + TAIL_DEVIATIONS, 257)
    tilt = power * log_mixture(mu * x - mu * mu / 2, rate)
    size = tilt[1:] - x[:-1] ** 2 / 2
    top = float(np.max(tilt - x * x / 2))
    small = size <= top - TAIL_DEVIATIONS**2 / 2 - math.log1p(highest_mode)
    significant = np.flatnonzero(~small)
    return -TAIL_DEVIATIONS, float(x[min(int(significant[-1]) + 1 if significant.size else 1, 256)])


def _at_zero(mu: float, rate: float) -> float:
    return log_mixture_at(-mu * mu / 2, rate)


def real_step(mu: float) -> float:
    """Return the step of a rule on the real line for powers that are not negative."""
    # |r(x + id)| <= r(x): the error is at most 2 e^{d^2/2} / (e^{2 pi d / h} - 1), d < pi / mu
    d = min(0.999 * math.pi / mu, math.sqrt(2 * RULE_NATS))
    return 2 * math.pi * d / (RULE_NATS + math.log(2) + d * d / 2)


@functools.lru_cache(maxsize=256)
def real_line(mu: float, rate: float, power: float) -> Line | None:
    """Return a rule for real powers from 0 to ``power``; None where it has too many points."""
    low, high = tilted_range(mu, rate, power)
    if not (high - low) / real_step(mu) <= MAX_QUADRATURE_POINTS:
        return None
    if power >= 0:
        x = _straight(low, high, real_step(mu))
        return rule_on(mu, rate, x, real_step(mu), math.exp(-RULE_NATS))
    # |r(x + id)| >= r(x) cos(mu d / 2); where that is too little, it is summed
    widths = np.minimum(math.pi / mu * np.array([0.9, 0.5, 0.2, 0.06]), 6.0)
    growth = widths**2 / 2 + power * np.log(np.cos(mu * widths / 2))
    if power < -LARGE_POWER:
        growth = np.maximum(log_size_on(mu, rate, power, widths, low, high), widths**2 / 2)
    steps = 2 * math.pi * widths / (RULE_NATS + math.log(4) + growth)
    step, d = float(np.max(steps)), float(widths[np.argmax(steps)])
    low, high = min(low, -TAIL_DEVIATIONS), max(high, TAIL_DEVIATIONS)
    if not (high - low) / step <= MAX_QUADRATURE_POINTS:
        return None
    if power >= -LARGE_POWER:
        return rule_on(mu, rate, _straight(low, high, step), step, math.exp(-RULE_NATS))
    missed = 4 * math.exp(d * d / 2 - 2 * math.pi * d / step)
    line = rule_on(mu, rate, _straight(low, high, step), step, missed)
    return line._replace(
        edge=log_ratio_at(mu, rate, line.x + 1j * d).real, edge_mass=line.log_mass.real
    )


@functools.lru_cache(maxsize=64)
def raised_line(mu: float, rate: float, power: float) -> Line | None:
    """Return a rule for all ``s`` with ``Re s = power``, whatever Im s >= 0.

    Where the power is negative the line lies below the real one, and Im s <= 0.
    """
    low, high = tilted_range(mu, rate, power)
    shares = np.array([0.49, 0.3, 0.15, 0.07, 0.03, 0.01])
    heights = np.minimum(shares * math.pi / mu, HIGHEST_LINE)
    # the strip reaches from the real line to twice the height
    sizes, growths = heights**2 / 2, 2 * heights**2
    if power < 0:
        sizes = log_size_on(mu, rate, power, heights, low, high)
        growths = log_size_on(mu, rate, power, 2 * heights, low, high)
    at = int(np.argmax(sizes <= SMALL_SIZE)) if np.any(sizes <= SMALL_SIZE) else -1
    height, size = float(heights[at]), float(sizes[at])
    # as exact at a real power as a real line, although its terms are e^size times as large
    nats = RULE_NATS + 2 * size
    step = 2 * math.pi * height / (nats + math.log(4) + max(float(growths[at]), 0.0))
    if not (high - low) / step <= MAX_QUADRATURE_POINTS:
        return None
    x = _straight(low, high, step) + 1j * math.copysign(height, power)
    return rule_on(mu, rate, x, step, math.exp(size - nats))


def log_size_on(
    mu: float, rate: float, power: float, heights: Array, low: float, high: float
) -> Array:
    """Return ``ln int |n r^power|`` on lines ``Im x = height``, over that on the real line.

    Or a bound on it, where that is small.
    """
    if power < 0 and mu * float(np.max(heights)) < math.pi / 2:
        # |r(x + ib)| grows with x, and |r(x + ib)| / r(x) falls as long as the share of a hit is
        # below 1/2: the integrand gains most at the right end
        loss, share = loss_and_share(mu, rate, np.array(high))
        if share < 0.5:
            bound: Array = power * log_growth(loss, share, rate, mu * heights) + heights**2 / 2
            if np.all(bound <= SMALL_SIZE):
                return bound
    x = np.linspace(low, high, 160)
    loss, share = loss_and_share(mu, rate, x)
    growth = log_growth(loss, share, rate, mu * heights[:, None])
    # a zero of r counts as e^-700
    off, on = power * np.maximum(loss + growth, -700.0), power * loss
    size: Array = logsumexp(off - x * x / 2) - logsumexp(on - x * x / 2) + heights**2 / 2
    return size


def rule_on(mu: float, rate: float, x: Any, weight: Any, missed: float) -> Line:
    """Return the rule with these places and weights ``weight n(x)``; real at real places."""
    log_mass = np.log(weight) - x * x / 2 - math.log(2 * math.pi) / 2
    loss = log_ratio_at(mu, rate, x)
    # the exponent y is inexact by ulps of its terms; L moves by dL/dy = rate e^y / r of it
    slope = np.abs(1 - (1 - rate) * np.exp(-loss))
    loss_error = 4 * np.abs(loss) + slope * (2 * mu * np.abs(x) + mu * mu)
    return Line(x, loss, log_mass, loss_error, missed)


def _straight(low: float, high: float, step: float) -> Array:
    # not `arange(low, high, step)`, whose spacing is rounded at the size of `low`
    places: Array = low + step * np.arange(math.ceil((high - low) / step) + 1.0)
    return places
