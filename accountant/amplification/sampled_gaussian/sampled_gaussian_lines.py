"""Trapezoid rules for moments of a sampled Gaussian, on the real line and on lines above it.

The output x is N(0, 1) without the record, n is its density, and r(x) = 1 - rate + rate e^{mu x -
mu^2/2} the likelihood ratio.  The cumulants of the privacy loss ln r are logarithms of moments

    E r^s = int n(x) r(x)^s dx,    s complex,

which does not depend on the line Im x = eta of integration while mu |eta| < pi, where r has its
zeros.  For real s the real line serves.  For complex s, |r^s| = |r|^{Re s} e^{-Im s arg r}: on a
raised line it falls with the frequency Im s, and no oscillation is left to sum.

A rule with step h errs by at most (M+ + M-) / (e^{2 pi d / h} - 1), where M+- are the integrals of
|n r^s| on the edges Im x = eta +- d of a strip (Trefethen & Weideman 2014, Theorem 5.1).  Each
function here bounds M+- by M, a multiple of the moment itself, and chooses h.  Factors 4 stand for
the two edges and the -1.  Proof: `docs/proofs/sampled_gaussian.md`.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from accountant.numerics import Array, Complex
from accountant.numerics.logspace import log_mixture, log_mixture_at, logsumexp
from accountant.numerics.quadrature import MAX_POINTS

TAIL_DEVIATIONS = 9.5  # Phi(-9.5) is 1e-21: what is left out at the sides
RULE_NATS = 46.0  # a rule errs by at most e^-46 = 1e-20 of the moment
HIGHEST_LINE = 1.25  # eta: e^{eta^2 / 2} = 2.2 is what a line may add to the round-off
# Below the power p = -64 the bound M <= cos(mu d / 2)^p E r^p asks for a far too short step, so
# that M is summed instead.
SUMMED_STRIP_POWER = 64.0
# ln of the integral of |n r^s| on a raised line, over that on the real one, at most: on a higher
# line longer steps do, but its larger terms add to the round-off.
MAX_LOG_SIZE = 2.0
FARTHEST_OUTPUT = 1e4  # x; an order whose mass lies beyond it is out of reach


class Line(NamedTuple):
    """A rule on a line or a curve: ``int n r^s dx`` is about ``sum_j e^{log_mass_j + s loss_j}``.

    ``loss_error`` bounds the round-off of each loss, in ulps of 1.  ``missed`` bounds the error of
    the sum and what lies beyond its ends, relative to the moment at Re s; or, where ``edge`` is
    given, to ``sum_j e^{edge_mass_j + Re s edge_j}``, the integral of |n r^s| on the edges of a
    strip.  ``lost`` is the mass of outputs that are cut off (`rules_to_cut`).  The first four
    fields have an entry for each point, the first three of them real on the real line and else
    complex.
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
    """Return ``L = ln r(x)`` and ``w = rate e^y / r`` at real x, where y = mu x - mu^2 / 2.

    The share w is the chance that the record was sampled, given the output x.
    """
    y = mu * x - mu * mu / 2
    loss = log_mixture(y, rate)
    # 1 - w = (1 - rate) / r is exact where w is near 1.
    miss_share = (1 - rate) * np.exp(-loss)
    return loss, np.where(miss_share < 0.5, 1 - miss_share, rate * np.exp(y - loss))


def turned(loss: Array, share: Array, rate: float, angle: Any) -> tuple[Array, Array]:
    """Return ``ln |r(x + ib) / r(x)|`` and ``arg r(x + ib)`` for ``angle = mu b``."""
    # r(x + ib) / r(x) = 1 - w + w e^{i mu b}
    miss_share = (1 - rate) * np.exp(-loss)
    turn = np.arctan2(share * np.sin(angle), miss_share + share * np.cos(angle))
    return log_growth(loss, share, rate, angle), turn


