"""Trapezoid rules for moments of a sampled Gaussian whose outputs end at a cut c.

The moment is int_{x <= c} n(x) r(x)^s dx, where n is the standard normal density and r(x) = 1 -
rate + rate e^{mu x - mu^2/2} the likelihood ratio.  A contour asks for it at complex s, where r^s
oscillates on the real line; the *power* is the real part of s.  The integral is the same along the
curve

    x(t) = c - w ln(1 + e^-t) + i h / (1 + e^t),    -oo < t < oo,

which begins on the line Im x = h, far to the left, and ends at the cut on the real line; w is its
width and h its height.  Above the real line |r^s| falls with the frequency Im s.  With h = 0 the
curve is the real line, which serves for real s.  The trapezoid rule in t has equal steps and errs
as e^{-2 pi d / step}, where d is the half-width (`STRIP`) of a strip of complex t on which Re x <=
c.  The *edges* are the two sides of this strip, Im t = d and Im t = -d.

A rule is a `Line`: points x, losses ln r(x), logarithms of weights times n(x), and what bounds the
error.  Its *nats* are 2 pi d / step: the relative error is about e^-nats.  The cumulants of
releases whose largest outputs are cut off use these rules (`sampled_gaussian_tail`).  Proof:
`docs/proofs/sampled_gaussian.md`, the cut.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from accountant.amplification.sampled_gaussian.sampled_gaussian_lines import (
    TAIL_DEVIATIONS,
    Line,
    log_growth,
    loss_and_share,
    rule_on,
)
from accountant.numerics import Array, Complex
from accountant.numerics.logspace import log_mixture_at, logsumexp, normal_tail

# d, half-width in Im t: a little less than pi / 4, up to which Re x <= c (where h = w).
STRIP = 0.97 * math.pi / 4
STRIP_NATS = 45.0  # the rule errs by about e^-45 = 3e-20 of the integrals on its edges
LAST_PARAMETER = 36.0  # the largest t of a rule: x is then within w e^-36 of the cut
# The largest |Im x| on a strip, where |n| is up to e^{2.5^2 / 2} = 23 n(Re x): a larger one allows
# wider curves, with fewer points, and adds to the bounds on errors.  `cut_line` keeps it below, and
# so do the callers of `cut_curve` and `places_to_cut`, which choose their heights.
STRIP_DEPTH = 2.5
# The rule on the real line is made for powers p with p ln r(c) <= LOG_PEAK, on which its last point
# depends; e^250 is far above all moments that are asked for.
LOG_PEAK = 250.0
ROUGH_STRIDE = 3  # a rule for estimates has every third point, and so errs by about e^-15


class CurveShape(NamedTuple):
    """What is chosen of a curve, and of the strip around it that decides the error of its rule."""

    width: float  # w
    height: float  # h
    strip: float  # d, half-width in Im t


@functools.lru_cache(maxsize=1024)
def cut_line(mu: float, rate: float, cut: float) -> Line:
    """Return the rule on the real line up to the cut, for real powers."""
    # With h = 0, Re x <= c holds on a strip twice as wide as that of a curve, and |Im x| <= w |Im
    # t| there.  |Im x| is kept a tenth below pi / mu: at pi / mu r(x) may be 0, where ln r(x) is
    # not analytic.
    width = min(STRIP_DEPTH, 0.9 * math.pi / mu) / (2 * STRIP)
    power = LOG_PEAK / max(log_ratio(mu, rate, cut), 1e-300)
    return _rule_to(mu, rate, cut, CurveShape(width, height=0.0, strip=2 * STRIP), power)


@functools.lru_cache(maxsize=4)
def short_rule(mu: float, rate: float, cut: float) -> tuple[Array, Array]:
    """Return losses and log-masses of every third point of the real line's rule, for estimates."""
    line = cut_line(mu, rate, cut)
    log_mass = line.log_mass[::ROUGH_STRIDE]
    # Estimates raise the sum to the number of releases, which multiplies its relative error: so
    # its total is made exact, 1 - P(N(0, 1) > c).
    log_mass = log_mass - logsumexp(log_mass) + math.log1p(-line.lost)
    return line.loss[::ROUGH_STRIDE], log_mass


@functools.lru_cache(maxsize=512)
def cut_curve(mu: float, rate: float, cut: float, height: float, power: float) -> Line:
    """Return the rule on the curve whose width and height are equal, for ``Re s = power``."""
    return _rule_to(mu, rate, cut, CurveShape(width=height, height=height, strip=STRIP), power)


