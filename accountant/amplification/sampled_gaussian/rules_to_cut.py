"""Trapezoid rules for moments of a sampled Gaussian whose outputs end at a cut.

They run along x(t) = c - w ln(1 + e^-t) + i h / (1 + e^t), which approaches the cut c, and end
where what lies beyond is negligible: there, or long before.

Proof: `docs/proofs/sampled_gaussian.md`.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from accountant.amplification.sampled_gaussian.sampled_gaussian_lines import (
    TAIL_DEVIATIONS,
    Line,
    log_growth,
    loss_and_share,
    rule_on,
)
from accountant.numerics import Array, Complex
from accountant.numerics.logspace import log_mixture_at, logsumexp

STRIP = 0.97 * math.pi / 4  # of the curve's parameter: curve and strip stay left of the cut
STRIP_NATS = 45.0  # e^{2 pi d / h}
LAST_PARAMETER = 36.0  # what lies beyond it is bounded by itself
WIDEST_STRIP = 2.5  # e^{2.5^2 / 2} is what it adds to the error of a real line
LARGE_PEAK = 250.0  # ln r^p at the cut for the powers of a rule on the real line
ROUGH_STRIDE = 3  # of the points of a rule for estimates: it errs by e^-15


@functools.lru_cache(maxsize=1024)
def cut_line(mu: float, rate: float, cut: float) -> Line:
    """Return the rule on the real line up to the cut, for real powers."""
    # Re x <= cut on a strip twice as wide as that of a curve, whose height is 0
    width = min(WIDEST_STRIP, 0.9 * math.pi / mu) / (2 * STRIP)
    power = LARGE_PEAK / max(log_ratio(mu, rate, cut), 1e-300)
    return _up_to(mu, rate, cut, (width, 0.0, 2 * STRIP), power)


@functools.lru_cache(maxsize=4)
def short_rule(mu: float, rate: float, cut: float) -> tuple[Array, Array]:
    """Return losses and logarithms of masses for estimates: every few points of the line."""
    line = cut_line(mu, rate, cut)
    log_mass = line.log_mass[::ROUGH_STRIDE]
    # that they add up to the mass kept matters more than each: powers of the sum are many
    log_mass = log_mass - logsumexp(log_mass) + math.log1p(-line.lost)
    return line.loss[::ROUGH_STRIDE], log_mass


@functools.lru_cache(maxsize=512)
def cut_curve(mu: float, rate: float, cut: float, height: float, power: float) -> Line:
    """Return the rule on a curve that runs at this height and ends at the cut, at ``Re s``."""
    return _up_to(mu, rate, cut, (height, height, STRIP), power)


def _up_to(
    mu: float, rate: float, cut: float, shape: tuple[float, float, float], power: float
) -> Line:
    """Return the rule on the curve of this width, height and strip, for powers about this one."""
    width, height, strip = shape
    t, step, beyond = places_to_cut(mu, rate, cut, width, strip, power)
    x: Any
    speed: Any
    x, speed = place_on_curve(t, cut, width, height)
    sides, edge_count = np.array([[strip], [-strip]]), 1.0
    if not height:  # real, and the lower edge is the mirror image of the upper one
        x, speed, sides, edge_count = x.real, speed.real, sides[:1], 2.0
    at, along = place_on_curve(t + 1j * sides, cut, width, height)
    loss, share = loss_and_share(mu, rate, at.real)
    edge = loss + log_growth(loss, share, rate, mu * at.imag)
    edge_mass = (at.imag**2 - at.real**2 - math.log(2 * math.pi)) / 2
    edge_mass += np.log(edge_count * step * np.abs(along))
    missed = 2 * math.exp(-STRIP_NATS)
    return rule_on(mu, rate, x, step * speed, missed)._replace(
        edge=np.append(edge, log_ratio(mu, rate, cut)),
        edge_mass=np.append(edge_mass, beyond - math.log(missed)),
        lost=normal_tail(cut),
    )


def places_to_cut(
    mu: float,
    rate: float,
    cut: float,
    width: float,
    strip: float,
    power: float,
    nats: float = STRIP_NATS,
) -> tuple[Any, float, float]:
    """Return places, their distance, and a bound on what lies beyond them, over r^s at the cut.

    They end where this is e^-nats at the ``power``.
    """
    step = 2 * math.pi * strip / nats
    leftmost = -(cut + TAIL_DEVIATIONS) / width
    t: Any = leftmost + step * np.arange(math.ceil((LAST_PARAMETER - leftmost) / step) + 1)
    # |dx| <= 2 width dt / (1 + e^t), also on the edges, and Re x is at least this from here on
    softplus = np.logaddexp(0.0, -t)
    least_x = np.maximum(cut - width * (softplus + np.minimum(softplus, 0.35)), 0.0)
    beyond = np.log(2 * width * softplus) - least_x * least_x / 2 + WIDEST_STRIP**2 / 2
    log_negligible = -nats - power * log_ratio(mu, rate, cut)
    at = min(int(np.searchsorted(-beyond, -log_negligible)), t.size - 1)
    return t[: at + 1], step, float(beyond[at])


def log_ratio(mu: float, rate: float, x: float) -> float:
    """Return ``ln r(x)``."""
    return log_mixture_at(mu * x - mu * mu / 2, rate)


def place_on_curve(t: Any, cut: float, width: float, height: Any) -> tuple[Complex, Complex]:
    """Return ``x(t) = cut - width ln(1 + e^-t) + i height / (1 + e^t)``, and its derivative."""
    is_positive = np.real(t) > 0
    small = np.exp(np.where(is_positive, -t, t))
    fall = np.where(is_positive, small, 1.0) / (1 + small)
    # ln(1 + e^-t) = -t + ln(1 + e^t)
    log_term = np.where(is_positive, 0.0, -t) + np.log1p(small)
    return cut - width * log_term + 1j * height * fall, fall * (width - 1j * height * (1 - fall))


def most_points(cut: float, width: float) -> int:
    """Return how many points a curve of this width has, at most."""
    step = 2 * math.pi * STRIP / STRIP_NATS
    return math.ceil((LAST_PARAMETER + (cut + TAIL_DEVIATIONS) / width) / step)


def normal_tail(x: float) -> float:
    """Return ``P(N(0, 1) > x)``; a large library's function would cost half a second to load."""
    return math.erfc(x / math.sqrt(2)) / 2