def log_growth(loss: Array, share: Array, rate: float, angle: Any) -> Array:
    """Return ``ln |r(x + ib) / r(x)|`` for ``angle = mu b``."""
    # |1 - w + w e^{i mu b}|^2 = 1 - 4 w (1 - w) sin^2(mu b / 2)
    miss_share, sine = (1 - rate) * np.exp(-loss), np.sin(angle / 2)
    with np.errstate(divide="ignore", invalid="ignore"):  # On the edge of a strip r may be 0.
        growth: Array = np.log1p(np.maximum(-4 * share * miss_share * sine * sine, -1.0)) / 2
    return growth


def tilted_range(mu: float, rate: float, power: float) -> tuple[float, float]:
    """Return between which ends ``n r^power`` has all but 1e-20 of its integral."""
    if power <= 0:
        # ln(n r^power) is concave, of curvature at least 1: beyond its mode it falls as a normal
        # density does.  At the mode power L'(x) = x, and L'(x) is at most L'(0) for x < 0.
        log_ratio_at_0 = log_mixture_at(-mu * mu / 2, rate)
        lowest_mode = power * mu * math.exp(math.log(rate) - mu * mu / 2 - log_ratio_at_0)
        x = np.linspace(max(lowest_mode, -FARTHEST_OUTPUT), 0.0, 129)
        y = mu * x - mu * mu / 2
        rises = power * mu * rate * np.exp(y - log_mixture(y, rate)) > x
        after_mode = max(int(np.argmin(rises)), 1)
        return float(x[after_mode - 1]) - TAIL_DEVIATIONS, float(x[after_mode]) + TAIL_DEVIATIONS
    # L rises and -x^2/2 falls: between two points the integrand is at most e^{power L} at the
    # right one times e^{-x^2/2} at the left one.
    highest_mode = min(mu * power, FARTHEST_OUTPUT)
    x = np.linspace(0.0, highest_mode + TAIL_DEVIATIONS, 257)
    log_power = power * log_mixture(mu * x - mu * mu / 2, rate)
    log_size = log_power[1:] - x[:-1] ** 2 / 2
    top = float(np.max(log_power - x * x / 2))
    is_negligible = log_size <= top - TAIL_DEVIATIONS**2 / 2 - math.log1p(highest_mode)
    significant = np.flatnonzero(~is_negligible)
    return -TAIL_DEVIATIONS, float(x[min(int(significant[-1]) + 1 if significant.size else 1, 256)])


def real_step(mu: float) -> float:
    """Return the step of a rule on the real line for powers that are not negative."""
    # |r(x + id)| <= r(x), so that M <= e^{d^2/2} E r^p: the rule errs by at most
    # 2 e^{d^2/2} / (e^{2 pi d / h} - 1) of the moment, d < pi / mu.
    d = min(0.999 * math.pi / mu, math.sqrt(2 * RULE_NATS))
    return 2 * math.pi * d / (RULE_NATS + math.log(2) + d * d / 2)


@functools.lru_cache(maxsize=256)
def real_line(mu: float, rate: float, power: float) -> Line | None:
    """Return a rule for real powers from 0 to ``power``; None where it has too many points."""
    low, high = tilted_range(mu, rate, power)
    if not (high - low) / real_step(mu) <= MAX_POINTS:
        return None
    if power >= 0:
        x = _straight(low, high, real_step(mu))
        return rule_on(mu, rate, x, real_step(mu), math.exp(-RULE_NATS))
    # |r(x + id)| >= r(x) cos(mu d / 2) bounds M; where that is too much, M is summed.
    half_widths = np.minimum(math.pi / mu * np.array([0.9, 0.5, 0.2, 0.06]), 6.0)
    growth = half_widths**2 / 2 + power * np.log(np.cos(mu * half_widths / 2))
    if power < -SUMMED_STRIP_POWER:
        growth = np.maximum(
            log_size_on(mu, rate, power, half_widths, low, high), half_widths**2 / 2
        )
    steps = 2 * math.pi * half_widths / (RULE_NATS + math.log(4) + growth)
    step, d = float(np.max(steps)), float(half_widths[np.argmax(steps)])
    low, high = min(low, -TAIL_DEVIATIONS), max(high, TAIL_DEVIATIONS)
    if not (high - low) / step <= MAX_POINTS:
        return None
    if power >= -SUMMED_STRIP_POWER:
        return rule_on(mu, rate, _straight(low, high, step), step, math.exp(-RULE_NATS))
    missed = 4 * math.exp(d * d / 2 - 2 * math.pi * d / step)
    line = rule_on(mu, rate, _straight(low, high, step), step, missed)
    return line._replace(
        edge=log_ratio_at(mu, rate, line.x + 1j * d).real, edge_mass=line.log_mass.real
    )