def _rule_to(mu: float, rate: float, cut: float, shape: CurveShape, power: float) -> Line:
    """Return the rule on the curve of a shape, for powers about this one.

    The error of its sum has two parts.  One is `Line.missed` times the integral of |n r^s dx/dt| on
    the edges, which is summed over the same t.  The other is what lies beyond the last point.  What
    lies before the first point, `TAIL_DEVIATIONS` below 0, is far less than round-off.
    """
    width, height, strip = shape
    t, step, log_beyond = places_to_cut(mu, rate, cut, width, strip, power)
    x: Any
    speed: Any
    x, speed = place_on_curve(t, cut, width, height)
    sides, copies_of_edge = np.array([[strip], [-strip]]), 1.0
    if not height:  # The curve is real, and the lower edge is the mirror image of the upper one.
        x, speed = x.real, speed.real
        sides, copies_of_edge = sides[:1], 2.0
    edge_x, edge_speed = place_on_curve(t + 1j * sides, cut, width, height)
    loss, share = loss_and_share(mu, rate, edge_x.real)
    # `log_growth` bounds ln |r(x + iy)| - ln r(x).
    edge = loss + log_growth(loss, share, rate, mu * edge_x.imag)
    # ln |n(x)|, with |e^{-x^2/2}| = e^{(Im^2 x - Re^2 x) / 2}
    edge_mass = (edge_x.imag**2 - edge_x.real**2 - math.log(2 * math.pi)) / 2
    edge_mass += np.log(copies_of_edge * step * np.abs(edge_speed))
    # The rule misses at most 1 / (e^nats - 1) of the edges; twice e^-nats is more.
    missed = 2 * math.exp(-STRIP_NATS)
    # Users of the line multiply the sum on the edges by ``missed``.  What lies beyond the last
    # point is one more term of that sum, so its mass is divided by ``missed`` here.  Its loss is
    # ln r(c), the largest one.
    return rule_on(mu, rate, x, step * speed, missed)._replace(
        edge=np.append(edge, log_ratio(mu, rate, cut)),
        edge_mass=np.append(edge_mass, log_beyond - math.log(missed)),
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
    """Return the parameters t of the points, the step between them, and ``ln B``.

    Beyond the last t, the integral of |n r^s| is at most B r(c)^p for each power p, on the curve
    and on the edges.  The last t is the first one where this bound is at most e^-nats at the
    ``power``, or else `LAST_PARAMETER`.
    """
    step = 2 * math.pi * strip / nats
    leftmost = -(cut + TAIL_DEVIATIONS) / width
    t: Any = leftmost + step * np.arange(math.ceil((LAST_PARAMETER - leftmost) / step) + 1)
    # From t on, |dx| <= 2 w dt / (1 + e^t) on the curve and on both edges.  So what follows of the
    # path has at most the length 2 w l, with l = ln(1 + e^-t) the ``softplus``.  On it Re x >=
    # c - w (l + min(l, 0.35)): on an edge Re ln(1 + e^-(t + id)) <= l.  The other term of x(t),
    # i h / (1 + e^(t + id)), has no real part on the curve.  On an edge it has at most
    # h sin(d) / (2 (cosh(t) + cos(d))), which is at most h l, and at most h sin(d) / 2 < 0.35 h;
    # and h <= w.
    softplus = np.logaddexp(0.0, -t)
    least_x = np.maximum(cut - width * (softplus + np.minimum(softplus, 0.35)), 0.0)
    log_beyond = np.log(2 * width * softplus) - least_x * least_x / 2 + STRIP_DEPTH**2 / 2
    log_negligible = -nats - power * log_ratio(mu, rate, cut)
    last = min(int(np.searchsorted(-log_beyond, -log_negligible)), t.size - 1)
    return t[: last + 1], step, float(log_beyond[last])


def log_ratio(mu: float, rate: float, x: float) -> float:
    """Return the privacy loss ``ln r(x)`` at a real output."""
    return log_mixture_at(mu * x - mu * mu / 2, rate)


def place_on_curve(t: Any, cut: float, width: float, height: Any) -> tuple[Complex, Complex]:
    """Return ``x(t) = cut - width ln(1 + e^-t) + i height / (1 + e^t)``, and its derivative."""
    # e^{-t} overflows at large negative t, and e^t at large positive t; e^{-|t|} never does.
    is_positive = np.real(t) > 0
    small = np.exp(np.where(is_positive, -t, t))
    logistic = np.where(is_positive, small, 1.0) / (1 + small)  # 1 / (1 + e^t)
    softplus = np.where(is_positive, 0.0, -t) + np.log1p(small)  # ln(1 + e^-t)
    x = cut - width * softplus + 1j * height * logistic
    return x, logistic * (width - 1j * height * (1 - logistic))


def max_points(cut: float, width: float) -> int:
    """Return how many points the rule on a curve of this width has, at most."""
    step = 2 * math.pi * STRIP / STRIP_NATS
    return math.ceil((LAST_PARAMETER + (cut + TAIL_DEVIATIONS) / width) / step) + 1
