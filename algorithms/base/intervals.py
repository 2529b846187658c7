"""Confidence intervals around private estimates: noise and sampling together.

References: White (1980) for errors of unequal size.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from accountant.domains import Interval
from accountant.numerics import Array
from accountant.numerics.search import furthest_that

CONFIDENCE = Interval(0.0, 1.0, "()")


def normal_interval(estimate: Array, deviation: Array, confidence: float) -> Array:
    """Return (lower, upper) of every estimate with normal errors of known deviation."""
    half = -ndtri((1 - CONFIDENCE.check("confidence", confidence)) / 2) * deviation
    return np.stack([estimate - half, estimate + half], axis=1)


def laplace_interval(estimate: Array, scale: float, deviation: Array, confidence: float) -> Array:
    """Return (lower, upper) of estimates with Laplace noise and normal errors."""
    outside = 1 - CONFIDENCE.check("confidence", confidence)
    # Each of the two noises exceeds its bound with half of the probability outside.
    upper_end = -scale * np.log(outside / 2) - ndtri(outside / 4) * deviation
    half = furthest_that(
        lambda t: laplace_normal_tail(t, scale, deviation) <= outside,
        upper_end,
        np.zeros_like(upper_end),
    )
    return np.stack([estimate - half, estimate + half], axis=1)


def laplace_normal_tail(t: Array, scale: float, deviation: Array) -> Array:
    """Return ``P(|L + N| > t)`` for Laplace L of this scale and normal N of this deviation."""
    # With b the scale and s the deviation, P(L + N > t) is
    #     Phi(-t/s) + e^{s^2 / 2 b^2} (e^{-t/b} Phi(t/s - s/b) - e^{t/b} Phi(-t/s - s/b)) / 2,
    # and the other side has as much.  At s = 0 the deviation is taken as 1e-9 b, which moves the
    # tail by less than that.
    s = np.maximum(deviation, 1e-9 * scale)
    exponent = (s / scale) ** 2 / 2
    right = np.exp(exponent - t / scale + log_ndtr(t / s - s / scale))
    left = np.exp(exponent + t / scale + log_ndtr(-t / s - s / scale))
    tail: Array = 2 * ndtr(-t / s) + right - left
    return tail