@functools.lru_cache(maxsize=64)
def raised_line(mu: float, rate: float, power: float) -> Line | None:
    """Return a rule for all ``s`` with ``Re s = power``, whatever Im s >= 0; None out of reach.

    Where the power is negative the line lies below the real one, and Im s <= 0.
    """
    low, high = tilted_range(mu, rate, power)
    shares = np.array([0.49, 0.3, 0.15, 0.07, 0.03, 0.01])  # of pi / mu, where r has its zeros
    heights = np.minimum(shares * math.pi / mu, HIGHEST_LINE)
    # The strip reaches from the real line to twice the height, where the frequency 0 is the worst:
    # growths is ln M there.
    sizes, growths = heights**2 / 2, 2 * heights**2
    if power < 0:
        sizes = log_size_on(mu, rate, power, heights, low, high)
        growths = log_size_on(mu, rate, power, 2 * heights, low, high)
    highest = int(np.argmax(sizes <= MAX_LOG_SIZE)) if np.any(sizes <= MAX_LOG_SIZE) else -1
    height, size = float(heights[highest]), float(sizes[highest])
    # The rule is as exact at real s as a real line's, although its terms are e^size times as large.
    nats = RULE_NATS + 2 * size
    step = 2 * math.pi * height / (nats + math.log(4) + max(float(growths[highest]), 0.0))
    if not (high - low) / step <= MAX_POINTS:
        return None
    x = _straight(low, high, step) + 1j * math.copysign(height, power)
    return rule_on(mu, rate, x, step, math.exp(size - nats))


def log_size_on(
    mu: float, rate: float, power: float, heights: Array, low: float, high: float
) -> Array:
    """Return ``ln int |n r^power|`` on lines ``Im x = height``, over that on the real line.

    A quick bound on it is enough where that is at most `MAX_LOG_SIZE`.
    """
    if power < 0 and mu * float(np.max(heights)) < math.pi / 2:
        # |r(x + ib)| grows with x, and |r(x + ib)| / r(x) falls with x while w < 1/2: if that is
        # so up to the right end, the integrand gains most there.
        loss, share = loss_and_share(mu, rate, np.array(high))
        if share < 0.5:
            bound: Array = power * log_growth(loss, share, rate, mu * heights) + heights**2 / 2
            if np.all(bound <= MAX_LOG_SIZE):
                return bound
    x = np.linspace(low, high, 160)
    loss, share = loss_and_share(mu, rate, x)
    growth = log_growth(loss, share, rate, mu * heights[:, None])
    # A zero of r counts as e^-700, so that its power is a float.
    off, on = power * np.maximum(loss + growth, -700.0), power * loss
    size: Array = logsumexp(off - x * x / 2) - logsumexp(on - x * x / 2) + heights**2 / 2
    return size


def rule_on(mu: float, rate: float, x: Any, weight: Any, missed: float) -> Line:
    """Return the rule with these points and weights ``weight n(x)``; real at real points."""
    log_mass = np.log(weight) - x * x / 2 - math.log(2 * math.pi) / 2
    loss = log_ratio_at(mu, rate, x)
    # y = mu x - mu^2 / 2 is inexact by ulps of its terms; L moves by dL/dy = rate e^y / r of that.
    slope = np.abs(1 - (1 - rate) * np.exp(-loss))
    loss_error = 4 * np.abs(loss) + slope * (2 * mu * np.abs(x) + mu * mu)
    return Line(x, loss, log_mass, loss_error, missed)


def _straight(low: float, high: float, step: float) -> Array:
    # Not `arange(low, high, step)`, whose spacing is rounded at the size of `low`.
    points: Array = low + step * np.arange(math.ceil((high - low) / step) + 1.0)
    return points
